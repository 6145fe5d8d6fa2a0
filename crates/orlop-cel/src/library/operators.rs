//! Operators: arithmetic that refuses to overflow, equality and order.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::eval::{Eval, fail, no_such_overload};
use crate::value::Value;

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    Some(match (function, args) {
        ("_==_", [a, b]) => Ok(Value::Bool(a.equals(b))),
        ("_!=_", [a, b]) => Ok(Value::Bool(!a.equals(b))),
        ("_<_", [a, b]) => order(a, b, |o| o == Ordering::Less),
        ("_<=_", [a, b]) => order(a, b, |o| o != Ordering::Greater),
        ("_>_", [a, b]) => order(a, b, |o| o == Ordering::Greater),
        ("_>=_", [a, b]) => order(a, b, |o| o != Ordering::Less),
        ("!_", [Value::Bool(a)]) => Ok(Value::Bool(!a)),
        ("-_", [Value::Int(a)]) => {
            a.checked_neg().map_or_else(|| fail("integer overflow"), |v| Ok(Value::Int(v)))
        }
        ("-_", [Value::Double(a)]) => Ok(Value::Double(-a)),
        ("@in", [needle, Value::List(list)]) => {
            Ok(Value::Bool(list.items.iter().any(|item| item.equals(needle))))
        }
        ("@in", [needle, Value::Map(map)]) => {
            Ok(Value::Bool(needle.key().is_some_and(|key| map.contains_key(&key))))
        }
        ("_+_", [a, b]) => add(a, b),
        ("_-_", [a, b]) => subtract(a, b),
        ("_*_" | "_/_" | "_%_", [a, b]) => multiply(function, a, b),
        ("!_" | "-_" | "@in", _) => no_such_overload(),
        _ => return None,
    })
}

fn order(a: &Value, b: &Value, holds: fn(Ordering) -> bool) -> Eval {
    match a.compare(b) {
        Some(order) => Ok(Value::Bool(holds(order))),
        None => match (a, b) {
            (Value::Double(_), _) | (_, Value::Double(_)) => fail("NaN values cannot be ordered"),
            _ => no_such_overload(),
        },
    }
}

fn int(value: Option<i64>) -> Eval {
    value.map_or_else(|| fail("integer overflow"), |v| Ok(Value::Int(v)))
}

fn uint(value: Option<u64>) -> Eval {
    value.map_or_else(|| fail("unsigned integer overflow"), |v| Ok(Value::Uint(v)))
}

fn add(a: &Value, b: &Value) -> Eval {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::string(format!("{a}{b}"))),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => Ok(Value::List(Arc::new(a.concat(b)))),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map_or_else(|| fail("duration overflow"), |v| Ok(Value::Duration(v)))
        }
        (Value::Timestamp(t), Value::Duration(d)) | (Value::Duration(d), Value::Timestamp(t)) => {
            t.plus(i128::from(*d)).map_or_else(|| fail("timestamp overflow"), |v| Ok(Value::Timestamp(v)))
        }
        _ => no_such_overload(),
    }
}

fn subtract(a: &Value, b: &Value) -> Eval {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_sub(*b).map_or_else(|| fail("duration overflow"), |v| Ok(Value::Duration(v)))
        }
        (Value::Timestamp(t), Value::Duration(d)) => {
            t.plus(-i128::from(*d)).map_or_else(|| fail("timestamp overflow"), |v| Ok(Value::Timestamp(v)))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            a.since(*b).map_or_else(|| fail("duration overflow"), |v| Ok(Value::Duration(v)))
        }
        _ => no_such_overload(),
    }
}

fn multiply(function: &str, a: &Value, b: &Value) -> Eval {
    match (function, a, b) {
        ("_/_", _, Value::Int(0) | Value::Uint(0)) => fail("division by zero"),
        ("_%_", _, Value::Int(0) | Value::Uint(0)) => fail("modulus by zero"),
        ("_*_", Value::Int(a), Value::Int(b)) => int(a.checked_mul(*b)),
        ("_/_", Value::Int(a), Value::Int(b)) => int(a.checked_div(*b)),
        ("_%_", Value::Int(a), Value::Int(b)) => int(a.checked_rem(*b)),
        ("_*_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_mul(*b)),
        ("_/_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_div(*b)),
        ("_%_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_rem(*b)),
        ("_*_", Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        ("_/_", Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => no_such_overload(),
    }
}
