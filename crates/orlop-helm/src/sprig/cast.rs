//! Numbers out of anything, with the rules of spf13/cast: what cannot be read is zero.

use orlop_gotemplate::Value;

pub(super) fn to_i64(value: &Value) -> i64 {
    match value {
        Value::Int(_, int) => *int,
        Value::Uint(_, uint) => *uint as i64,
        Value::Float(float) => *float as i64,
        Value::Float32(float) => *float as i64,
        Value::Bool(truth) => i64::from(*truth),
        Value::Str(text) => parse_int(&String::from_utf8_lossy(text)),
        Value::Object(object) => object.underlying().map_or(0, |inner| to_i64(&inner)),
        _ => 0,
    }
}

pub(super) fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Int(_, int) => *int as f64,
        Value::Uint(_, uint) => *uint as f64,
        Value::Float(float) => *float,
        Value::Float32(float) => f64::from(*float),
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Str(text) => parse_float(&String::from_utf8_lossy(text)),
        Value::Object(object) => object.underlying().map_or(0.0, |inner| to_f64(&inner)),
        _ => 0.0,
    }
}

/// Go's `strconv.ParseFloat`, which allows underscores between digits.
fn parse_float(text: &str) -> f64 {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let separated = |at: usize| digit(at.checked_sub(1)) && digit(Some(at + 1));
    if bytes.iter().enumerate().any(|(at, b)| *b == b'_' && !separated(at)) {
        return 0.0;
    }
    text.replace('_', "").parse().unwrap_or(0.0)
}

/// Go's `strconv.ParseInt` with base 0, after `.00` is cut off.
fn parse_int(text: &str) -> i64 {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    };
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0o") => (&lower[2..], 8),
        Some(_) if lower.starts_with('0') => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if digits.starts_with(['+', '-']) {
        return 0;
    }
    match i128::from_str_radix(&digits, radix) {
        Ok(value) => i64::try_from(if negative { -value } else { value }).unwrap_or(0),
        Err(_) => 0,
    }
}
