//! Field paths and field errors, worded as Kubernetes words them.
//!
//! An error knows its kind, its path, the value that was wrong and a detail; the API layer turns a list of
//! them into a `Status` with `causes` and one aggregated message.

use serde_json::Value;
use std::fmt;

/// A path to a field, such as `spec.containers[0].ports[1].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// The path of the whole object, which prints as nothing.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path that begins at `name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of the field `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// The path of a list item.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of a map value, written `path[key]`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a field; the names are those of `metav1.CauseType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The value is not acceptable.
    Invalid,
    /// The value is not one of a known set.
    NotSupported,
    /// The value must be given.
    Required,
    /// The value, or setting it at all, is not allowed here.
    Forbidden,
    /// The value stands twice in a list of unique values.
    Duplicate,
    /// What the value refers to does not exist.
    NotFound,
    /// The value is too long.
    TooLong,
    /// The list or map has too many items.
    TooMany,
    /// The list or map has too few items.
    TooFew,
    /// The value is too short.
    TooShort,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The server failed while it looked at the value.
    Internal,
}

impl Fault {
    /// The reason in `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TooShort => "FieldValueTooShort",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::TooShort => "Too short",
            Self::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub fault: Fault,
    /// Where it is.
    pub path: Path,
    /// The value as it is quoted in the message: already in Go's `%v`/`%q` spelling; `None` prints no value.
    pub value: Option<String>,
    /// What is wrong, in words; may be empty.
    pub detail: String,
}

impl FieldError {
    /// The value is not acceptable.
    pub fn invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::with_value(Fault::Invalid, path, Some(quote(value)), detail)
    }

    /// The value has the wrong JSON type.
    pub fn type_invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::with_value(Fault::TypeInvalid, path, Some(quote(value)), detail)
    }

    /// The value must be given.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::with_value(Fault::Required, path, None, detail)
    }

    /// Setting the field is not allowed here.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::with_value(Fault::Forbidden, path, None, detail)
    }

    /// The value stands twice.
    pub fn duplicate(path: &Path, value: &Value) -> Self {
        Self::with_value(Fault::Duplicate, path, Some(quote(value)), "")
    }

    /// What the value refers to does not exist.
    pub fn not_found(path: &Path, value: &Value) -> Self {
        Self::with_value(Fault::NotFound, path, Some(quote(value)), "")
    }

    /// The value is not one of `supported`, which is quoted in the order given.
    pub fn not_supported(path: &Path, value: &Value, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let detail = if listed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", listed.join(", "))
        };
        Self::with_value(Fault::NotSupported, path, Some(quote(value)), detail)
    }

    /// The string is longer than `max` bytes; the value itself is not quoted.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::with_value(Fault::TooLong, path, None, format!("may not be more than {max} {unit}"))
    }

    /// The list has `actual` items, `max` are allowed.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::with_value(
            Fault::TooMany,
            path,
            Some(actual.to_string()),
            format!("must have at most {max} {unit}"),
        )
    }

    /// An error with the quoted value spelled by the caller.
    pub fn with_value(fault: Fault, path: &Path, value: Option<String>, detail: impl Into<String>) -> Self {
        Self { fault, path: path.clone(), value, detail: detail.into() }
    }

    /// The text of the cause: everything but the path.
    pub fn body(&self) -> String {
        let mut text = self.fault.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// How Go's field errors quote a value: strings with `%q`, scalars plainly, the rest as JSON.
pub fn quote(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => go_quote(text),
        other => go_escape(&other.to_string()),
    }
}

/// JSON text as Go's encoder prints it: characters that matter to HTML are escaped.
pub fn go_escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// A float as Go's `%v` prints it.
pub fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A string as Go's `%q` prints it.
pub fn go_quote(text: &str) -> String {
    use fmt::Write as _;
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
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Several messages as Go's `utilerrors.Aggregate` prints them: one plainly, more in brackets, repeats dropped.
pub fn aggregate(messages: impl IntoIterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for message in messages {
        if !seen.contains(&message) {
            seen.push(message);
        }
    }
    match seen.len() {
        1 => seen.remove(0),
        _ => format!("[{}]", seen.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_read_as_in_kubernetes() {
        let path = Path::new("spec").child("containers").index(0).child("name");
        for (error, text) in [
            (FieldError::required(&path, ""), "spec.containers[0].name: Required value"),
            (
                FieldError::invalid(&path, &json!("A\n"), "must be lower case"),
                r#"spec.containers[0].name: Invalid value: "A\n": must be lower case"#,
            ),
            (
                FieldError::not_supported(&path, &json!("x"), &["a", "b"]),
                r#"spec.containers[0].name: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (
                FieldError::too_long(&path, 2),
                "spec.containers[0].name: Too long: may not be more than 2 bytes",
            ),
            (
                FieldError::too_many(&path, 9, 8),
                "spec.containers[0].name: Too many: 9: must have at most 8 items",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn one_message_stands_alone_and_repeats_are_dropped() {
        assert_eq!(aggregate(["a".to_owned()]), "a");
        assert_eq!(aggregate(["a".to_owned(), "b".to_owned(), "a".to_owned()]), "[a, b]");
    }
}
