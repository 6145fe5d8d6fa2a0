//! OpenAPI v2 as protobuf, in gnostic's messages: the only form that older clients read.

use serde_json::Value;

/// How a value is written in its field.
#[derive(Clone, Copy)]
enum As {
    Text,
    Texts,
    Bool,
    Int,
    Double,
    /// Anything, as YAML; JSON is YAML.
    Any,
    Anys,
    Message(fn(&Value) -> Vec<u8>),
    Messages(fn(&Value) -> Vec<u8>),
}

/// Fields by their names in JSON, in the order of their numbers.
type Fields = &'static [(&'static str, u32, As)];

const DOCUMENT: Fields = &[
    ("swagger", 1, As::Text),
    ("info", 2, As::Message(info)),
    ("paths", 8, As::Message(paths)),
    ("definitions", 9, As::Message(schemas)),
    ("security", 12, As::Messages(security)),
    ("securityDefinitions", 13, As::Message(security_definitions)),
];
const INFO: Fields = &[("title", 1, As::Text), ("version", 2, As::Text)];
const API_KEY: Fields =
    &[("type", 1, As::Text), ("name", 2, As::Text), ("in", 3, As::Text), ("description", 4, As::Text)];
const PATH_ITEM: Fields = &[
    ("get", 2, As::Message(operation)),
    ("put", 3, As::Message(operation)),
    ("post", 4, As::Message(operation)),
    ("delete", 5, As::Message(operation)),
    ("options", 6, As::Message(operation)),
    ("head", 7, As::Message(operation)),
    ("patch", 8, As::Message(operation)),
    ("parameters", 9, As::Messages(parameter)),
];
const OPERATION: Fields = &[
    ("tags", 1, As::Texts),
    ("summary", 2, As::Text),
    ("description", 3, As::Text),
    ("operationId", 5, As::Text),
    ("produces", 6, As::Texts),
    ("consumes", 7, As::Texts),
    ("parameters", 8, As::Messages(parameter)),
    ("responses", 9, As::Message(responses)),
    ("schemes", 10, As::Texts),
];
const BODY_PARAMETER: Fields = &[
    ("description", 1, As::Text),
    ("name", 2, As::Text),
    ("in", 3, As::Text),
    ("required", 4, As::Bool),
    ("schema", 5, As::Message(schema)),
];
const QUERY_PARAMETER: Fields = &[
    ("required", 1, As::Bool),
    ("in", 2, As::Text),
    ("description", 3, As::Text),
    ("name", 4, As::Text),
    ("type", 6, As::Text),
    ("format", 7, As::Text),
    ("uniqueItems", 20, As::Bool),
];
const PATH_PARAMETER: Fields = &[
    ("required", 1, As::Bool),
    ("in", 2, As::Text),
    ("description", 3, As::Text),
    ("name", 4, As::Text),
    ("type", 5, As::Text),
    ("format", 6, As::Text),
    ("uniqueItems", 19, As::Bool),
];
const RESPONSE: Fields = &[("description", 1, As::Text), ("schema", 2, As::Message(schema_item))];
const SCHEMA: Fields = &[
    ("$ref", 1, As::Text),
    ("format", 2, As::Text),
    ("title", 3, As::Text),
    ("description", 4, As::Text),
    ("default", 5, As::Any),
    ("multipleOf", 6, As::Double),
    ("maximum", 7, As::Double),
    ("exclusiveMaximum", 8, As::Bool),
    ("minimum", 9, As::Double),
    ("exclusiveMinimum", 10, As::Bool),
    ("maxLength", 11, As::Int),
    ("minLength", 12, As::Int),
    ("pattern", 13, As::Text),
    ("maxItems", 14, As::Int),
    ("minItems", 15, As::Int),
    ("uniqueItems", 16, As::Bool),
    ("maxProperties", 17, As::Int),
    ("minProperties", 18, As::Int),
    ("required", 19, As::Texts),
    ("enum", 20, As::Anys),
    ("additionalProperties", 21, As::Message(schema_or_bool)),
    ("type", 22, As::Message(type_item)),
    ("items", 23, As::Message(schema_item)),
    ("properties", 25, As::Message(schemas)),
    ("readOnly", 27, As::Bool),
    ("example", 30, As::Any),
];

/// The message of a document.
pub(super) fn document(value: &Value) -> Vec<u8> {
    message(DOCUMENT, value, None)
}

fn info(value: &Value) -> Vec<u8> {
    message(INFO, value, Some(7))
}

fn schema(value: &Value) -> Vec<u8> {
    message(SCHEMA, value, Some(31))
}

fn operation(value: &Value) -> Vec<u8> {
    message(OPERATION, value, Some(13))
}

fn path_item(value: &Value) -> Vec<u8> {
    message(PATH_ITEM, value, Some(10))
}

fn paths(value: &Value) -> Vec<u8> {
    named(value, 2, path_item)
}

fn schemas(value: &Value) -> Vec<u8> {
    named(value, 1, schema)
}

fn responses(value: &Value) -> Vec<u8> {
    named(value, 1, |response| wrapped(1, &message(RESPONSE, response, Some(5))))
}

fn security_definitions(value: &Value) -> Vec<u8> {
    named(value, 1, |key| wrapped(2, &message(API_KEY, key, Some(5))))
}

fn security(value: &Value) -> Vec<u8> {
    named(value, 1, |names| {
        let mut out = Vec::new();
        names.as_array().into_iter().flatten().for_each(|name| text(&mut out, 1, name));
        out
    })
}

/// A parameter within the alternatives it may be: in the body, in the query or in the path.
fn parameter(value: &Value) -> Vec<u8> {
    let parameter = match value["in"].as_str() {
        Some("body") => wrapped(1, &message(BODY_PARAMETER, value, Some(6))),
        Some("path") => wrapped(2, &wrapped(4, &message(PATH_PARAMETER, value, Some(22)))),
        _ => wrapped(2, &wrapped(3, &message(QUERY_PARAMETER, value, Some(23)))),
    };
    wrapped(1, &parameter)
}

fn schema_item(value: &Value) -> Vec<u8> {
    wrapped(1, &schema(value))
}

fn schema_or_bool(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value.as_bool() {
        Some(allowed) => number(&mut out, 2, u64::from(allowed)),
        None => out = schema_item(value),
    }
    out
}

fn type_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Array(types) => types.iter().for_each(|ty| text(&mut out, 1, ty)),
        ty => text(&mut out, 1, ty),
    }
    out
}

/// A map as a repeated message of a name and a value.
fn named(value: &Value, field: u32, write: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &write(value));
        bytes(&mut out, field, &entry);
    }
    out
}

/// A message: the known fields, then the extensions, if the message has a field for them.
fn message(fields: Fields, value: &Value, extensions: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, field, form) in fields {
        let Some(value) = value.get(name) else { continue };
        let items = || value.as_array().into_iter().flatten();
        match form {
            As::Text => text(&mut out, *field, value),
            As::Texts => items().for_each(|item| text(&mut out, *field, item)),
            As::Bool if value == true => number(&mut out, *field, 1),
            As::Int => match value.as_i64() {
                None | Some(0) => {}
                Some(int) => number(&mut out, *field, int as u64),
            },
            As::Double => match value.as_f64() {
                None | Some(0.0) => {}
                Some(double) => {
                    varint(&mut out, u64::from(*field) << 3 | 1);
                    out.extend(double.to_le_bytes());
                }
            },
            As::Bool => {}
            As::Any => bytes(&mut out, *field, &any(value)),
            As::Anys => items().for_each(|item| bytes(&mut out, *field, &any(item))),
            As::Message(write) => bytes(&mut out, *field, &write(value)),
            As::Messages(write) => items().for_each(|item| bytes(&mut out, *field, &write(item))),
        }
    }
    if let Some(field) = extensions {
        let all = value.as_object().into_iter().flatten();
        for (name, value) in all.filter(|(name, _)| name.starts_with("x-")) {
            let mut entry = Vec::new();
            bytes(&mut entry, 1, name.as_bytes());
            bytes(&mut entry, 2, &any(value));
            bytes(&mut out, field, &entry);
        }
    }
    out
}

fn any(value: &Value) -> Vec<u8> {
    wrapped(2, format!("{value}\n").as_bytes())
}

fn wrapped(field: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    bytes(&mut out, field, content);
    out
}

/// A text; none if it is empty.
fn text(out: &mut Vec<u8>, field: u32, value: &Value) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
        bytes(out, field, text.as_bytes());
    }
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
