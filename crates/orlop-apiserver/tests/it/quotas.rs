//! Limit ranges, quotas and accounts: defaults, bounds, and what is charged when.

use crate::client::{Client, MERGE_PATCH, Object as _, admin, builder};
use crate::objects::{ACCOUNTS, CONFIG_MAPS, PODS, config_map, pod};
use serde_json::{Value, json};

const NAMESPACE: &str = "/api/v1/namespaces/default";

fn with_resources(name: &str, resources: Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

async fn limit(client: &Client, limits: Value) {
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": limits}});
    client.create(&format!("{NAMESPACE}/limitranges"), &range).await;
}

/// Creates a quota as a controller would leave it: nothing used yet.
async fn quota(client: &Client, name: &str, hard: Value, spec: Value) {
    let mut whole = json!({"hard": hard});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    let body = json!({"metadata": {"name": name}, "spec": whole});
    client.create(&format!("{NAMESPACE}/resourcequotas"), &body).await;
    let zeros: serde_json::Map<String, Value> =
        hard.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), "0".into())).collect();
    let status = json!({"status": {"hard": hard, "used": zeros}});
    client.patch(MERGE_PATCH, &format!("{NAMESPACE}/resourcequotas/{name}/status"), &status).await.ok(200);
}

async fn used(client: &Client, name: &str) -> Value {
    client.get(&format!("{NAMESPACE}/resourcequotas/{name}")).await.ok(200)["status"]["used"].clone()
}

#[tokio::test(start_paused = true)]
async fn containers_get_the_defaults_of_their_namespace() {
    let client = admin();
    limit(&client, json!([{"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}])).await;
    let created = client.create(PODS, &pod("x")).await;
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
    );
    let given = with_resources("y", json!({"limits": {"cpu": "1", "memory": "1Mi"}}));
    let created = client.create(PODS, &given).await;
    assert_eq!(created["metadata"]["annotations"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_is_out_of_bounds_is_refused() {
    let container = json!([{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}}]);
    let whole = json!([{"type": "Pod", "max": {"memory": "1Gi"}, "maxLimitRequestRatio": {"memory": "2"}}]);
    for (limits, resources, why) in [
        (
            &container,
            json!({"limits": {"cpu": "50m"}}),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (&container, json!({"limits": {"cpu": "2"}}), "maximum cpu usage per Container is 1, but limit is 2"),
        (&container, json!({"limits": {"cpu": "1"}}), ""),
        (
            &whole,
            json!({}),
            "[maximum memory usage per Pod is 1Gi.  No limit is specified, memory max limit to request ratio per Pod is 2, \
             but no request is specified or request is 0]",
        ),
        (
            &whole,
            json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "256Mi"}}),
            "memory max limit to request ratio per Pod is 2, but provided ratio is 4.000000",
        ),
    ] {
        let client = admin();
        limit(&client, limits.clone()).await;
        let reply = client.post(PODS, &with_resources("x", resources.clone())).await;
        if why.is_empty() {
            reply.ok(201);
            continue;
        }
        let (code, _, message) = reply.refusal();
        assert_eq!((code, message), (403, format!("pods \"x\" is forbidden: {why}")), "{resources}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_until_it_is_full() {
    let client = admin();
    quota(&client, "q", json!({"pods": "2", "requests.cpu": "1"}), json!({})).await;
    let (_, _, message) = client.post(PODS, &pod("x")).await.refusal();
    assert_eq!(message, "pods \"x\" is forbidden: failed quota: q: must specify requests.cpu for: main");
    let asks = |name: &str, cpu: &str| with_resources(name, json!({"requests": {"cpu": cpu}}));
    client.create(PODS, &asks("a", "600m")).await;
    let (code, _, message) = client.post(PODS, &asks("b", "500m")).await.refusal();
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: \
         requests.cpu=1"
    );
    client.post(&format!("{PODS}?dryRun=All"), &asks("b", "400m")).await.ok(201);
    assert_eq!(used(&client, "q").await, json!({"pods": "1", "requests.cpu": "600m"}));
    client.create(PODS, &asks("b", "400m")).await;
    assert_eq!(used(&client, "q").await, json!({"pods": "2", "requests.cpu": "1"}));
    client.delete_with(&format!("{PODS}/b"), &json!({"gracePeriodSeconds": 0})).await.ok(200);
    assert_eq!(used(&client, "q").await["pods"], "2", "giving back is the work of a controller");
}

#[tokio::test(start_paused = true)]
async fn the_server_owns_what_it_counts() {
    let client = admin();
    quota(&client, "q", json!({"configmaps": "5", "count/configmaps": "1"}), json!({})).await;
    client.create(CONFIG_MAPS, &config_map("a", "1")).await;
    let quota = client.get(&format!("{NAMESPACE}/resourcequotas/q")).await.ok(200);
    assert_eq!(quota["status"]["used"], json!({"configmaps": "1", "count/configmaps": "1"}));
    let managers = quota["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    assert!(
        managers.iter().any(|entry| entry["manager"] == "kube-apiserver" && entry["subresource"] == "status")
    );
    let (_, _, message) = client.post(CONFIG_MAPS, &config_map("b", "1")).await.refusal();
    assert!(message.contains("limited: count/configmaps=1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_without_status_limits_nothing_and_one_without_usage_everything() {
    let client = admin();
    let body = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}});
    client.create(&format!("{NAMESPACE}/resourcequotas"), &body).await;
    client.create(PODS, &pod("a")).await;
    let status = json!({"status": {"hard": {"pods": "5"}}});
    client.patch(MERGE_PATCH, &format!("{NAMESPACE}/resourcequotas/q/status"), &status).await.ok(200);
    let (_, _, message) = client.post(PODS, &pod("b")).await.refusal();
    assert_eq!(message, "pods \"b\" is forbidden: status unknown for quota: q, resources: pods");
}

#[tokio::test(start_paused = true)]
async fn scopes_choose_the_pods_that_count() {
    let critical = |operator: &str, values: Value| {
        let mut expression = json!({"scopeName": "PriorityClass", "operator": operator});
        if !values.is_null() {
            expression["values"] = values;
        }
        json!({"scopeSelector": {"matchExpressions": [expression]}})
    };
    let plain = pod("x");
    let asking = with_resources("x", json!({"requests": {"cpu": "1"}}));
    let changed = |field: &str, value: Value| {
        let mut pod = pod("x");
        pod["spec"][field] = value;
        pod
    };
    let ending = changed("activeDeadlineSeconds", 5.into());
    let urgent = changed("priorityClassName", "system-node-critical".into());
    let across = changed(
        "affinity",
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "k", "namespaces": ["other"], "labelSelector": {}},
        ]}}),
    );
    for (spec, body, counted) in [
        (json!({"scopes": ["Terminating"]}), &ending, true),
        (json!({"scopes": ["Terminating"]}), &plain, false),
        (json!({"scopes": ["NotTerminating"]}), &plain, true),
        (json!({"scopes": ["BestEffort"]}), &plain, true),
        (json!({"scopes": ["BestEffort"]}), &asking, false),
        (json!({"scopes": ["NotBestEffort"]}), &asking, true),
        (json!({"scopes": ["CrossNamespacePodAffinity"]}), &across, true),
        (json!({"scopes": ["CrossNamespacePodAffinity"]}), &plain, false),
        (critical("In", json!(["system-node-critical"])), &urgent, true),
        (critical("In", json!(["system-node-critical"])), &plain, false),
        (critical("NotIn", json!(["system-node-critical"])), &plain, true),
        (critical("Exists", Value::Null), &urgent, true),
        (critical("DoesNotExist", Value::Null), &urgent, false),
    ] {
        let client = admin();
        quota(&client, "q", json!({"pods": "0"}), spec.clone()).await;
        let reply = client.post(PODS, body).await;
        assert_eq!(reply.status, if counted { 403 } else { 201 }, "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_are_charged_by_what_they_add() {
    let client = admin();
    quota(&client, "q", json!({"services.nodeports": "1", "services": "5"}), json!({})).await;
    let services = format!("{NAMESPACE}/services");
    let service = |name: &str, ty: &str| json!({"metadata": {"name": name}, "spec": {"type": ty, "ports": [{"port": 80}]}});
    client.create(&services, &service("a", "ClusterIP")).await;
    client.create(&services, &service("b", "ClusterIP")).await;
    let node_port = json!({"spec": {"type": "NodePort"}});
    client.patch(MERGE_PATCH, &format!("{services}/a"), &node_port).await.ok(200);
    assert_eq!(used(&client, "q").await, json!({"services": "2", "services.nodeports": "1"}));
    let reply = client.patch(MERGE_PATCH, &format!("{services}/b"), &node_port).await;
    let message = reply.json().message().to_owned();
    assert!(message.contains("exceeded quota: q, requested: services.nodeports=1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn claims_count_by_storage_class() {
    let client = admin();
    let hard =
        json!({"requests.storage": "10Gi", "gold.storageclass.storage.k8s.io/requests.storage": "4Gi"});
    quota(&client, "q", hard, json!({})).await;
    let claims = format!("{NAMESPACE}/persistentvolumeclaims");
    let claim = |name: &str, class: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}},
        }})
    };
    client.create(&claims, &claim("a", "gold", "3Gi")).await;
    client.create(&claims, &claim("b", "tin", "3Gi")).await;
    let (_, _, message) = client.post(&claims, &claim("c", "gold", "2Gi")).await.refusal();
    assert!(
        message.contains("requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi"),
        "{message}"
    );
    assert_eq!(used(&client, "q").await["requests.storage"], "6Gi");
}

#[tokio::test(start_paused = true)]
async fn pods_run_as_their_account_with_its_token_and_secrets() {
    let server = builder().0.enable_admission("ServiceAccount").build();
    let client = Client::admin(&server);
    let account = json!({
        "metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "known"}], "imagePullSecrets": [{"name": "pull"}],
    });
    let (_, _, message) = client.post(PODS, &of_account("x", json!({}))).await.refusal();
    let missing = "error looking up service account default/a: serviceaccount \"a\" not found";
    assert_eq!(message, format!("pods \"x\" is forbidden: {missing}"));
    client.create(ACCOUNTS, &account).await;
    let created = client.create(PODS, &of_account("x", json!({}))).await;
    let volume = &created["spec"]["volumes"][0];
    assert!(volume["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-")), "{volume}");
    assert_eq!(
        volume["projected"]["sources"][0]["serviceAccountToken"],
        json!({"path": "token", "expirationSeconds": 3607})
    );
    assert_eq!(
        created["spec"]["containers"][0]["volumeMounts"],
        json!([{"name": volume["name"], "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );
    assert_eq!(created["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
    let bare = client.create(PODS, &of_account("y", json!({"automountServiceAccountToken": false}))).await;
    assert_eq!(bare["spec"]["volumes"], Value::Null);
    for (fields, why) in [
        (
            json!({"imagePullSecrets": [{"name": "z"}]}),
            "imagePullSecrets[0].name=\"z\" is not allowed because service account a does not reference that imagePullSecret",
        ),
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "z"}}]}),
            "volume with secret.secretName=\"z\" is not allowed because service account a does not reference that secret",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "z"}}]}]}),
            "container c with envFrom referencing secret.secretName=\"z\" is not allowed because service account a does \
             not reference that secret",
        ),
    ] {
        let (code, _, message) = client.post(PODS, &of_account("z", fields)).await.refusal();
        assert_eq!((code, message), (403, format!("pods \"z\" is forbidden: {why}")));
    }
}

fn of_account(name: &str, fields: Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["serviceAccountName"] = "a".into();
    for (field, value) in fields.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}
