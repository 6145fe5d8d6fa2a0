//! Which paths an object owns by what it says.

use serde_json::Value;

use super::item;
use crate::fieldset::{FieldSet, Node};
use crate::path::PathElement;
use crate::schema::{Kind, ListAtom, MapAtom, Schema, TypeRef};

pub(super) fn field_set(schema: &Schema, root: &TypeRef, value: &Value) -> FieldSet {
    owned(schema, root, value).below
}

/// What a value owns: itself, or paths below it, or both.
#[derive(Default)]
struct Owned {
    itself: bool,
    below: FieldSet,
}

fn owned(schema: &Schema, ty: &TypeRef, value: &Value) -> Owned {
    let leaf = Owned { itself: true, below: FieldSet::new() };
    let Some(atom) = schema.resolve(ty) else { return Owned::default() };
    match (atom.deduce(value).kind(), value) {
        (Kind::Scalar(_), _) => leaf,
        (Kind::Map(map), _) if map.atomic => leaf,
        (Kind::List(list), _) if !list.associative => leaf,
        (Kind::Map(map), Value::Object(entries)) => {
            Owned { itself: false, below: entries_set(schema, map, entries) }
        }
        (Kind::List(list), Value::Array(items)) => {
            Owned { itself: false, below: items_set(schema, list, items) }
        }
        _ => Owned::default(),
    }
}

fn entries_set(schema: &Schema, map: MapAtom<'_>, entries: &serde_json::Map<String, Value>) -> FieldSet {
    let mut set = FieldSet { nodes: Vec::with_capacity(entries.len()) };
    for (key, value) in entries {
        let (name, declared) = match map.map.fields.get_key_value(key.as_str()) {
            Some((name, _)) => (PathElement::Field(name.clone()), true),
            None => (PathElement::field(key), false),
        };
        let owned = map.map.type_of(key).map(|ty| owned(schema, ty, value)).unwrap_or_default();
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        set.add(Node { element: name, member: owned.itself || empty || !declared, children: owned.below });
    }
    set
}

fn items_set(schema: &Schema, list: ListAtom<'_>, items: &[Value]) -> FieldSet {
    let mut elements: Vec<(PathElement, &Value)> = items
        .iter()
        .filter_map(|item| item::element(schema, list, item).ok().map(|element| (element, item)))
        .collect();
    elements.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut set = FieldSet { nodes: Vec::with_capacity(elements.len()) };
    for group in elements.chunk_by(|(left, _), (right, _)| left == right) {
        let [(element, first), rest @ ..] = group else { continue };
        // Of duplicates only the item is owned, since nothing below tells them apart.
        let children =
            if rest.is_empty() { owned(schema, &list.list.element, first).below } else { FieldSet::new() };
        set.add(Node { element: element.clone(), member: true, children });
    }
    set
}
