//! Kubernetes protobuf, read into the JSON that the rest of the server speaks.
//!
//! Bodies are an envelope (`k8s\0`, then a message with apiVersion, kind and the raw object); objects are read
//! along the types of the catalog, whose fields carry their protobuf numbers.

use crate::catalog::{Shape, TypeId, catalog};
use crate::codec::base64;
use serde_json::{Map, Value, json};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may be nested.
const DEPTH_MAX: usize = 100;

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// It does not begin as such bodies begin.
    #[error("provided data does not appear to be a protobuf message, expected prefix {MAGIC:?}", MAGIC = MagicText)]
    Magic,
    /// It ends too early or is nested too deeply.
    #[error("proto: illegal message")]
    Malformed,
    /// It holds a kind that is not known.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
}

/// Prints the magic as Go prints a byte slice.
struct MagicText;

impl std::fmt::Debug for MagicText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[107 56 115 0]")
    }
}

/// Reads a body into an object with `kind` and `apiVersion`.
pub fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &envelope[..0]);
    for field in fields(envelope)? {
        match (field.number, field.wire) {
            (1, Wire::Bytes(meta)) => {
                for field in fields(meta)? {
                    if let (number, Wire::Bytes(text)) = (field.number, field.wire) {
                        let text = String::from_utf8_lossy(text).into_owned();
                        match number {
                            1 => api_version = text,
                            2 => kind = text,
                            _ => {}
                        }
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let Some(ty) = catalog().type_of(group, version, &kind) else {
        return Err(ProtobufError::UnknownKind { kind, api_version });
    };
    let mut object = message(ty, raw, DEPTH_MAX)?;
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
    Ok(object)
}

struct Field<'a> {
    number: u32,
    wire: Wire<'a>,
}

#[derive(Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

fn fields(mut bytes: &[u8]) -> Result<Vec<Field<'_>>, ProtobufError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = match tag & 7 {
            0 => Wire::Varint(varint(&mut bytes)?),
            1 => Wire::Fixed64(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().unwrap_or_default())),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| ProtobufError::Malformed)?;
                Wire::Bytes(take(&mut bytes, length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(take(&mut bytes, 4)?.try_into().unwrap_or_default())),
            _ => return Err(ProtobufError::Malformed),
        };
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Malformed)?;
        all.push(Field { number, wire });
    }
    Ok(all)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], ProtobufError> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(ProtobufError::Malformed)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = take(bytes, 1)?[0];
        if shift < 64 {
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        }
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(ProtobufError::Malformed)
}

/// The first field with a number, as bytes.
fn bytes_at<'a>(message: &'a [u8], number: u32) -> Result<Option<&'a [u8]>, ProtobufError> {
    Ok(fields(message)?.into_iter().find_map(|field| match field.wire {
        Wire::Bytes(bytes) if field.number == number => Some(bytes),
        _ => None,
    }))
}

/// The first field with a number, as an integer.
fn varint_at(message: &[u8], number: u32) -> Result<i64, ProtobufError> {
    let found = fields(message)?.into_iter().find_map(|field| match field.wire {
        Wire::Varint(value) if field.number == number => Some(value as i64),
        _ => None,
    });
    Ok(found.unwrap_or(0))
}

fn message(ty: TypeId, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::Malformed)?;
    let mut object = Map::new();
    read_struct(ty, bytes, depth, &mut object)?;
    Ok(Value::Object(object))
}

fn read_struct(
    ty: TypeId,
    bytes: &[u8],
    depth: usize,
    into: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    let Shape::Struct(owner) = &catalog().get(ty).shape else { return Err(ProtobufError::Malformed) };
    for field in fields(bytes)? {
        let Some(declared) = owner.declared.iter().find(|d| d.number == field.number && d.number != 0) else {
            continue;
        };
        if declared.inline {
            if let Wire::Bytes(bytes) = field.wire {
                read_struct(declared.ty, bytes, depth.checked_sub(1).ok_or(ProtobufError::Malformed)?, into)?;
            }
            continue;
        }
        read_field(declared.name, declared.ty, field.wire, depth, into)?;
    }
    Ok(())
}

fn read_field(
    name: &str,
    ty: TypeId,
    wire: Wire<'_>,
    depth: usize,
    into: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    match &catalog().get(ty).shape {
        Shape::Pointer(inner) => read_field(name, *inner, wire, depth, into),
        Shape::List(inner) => {
            let item = scalar(*inner, wire, depth)?;
            let list = into.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(items) = list {
                items.push(item);
            }
            Ok(())
        }
        Shape::Map(inner) => {
            let Wire::Bytes(entry) = wire else { return Err(ProtobufError::Malformed) };
            let key = String::from_utf8_lossy(bytes_at(entry, 1)?.unwrap_or_default()).into_owned();
            let value = match fields(entry)?.into_iter().find(|field| field.number == 2) {
                Some(field) => map_value(*inner, field.wire, depth)?,
                None => empty(*inner),
            };
            let map = into.entry(name).or_insert_with(|| json!({}));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
            Ok(())
        }
        _ => {
            into.insert(name.to_owned(), scalar(ty, wire, depth)?);
            Ok(())
        }
    }
}

/// A value of a map: named lists are messages with their items in field 1.
fn map_value(ty: TypeId, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    match (&catalog().get(ty).shape, wire) {
        (Shape::List(inner), Wire::Bytes(bytes)) => {
            let items = fields(bytes)?.into_iter().filter(|field| field.number == 1);
            items.map(|field| scalar(*inner, field.wire, depth)).collect()
        }
        _ => scalar(ty, wire, depth),
    }
}

fn empty(ty: TypeId) -> Value {
    match &catalog().get(ty).shape {
        Shape::String | Shape::Bytes => json!(""),
        Shape::List(_) => json!([]),
        _ => json!({}),
    }
}

fn scalar(ty: TypeId, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    let shape = &catalog().get(ty).shape;
    Ok(match (shape, wire) {
        (Shape::Pointer(inner), wire) => scalar(*inner, wire, depth)?,
        (Shape::Struct(_), Wire::Bytes(bytes)) => message(ty, bytes, depth)?,
        (Shape::String, Wire::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned().into(),
        (Shape::Bool, Wire::Varint(value)) => (value != 0).into(),
        (Shape::Int(..), Wire::Varint(value)) => (value as i64).into(),
        (Shape::Float, Wire::Fixed64(bits)) => json!(f64::from_bits(bits)),
        (Shape::Float, Wire::Fixed32(bits)) => json!(f64::from(f32::from_bits(bits))),
        (Shape::Bytes, Wire::Bytes(bytes)) => base64::encode(bytes).into(),
        (Shape::Time | Shape::MicroTime, Wire::Bytes(bytes)) => {
            let (seconds, nanos) = (varint_at(bytes, 1)?, varint_at(bytes, 2)?);
            if bytes.is_empty() {
                Value::Null
            } else {
                crate::codec::time::print(seconds, nanos, matches!(shape, Shape::MicroTime)).into()
            }
        }
        (Shape::Duration, Wire::Bytes(bytes)) => json!(format!("{}ns", varint_at(bytes, 1)?)),
        (Shape::Quantity, Wire::Bytes(bytes)) => {
            String::from_utf8_lossy(bytes_at(bytes, 1)?.unwrap_or(b"0")).into_owned().into()
        }
        (Shape::IntOrString, Wire::Bytes(bytes)) => match varint_at(bytes, 1)? {
            0 => varint_at(bytes, 2)?.into(),
            _ => String::from_utf8_lossy(bytes_at(bytes, 3)?.unwrap_or_default()).into_owned().into(),
        },
        (Shape::Raw | Shape::Fields | Shape::Json, Wire::Bytes(bytes)) => {
            let raw = bytes_at(bytes, 1)?.unwrap_or(b"null");
            serde_json::from_slice(raw).map_err(|_| ProtobufError::Malformed)?
        }
        (Shape::SchemaOrBool(inner), Wire::Bytes(bytes)) => match bytes_at(bytes, 2)? {
            Some(schema) => message(*inner, schema, depth)?,
            None => (varint_at(bytes, 1)? != 0).into(),
        },
        (Shape::SchemaOrList(inner), Wire::Bytes(bytes)) => match bytes_at(bytes, 1)? {
            Some(schema) => message(*inner, schema, depth)?,
            None => repeated(bytes, 2)?
                .into_iter()
                .map(|s| message(*inner, s, depth))
                .collect::<Result<_, _>>()?,
        },
        (Shape::SchemaOrStrings(inner), Wire::Bytes(bytes)) => match bytes_at(bytes, 1)? {
            Some(schema) => message(*inner, schema, depth)?,
            None => {
                repeated(bytes, 2)?.into_iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
            }
        },
        _ => return Err(ProtobufError::Malformed),
    })
}

fn repeated(message: &[u8], number: u32) -> Result<Vec<&[u8]>, ProtobufError> {
    Ok(fields(message)?
        .into_iter()
        .filter_map(|field| match field.wire {
            Wire::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let metadata = field(1, b"x");
        let entry = [field(1, b"a"), field(2, b"1")].concat();
        let raw = [field(1, &metadata), field(2, &entry)].concat();
        let meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
        let body = [MAGIC.to_vec(), field(1, &meta), field(2, &raw)].concat();
        let expected =
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"a": "1"}});
        assert_eq!(decode(&body), Ok(expected));
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        assert_eq!(decode(b"{}"), Err(ProtobufError::Magic));
        assert_eq!(
            ProtobufError::Magic.to_string(),
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        );
        assert_eq!(decode(b"k8s\0\x0a\xff"), Err(ProtobufError::Malformed));
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let meta = [field(1, b"v1"), field(2, b"Pod")].concat();
            let raw = field(2, &bytes.iter().copied().take(120).collect::<Vec<_>>());
            let _ = decode(&[MAGIC.to_vec(), field(1, &meta), raw].concat());
            let _ = decode(&[MAGIC.to_vec(), bytes].concat());
        }
    }
}
