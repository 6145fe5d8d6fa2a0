//! Defaults must be values that a client could have written: pruned, and valid.

use super::embedded::{self, Malformed, Metadata, Place};
use super::{Schema, prune, validate};
use crate::field::{FieldError, Path, aggregate};
use serde_json::{Value, json};

/// What is wrong with the defaults in the schema of a kind.
pub fn check(schema: &Schema, path: &Path, metadata: &dyn Metadata) -> Vec<FieldError> {
    let mut checker = Checker { metadata, errors: Vec::new() };
    let surroundings = Surroundings { resource: schema, steps: Vec::new(), inside_meta: false };
    checker.schema(schema, path, &surroundings, Place::Resource);
    checker.errors
}

/// Where a default is applied: the resource around it, and the way to it from there.
#[derive(Clone)]
struct Surroundings<'a> {
    resource: &'a Schema,
    steps: Vec<Step<'a>>,
    inside_meta: bool,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

impl<'a> Surroundings<'a> {
    fn below(&self, step: Step<'a>, inside_meta: bool) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { resource: self.resource, steps, inside_meta: self.inside_meta || inside_meta }
    }

    /// A resource that holds nothing but a value.
    fn resource_with(&self, value: &Value) -> Value {
        let mut whole = self.steps.iter().rev().fold(value.clone(), |inner, step| match step {
            Step::Field(name) => json!({*name: inner}),
            Step::Item => json!([inner]),
        });
        if let Some(fields) = whole.as_object_mut() {
            fields.entry("kind").or_insert_with(|| "Validation".into());
            fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        whole
    }
}

struct Checker<'m> {
    metadata: &'m dyn Metadata,
    errors: Vec<FieldError>,
}

impl Checker<'_> {
    fn schema(&mut self, s: &Schema, path: &Path, around: &Surroundings<'_>, place: Place) {
        let is_resource = s.embedded || place == Place::Resource;
        let fresh = Surroundings { resource: s, steps: Vec::new(), inside_meta: false };
        let around = if is_resource { &fresh } else { around };
        if let Some(default) = &s.default {
            let path = path.child("default");
            if around.inside_meta {
                self.inside_metadata(default, s, &path, around);
            } else {
                self.outside_metadata(default, s, &path);
            }
        }
        if let Some(item) = s.item() {
            self.schema(item, &path.child("items"), &around.below(Step::Item, false), Place::Part);
        }
        for (name, property) in &s.properties {
            let is_meta = is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let below = around.below(Step::Field(name), is_meta);
            self.schema(property, &path.child("properties").key(name), &below, Place::Part);
        }
    }

    fn inside_metadata(&mut self, default: &Value, s: &Schema, path: &Path, around: &Surroundings<'_>) {
        let mut whole = around.resource_with(default);
        let root = Path::root();
        let coerced = embedded::coerce(
            &mut whole,
            around.resource,
            &root,
            Place::Resource,
            self.metadata,
            Malformed::Refused,
        );
        let why = if let Err(error) = coerced {
            Some(error.to_string())
        } else {
            let errors = embedded::validate(&whole, around.resource, &root, Place::Resource, self.metadata);
            (!errors.is_empty()).then(|| aggregate(errors.iter().map(ToString::to_string)))
        };
        match why {
            Some(why) => {
                let why = format!("must result in valid metadata: {why}");
                self.errors.push(FieldError::invalid(path, default, why));
            }
            None => self.errors.extend(validate::validate(default, s, Some(path))),
        }
    }

    fn outside_metadata(&mut self, default: &Value, s: &Schema, path: &Path) {
        let mut pruned = default.clone();
        if !prune::prune_part(&mut pruned, s).is_empty() {
            self.errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
        let mut coerced = default.clone();
        let result = embedded::coerce(&mut coerced, s, path, Place::Part, self.metadata, Malformed::Refused);
        if let Err(error) = result {
            self.errors.push(error);
            return;
        }
        let errors = embedded::validate(&coerced, s, path, Place::Part, self.metadata);
        if errors.is_empty() {
            self.errors.extend(validate::validate(&coerced, s, Some(path)));
        } else {
            self.errors.extend(errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::embedded::tests::Strings;
    use super::*;

    #[test]
    fn defaults_must_be_valid_and_pruned() {
        let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
        for (schema, errors) in [
            (spec(json!({"type": "string", "default": "x"})), vec![]),
            (
                spec(json!({"type": "integer", "minimum": 5, "default": 1})),
                vec![
                    "s.properties[spec].default: Invalid value: 1:  in body should be greater than or equal to 5",
                ],
            ),
            (
                spec(json!({"type": "string", "enum": ["x"], "default": "y"})),
                vec![r#"s.properties[spec].default: Unsupported value: "y": supported values: "x""#],
            ),
            (
                spec(json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}})),
                vec![r#"s.properties[spec].default: Invalid value: {"b":1}: must not have unknown fields"#],
            ),
            (
                spec(json!({"type": "array", "items": {"type": "string"}, "default": [1]})),
                vec![
                    r#"s.properties[spec].default.[0]: Invalid value: "integer": [0] in body must be of type string: "integer""#,
                ],
            ),
            (
                spec(json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                    "metadata": {"type": "object", "properties": {"name": {"type": "string", "default": ""}}}}})),
                vec![
                    r#"s.properties[spec].properties[metadata].properties[name].default: Invalid value: "": must result in valid metadata: metadata.name: Required value"#,
                ],
            ),
        ] {
            let found: Vec<String> = check(&Schema::parse(&schema), &Path::new("s"), &Strings)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, errors, "{schema}");
        }
    }
}
