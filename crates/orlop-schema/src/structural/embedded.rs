//! Objects within objects: fields marked `x-kubernetes-embedded-resource` have a kind, a version and metadata of
//! their own.

use super::Schema;
use crate::field::{FieldError, Path};
use crate::names;
use serde_json::{Map, Value};

/// What the server knows of object metadata.
pub trait Metadata {
    /// Metadata in the form in which it is stored, and the names of fields that do not belong; or why it is none.
    fn decode(&self, metadata: &Value) -> Result<(Value, Vec<String>), String>;

    /// What is wrong with the metadata of an embedded object.
    fn validate(&self, metadata: &Value, path: &Path) -> Vec<FieldError>;
}

/// Whether the value itself is a resource, whatever its schema says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is one.
    Resource,
    /// Only its schema tells.
    Part,
}

/// What to do with metadata that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Refuse it: it comes from a client.
    Refused,
    /// Drop the fields that cannot be: it was stored before the schema said what it is.
    Dropped,
}

/// Gives embedded metadata its form; returns the paths of fields that were dropped, sorted.
pub fn coerce(
    value: &mut Value,
    schema: &Schema,
    path: &Path,
    place: Place,
    metadata: &dyn Metadata,
    malformed: Malformed,
) -> Result<Vec<String>, FieldError> {
    let mut coercer = Coercer { metadata, malformed, unknown: Vec::new() };
    coercer.value(value, schema, path, place)?;
    coercer.unknown.sort();
    Ok(coercer.unknown)
}

struct Coercer<'a> {
    metadata: &'a dyn Metadata,
    malformed: Malformed,
    unknown: Vec<String>,
}

impl Coercer<'_> {
    fn value(
        &mut self,
        value: &mut Value,
        schema: &Schema,
        path: &Path,
        place: Place,
    ) -> Result<(), FieldError> {
        match value {
            Value::Object(fields) => {
                if schema.embedded || place == Place::Resource {
                    self.resource(fields, path)?;
                }
                for (name, field) in fields.iter_mut() {
                    if let Some(property) = schema.properties.get(name) {
                        self.value(field, property, &path.child(name), Place::Part)?;
                    } else if let Some(additional) = schema.additional.schema() {
                        self.value(field, additional, &path.key(name), Place::Part)?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = schema.item() {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.value(item, schema, &path.index(index), Place::Part)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, fields: &mut Map<String, Value>, path: &Path) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            match (fields.get(name), self.malformed) {
                (None | Some(Value::String(_)), _) => {}
                (Some(_), Malformed::Dropped) => {
                    fields.remove(name);
                }
                (Some(value), Malformed::Refused) => {
                    return Err(FieldError::invalid(&path.child(name), value, "must be a string"));
                }
            }
        }
        let Some(given) = fields.get("metadata") else { return Ok(()) };
        let here = path.child("metadata");
        let decoded = match (self.metadata.decode(given), self.malformed) {
            (Err(why), Malformed::Refused) => return Err(FieldError::invalid(&here, given, why)),
            (Err(_), Malformed::Dropped) => self.decodable(given),
            (Ok((decoded, unknown)), _) => {
                self.unknown.extend(unknown.iter().map(|name| format!("{here}.{name}")));
                decoded
            }
        };
        fields.insert("metadata".to_owned(), decoded);
        Ok(())
    }

    /// The fields of metadata that can be decoded.
    fn decodable(&self, given: &Value) -> Value {
        let fields = given.as_object().into_iter().flatten();
        let good = fields.filter(|(name, value)| {
            let alone: Map<String, Value> = [((*name).clone(), (*value).clone())].into_iter().collect();
            self.metadata.decode(&Value::Object(alone)).is_ok()
        });
        let good = Value::Object(good.map(|(name, value)| (name.clone(), value.clone())).collect());
        self.metadata.decode(&good).map_or(Value::Object(Map::new()), |(decoded, _)| decoded)
    }
}

/// What is wrong with embedded objects.
pub fn validate(
    value: &Value,
    schema: &Schema,
    path: &Path,
    place: Place,
    metadata: &dyn Metadata,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(value, schema, path, place, metadata, &mut errors);
    errors
}

fn check(
    value: &Value,
    schema: &Schema,
    path: &Path,
    place: Place,
    metadata: &dyn Metadata,
    errors: &mut Vec<FieldError>,
) {
    match value {
        Value::Object(fields) => {
            if schema.embedded || place == Place::Resource {
                check_resource(fields, path, metadata, errors);
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(field, property, &path.child(name), Place::Part, metadata, errors);
                } else if let Some(additional) = schema.additional.schema() {
                    check(field, additional, &path.key(name), Place::Part, metadata, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for (index, item) in items.iter().enumerate() {
                    check(item, schema, &path.index(index), Place::Part, metadata, errors);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(
    fields: &Map<String, Value>,
    path: &Path,
    metadata: &dyn Metadata,
    errors: &mut Vec<FieldError>,
) {
    for name in ["apiVersion", "kind"] {
        let path = path.child(name);
        let Some(value) = fields.get(name) else {
            errors.push(FieldError::required(&path, ""));
            continue;
        };
        let why = match value.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(version) if name == "apiVersion" => (version.matches('/').count() > 1)
                .then(|| format!("unexpected GroupVersion string: {version}")),
            Some(kind) => {
                let faults = names::dns1035_label(&kind.to_lowercase());
                (!faults.is_empty())
                    .then(|| format!("may have mixed case, but should otherwise match: {}", faults.join(",")))
            }
        };
        errors.extend(why.map(|why| FieldError::invalid(&path, value, why)));
    }
    if let Some(given) = fields.get("metadata") {
        errors.extend(metadata.validate(given, &path.child("metadata")));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Metadata that is a map of strings, with names that must not be empty.
    pub(crate) struct Strings;

    impl Metadata for Strings {
        fn decode(&self, metadata: &Value) -> Result<(Value, Vec<String>), String> {
            let fields = metadata.as_object().ok_or("not an object")?;
            if let Some((name, _)) = fields.iter().find(|(_, value)| !value.is_string()) {
                return Err(format!("{name} is no string"));
            }
            let (known, unknown): (Map<_, _>, Map<_, _>) =
                fields.clone().into_iter().partition(|(name, _)| name == "name");
            Ok((Value::Object(known), unknown.into_iter().map(|(name, _)| name).collect()))
        }

        fn validate(&self, metadata: &Value, path: &Path) -> Vec<FieldError> {
            let empty = metadata["name"] == "";
            empty.then(|| FieldError::required(&path.child("name"), "")).into_iter().collect()
        }
    }

    fn schema() -> Schema {
        Schema::parse(&json!({"properties": {
            "r": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {}}},
            "l": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true}},
        }}))
    }

    #[test]
    fn embedded_metadata_takes_its_form() {
        let mut object = json!({"r": {"kind": "K", "metadata": {"name": "n", "foo": "x"}}, "l": [{"metadata": {"z": "1"}}]});
        let unknown =
            coerce(&mut object, &schema(), &Path::root(), Place::Part, &Strings, Malformed::Refused).unwrap();
        assert_eq!(object, json!({"r": {"kind": "K", "metadata": {"name": "n"}}, "l": [{"metadata": {}}]}));
        assert_eq!(unknown, ["l[0].metadata.z", "r.metadata.foo"]);
    }

    #[test]
    fn malformed_metadata_is_refused_or_dropped() {
        let object = json!({"r": {"kind": 1, "metadata": {"name": "n", "foo": 1}}});
        for (malformed, wanted) in [
            (Malformed::Refused, Err("r.kind: Invalid value: 1: must be a string".to_owned())),
            (Malformed::Dropped, Ok(json!({"r": {"metadata": {"name": "n"}}}))),
        ] {
            let mut value = object.clone();
            let result = coerce(&mut value, &schema(), &Path::root(), Place::Part, &Strings, malformed);
            assert_eq!(result.map(|_| value).map_err(|error| error.to_string()), wanted);
        }
    }

    #[test]
    fn embedded_objects_need_a_kind_and_a_version() {
        for (object, errors) in [
            (json!({"r": {}}), vec!["r.apiVersion: Required value", "r.kind: Required value"]),
            (
                json!({"r": {"apiVersion": "a/b/c", "kind": "K", "metadata": {"name": ""}}}),
                vec![
                    r#"r.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                    "r.metadata.name: Required value",
                ],
            ),
            (json!({"l": [{"apiVersion": "v1", "kind": "K"}]}), vec![]),
        ] {
            let found = validate(&object, &schema(), &Path::root(), Place::Part, &Strings);
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), errors, "{object}");
        }
    }
}
