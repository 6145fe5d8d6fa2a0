//! Protobuf to JSON: unknown fields are skipped, repeated ones collected, the last of several single ones wins.

use super::{Envelope, ProtobufError, is_message};
use crate::catalog::{Declared, Shape, Struct, TypeId, catalog};
use crate::codec::{base64, printed};
use serde_json::{Map, Number, Value, json};

/// How deep messages may be nested.
const DEPTH_MAX: usize = 200;

type Result<T> = std::result::Result<T, ProtobufError>;

pub(super) fn envelope(bytes: &[u8]) -> Result<Envelope<'_>> {
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), message: &[] };
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => envelope.api_version = lossy(text),
                        (2, Wire::Bytes(text)) => envelope.kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(message)) => envelope.message = message,
            _ => {}
        }
    }
    Ok(envelope)
}

pub(super) fn message(ty: TypeId, bytes: &[u8]) -> Result<Value> {
    read(ty, bytes, 0)
}

fn read(ty: TypeId, bytes: &[u8], depth: usize) -> Result<Value> {
    if depth > DEPTH_MAX {
        return Err(ProtobufError::Depth);
    }
    match &catalog().get(ty).shape {
        Shape::Struct(owner) => {
            let mut map = Map::new();
            structure(owner, bytes, &mut map, depth)?;
            Ok(Value::Object(map))
        }
        Shape::Pointer(inner) => read(*inner, bytes, depth),
        Shape::List(inner) => {
            let mut items = Vec::new();
            for field in Fields(bytes) {
                if let (1, wire) = field? {
                    items.push(single(*inner, wire, depth)?);
                }
            }
            Ok(Value::Array(items))
        }
        Shape::Time => time(bytes, 0),
        Shape::MicroTime => time(bytes, 6),
        Shape::Quantity => Ok(text_at(bytes, 1)?.map_or(json!("0"), |text| Value::String(lossy(text)))),
        Shape::IntOrString => {
            let (mut is_text, mut number, mut text) = (false, 0, String::new());
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Varint(kind)) => is_text = kind == 1,
                    (2, Wire::Varint(value)) => number = i64::from(value as i32),
                    (3, Wire::Bytes(value)) => text = lossy(value),
                    _ => {}
                }
            }
            Ok(if is_text { Value::String(text) } else { number.into() })
        }
        Shape::Raw | Shape::Json | Shape::Fields => {
            let raw = text_at(bytes, 1)?;
            Ok(raw.and_then(|raw| crate::json::parse(raw).ok()).map_or(Value::Null, |parsed| parsed.value))
        }
        Shape::SchemaOrBool(schema) => {
            let mut value = json!(false);
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Varint(allows)) if !value.is_object() => value = json!(allows != 0),
                    (2, Wire::Bytes(inner)) => value = read(*schema, inner, depth + 1)?,
                    _ => {}
                }
            }
            Ok(value)
        }
        Shape::SchemaOrList(schema) | Shape::SchemaOrStrings(schema) => {
            let strings = matches!(catalog().get(ty).shape, Shape::SchemaOrStrings(_));
            let (mut one, mut many) = (Value::Null, Vec::new());
            for field in Fields(bytes) {
                match field? {
                    (1, Wire::Bytes(inner)) => one = read(*schema, inner, depth + 1)?,
                    (2, Wire::Bytes(text)) if strings => many.push(Value::String(lossy(text))),
                    (2, Wire::Bytes(inner)) => many.push(read(*schema, inner, depth + 1)?),
                    _ => {}
                }
            }
            Ok(if many.is_empty() { one } else { Value::Array(many) })
        }
        _ => Ok(Value::Null),
    }
}

fn structure(owner: &Struct, bytes: &[u8], into: &mut Map<String, Value>, depth: usize) -> Result<()> {
    for field in Fields(bytes) {
        let (number, wire) = field?;
        if let Some(declared) = owner.declared.iter().find(|declared| declared.number == number) {
            add(declared, wire, into, depth + 1)?;
        }
    }
    Ok(())
}

fn add(declared: &Declared, wire: Wire<'_>, into: &mut Map<String, Value>, depth: usize) -> Result<()> {
    let ty = catalog().get(declared.ty);
    match (&ty.shape, wire) {
        (Shape::Struct(embedded), Wire::Bytes(inner)) if declared.inline => {
            if depth > DEPTH_MAX {
                return Err(ProtobufError::Depth);
            }
            structure(embedded, inner, into, depth)?;
        }
        (Shape::List(inner), wire) if !is_message(ty.go) => {
            let list = into.entry(declared.name).or_insert_with(|| json!([]));
            let Value::Array(list) = list else { return Ok(()) };
            match (&catalog().get(*inner).shape, wire) {
                // Numbers may be packed together.
                (Shape::Int(..) | Shape::Bool, Wire::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let number = varint(&mut packed)?;
                        list.push(single(*inner, Wire::Varint(number), depth)?);
                    }
                }
                (_, wire) => list.push(single(*inner, wire, depth)?),
            }
        }
        (Shape::Map(inner), Wire::Bytes(entry)) => {
            let (mut key, mut value) = (String::new(), None);
            for field in Fields(entry) {
                match field? {
                    (1, Wire::Bytes(text)) => key = lossy(text),
                    (2, wire) => value = Some(single(*inner, wire, depth)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| match catalog().get(*inner).shape {
                Shape::Bytes => json!(""),
                _ => crate::codec::zero(*inner).clone(),
            });
            if let Value::Object(map) = into.entry(declared.name).or_insert_with(|| json!({})) {
                map.insert(key, value);
            }
        }
        (_, wire) => {
            into.insert(declared.name.to_owned(), single(declared.ty, wire, depth)?);
        }
    }
    Ok(())
}

fn single(ty: TypeId, wire: Wire<'_>, depth: usize) -> Result<Value> {
    let found = catalog().get(ty);
    Ok(match (&found.shape, wire) {
        (Shape::Pointer(inner), wire) => return single(*inner, wire, depth),
        (Shape::String, Wire::Bytes(text)) => Value::String(lossy(text)),
        (Shape::Bool, Wire::Varint(number)) => Value::Bool(number != 0),
        (Shape::Int(_, max), Wire::Varint(number)) if *max == i64::from(i32::MAX) => {
            i64::from(number as i32).into()
        }
        (Shape::Int(..), Wire::Varint(number)) => (number as i64).into(),
        (Shape::Float, Wire::Fixed64(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (Shape::Bytes, Wire::Bytes(content)) => Value::String(base64::encode(content)),
        (Shape::String | Shape::Bool | Shape::Int(..) | Shape::Float | Shape::Bytes, wire) => {
            return Err(ProtobufError::Wire(wire.number(), found.go));
        }
        (_, Wire::Bytes(inner)) => return read(ty, inner, depth + 1),
        (_, wire) => return Err(ProtobufError::Wire(wire.number(), found.go)),
    })
}

fn time(bytes: &[u8], digits: usize) -> Result<Value> {
    let (mut seconds, mut nanos) = (None, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Varint(value)) => seconds = Some(value as i64),
            (2, Wire::Varint(value)) => nanos = i64::from(value as i32),
            _ => {}
        }
    }
    Ok(seconds.map_or(Value::Null, |seconds| Value::String(printed(seconds, nanos, digits))))
}

fn text_at(bytes: &[u8], wanted: u32) -> Result<Option<&[u8]>> {
    let mut found = None;
    for field in Fields(bytes) {
        match field? {
            (number, Wire::Bytes(text)) if number == wanted => found = Some(text),
            _ => {}
        }
    }
    Ok(found)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The content of one field.
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl Wire<'_> {
    fn number(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        }
    }
}

/// The fields of a message, in order.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Wire<'a>)> {
        let tag = varint(&mut self.0)?;
        let wire = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.0)?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            }
            2 => {
                let length = varint(&mut self.0)?;
                Wire::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => return Err(ProtobufError::Wire(other as u8, "unknown")),
        };
        Ok(((tag >> 3) as u32, wire))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(ProtobufError::Truncated)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(value);
        }
    }
    Err(ProtobufError::Overflow)
}
