//! Namespaces, volumes, claims, accounts, slices, definitions and signing requests.

use super::{Object, copy};
use serde_json::{Value, json};

pub(super) fn create_namespace(namespace: &mut Object) {
    namespace.insert("status".to_owned(), json!({"phase": "Active"}));
    if let Value::Object(spec) = namespace.entry("spec").or_insert_with(|| json!({}))
        && let Value::Array(finalizers) = spec.entry("finalizers").or_insert_with(|| json!([]))
        && !finalizers.iter().any(|f| f == "kubernetes")
    {
        finalizers.push(json!("kubernetes"));
    }
    name_label(namespace);
}

/// A namespace is labelled with its name, also when the name was generated.
pub(super) fn name_label(namespace: &mut Object) {
    if let Some(Value::Object(metadata)) = namespace.get_mut("metadata")
        && let Some(name) = metadata.get("name").cloned()
        && let Value::Object(labels) = metadata.entry("labels").or_insert_with(|| json!({}))
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

pub(super) fn create_volume(volume: &mut Object, now: &str) {
    volume.insert("status".to_owned(), json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
}

pub(super) fn update_volume_status(volume: &mut Object, old: &Object, now: &str) {
    const TIME: &str = "lastPhaseTransitionTime";
    let before = old.get("status").cloned().unwrap_or_default();
    let Some(Value::Object(status)) = volume.get_mut("status") else { return };
    let given = status.get(TIME).filter(|time| !time.is_null());
    if status.get("phase") != before.get("phase") {
        if given.is_none() || given == before.get(TIME) {
            status.insert(TIME.to_owned(), json!(now));
        }
    } else if let (None, Some(time)) = (given, before.get(TIME)) {
        status.insert(TIME.to_owned(), time.clone());
    }
}

pub(super) fn create_claim(claim: &mut Object) {
    claim.insert("status".to_owned(), json!({"phase": "Pending"}));
    prepare_sources(claim, None);
}

/// A claim names its source in two fields that agree. Sources in other namespaces are behind a feature gate, and
/// the older field means only claims and snapshots, unless the old object already had something else there.
pub(super) fn prepare_sources(claim: &mut Object, old: Option<&Object>) {
    let had = |key: &str| {
        old.and_then(|old| old.get("spec")).and_then(|s| s.get(key)).is_some_and(Value::is_object)
    };
    let Some(Value::Object(spec)) = claim.get_mut("spec") else { return };
    let elsewhere = |source: &Value| source["namespace"].as_str().is_some_and(|name| !name.is_empty());
    if spec.get("dataSourceRef").is_some_and(elsewhere) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let given = |spec: &Object, key: &str| spec.get(key).filter(|source| source.is_object()).cloned();
    let classic = |source: &Value| {
        matches!(
            (source["apiGroup"].as_str().unwrap_or_default(), source["kind"].as_str().unwrap_or_default()),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    };
    if given(spec, "dataSourceRef").is_none()
        && !had("dataSource")
        && !spec.get("dataSource").is_some_and(classic)
    {
        spec.remove("dataSource");
    }
    match (given(spec, "dataSource"), given(spec, "dataSourceRef")) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut source)) if !elsewhere(&source) => {
            if let Value::Object(source) = &mut source {
                source.remove("namespace");
                source.entry("apiGroup").or_insert(Value::Null);
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// Only the names of an account's secrets are kept.
pub(super) fn clean_secret_references(account: &mut Object) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
        secret.retain(|key, _| key == "name");
    }
}

/// The storage version is among the stored versions.
pub(super) fn store_versions(definition: &mut Object) {
    let versions = definition.get("spec").and_then(|s| s.get("versions")).and_then(Value::as_array);
    let stored = versions.into_iter().flatten().find(|v| v["storage"] == true).map(|v| v["name"].clone());
    let Some(stored) = stored else { return };
    let Value::Object(status) = definition.entry("status").or_insert_with(|| json!({})) else { return };
    let list = status.entry("storedVersions").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    if let Value::Array(list) = list
        && !list.contains(&stored)
    {
        list.push(stored);
    }
}

/// The stable version of endpoint slices has no place for the topology of older ones.
pub(super) fn drop_topology(slice: &mut Object) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

/// Taints of devices say since when; this is a default in Kubernetes, and the only one that needs a clock.
pub(super) fn stamp_taints(slice: &mut Object, now: &str) {
    let devices = slice.get_mut("spec").and_then(|s| s.get_mut("devices")).and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten().filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| json!(now));
        }
    }
}

/// A service that the server itself answers is available at once.
pub(super) fn create_api_service(service: &mut Object, now: &str) {
    let local = service.get("spec").and_then(|s| s.get("service")).is_none_or(Value::is_null);
    if local {
        service.insert(
            "status".to_owned(),
            json!({"conditions": [{
                "type": "Available",
                "status": "True",
                "reason": "Local",
                "message": "Local APIServices are always available",
                "lastTransitionTime": now,
            }]}),
        );
    }
}

/// Who asks for a certificate is what the server knows, not what the request says.
pub(super) fn create_signing_request(request: &mut Object, user: Option<&Value>) {
    if let Some(Value::Object(spec)) = request.get_mut("spec") {
        for key in ["username", "uid", "groups", "extra"] {
            spec.remove(key);
            let known = user.and_then(|user| user.get(key)).filter(|value| !is_empty(value));
            if let Some(value) = known {
                spec.insert(key.to_owned(), value.clone());
            }
        }
    }
    request.insert("status".to_owned(), json!({}));
}

pub(super) fn update_signing_request(request: &mut Object, old: &Object, sub: Option<&str>, now: &str) {
    copy(request, old, "spec");
    let before: Vec<Value> = conditions(old).to_vec();
    let mut given: Vec<Value> = conditions(request).to_vec();
    match sub {
        None => return copy(request, old, "status"),
        Some("approval") => copy(request, old, "status"),
        Some(_) => {
            // Whether a request was approved is not for the signer to say.
            for ty in ["Approved", "Denied"] {
                given.retain(|condition| condition["type"] != ty);
            }
            let decided = before.iter().filter(|c| c["type"] == "Approved" || c["type"] == "Denied");
            given = decided.cloned().chain(given).collect();
        }
    }
    for condition in given.iter_mut().filter_map(Value::as_object_mut) {
        stamp(condition, &before, now);
    }
    if let Value::Object(status) = request.entry("status").or_insert_with(|| json!({})) {
        if given.is_empty() {
            status.remove("conditions");
        } else {
            status.insert("conditions".to_owned(), Value::Array(given));
        }
    }
}

/// A condition gets the times it lacks: when it was written, and when its status last changed.
fn stamp(condition: &mut Object, before: &[Value], now: &str) {
    let unset = |condition: &Object, key: &str| condition.get(key).is_none_or(Value::is_null);
    if unset(condition, "lastUpdateTime") {
        condition.insert("lastUpdateTime".to_owned(), json!(now));
    }
    if unset(condition, "lastTransitionTime") {
        let same = before
            .iter()
            .find(|old| {
                old.get("type") == condition.get("type") && old.get("status") == condition.get("status")
            })
            .and_then(|old| old.get("lastTransitionTime"))
            .filter(|time| !time.is_null());
        condition.insert("lastTransitionTime".to_owned(), same.cloned().unwrap_or_else(|| json!(now)));
    }
}

fn conditions(request: &Object) -> &[Value] {
    let list = request.get("status").and_then(|s| s.get("conditions")).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
