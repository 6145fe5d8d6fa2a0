//! OpenAPI, health and metrics: what clients read to know the server.

use crate::client::{Client, admin};
use crate::objects::DEFINITIONS;
use serde_json::{Value, json};

async fn define(client: &Client, schema: &Value) {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"}, "versions": [{"name": "v1", "served": true,
            "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    client.create(DEFINITIONS, &definition).await;
}

#[tokio::test]
async fn built_in_kinds_are_described() {
    let document = admin().get("/openapi/v3/apis/apps/v1").await.ok(200);
    let schemas = &document["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(deployment["description"], "Deployment enables declarative updates for Pods and ReplicaSets.");
    assert!(deployment["properties"]["spec"]["description"].is_string());
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(pod["x-kubernetes-patch-merge-key"], "name");
}

#[tokio::test]
async fn a_document_is_fetched_once() {
    let client = admin();
    let index = client.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("a place").to_owned();
    let document = client.get(&url).await;
    assert_eq!(document.status, 200);
    assert_eq!(document.header("cache-control"), "public, immutable");
    assert_eq!(document.header("vary"), "Accept");
    assert_eq!(document.header("expires"), "Sat, 02 Jan 2027 03:04:05 UTC");
    let tag = document.header("etag").to_owned();
    assert!(url.ends_with(tag.trim_matches('"')), "{url} {tag}");
    let known = client.with("if-none-match", &tag).get(&url).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let plain = client.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!(plain.header("cache-control"), "no-cache, private");
    let moved = client.get("/openapi/v3/apis/apps/v1?hash=other").await;
    assert_eq!((moved.status, moved.header("location")), (301, url.as_str()));
    assert_eq!(client.with("accept", "text/html").get(&url).await.status, 406);
    assert_eq!(client.get("/openapi/v3/apis/none/v1").await.status, 404);
}

#[tokio::test]
async fn v2_knows_built_in_and_custom_kinds() {
    let client = admin();
    let before = client.get("/openapi/v2").await;
    define(
        &client,
        &json!({"type": "object", "description": "floats", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "nullable": true}, "name": {"type": "string", "default": "x"}}}}}),
    )
    .await;
    let after = client.get("/openapi/v2").await;
    assert_ne!(before.header("etag"), after.header("etag"));
    let document = after.ok(200);
    let definitions = &document["definitions"];
    let pods = &definitions["io.k8s.api.core.v1.Pod"];
    assert_eq!(pods["properties"]["spec"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
    assert_eq!(
        pods["x-kubernetes-group-version-kind"],
        json!([{"group": "", "kind": "Pod", "version": "v1"}])
    );
    assert_eq!(definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"], "string");
    let boat = &definitions["com.example.v1.Boat"];
    assert_eq!(boat["description"], "floats");
    assert_eq!(boat["properties"]["spec"]["properties"], json!({"size": {}, "name": {"type": "string"}}));
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    assert!(patch["parameters"].as_array().is_some_and(|all| all.iter().any(|p| p["in"] == "body")));
    let unchanged = client.with("if-none-match", after.header("etag")).get("/openapi/v2").await;
    assert_eq!(unchanged.status, 304);
    for asked in [
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    ] {
        let reply = client.with("accept", asked).get("/openapi/v2").await;
        assert_eq!(
            reply.header("content-type"),
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        );
        assert_eq!(&reply.body[..5], b"\x0a\x032.0");
    }
}

#[tokio::test]
async fn health_is_reported_check_by_check() {
    let client = admin();
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/poststarthook/rbac/bootstrap-roles"]
    {
        assert_eq!(
            (client.get(path).await.status, client.get(path).await.text().as_str()),
            (200, "ok"),
            "{path}"
        );
    }
    assert_eq!(client.get("/readyz/nope").await.status, 404);
    let report = client.get("/readyz?verbose&exclude=etcd&exclude=nope").await.text();
    assert!(report.starts_with("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n"), "{report}");
    let end = "[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"nope\"\nreadyz check passed\n";
    assert!(report.ends_with(end), "{report}");
}

#[tokio::test]
async fn requests_are_counted() {
    let client = admin();
    client.get("/api/v1/namespaces").await.ok(200);
    client.get("/api/v1/namespaces/none").await.ok(404);
    let metrics = client.get("/metrics").await.text();
    assert!(metrics.contains("apiserver_request_total{code=\"200\",verb=\"LIST\"} 1\n"), "{metrics}");
    assert!(metrics.contains("apiserver_request_total{code=\"404\",verb=\"GET\"} 1\n"), "{metrics}");
}
