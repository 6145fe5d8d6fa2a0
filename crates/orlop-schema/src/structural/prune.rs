//! Pruning: fields that the schema does not declare go.

use super::{Additional, Items, Schema};
use serde_json::Value;
use std::fmt::Write;

/// What every object has besides its schema.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops undeclared fields of a whole object and returns their paths, sorted.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    prune_value(object, schema, Place::Resource)
}

/// Drops undeclared fields of a value that is not a whole object.
pub fn prune_part(value: &mut Value, schema: &Schema) -> Vec<String> {
    prune_value(value, schema, Place::Part)
}

/// Whether a value is a resource, whose own fields are never pruned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Resource,
    Part,
}

fn prune_value(value: &mut Value, schema: &Schema, place: Place) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new() };
    pruner.value(value, Some(schema), place);
    pruner.unknown.sort();
    pruner.unknown
}

struct Pruner {
    path: String,
    unknown: Vec<String>,
}

impl Pruner {
    fn value(&mut self, value: &mut Value, schema: Option<&Schema>, place: Place) {
        if let Some(schema) = schema.filter(|schema| schema.preserves_unknown()) {
            return self.keep(value, schema, place);
        }
        match value {
            Value::Object(fields) => {
                let embedded = place == Place::Resource || schema.is_some_and(|schema| schema.embedded);
                let mut gone = Vec::new();
                for (name, field) in fields.iter_mut() {
                    if schema.is_some() && embedded && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    match schema.map(|schema| (schema.properties.get(name), &schema.additional)) {
                        Some((Some(property), _)) => self.field(name, field, Some(property)),
                        Some((None, additional)) if additional.is_some() => {
                            self.field(name, field, additional.schema());
                        }
                        _ => gone.push(name.clone()),
                    }
                }
                for name in gone {
                    fields.remove(&name);
                    self.unknown.push(join(&self.path, &name));
                }
            }
            Value::Array(items) => {
                let item_schema = schema.and_then(Schema::item);
                self.items(items, |pruner, item| pruner.value(item, item_schema, Place::Part));
            }
            _ => {}
        }
    }

    /// Looks for declared fields within a value whose other fields are kept.
    fn keep(&mut self, value: &mut Value, schema: &Schema, place: Place) {
        match value {
            Value::Object(fields) => {
                let embedded = place == Place::Resource || schema.embedded;
                for (name, field) in fields.iter_mut() {
                    if embedded && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(property), _) => self.field(name, field, Some(property)),
                        (None, Additional::None) => {}
                        (None, additional) => self.field(name, field, additional.schema()),
                    }
                }
            }
            Value::Array(items) => {
                if let Items::One(item_schema) = &schema.items {
                    self.items(items, |pruner, item| pruner.keep(item, item_schema, Place::Part));
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, name: &str, value: &mut Value, schema: Option<&Schema>) {
        let here = self.path.len();
        self.path = join(&self.path, name);
        self.value(value, schema, Place::Part);
        self.path.truncate(here);
    }

    fn items(&mut self, items: &mut [Value], mut each: impl FnMut(&mut Self, &mut Value)) {
        let here = self.path.len();
        for (index, item) in items.iter_mut().enumerate() {
            let _ = write!(self.path, "[{index}]");
            each(self, item);
            self.path.truncate(here);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn undeclared_fields_go_and_are_named() {
        let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
        for (schema, object, kept, unknown) in [
            (
                spec(json!({"type": "object", "properties": {"a": {"type": "string"}}})),
                json!({"kind": "K", "metadata": {"x": 1}, "spec": {"a": 1, "b": 2}, "z": 1}),
                json!({"kind": "K", "metadata": {"x": 1}, "spec": {"a": 1}}),
                vec!["spec.b", "z"],
            ),
            (
                spec(json!({"type": "array", "items": {"type": "object", "properties": {"a": {}}}})),
                json!({"spec": [{"a": 1, "b": 2}, {"c": 1}]}),
                json!({"spec": [{"a": 1}, {}]}),
                vec!["spec[0].b", "spec[1].c"],
            ),
            (
                spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"a": {"type": "object", "properties": {"b": {}}}}})),
                json!({"spec": {"a": {"b": 1, "c": 2}, "d": {"e": 1}}}),
                json!({"spec": {"a": {"b": 1}, "d": {"e": 1}}}),
                vec!["spec.a.c"],
            ),
            (
                spec(json!({"type": "object", "additionalProperties": true})),
                json!({"spec": {"a": {"b": 1}, "c": 1}}),
                json!({"spec": {"a": {}, "c": 1}}),
                vec!["spec.a.b"],
            ),
            (
                spec(
                    json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"s": {}}}),
                ),
                json!({"spec": {"kind": "K", "apiVersion": "v", "metadata": {"q": 1}, "s": 1, "t": 2}}),
                json!({"spec": {"kind": "K", "apiVersion": "v", "metadata": {"q": 1}, "s": 1}}),
                vec!["spec.t"],
            ),
        ] {
            let mut pruned = object.clone();
            let names = prune(&mut pruned, &Schema::parse(&schema));
            assert_eq!((pruned, names), (kept, unknown.into_iter().map(str::to_owned).collect()), "{object}");
        }
    }
}
