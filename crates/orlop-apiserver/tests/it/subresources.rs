//! Subresources: doors to a part of an object, or to something done with it.

use crate::client::{APPLY, JSON_PATCH, MERGE_PATCH, Object as _, STRATEGIC_PATCH, admin};
use crate::objects::{ACCOUNTS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, deployment, named, pod};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn status_is_written_through_its_own_door_only() {
    let client = admin();
    let condition = json!([{"type": "Available", "status": "True"}]);
    client.create(DEPLOYMENTS, &deployment("x")).await;
    let object = format!("{DEPLOYMENTS}/x");
    let patch = json!({"spec": {"replicas": 5}, "status": {"conditions": condition}, "metadata": {"labels": {"a": "b"}}});
    let through_main = client.patch(MERGE_PATCH, &object, &patch).await.ok(200);
    assert_eq!(through_main["spec"]["replicas"], 5);
    assert_eq!(through_main["status"], json!({}));
    let patch = json!({"spec": {"replicas": 9}, "status": {"conditions": condition}});
    let through_status = client.patch(MERGE_PATCH, &format!("{object}/status"), &patch).await.ok(200);
    assert_eq!(through_status["spec"]["replicas"], 5);
    assert_eq!(through_status["status"]["conditions"][0]["type"], "Available");
    let mut whole = through_status.clone();
    whole["status"] = json!({"observedGeneration": 2});
    assert_eq!(
        client.put(&format!("{object}/status"), &whole).await.ok(200)["status"],
        json!({"observedGeneration": 2})
    );
    assert_eq!(client.get(&format!("{object}/status")).await.ok(200), client.get(&object).await.ok(200));
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_writes_replicas() {
    let client = admin();
    client.create(DEPLOYMENTS, &deployment("x")).await;
    let (object, scale) = (format!("{DEPLOYMENTS}/x"), format!("{DEPLOYMENTS}/x/scale"));
    let read = client.get(&scale).await.ok(200);
    assert_eq!((read["kind"].as_str(), read["apiVersion"].as_str()), (Some("Scale"), Some("autoscaling/v1")));
    assert_eq!(
        (&read["spec"], &read["status"]),
        (&json!({"replicas": 1}), &json!({"replicas": 0, "selector": "app=x"}))
    );
    let mut wanted = read.clone();
    wanted["spec"]["replicas"] = 2.into();
    assert_eq!(client.put(&scale, &wanted).await.ok(200)["spec"]["replicas"], 2);
    assert_eq!(client.put(&scale, &wanted).await.status, 409, "the version has moved on");
    for (replicas, content_type, patch) in [
        (3, MERGE_PATCH, json!({"spec": {"replicas": 3}})),
        (4, STRATEGIC_PATCH, json!({"spec": {"replicas": 4}})),
        (5, JSON_PATCH, json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])),
    ] {
        assert_eq!(client.patch(content_type, &scale, &patch).await.ok(200)["spec"]["replicas"], replicas);
        assert_eq!(client.get(&object).await.ok(200)["spec"]["replicas"], replicas);
    }
    let applied = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 6}});
    let by = format!("{scale}?fieldManager=me&force=true");
    assert_eq!(client.patch(APPLY, &by, &applied).await.ok(200)["spec"]["replicas"], 6);
    let negative = json!({"spec": {"replicas": -1}});
    assert_eq!(client.patch(MERGE_PATCH, &scale, &negative).await.status, 422);
    assert_eq!(client.patch(MERGE_PATCH, &format!("{DEPLOYMENTS}/none/scale"), &negative).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_makes_no_object_is_refused() {
    let client = admin();
    client.create(DEPLOYMENTS, &deployment("x")).await;
    let before = client.revision().await;
    for path in
        [format!("{DEPLOYMENTS}/x"), format!("{DEPLOYMENTS}/x/scale"), format!("{DEPLOYMENTS}/x/status")]
    {
        for (content_type, body) in [
            (MERGE_PATCH, "[]"),
            (MERGE_PATCH, "7"),
            (MERGE_PATCH, "\"text\""),
            (STRATEGIC_PATCH, "[]"),
            (STRATEGIC_PATCH, "true"),
            (JSON_PATCH, r#"[{"op":"replace","path":"","value":7}]"#),
            (JSON_PATCH, r#"[{"op":"replace","path":"","value":[]}]"#),
            (JSON_PATCH, r#"[{"op":"replace","path":"","value":null}]"#),
            (JSON_PATCH, r#"[{"op":"remove","path":""}]"#),
            (JSON_PATCH, r#"[{"op":"replace","path":"/metadata","value":7}]"#),
            (JSON_PATCH, r#"[{"op":"remove","path":"/metadata"}]"#),
            (JSON_PATCH, "{}"),
            (APPLY, "[]"),
            (APPLY, "text"),
        ] {
            let query = if content_type == APPLY { "?fieldManager=me" } else { "" };
            let sender = client.with("content-type", content_type);
            let reply = sender.send("PATCH", &format!("{path}{query}"), body).await;
            assert!(
                (400..=422).contains(&reply.status),
                "{content_type} {path} {body}: {} {}",
                reply.status,
                reply.text()
            );
        }
    }
    assert_eq!(client.revision().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_binding_gives_a_pod_its_node_once() {
    for path in [format!("{PODS}/x/binding"), "/api/v1/namespaces/default/bindings".to_owned()] {
        let client = admin();
        client.create(PODS, &pod("x")).await;
        let binding = |node: &str| json!({"metadata": {"name": "x", "annotations": {"by": "me"}}, "target": {"kind": "Node", "name": node}});
        let (status, _, message) = client.post(&path, &binding("")).await.refusal();
        assert_eq!((status, message.as_str()), (500, "target.name: Required value"));
        let dry = client.post(&format!("{path}?dryRun=All"), &binding("n1")).await.ok(201);
        assert_eq!(dry["status"], "Success");
        assert_eq!(client.get(&format!("{PODS}/x")).await.ok(200)["spec"]["nodeName"], Value::Null);
        client.post(&path, &binding("n1")).await.ok(201);
        let bound = client.get(&format!("{PODS}/x")).await.ok(200);
        assert_eq!(bound["spec"]["nodeName"], "n1");
        assert_eq!(bound["metadata"]["annotations"]["by"], "me");
        assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
        assert_eq!(client.post(&path, &binding("n2")).await.status, 409);
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_asks_the_budget() {
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let eviction = json!({"metadata": {"name": "x"}});
    for (status, answer, retry_after, allowed_after) in [
        (json!({"disruptionsAllowed": 1, "observedGeneration": 1}), 201, "", json!(0)),
        (json!({"disruptionsAllowed": 0, "observedGeneration": 1}), 429, "", json!(0)),
        (json!({"disruptionsAllowed": 1, "observedGeneration": 0}), 429, "10", json!(1)),
    ] {
        let client = admin();
        client.create(PODS, &pod("x")).await;
        let running =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        client.patch(MERGE_PATCH, &format!("{PODS}/x/status"), &running).await.ok(200);
        let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}});
        client.create(budgets, &budget).await;
        client.patch(MERGE_PATCH, &format!("{budgets}/b/status"), &json!({"status": status})).await.ok(200);
        let dry = client.post(&format!("{PODS}/x/eviction?dryRun=All"), &eviction).await;
        assert_eq!(dry.status, answer, "{status} {}", dry.text());
        assert_eq!(client.get(&format!("{PODS}/x")).await.status, 200);
        let reply = client.post(&format!("{PODS}/x/eviction"), &eviction).await;
        assert_eq!((reply.status, reply.header("retry-after")), (answer, retry_after), "{status}");
        let left = client.get(&format!("{PODS}/x")).await.status;
        assert_eq!(left, if answer == 201 { 404 } else { 200 }, "{status}");
        let after = client.get(&format!("{budgets}/b")).await.ok(200);
        assert_eq!(after["status"]["disruptionsAllowed"], allowed_after, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_request_answers_with_a_token_for_the_account() {
    let client = admin();
    let account = client.create(ACCOUNTS, &named("robot")).await;
    let path = format!("{ACCOUNTS}/robot/token");
    let answer = client.post(&path, &json!({"spec": {"expirationSeconds": 600}})).await.ok(201);
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer.uid(), account.uid());
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-02T03:14:05Z");
    assert_eq!(answer["status"]["token"].as_str().map(|token| token.split('.').count()), Some(3));
    for (body, status) in [
        (json!({"spec": {"expirationSeconds": 10}}), 422),
        (json!({"metadata": {"name": "other"}}), 422),
        (json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}}), 404),
        (json!({"spec": {"boundObjectRef": {"kind": "Service", "apiVersion": "v1", "name": "none"}}}), 400),
    ] {
        let reply = client.post(&path, &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    assert_eq!(client.post(&format!("{ACCOUNTS}/none/token"), &json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn subresources_that_do_not_exist_are_not_found() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    client.create(NODES, &named("x")).await;
    for path in
        [format!("{CONFIG_MAPS}/x/status"), format!("{NODES}/x/scale"), format!("{CONFIG_MAPS}/x/a/b")]
    {
        assert_eq!(client.get(&path).await.status, 404, "{path}");
    }
}
