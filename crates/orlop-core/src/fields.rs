//! What of an object is ours: the part of it that a manager's entry in `managedFields` names.

use serde_json::{Map, Value};

/// How deep objects are looked into; the API allows no deeper ones.
const DEPTH_MAX: usize = 500;

/// The fields of `object` that `manager` has applied, with the values that the server has for them; nothing if it has
/// applied none. The object must still have its `managedFields`.
pub fn applied(object: &Value, manager: &str) -> Option<Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let own = entries.iter().find(|entry| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    })?;
    Some(project(object, &own["fieldsV1"], 0))
}

/// The part of a value that a set of fields names.
fn project(value: &Value, fields: &Value, depth: usize) -> Value {
    let named = fields.as_object().map(|fields| fields.iter().filter(|(name, _)| *name != "."));
    let Some(named) = named.filter(|_| depth < DEPTH_MAX) else { return value.clone() };
    let named: Vec<(&String, &Value)> = named.collect();
    if named.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(object) => {
            let part = |(name, fields): &(&String, &Value)| {
                let name = name.strip_prefix("f:")?;
                Some((name.to_owned(), project(object.get(name)?, fields, depth + 1)))
            };
            Value::Object(named.iter().filter_map(part).collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let part = |(at, item): (usize, &Value)| {
                let (_, fields) = named.iter().find(|(name, _)| names(name, at, item))?;
                Some(project(item, fields, depth + 1))
            };
            Value::Array(items.iter().enumerate().filter_map(part).collect())
        }
        _ => value.clone(),
    }
}

/// Whether a path element names a list item: by its keys, by its value, or by its place.
fn names(element: &str, at: usize, item: &Value) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let Some(keys) = element.strip_prefix("k:").and_then(parse) {
        let keys = keys.as_object().cloned().unwrap_or_default();
        return !keys.is_empty() && keys.iter().all(|(key, value)| item.get(key) == Some(value));
    }
    if let Some(value) = element.strip_prefix("v:").and_then(parse) {
        return *item == value;
    }
    element.strip_prefix("i:").and_then(|place| place.parse().ok()) == Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_a_manager_applied_is_taken() {
        let object = json!({
            "metadata": {
                "name": "x", "labels": {"a": "1", "b": "2"}, "finalizers": ["mine", "theirs"],
                "managedFields": [
                    {"manager": "other", "operation": "Apply", "fieldsV1": {"f:data": {}}},
                    {"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {}}},
                    {"manager": "me", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
                    {"manager": "me", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"mine\"": {}}},
                        "f:spec": {
                            "f:replicas": {}, "f:gone": {}, "f:strategy": {},
                            "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}, "f:name": {}}},
                        },
                    }},
                ],
            },
            "spec": {
                "replicas": 3, "paused": true, "strategy": {"type": "Recreate", "more": 1},
                "containers": [{"name": "side", "image": "s"}, {"name": "main", "image": "m", "tty": true}],
            },
        });
        let expected = json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["mine"]},
            "spec": {
                "replicas": 3, "strategy": {"type": "Recreate", "more": 1},
                "containers": [{"name": "main", "image": "m"}],
            },
        });
        assert_eq!(applied(&object, "me"), Some(expected));
        assert_eq!(applied(&object, "nobody"), None);
    }
}
