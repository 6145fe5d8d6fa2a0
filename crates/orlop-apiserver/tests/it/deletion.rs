//! Deletion: at once, gracefully, held by finalizers, or refused by preconditions.

use crate::client::{Client, MERGE_PATCH, Object as _, START, admin, advance, builder};
use crate::objects::{
    CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, config_map, deployment, labelled, named, pod,
};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn deletion_answers_with_a_status_or_with_the_object() {
    let client = admin();
    for (path, body, answer) in [
        (CONFIG_MAPS, named("x"), "Status"),
        (NODES, named("x"), "Status"),
        (DEPLOYMENTS, deployment("x"), "Status"),
        (NAMESPACES, named("x"), "Namespace"),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}),
            "Service",
        ),
    ] {
        let created = client.create(path, &body).await;
        let answered = client.delete(&format!("{path}/x")).await.ok(200);
        assert_eq!(answered["kind"], answer, "{path}");
        if answer == "Status" {
            assert_eq!(answered["status"], "Success", "{path}");
            assert_eq!(answered["details"]["uid"], created.uid(), "{path}");
            assert_eq!(client.get(&format!("{path}/x")).await.status, 404, "{path}");
        }
    }
    let missing = client.delete(&format!("{CONFIG_MAPS}/x")).await.refusal();
    assert_eq!(missing, (404, "NotFound".to_owned(), "configmaps \"x\" not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn preconditions_must_hold() {
    let client = admin();
    let created = client.create(CONFIG_MAPS, &named("x")).await;
    let object = format!("{CONFIG_MAPS}/x");
    for (field, wanted) in [("uid", "other"), ("resourceVersion", "1")] {
        let options = json!({"preconditions": {field: wanted}});
        let (status, reason, message) = client.delete_with(&object, &options).await.refusal();
        assert_eq!((status, reason.as_str()), (409, "Conflict"), "{field}");
        let begin = format!(
            "Operation cannot be fulfilled on ConfigMap \"x\": the {} in the precondition ({wanted})",
            if field == "uid" { "UID" } else { "ResourceVersion" }
        );
        assert!(message.starts_with(&begin), "{message}");
    }
    let right = json!({"preconditions": {"uid": created.uid(), "resourceVersion": created.version()}});
    client.delete_with(&object, &right).await.ok(200);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let client = admin();
    let body = json!({"metadata": {"name": "x", "finalizers": ["example.com/hold"]}});
    let created = client.create(CONFIG_MAPS, &body).await;
    let object = format!("{CONFIG_MAPS}/x");
    let mut watch =
        client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", created.version())).await;
    let going = client.delete(&object).await.ok(200);
    assert_eq!(going["metadata"]["deletionTimestamp"], START);
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(client.delete(&object).await.ok(200), going, "a second deletion changes nothing");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    assert_eq!(client.patch(MERGE_PATCH, &object, &more).await.status, 422, "no new finalizer may be added");
    assert_eq!(client.post(CONFIG_MAPS, &body).await.status, 409);
    client.patch(MERGE_PATCH, &object, &json!({"metadata": {"finalizers": null}})).await.ok(200);
    assert_eq!(client.get(&object).await.status, 404);
    assert_eq!(watch.seen().await, ["MODIFIED x", "DELETED x"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_becomes_a_finalizer() {
    for (policy, finalizers) in [
        (json!({"propagationPolicy": "Orphan"}), json!(["orphan"])),
        (json!({"propagationPolicy": "Foreground"}), json!(["foregroundDeletion"])),
        (json!({"orphanDependents": true}), json!(["orphan"])),
        (json!({"propagationPolicy": "Background"}), Value::Null),
        (json!({"orphanDependents": false}), Value::Null),
        (json!({}), Value::Null),
    ] {
        let client = admin();
        client.create(DEPLOYMENTS, &deployment("x")).await;
        let object = format!("{DEPLOYMENTS}/x");
        let answered = client.delete_with(&object, &policy).await.ok(200);
        let left = client.get(&object).await;
        if finalizers.is_null() {
            assert_eq!(left.status, 404, "{policy}");
            continue;
        }
        assert_eq!(answered, left.ok(200), "{policy}");
        assert_eq!(answered["metadata"]["finalizers"], finalizers, "{policy}");
        assert_eq!(answered["metadata"]["generation"], 2, "{policy}");
        client.patch(MERGE_PATCH, &object, &json!({"metadata": {"finalizers": []}})).await.ok(200);
        assert_eq!(client.get(&object).await.status, 404, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_ends_gracefully() {
    let (builder, clock) = builder();
    let client = Client::admin(&builder.build());
    let mut body = pod("x");
    body["spec"]["nodeName"] = "node".into();
    client.create(PODS, &body).await;
    let object = format!("{PODS}/x");
    let going = client.delete(&object).await.ok(200);
    assert_eq!(going["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 30);
    advance(&clock, 5);
    let longer = client.delete_with(&object, &json!({"gracePeriodSeconds": 60})).await.ok(200);
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 30, "a longer period changes nothing");
    let shorter = client.delete_with(&object, &json!({"gracePeriodSeconds": 10})).await.ok(200);
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z");
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 10);
    client.delete_with(&object, &json!({"gracePeriodSeconds": 0})).await.ok(200);
    assert_eq!(client.get(&object).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_ran_goes_at_once() {
    let client = admin();
    client.create(PODS, &pod("x")).await;
    assert_eq!(client.delete(&format!("{PODS}/x")).await.ok(200)["kind"], "Pod");
    assert_eq!(client.get(&format!("{PODS}/x")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_ends_in_two_steps_and_takes_nothing_new_meanwhile() {
    let client = admin();
    client.create(NAMESPACES, &named("x")).await;
    let object = format!("{NAMESPACES}/x");
    let going = client.delete(&object).await.ok(200);
    assert_eq!(going["status"]["phase"], "Terminating");
    assert_eq!(going["metadata"]["deletionTimestamp"], START);
    let (status, reason, message) =
        client.post(&format!("{object}/configmaps"), &named("late")).await.refusal();
    assert_eq!((status, reason.as_str()), (403, "Forbidden"));
    assert!(message.ends_with("because it is being terminated"), "{message}");
    let mut finalized = going.clone();
    finalized["spec"]["finalizers"] = json!([]);
    client.put(&format!("{object}/finalize"), &finalized).await.ok(200);
    client.delete(&object).await;
    assert_eq!(client.get(&object).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn deletecollection_takes_what_it_selects_and_lists_it() {
    let client = admin();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        client.create(CONFIG_MAPS, &labelled(name, label)).await;
    }
    let gone = client.delete(&format!("{CONFIG_MAPS}?labelSelector=app%3Dx")).await.ok(200);
    assert_eq!((gone["kind"].as_str(), gone.names()), (Some("ConfigMapList"), vec!["a".into(), "c".into()]));
    assert_eq!(client.names(CONFIG_MAPS).await, ["b"]);
    client.delete(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dother")).await.ok(200);
    assert_eq!(client.names(CONFIG_MAPS).await, ["b"]);
    client.delete(CONFIG_MAPS).await.ok(200);
    assert!(client.names(CONFIG_MAPS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_name_can_be_used_again_with_another_uid() {
    let client = admin();
    let first = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    client.delete(&format!("{CONFIG_MAPS}/x")).await.ok(200);
    let second = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    assert_ne!(first.uid(), second.uid());
}

#[tokio::test(start_paused = true)]
async fn bad_delete_options_are_refused() {
    let client = admin();
    client.create(CONFIG_MAPS, &named("x")).await;
    let object = format!("{CONFIG_MAPS}/x");
    let invalid = "DeleteOptions.meta.k8s.io \"\" is invalid: ";
    for (query, body, status, message) in [
        (
            "propagationPolicy=Maybe",
            "",
            422,
            format!(
                "{invalid}propagationPolicy: Unsupported value: \"Maybe\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            ),
        ),
        (
            "dryRun=some",
            "",
            422,
            format!("{invalid}dryRun: Unsupported value: [\"some\"]: supported values: \"All\""),
        ),
        (
            "orphanDependents=true&propagationPolicy=Orphan",
            "",
            422,
            format!(
                "{invalid}propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
            ),
        ),
        ("gracePeriodSeconds=soon", "", 400, "strconv.ParseInt: parsing \"soon\": invalid syntax".to_owned()),
    ] {
        let (got, _, text) = client.send("DELETE", &format!("{object}?{query}"), body).await.refusal();
        assert_eq!((got, text), (status, message), "{query}");
    }
    for body in ["{", "[]", "7", "\"text\"", "{\"kind\":\"Pod\"}", "{\"gracePeriodSeconds\":\"x\"}", "\u{0}"]
    {
        assert_eq!(client.send("DELETE", &object, body).await.status, 400, "{body}");
    }
    assert_eq!(client.get(&object).await.status, 200);
}
