//! Columns that a custom kind asks for.

use super::cell::View;
use super::jsonpath::Path;
use super::{age, definition};
use crate::codec::instant;
use orlop_schema::field::go_float;
use serde_json::{Number, Value};

/// A column of a custom kind.
#[derive(Clone, Debug)]
pub(super) struct CustomColumn {
    path: Path,
    ty: String,
}

impl CustomColumn {
    /// Reads a column; nothing if its path is none.
    pub(super) fn parse(column: &Value) -> Option<Self> {
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        Some(Self { path: Path::parse(text("jsonPath"))?, ty: text("type").to_owned() })
    }

    /// The column's definition in a Table.
    pub(super) fn definition(&self, column: &Value) -> Value {
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        let priority = column["priority"].as_i64().unwrap_or_default();
        definition(text("name"), &self.ty, text("format"), &description, priority)
    }

    /// The cell of an object; null if there is nothing of the column's type at its path.
    pub(super) fn value(&self, view: &View<'_>) -> Value {
        let Some(found) = self.path.first(view.object) else { return Value::Null };
        match (self.ty.as_str(), &*found) {
            ("string", value) => printed(value).into(),
            ("integer", Value::Number(number)) => integer(number),
            ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, whole_or_float),
            ("boolean", Value::Bool(_)) => found.into_owned(),
            ("date", Value::String(time)) => match time.as_str() {
                "" | "null" => "<unknown>".into(),
                time if instant(time).is_none() => "<invalid>".into(),
                time => age::since(time, view.now_nanos).into(),
            },
            _ => Value::Null,
        }
    }
}

fn integer(number: &Number) -> Value {
    match number.as_i64() {
        Some(whole) => whole.into(),
        None => number.as_f64().map_or(Value::Null, |float| truncated(float).into()),
    }
}

/// A float without its fraction, as processors do it that have no such integer.
fn truncated(float: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&float) { float as i64 } else { i64::MIN }
}

/// A float as Go writes it in JSON: without a fraction if it has none.
fn whole_or_float(float: f64) -> Value {
    const SAFE: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() < SAFE { (float as i64).into() } else { float.into() }
}

/// A value as text: scalars as Go prints them, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => go_float(float),
            _ => number.to_string(),
        },
        Value::Bool(bool) => bool.to_string(),
        Value::Array(_) | Value::Object(_) => {
            let mut out = String::new();
            write_json(&mut out, value);
            out
        }
    }
}

/// A value as Go writes it in JSON: numbers without needless exponents, text safe within HTML.
fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { "," });
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (n, (name, field)) in fields.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { "," });
                escape_html(out, &Value::from(name.as_str()).to_string());
                out.push(':');
                write_json(out, field);
            }
            out.push('}');
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if (1e-6..1e21).contains(&float.abs()) || float == 0.0 => {
                out.push_str(&format!("{float}"));
            }
            (None, Some(float)) => out.push_str(&go_float(float).replace("e-0", "e-")),
            _ => out.push_str(&number.to_string()),
        },
        scalar => escape_html(out, &scalar.to_string()),
    }
}

fn escape_html(out: &mut String, json: &str) {
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
}
