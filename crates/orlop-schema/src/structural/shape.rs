//! What makes a schema structural: every field has a type, and what stands under `allOf`, `anyOf`, `oneOf` and
//! `not` only adds conditions to fields that are declared outside.

use super::{Additional, Items, Schema};
use crate::field::{FieldError, Path};
use serde_json::Value;

/// A schema uses a keyword for which structural schemas have no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(String);

/// Refuses keywords for which structural schemas have no place.
pub fn check_supported(schema: &Schema) -> Result<(), Unsupported> {
    let unsupported = |what: &str| Err(Unsupported(format!("OpenAPIV3Schema '{what}' is not supported")));
    if !schema.id.is_empty() {
        return unsupported("id");
    }
    if !schema.dialect.is_empty() {
        return unsupported("schema");
    }
    if schema.reference.as_deref().is_some_and(|reference| !reference.is_empty()) {
        return unsupported("$ref");
    }
    if !schema.pattern_properties.is_empty() {
        return unsupported("patternProperties");
    }
    if schema.has_dependencies {
        return unsupported("dependencies");
    }
    if schema.has_additional_items {
        return unsupported("additionalItems");
    }
    if !schema.definitions.is_empty() {
        return unsupported("definitions");
    }
    if schema.preserve_unknown == Some(false) {
        let why = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Err(Unsupported(why.to_owned()));
    }
    if matches!(schema.items, Items::Many(_)) {
        return Err(Unsupported("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned()));
    }
    schema.children().try_for_each(check_supported)
}

/// What keeps a supported schema from being structural, in the order of the messages.
pub fn check(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut report = Report(Vec::new());
    report.invariants(schema, Level::Root, path);
    report.completeness(schema, Some(schema), path, path);
    report.0.sort_by_key(ToString::to_string);
    report.0
}

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Report(Vec<FieldError>);

impl Report {
    fn required(&mut self, path: &Path, why: impl Into<String>) {
        self.0.push(FieldError::required(path, why));
    }

    fn forbidden(&mut self, path: &Path, why: &str) {
        self.0.push(FieldError::forbidden(path, why));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, why: &str) {
        self.0.push(FieldError::invalid(path, &value.into(), why));
    }

    fn invariants(&mut self, s: &Schema, level: Level, path: &Path) {
        if s.ty == "array" && matches!(s.items, Items::None) {
            self.required(&path.child("items"), "must be specified");
        }
        if let Some(item) = s.item() {
            self.invariants(item, Level::Item, &path.child("items"));
        }
        for (name, property) in &s.properties {
            self.invariants(property, Level::Field, &path.child("properties").key(name));
        }
        if s.additional.is_some() {
            if level == Level::Root {
                self.forbidden(&path.child("additionalProperties"), "must not be used at the root");
            }
            if let Some(additional) = s.additional.schema() {
                self.invariants(additional, Level::Field, &path.child("additionalProperties"));
            }
        }
        self.extensions(s, path);
        self.conditions(s, Skip::of(s), path);
        self.types(s, level, path);
        self.resource(s, level, path);
    }

    fn extensions(&mut self, s: &Schema, path: &Path) {
        for (set, name) in [
            (s.preserves_unknown(), "x-kubernetes-preserve-unknown-fields"),
            (s.embedded, "x-kubernetes-embedded-resource"),
        ] {
            if s.int_or_string && set {
                self.invalid(&path.child(name), true, "must be false if x-kubernetes-int-or-string is true");
            }
        }
    }

    fn types(&mut self, s: &Schema, level: Level, path: &Path) {
        let path_of_type = path.child("type");
        if s.embedded && s.ty != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            if s.ty.is_empty() {
                self.required(&path_of_type, why);
            } else {
                self.invalid(&path_of_type, s.ty.as_str(), why);
            }
        } else if s.ty.is_empty() && !s.int_or_string && !s.preserves_unknown() {
            let why = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.required(&path_of_type, why);
        }
        if s.embedded && s.additional.is_some() {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbidden(&path.child("additionalProperties"), why);
        }
        if level == Level::Root && !s.ty.is_empty() && s.ty != "object" {
            self.invalid(&path_of_type, s.ty.as_str(), "must be object at the root");
        }
    }

    /// What every resource has is declared implicitly.
    fn resource(&mut self, s: &Schema, level: Level, path: &Path) {
        let is_resource = level == Level::Root || s.embedded;
        let property = |name: &str| path.child("properties").key(name);
        for name in ["kind", "apiVersion"] {
            if let Some(field) = s.properties.get(name).filter(|field| is_resource && field.ty != "string") {
                self.invalid(&property(name).child("type"), field.ty.as_str(), "must be string");
            }
        }
        if let Some(metadata) = s.properties.get("metadata") {
            if is_resource && metadata.ty != "object" {
                self.invalid(&property("metadata").child("type"), metadata.ty.as_str(), "must be object");
            }
            if level == Level::Root && !restricts_names_only(metadata) {
                let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.forbidden(&property("metadata"), why);
            }
        }
        if s.embedded && !s.preserves_unknown() && s.properties.is_empty() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.required(&path.child("properties"), why);
        }
    }

    /// The conditions of a schema; those within `allOf` and the like declare nothing.
    fn conditions(&mut self, s: &Schema, skip: Skip, path: &Path) {
        if skip != Skip::AnyOf {
            self.nested_list(&s.any_of, "anyOf", Skip::Nothing, path);
        }
        let first = if skip == Skip::FirstAllOf { Skip::AnyOf } else { Skip::Nothing };
        self.nested_list(&s.all_of, "allOf", first, path);
        self.nested_list(&s.one_of, "oneOf", Skip::Nothing, path);
        if let Some(not) = &s.not {
            self.nested(not, Skip::Nothing, &path.child("not"));
        }
        let pattern = s.pattern.as_str();
        if let Err(why) = s.pattern.compiled()
            && !pattern.is_empty()
        {
            let why = format!("must be a valid regular expression, but isn't: {why}");
            self.invalid(&path.child("pattern"), pattern, &why);
        }
    }

    fn nested_list(&mut self, list: &[Schema], name: &str, first: Skip, path: &Path) {
        for (index, schema) in list.iter().enumerate() {
            let skip = if index == 0 { first } else { Skip::Nothing };
            self.nested(schema, skip, &path.child(name).index(index));
        }
    }

    fn nested(&mut self, s: &Schema, skip: Skip, path: &Path) {
        self.conditions(s, skip, path);
        if let Some(item) = s.item() {
            self.nested(item, Skip::Nothing, &path.child("items"));
        }
        for (name, property) in &s.properties {
            self.nested(property, Skip::Nothing, &path.child("properties").key(name));
        }
        let additional = !matches!(s.additional, Additional::None | Additional::Bool(false));
        for (is_set, name, wanted) in [
            (!s.ty.is_empty(), "type", "empty"),
            (additional, "additionalProperties", "undefined"),
            (s.default.is_some(), "default", "undefined"),
            (!s.title.is_empty(), "title", "empty"),
            (!s.description.is_empty(), "description", "empty"),
            (s.nullable, "nullable", "false"),
            (s.preserves_unknown(), "x-kubernetes-preserve-unknown-fields", "false"),
            (s.embedded, "x-kubernetes-embedded-resource", "false"),
            (s.int_or_string, "x-kubernetes-int-or-string", "false"),
            (!s.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", "empty"),
            (s.list_type.is_some(), "x-kubernetes-list-type", "undefined"),
            (s.map_type.is_some(), "x-kubernetes-map-type", "undefined"),
            (!s.rules.is_empty(), "x-kubernetes-validations", "empty"),
        ] {
            if is_set {
                self.forbidden(&path.child(name), &format!("must be {wanted} to be structural"));
            }
        }
        if s.properties.contains_key("metadata") {
            let path = path.child("properties").key("metadata");
            self.forbidden(&path, "must not be specified in a nested context");
        }
    }

    /// Every field that a condition at the root is about must be declared; deeper ones are not looked at.
    fn completeness(&mut self, conditions: &Schema, s: Option<&Schema>, path: &Path, here: &Path) {
        for (list, name) in
            [(&conditions.all_of, "allOf"), (&conditions.any_of, "anyOf"), (&conditions.one_of, "oneOf")]
        {
            for (index, nested) in list.iter().enumerate() {
                self.nested_completeness(nested, s, path, &here.child(name).index(index));
            }
        }
        if let Some(not) = &conditions.not {
            self.nested_completeness(not, s, path, &here.child("not"));
        }
    }

    fn nested_completeness(&mut self, nested: &Schema, s: Option<&Schema>, path: &Path, here: &Path) {
        let Some(s) = s else {
            return self.required(path, format!("because it is defined in {here}"));
        };
        self.completeness(nested, Some(s), path, here);
        if let Some(item) = nested.item() {
            self.nested_completeness(item, s.item(), &path.child("items"), &here.child("items"));
        }
        for (name, field) in &nested.properties {
            let (path, here) = (path.child("properties").key(name), here.child("properties").key(name));
            self.nested_completeness(field, s.properties.get(name), &path, &here);
        }
    }
}

/// The two ways to spell an int-or-string with types, which are let pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    Nothing,
    AnyOf,
    FirstAllOf,
}

impl Skip {
    fn of(s: &Schema) -> Self {
        let is_pattern = |list: &[Schema]| match list {
            [integer, string] => is_bare_type(integer, "integer") && is_bare_type(string, "string"),
            _ => false,
        };
        if is_pattern(&s.any_of) {
            Self::AnyOf
        } else if s.all_of.first().is_some_and(|first| is_pattern(&first.any_of)) {
            Self::FirstAllOf
        } else {
            Self::Nothing
        }
    }
}

fn is_bare_type(s: &Schema, ty: &str) -> bool {
    s.ty == ty && is_bare(s) && s.properties.is_empty() && s.default.is_none()
}

/// Whether metadata is declared with nothing but its type and conditions for the two names.
fn restricts_names_only(s: &Schema) -> bool {
    let names_only = s.properties.keys().all(|name| matches!(name.as_str(), "name" | "generateName"));
    names_only && is_bare(s)
}

/// Whether a schema says nothing besides type, default and properties.
fn is_bare(s: &Schema) -> bool {
    let texts = [&s.format, &s.title, &s.description];
    let lists = [&s.all_of, &s.any_of, &s.one_of];
    let bounds = [s.maximum, s.minimum, s.multiple_of];
    let counts = [s.max_length, s.min_length, s.max_items, s.min_items, s.max_properties, s.min_properties];
    let flags = [
        s.nullable,
        s.has_example,
        s.has_docs,
        s.exclusive_maximum,
        s.exclusive_minimum,
        s.unique_items,
        s.embedded,
        s.int_or_string,
        s.preserves_unknown(),
        s.additional.is_some(),
        s.not.is_some(),
        s.list_type.is_some(),
        s.map_type.is_some(),
        !s.rules.is_empty(),
        !s.list_map_keys.is_empty(),
        !s.allowed.is_empty(),
        !s.required.is_empty(),
        !s.pattern.as_str().is_empty(),
        !matches!(s.items, Items::None),
    ];
    texts.into_iter().all(String::is_empty)
        && lists.into_iter().all(Vec::is_empty)
        && bounds.iter().all(Option::is_none)
        && counts.iter().all(Option::is_none)
        && !flags.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_are_not_structural_are_refused_in_the_words_of_kubernetes() {
        let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
        for (schema, errors) in [
            (json!({}), vec!["s.type: Required value: must not be empty at the root"]),
            (
                json!({"type": "string"}),
                vec![r#"s.type: Invalid value: "string": must be object at the root"#],
            ),
            (spec(json!({"x-kubernetes-int-or-string": true})), vec![]),
            (
                spec(
                    json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
                ),
                vec![],
            ),
            (
                spec(json!({"type": "object", "allOf": [{"type": "object"}]})),
                vec!["s.properties[spec].allOf[0].type: Forbidden: must be empty to be structural"],
            ),
            (
                json!({"type": "object", "anyOf": [{"required": ["a"], "properties": {"a": {"minimum": 1}}}]}),
                vec!["s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]"],
            ),
            (
                spec(json!({"type": "array"})),
                vec!["s.properties[spec].items: Required value: must be specified"],
            ),
            (
                json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
                vec![
                    "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
                ],
            ),
            (
                json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}}}),
                vec![],
            ),
            (
                spec(json!({"type": "string", "pattern": "("})),
                vec![
                    "s.properties[spec].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
                ],
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                vec!["s.additionalProperties: Forbidden: must not be used at the root"],
            ),
        ] {
            let found: Vec<String> =
                check(&Schema::parse(&schema), &Path::new("s")).iter().map(ToString::to_string).collect();
            assert_eq!(found, errors, "{schema}");
        }
    }

    #[test]
    fn keywords_without_a_place_are_named() {
        for (schema, error) in [
            (json!({"$ref": "#/x"}), "OpenAPIV3Schema '$ref' is not supported"),
            (json!({"properties": {"a": {"id": "x"}}}), "OpenAPIV3Schema 'id' is not supported"),
            (json!({"items": [{}]}), "OpenAPIV3Schema 'items' must be a schema, but is an array"),
        ] {
            assert_eq!(check_supported(&Schema::parse(&schema)).unwrap_err().to_string(), error);
        }
        assert!(check_supported(&Schema::parse(&json!({"type": "object"}))).is_ok());
    }
}
