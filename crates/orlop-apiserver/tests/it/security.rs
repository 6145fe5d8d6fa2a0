//! What the labels of a namespace forbid to its pods.

use crate::client::{Client, MERGE_PATCH, Object as _, admin};
use crate::objects::{DEPLOYMENTS, NAMESPACES, PODS, deployment, pod};
use serde_json::{Value, json};

async fn label(client: &Client, labels: &[(&str, &str)]) -> Vec<String> {
    let labels: serde_json::Map<String, Value> = labels
        .iter()
        .map(|(name, value)| (format!("pod-security.kubernetes.io/{name}"), (*value).into()))
        .collect();
    let reply = client
        .patch(MERGE_PATCH, &format!("{NAMESPACES}/default"), &json!({"metadata": {"labels": labels}}))
        .await;
    reply.ok(200);
    reply.warnings()
}

fn with(fields: Value) -> Value {
    let mut pod = pod("x");
    for (field, value) in fields.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn in_context(context: Value) -> Value {
    with(json!({"containers": [{"name": "main", "image": "image", "securityContext": context}]}))
}

#[tokio::test(start_paused = true)]
async fn a_level_forbids_what_it_names() {
    let restricted = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    for (level, body, why) in [
        ("baseline", with(json!({})), ""),
        ("restricted", in_context(restricted), ""),
        (
            "baseline",
            in_context(json!({"privileged": true})),
            "privileged (container \"main\" must not set securityContext.privileged=true)",
        ),
        (
            "baseline",
            with(json!({"hostNetwork": true, "hostPID": true})),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            "baseline",
            with(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})),
            "hostPath volumes (volume \"v\")",
        ),
        (
            "baseline",
            in_context(json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}})),
            "non-default capabilities (container \"main\" must not include \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
        ),
        (
            "restricted",
            with(json!({})),
            "allowPrivilegeEscalation != false (container \"main\" must set \
             securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"main\" must set \
             securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"main\" must set \
             securityContext.runAsNonRoot=true), seccompProfile (pod or container \"main\" must set \
             securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
        ),
    ] {
        let client = admin();
        label(&client, &[("enforce", level)]).await;
        let reply = client.post(PODS, &body).await;
        if why.is_empty() {
            reply.ok(201);
            continue;
        }
        let (code, _, message) = reply.refusal();
        let expected = format!("pods \"x\" is forbidden: violates PodSecurity \"{level}:latest\": {why}");
        assert_eq!((code, message), (403, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn templates_are_warned_of_and_versions_are_kept() {
    let client = admin();
    label(&client, &[("enforce", "restricted"), ("enforce-version", "v1.7")]).await;
    let reply = client.post(DEPLOYMENTS, &deployment("d")).await;
    reply.ok(201);
    let warnings = reply.warnings();
    let expected = "299 - \"would violate PodSecurity \\\"restricted:v1.7\\\": runAsNonRoot != true";
    assert!(warnings.iter().any(|warning| warning.starts_with(expected)), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_becomes_stricter_warns_of_its_pods_and_refuses_unknown_levels() {
    let client = admin();
    for name in ["a", "b"] {
        client.create(PODS, &pod(name)).await;
    }
    let warnings = label(&client, &[("enforce", "restricted")]).await;
    assert!(warnings[0].contains("existing pods in namespace"), "{warnings:?}");
    assert!(warnings[1].contains("a (and 1 other pod): allowPrivilegeEscalation != false"), "{warnings:?}");
    let wrong =
        json!({"metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": "strict"}}});
    let reply = client.post(NAMESPACES, &wrong).await;
    assert_eq!(reply.status, 422);
    assert!(reply.json().message().ends_with("must be one of privileged, baseline, restricted"));
}
