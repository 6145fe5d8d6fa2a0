//! Tables: rows for people, with as much of the objects as is asked for.

use crate::client::{Client, MERGE_PATCH, Object as _, admin, advance, builder};
use crate::objects::{CONFIG_MAPS, config_map, named};
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn cells(table: &Value) -> Value {
    table["rows"].as_array().into_iter().flatten().map(|row| row["cells"].clone()).collect()
}

#[tokio::test]
async fn reads_and_writes_answer_with_rows() {
    let (builder, clock) = builder();
    let client = Client::admin(&builder.build());
    let people = client.with("accept", TABLE);
    let made = people.post(CONFIG_MAPS, &config_map("a", "v")).await.ok(201);
    assert_eq!((made["kind"].as_str(), made["apiVersion"].as_str()), (Some("Table"), Some("meta.k8s.io/v1")));
    assert_eq!(cells(&made), json!([["a", 1, "0s"]]));
    assert_eq!(made["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(made["metadata"]["resourceVersion"], made["rows"][0]["object"].version());
    advance(&clock, 300);
    client.create(CONFIG_MAPS, &named("b")).await;
    let list = people.get(CONFIG_MAPS).await.ok(200);
    assert_eq!(cells(&list), json!([["a", 1, "5m"], ["b", 0, "0s"]]));
    let names = list["columnDefinitions"].as_array().expect("columns").iter().map(|c| &c["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["Name", "Data", "Age"]);
    let page = people.get(&format!("{CONFIG_MAPS}?limit=1")).await.ok(200);
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let patched = people.patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/b"), &json!({"data": {"x": "y"}})).await;
    assert_eq!(cells(&patched.ok(200)), json!([["b", 1, "0s"]]));
    let gone = people.delete(&format!("{CONFIG_MAPS}/b")).await.ok(200);
    assert_eq!(gone["kind"], "Status");
    let missing = people.get(&format!("{CONFIG_MAPS}/b")).await.ok(404);
    assert_eq!(missing["kind"], "Status");
    let none = people.get("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles").await.ok(200);
    assert_eq!(none["rows"], Value::Null);
}

#[tokio::test]
async fn rows_bring_what_is_asked_for_of_their_objects() {
    let client = admin().with("accept", "application/json;as=Table;v=v1beta1;g=meta.k8s.io");
    client.post(CONFIG_MAPS, &config_map("a", "v")).await.ok(201);
    for (include, kind, version) in [
        ("", "PartialObjectMetadata", "meta.k8s.io/v1beta1"),
        ("Metadata", "PartialObjectMetadata", "meta.k8s.io/v1beta1"),
        ("Object", "ConfigMap", "v1"),
    ] {
        let table = client.get(&format!("{CONFIG_MAPS}?includeObject={include}")).await.ok(200);
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
        let object = &table["rows"][0]["object"];
        assert_eq!((object["kind"].as_str(), object["apiVersion"].as_str()), (Some(kind), Some(version)));
        assert_eq!(object["data"].is_object(), include == "Object");
    }
    let table = client.get(&format!("{CONFIG_MAPS}/a?includeObject=None")).await.ok(200);
    assert_eq!(table["rows"][0]["object"], Value::Null);
    let refused = client.get(&format!("{CONFIG_MAPS}?includeObject=All")).await.refusal();
    let why = "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', \
               'Object', 'None', or empty";
    assert_eq!(refused, (400, "BadRequest".to_owned(), why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_says_its_columns_once() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("a")).await;
    let people = client.with("accept", TABLE);
    let mut watch = people.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    client.patch(MERGE_PATCH, &format!("{CONFIG_MAPS}/a"), &json!({"data": {"x": "y"}})).await.ok(200);
    let events = watch.ready().await;
    assert_eq!(
        events.iter().map(|e| e["type"].as_str().unwrap_or("")).collect::<Vec<_>>(),
        ["ADDED", "MODIFIED"]
    );
    assert!(events[0]["object"]["columnDefinitions"].is_array());
    assert_eq!(events[1]["object"]["columnDefinitions"], Value::Null);
    assert_eq!(cells(&events[1]["object"]), json!([["a", 1, "0s"]]));
}

#[tokio::test]
async fn custom_kinds_choose_their_columns() {
    let client = admin();
    let columns = json!([
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "how it goes"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
                "additionalPrinterColumns": columns},
            {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": any}}]}});
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/boats");
    let boat = json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"},
        "spec": {"size": 3}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    client.create(&path("v1"), &boat).await;
    let people = client.with("accept", TABLE);
    let table = people.get(&path("v1")).await.ok(200);
    assert_eq!(cells(&table), json!([["b", null, "True", 3, "0s"]]));
    assert_eq!(table["columnDefinitions"][1]["description"], "how it goes");
    assert_eq!(table["columnDefinitions"][3]["priority"], 1);
    assert_eq!(cells(&people.get(&path("v2")).await.ok(200)), json!([["b", "0s"]]));
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("a")).await;
    let known = "only the following media types are accepted: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf";
    for (accept, path, message) in [
        ("text/html", CONFIG_MAPS, known),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", CONFIG_MAPS, known),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", CONFIG_MAPS, known),
        (
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            CONFIG_MAPS,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "/api/v1/namespaces/default/configmaps/a",
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (
            "text/html",
            "/api/v1/namespaces/default/configmaps?watch=1",
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        ),
    ] {
        let reply = client.with("accept", accept).get(path).await;
        assert_eq!(reply.status, 406, "{accept}");
        assert_eq!(reply.refusal(), (406, "NotAcceptable".to_owned(), message.to_owned()), "{accept}");
    }
    let fallback = "application/json;as=Table;v=v9;g=meta.k8s.io,application/json";
    assert_eq!(client.with("accept", fallback).get(CONFIG_MAPS).await.ok(200)["kind"], "ConfigMapList");
}
