//! Definitions as kube-apiserver holds them in memory. What all versions share stands once at the top there, and
//! that is where errors point; a few errors quote the Go structs.

use crate::object;
use serde_json::Value;

/// Where a part of a definition stands: at the top if all versions agree on it, else in each version.
pub(super) enum Part<'a> {
    /// All versions have the same, perhaps nothing.
    Shared(Option<&'a Value>),
    /// Versions differ.
    PerVersion,
}

impl<'a> Part<'a> {
    fn of(versions: &'a [Value], field: &str) -> Self {
        let Some(first) = versions.first() else { return Self::Shared(None) };
        let value = first.get(field);
        if versions.iter().all(|version| version.get(field) == value) {
            Self::Shared(value)
        } else {
            Self::PerVersion
        }
    }

    /// The part of a version that is not shared.
    pub(super) fn own(&self, version: &'a Value, field: &str) -> Option<&'a Value> {
        match self {
            Self::Shared(_) => None,
            Self::PerVersion => version.get(field),
        }
    }

    /// The shared part.
    pub(super) fn shared(&self) -> Option<&'a Value> {
        match self {
            Self::Shared(value) => *value,
            Self::PerVersion => None,
        }
    }
}

/// The parts of a definition that may be shared.
pub(super) struct Internal<'a> {
    pub(super) versions: &'a [Value],
    pub(super) schema: Part<'a>,
    pub(super) subresources: Part<'a>,
    pub(super) columns: Part<'a>,
    pub(super) selectable: Part<'a>,
}

impl<'a> Internal<'a> {
    pub(super) fn of(spec: &'a Value) -> Self {
        let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
        Self {
            versions,
            schema: Part::of(versions, "schema"),
            subresources: Part::of(versions, "subresources"),
            columns: Part::of(versions, "additionalPrinterColumns"),
            selectable: Part::of(versions, "selectableFields"),
        }
    }

    /// The versions as Go prints them in JSON.
    pub(super) fn versions_text(&self) -> String {
        let version = |version: &Value| {
            let own = |part: &Part<'a>, field: &str, print: &dyn Fn(&Value) -> String| match part {
                Part::Shared(_) => "null".to_owned(),
                Part::PerVersion => version.get(field).map_or_else(|| "null".to_owned(), print),
            };
            let fields = [
                ("Name", text(version, "name")),
                ("Served", flag(version, "served")),
                ("Storage", flag(version, "storage")),
                ("Deprecated", flag(version, "deprecated")),
                ("DeprecationWarning", or_null(version.get("deprecationWarning"))),
                ("Schema", own(&self.schema, "schema", &validation_text)),
                ("Subresources", own(&self.subresources, "subresources", &subresources_text)),
                ("AdditionalPrinterColumns", own(&self.columns, "additionalPrinterColumns", &columns_text)),
                ("SelectableFields", own(&self.selectable, "selectableFields", &selectable_text)),
            ];
            object_text(&fields)
        };
        list_text(self.versions, &version)
    }
}

/// How a field of `JSONSchemaProps` is spelled.
enum Spelling {
    Text,
    Flag,
    Plain,
    List,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrBool,
    SchemaOrArray,
    Docs,
    Rules,
}

/// The fields of `JSONSchemaProps` in Go's order, with their names in JSON.
const SCHEMA_FIELDS: [(&str, &str, Spelling); 44] = {
    use Spelling::{
        Docs, Flag, List, Plain, Rules, Schema, SchemaMap, SchemaOrArray, SchemaOrBool, Schemas, Text,
    };
    [
        ("ID", "id", Text),
        ("Schema", "$schema", Text),
        ("Ref", "$ref", Plain),
        ("Description", "description", Text),
        ("Type", "type", Text),
        ("Nullable", "nullable", Flag),
        ("Format", "format", Text),
        ("Title", "title", Text),
        ("Default", "default", Plain),
        ("Maximum", "maximum", Plain),
        ("ExclusiveMaximum", "exclusiveMaximum", Flag),
        ("Minimum", "minimum", Plain),
        ("ExclusiveMinimum", "exclusiveMinimum", Flag),
        ("MaxLength", "maxLength", Plain),
        ("MinLength", "minLength", Plain),
        ("Pattern", "pattern", Text),
        ("MaxItems", "maxItems", Plain),
        ("MinItems", "minItems", Plain),
        ("UniqueItems", "uniqueItems", Flag),
        ("MultipleOf", "multipleOf", Plain),
        ("Enum", "enum", List),
        ("MaxProperties", "maxProperties", Plain),
        ("MinProperties", "minProperties", Plain),
        ("Required", "required", List),
        ("Items", "items", SchemaOrArray),
        ("AllOf", "allOf", Schemas),
        ("OneOf", "oneOf", Schemas),
        ("AnyOf", "anyOf", Schemas),
        ("Not", "not", Schema),
        ("Properties", "properties", SchemaMap),
        ("AdditionalProperties", "additionalProperties", SchemaOrBool),
        ("PatternProperties", "patternProperties", SchemaMap),
        ("Dependencies", "dependencies", Plain),
        ("AdditionalItems", "additionalItems", SchemaOrBool),
        ("Definitions", "definitions", SchemaMap),
        ("ExternalDocs", "externalDocs", Docs),
        ("Example", "example", Plain),
        ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Plain),
        ("XEmbeddedResource", "x-kubernetes-embedded-resource", Flag),
        ("XIntOrString", "x-kubernetes-int-or-string", Flag),
        ("XListMapKeys", "x-kubernetes-list-map-keys", List),
        ("XListType", "x-kubernetes-list-type", Plain),
        ("XMapType", "x-kubernetes-map-type", Plain),
        ("XValidations", "x-kubernetes-validations", Rules),
    ]
};

/// The Go names of the keywords that a schema sets, in Go's order.
pub(super) fn keywords(schema: &Value) -> impl Iterator<Item = &'static str> {
    SCHEMA_FIELDS.iter().filter(|(_, json, _)| schema.get(json).is_some_and(is_set)).map(|(go, ..)| *go)
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != ""
}

/// A schema as Go prints it in JSON.
pub(super) fn schema_text(schema: &Value) -> String {
    let fields: Vec<(&str, String)> = SCHEMA_FIELDS
        .iter()
        .map(|(go, json, spelling)| {
            let value = schema.get(json).filter(|value| !value.is_null());
            let text = match (spelling, value) {
                (Spelling::Text, _) => text(schema, json),
                (Spelling::Flag, _) => flag(schema, json),
                (_, None) => "null".to_owned(),
                (Spelling::Plain | Spelling::List, Some(value)) => value.to_string(),
                (Spelling::Schema, Some(value)) => schema_text(value),
                (Spelling::Schemas, Some(value)) => list_of(value, &schema_text),
                (Spelling::SchemaMap, Some(value)) => map_text(value),
                (Spelling::SchemaOrBool, Some(Value::Bool(allows))) => {
                    object_text(&[("Allows", allows.to_string()), ("Schema", "null".to_owned())])
                }
                (Spelling::SchemaOrBool, Some(value)) => {
                    object_text(&[("Allows", "true".to_owned()), ("Schema", schema_text(value))])
                }
                (Spelling::SchemaOrArray, Some(Value::Array(list))) => object_text(&[
                    ("Schema", "null".to_owned()),
                    ("JSONSchemas", list_text(list, &schema_text)),
                ]),
                (Spelling::SchemaOrArray, Some(value)) => {
                    object_text(&[("Schema", schema_text(value)), ("JSONSchemas", "null".to_owned())])
                }
                (Spelling::Docs, Some(value)) => {
                    object_text(&[("Description", text(value, "description")), ("URL", text(value, "url"))])
                }
                (Spelling::Rules, Some(value)) => list_of(value, &rule_text),
            };
            (*go, text)
        })
        .collect();
    object_text(&fields)
}

fn rule_text(rule: &Value) -> String {
    object_text(&[
        ("Rule", text(rule, "rule")),
        ("Message", text(rule, "message")),
        ("MessageExpression", text(rule, "messageExpression")),
        ("Reason", or_null(rule.get("reason"))),
        ("FieldPath", text(rule, "fieldPath")),
        ("OptionalOldSelf", or_null(rule.get("optionalOldSelf"))),
    ])
}

fn validation_text(validation: &Value) -> String {
    let schema = validation.get("openAPIV3Schema").map_or_else(|| "null".to_owned(), schema_text);
    object_text(&[("OpenAPIV3Schema", schema)])
}

fn subresources_text(subresources: &Value) -> String {
    let status = subresources.get("status").map_or("null", |_| "{}").to_owned();
    let scale = subresources.get("scale").filter(|scale| scale.is_object()).map(|scale| {
        object_text(&[
            ("SpecReplicasPath", text(scale, "specReplicasPath")),
            ("StatusReplicasPath", text(scale, "statusReplicasPath")),
            ("LabelSelectorPath", or_null(scale.get("labelSelectorPath"))),
        ])
    });
    object_text(&[("Status", status), ("Scale", scale.unwrap_or_else(|| "null".to_owned()))])
}

fn columns_text(columns: &Value) -> String {
    list_of(columns, &|column| {
        object_text(&[
            ("Name", text(column, "name")),
            ("Type", text(column, "type")),
            ("Format", text(column, "format")),
            ("Description", text(column, "description")),
            ("Priority", column.get("priority").map_or_else(|| "0".to_owned(), Value::to_string)),
            ("JSONPath", text(column, "jsonPath")),
        ])
    })
}

fn selectable_text(fields: &Value) -> String {
    list_of(fields, &|field| object_text(&[("JSONPath", text(field, "jsonPath"))]))
}

fn text(value: &Value, field: &str) -> String {
    Value::from(object::text(value, field)).to_string()
}

fn flag(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_bool).unwrap_or_default().to_string()
}

fn or_null(value: Option<&Value>) -> String {
    value.map_or_else(|| "null".to_owned(), Value::to_string)
}

fn object_text(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list_of(value: &Value, print: &dyn Fn(&Value) -> String) -> String {
    value.as_array().map_or_else(|| "null".to_owned(), |list| list_text(list, print))
}

fn list_text(list: &[Value], print: &dyn Fn(&Value) -> String) -> String {
    format!("[{}]", list.iter().map(print).collect::<Vec<_>>().join(","))
}

fn map_text(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    let fields: Vec<String> = fields
        .map(|(name, schema)| format!("{}:{}", Value::from(name.as_str()), schema_text(schema)))
        .collect();
    format!("{{{}}}", fields.join(","))
}
