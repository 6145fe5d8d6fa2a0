//! Fields behind feature gates that are off by default: dropped, unless the old object already uses them.

use super::Object;
use serde_json::Value;

/// Where the pod spec of a kind is.
const POD_SPECS: &[(&str, &str, &str)] = &[
    ("", "Pod", "spec"),
    ("", "PodTemplate", "template.spec"),
    ("", "ReplicationController", "spec.template.spec"),
    ("apps", "DaemonSet", "spec.template.spec"),
    ("apps", "Deployment", "spec.template.spec"),
    ("apps", "ReplicaSet", "spec.template.spec"),
    ("apps", "StatefulSet", "spec.template.spec"),
    ("batch", "CronJob", "spec.jobTemplate.spec.template.spec"),
    ("batch", "Job", "spec.template.spec"),
];

/// Gated fields of a pod spec; `[]` stands for every item of a list.
const OF_POD_SPECS: &[&str] = &[
    "containers[].lifecycle.stopSignal",
    "initContainers[].lifecycle.stopSignal",
    "ephemeralContainers[].lifecycle.stopSignal",
    "volumes[].projected.sources[].clusterTrustBundle",
    "volumes[].projected.sources[].podCertificate",
    "schedulingGroup",
];

/// Gated fields of other kinds.
const OF_KINDS: &[(&str, &str, &str)] = &[
    ("apps", "StatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable"),
    ("coordination.k8s.io", "Lease", "spec.strategy"),
    ("coordination.k8s.io", "Lease", "spec.preferredHolder"),
    ("resource.k8s.io", "ResourceSlice", "spec.devices[].nodeAllocatableResourceMappings"),
    ("storage.k8s.io", "CSIDriver", "spec.preventPodSchedulingIfMissing"),
];

pub(super) fn drop_disabled(group: &str, kind: &str, object: &mut Object, old: Option<&Object>) {
    for (g, k, path) in OF_KINDS {
        if (*g, *k) == (group, kind) {
            drop_unless_used(object, old, path);
        }
    }
    let Some((_, _, spec)) = POD_SPECS.iter().find(|(g, k, _)| (*g, *k) == (group, kind)) else { return };
    for path in OF_POD_SPECS {
        drop_unless_used(object, old, &format!("{spec}.{path}"));
    }
}

fn drop_unless_used(object: &mut Object, old: Option<&Object>, path: &str) {
    if !old.is_some_and(|old| uses(old, path)) {
        remove(object, path);
    }
}

fn uses(object: &Object, path: &str) -> bool {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match (head.strip_suffix("[]"), object.get(head.trim_end_matches("[]"))) {
        (Some(_), Some(Value::Array(items))) => {
            items.iter().filter_map(Value::as_object).any(|item| uses(item, rest))
        }
        (None, Some(value)) if rest.is_empty() => !value.is_null(),
        (None, Some(Value::Object(child))) => uses(child, rest),
        _ => false,
    }
}

fn remove(object: &mut Object, path: &str) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.is_empty() {
        object.remove(head);
        return;
    }
    match object.get_mut(head.trim_end_matches("[]")) {
        Some(Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| remove(item, rest));
        }
        Some(Value::Object(child)) => remove(child, rest),
        _ => {}
    }
}
