//! JSON patch (RFC 6902) with the habits of the library the API server uses.
//!
//! `replace` adds a missing key, an index of `-1` counts from the end, a missing `value` is null, `test` of a missing
//! key against null passes, and `copy` of a missing key adds null.

use serde_json::{Map, Value};

use crate::go;
use crate::value::{self, DEPTH_MAX};

/// A patch may not have more operations.
pub const OPERATIONS_MAX: usize = 10_000;

/// All `copy` operations of a patch together may not add more bytes of JSON.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Why a patch is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonPatchError {
    /// The patch is not a list of operations (400).
    #[error("{0}")]
    Decode(String),
    /// The patch has too many operations (413).
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooManyOperations(usize),
    /// An operation does not apply (422).
    #[error("{0}")]
    Failed(String),
}

/// The document with all operations done; null is a patch without operations.
pub fn apply(document: Value, patch: &Value) -> Result<Value, JsonPatchError> {
    let operations = match patch {
        Value::Null => return Ok(document),
        Value::Array(operations) => operations,
        other => return Err(decode_error(other, "jsonpatch.Patch")),
    };
    if let Some(odd) =
        operations.iter().find(|operation| !matches!(operation, Value::Object(_) | Value::Null))
    {
        return Err(decode_error(odd, "jsonpatch.Operation"));
    }
    if operations.len() > OPERATIONS_MAX {
        return Err(JsonPatchError::TooManyOperations(operations.len()));
    }
    if value::too_deep(&document) || value::too_deep(patch) {
        return Err(JsonPatchError::Failed("exceeded max depth".into()));
    }
    let mut state = State { document, copied_bytes: 0 };
    for operation in operations {
        state.operate(operation).map_err(JsonPatchError::Failed)?;
    }
    Ok(state.document)
}

/// What strict decoding finds in a patch: an error if it is none, else one message for each unknown member.
pub fn check_fields(patch: &Value) -> Result<Vec<String>, JsonPatchError> {
    let wrap = |error: JsonPatchError| JsonPatchError::Decode(format!("error decoding patch: {error}"));
    let operations = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(operations) => operations,
        other => return Err(wrap(decode_error(other, "[]handlers.jsonPatchOp"))),
    };
    let mut unknown = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let members = match operation {
            Value::Null => continue,
            Value::Object(members) => members,
            other => return Err(wrap(decode_error(other, "handlers.jsonPatchOp"))),
        };
        for (name, value) in members {
            match (name.as_str(), value) {
                ("value", _) | ("op" | "path" | "from", Value::String(_) | Value::Null) => {}
                ("op" | "path" | "from", other) => {
                    return Err(wrap(JsonPatchError::Decode(format!(
                        "json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                        go::json_kind(other)
                    ))));
                }
                _ => unknown.push(format!("json patch unknown field \"[{index}].{name}\"")),
            }
        }
    }
    Ok(unknown)
}

struct State {
    document: Value,
    copied_bytes: usize,
}

impl State {
    fn operate(&mut self, operation: &Value) -> Result<(), String> {
        let text = |key: &str| operation.get(key).and_then(Value::as_str);
        let value = || operation.get("value").cloned().unwrap_or_default();
        let op = text("op").unwrap_or("unknown");
        let path = || {
            text("path").ok_or_else(|| match op {
                "add" | "remove" | "copy" => format!("{op} operation failed to decode path: missing value"),
                _ => format!(
                    "{op} operation failed to decode path: operation missing path field: missing value"
                ),
            })
        };
        let from = || {
            text("from").ok_or_else(|| {
                format!("{op} operation failed to decode from: operation, missing from field: missing value")
            })
        };
        match op {
            "add" => {
                let path = path()?;
                let (container, key) = self.parent(path).ok_or_else(|| missing(op, "path", &quoted(path)))?;
                container
                    .add(&key, value(), path)
                    .map_err(|why| format!("error in add for path: '{path}': {why}"))
            }
            "remove" => {
                let path = path()?;
                let (container, key) = self.parent(path).ok_or_else(|| missing(op, "path", &quoted(path)))?;
                let removed = container.remove(&key);
                removed.map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
            }
            "replace" => self.replace(path()?, value()),
            "test" => self.test(path()?, &value()),
            "move" => {
                let from = from()?;
                let (container, key) = self.parent(from).ok_or_else(|| missing(op, "from path", from))?;
                let value = container
                    .remove(&key)
                    .map_err(|why| format!("error in move for path: '{key}': {why}"))?;
                let path = path()?;
                let (container, key) =
                    self.parent(path).ok_or_else(|| missing(op, "destination path", path))?;
                container
                    .add(&key, value, path)
                    .map_err(|why| format!("error in move for path: '{path}': {why}"))
            }
            "copy" => {
                let from = from()?;
                let (container, key) = self.parent(from).ok_or_else(|| missing(op, "from path", from))?;
                let value =
                    container.get(&key).map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
                let value = value.cloned().unwrap_or_default();
                let path = path()?;
                if self.parent(path).is_none() {
                    return Err(missing(op, "destination path", path));
                }
                self.count_copy(&value)?;
                let (container, key) =
                    self.parent(path).ok_or_else(|| missing(op, "destination path", path))?;
                container
                    .add(&key, value, path)
                    .map_err(|why| format!("error while adding value during copy: {why}"))
            }
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), String> {
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array: %!w(<nil>)".into());
            }
            self.document = value;
            return Ok(());
        }
        let (container, key) = self.parent(path).ok_or_else(|| missing("replace", "path", path))?;
        if container.get(&key).is_err() {
            return Err(missing("replace", "key", path));
        }
        container.set(&key, value, path).map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn test(&mut self, path: &str, value: &Value) -> Result<(), String> {
        let failed = || Err(format!("testing value {path} failed: test failed"));
        if path.is_empty() {
            return if self.document == *value { Ok(()) } else { failed() };
        }
        let Some((container, key)) = self.parent(path) else {
            return Err(format!("test operation does not apply: is missing path: {path}: missing value"));
        };
        let present =
            container.get(&key).map_err(|why| format!("error in test for path: '{path}': {why}"))?;
        if present.unwrap_or(&Value::Null) == value { Ok(()) } else { failed() }
    }

    /// The container a path points into, and the last key; none if there is no such container.
    fn parent(&mut self, path: &str) -> Option<(Container<'_>, String)> {
        let (parents, key) = path.rsplit_once('/')?;
        let mut container = Container::of(&mut self.document)?;
        // What is before the first slash is ignored.
        for part in parents.split('/').skip(1) {
            container = Container::of(container.into_item(&unescape(part))?)?;
        }
        Some((container, unescape(key)))
    }

    fn count_copy(&mut self, value: &Value) -> Result<(), String> {
        self.copied_bytes += if value.is_null() { 0 } else { value.to_string().len() };
        if self.copied_bytes <= COPY_BYTES_MAX {
            return Ok(());
        }
        Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit \
             {COPY_BYTES_MAX}",
            self.copied_bytes
        ))
    }
}

enum Container<'d> {
    Object(&'d mut Map<String, Value>),
    List(&'d mut Vec<Value>),
}

impl<'d> Container<'d> {
    fn of(value: &'d mut Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self::Object(map)),
            Value::Array(items) => Some(Self::List(items)),
            _ => None,
        }
    }

    fn into_item(self, key: &str) -> Option<&'d mut Value> {
        match self {
            Self::Object(map) => map.get_mut(key),
            Self::List(items) => {
                let index = index(key, items.len()).ok()?;
                items.get_mut(index)
            }
        }
    }

    fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Self::Object(map) => Ok(map.get(key)),
            Self::List(items) => Ok(items.get(index(key, items.len())?)),
        }
    }

    fn add(self, key: &str, value: Value, path: &str) -> Result<(), String> {
        check_depth(&value, path)?;
        match self {
            Self::Object(map) => {
                map.insert(key.to_owned(), value);
            }
            Self::List(items) if key == "-" => items.push(value),
            Self::List(items) => {
                number(key).map_err(|why| format!("value was not a proper array index: '{key}': {why}"))?;
                // One more place than there are items, so that -1 appends.
                let place = index(key, items.len() + 1)?;
                items.insert(place, value);
            }
        }
        Ok(())
    }

    fn set(self, key: &str, value: Value, path: &str) -> Result<(), String> {
        check_depth(&value, path)?;
        match self {
            Self::Object(map) => {
                map.insert(key.to_owned(), value);
            }
            Self::List(items) => {
                let place = index(key, items.len())?;
                items[place] = value;
            }
        }
        Ok(())
    }

    fn remove(self, key: &str) -> Result<Value, String> {
        match self {
            Self::Object(map) => map
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Self::List(items) => {
                let place = index(key, items.len())?;
                Ok(items.remove(place))
            }
        }
    }
}

/// The position of an index in a list of `len` items, counting from the end if negative.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let number = number(key)?;
    let position = if number < 0 { number + len as i64 } else { number };
    match usize::try_from(position) {
        Ok(position) if position < len => Ok(position),
        _ => Err(format!("Unable to access invalid index: {number}: invalid index referenced")),
    }
}

fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(key)))
}

fn check_depth(value: &Value, path: &str) -> Result<(), String> {
    let above = path.matches('/').count();
    if above >= DEPTH_MAX || value::deeper_than(value, DEPTH_MAX - above) {
        return Err("exceeded max depth".into());
    }
    Ok(())
}

fn unescape(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}

fn quoted(path: &str) -> String {
    format!("\"{path}\"")
}

fn missing(op: &str, what: &str, path: &str) -> String {
    format!("{op} operation does not apply: doc is missing {what}: {path}: missing value")
}

fn decode_error(value: &Value, target: &str) -> JsonPatchError {
    JsonPatchError::Decode(format!(
        "json: cannot unmarshal {} into Go value of type {target}",
        go::json_kind(value)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_apply() {
        let document = json!({"a": {"b": 1}, "l": [1, 2, 3], "n": null, "x/y": {"~": 1}});
        let cases = [
            (json!(null), document.clone()),
            (json!([]), document.clone()),
            (json!([{"op": "add", "path": "/a/c", "value": 2}]), json!({"b": 1, "c": 2})),
            (json!([{"op": "add", "path": "/a/c"}]), json!({"b": 1, "c": null})),
            (json!([{"op": "replace", "path": "/a/c", "value": 2}]), json!({"b": 1, "c": 2})),
            (json!([{"op": "remove", "path": "/a/b"}]), json!({})),
            (json!([{"op": "move", "from": "/a/b", "path": "/a/c"}]), json!({"c": 1})),
            (json!([{"op": "copy", "from": "/a/b", "path": "/a/c"}]), json!({"b": 1, "c": 1})),
            (json!([{"op": "copy", "from": "/a/none", "path": "/a/c"}]), json!({"b": 1, "c": null})),
            (
                json!([{"op": "test", "path": "/a/none", "value": null}, {"op": "add", "path": "/a/c", "value": 1}]),
                json!({"b": 1, "c": 1}),
            ),
            (
                json!([{"op": "test", "path": "/a", "value": {"b": 1}}, {"op": "add", "path": "anything/a/c", "value": 1}]),
                json!({"b": 1, "c": 1}),
            ),
            (json!([{"op": "add", "path": "/a/~1~0", "value": 1}]), json!({"b": 1, "/~": 1})),
            (json!([{"op": "add", "path": "/a/", "value": 1}]), json!({"b": 1, "": 1})),
        ];
        for (patch, want) in cases {
            let got = apply(document.clone(), &patch).unwrap();
            assert!(got == want || got["a"] == want, "{patch} gives {got}");
        }
        let lists = [
            (json!([{"op": "add", "path": "/l/-", "value": 4}]), json!([1, 2, 3, 4])),
            (json!([{"op": "add", "path": "/l/-1", "value": 4}]), json!([1, 2, 3, 4])),
            (json!([{"op": "add", "path": "/l/3", "value": 4}]), json!([1, 2, 3, 4])),
            (json!([{"op": "add", "path": "/l/0", "value": 4}]), json!([4, 1, 2, 3])),
            (json!([{"op": "add", "path": "/l/-4", "value": 4}]), json!([4, 1, 2, 3])),
            (json!([{"op": "remove", "path": "/l/-1"}]), json!([1, 2])),
            (json!([{"op": "replace", "path": "/l/-3", "value": 4}]), json!([4, 2, 3])),
            (json!([{"op": "move", "from": "/l/0", "path": "/l/-"}]), json!([2, 3, 1])),
        ];
        for (patch, want) in lists {
            assert_eq!(apply(document.clone(), &patch).unwrap()["l"], want, "{patch}");
        }
    }

    #[test]
    fn failures_say_what_the_original_says() {
        let document = json!({"a": {"b": 1}, "l": [1], "n": null, "s": "x"});
        let cases = [
            (json!({}), "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
            (json!([1]), "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
            (json!([null]), "Unexpected kind: unknown"),
            (json!([{"op": "nope"}]), "Unexpected kind: nope"),
            (json!([{"op": 1}]), "Unexpected kind: unknown"),
            (json!([{"op": "add"}]), "add operation failed to decode path: missing value"),
            (
                json!([{"op": "test"}]),
                "test operation failed to decode path: operation missing path field: missing value",
            ),
            (
                json!([{"op": "move", "path": "/a"}]),
                "move operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                json!([{"op": "add", "path": ""}]),
                "add operation does not apply: doc is missing path: \"\": missing value",
            ),
            (
                json!([{"op": "add", "path": "/x/y", "value": 1}]),
                "add operation does not apply: doc is missing path: \"/x/y\": missing value",
            ),
            (
                json!([{"op": "add", "path": "/n/y", "value": 1}]),
                "add operation does not apply: doc is missing path: \"/n/y\": missing value",
            ),
            (
                json!([{"op": "add", "path": "/s/y", "value": 1}]),
                "add operation does not apply: doc is missing path: \"/s/y\": missing value",
            ),
            (
                json!([{"op": "add", "path": "/l/9", "value": 1}]),
                "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
            ),
            (
                json!([{"op": "add", "path": "/l/x", "value": 1}]),
                "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                json!([{"op": "remove", "path": "/a/x"}]),
                "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                json!([{"op": "replace", "path": "/l/9", "value": 1}]),
                "replace operation does not apply: doc is missing key: /l/9: missing value",
            ),
            (
                json!([{"op": "replace", "path": "/x/y", "value": 1}]),
                "replace operation does not apply: doc is missing path: /x/y: missing value",
            ),
            (json!([{"op": "test", "path": "/a/b", "value": 2}]), "testing value /a/b failed: test failed"),
            (
                json!([{"op": "test", "path": "/x/b", "value": 2}]),
                "test operation does not apply: is missing path: /x/b: missing value",
            ),
        ];
        for (patch, want) in cases {
            assert_eq!(apply(document.clone(), &patch).unwrap_err().to_string(), want, "{patch}");
        }
        let many = Value::Array(vec![json!({"op": "test", "path": "/a/b", "value": 1}); OPERATIONS_MAX + 1]);
        assert_eq!(apply(document, &many), Err(JsonPatchError::TooManyOperations(OPERATIONS_MAX + 1)));
    }

    #[test]
    fn copies_are_bounded() {
        let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let many = Value::Array(vec![double; 100]);
        let got = apply(json!({"a": [1]}), &many).unwrap_err().to_string();
        assert!(
            got.starts_with("Unable to complete the copy, the accumulated size increase of copy is "),
            "{got}"
        );
        let deep = json!({"op": "copy", "from": "/a", "path": "/a/0"});
        let got = apply(json!({"a": [1]}), &Value::Array(vec![deep; 1000])).unwrap_err().to_string();
        assert!(got.contains("exceeded max depth") || got.contains("accumulated size"), "{got}");
    }

    #[test]
    fn strict_decoding_names_unknown_members() {
        let cases = [
            (
                json!([{"op": "add", "path": "/a", "foo": 1}]),
                Ok(vec!["json patch unknown field \"[0].foo\"".to_owned()]),
            ),
            (json!(null), Ok(vec![])),
            (
                json!({}),
                Err(
                    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
                ),
            ),
            (
                json!([{"op": 1}]),
                Err(
                    "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
                ),
            ),
        ];
        for (patch, want) in cases {
            let got = check_fields(&patch).map_err(|error| error.to_string());
            assert_eq!(got, want.map_err(str::to_owned), "{patch}");
        }
    }
}
