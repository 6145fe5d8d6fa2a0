//! JSON to protobuf: fields in the order of their numbers, zero values written unless Go has a pointer.

use super::is_message;
use crate::catalog::{Shape, Struct, TypeId, catalog};
use crate::codec::base64;
use serde_json::Value;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

pub(super) fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    bytes(&mut type_meta, 1, api_version.as_bytes());
    bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = Vec::with_capacity(message.len() + type_meta.len() + 16);
    bytes(&mut out, 1, &type_meta);
    bytes(&mut out, 2, message);
    bytes(&mut out, 3, b"");
    bytes(&mut out, 4, b"");
    out
}

pub(super) fn event(ty: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(object.len() + 8);
    bytes(&mut raw, 1, object);
    let mut out = Vec::with_capacity(raw.len() + 16);
    bytes(&mut out, 1, ty.as_bytes());
    bytes(&mut out, 2, &raw);
    out
}

/// The beginning of a list's message; all lists have their metadata in field 1.
pub(super) fn list_metadata(metadata: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(ty) = catalog().type_named("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta") {
        bytes(&mut out, 1, &message(ty, metadata));
    }
    out
}

/// An item of a list's message; all lists have their items in field 2.
pub(super) fn list_item(out: &mut Vec<u8>, ty: TypeId, item: &Value) {
    bytes(out, 2, &message(ty, item));
}

/// The message of a value.
pub(super) fn message(ty: TypeId, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match &catalog().get(ty).shape {
        Shape::Struct(owner) => structure(&mut out, owner, value),
        Shape::Pointer(inner) => return message(*inner, value),
        // A list that is a message of its own.
        Shape::List(inner) => {
            for item in items(value) {
                single(&mut out, 1, *inner, item);
            }
        }
        Shape::Time | Shape::MicroTime => time(&mut out, value),
        Shape::Quantity => bytes(&mut out, 1, value.as_str().unwrap_or("0").as_bytes()),
        Shape::IntOrString => {
            varint_field(&mut out, 1, u64::from(value.is_string()));
            varint_field(&mut out, 2, value.as_i64().unwrap_or_default() as u64);
            bytes(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
        }
        Shape::Raw | Shape::Json | Shape::Fields if !value.is_null() => {
            bytes(&mut out, 1, value.to_string().as_bytes());
        }
        Shape::SchemaOrBool(schema) => {
            let allows = value.is_object() || value.as_bool().unwrap_or_default();
            varint_field(&mut out, 1, u64::from(allows));
            if value.is_object() {
                bytes(&mut out, 2, &message(*schema, value));
            }
        }
        Shape::SchemaOrList(schema) => {
            if value.is_object() {
                bytes(&mut out, 1, &message(*schema, value));
            }
            for item in items(value) {
                bytes(&mut out, 2, &message(*schema, item));
            }
        }
        Shape::SchemaOrStrings(schema) => {
            if value.is_object() {
                bytes(&mut out, 1, &message(*schema, value));
            }
            for item in items(value) {
                bytes(&mut out, 2, item.as_str().unwrap_or_default().as_bytes());
            }
        }
        _ => {}
    }
    out
}

fn structure(out: &mut Vec<u8>, owner: &Struct, value: &Value) {
    let mut numbered: Vec<_> = owner.declared.iter().filter(|declared| declared.number != 0).collect();
    numbered.sort_by_key(|declared| declared.number);
    for declared in numbered {
        if declared.inline {
            bytes(out, declared.number, &message(declared.ty, value));
        } else {
            field(out, declared.number, declared.ty, value.get(declared.name).unwrap_or(&Value::Null));
        }
    }
}

fn field(out: &mut Vec<u8>, number: u32, ty: TypeId, value: &Value) {
    let found = catalog().get(ty);
    match &found.shape {
        Shape::Pointer(inner) => {
            if !value.is_null() {
                single(out, number, *inner, value);
            }
        }
        Shape::List(inner) if !is_message(found.go) => {
            for item in items(value) {
                single(out, number, *inner, item);
            }
        }
        Shape::List(_) => {
            if !value.is_null() {
                bytes(out, number, &message(ty, value));
            }
        }
        Shape::Map(inner) => {
            for (key, item) in value.as_object().into_iter().flatten() {
                let mut entry = Vec::new();
                bytes(&mut entry, 1, key.as_bytes());
                match (&catalog().get(*inner).shape, item) {
                    (Shape::Bytes, Value::Null) => {}
                    _ => single(&mut entry, 2, *inner, item),
                }
                bytes(out, number, &entry);
            }
        }
        Shape::Bytes => {
            if !value.is_null() {
                single(out, number, ty, value);
            }
        }
        _ => single(out, number, ty, value),
    }
}

/// A field that is written once.
fn single(out: &mut Vec<u8>, number: u32, ty: TypeId, value: &Value) {
    match &catalog().get(ty).shape {
        Shape::String => bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        Shape::Bool => varint_field(out, number, u64::from(value.as_bool().unwrap_or_default())),
        Shape::Int(..) => varint_field(out, number, value.as_i64().unwrap_or_default() as u64),
        Shape::Float => {
            varint(out, u64::from(number) << 3 | FIXED64);
            out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Shape::Bytes => {
            bytes(out, number, &base64::decode(value.as_str().unwrap_or_default()).unwrap_or_default());
        }
        _ => bytes(out, number, &message(ty, value)),
    }
}

fn time(out: &mut Vec<u8>, value: &Value) {
    if let Some((seconds, nanos)) = value.as_str().and_then(crate::codec::instant) {
        varint_field(out, 1, seconds as u64);
        varint_field(out, 2, nanos as u64);
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    varint(out, u64::from(number) << 3 | BYTES);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number) << 3 | VARINT);
    varint(out, value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
