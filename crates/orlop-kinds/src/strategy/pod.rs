//! Pods: phase, quality of service, scheduling gates, label keys in selectors, and the pod's subresources.

use super::{Object, STATUS_METADATA, copy, copy_metadata};
use orlop_schema::quantity::{Format, Quantity};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn create(pod: &mut Object, now: &str) {
    let class = quality_of_service(pod);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    let gated = pod.get("spec").and_then(|s| s.get("schedulingGates")).and_then(Value::as_array);
    if gated.is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".to_owned(), status);
    apply_label_keys(pod);
    apply_app_armor_annotations(pod);
}

pub(super) fn grace_period(pod: &Value, requested: Option<i64>) -> i64 {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if ended || pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return 0;
    }
    let own = || pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
    let period = requested.unwrap_or_else(own);
    if period < 0 { 1 } else { period }
}

/// A kubelet writes status; what it leaves out of status is kept where forgetting it would mislead.
pub(super) fn update_status(pod: &mut Object, old: &Object) {
    copy(pod, old, "spec");
    copy_metadata(pod, old, &["ownerReferences", "deletionTimestamp"]);
    let Some(Value::Object(before)) = old.get("status") else { return };
    let Value::Object(status) = pod.entry("status").or_insert_with(|| json!({})) else { return };
    for key in ["qosClass", "observedGeneration"] {
        if let Some(value) = before.get(key) {
            status.entry(key).or_insert_with(|| value.clone());
        }
    }
    let mut generations: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for condition in list(before, "conditions") {
        let ty = condition["type"].as_str().unwrap_or_default().to_owned();
        generations.entry(ty).or_default().push(condition["observedGeneration"].clone());
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        let ty = condition.get("type").and_then(Value::as_str).unwrap_or_default();
        let known = generations.get_mut(ty).filter(|known| !known.is_empty());
        if let Some(generation) = known.map(|known| known.remove(0))
            && !generation.is_null()
        {
            condition.entry("observedGeneration").or_insert(generation);
        }
    }
}

pub(super) fn update_ephemeral_containers(pod: &mut Object, old: &Object) {
    let containers = pod.get("spec").and_then(|s| s.get("ephemeralContainers")).cloned();
    keep_but_metadata(pod, old);
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        match containers {
            Some(containers) => spec.insert("ephemeralContainers".to_owned(), containers),
            None => spec.remove("ephemeralContainers"),
        };
    }
}

/// Only resources and resize policies change; a different set of containers is left for validation to refuse.
pub(super) fn update_resources(pod: &mut Object, old: &Object) {
    let (Some(Value::Object(spec)), Some(Value::Object(old_spec))) = (pod.get("spec"), old.get("spec"))
    else {
        return;
    };
    let mut merged = old_spec.clone();
    for key in ["containers", "initContainers"] {
        let (new, before) = (list(spec, key), list(old_spec, key));
        if new.len() != before.len() {
            return;
        }
        let same_names = new.iter().zip(before).all(|(a, b)| a["name"] == b["name"]);
        let containers: Vec<Value> = if same_names {
            new.iter().zip(before).map(|(new, old)| with_resources(new, old)).collect()
        } else {
            new.to_vec()
        };
        if !containers.is_empty() {
            merged.insert(key.to_owned(), Value::Array(containers));
        }
    }
    match spec.get("resources") {
        Some(resources) => merged.insert("resources".to_owned(), resources.clone()),
        None => merged.remove("resources"),
    };
    keep_but_metadata(pod, old);
    pod.insert("spec".to_owned(), Value::Object(merged));
}

fn with_resources(new: &Value, old: &Value) -> Value {
    let mut container = old.clone();
    if let (Value::Object(container), Value::Object(new)) = (&mut container, new) {
        copy(container, new, "resources");
        copy(container, new, "resizePolicy");
    }
    container
}

fn keep_but_metadata(pod: &mut Object, old: &Object) {
    copy(pod, old, "spec");
    copy(pod, old, "status");
    copy_metadata(pod, old, STATUS_METADATA);
}

fn list<'a>(object: &'a Object, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Label keys named by affinity terms and spread constraints become part of their selectors.
fn apply_label_keys(pod: &mut Object) {
    let labels = pod.get("metadata").and_then(|m| m.get("labels")).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|a| a.get_mut(kind)) else { continue };
        let preferred = affinity.get_mut("preferredDuringSchedulingIgnoredDuringExecution");
        for weighted in preferred.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                extend_selector(term, &labels, &[("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]);
            }
        }
        let required = affinity.get_mut("requiredDuringSchedulingIgnoredDuringExecution");
        for term in required.and_then(Value::as_array_mut).into_iter().flatten() {
            extend_selector(term, &labels, &[("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]);
        }
    }
    let constraints = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut);
    for constraint in constraints.into_iter().flatten() {
        extend_selector(constraint, &labels, &[("matchLabelKeys", "In")]);
    }
}

fn extend_selector(term: &mut Value, labels: &Value, keys: &[(&str, &str)]) {
    let mut requirements = Vec::new();
    for (field, operator) in keys {
        for key in term.get(field).and_then(Value::as_array).into_iter().flatten() {
            if let Some(value) = key.as_str().and_then(|key| labels.get(key)) {
                requirements.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if let Some(Value::Object(selector)) = term.get_mut("labelSelector")
        && !requirements.is_empty()
        && let Value::Array(expressions) = selector.entry("matchExpressions").or_insert_with(|| json!([]))
    {
        expressions.extend(requirements);
    }
}

/// A profile that is only given by the old annotation is written into the container's security context.
fn apply_app_armor_annotations(pod: &mut Object) {
    let annotations = pod.get("metadata").and_then(|m| m.get("annotations")).cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    if spec.get("os").is_some_and(|os| os["name"] == "windows") {
        return;
    }
    let of_pod = spec.get("securityContext").and_then(|c| c.get("appArmorProfile")).cloned();
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let annotation = &annotations[format!("container.apparmor.security.beta.kubernetes.io/{name}")];
            let Some(profile) = annotation.as_str().and_then(app_armor_profile) else { continue };
            if of_pod.as_ref() == Some(&profile) {
                continue;
            }
            let context = container.entry("securityContext").or_insert_with(|| json!({}));
            if let Value::Object(context) = context {
                context.entry("appArmorProfile").or_insert(profile);
            }
        }
    }
}

fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        local => {
            let profile = local.strip_prefix("localhost/").filter(|profile| !profile.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": profile}))
        }
    }
}

type Amounts = BTreeMap<String, Quantity>;

/// `Guaranteed` when every container limits cpu and memory to what it requests, `BestEffort` when none asks for
/// anything, `Burstable` otherwise. A class that is already set stays.
fn quality_of_service(pod: &Object) -> String {
    if let Some(class) = pod.get("status").and_then(|s| s.get("qosClass")).and_then(Value::as_str)
        && !class.is_empty()
    {
        return class.to_owned();
    }
    let Some(Value::Object(spec)) = pod.get("spec") else { return "BestEffort".to_owned() };
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut guaranteed = true;
    if let Some(resources) = spec.get("resources").filter(|r| !r.is_null()) {
        requests = positive(resources, "requests");
        limits = positive(resources, "limits");
        let given = resources.get("limits").and_then(Value::as_object).is_some_and(|l| !l.is_empty());
        guaranteed = !given || limits.len() == 2;
    } else {
        for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
            let own = positive(&container["resources"], "limits");
            guaranteed &= own.len() == 2;
            add(&mut limits, own);
            add(&mut requests, positive(&container["resources"], "requests"));
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort".to_owned();
    }
    let class = if guaranteed && requests == limits { "Guaranteed" } else { "Burstable" };
    class.to_owned()
}

/// The positive amounts of cpu and memory, which alone decide.
fn positive(resources: &Value, key: &str) -> Amounts {
    let list = resources.get(key).and_then(Value::as_object);
    let zero = Quantity::whole(0, Format::DecimalSi);
    list.into_iter()
        .flatten()
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
        .filter_map(|(name, text)| Some((name.clone(), Quantity::parse(text.as_str()?).ok()?)))
        .filter(|(_, quantity)| *quantity > zero)
        .collect()
}

fn add(to: &mut Amounts, more: Amounts) {
    for (name, quantity) in more {
        let sum = to.get(&name).map_or_else(|| quantity.clone(), |have| have.plus(&quantity));
        to.insert(name, sum);
    }
}
