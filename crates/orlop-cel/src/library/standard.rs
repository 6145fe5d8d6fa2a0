//! The standard functions: sizes, conversions, times and optionals.

use crate::eval::{Eval, fail};
use crate::time::{Timestamp, parse_duration, parse_timestamp, write_duration};
use crate::value::Value;

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    Some(match (function, args) {
        ("size", [Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)]) => {
            Ok(Value::Int(args[0].size() as i64))
        }
        ("type", [value]) => Ok(Value::Type(value.type_name().into())),
        ("dyn", [value]) => Ok(value.clone()),
        ("bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint", [value]) => {
            convert(function, value)
        }
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if zero(value) { Value::Optional(None) } else { Value::some(value.clone()) })
        }
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => fail("optional.none() dereference"),
        (_, [Value::Timestamp(time)]) => return civil(function, *time, ""),
        (_, [Value::Timestamp(time), Value::String(zone)]) => return civil(function, *time, zone),
        ("getHours", [Value::Duration(nanos)]) => Ok(Value::Int(nanos / 3_600_000_000_000)),
        ("getMinutes", [Value::Duration(nanos)]) => Ok(Value::Int(nanos / 60_000_000_000)),
        ("getSeconds", [Value::Duration(nanos)]) => Ok(Value::Int(nanos / 1_000_000_000)),
        ("getMilliseconds", [Value::Duration(nanos)]) => Ok(Value::Int(nanos / 1_000_000)),
        _ => return None,
    })
}

fn zero(value: &Value) -> bool {
    match value {
        Value::Null
        | Value::Bool(false)
        | Value::Int(0)
        | Value::Uint(0)
        | Value::Duration(0)
        | Value::Optional(None) => true,
        Value::Double(d) => *d == 0.0,
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        _ => false,
    }
}

fn civil(function: &str, time: Timestamp, zone: &str) -> Option<Eval> {
    let Some(civil) = time.civil(zone) else { return Some(fail(format!("unknown time zone {zone}"))) };
    Some(Ok(Value::Int(match function {
        "getFullYear" => civil.year,
        "getMonth" => civil.month - 1,
        "getDayOfYear" => civil.year_day,
        "getDayOfMonth" => civil.day - 1,
        "getDate" => civil.day,
        "getDayOfWeek" => civil.weekday,
        "getHours" => civil.hour,
        "getMinutes" => civil.minute,
        "getSeconds" => civil.second,
        "getMilliseconds" => civil.millisecond,
        _ => return None,
    })))
}

fn convert(to: &str, value: &Value) -> Eval {
    let overflow = || fail(if to == "uint" { "unsigned integer overflow" } else { "integer overflow" });
    let name = match to {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        other => other,
    };
    let refused = || fail(format!("type conversion error from '{}' to '{name}'", value.type_name()));
    let found = match (to, value) {
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("double", Value::Double(_))
        | ("duration", Value::Duration(_))
        | ("int", Value::Int(_))
        | ("string", Value::String(_))
        | ("timestamp", Value::Timestamp(_))
        | ("uint", Value::Uint(_)) => Some(value.clone()),
        ("bool", Value::String(s)) => match &**s {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        ("bytes", Value::String(s)) => Some(Value::Bytes(s.as_bytes().into())),
        ("double", Value::Int(i)) => Some(Value::Double(*i as f64)),
        ("double", Value::Uint(u)) => Some(Value::Double(*u as f64)),
        ("double", Value::String(s)) => s.parse().ok().map(Value::Double),
        ("duration", Value::Int(i)) => Some(Value::Duration(*i)),
        ("duration", Value::String(s)) => parse_duration(s).map(Value::Duration),
        ("int", Value::Double(d))
            if d.is_nan() || *d <= -9.223_372_036_854_776e18 || *d >= 9.223_372_036_854_776e18 =>
        {
            return overflow();
        }
        ("int", Value::Double(d)) => Some(Value::Int(*d as i64)),
        ("int", Value::Duration(nanos)) => Some(Value::Int(*nanos)),
        ("int", Value::Timestamp(time)) => Some(Value::Int(time.seconds)),
        ("int", Value::Uint(u)) => match i64::try_from(*u) {
            Ok(i) => Some(Value::Int(i)),
            Err(_) => return overflow(),
        },
        ("int", Value::String(s)) => s.parse().ok().map(Value::Int),
        ("uint", Value::Double(d)) if d.is_nan() || *d < 0.0 || *d >= 1.844_674_407_370_955_2e19 => {
            return overflow();
        }
        ("uint", Value::Double(d)) => Some(Value::Uint(*d as u64)),
        ("uint", Value::Int(i)) => match u64::try_from(*i) {
            Ok(u) => Some(Value::Uint(u)),
            Err(_) => return overflow(),
        },
        ("uint", Value::String(s)) => s.parse().ok().map(Value::Uint),
        ("timestamp", Value::Int(i)) => match Timestamp::new(*i, 0) {
            Some(time) => Some(Value::Timestamp(time)),
            None => return fail("timestamp overflow"),
        },
        ("timestamp", Value::String(s)) => parse_timestamp(s).map(Value::Timestamp),
        ("string", Value::Bytes(b)) => match std::str::from_utf8(b) {
            Ok(text) => Some(Value::string(text)),
            Err(_) => return fail("invalid UTF-8 in bytes, cannot convert to string"),
        },
        (
            "string",
            Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Ip(_)
            | Value::Cidr(_),
        ) => Some(Value::string(display(value))),
        _ => None,
    };
    found.map_or_else(refused, Ok)
}

/// A value as `string()` and error texts write it.
pub(crate) fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Uint(u) => u.to_string(),
        Value::Double(d) => super::strings::write_double(*d),
        Value::String(s) | Value::Type(s) | Value::Invalid(s) => s.to_string(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        Value::Duration(nanos) => write_duration(*nanos),
        Value::Timestamp(time) => time.write(),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => format!("{}/{}", cidr.address, cidr.prefix),
        other => other.type_name().to_owned(),
    }
}
