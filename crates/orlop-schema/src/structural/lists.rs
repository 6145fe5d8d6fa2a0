//! Lists that are sets or maps: items, or their keys, stand once.

use super::Schema;
use crate::field::{FieldError, Path};
use serde_json::{Map, Value};

/// What stands twice in the sets and maps of an object.
pub fn validate(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(object, schema, &Path::root(), &mut errors);
    errors
}

fn check(value: &Value, schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(additional) = schema.additional.schema() {
                    check(field, additional, &path.key(name), errors);
                }
                if let Some(property) = schema.properties.get(name) {
                    check(field, property, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type.as_deref() {
                Some("set") => {
                    for index in repeats(items) {
                        errors.push(FieldError::duplicate(&path.index(index), &items[index]));
                    }
                }
                Some("map") => check_map(items, schema, path, errors),
                _ => {}
            }
            if let Some(item_schema) = schema.item() {
                for (index, item) in items.iter().enumerate() {
                    check(item, item_schema, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(items: &[Value], schema: &Schema, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&path.index(index), &items[index], why));
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let present = |key: &String| Some((key.clone(), item.get(key)?.clone()));
            Value::Object(schema.list_map_keys.iter().filter_map(present).collect::<Map<_, _>>())
        })
        .collect();
    for index in repeats(&keys) {
        errors.push(FieldError::duplicate(&path.index(index), &keys[index]));
    }
}

/// Where a value stands for the second time.
fn repeats(items: &[Value]) -> Vec<usize> {
    let mut spelled: Vec<(String, usize)> =
        items.iter().enumerate().map(|(index, item)| (item.to_string(), index)).collect();
    spelled.sort();
    let mut found: Vec<usize> =
        spelled.chunk_by(|a, b| a.0 == b.0).filter_map(|same| same.get(1).map(|(_, index)| *index)).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeats_are_found_once() {
        let schema = Schema::parse(&json!({"properties": {
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
            "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"]},
        }}));
        for (object, errors) in [
            (json!({"s": ["a", "b", "a", "a"]}), vec![r#"s[2]: Duplicate value: "a""#]),
            (
                json!({"m": [{"n": "a", "v": 1}, {"n": "a", "v": 2}]}),
                vec![r#"m[1]: Duplicate value: {"n":"a"}"#],
            ),
            (json!({"m": [{}, {}]}), vec!["m[1]: Duplicate value: {}"]),
            (
                json!({"m": ["x"]}),
                vec![r#"m[0]: Invalid value: "x": must be an object for an array of list-type map"#],
            ),
            (json!({"k": [{"n": 1, "p": 1}, {"n": 1, "p": 2}]}), vec![]),
            (
                json!({"k": [{"n": 1, "p": 1}, {"n": 1, "p": 1}]}),
                vec![r#"k[1]: Duplicate value: {"n":1,"p":1}"#],
            ),
        ] {
            let found: Vec<String> = validate(&object, &schema).iter().map(ToString::to_string).collect();
            assert_eq!(found, errors, "{object}");
        }
    }
}
