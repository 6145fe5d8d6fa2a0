//! YAML, read and written as the JSON it stands for.

use serde_json::Value;

/// Reads one YAML document; duplicates come back as strict errors are worded.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    // Most YAML that clients send is JSON, which is read far faster as what it is.
    if bytes.first() == Some(&b'{')
        && let Ok(parsed) = orlop_kinds::json::parse(bytes)
        && parsed.duplicates.is_empty()
    {
        return Ok((parsed.value, Vec::new()));
    }
    let text = first_document(std::str::from_utf8(bytes).map_err(|_| "yaml: invalid UTF-8".to_owned())?);
    let options = |duplicates| {
        let mut options = serde_saphyr::options! { legacy_octal_numbers: true, duplicate_keys: duplicates };
        options.with_snippet = false;
        options
    };
    let strict: Result<Value, _> =
        serde_saphyr::from_str_with_options(text, options(serde_saphyr::DuplicateKeyPolicy::Error));
    match strict {
        Ok(value) => Ok((normal(value), Vec::new())),
        Err(error) => {
            let lenient: Result<Value, _> = serde_saphyr::from_str_with_options(
                text,
                options(serde_saphyr::DuplicateKeyPolicy::LastWins),
            );
            match lenient {
                Ok(value) => Ok((normal(value), vec![duplicate(&error.to_string())])),
                Err(error) => Err(malformed(&error.to_string())),
            }
        }
    }
}

/// A complaint about a duplicate key in the words of Go's YAML reader.
fn duplicate(complaint: &str) -> String {
    let between = |from: &str, to: &str| {
        let start = complaint.find(from)? + from.len();
        let rest = &complaint[start..];
        Some(&rest[..rest.find(to).unwrap_or(rest.len())])
    };
    let key = between("key: ", ",").unwrap_or_default();
    let line = between("line ", ",").unwrap_or("1");
    format!("line {line}: key {} already set in map", orlop_schema::field::go_quote(key))
}

/// A complaint about malformed text, as close to Go's YAML reader as the two readers agree.
fn malformed(complaint: &str) -> String {
    let line = complaint
        .rsplit_once("line ")
        .map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("1").to_owned());
    match line {
        Some(line) if complaint.starts_with("unclosed") => {
            format!("yaml: line {line}: did not find expected node content")
        }
        _ => format!("yaml: {complaint}"),
    }
}

/// The first document of a stream.
fn first_document(text: &str) -> &str {
    let body = text.strip_prefix("---\n").unwrap_or(text);
    body.find("\n---\n").map_or(body, |end| &body[..=end])
}

/// Writes a value as YAML.
pub(crate) fn to_string(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Floats without a fraction are integers, as they are once they have been through Go's JSON.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, normal(value))).collect(),
        other => other,
    }
}
