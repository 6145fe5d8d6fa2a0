//! OpenAPI v2: the documents of v3 as one, in the older form.

use crate::server::Inner;
use crate::{crd, discovery};
use orlop_kinds::catalog::catalog;
use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/// Paths that name no resource.
const ROOTS: [&str; 5] = ["api", "apis", "version", ".well-known/openid-configuration", "openid/v1/jwks"];
/// Definitions that v3 describes by alternatives, which v2 does not have.
const TEXTS: [&str; 2] =
    ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"];

/// The document of all group-versions.
pub(super) fn document(server: &Inner) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    let mut add = |document: &Value, is_custom: bool| {
        for (name, schema) in entries(&document["components"]["schemas"]) {
            if !definitions.contains_key(name) {
                let is_own = is_custom && !name.starts_with(META);
                let schema = if is_own { custom(schema) } else { self::schema(schema) };
                definitions.insert(name.clone(), schema);
            }
        }
        paths.extend(entries(&document["paths"]).map(|(path, item)| (path.clone(), path_item(item))));
    };
    for (group, served) in discovery::groups(server) {
        for version in served {
            if let Some(document) = catalog().openapi_v3(&group, &version) {
                add(&document, false);
            } else if let Some(document) = crd::openapi(server, &group, &version) {
                add(&document, true);
            }
        }
    }
    let groups = catalog().groups().iter().map(|group| format!("apis/{}", group.name));
    for root in groups.chain(ROOTS.map(str::to_owned)) {
        if let Some(document) = catalog().openapi_v3_root(&root) {
            add(&document, false);
        }
    }
    for name in TEXTS {
        definitions.entry(name).and_modify(|schema| schema["type"] = "string".into());
    }
    for kind in ["DeleteOptions", "WatchEvent"] {
        let homes = catalog().known_versions().into_iter();
        let homes: Value = homes.map(|(g, v)| json!({"group": g, "kind": kind, "version": v})).collect();
        definitions
            .entry(format!("{META}{kind}"))
            .and_modify(|schema| schema["x-kubernetes-group-version-kind"] = homes);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey",
        }},
        "security": [{"BearerToken": []}],
    })
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn reference(target: &Value) -> Value {
    target.as_str().unwrap_or_default().replace("#/components/schemas/", "#/definitions/").into()
}

/// A schema of v3 in v2: references stand alone, and defaults and alternatives are left out.
fn schema(v3: &Value) -> Value {
    let mut v2 = Map::new();
    for (key, value) in entries(v3) {
        match key.as_str() {
            "default" | "oneOf" | "anyOf" | "not" | "nullable" => {}
            "$ref" => {
                v2.insert(key.clone(), reference(value));
            }
            "allOf" => {
                if let Some(target) = value.get(0).and_then(|first| first.get("$ref")) {
                    v2.insert("$ref".to_owned(), reference(target));
                }
            }
            "properties" => {
                let properties: Map<_, _> = entries(value).map(|(n, p)| (n.clone(), schema(p))).collect();
                v2.insert(key.clone(), properties.into());
            }
            "items" | "additionalProperties" if value.is_object() => {
                v2.insert(key.clone(), schema(value));
            }
            _ => {
                v2.insert(key.clone(), value.clone());
            }
        }
    }
    v2.into()
}

/// A custom schema in v2: what clients of v2 would misread is left open.
fn custom(v3: &Value) -> Value {
    let mut v2 = schema(v3);
    let Some(fields) = v2.as_object_mut() else { return v2 };
    let is_true = |key: &str| v3.get(key) == Some(&Value::Bool(true));
    if is_true("nullable") || is_true("x-kubernetes-preserve-unknown-fields") {
        for key in ["type", "items", "properties", "additionalProperties"] {
            fields.remove(key);
        }
    }
    for key in ["items", "additionalProperties"] {
        if v3.get(key).is_some_and(Value::is_object) && fields.contains_key(key) {
            fields.insert(key.to_owned(), custom(&v3[key]));
        }
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            *property = custom(&v3["properties"][name]);
        }
    }
    v2
}

fn path_item(v3: &Value) -> Value {
    let item = entries(v3).map(|(key, value)| {
        let value = match key.as_str() {
            "parameters" => parameters(value),
            _ => operation(value),
        };
        (key.clone(), value)
    });
    item.collect::<Map<_, _>>().into()
}

fn parameters(v3: &Value) -> Value {
    let parameter = |parameter: &Value| {
        let mut v2 = parameter.as_object().cloned().unwrap_or_default();
        if let Some(Value::Object(schema)) = v2.remove("schema") {
            v2.extend(schema);
        }
        Value::Object(v2)
    };
    v3.as_array().into_iter().flatten().map(parameter).collect()
}

fn operation(v3: &Value) -> Value {
    let mut v2 = Map::new();
    for (key, value) in entries(v3).filter(|(key, _)| !matches!(key.as_str(), "parameters" | "requestBody")) {
        v2.insert(key.clone(), value.clone());
    }
    let types = |content: &Value| entries(content).map(|(ty, _)| ty.as_str().into()).collect::<Vec<Value>>();
    let body = &v3["requestBody"];
    let mut all = parameters(&v3["parameters"]);
    if let (Some(all), Some((_, media))) = (all.as_array_mut(), entries(&body["content"]).next()) {
        let required = body["required"] == true;
        all.push(
            json!({"in": "body", "name": "body", "required": required, "schema": schema(&media["schema"])}),
        );
    }
    let consumes = if body.is_object() { types(&body["content"]) } else { vec!["*/*".into()] };
    v2.insert("consumes".to_owned(), consumes.into());
    v2.insert("produces".to_owned(), types(&v3["responses"]["200"]["content"]).into());
    v2.insert("schemes".to_owned(), json!(["https"]));
    if all.as_array().is_some_and(|all| !all.is_empty()) {
        v2.insert("parameters".to_owned(), all);
    }
    let responses = entries(&v3["responses"]).map(|(code, response)| {
        let mut answer = json!({"description": response["description"]});
        if let Some((_, media)) = entries(&response["content"]).next() {
            answer["schema"] = schema(&media["schema"]);
        }
        (code.clone(), answer)
    });
    v2.insert("responses".to_owned(), responses.collect::<Map<_, _>>().into());
    v2.into()
}
