//! Which part of an old object a part of a new one is, and whether it has changed.

use crate::structural::Schema;
use serde_json::Value;

/// An old value, and the schema that says how its parts are matched with new ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old<'a> {
    pub(super) value: &'a Value,
    pub(super) schema: &'a Schema,
}

impl Old<'_> {
    /// The old value of a field; fields that the schema does not name are not matched.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        Some(Self { value: self.value.as_object()?.get(name)?, schema: self.schema.field(name)? })
    }

    /// The old value of an item; only items of maps are matched, by their keys.
    pub(super) fn item(self, items: &[Value], index: usize) -> Option<Self> {
        if self.schema.list_type.as_deref() != Some("map") {
            return None;
        }
        let keys = &self.schema.list_map_keys;
        let item = items.get(index)?.as_object()?;
        let old = self.value.as_array()?.iter().find(|old| {
            old.as_object().is_some_and(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
        })?;
        Some(Self { value: old, schema: self.schema.item()? })
    }
}

/// Whether a value is what it was, as far as its parts can be matched.
pub(super) fn is_unchanged(value: &Value, old: Old<'_>) -> bool {
    match (value, old.value) {
        (Value::Object(fields), Value::Object(before)) => {
            fields.len() == before.len()
                && fields
                    .iter()
                    .all(|(name, value)| old.field(name).is_some_and(|old| is_unchanged(value, old)))
        }
        (Value::Array(items), Value::Array(before)) => {
            if old.schema.list_type.as_deref() != Some("map") {
                return items == before;
            }
            let same = |(index, item): (usize, &Value)| {
                old.item(items, index).is_some_and(|old| is_unchanged(item, old))
            };
            items.len() == before.len() && items.iter().enumerate().all(same)
        }
        (value, before) => value == before,
    }
}
