//! Merge types of custom resources, from the structural schema in their definition.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map as JsonMap, Value, json};

use super::{ObjectType, Schema, TypeRef, convert};
use crate::value;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Whether a custom resource definition keeps fields its schema does not know (`spec.preserveUnknownFields`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// Unknown fields are an error unless the schema says otherwise.
    Refused,
    /// Unknown fields are kept everywhere.
    Preserved,
}

impl Schema {
    /// The object type of a custom resource with this `openAPIV3Schema`.
    ///
    /// `apiVersion`, `kind` and `metadata` are added to the root and to embedded resources. A version without
    /// schema is a plain object: [`ObjectType::deduced`].
    pub fn custom_resource(open_api_v3_schema: Option<&Value>, unknown: UnknownFields) -> ObjectType {
        let Some(structural @ Value::Object(_)) = open_api_v3_schema else { return ObjectType::deduced() };
        if value::too_deep(structural) {
            return ObjectType::deduced();
        }
        let mut structural = structural.clone();
        embed(&mut structural);
        add_object_fields(&mut structural);
        let schema = metadata();
        let ty = convert::inline(schema, &structural, unknown == UnknownFields::Preserved);
        ObjectType { schema: Arc::clone(schema), root: TypeRef::Inline(Box::new(ty)) }
    }
}

/// Adds the object fields to everything marked as an embedded resource.
fn embed(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(embed);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            embed(inner);
        }
    }
    if map.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        add_object_fields(schema);
    }
}

fn add_object_fields(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    let properties = map.entry("properties").or_insert_with(|| Value::Object(JsonMap::new()));
    if let Value::Object(properties) = properties {
        properties.insert("apiVersion".into(), json!({"type": "string"}));
        properties.insert("kind".into(), json!({"type": "string"}));
        properties.insert("metadata".into(), json!({"$ref": format!("#/components/schemas/{OBJECT_META}")}));
    }
}

fn metadata() -> &'static Arc<Schema> {
    static METADATA: OnceLock<Arc<Schema>> = OnceLock::new();
    METADATA.get_or_init(|| Schema::new(BTreeMap::from([(OBJECT_META.to_owned(), object_meta())])))
}

/// `ObjectMeta` as far as merging is concerned.
fn object_meta() -> Value {
    let string = json!({"type": "string"});
    let required = json!({"type": "string", "default": ""});
    let boolean = json!({"type": "boolean"});
    let integer = json!({"type": "integer"});
    let time = json!({"type": "string", "format": "date-time"});
    let strings = json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}});
    let owner_reference = json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": required, "kind": required, "name": required, "uid": required,
            "controller": boolean, "blockOwnerDeletion": boolean,
        },
    });
    let managed_fields_entry = json!({
        "type": "object",
        "properties": {
            "manager": string, "operation": string, "apiVersion": string, "time": time, "fieldsType": string,
            "fieldsV1": {"type": "object"}, "subresource": string,
        },
    });
    json!({
        "type": "object",
        "properties": {
            "name": string, "generateName": string, "namespace": string, "selfLink": string, "uid": string,
            "resourceVersion": string, "generation": integer, "creationTimestamp": time,
            "deletionTimestamp": time, "deletionGracePeriodSeconds": integer,
            "labels": strings, "annotations": strings,
            "finalizers": {
                "type": "array", "items": required, "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "ownerReferences": {
                "type": "array", "items": owner_reference, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"], "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "uid",
            },
            "managedFields": {"type": "array", "items": managed_fields_entry, "x-kubernetes-list-type": "atomic"},
        },
    })
}
