//! The schema model: every keyword of `JSONSchemaProps`, read from JSON without judgement.

use super::formats::Format;
use crate::go_regex;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A schema of one value.
#[derive(Debug, Default)]
pub struct Schema {
    /// `type`, or nothing.
    pub ty: String,
    /// `format` as it was written.
    pub format: String,
    /// `title`.
    pub title: String,
    /// `description`.
    pub description: String,
    /// `id`, which is not supported.
    pub id: String,
    /// `$schema`, which is not supported.
    pub dialect: String,
    /// `$ref`, which is not supported.
    pub reference: Option<String>,
    /// Whether null is a value.
    pub nullable: bool,
    /// The value of an absent field.
    pub default: Option<Value>,
    /// Whether `example` is set.
    pub has_example: bool,
    /// Whether `externalDocs` is set.
    pub has_docs: bool,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// Whether `maximum` itself is too much.
    pub exclusive_maximum: bool,
    /// The least number.
    pub minimum: Option<f64>,
    /// Whether `minimum` itself is too little.
    pub exclusive_minimum: bool,
    /// What a number must be a multiple of.
    pub multiple_of: Option<f64>,
    /// The most characters.
    pub max_length: Option<i64>,
    /// The fewest characters.
    pub min_length: Option<i64>,
    /// What a string must match.
    pub pattern: Pattern,
    /// The most items.
    pub max_items: Option<i64>,
    /// The fewest items.
    pub min_items: Option<i64>,
    /// Whether items must differ.
    pub unique_items: bool,
    /// The most fields.
    pub max_properties: Option<i64>,
    /// The fewest fields.
    pub min_properties: Option<i64>,
    /// The only values.
    pub allowed: Vec<Value>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// The schema of items.
    pub items: Items,
    /// Schemas that must all hold.
    pub all_of: Vec<Schema>,
    /// Schemas of which exactly one must hold.
    pub one_of: Vec<Schema>,
    /// Schemas of which one must hold.
    pub any_of: Vec<Schema>,
    /// A schema that must not hold.
    pub not: Option<Box<Schema>>,
    /// Fields by name.
    pub properties: BTreeMap<String, Schema>,
    /// The schema of other fields.
    pub additional: Additional,
    /// `patternProperties`, which is not supported.
    pub pattern_properties: BTreeMap<String, Schema>,
    /// `definitions`, which is not supported.
    pub definitions: BTreeMap<String, Schema>,
    /// Whether `dependencies` is set, which is not supported.
    pub has_dependencies: bool,
    /// Whether `additionalItems` is set, which is not supported.
    pub has_additional_items: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: Option<bool>,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<String>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
}

/// What `items` says.
#[derive(Debug, Default)]
pub enum Items {
    /// Nothing.
    #[default]
    None,
    /// One schema for all items.
    One(Box<Schema>),
    /// A schema for each place, which is not supported.
    Many(Vec<Schema>),
}

/// What `additionalProperties` says.
#[derive(Debug, Default)]
pub enum Additional {
    /// Nothing.
    #[default]
    None,
    /// Whether there may be any.
    Bool(bool),
    /// One schema for all of them.
    Schema(Box<Schema>),
}

/// A rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The expression that must hold.
    pub rule: String,
    /// What to say if it does not.
    pub message: String,
    /// An expression that makes the message.
    pub message_expression: String,
    /// The kind of error.
    pub reason: Option<String>,
    /// The field that the error is about.
    pub field_path: String,
    /// Whether the rule also runs where there is no old value.
    pub optional_old_self: Option<bool>,
}

/// A regular expression, compiled when it is first used.
#[derive(Debug, Default)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// A pattern in Go's syntax.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// The pattern as it was written; empty if there is none.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The compiled pattern, or Go's complaint.
    pub fn compiled(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| go_regex::compile(&self.text)).as_ref().map_err(String::as_str)
    }
}

impl Schema {
    /// Reads a schema; keywords of the wrong type are left out, for the server's decoder has refused them.
    pub fn parse(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let some_text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or_default();
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let whole = |name: &str| value.get(name).and_then(Value::as_i64);
        let set = |name: &str| value.get(name).is_some_and(|value| !value.is_null());
        let list = |name: &str| value.get(name).and_then(Value::as_array).into_iter().flatten();
        let texts = |name: &str| list(name).filter_map(|v| Some(v.as_str()?.to_owned())).collect();
        let schemas = |name: &str| list(name).map(Self::parse).collect();
        let map = |name: &str| {
            let fields = value.get(name).and_then(Value::as_object).into_iter().flatten();
            fields.map(|(name, schema)| (name.clone(), Self::parse(schema))).collect()
        };
        Self {
            ty: text("type"),
            format: text("format"),
            title: text("title"),
            description: text("description"),
            id: text("id"),
            dialect: text("$schema"),
            reference: some_text("$ref"),
            nullable: flag("nullable"),
            default: value.get("default").filter(|value| !value.is_null()).cloned(),
            has_example: set("example"),
            has_docs: set("externalDocs"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: whole("maxLength"),
            min_length: whole("minLength"),
            pattern: Pattern::new(&text("pattern")),
            max_items: whole("maxItems"),
            min_items: whole("minItems"),
            unique_items: flag("uniqueItems"),
            max_properties: whole("maxProperties"),
            min_properties: whole("minProperties"),
            allowed: list("enum").cloned().collect(),
            required: texts("required"),
            items: Items::parse(value.get("items")),
            all_of: schemas("allOf"),
            one_of: schemas("oneOf"),
            any_of: schemas("anyOf"),
            not: value.get("not").filter(|v| v.is_object()).map(|v| Box::new(Self::parse(v))),
            properties: map("properties"),
            additional: Additional::parse(value.get("additionalProperties")),
            pattern_properties: map("patternProperties"),
            definitions: map("definitions"),
            has_dependencies: set("dependencies"),
            has_additional_items: set("additionalItems"),
            preserve_unknown: value.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_map_keys: texts("x-kubernetes-list-map-keys"),
            list_type: some_text("x-kubernetes-list-type"),
            map_type: some_text("x-kubernetes-map-type"),
            rules: list("x-kubernetes-validations").map(Rule::parse).collect(),
        }
    }

    /// The types a value may have; empty if any.
    pub fn types(&self) -> Vec<&str> {
        match (self.int_or_string, self.ty.as_str()) {
            (true, _) => vec!["integer", "string"],
            (false, "") => Vec::new(),
            (false, ty) => vec![ty],
        }
    }

    /// The format that values are checked for; unknown ones are not.
    pub fn checked_format(&self) -> Option<Format> {
        if self.format.is_empty() {
            return None;
        }
        Format::known(self.types().as_slice(), &self.format)
    }

    /// Whether fields that are not declared are kept.
    pub fn preserves_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    /// The schema of all items, if there is one.
    pub fn item(&self) -> Option<&Schema> {
        match &self.items {
            Items::One(schema) => Some(schema),
            Items::None | Items::Many(_) => None,
        }
    }

    /// The schema of a field, whether it is named or additional.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or_else(|| self.additional.schema())
    }

    /// Whether this schema or one within it has a property.
    pub fn any(&self, found: &dyn Fn(&Schema) -> bool) -> bool {
        found(self) || self.children().any(|child| child.any(found))
    }

    /// Every schema that stands directly in this one.
    pub fn children(&self) -> impl Iterator<Item = &Schema> {
        let items: &[Schema] = match &self.items {
            Items::None => &[],
            Items::One(schema) => std::slice::from_ref(schema),
            Items::Many(schemas) => schemas,
        };
        let lists = [items, &self.all_of, &self.any_of, &self.one_of].into_iter().flatten();
        let maps = [&self.properties, &self.pattern_properties, &self.definitions];
        lists
            .chain(self.not.as_deref())
            .chain(maps.into_iter().flat_map(BTreeMap::values))
            .chain(self.additional.schema())
    }
}

impl Items {
    fn parse(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::None,
            Some(Value::Array(schemas)) => Self::Many(schemas.iter().map(Schema::parse).collect()),
            Some(schema) => Self::One(Box::new(Schema::parse(schema))),
        }
    }
}

impl Additional {
    fn parse(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::None,
            Some(Value::Bool(allowed)) => Self::Bool(*allowed),
            Some(schema) => Self::Schema(Box::new(Schema::parse(schema))),
        }
    }

    /// Whether anything is said at all.
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The schema of additional fields.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Schema(schema) => Some(schema),
            Self::None | Self::Bool(_) => None,
        }
    }
}

impl Rule {
    fn parse(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: value.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keywords_are_read_as_they_stand() {
        let schema = Schema::parse(&json!({
            "type": "object", "required": ["a"], "default": null,
            "properties": {"a": {"type": "array", "items": {"type": "string", "maxLength": 3}}},
            "additionalProperties": true,
            "x-kubernetes-validations": [{"rule": "true"}],
        }));
        assert_eq!(schema.required, ["a"]);
        assert!(schema.default.is_none());
        assert!(matches!(schema.additional, Additional::Bool(true)));
        assert_eq!(schema.properties["a"].item().and_then(|item| item.max_length), Some(3));
        assert_eq!(schema.rules[0].rule, "true");
        assert!(schema.any(&|s| s.max_length == Some(3)));
        assert!(!schema.any(&|s| s.nullable));
    }

    #[test]
    fn an_int_or_string_has_two_types() {
        assert_eq!(
            Schema::parse(&json!({"x-kubernetes-int-or-string": true})).types(),
            ["integer", "string"]
        );
        assert!(Schema::parse(&json!({})).types().is_empty());
    }
}
