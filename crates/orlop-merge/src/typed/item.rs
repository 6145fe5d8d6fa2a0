//! How an item of an associative list is told from the others.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{List, ListAtom, Schema};

/// The path element of an item.
pub(super) fn element(
    schema: &Schema,
    list: ListAtom<'_>,
    item: &Value,
) -> Result<PathElement, Cow<'static, str>> {
    if !list.associative {
        return Err("invalid indexing of non-associative list".into());
    }
    if list.list.keys.is_empty() { set_element(item) } else { keyed_element(schema, list.list, item) }
}

fn keyed_element(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, Cow<'static, str>> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut fields: Vec<(Arc<str>, Value)> = Vec::with_capacity(list.keys.len());
    for key in &list.keys {
        if let Some(value) = map.get(&**key) {
            fields.push((Arc::clone(key), value.clone()));
        } else if let Some(value) = key_default(schema, list, key)? {
            fields.push((Arc::clone(key), value.clone()));
        }
    }
    if fields.is_empty() {
        let keys: Vec<String> = list.keys.iter().map(|key| crate::go::quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            keys.join(" ")
        )
        .into());
    }
    Ok(PathElement::from_key_fields(fields))
}

fn key_default<'s>(
    schema: &'s Schema,
    list: &'s List,
    key: &str,
) -> Result<Option<&'s Value>, Cow<'static, str>> {
    let wrap = |why: &str| format!("couldn't find default value for {key}: {why}");
    let atom = schema.resolve(&list.element).ok_or_else(|| wrap("invalid elementType for list"))?;
    let map = atom.map.ok_or_else(|| wrap("associative list may not have non-map types"))?;
    Ok(map.map.fields.get(key).and_then(|field| field.default.as_ref()))
}

fn set_element(item: &Value) -> Result<PathElement, Cow<'static, str>> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(PathElement::value(scalar.clone())),
    }
}
