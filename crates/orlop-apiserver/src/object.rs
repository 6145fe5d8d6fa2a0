//! Objects as JSON values: access to metadata, and the layout in which they are stored.
//!
//! A stored body begins with `kind` and `apiVersion`, then `metadata`: a list of built-in objects leaves the
//! first two out, a metadata-only answer copies the third, and another version of the same object differs in
//! the head alone. None of these needs to parse the body.

use bytes::Bytes;
use orlop_store::{Entry, Revision};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What is known of a stored object without parsing it.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Its labels, sorted.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Where `"metadata"` begins in the body.
    pub head_bytes: u16,
    /// Where the value of `metadata` ends in the body.
    pub metadata_end: u32,
    /// The state of the schema the object was written under; an older one means it is pruned and defaulted
    /// again when it is read.
    pub schema: u64,
}

/// A stored object.
pub(crate) type Stored = Arc<Entry<Header>>;

/// The longest head that a header can describe; longer kinds and groups do not pass validation.
const HEAD_BYTES_MAX: usize = u16::MAX as usize;

/// Serialises an object for the store.
pub(crate) fn encode(object: &Value, schema: u64) -> (Bytes, Header) {
    let empty = Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(head(text(object, "kind"), text(object, "apiVersion")).as_bytes());
    let head_bytes = out.len().min(HEAD_BYTES_MAX) as u16;
    out.extend_from_slice(b"\"metadata\":");
    write_json(&mut out, fields.get("metadata").unwrap_or(&json!({})));
    let metadata_end = out.len() as u32;
    for (name, value) in fields {
        if matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            continue;
        }
        out.push(b',');
        write_json(&mut out, &Value::String(name.clone()));
        out.push(b':');
        write_json(&mut out, value);
    }
    out.push(b'}');
    out.shrink_to_fit();
    let labels = labels(object).map(|(k, v)| (k.into(), v.into())).collect();
    let header = Header { labels, head_bytes, metadata_end, schema };
    (Bytes::from(out), header)
}

/// The beginning of a body.
pub(crate) fn head(kind: &str, api_version: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

/// Parses a stored body.
pub(crate) fn decode(body: &Bytes) -> Value {
    parse(body).expect("stored bodies are written by `encode`")
}

/// Parses what may be a stored body. Objects are as deep as requests may be, which serde_json by itself is not.
pub(crate) fn parse(body: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    reader.disable_recursion_limit();
    let object = Value::deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| object)
}

/// The stored `metadata`, still serialised.
pub(crate) fn metadata_bytes(entry: &Entry<Header>) -> &[u8] {
    let start = usize::from(entry.header.head_bytes) + "\"metadata\":".len();
    &entry.body[start..entry.header.metadata_end as usize]
}

/// The body without `kind` and `apiVersion`, without its opening brace.
pub(crate) fn tail_bytes(entry: &Entry<Header>) -> Bytes {
    entry.body.slice(usize::from(entry.header.head_bytes)..)
}

/// Writes a value; writing to memory cannot fail.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("a JSON value can be written to memory");
}

/// A string field of an object, or nothing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A string field of an object's metadata, or nothing.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").map(|meta| text(meta, field)).unwrap_or_default()
}

/// An integer field of an object's metadata.
pub(crate) fn meta_i64(object: &Value, field: &str) -> Option<i64> {
    object.get("metadata")?.get(field)?.as_i64()
}

/// An object's metadata to write to; made if it is missing.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let fields = object.as_object_mut().expect("made an object above");
    let meta = fields.entry("metadata").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta.as_object_mut().expect("made an object above")
}

/// Sets a metadata field, or removes it if the value is null.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    match value.into() {
        Value::Null => meta_mut(object).remove(field),
        value => meta_mut(object).insert(field.to_owned(), value),
    };
}

/// Sets a metadata field to what it is in another object.
pub(crate) fn copy_meta(to: &mut Value, from: &Value, field: &str) {
    set_meta(to, field, from.get("metadata").and_then(|m| m.get(field)).cloned().unwrap_or_default());
}

/// An object's labels.
pub(crate) fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let map = object.get("metadata").and_then(|m| m.get("labels")).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
}

/// An object's finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.get("metadata").and_then(|m| m.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether deletion has begun.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !meta_str(object, "deletionTimestamp").is_empty()
}

/// Gives an object its revision.
pub(crate) fn set_revision(object: &mut Value, revision: Revision) {
    set_meta(object, "resourceVersion", revision.to_string());
}

/// A value at a dotted path, such as `spec.replicas`.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part))
}

/// Writes a value at a dotted path, making objects on the way.
pub(crate) fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut here = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !here.is_object() {
            *here = json!({});
        }
        here = here.as_object_mut().expect("made an object above").entry(part).or_insert(Value::Null);
    }
    *here = value;
}

/// Moves a top-level field of one object to another, or removes it there if it is absent here.
pub(crate) fn copy_field(to: &mut Value, from: &Value, field: &str) {
    let Some(fields) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use orlop_store::Key;

    #[test]
    fn a_stored_body_can_be_cut_without_parsing() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
            "metadata": {"name": "x", "uid": "u", "labels": {"b": "2", "a": "1"}}});
        let (body, header) = encode(&object, 0);
        assert_eq!(decode(&body), object);
        assert_eq!(&*header.labels[0].0, "a");
        let entry = Entry { key: Key::new("", "x"), revision: Revision(2), body, header };
        assert_eq!(serde_json::from_slice::<Value>(metadata_bytes(&entry)).unwrap(), object["metadata"]);
        let tail = format!("{{{}", String::from_utf8_lossy(&tail_bytes(&entry)));
        let without = json!({"data": object["data"], "metadata": object["metadata"]});
        assert_eq!(serde_json::from_str::<Value>(&tail).unwrap(), without);
    }
}
