//! JSON merge patch (RFC 7386) as the API server applies it.

use serde_json::{Map, Value};

use crate::{go, value};

/// Why a merge patch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonMergeError {
    /// The patch is neither an object nor a list (400).
    #[error("Invalid JSON Patch")]
    Scalar,
    /// Strict decoding finds that the patch is not an object (400).
    #[error(
        "error decoding patch: json: cannot unmarshal {0} into Go value of type map[string]interface {{}}"
    )]
    NotAnObject(&'static str),
    /// The patch nests too deep (400).
    #[error("exceeded max depth")]
    Depth,
}

/// The document with the patch merged into it.
///
/// Nulls delete; in objects that are new they are dropped, at any depth and also inside lists.
pub fn apply(document: Value, patch: &Value) -> Result<Value, JsonMergeError> {
    if value::too_deep(patch) || value::too_deep(&document) {
        return Err(JsonMergeError::Depth);
    }
    match patch {
        Value::Object(patch) => Ok(merge(document, patch)),
        // A list replaces the document, which no object survives.
        Value::Array(_) => Ok(without_nulls(patch)),
        _ => Err(JsonMergeError::Scalar),
    }
}

/// What decoding finds in a patch unless field validation is off.
pub fn check_fields(patch: &Value) -> Result<(), JsonMergeError> {
    match patch {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(JsonMergeError::NotAnObject(go::json_kind(other))),
    }
}

/// The patch that makes `new` of `old`, as far as a merge patch can: it cannot write nulls.
pub fn diff(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, new)| match old.get(key) {
        Some(old) if old == new => None,
        Some(old) => Some((key.clone(), diff(old, new))),
        None => Some((key.clone(), new.clone())),
    });
    Value::Object(removed.chain(changed).collect())
}

fn merge(document: Value, patch: &Map<String, Value>) -> Value {
    let Value::Object(mut document) = document else { return without_nulls(&Value::Object(patch.clone())) };
    for (key, value) in patch {
        let merged = match (value, document.remove(key)) {
            (Value::Null, _) => continue,
            (value, None | Some(Value::Null)) => without_nulls(value),
            (Value::Object(patch), Some(present)) => merge(present, patch),
            // Over an object, a list is taken as it is; over anything else, nulls inside it are dropped.
            (value, Some(Value::Object(_))) => value.clone(),
            (value, Some(_)) => without_nulls(value),
        };
        document.insert(key.clone(), merged);
    }
    Value::Object(document)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect::<Vec<_>>().into(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_merge() {
        let cases = [
            (json!({"a": 1}), json!({}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": null, "b": null}), json!({})),
            (json!({"a": {"b": 1}}), json!({"a": {"c": 2}}), json!({"a": {"b": 1, "c": 2}})),
            (json!({"a": [1]}), json!({"a": {"c": null, "d": 1}}), json!({"a": {"d": 1}})),
            (json!({}), json!({"a": {"b": {"c": null, "d": 1}}}), json!({"a": {"b": {"d": 1}}})),
            (json!({}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]})),
            (json!({"a": {}}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {"b": null}]})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": {"b": 1}}), json!({"a": "x"}), json!({"a": "x"})),
        ];
        for (document, patch, want) in cases {
            assert_eq!(apply(document.clone(), &patch), Ok(want), "{document} <- {patch}");
        }
        assert_eq!(apply(json!({}), &json!(null)), Err(JsonMergeError::Scalar));
        assert_eq!(apply(json!({}), &json!([{"a": null}])), Ok(json!([{}])));
        assert_eq!(
            check_fields(&json!([])).unwrap_err().to_string(),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
    }
}
