//! Conversion webhooks: one stored object, many versions, made elsewhere.

use crate::client::{APPLY, Client, MERGE_PATCH, Object as _, admin, builder, spoken};
use bytes::Bytes;
use http::{Request, Response};
use orlop_apiserver::ApiServer;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/widgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// `v1` has `spec.hostPort`, `v2` has `spec.host` and `spec.port`; `v1` is stored.
fn definition() -> Value {
    let version = |name: &str, fields: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        let spec = json!({"type": "object", "properties": fields});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({
            "name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema},
            "selectableFields": if name == "v2" { json!([{"jsonPath": ".spec.host"}]) } else { json!([]) },
        })
    };
    let service = json!({"namespace": "hooks", "name": "convert", "path": "/convert"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", &["hostPort"]), version("v2", &["host", "port"])],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"service": service},
            }},
        },
    })
}

fn convert(object: &Value, to: &str) -> Value {
    let mut out = object.clone();
    out["apiVersion"] = to.into();
    let spec = &object["spec"];
    out["spec"] = if to == "example.com/v2" {
        let (host, port) =
            spec["hostPort"].as_str().and_then(|text| text.split_once(':')).unwrap_or_default();
        json!({"host": host, "port": port})
    } else {
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        json!({"hostPort": format!("{}:{}", text("host"), text("port"))})
    };
    out
}

/// A server with the definition and its webhook, and how many objects each review brought.
async fn start() -> (ApiServer, Client, Arc<Mutex<Vec<usize>>>) {
    let server = builder().0.build();
    let client = Client::admin(&server);
    let reviews = Arc::new(Mutex::new(Vec::new()));
    let log = reviews.clone();
    let service = "hooks/convert".parse().expect("a service name");
    server.register_service(service, move |request: Request<Bytes>| {
        let review: Value = serde_json::from_slice(request.body()).expect("reviews are JSON");
        let asked = &review["request"];
        let to = asked["desiredAPIVersion"].as_str().expect("a version");
        let objects = asked["objects"].as_array().expect("objects");
        log.lock().expect("nobody panics").push(objects.len());
        let converted: Vec<Value> = objects.iter().map(|object| convert(object, to)).collect();
        let response =
            json!({"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": converted});
        let body =
            json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response});
        async move { Response::new(Bytes::from(body.to_string())) }
    });
    client.create(DEFINITIONS, &definition()).await;
    (server, client, reviews)
}

fn widget(version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_and_written_in_every_version() {
    let (_, client, _) = start().await;
    client.create(V1, &widget("v1", "a", &json!({"hostPort": "h:1"}))).await;
    assert_eq!(client.get(&format!("{V2}/a")).await.ok(200)["spec"], json!({"host": "h", "port": "1"}));
    let made = client.create(V2, &widget("v2", "b", &json!({"host": "x", "port": "2"}))).await;
    assert_eq!(
        (&made["apiVersion"], &made["spec"]),
        (&json!("example.com/v2"), &json!({"host": "x", "port": "2"}))
    );
    assert_eq!(client.get(&format!("{V1}/b")).await.ok(200)["spec"], json!({"hostPort": "x:2"}));
    let patch = json!({"spec": {"port": "3"}});
    let patched = client.patch(MERGE_PATCH, &format!("{V2}/b"), &patch).await.ok(200);
    assert_eq!(patched["spec"], json!({"host": "x", "port": "3"}));
    let stored = client.get(&format!("{V1}/b")).await.ok(200);
    assert_eq!((&stored["spec"], stored.version()), (&json!({"hostPort": "x:3"}), patched.version()));
    client.delete(&format!("{V2}/b")).await.ok(200);
    assert_eq!(client.names(V1).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_converted_at_once_and_selected_as_it_is_seen() {
    let (_, client, reviews) = start().await;
    for (name, spec) in [("a", "h:1"), ("b", "h:2"), ("c", "x:3")] {
        client.create(V1, &widget("v1", name, &json!({"hostPort": spec}))).await;
    }
    assert_eq!(
        *reviews.lock().expect("nobody panics"),
        Vec::<usize>::new(),
        "what is stored needs no conversion"
    );
    assert_eq!(client.names(V2).await, ["a", "b", "c"]);
    assert_eq!(reviews.lock().expect("nobody panics").pop(), Some(3));
    assert_eq!(client.names(&format!("{V2}?fieldSelector=spec.host%3Dh")).await, ["a", "b"]);
    assert_eq!(client.names(&format!("{V2}?limit=1")).await, ["a"]);
    assert_eq!(reviews.lock().expect("nobody panics").pop(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_every_change_in_its_version() {
    let (_, client, _) = start().await;
    client.create(V1, &widget("v1", "a", &json!({"hostPort": "h:1"}))).await;
    let mut watch = client.watch(&format!("{V2}?watch=1&fieldSelector=spec.host%3Dh")).await;
    client.create(V1, &widget("v1", "b", &json!({"hostPort": "x:1"}))).await;
    let patch = json!({"spec": {"hostPort": "h:2"}});
    client.patch(MERGE_PATCH, &format!("{V1}/b"), &patch).await.ok(200);
    client.delete(&format!("{V1}/a")).await.ok(200);
    let events = watch.ready().await;
    assert_eq!(events.iter().map(spoken).collect::<Vec<_>>(), ["ADDED a", "ADDED b", "DELETED a"]);
    assert_eq!(events[1]["object"]["spec"], json!({"host": "h", "port": "2"}));
    assert!(events.iter().all(|event| event["object"]["apiVersion"] == "example.com/v2"));
}

#[tokio::test(start_paused = true)]
async fn ownership_follows_fields_through_versions() {
    let (_, client, _) = start().await;
    let apply = |version: &'static str, path: &'static str, manager: &'static str, spec: Value| {
        let client = client.clone();
        async move {
            let path = format!("{path}/a?fieldManager={manager}");
            client.patch(APPLY, &path, &widget(version, "a", &spec)).await
        }
    };
    apply("v1", V1, "one", json!({"hostPort": "h:1"})).await.ok(201);
    let same = apply("v2", V2, "two", json!({"host": "h", "port": "1"})).await.ok(200);
    assert_eq!(same["metadata"]["managedFields"].as_array().map(Vec::len), Some(2));
    let (code, reason, _) = apply("v2", V2, "two", json!({"host": "h", "port": "2"})).await.refusal();
    assert_eq!((code, reason.as_str()), (409, "Conflict"), "the other version's field would change");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_fails_the_request_and_not_the_store() {
    let client = admin();
    client.create(DEFINITIONS, &definition()).await;
    client.create(V1, &widget("v1", "a", &json!({"hostPort": "h:1"}))).await;
    let before = client.revision().await;
    let why =
        "failed: Post \"https://convert.hooks.svc:443/convert?timeout=30s\": service \"convert\" not found";
    let (read, written) = ("example.com/v1, Kind=Widget", "example.com/v2, Kind=Widget");
    let object = widget("v2", "b", &json!({"host": "h"}));
    for (reply, what) in [
        (client.get(&format!("{V2}/a")).await, read),
        (client.get(V2).await, read),
        (client.post(V2, &object).await, written),
    ] {
        let (code, reason, message) = reply.refusal();
        let expected = format!("conversion webhook for {what} {why}");
        assert_eq!((code, reason.as_str(), message), (500, "", expected));
    }
    assert_eq!(client.revision().await, before);
    assert_eq!(client.names(V1).await, ["a"], "the stored version needs nobody");
}
