//! Defaults that depend on other fields. Each runs after the constants of its type.

use super::{Object, Rule, image, is_zero, pod};
use serde_json::{Value, json};

/// Type (without `io.k8s.api.` where it has that prefix) and rule.
pub(super) const COMPUTED: &[(&str, Rule)] = &[
    ("apps.v1.DeploymentSpec", deployment_strategy),
    ("apps.v1.DaemonSetSpec", daemon_set_strategy),
    ("apps.v1.StatefulSetSpec", stateful_set_strategy),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", autoscaler),
    ("batch.v1.Job", job),
    ("core.v1.Container", pull_policy),
    ("core.v1.EphemeralContainer", pull_policy),
    ("core.v1.LimitRangeItem", limit_range_item),
    ("core.v1.Namespace", namespace),
    ("core.v1.NodeStatus", node_status),
    ("core.v1.Pod", pod::pod),
    ("core.v1.ReplicationController", replication_controller),
    ("core.v1.Service", service),
    ("core.v1.ServicePort", target_port),
    ("core.v1.Volume", volume),
    ("networking.v1.NetworkPolicySpec", policy_types),
    ("rbac.v1.Subject", subject),
    ("resource.v1.Device", device),
    ("resource.v1.DeviceSubRequest", device_count),
    ("resource.v1.ExactDeviceRequest", device_count),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", definition),
];

/// The text of a field, empty when it is not set.
pub(super) fn text<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is absent or null.
pub(super) fn unset(map: &Object, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

/// Sets a field that is absent or null.
pub(super) fn set_if_unset(map: &mut Object, key: &str, value: Value) {
    if unset(map, key) {
        map.insert(key.to_owned(), value);
    }
}

/// The object in a field.
pub(super) fn object<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// The object in a field, made when it is not there.
fn object_or_new<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    set_if_unset(map, key, json!({}));
    object(map, key)
}

fn deployment_strategy(spec: &mut Object) {
    let Some(strategy) = object(spec, "strategy") else { return };
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_or_new(strategy, "rollingUpdate")
    {
        set_if_unset(rolling, "maxUnavailable", json!("25%"));
        set_if_unset(rolling, "maxSurge", json!("25%"));
    }
}

fn daemon_set_strategy(spec: &mut Object) {
    let Some(strategy) = object(spec, "updateStrategy") else { return };
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_or_new(strategy, "rollingUpdate")
    {
        set_if_unset(rolling, "maxUnavailable", json!(1));
        set_if_unset(rolling, "maxSurge", json!(0));
    }
}

/// A type that is given does not bring a rolling update with it, unlike one that is not.
fn stateful_set_strategy(spec: &mut Object) {
    let Some(strategy) = object(spec, "updateStrategy") else { return };
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        set_if_unset(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object(strategy, "rollingUpdate")
    {
        set_if_unset(rolling, "partition", json!(0));
    }
}

fn autoscaler(spec: &mut Object) {
    if spec.get("metrics").is_none_or(is_zero) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    let Some(behavior) = object(spec, "behavior") else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if let Some(up) = object_or_new(behavior, "scaleUp") {
        set_if_unset(up, "stabilizationWindowSeconds", json!(0));
        set_if_unset(up, "selectPolicy", json!("Max"));
        set_if_unset(up, "policies", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent]));
    }
    if let Some(down) = object_or_new(behavior, "scaleDown") {
        set_if_unset(down, "selectPolicy", json!("Max"));
        set_if_unset(down, "policies", json!([percent]));
    }
}

fn job(job: &mut Object) {
    let labels = job.get("spec").and_then(|s| s.pointer("/template/metadata/labels")).cloned();
    if let Some(spec) = object(job, "spec") {
        if unset(spec, "completions") && unset(spec, "parallelism") {
            spec.insert("completions".to_owned(), json!(1));
        }
        set_if_unset(spec, "parallelism", json!(1));
        let limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
        set_if_unset(spec, "backoffLimit", json!(limit));
        let policy = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
        set_if_unset(spec, "podReplacementPolicy", json!(policy));
    }
    labels_from_template(job, labels);
}

fn replication_controller(controller: &mut Object) {
    let labels = controller.get("spec").and_then(|s| s.pointer("/template/metadata/labels")).cloned();
    if let (Some(labels), Some(spec)) = (&labels, object(controller, "spec"))
        && spec.get("selector").is_none_or(is_zero)
    {
        spec.insert("selector".to_owned(), labels.clone());
    }
    labels_from_template(controller, labels);
}

fn labels_from_template(owner: &mut Object, labels: Option<Value>) {
    if let (Some(labels), Some(metadata)) = (labels, object(owner, "metadata"))
        && metadata.get("labels").is_none_or(is_zero)
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn pull_policy(container: &mut Object) {
    let policy = image::pull_policy(text(container, "image"));
    set_if_unset(container, "imagePullPolicy", json!(policy));
}

fn limit_range_item(item: &mut Object) {
    if text(item, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(Value::Object(from)) = item.get(from).cloned() else { continue };
        if let Some(to) = object_or_new(item, to) {
            for (name, quantity) in from {
                to.entry(name).or_insert(quantity);
            }
        }
    }
}

fn namespace(namespace: &mut Object) {
    let Some(metadata) = object(namespace, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = object_or_new(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

fn node_status(status: &mut Object) {
    if let Some(capacity) = status.get("capacity").cloned() {
        set_if_unset(status, "allocatable", capacity);
    }
}

fn service(service: &mut Object) {
    let Some(spec) = object(service, "spec") else { return };
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP"
            if spec
                .get("sessionAffinityConfig")
                .and_then(|c| c.pointer("/clientIP/timeoutSeconds"))
                .is_none() =>
        {
            spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        _ => {}
    }
    let ty = text(spec, "type").to_owned();
    let external_ips = spec.get("externalIPs").is_some_and(|ips| !is_zero(ips));
    let externally = match ty.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => external_ips,
        _ => false,
    };
    if externally {
        set_if_unset(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if matches!(ty.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        set_if_unset(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if ty != "LoadBalancer" {
        return;
    }
    set_if_unset(spec, "allocateLoadBalancerNodePorts", json!(true));
    let ingress = service.get_mut("status").and_then(|s| s.pointer_mut("/loadBalancer/ingress"));
    for item in ingress.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
        if !text(item, "ip").is_empty() {
            set_if_unset(item, "ipMode", json!("VIP"));
        }
    }
}

fn target_port(port: &mut Object) {
    if port.get("targetPort").is_none_or(is_zero) {
        let number = port.get("port").cloned().unwrap_or(json!(0));
        port.insert("targetPort".to_owned(), number);
    }
}

/// A volume without a source is an empty directory.
fn volume(volume: &mut Object) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(source) = object(volume, "image") {
        let policy = image::pull_policy(text(source, "reference"));
        set_if_unset(source, "pullPolicy", json!(policy));
    }
}

fn policy_types(spec: &mut Object) {
    if spec.get("policyTypes").is_none_or(is_zero) {
        let egress = spec.get("egress").is_some_and(|rules| !is_zero(rules));
        let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}

fn subject(subject: &mut Object) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        set_if_unset(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
    }
}

fn device_count(request: &mut Object) {
    if text(request, "allocationMode") == "ExactCount" {
        set_if_unset(request, "count", json!(1));
    }
}

fn device(device: &mut Object) {
    let mappings = object(device, "nodeAllocatableResourceMappings");
    for mapping in mappings.into_iter().flatten().filter_map(|(_, m)| m.as_object_mut()) {
        set_if_unset(mapping, "allocationMultiplier", json!("1"));
    }
}

fn definition(definition: &mut Object) {
    let mut stored = None;
    if let Some(spec) = object(definition, "spec") {
        if let Some(names) = object(spec, "names") {
            let kind = text(names, "kind").to_owned();
            if text(names, "singular").is_empty() && !kind.is_empty() {
                names.insert("singular".to_owned(), json!(kind.to_lowercase()));
            }
            if text(names, "listKind").is_empty() && !kind.is_empty() {
                names.insert("listKind".to_owned(), json!(format!("{kind}List")));
            }
        }
        let versions = spec.get("versions").and_then(Value::as_array);
        stored = versions.into_iter().flatten().find(|v| v["storage"] == true).map(|v| v["name"].clone());
    }
    if let (Some(stored), Some(status)) = (stored, object(definition, "status"))
        && status.get("storedVersions").is_none_or(is_zero)
    {
        status.insert("storedVersions".to_owned(), json!([stored]));
    }
}
