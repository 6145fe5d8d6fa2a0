//! A value without some of its items, or only with them.

use serde_json::{Map as JsonMap, Value};

use super::item;
use crate::fieldset::FieldSet;
use crate::schema::{Kind, Schema, TypeRef};

/// The value without the items of the set; null when nothing of a container is left.
pub(super) fn remove(schema: &Schema, ty: &TypeRef, value: Value, items: &FieldSet) -> Value {
    let Some(atom) = schema.resolve(ty) else { return Value::Null };
    match (atom.deduce(&value).kind(), value) {
        (Kind::Scalar(_), value) => value,
        (Kind::Map(map), Value::Object(entries)) if !map.atomic => {
            let kept: JsonMap<String, Value> = entries
                .into_iter()
                .filter_map(|(key, value)| {
                    let Some(node) = items.get_field(&key) else { return Some((key, value)) };
                    if node.member {
                        return None;
                    }
                    let value = match map.map.type_of(&key) {
                        Some(ty) => remove(schema, ty, value, &node.children),
                        None => Value::Null,
                    };
                    Some((key, value))
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Kind::List(list), Value::Array(values)) if list.associative => {
            let kept: Vec<Value> = values
                .into_iter()
                .filter_map(|value| {
                    let node =
                        item::element(schema, list, &value).ok().and_then(|element| items.get(&element));
                    match node {
                        None => Some(value),
                        Some(node) if node.member => None,
                        Some(node) => Some(remove(schema, &list.list.element, value, &node.children)),
                    }
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        _ => Value::Null,
    }
}

/// Only the items of the set.
pub(super) fn extract(schema: &Schema, ty: &TypeRef, value: &Value, items: &FieldSet) -> Value {
    let Some(atom) = schema.resolve(ty) else { return Value::Null };
    match (atom.deduce(value).kind(), value) {
        (Kind::Scalar(_), value) => value.clone(),
        (Kind::Map(map), Value::Object(entries)) => {
            if map.atomic || entries.is_empty() {
                return value.clone();
            }
            let kept: JsonMap<String, Value> = entries
                .iter()
                .filter_map(|(key, value)| {
                    let node = items.get_field(key)?;
                    // A map that is in the set itself is searched with the set of its parent, as the original does.
                    let below = if node.member { items } else { &node.children };
                    let value = match map.map.type_of(key) {
                        Some(ty) => extract(schema, ty, value, below),
                        None => Value::Null,
                    };
                    Some((key.clone(), value))
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Kind::List(list), Value::Array(values)) => {
            if !list.associative || values.is_empty() {
                return value.clone();
            }
            let kept: Vec<Value> = values
                .iter()
                .filter_map(|value| {
                    let element = item::element(schema, list, value).ok()?;
                    let node = items.get(&element)?;
                    if node.children.is_empty() {
                        return Some(value.clone());
                    }
                    Some(extract(schema, &list.list.element, value, &node.children))
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        _ => Value::Null,
    }
}
