//! Answers: from objects and stored bytes to what the client accepts.

use crate::body::Body;
use crate::kind::{Kind, Source};
use crate::negotiate::{Accepted, Format};
use crate::object::{self, Stored};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use orlop_kinds::catalog::{TypeId, catalog};
use serde_json::Value;

/// What a request is answered with.
pub(crate) enum Answer {
    /// A JSON value.
    Value(u16, Value),
    /// A JSON value under a media type of its own.
    Typed(&'static str, Value),
    /// Bytes under a media type of their own.
    Encoded(&'static str, Bytes),
    /// Bytes with headers of their own.
    Document(Document),
    /// JSON that is serialised already.
    Bytes(u16, Bytes),
    /// Plain text.
    Text(u16, String),
    /// Nothing but a status.
    Empty(u16),
    /// A watch.
    Stream(Body),
}

/// An answer that is not an object, with headers of its own.
pub(crate) struct Document {
    status: u16,
    media_type: &'static str,
    bytes: Bytes,
    /// Headers beside the content's type, instead of those that other answers have.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Document {
    /// An answer.
    pub(crate) fn new(
        status: u16,
        media_type: &'static str,
        bytes: Bytes,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Self {
        Self { status, media_type, bytes, headers }
    }
}

impl Answer {
    /// Headers of the answer's own.
    pub(crate) fn take_headers(&mut self) -> Vec<(HeaderName, HeaderValue)> {
        match self {
            Self::Document(document) => std::mem::take(&mut document.headers),
            _ => Vec::new(),
        }
    }

    /// The status code.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Value(status, _) | Self::Bytes(status, _) | Self::Text(status, _) | Self::Empty(status) => {
                *status
            }
            Self::Document(document) => document.status,
            Self::Typed(..) | Self::Encoded(..) | Self::Stream(_) => 200,
        }
    }

    /// The content type and the bytes.
    pub(crate) fn into_body(self, accepted: Accepted) -> (&'static str, Body) {
        match (self, accepted.format) {
            (Self::Empty(_), _) => ("", Body::whole(Bytes::new())),
            (Self::Text(_, text), _) => ("text/plain; charset=utf-8", Body::whole(text)),
            (Self::Encoded(media_type, bytes), _) => (media_type, Body::whole(bytes)),
            (Self::Document(document), _) => (document.media_type, Body::whole(document.bytes)),
            (Self::Stream(body), Format::Protobuf) => (PROTOBUF_STREAM, body),
            (Self::Stream(body), _) => ("application/json", body),
            (Self::Bytes(_, bytes), Format::Json) if !accepted.pretty => {
                ("application/json", Body::whole(bytes))
            }
            (Self::Bytes(_, bytes), _) => write(&object::decode(&bytes), accepted),
            (Self::Value(_, value), _) => write(&value, accepted),
            (Self::Typed(media_type, value), _) => {
                (media_type, write(&value, Accepted { pretty: accepted.pretty, ..Accepted::JSON }).1)
            }
        }
    }
}

/// The media type of protobuf.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A value as protobuf, if there is a message for it.
pub(super) fn protobuf(value: &Value) -> Option<Vec<u8>> {
    let (group, version) = match object::text(value, "apiVersion") {
        // The oldest parts of discovery leave their version out.
        "" => ("", "v1"),
        api_version => api_version.split_once('/').unwrap_or(("", api_version)),
    };
    let ty = type_of(group, version, object::text(value, "kind"))?;
    Some(orlop_kinds::protobuf::encode(ty, value))
}

/// The type of a kind; metadata has one message in all of its versions.
pub(super) fn type_of(group: &str, version: &str, kind: &str) -> Option<TypeId> {
    let version = if group == "meta.k8s.io" { "v1" } else { version };
    catalog().type_of(group, version, kind)
}

fn write(value: &Value, accepted: Accepted) -> (&'static str, Body) {
    let encoded = if accepted.format == Format::Protobuf { protobuf(value) } else { None };
    match (accepted.format, encoded) {
        (Format::Protobuf, Some(encoded)) => (PROTOBUF, Body::whole(encoded)),
        (Format::Yaml, _) => ("application/yaml", Body::whole(crate::yaml::to_string(value))),
        (Format::Json | Format::Protobuf, _) => {
            let mut out = Vec::new();
            if accepted.pretty {
                serde_json::to_writer_pretty(&mut out, value).expect("a JSON value can be written to memory");
            } else {
                object::write_json(&mut out, value);
            }
            out.push(b'\n');
            ("application/json", Body::whole(out))
        }
    }
}

/// `PartialObjectMetadata` of a stored object, copied.
pub(crate) fn partial_bytes(out: &mut Vec<u8>, meta_version: &str, stored: &Stored) {
    out.extend_from_slice(object::head("PartialObjectMetadata", meta_version).as_bytes());
    out.extend_from_slice(b"\"metadata\":");
    out.extend_from_slice(object::metadata_bytes(stored));
    out.push(b'}');
}

/// Whether stored bytes are what a reader of this kind's version gets, but for the head.
pub(crate) fn is_plain(kind: &Kind, stored: &Stored) -> bool {
    match &kind.source {
        Source::BuiltIn(_) => kind.storage == kind.api_version(),
        Source::Custom(custom) => custom.is_current(stored.header.schema),
    }
}

/// Writes a stored object as it looks in this kind's version.
pub(crate) fn object_bytes(out: &mut Vec<u8>, kind: &Kind, stored: &Stored) {
    if !is_plain(kind, stored) {
        object::write_json(out, &kind.read(stored));
        return;
    }
    out.extend_from_slice(object::head(&kind.kind, &kind.api_version()).as_bytes());
    out.extend_from_slice(&object::tail_bytes(stored));
}

/// Writes a stored object as an item of a list: built-in kinds leave out what the list says already.
pub(crate) fn item_bytes(out: &mut Vec<u8>, kind: &Kind, stored: &Stored) {
    if kind.custom().is_some() {
        return object_bytes(out, kind, stored);
    }
    if is_plain(kind, stored) {
        out.push(b'{');
        out.extend_from_slice(&object::tail_bytes(stored));
        return;
    }
    let mut item = kind.read(stored);
    if let Some(fields) = item.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object::write_json(out, &item);
}
