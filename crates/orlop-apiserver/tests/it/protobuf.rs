//! Protobuf: the same answers in the form that Go clients prefer.

use crate::client::{Object as _, Reply, admin};
use crate::objects::{CONFIG_MAPS, config_map, named};
use orlop_kinds::catalog::catalog;
use orlop_kinds::protobuf::{decode, open};
use serde_json::{Value, json};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What client-go sends.
const PREFERRED: &str = "application/vnd.kubernetes.protobuf,application/json";

fn read(bytes: &[u8]) -> Value {
    let envelope = open(bytes).expect("an envelope");
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let ty = catalog().type_of(group, version, &envelope.kind).expect("a known kind");
    decode(ty, &envelope).expect("a message")
}

fn ok(reply: &Reply, status: u16) -> Value {
    assert_eq!((reply.status, reply.header("content-type")), (status, PROTOBUF));
    read(&reply.body)
}

#[tokio::test]
async fn answers_say_the_same_in_both_forms() {
    let json = admin();
    let client = json.with("accept", PREFERRED);
    let made = ok(&client.post(CONFIG_MAPS, &config_map("a", "v")).await, 201);
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(made, json.get(&path).await.ok(200));
    assert_eq!(ok(&client.get(&path).await, 200), made);
    assert_eq!(ok(&client.put(&path, &made).await, 200).name(), "a");
    let list = ok(&client.get(CONFIG_MAPS).await, 200);
    assert_eq!(list, json.get(CONFIG_MAPS).await.ok(200));
    let gone = ok(&client.delete(&path).await, 200);
    assert_eq!((gone["kind"].as_str(), gone["status"].as_str()), (Some("Status"), Some("Success")));
    let missing = ok(&client.get(&path).await, 404);
    assert_eq!(
        (missing["reason"].as_str(), missing.message()),
        (Some("NotFound"), "configmaps \"a\" not found")
    );
    let scale = "/apis/apps/v1/namespaces/default/deployments/x/scale";
    assert_eq!(ok(&client.get(scale).await, 404)["code"], 404);
}

#[tokio::test]
async fn metadata_has_a_message_even_for_custom_kinds() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("a")).await;
    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let list = ok(&client.with("accept", &accept).get(CONFIG_MAPS).await, 200);
    assert_eq!(
        (list["kind"].as_str(), list.names()),
        (Some("PartialObjectMetadataList"), vec!["a".to_owned()])
    );
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"}, "versions": [{"name": "v1", "served": true,
            "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let boats = "/apis/example.com/v1/boats";
    let boat = json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "b"}});
    client.create(boats, &boat).await;
    let one = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    assert_eq!(ok(&client.with("accept", &one).get(&format!("{boats}/b")).await, 200).name(), "b");
    assert_eq!(ok(&client.with("accept", &accept).get(boats).await, 200).names(), ["b"]);
    let plain = client.with("accept", PREFERRED).get(boats).await;
    assert_eq!(
        (plain.header("content-type"), plain.ok(200).names()),
        ("application/json", vec!["b".to_owned()])
    );
    assert_eq!(client.with("accept", PROTOBUF).get(boats).await.status, 406);
}

#[tokio::test(start_paused = true)]
async fn events_come_with_their_length() {
    let client = admin();
    client.create(CONFIG_MAPS, &config_map("a", "v")).await;
    let accept = "application/vnd.kubernetes.protobuf;stream=watch";
    let reply = client.with("accept", accept).get(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, accept));
    let length = u32::from_be_bytes(reply.body[..4].try_into().expect("four bytes")) as usize;
    assert_eq!(length + 4, reply.body.len());
    // An event: its type, then the object in its own envelope.
    assert_eq!(&reply.body[4..11], b"\x0a\x05ADDED");
    let start = reply.body.windows(4).position(|bytes| bytes == b"k8s\0").expect("an envelope");
    assert_eq!(read(&reply.body[start..]), client.get(&format!("{CONFIG_MAPS}/a")).await.ok(200));
}

#[tokio::test]
async fn discovery_has_messages_too() {
    let client = admin().with("accept", PROTOBUF);
    let groups = ok(&client.get("/apis").await, 200);
    assert_eq!(groups["kind"], "APIGroupList");
    let apps = ok(&client.get("/apis/apps/v1").await, 200);
    assert!(apps["resources"].as_array().is_some_and(|all| all.iter().any(|r| r["name"] == "deployments")));
}
