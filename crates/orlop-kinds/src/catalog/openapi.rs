//! OpenAPI definitions, unpacked one Go package at a time, and the v3 documents built from them.
//!
//! Definitions are generated; paths are built here from discovery, with the operations, parameters and
//! extensions that clients look at. The deprecated `watch/` paths are left out.

use super::{Catalog, Resource, Shape, Version, unpack, words};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const REF: &str = "#/components/schemas/";

/// The definitions of all packages.
pub(super) struct Definitions {
    packages: BTreeMap<String, Package>,
}

struct Package {
    compressed: &'static [u8],
    definitions: OnceLock<BTreeMap<&'static str, Definition>>,
}

struct Definition {
    text: &'static str,
    schema: OnceLock<Value>,
}

impl Definitions {
    /// Reads the index line `[[package, offset, length], …]` of blocks that follow it.
    pub(super) fn new(data: &'static [u8]) -> Self {
        let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
        let (index, blocks) = data.split_at(end);
        let blocks = blocks.get(1..).unwrap_or_default();
        let index: Vec<(String, usize, usize)> = serde_json::from_slice(index).unwrap_or_default();
        let packages = index.into_iter().map(|(name, offset, length)| {
            let compressed = blocks.get(offset..offset + length).unwrap_or_default();
            (name, Package { compressed, definitions: OnceLock::new() })
        });
        Self { packages: packages.collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let (package, _) = name.rsplit_once('.')?;
        let package = self.packages.get(package)?;
        let definitions = package.definitions.get_or_init(|| {
            let lines = unpack(package.compressed).lines().filter_map(|line| line.split_once('\t'));
            lines.map(|(name, text)| (name, Definition { text, schema: OnceLock::new() })).collect()
        });
        let definition = definitions.get(name)?;
        Some(definition.schema.get_or_init(|| serde_json::from_str(definition.text).unwrap_or_default()))
    }
}

/// The document of a group-version.
pub(super) fn document(catalog: &Catalog, group: &str, version: &Version) -> Value {
    let root = match group {
        "" => format!("/api/{}", version.name),
        group => format!("/apis/{group}/{}", version.name),
    };
    let mut paths = Map::new();
    let tag = tag(group, &version.name);
    paths.insert(
        format!("{root}/"),
        json!({"get": {
            "description": "get available resources",
            "operationId": format!("get{}APIResources", camel(&tag)),
            "tags": [tag],
            "responses": responses(&format!("{META}.APIResourceList"), false, &["200"]),
        }}),
    );
    for resource in &version.resources {
        add_paths(catalog, group, version, resource, &root, &mut paths);
    }
    for path in paths.values_mut() {
        share_parameters(path);
    }
    let paths = Value::Object(paths);
    let mut schemas = BTreeMap::new();
    reach(catalog, &paths, &mut schemas);
    if version.resources.iter().any(|resource| resource.allows("watch")) {
        reach(catalog, &json!({"$ref": format!("{REF}{META}.WatchEvent")}), &mut schemas);
    }
    for name in [format!("{META}.DeleteOptions"), format!("{META}.WatchEvent")] {
        if let (Some(Value::Array(kinds)), false) = (
            schemas.get_mut(&name).and_then(|s| s.get_mut("x-kubernetes-group-version-kind")),
            group.is_empty(),
        ) {
            let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
            kinds.push(json!({"group": group, "kind": kind, "version": version.name}));
        }
    }
    enclose(paths, schemas)
}

/// The document of a path that names no resource, such as `apis` or `apis/apps`.
pub(super) fn root(catalog: &Catalog, path: &str) -> Option<Value> {
    const KINDS: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
    let known = |kind: &str| content(&KINDS, &format!("{META}.{kind}"));
    let text = |media_type: &str| json!({media_type: {"schema": {"type": "string"}}});
    let (id, description, tag, content) = match path {
        "api" => {
            ("getCoreAPIVersions".to_owned(), "get available API versions", "core", known("APIVersions"))
        }
        "apis" => ("getAPIVersions".to_owned(), "get available API versions", "apis", known("APIGroupList")),
        "version" => (
            "getCodeVersion".to_owned(),
            "get the version information for this server",
            "version",
            content(&["application/json"], "io.k8s.apimachinery.pkg.version.Info"),
        ),
        ".well-known/openid-configuration" => (
            "getServiceAccountIssuerOpenIDConfiguration".to_owned(),
            "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
            "WellKnown",
            text("application/json"),
        ),
        "openid/v1/jwks" => (
            "getServiceAccountIssuerOpenIDKeyset".to_owned(),
            "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
            "openid",
            text("application/jwk-set+json"),
        ),
        path => {
            let group = path.strip_prefix("apis/").filter(|name| !name.is_empty());
            let group = group.and_then(|name| catalog.group(name))?;
            let tag = &group_tag(&group.name);
            let id = format!("get{}APIGroup", camel(tag));
            return Some(single(catalog, path, &id, "get information of a group", tag, &known("APIGroup")));
        }
    };
    Some(single(catalog, path, &id, description, tag, &content))
}

/// A document with one operation.
fn single(catalog: &Catalog, path: &str, id: &str, description: &str, tag: &str, content: &Value) -> Value {
    let paths = json!({format!("/{path}/"): {"get": {
        "description": description,
        "operationId": id,
        "tags": [tag],
        "responses": {"200": {"content": content, "description": "OK"}, "401": {"description": "Unauthorized"}},
    }}});
    let mut schemas = BTreeMap::new();
    reach(catalog, &paths, &mut schemas);
    enclose(paths, schemas)
}

fn enclose(paths: Value, schemas: BTreeMap<String, Value>) -> Value {
    let schemas: Map<String, Value> = schemas.into_iter().collect();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {
                "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey",
            }},
        },
    })
}

/// Adds every definition that `node` refers to, directly or not.
fn reach(catalog: &Catalog, node: &Value, into: &mut BTreeMap<String, Value>) {
    let mut pending = Vec::new();
    references(node, &mut pending);
    while let Some(name) = pending.pop() {
        if into.contains_key(&name) {
            continue;
        }
        if let Some(schema) = catalog.described_definition(&name) {
            references(&schema, &mut pending);
            into.insert(name, schema);
        }
    }
}

fn references(node: &Value, into: &mut Vec<String>) {
    match node {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                into.extend(target.strip_prefix(REF).map(str::to_owned));
            }
            map.values().for_each(|child| references(child, into));
        }
        Value::Array(list) => list.iter().for_each(|child| references(child, into)),
        _ => {}
    }
}

/// A verb of discovery as an operation: verb, method, first word of the operation id, action.
const OPERATIONS: [(&str, &str, &str, &str); 7] = [
    ("create", "post", "create", "post"),
    ("list", "get", "list", "list"),
    ("deletecollection", "delete", "deleteCollection", "deletecollection"),
    ("get", "get", "read", "get"),
    ("update", "put", "replace", "put"),
    ("patch", "patch", "patch", "patch"),
    ("delete", "delete", "delete", "delete"),
];

fn add_paths(
    catalog: &Catalog,
    group: &str,
    version: &Version,
    resource: &Resource,
    root: &str,
    paths: &mut Map<String, Value>,
) {
    let (plural, sub) = resource.name.split_once('/').map_or((&*resource.name, None), |(p, s)| (p, Some(s)));
    let (kind_group, kind_version) = resource.kind_group_version(group, &version.name);
    let Some(model) = catalog.definition_name(kind_group, kind_version, &resource.kind) else { return };
    let list = catalog.definition_name(kind_group, kind_version, &format!("{}List", resource.kind));
    let prefix = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{prefix}/{plural}");
    let item = match sub {
        Some(sub) => format!("{collection}/{{name}}/{sub}"),
        None => format!("{collection}/{{name}}"),
    };
    let tag = tag(group, &version.name);
    let scope = if resource.namespaced { "Namespaced" } else { "" };
    let parent = version.resources.iter().find(|r| r.name == plural).map_or(&resource.kind, |r| &r.kind);
    let noun = format!("{scope}{parent}{}", sub.map(camel).unwrap_or_default());
    let kind = json!({"group": kind_group, "kind": resource.kind, "version": kind_version});
    let connect = resource.kind.ends_with("Options") && sub.is_some();
    let deleted = if returns_deleted(group, &resource.kind) { model } else { &format!("{META}.Status") };
    for (verb, method, word, action) in OPERATIONS {
        if !resource.allows(verb) {
            continue;
        }
        let on_item = !matches!(verb, "create" | "list" | "deletecollection") || sub.is_some();
        let shown = match verb {
            "list" => list.unwrap_or(model),
            "deletecollection" => &format!("{META}.Status"),
            "delete" => deleted,
            _ => model,
        };
        let statuses: &[&str] = match verb {
            "create" => &["200", "201", "202"],
            "update" | "patch" => &["200", "201"],
            "delete" => &["200", "202"],
            _ => &["200"],
        };
        let id = match word {
            _ if connect => format!("connect{}{}{noun}", camel(&tag), camel(method)),
            "deleteCollection" => format!("delete{}Collection{noun}", camel(&tag)),
            word => format!("{word}{}{noun}", camel(&tag)),
        };
        let description = match sub {
            Some(sub) if connect => words::connection(method, sub, parent),
            sub => words::operation(verb, sub, parent, &resource.kind, resource.allows("watch")),
        };
        let mut operation = json!({
            "description": description,
            "operationId": id,
            "tags": [tag],
            "responses": responses(shown, verb == "list", statuses),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
        });
        let mut own = Vec::new();
        if connect {
            let any = json!({"content": {"*/*": {"schema": {"type": "string"}}}, "description": "OK"});
            operation["responses"] = json!({"200": any, "401": {"description": "Unauthorized"}});
            operation["x-kubernetes-action"] = json!("connect");
            own.extend(option_parameters(catalog, kind_group, kind_version, &resource.kind));
        } else if sub == Some("log") {
            own.extend(LOG_OPTIONS.map(|(name, ty)| query(name, ty)));
            own.push(query("pretty", "string"));
            operation["responses"] = log_responses();
        } else {
            own.extend(parameters(verb));
            own.push(query("pretty", "string"));
            if let Some(body) = request_body(verb, model) {
                operation["requestBody"] = body;
            }
        }
        if on_item {
            own.push(path_parameter("name"));
        }
        if resource.namespaced {
            own.push(path_parameter("namespace"));
        }
        let owner = match sub {
            _ if connect => &resource.kind,
            Some("log") => "log",
            _ => verb,
        };
        words::describe(&mut own, owner, &resource.kind);
        operation["parameters"] = Value::Array(own);
        let path = if on_item { &item } else { &collection };
        paths.entry(path.clone()).or_insert_with(|| json!({}))[method] = operation;
    }
    if resource.namespaced && resource.allows("list") && sub.is_none() {
        let mut shared = [parameters("list"), vec![query("pretty", "string")]].concat();
        words::describe(&mut shared, "list", &resource.kind);
        let everywhere = json!({
            "description": words::operation("list", None, parent, &resource.kind, resource.allows("watch")),
            "operationId": format!("list{}{}ForAllNamespaces", camel(&tag), resource.kind),
            "tags": [tag],
            "responses": responses(list.unwrap_or(model), true, &["200"]),
            "x-kubernetes-action": "list",
            "x-kubernetes-group-version-kind": kind,
            "parameters": shared,
        });
        paths.insert(format!("{root}/{plural}"), json!({"get": everywhere}));
    }
}

fn returns_deleted(group: &str, kind: &str) -> bool {
    crate::strategy::strategy(group, kind).is_some_and(|row| row.returns_deleted)
}

/// Parameters that all operations of a path have in common stand beside the operations, sorted by name.
fn share_parameters(path: &mut Value) {
    let Value::Object(operations) = path else { return };
    let take = |operation: &mut Value| match operation.as_object_mut().and_then(|o| o.remove("parameters")) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let mut lists: Vec<Vec<Value>> = operations.values_mut().map(take).collect();
    for list in &mut lists {
        list.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    }
    let first = lists.first().cloned().unwrap_or_default();
    let shared: Vec<Value> =
        first.into_iter().filter(|parameter| lists.iter().all(|list| list.contains(parameter))).collect();
    for (operation, mut list) in operations.values_mut().zip(lists) {
        list.retain(|parameter| !shared.contains(parameter));
        if !list.is_empty() {
            operation["parameters"] = Value::Array(list);
        }
    }
    if !shared.is_empty() {
        operations.insert("parameters".to_owned(), Value::Array(shared));
    }
}

/// The fields of an options kind, which are given in the query.
fn option_parameters(catalog: &Catalog, group: &str, version: &str, kind: &str) -> Vec<Value> {
    let Some(Shape::Struct(owner)) = catalog.type_of(group, version, kind).map(|ty| &catalog.get(ty).shape)
    else {
        return Vec::new();
    };
    let fields = owner.fields.iter().filter(|field| !matches!(field.name, "apiVersion" | "kind"));
    fields
        .map(|field| match &catalog.get(field.ty).shape {
            Shape::Bool => query(field.name, "boolean"),
            Shape::Int(..) => query(field.name, "integer"),
            // Lists of strings are given by repeating the parameter.
            _ => query(field.name, "string"),
        })
        .collect()
}

/// The parameters of a log.
const LOG_OPTIONS: [(&str, &str); 9] = [
    ("container", "string"),
    ("follow", "boolean"),
    ("insecureSkipTLSVerifyBackend", "boolean"),
    ("limitBytes", "integer"),
    ("previous", "boolean"),
    ("sinceSeconds", "integer"),
    ("stream", "string"),
    ("tailLines", "integer"),
    ("timestamps", "boolean"),
];

fn parameters(verb: &str) -> Vec<Value> {
    let listing = [
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("shardSelector", "string"),
        ("timeoutSeconds", "integer"),
    ];
    let writing = [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
    let deleting = [
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ];
    let names: Vec<(&str, &str)> = match verb {
        "list" => [&[("allowWatchBookmarks", "boolean")][..], &listing, &[("watch", "boolean")]].concat(),
        "deletecollection" => [&listing[..], &deleting].concat(),
        "create" | "update" => writing.to_vec(),
        "patch" => [&writing[..], &[("force", "boolean")]].concat(),
        "delete" => deleting.to_vec(),
        _ => Vec::new(),
    };
    names.into_iter().map(|(name, ty)| query(name, ty)).collect()
}

fn query(name: &str, ty: &str) -> Value {
    json!({"in": "query", "name": name, "schema": {"type": ty, "uniqueItems": true}})
}

fn path_parameter(name: &str) -> Value {
    json!({"in": "path", "name": name, "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn request_body(verb: &str, model: &str) -> Option<Value> {
    let (types, model, required): (&[&str], _, _) = match verb {
        "create" | "update" => (&["*/*"], model.to_owned(), true),
        "patch" => (
            &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
            format!("{META}.Patch"),
            true,
        ),
        "delete" | "deletecollection" => (&["*/*"], format!("{META}.DeleteOptions"), false),
        _ => return None,
    };
    let mut body = json!({"content": content(types, &model)});
    if required {
        body["required"] = Value::Bool(true);
    }
    Some(body)
}

fn responses(model: &str, stream: bool, statuses: &[&str]) -> Value {
    let mut types = vec![
        "application/json",
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
    ];
    if stream {
        types.extend([
            "application/json;stream=watch",
            "application/vnd.kubernetes.protobuf;stream=watch",
        ]);
    }
    let mut responses = json!({"401": {"description": "Unauthorized"}});
    for status in statuses {
        let words = match *status {
            "201" => "Created",
            "202" => "Accepted",
            _ => "OK",
        };
        responses[*status] = json!({"content": content(&types, model), "description": words});
    }
    responses
}

/// A log is text, whatever it is asked for as.
fn log_responses() -> Value {
    let mut responses = responses("", false, &["200"]);
    if let Some(Value::Object(content)) = responses["200"].get_mut("content") {
        content.insert("text/plain".to_owned(), Value::Null);
        content.values_mut().for_each(|answer| *answer = json!({"schema": {"type": "string"}}));
    }
    responses
}

fn content(types: &[&str], model: &str) -> Value {
    let schema = json!({"schema": {"$ref": format!("{REF}{model}")}});
    Value::Object(types.iter().map(|ty| ((*ty).to_owned(), schema.clone())).collect())
}

/// `apps_v1`, `core_v1`, `rbacAuthorization_v1`.
fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", group_tag(group))
}

/// `apps`, `core`, `rbacAuthorization`.
fn group_tag(group: &str) -> String {
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let mut words = group.split('.');
    let first = match words.next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    let rest: String = words.map(camel).collect();
    format!("{first}{rest}")
}

/// The text with capital first letters and without underscores.
fn camel(text: &str) -> String {
    let mut words = text.split('_').map(|word| {
        let mut chars = word.chars();
        chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    });
    words.next().into_iter().chain(words).collect()
}

#[cfg(test)]
mod tests {
    use crate::catalog::catalog;

    #[test]
    fn documents_have_what_kubectl_looks_for() {
        let document = catalog().openapi_v3("apps", "v1").expect("served");
        let paths = &document["paths"];
        let patch = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
        let parameters = patch["parameters"].as_array().expect("list");
        for name in ["dryRun", "fieldManager", "fieldValidation", "force"] {
            assert!(parameters.iter().any(|p| p["name"] == name), "{name}");
        }
        let scale = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"];
        assert_eq!(scale["operationId"], "readAppsV1NamespacedDeploymentScale");
        let schemas = document["components"]["schemas"].as_object().expect("map");
        for name in ["io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.Container"] {
            assert!(schemas.contains_key(name), "{name}");
        }
        let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
        assert_eq!(options["x-kubernetes-group-version-kind"][1]["group"], "apps");
        assert_eq!(patch["description"], "partially update the specified Deployment");
        assert!(parameters.iter().all(|p| p["description"].is_string()));
    }

    #[test]
    fn every_group_version_has_a_document() {
        for group in catalog().groups() {
            for version in &group.versions {
                assert!(catalog().openapi_v3(&group.name, &version.name).is_some());
            }
        }
        assert!(catalog().openapi_v3("nosuch", "v1").is_none());
        for path in
            ["api", "apis", "apis/apps", "version", ".well-known/openid-configuration", "openid/v1/jwks"]
        {
            let document = catalog().openapi_v3_root(path).expect(path);
            assert!(document["paths"][format!("/{path}/")]["get"].is_object(), "{path}");
        }
        assert!(catalog().openapi_v3_root("apis/nosuch").is_none());
    }
}
