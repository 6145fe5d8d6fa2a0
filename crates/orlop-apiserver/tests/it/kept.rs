//! A server whose state is kept in a directory.

use crate::client::{Client, Object as _};
use crate::objects::{ACCOUNTS, CONFIG_MAPS, DEFINITIONS, WIDGETS, config_map, named, widget, widgets};
use orlop_apiserver::ApiServer;
use serde_json::json;

#[tokio::test]
async fn all_that_was_acknowledged_is_there_after_a_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = ApiServer::builder().open(directory.path()).expect("a new directory");
    let client = Client::admin(&server);
    client.create(CONFIG_MAPS, &config_map("kept", "text")).await;
    client.create(CONFIG_MAPS, &config_map("gone", "text")).await;
    client.delete(&format!("{CONFIG_MAPS}/gone")).await.ok(200);
    client.create(DEFINITIONS, &widgets(&["v1"])).await;
    client.create(WIDGETS, &widget("w")).await;
    let mut precise = widget("precise");
    precise["spec"]["values"] = json!([0.907_303_832_202_868_9, 1e300, 5e-324, 0.1, 100.0]);
    precise["spec"]["deep"] = (0..150).fold(json!(1), |inner, _| json!({"a": inner}));
    assert_eq!(client.post(WIDGETS, &precise).await.status, 201);
    client.create(ACCOUNTS, &named("robot")).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = client.create(&format!("{ACCOUNTS}/robot/token"), &request).await;
    let token = token["status"]["token"].as_str().expect("a token").to_owned();
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let service = client.create("/api/v1/namespaces/default/services", &service).await;
    let (dump, revision) = (server.dump(), client.revision().await);
    drop((client, server));

    let server = ApiServer::builder().open(directory.path()).expect("it was closed");
    let client = Client::admin(&server);
    assert_eq!(server.dump(), dump);
    assert!(client.revision().await > revision, "no version is given twice");
    assert_eq!(client.get(&format!("{WIDGETS}/precise")).await.status, 200);
    assert_eq!(client.get(&format!("{WIDGETS}/w")).await.status, 200, "the kind is served again");
    let watch = client.get(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={revision}")).await;
    assert!(watch.text().contains("too old resource version"), "history does not last");
    let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = Client::token(&server, &token).post(reviews, &me).await.ok(201);
    assert_eq!(me["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    let mut thief = json!({"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}});
    thief["spec"]["clusterIP"] = service["spec"]["clusterIP"].clone();
    let refused = client.post("/api/v1/namespaces/default/services", &thief).await;
    assert_eq!(refused.status, 422, "the address is still taken");
    let again = client.create(CONFIG_MAPS, &named("again")).await;
    assert!(again.version().parse::<u64>().expect("a number") > revision);
}

#[tokio::test]
async fn a_restored_state_is_the_one_that_is_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = ApiServer::builder().open(directory.path()).expect("a new directory");
    let client = Client::admin(&server);
    client.create(CONFIG_MAPS, &named("before")).await;
    let snapshot = server.snapshot();
    client.create(CONFIG_MAPS, &named("after")).await;
    server.restore(&snapshot).expect("the disk works");
    client.create(CONFIG_MAPS, &named("later")).await;
    drop((client, server));
    let server = ApiServer::builder().open(directory.path()).expect("it was closed");
    assert_eq!(Client::admin(&server).names(CONFIG_MAPS).await, ["before", "later"]);
}
