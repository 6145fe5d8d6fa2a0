//! Kubernetes' protobuf, transcoded from and to JSON values along the types of the catalog.
//!
//! An object on the wire is `k8s\0` and an envelope with its kind and its message. Values are expected and
//! returned in the form of [`crate::codec::decode`]; of the metadata about JSON only what the Go types say is
//! needed, so every built-in kind is covered.

mod reader;
mod writer;

use crate::catalog::TypeId;
use serde_json::Value;

/// The first bytes of every object.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// Why bytes are no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The magic number is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// The bytes end in the middle of something.
    #[error("unexpected EOF")]
    Truncated,
    /// A field has another wire type than its Go type.
    #[error("proto: wrong wireType = {0} for a field of {1}")]
    Wire(u8, &'static str),
    /// A number is longer than it can be.
    #[error("proto: integer overflow")]
    Overflow,
    /// Messages are nested too deeply.
    #[error("proto: exceeded max depth")]
    Depth,
    /// The message does not have the form of its Go type.
    #[error("{0}")]
    Value(String),
}

/// An object in its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The group and version, as in JSON.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The message.
    pub message: &'a [u8],
}

/// Writes an object of a type with its envelope; kind and version are those of the value.
pub fn encode(ty: TypeId, value: &Value) -> Vec<u8> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut out = MAGIC.to_vec();
    out.extend(writer::envelope(text("apiVersion"), text("kind"), &writer::message(ty, value)));
    out
}

/// A list that is written item by item.
pub struct ListWriter {
    item: TypeId,
    message: Vec<u8>,
}

impl ListWriter {
    /// Begins a list of a type with its metadata.
    pub fn new(item: TypeId, metadata: &Value) -> Self {
        Self { item, message: writer::list_metadata(metadata) }
    }

    /// Adds an item; its kind and version are those of the list.
    pub fn push(&mut self, item: &Value) {
        writer::list_item(&mut self.message, self.item, item);
    }

    /// The list in its envelope.
    pub fn finish(self, api_version: &str, kind: &str) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(writer::envelope(api_version, kind, &self.message));
        out
    }
}

/// Opens an envelope.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    reader::envelope(bytes.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?)
}

/// Reads the message of an envelope into the form of its type, with kind and version.
pub fn decode(ty: TypeId, envelope: &Envelope<'_>) -> Result<Value, ProtobufError> {
    let mut value = reader::message(ty, envelope.message)?;
    if let Value::Object(map) = &mut value {
        for (key, text) in [("apiVersion", &envelope.api_version), ("kind", &envelope.kind)] {
            if !text.is_empty() {
                map.insert(key.to_owned(), Value::String(text.clone()));
            }
        }
    }
    crate::codec::decode(ty, value)
        .map(|decoded| decoded.value)
        .map_err(|error| ProtobufError::Value(error.to_string()))
}

/// Writes a watch event as a stream carries it: a length of four bytes, then the event around an encoded object.
pub fn encode_event(ty: &str, object: &[u8]) -> Vec<u8> {
    let event = writer::event(ty, object);
    let mut out = (event.len() as u32).to_be_bytes().to_vec();
    out.extend(event);
    out
}

/// The two named lists that are messages with the items in field 1; all other lists are repeated fields.
fn is_message(go: &str) -> bool {
    matches!(go, "v1.ExtraValue" | "v1.Verbs")
}

#[cfg(test)]
mod tests;
