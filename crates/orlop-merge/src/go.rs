//! How Go prints values, for messages that quote them.
//!
//! Messages of the originals contain `%v`, `%#v`, `%T` and `%q` of decoded JSON. An apply patch is decoded with all
//! numbers as `float64`, which print in Go's shortest `%g` form (`1e+06`); other patches keep integers.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// What JSON numbers became when the original decoded them.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    /// All are `float64`.
    Floats,
    /// Those without fraction are `int64`.
    Integers,
}

/// `%v`: `map[a:1 b:[x y]]`, `<nil>`.
pub(crate) fn plain(value: &Value, numbers: Numbers) -> String {
    let mut out = String::new();
    write_plain(&mut out, value, numbers);
    out
}

/// `%#v`: `map[string]interface {}{"a":1}`, `interface {}(nil)`.
pub(crate) fn syntax(value: &Value) -> String {
    let mut out = String::new();
    write_syntax(&mut out, value);
    out
}

/// `%T` of the decoded value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's JSON decoder calls a value in its errors.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `%s` of a value that need not be a string.
pub(crate) fn verb_s(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".into(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => {
            format!("%!s({}={})", type_name(value), plain(value, Numbers::Integers))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(verb_s).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", verb_s(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// `%q` of a string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control()
                || matches!(c, '\u{a0}' | '\u{ad}' | '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `%v` of a number that was decoded as `float64`.
pub(crate) fn float(number: &Number) -> String {
    let Some(value) = number.as_f64() else { return number.to_string() };
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if (-4..SHORTEST_PRECISION).contains(&exponent) || exponent == 0 {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Go's JSON encoding: compact, and `<`, `>`, `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// In shortest form, `%g` switches to an exponent from this one on.
const SHORTEST_PRECISION: i32 = 6;

fn write_plain(out: &mut String, value: &Value, numbers: Numbers) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match numbers {
            Numbers::Integers if !number.is_f64() => out.push_str(&number.to_string()),
            _ => out.push_str(&float(number)),
        },
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_plain(out, item, numbers);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_plain(out, item, numbers);
            }
            out.push(']');
        }
    }
}

fn write_syntax(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&float(number)),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_syntax(out, item);
            }
            out.push('}');
        }
        Value::Object(map) => {
            out.push_str("map[string]interface {}{");
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(key));
                out.push(':');
                write_syntax(out, item);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let cases = [
            (json!(80), "80", "80"),
            (json!(100_000), "100000", "100000"),
            (json!(1_000_000), "1e+06", "1e+06"),
            (json!(20_999_999), "2.0999999e+07", "2.0999999e+07"),
            (json!(1.5), "1.5", "1.5"),
            (json!(0.0001), "0.0001", "0.0001"),
            (json!(0.00001), "1e-05", "1e-05"),
            (json!(-3), "-3", "-3"),
            (json!(0), "0", "0"),
            (json!(null), "<nil>", "interface {}(nil)"),
            (json!("a\"b"), "a\"b", "\"a\\\"b\""),
            (
                json!({"a": 1, "b": null, "c": [1, "x"]}),
                "map[a:1 b:<nil> c:[1 x]]",
                "map[string]interface {}{\"a\":1, \"b\":interface {}(nil), \"c\":[]interface {}{1, \"x\"}}",
            ),
        ];
        for (value, want_plain, want_syntax) in cases {
            assert_eq!(plain(&value, Numbers::Floats), want_plain);
            assert_eq!(syntax(&value), want_syntax);
        }
        assert_eq!(plain(&json!(1_000_000), Numbers::Integers), "1000000");
        assert_eq!(json(&json!({"a": "<&>"})), "{\"a\":\"\\u003c\\u0026\\u003e\"}");
    }
}
