//! From an OpenAPI schema to a merge type.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Field, List, Map, Patch, Scalar, Schema, Type, TypeRef, untyped};
use crate::value;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The type of a named definition; none for those that are only a reference.
pub(super) fn definition(schema: &Schema, name: &str, definition: &Value) -> Option<Type> {
    if definition.get("$ref").is_some() {
        return None;
    }
    Some(match name {
        QUANTITY => Type { scalar: Some(Scalar::Untyped), ..Type::default() },
        RAW_EXTENSION => untyped().clone(),
        _ if value::too_deep(definition) => untyped().clone(),
        _ => Converter { schema, preserve: false }.ty(definition),
    })
}

/// The type of a schema without a name, in which unknown fields may be preserved throughout.
pub(super) fn inline(schema: &Schema, definition: &Value, preserve_unknown_fields: bool) -> Type {
    if value::too_deep(definition) {
        return untyped().clone();
    }
    Converter { schema, preserve: preserve_unknown_fields }.ty(definition)
}

#[derive(Clone, Copy)]
struct Converter<'s> {
    schema: &'s Schema,
    /// Whether unknown fields are kept here and below.
    preserve: bool,
}

impl Converter<'_> {
    fn ty(mut self, schema: &Value) -> Type {
        self.preserve |= flag(schema, "x-kubernetes-preserve-unknown-fields");
        let scalar = |scalar| Type { scalar: Some(scalar), ..Type::default() };
        match text(schema, "type") {
            "" => Type {
                scalar: Some(Scalar::Untyped),
                list: Some(Box::new(self.list(schema))),
                map: Some(Box::new(self.map(schema))),
            },
            "object" => Type { map: Some(Box::new(self.map(schema))), ..Type::default() },
            "array" => Type { list: Some(Box::new(self.list(schema))), ..Type::default() },
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" if matches!(text(schema, "format"), "" | "byte") => scalar(Scalar::String),
            _ => scalar(Scalar::Untyped),
        }
    }

    fn reference(self, schema: &Value) -> TypeRef {
        let Some(name) = reference_name(schema) else { return TypeRef::Inline(Box::new(self.ty(schema))) };
        match (self.schema.index_of(name), text(schema, "x-kubernetes-map-type")) {
            (None, _) => TypeRef::Missing(name.into()),
            (Some(index), "atomic") => TypeRef::NamedAs { index, atomic: true },
            (Some(index), "granular") => TypeRef::NamedAs { index, atomic: false },
            (Some(index), _) => TypeRef::Named(index),
        }
    }

    fn map(self, schema: &Value) -> Map {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let field = |(name, property): (&String, &Value)| {
            let field = Field {
                ty: self.reference(property),
                default: property.get("default").filter(|default| !default.is_null()).cloned(),
                required: required.contains(&name.as_str()),
                patch: patch(property),
            };
            (Arc::from(name.as_str()), field)
        };
        let fields: BTreeMap<_, _> = properties.into_iter().flatten().map(field).collect();
        let element = match schema.get("additionalProperties") {
            None | Some(Value::Null) => (self.preserve || fields.is_empty()).then_some(TypeRef::Deduced),
            Some(Value::Bool(allowed)) => allowed.then_some(TypeRef::Deduced),
            Some(element) => Some(self.reference(element)),
        };
        Map { fields, element, atomic: text(schema, "x-kubernetes-map-type") == "atomic" }
    }

    fn list(self, schema: &Value) -> List {
        let strings =
            |key| schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let (associative, keys) = match text(schema, "x-kubernetes-list-type") {
            "set" => (true, Vec::new()),
            "map" => (true, strings("x-kubernetes-list-map-keys").map(Arc::from).collect()),
            "" => match text(schema, "x-kubernetes-patch-strategy") {
                "merge" | "merge,retainKeys" => {
                    let key = schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
                    (true, key.into_iter().map(Arc::from).collect())
                }
                _ => (false, Vec::new()),
            },
            _ => (false, Vec::new()),
        };
        let element = match schema.get("items") {
            Some(items @ Value::Object(_)) => self.reference(items),
            Some(Value::Array(_)) => TypeRef::Deduced,
            _ => TypeRef::Untyped,
        };
        List { element, associative, keys }
    }
}

fn reference_name(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    })?;
    let name = reference.as_str()?.rsplit('/').next()?;
    (!name.is_empty()).then_some(name)
}

fn patch(property: &Value) -> Patch {
    let strategies = text(property, "x-kubernetes-patch-strategy");
    let has = |strategy| strategies.split(',').any(|candidate| candidate == strategy);
    Patch {
        merge: has("merge"),
        replace: has("replace"),
        merge_key: property.get("x-kubernetes-patch-merge-key").and_then(Value::as_str).map(Arc::from),
    }
}

fn text<'v>(schema: &'v Value, key: &str) -> &'v str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}
