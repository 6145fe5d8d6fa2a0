//! Objects from creation to deletion: what each write changes, and what it leaves alone.

use crate::client::{APPLY, JSON_PATCH, MERGE_PATCH, Object as _, START, STRATEGIC_PATCH, admin};
use crate::objects::{CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, config_map, deployment, named};
use serde_json::{Value, json};

/// Collections with an object that each accepts, and a label to write into it.
fn kinds() -> [(&'static str, &'static str, Value); 4] {
    [
        (CONFIG_MAPS, "ConfigMap", config_map("x", "1")),
        (DEPLOYMENTS, "Deployment", deployment("x")),
        (NAMESPACES, "Namespace", named("x")),
        (NODES, "Node", named("x")),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_created_can_be_read_and_listed() {
    let client = admin();
    for (path, kind, body) in kinds() {
        let created = client.create(path, &body).await;
        assert_eq!(created["kind"], kind);
        assert_eq!(created["metadata"]["creationTimestamp"], START);
        assert_eq!(created.uid().len(), 36);
        assert_eq!(client.get(&format!("{path}/x")).await.ok(200), created);
        let list = client.get(path).await.ok(200);
        assert_eq!(list["kind"], format!("{kind}List"));
        let mut item = created.clone();
        for head in ["kind", "apiVersion"] {
            item.as_object_mut().and_then(|fields| fields.remove(head));
        }
        assert!(list["items"].as_array().is_some_and(|items| items.contains(&item)), "{kind}");
        let again = client.post(path, &body).await.refusal();
        assert_eq!((again.0, again.1.as_str()), (409, "AlreadyExists"), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_write_changes_the_object_and_its_version() {
    let label = |value: &str| json!({"metadata": {"labels": {"a": value}}});
    for (path, kind, body) in kinds() {
        let client = admin();
        let mut last = client.create(path, &body).await;
        let object = format!("{path}/x");
        let api_version = last["apiVersion"].clone();
        for (value, content_type, patch) in [
            ("put", "", Value::Null),
            ("merge", MERGE_PATCH, label("merge")),
            ("strategic", STRATEGIC_PATCH, label("strategic")),
            ("json", JSON_PATCH, json!([{"op": "replace", "path": "/metadata/labels/a", "value": "json"}])),
            (
                "apply",
                APPLY,
                json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": "x", "labels": {"a": "apply"}}}),
            ),
        ] {
            let reply = if content_type.is_empty() {
                let mut next = last.clone();
                next["metadata"]["labels"]["a"] = value.into();
                client.put(&object, &next).await
            } else {
                let query = if content_type == APPLY { "?fieldManager=me&force=true" } else { "" };
                client.patch(content_type, &format!("{object}{query}"), &patch).await
            };
            let next = reply.ok(200);
            assert_eq!(next["metadata"]["labels"]["a"], value, "{kind} by {value}");
            assert_eq!(next.uid(), last.uid(), "{kind} by {value}");
            assert_eq!(next["spec"], last["spec"], "{kind} by {value}");
            let number = |object: &Value| object.version().parse::<u64>().expect("a number");
            assert!(number(&next) > number(&last), "{kind} by {value}");
            assert_eq!(client.get(&object).await.ok(200), next);
            last = next;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_makes_no_version() {
    let client = admin();
    for (path, kind, body) in kinds() {
        let created = client.create(path, &body).await;
        let object = format!("{path}/x");
        let before = client.revision().await;
        for (content_type, patch) in
            [(MERGE_PATCH, json!({})), (STRATEGIC_PATCH, json!({})), (JSON_PATCH, json!([]))]
        {
            assert_eq!(client.patch(content_type, &object, &patch).await.ok(200), created, "{kind}");
        }
        assert_eq!(client.put(&object, &created).await.ok(200), created, "{kind}");
        assert_eq!(client.revision().await, before, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_is_a_conflict() {
    let client = admin();
    let first = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let object = format!("{CONFIG_MAPS}/x");
    client.put(&object, &config_map("x", "2")).await.ok(200);
    let message = "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    let stale = json!({"metadata": {"resourceVersion": first.version()}});
    let conflict = (409, "Conflict".to_owned(), message.to_owned());
    assert_eq!(client.put(&object, &first).await.refusal(), conflict);
    assert_eq!(client.patch(MERGE_PATCH, &object, &stale).await.refusal(), conflict);
    assert_eq!(client.patch(STRATEGIC_PATCH, &object, &stale).await.refusal(), conflict);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_uid_is_a_conflict_that_names_the_storage_path() {
    let client = admin();
    let created = client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let mut other = created.clone();
    other["metadata"]["uid"] = "other".into();
    let (status, reason, message) = client.put(&format!("{CONFIG_MAPS}/x"), &other).await.refusal();
    assert_eq!((status, reason.as_str()), (409, "Conflict"));
    let part = "Key: /registry/configmaps/default/x, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
                precondition: other, UID in object meta: ";
    assert!(message.contains(part), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_the_write_would_and_leaves_no_trace() {
    let client = admin();
    client.create(CONFIG_MAPS, &config_map("x", "1")).await;
    let (object, before) = (format!("{CONFIG_MAPS}/x?dryRun=All"), client.revision().await);
    let mut watch = client.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={before}")).await;
    let created = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("y", "1")).await.ok(201);
    assert_eq!((created.name(), created.version(), created.uid().len()), ("y", "", 36));
    assert_eq!(client.put(&object, &config_map("x", "2")).await.ok(200)["data"]["key"], "2");
    let patch = json!({"data": {"key": "3"}});
    assert_eq!(client.patch(MERGE_PATCH, &object, &patch).await.ok(200)["data"]["key"], "3");
    assert_eq!(client.delete(&object).await.ok(200)["status"], "Success");
    client.delete(&format!("{CONFIG_MAPS}?dryRun=All")).await.ok(200);
    assert_eq!(client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("x", "1")).await.status, 409);
    assert_eq!(client.revision().await, before);
    assert_eq!(client.names(CONFIG_MAPS).await, ["x"]);
    assert!(watch.ready().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn generate_name_adds_five_letters_and_never_collides() {
    let client = admin();
    let mut names = Vec::new();
    for _ in 0..100 {
        let created = client.create(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}})).await;
        assert_eq!(created["metadata"]["generateName"], "x-");
        let name = created.name().to_owned();
        assert!(name.starts_with("x-") && name.len() == 7, "{name}");
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(client.names(CONFIG_MAPS).await, names);
    assert_eq!(names.len(), 100);
    let both = json!({"metadata": {"generateName": "x-", "name": "given"}});
    assert_eq!(client.create(CONFIG_MAPS, &both).await.name(), "given");
    let long = json!({"metadata": {"generateName": "y".repeat(70)}});
    assert_eq!(client.create(CONFIG_MAPS, &long).await.name().len(), 63);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_sets_cannot_be_set_by_a_writer() {
    let client = admin();
    let forged = json!({"metadata": {
        "name": "x", "uid": "forged", "creationTimestamp": "2000-01-01T00:00:00Z", "selfLink": "/forged",
        "deletionTimestamp": "2000-01-01T00:00:00Z", "resourceVersion": "0",
    }});
    let created = client.create(CONFIG_MAPS, &forged).await;
    assert_ne!(created.uid(), "forged");
    assert_eq!(created["metadata"]["creationTimestamp"], START);
    assert_eq!(created["metadata"]["selfLink"], Value::Null);
    assert_eq!(created["metadata"]["deletionTimestamp"], Value::Null);
    let versioned = json!({"metadata": {"name": "y", "resourceVersion": "7"}});
    let why = "resourceVersion should not be set on objects to be created";
    assert_eq!(client.post(CONFIG_MAPS, &versioned).await.refusal(), (500, String::new(), why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn generation_counts_changes_of_the_specification_only() {
    let client = admin();
    assert_eq!(client.create(DEPLOYMENTS, &deployment("x")).await["metadata"]["generation"], 1);
    let object = format!("{DEPLOYMENTS}/x");
    for (path, patch, generation) in [
        (object.clone(), json!({"metadata": {"labels": {"a": "b"}}}), 1),
        (object.clone(), json!({"spec": {"replicas": 3}}), 2),
        (object.clone(), json!({"spec": {"replicas": 3}}), 2),
        (format!("{object}/status"), json!({"status": {"replicas": 3}}), 2),
        (object.clone(), json!({"status": {"replicas": 9}}), 2),
        (object.clone(), json!({"metadata": {"generation": 99}}), 2),
    ] {
        let next = client.patch(MERGE_PATCH, &path, &patch).await.ok(200);
        assert_eq!(next["metadata"]["generation"], generation, "{patch}");
    }
    assert_eq!(client.get(&object).await.ok(200)["status"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn put_of_a_missing_name_creates_only_where_the_real_server_does() {
    let client = admin();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x";
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/x";
    for (path, status) in [
        (format!("{CONFIG_MAPS}/x"), 404),
        (format!("{NODES}/x"), 404),
        (format!("{DEPLOYMENTS}/x"), 404),
        (lease.to_owned(), 201),
        (role.to_owned(), 201),
    ] {
        let body = if path.starts_with(DEPLOYMENTS) { deployment("x") } else { named("x") };
        assert_eq!(client.put(&path, &body).await.status, status, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_refuses_its_objects() {
    let client = admin();
    let reply = client.post("/api/v1/namespaces/nowhere/configmaps", &named("x")).await;
    let message = "namespaces \"nowhere\" not found".to_owned();
    assert_eq!(reply.refusal(), (404, "NotFound".to_owned(), message));
}
