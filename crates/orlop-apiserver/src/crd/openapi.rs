//! The OpenAPI v3 document of a custom group-version.

use super::CustomKind;
use crate::kind::Kind;
use crate::server::Inner;
use orlop_kinds::catalog::catalog;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const JSON_AND_YAML: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

/// The document of a group-version; `None` if it has no custom kinds.
pub(crate) fn document(server: &Inner, group: &str, version: &str) -> Option<Value> {
    let registry = server.custom_kinds();
    let kinds: Vec<&Arc<Kind>> =
        registry.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    if kinds.is_empty() {
        return None;
    }
    let mut schemas = meta_schemas();
    let mut paths = Map::new();
    for (kind, custom) in kinds.iter().filter_map(|kind| Some((kind, kind.custom()?))) {
        schemas.insert(model(kind, &kind.kind), object_schema(kind, custom));
        schemas.insert(model(kind, &kind.list_kind), list_schema(kind));
        add_paths(&mut paths, kind);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `dev.parity.v1.Widget` for a `Widget` of `parity.dev/v1`.
fn model(kind: &Kind, name: &str) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{name}", parts.join("."), kind.version)
}

fn reference(model: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{model}")})
}

fn identity(kind: &Kind, name: &str) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": name})
}

/// The schemas of metadata and of what all resources answer with, from the built-in definitions.
fn meta_schemas() -> Map<String, Value> {
    const NAMES: [&str; 13] = [
        "DeleteOptions",
        "FieldsV1",
        "ListMeta",
        "ManagedFieldsEntry",
        "ObjectMeta",
        "OwnerReference",
        "Patch",
        "Preconditions",
        "ShardInfo",
        "Status",
        "StatusCause",
        "StatusDetails",
        "Time",
    ];
    let found = NAMES.iter().filter_map(|name| {
        let model = format!("{META}{name}");
        let mut schema = catalog().described_definition(&model)?;
        if *name == "DeleteOptions" {
            let homes = catalog().client_versions().into_iter();
            let homes =
                homes.map(|(group, version)| json!({"group": group, "kind": name, "version": version}));
            schema["x-kubernetes-group-version-kind"] = homes.collect();
        }
        Some((model, schema))
    });
    found.collect()
}

/// The description of a field that every object has.
fn described(field: &str) -> Value {
    let description = if field == "kind" {
        format!(
            "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
             endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {CONVENTIONS}#types-kinds"
        )
    } else {
        format!(
            "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
             schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"
        )
    };
    json!({"type": "string", "description": description})
}

fn object_schema(kind: &Kind, custom: &CustomKind) -> Value {
    let mut schema = custom.open_api_schema().clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    if preserves && schema.get("properties").is_none() {
        schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    embed(&mut schema);
    add_meta(&mut schema);
    schema["x-kubernetes-group-version-kind"] = json!([identity(kind, &kind.kind)]);
    schema
}

/// Says what every resource has, where a schema leaves it out.
fn add_meta(schema: &mut Value) {
    let see = format!("More info: {CONVENTIONS}#metadata");
    schema["properties"]["metadata"] = json!({
        "allOf": [reference(&format!("{META}ObjectMeta"))],
        "description": format!("Standard object's metadata. {see}"),
    });
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = described(field);
    }
}

/// Says what embedded resources have, wherever they are.
fn embed(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for (name, value) in fields.iter_mut() {
        match (name.as_str(), value) {
            ("items" | "additionalProperties", value) => embed_one(value),
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(embed_one),
            _ => {}
        }
    }
}

fn embed_one(schema: &mut Value) {
    embed(schema);
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        add_meta(schema);
    }
}

fn list_schema(kind: &Kind) -> Value {
    json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": described("apiVersion"),
            "kind": described("kind"),
            "metadata": {
                "allOf": [reference(&format!("{META}ListMeta"))],
                "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
            },
            "items": {
                "type": "array",
                "items": reference(&model(kind, &kind.kind)),
                "description": format!("List of {}. More info: {CONVENTIONS}", kind.plural),
            },
        },
        "x-kubernetes-group-version-kind": [identity(kind, &kind.list_kind)],
    })
}

/// One operation on a path.
struct Operation {
    method: &'static str,
    /// The verb in the operation's name and in `x-kubernetes-action`.
    verb: &'static str,
    action: &'static str,
    query: &'static [&'static str],
    body: Option<&'static [&'static str]>,
    answers_list: bool,
}

const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const DELETE: [&str; 4] = ["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];

const fn operation(
    method: &'static str,
    verb: &'static str,
    action: &'static str,
    query: &'static [&'static str],
    body: Option<&'static [&'static str]>,
) -> Operation {
    Operation { method, verb, action, query, body, answers_list: false }
}

const LISTING: Operation = Operation { answers_list: true, ..operation("get", "list", "list", &LIST, None) };
const COLLECTION: [Operation; 3] = [
    LISTING,
    operation("post", "create", "post", &WRITE, Some(&JSON_AND_YAML)),
    operation("delete", "deleteCollection", "deletecollection", &LIST, None),
];
const READ: Operation = operation("get", "read", "get", &["resourceVersion"], None);
const REPLACE: Operation = operation("put", "replace", "put", &WRITE, Some(&JSON_AND_YAML));
const PATCH: Operation = operation(
    "patch",
    "patch",
    "patch",
    &["dryRun", "fieldManager", "fieldValidation", "force"],
    Some(&PATCHES),
);
const DELETING: Operation = operation("delete", "delete", "delete", &DELETE, Some(&JSON_AND_YAML));

fn add_paths(paths: &mut Map<String, Value>, kind: &Kind) {
    let root = format!("/apis/{}/{}", kind.group, kind.version);
    let all = format!("{root}/{}", kind.plural);
    let scoped = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        all.clone()
    };
    if kind.namespaced {
        paths.insert(all, path(kind, &[LISTING], "ForAllNamespaces", &[]));
    }
    let namespace: &[&str] = if kind.namespaced { &["namespace"] } else { &[] };
    let named: Vec<&str> = ["name"].into_iter().chain(namespace.iter().copied()).collect();
    paths.insert(scoped.clone(), path(kind, &COLLECTION, "", namespace));
    paths.insert(format!("{scoped}/{{name}}"), path(kind, &[READ, REPLACE, DELETING, PATCH], "", &named));
    for name in kind.subresources.keys() {
        let suffix = match name.as_str() {
            "status" => "Status",
            _ => "Scale",
        };
        paths
            .insert(format!("{scoped}/{{name}}/{name}"), path(kind, &[READ, REPLACE, PATCH], suffix, &named));
    }
}

fn path(kind: &Kind, operations: &[Operation], suffix: &str, in_path: &[&str]) -> Value {
    let mut value = Map::new();
    for op in operations {
        value.insert(op.method.to_owned(), operation_value(kind, op, suffix));
    }
    let mut parameters: Vec<Value> = in_path
        .iter()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    parameters.push(query_parameter("pretty"));
    value.insert("parameters".to_owned(), Value::Array(parameters));
    Value::Object(value)
}

fn query_parameter(name: &str) -> Value {
    let ty = match name {
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        "watch" | "allowWatchBookmarks" | "sendInitialEvents" | "orphanDependents" | "force" => "boolean",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}})
}

fn operation_value(kind: &Kind, op: &Operation, suffix: &str) -> Value {
    let content = |types: &[&str], schema: &Value| -> Value {
        types.iter().map(|ty| ((*ty).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
    };
    let own = reference(&model(kind, &kind.kind));
    let answer = match op.method {
        _ if op.answers_list => reference(&model(kind, &kind.list_kind)),
        "delete" => reference(&format!("{META}Status")),
        _ => own.clone(),
    };
    let namespaced = if kind.namespaced && suffix != "ForAllNamespaces" { "Namespaced" } else { "" };
    let group: String = kind.group.split('.').map(capital).collect();
    let name = format!("{}{group}{}{namespaced}{}{suffix}", op.verb, capital(&kind.version), kind.kind);
    let mut value = json!({
        "operationId": name,
        "tags": [format!("{group}_{}", kind.version)],
        "parameters": op.query.iter().map(|name| query_parameter(name)).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": content(&JSON_AND_YAML, &answer)}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": op.action,
        "x-kubernetes-group-version-kind": identity(kind, &kind.kind),
    });
    if let Some(types) = op.body {
        let schema = match op.method {
            "patch" => reference(&format!("{META}Patch")),
            "delete" => reference(&format!("{META}DeleteOptions")),
            _ => own,
        };
        value["requestBody"] = json!({"content": content(types, &schema)});
    }
    value
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
