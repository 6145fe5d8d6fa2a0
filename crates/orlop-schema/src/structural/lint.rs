//! What a CustomResourceDefinition may not say in a schema, structural or not: unsupported keywords, list and
//! map types that do not fit, defaults where none may be.

use super::{Additional, Items, Rule, Schema, field_path};
use crate::field::{FieldError, Path};
use serde_json::{Value, json};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the schema of a kind.
pub fn check(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut linter = Linter { errors: Vec::new() };
    linter.schema(schema, path, Context { root: true, ..Context::default() });
    linter.errors
}

/// What surrounds a schema.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    root: bool,
    /// Why there may be no default, in words that follow "must not be set".
    no_default: Option<&'a str>,
    /// Whether this is `metadata` of a resource, or within it.
    inside_meta: bool,
}

struct Linter {
    errors: Vec<FieldError>,
}

impl Linter {
    fn required(&mut self, path: &Path, why: &str) {
        self.errors.push(FieldError::required(path, why));
    }

    fn forbidden(&mut self, path: &Path, why: &str) {
        self.errors.push(FieldError::forbidden(path, why));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, why: &str) {
        self.errors.push(FieldError::invalid(path, &value.into(), why));
    }

    fn schema(&mut self, s: &Schema, path: &Path, context: Context<'_>) {
        self.keywords(s, path, context);
        if s.unique_items {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(&path.child("uniqueItems"), why);
        }
        self.children(s, path, Context { root: false, ..context }, context.root);
        if s.preserve_unknown == Some(false) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.invalid(&path, false, "must be true or undefined");
        }
        self.map_type(s, path);
        self.list_type(s, path);
        self.list_map(s, path);
        self.map_keys(s, path);
        self.rules(s, path);
    }

    fn keywords(&mut self, s: &Schema, path: &Path, context: Context<'_>) {
        if !s.ty.is_empty() && !TYPES.contains(&s.ty.as_str()) {
            let value = Value::from(s.ty.as_str());
            self.errors.push(FieldError::not_supported(&path.child("type"), &value, &TYPES));
        }
        if let (Some(_), Some(why)) = (&s.default, context.no_default) {
            self.forbidden(&path.child("default"), &format!("must not be set {why}"));
        }
        for (is_set, name) in [
            (!s.id.is_empty(), "id"),
            (s.has_additional_items, "additionalItems"),
            (!s.pattern_properties.is_empty(), "patternProperties"),
            (!s.definitions.is_empty(), "definitions"),
            (s.has_dependencies, "dependencies"),
            (s.reference.is_some(), "$ref"),
        ] {
            if is_set {
                self.forbidden(&path.child(name), &format!("{name} is not supported"));
            }
        }
        if s.ty == "null" {
            let why = "type cannot be set to null, use nullable as an alternative";
            self.forbidden(&path.child("type"), why);
        }
        if matches!(&s.items, Items::Many(schemas) if !schemas.is_empty()) {
            self.forbidden(&path.child("items"), "items must be a schema object and not an array");
        }
        if context.inside_meta && s.embedded {
            let path = path.child("x-kubernetes-embedded-resource");
            self.forbidden(&path, "must not be used inside of resource meta");
        }
    }

    fn children(&mut self, s: &Schema, path: &Path, context: Context<'_>, is_root: bool) {
        if s.additional.is_some() {
            if !s.properties.is_empty() && !matches!(s.additional, Additional::Bool(true)) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.forbidden(&path.child("additionalProperties"), why);
            }
            let mut below = context;
            if context.inside_meta {
                below.no_default = Some("inside additionalProperties applying to object metadata");
            }
            if let Some(additional) = s.additional.schema() {
                self.schema(additional, &path.child("additionalProperties"), below);
            }
        }
        for (name, property) in &s.properties {
            let mut below = context;
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            let reason = format!("in top-level {name}");
            if is_meta && (is_root || s.embedded) {
                below.inside_meta = true;
                if is_root {
                    below.no_default = Some(&reason);
                }
            }
            self.schema(property, &path.child("properties").key(name), below);
        }
        if let Some(not) = &s.not {
            self.schema(not, &path.child("not"), context);
        }
        for (list, name) in [(&s.all_of, "allOf"), (&s.one_of, "oneOf"), (&s.any_of, "anyOf")] {
            for (index, schema) in list.iter().enumerate() {
                self.schema(schema, &path.child(name).index(index), context);
            }
        }
        for (name, definition) in &s.definitions {
            self.schema(definition, &path.child("definitions").key(name), context);
        }
        match &s.items {
            Items::None => {}
            Items::One(item) => self.schema(item, &path.child("items"), context),
            Items::Many(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.schema(item, &path.child("items").index(index), context);
                }
            }
        }
    }

    /// Reports a type that does not go with an extension.
    fn wrong_type(&mut self, s: &Schema, path: &Path, why: &str) {
        if s.ty.is_empty() {
            self.required(&path.child("type"), why);
        } else {
            self.invalid(&path.child("type"), s.ty.as_str(), why);
        }
    }

    fn map_type(&mut self, s: &Schema, path: &Path) {
        let Some(map_type) = s.map_type.as_deref() else { return };
        if s.ty != "object" {
            self.wrong_type(s, path, "must be object if x-kubernetes-map-type is specified");
        }
        if !matches!(map_type, "atomic" | "granular") {
            let path = path.child("x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(&path, &map_type.into(), &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, s: &Schema, path: &Path) {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let type_path = path.child("x-kubernetes-list-type");
        let Some(list_type) = s.list_type.as_deref() else {
            if !s.list_map_keys.is_empty() {
                self.required(&type_path, why);
            }
            return;
        };
        if s.ty != "array" {
            self.wrong_type(s, path, "must be array if x-kubernetes-list-type is specified");
        } else if let ("set", Some(item)) = (list_type, s.item()) {
            self.set_items(item, &path.child("items"));
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let value = list_type.into();
            self.errors.push(FieldError::not_supported(&type_path, &value, &["atomic", "set", "map"]));
        }
        if !s.list_map_keys.is_empty() && list_type != "map" {
            self.invalid(&type_path, list_type, why);
        }
    }

    /// Items of a set are compared as a whole, so they must be owned as a whole.
    fn set_items(&mut self, item: &Schema, path: &Path) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let list_type = item.list_type.as_deref();
        match item.ty.as_str() {
            "array" if list_type.is_some_and(|ty| ty != "atomic") => {
                self.invalid(&path.child("x-kubernetes-list-type"), json!(list_type), why);
            }
            "object" if item.map_type.as_deref() != Some("atomic") => {
                self.invalid(&path.child("x-kubernetes-map-type"), json!(list_type), why);
            }
            _ => {}
        }
    }

    fn list_map(&mut self, s: &Schema, path: &Path) {
        if s.list_type.as_deref() != Some("map") {
            return;
        }
        let keys_path = path.child("x-kubernetes-list-map-keys");
        if s.list_map_keys.is_empty() {
            self.required(&keys_path, "must not be empty if x-kubernetes-list-type is map");
        }
        let item = match &s.items {
            Items::None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                return self.required(&path.child("items"), why);
            }
            Items::Many(_) => {
                let why = "must only have a single schema if x-kubernetes-list-type is map";
                return self.invalid(&path.child("items"), Value::Null, why);
            }
            Items::One(item) => item,
        };
        if item.ty != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid(&path.child("items").child("type"), item.ty.as_str(), why);
        }
        for (index, key) in s.list_map_keys.iter().enumerate() {
            match item.properties.get(key) {
                Some(field) if matches!(field.ty.as_str(), "array" | "object") => {
                    let path = path.child("items").child("properties").key(key).child("type");
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.invalid(&path, item.ty.as_str(), why);
                }
                Some(_) => {}
                None => {
                    let why = "entries must all be names of item properties";
                    self.invalid(&keys_path, json!(s.list_map_keys), why);
                }
            }
            if s.list_map_keys[..index].contains(key) {
                self.invalid(&keys_path, json!(s.list_map_keys), "must not contain duplicate entries");
            }
        }
    }

    /// Items must always have their keys.
    fn map_keys(&mut self, s: &Schema, path: &Path) {
        let (Some(item), Some(list_type @ ("set" | "map"))) = (s.item(), s.list_type.as_deref()) else {
            return;
        };
        let items = path.child("items");
        if item.nullable {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbidden(&items.child("nullable"), &why);
        }
        if list_type == "set" {
            return;
        }
        for key in &s.list_map_keys {
            let Some(field) = item.properties.get(key) else { continue };
            let path = items.child("properties").key(key);
            let why = "this property is in x-kubernetes-list-map-keys, so it";
            if !item.required.contains(key) && field.default.is_none() {
                self.required(
                    &path.child("default"),
                    &format!("{why} must have a default or be a required property"),
                );
            }
            if field.nullable {
                self.forbidden(&path.child("nullable"), &format!("{why} cannot be nullable"));
            }
        }
    }

    fn rules(&mut self, s: &Schema, path: &Path) {
        let path = path.child("x-kubernetes-validations");
        for (index, rule) in s.rules.iter().enumerate() {
            self.rule(s, rule, &path.index(index));
        }
    }

    fn rule(&mut self, s: &Schema, rule: &Rule, path: &Path) {
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.rule.trim(), rule.message.trim());
        if text.is_empty() {
            self.required(&path.child("rule"), "rule is not specified");
        } else if !rule.message.is_empty() && message.is_empty() {
            self.invalid(&path.child("message"), rule.message.as_str(), "must be non-empty if specified");
        } else if breaks(message) {
            self.invalid(&path.child("message"), rule.message.as_str(), "must not contain line breaks");
        } else if breaks(text) && message.is_empty() {
            self.required(&path.child("message"), "message must be specified if rule contains line breaks");
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.required(&path.child("messageExpression"), why);
        }
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            self.errors.push(FieldError::not_supported(&path.child("reason"), &reason.into(), &REASONS));
        }
        let field = rule.field_path.as_str();
        let field_path = path.child("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            self.invalid(&field_path, field, "must be non-empty if specified");
        }
        if breaks(field) {
            self.invalid(&field_path, field, "must not contain line breaks");
        }
        if !field.is_empty() && field_path::resolve(field, s, field_path::Arrays::Allowed).is_err() {
            self.invalid(&field_path, field, "must be a valid path");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_schema_may_not_say_is_refused_in_the_words_of_kubernetes() {
        let list = |extra: Value| {
            let mut schema = json!({"type": "array", "items": {"type": "object", "required": ["a"],
                "properties": {"a": {"type": "string"}}}, "x-kubernetes-list-type": "map"});
            for (key, value) in extra.as_object().into_iter().flatten() {
                schema[key] = value.clone();
            }
            schema
        };
        for (schema, errors) in [
            (json!({"type": "object"}), vec![]),
            (
                json!({"type": "null"}),
                vec![
                    r#"s.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string""#,
                    "s.type: Forbidden: type cannot be set to null, use nullable as an alternative",
                ],
            ),
            (json!({"$ref": "x"}), vec!["s.$ref: Forbidden: $ref is not supported"]),
            (list(json!({"x-kubernetes-list-map-keys": ["a"]})), vec![]),
            (
                list(json!({})),
                vec![
                    "s.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
                ],
            ),
            (
                list(json!({"x-kubernetes-list-map-keys": ["a", "a"]})),
                vec![
                    r#"s.x-kubernetes-list-map-keys: Invalid value: ["a","a"]: must not contain duplicate entries"#,
                ],
            ),
            (
                json!({"type": "object", "properties": {"metadata": {"type": "object", "default": {}}}}),
                vec!["s.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
            ),
            (
                json!({"type": "object", "x-kubernetes-list-type": "set"}),
                vec![
                    r#"s.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#,
                ],
            ),
            (
                json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}]}),
                vec!["s.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
            ),
            (json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}), vec![]),
        ] {
            let found: Vec<String> =
                check(&Schema::parse(&schema), &Path::new("s")).iter().map(ToString::to_string).collect();
            assert_eq!(found, errors, "{schema}");
        }
    }
}
