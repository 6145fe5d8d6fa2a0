//! Order and equality of JSON values as field paths need them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// How deep an object may nest; deeper ones are refused, so that no walk can exhaust the stack.
pub const DEPTH_MAX: usize = 200;

/// Whether `value` nests deeper than [`DEPTH_MAX`].
pub(crate) fn too_deep(value: &Value) -> bool {
    deeper_than(value, DEPTH_MAX)
}

/// Whether `value` nests deeper than `limit` levels.
pub(crate) fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| deeper_than(item, limit - 1)),
        _ => false,
    }
}

/// Equality in which `1` and `1.0` are the same number.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((name, left), (other, right))| name == other && equal(left, right))
        }
        _ => left == right,
    }
}

/// A total order over values: numbers, strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            for (left, right) in left.iter().zip(right) {
                match compare(left, right) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                }
            }
            left.len().cmp(&right.len())
        }
        (Value::Object(left), Value::Object(right)) => {
            for ((name, left), (other, right)) in left.iter().zip(right) {
                match name.cmp(other).then_with(|| compare(left, right)) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                }
            }
            left.len().cmp(&right.len())
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    let (left, right) = (left.as_f64().unwrap_or(0.0), right.as_f64().unwrap_or(0.0));
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
