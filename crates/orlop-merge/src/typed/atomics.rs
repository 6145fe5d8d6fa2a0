//! The containers in a value that are replaced as a whole.

use serde_json::Value;

use crate::schema::{Kind, Schema, TypeRef};

/// Paths of all atomic lists, maps and structs that the value has at places that the type declares.
pub(super) fn atomics(schema: &Schema, root: &TypeRef, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, root, value, "", &mut found);
    found
}

fn walk(schema: &Schema, ty: &TypeRef, value: &Value, path: &str, found: &mut Vec<String>) {
    let Some(atom) = schema.resolve(ty) else { return };
    match (atom.deduce(value).kind(), value) {
        (Kind::Map(map), Value::Object(entries)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (key, value) in entries {
                if let Some(field) = map.map.fields.get(key.as_str()) {
                    walk(schema, &field.ty, value, &format!("{path}.{key}"), found);
                }
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            if !list.associative {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                walk(schema, &list.list.element, item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
