//! Defaults, and nulls that stand for them.

use super::Schema;
use serde_json::Value;

/// Fills in the defaults of absent fields, and of nulls where null is no value.
pub fn default(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(wanted) = &property.default else { continue };
                if fields.get(name).is_none_or(|value| value.is_null() && !property.nullable) {
                    fields.insert(name.clone(), wanted.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                match (schema.properties.get(name), schema.additional.schema()) {
                    (Some(property), _) => default(field, property),
                    (None, Some(additional)) => default_item(field, additional),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for item in items {
                    default_item(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn default_item(item: &mut Value, schema: &Schema) {
    if item.is_null() && !schema.nullable {
        *item = schema.default.clone().unwrap_or_default();
    }
    default(item, schema);
}

/// Drops nulls that are no values and have no default.
pub fn prune_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            let meaningless =
                |schema: Option<&Schema>| schema.is_some_and(|s| !s.nullable && s.default.is_none());
            fields.retain(|name, field| !(field.is_null() && meaningless(schema.field(name))));
            for (name, field) in fields.iter_mut() {
                if let Some(schema) = schema.field(name) {
                    prune_nulls(field, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for item in items {
                    prune_nulls(item, schema);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_fields_and_nulls_get_their_default() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x"},
            "n": {"type": "string", "default": "x", "nullable": true},
            "z": {"type": "string"},
            "o": {"type": "object", "default": {}, "properties": {"i": {"type": "integer", "default": 1}}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"d": {"default": "q"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "string", "default": "y"}},
        }}));
        for (object, wanted) in [
            (json!({}), json!({"a": "x", "n": "x", "o": {"i": 1}})),
            (
                json!({"a": null, "n": null, "o": null, "z": null}),
                json!({"a": "x", "n": null, "o": {"i": 1}}),
            ),
            (
                json!({"a": "", "n": "", "l": [{"k": 1}, {"d": "r"}], "m": {"k": null}}),
                json!({"a": "", "n": "", "o": {"i": 1}, "l": [{"k": 1, "d": "q"}, {"d": "r"}], "m": {"k": "y"}}),
            ),
        ] {
            let mut value = object.clone();
            prune_nulls(&mut value, &schema);
            default(&mut value, &schema);
            assert_eq!(value, wanted, "{object}");
        }
    }
}
