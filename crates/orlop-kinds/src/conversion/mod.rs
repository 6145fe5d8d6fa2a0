//! What the trip through the internal version does to an object: twin fields agree, write-only fields go.
//!
//! Kubernetes converts every object to an unversioned form and back. For most kinds nothing changes; the rows
//! below are the exceptions. Values are expected decoded and defaulted. Two kinds are served in two versions
//! with one store behind them; [`to_version`] turns one into the other.

mod autoscaler;
mod event;

use crate::catalog::{Shape, TypeId, catalog};
use crate::codec::{self, base64};
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;
type Conversion = fn(&mut Object);

/// Type (without `io.k8s.api.`) and what conversion does to its values.
const CONVERSIONS: &[(&str, Conversion)] = &[
    ("core.v1.PodSpec", service_account),
    ("core.v1.Pod", pod),
    ("core.v1.PodStatus", pod_ips),
    ("core.v1.NodeSpec", pod_cidrs),
    ("core.v1.Secret", string_data),
    ("apps.v1.StatefulSetSpec", claim_templates),
    ("apps.v1.DeploymentStrategy", |map| rolling(map, &["maxSurge", "maxUnavailable"])),
    ("apps.v1.DaemonSetUpdateStrategy", |map| rolling(map, &["maxSurge", "maxUnavailable"])),
    ("apps.v1.StatefulSetUpdateStrategy", |map| rolling(map, &["partition"])),
    ("apps.v1.DaemonSet", daemon_set),
    ("autoscaling.v1.HorizontalPodAutoscaler", through_v2),
];

/// Converts a value of a type to the internal version and back.
pub fn convert(ty: TypeId, value: &mut Value) {
    let catalog = catalog();
    if value.is_null() {
        return;
    }
    let model = catalog.get(ty).model;
    if let (Some(name), Value::Object(map)) = (model.strip_prefix("io.k8s.api."), &mut *value)
        && let Some((_, conversion)) = CONVERSIONS.iter().find(|(row, _)| *row == name)
    {
        conversion(map);
    }
    match (&catalog.get(ty).shape, value) {
        (Shape::Pointer(inner), value) => convert(*inner, value),
        (Shape::Struct(owner), Value::Object(map)) => {
            for (name, child) in map {
                match owner.field(name) {
                    Some(field) if child.is_object() || child.is_array() => convert(field.ty, child),
                    _ => {}
                }
            }
        }
        (Shape::List(inner), Value::Array(items)) => items.iter_mut().for_each(|item| convert(*inner, item)),
        _ => {}
    }
}

/// Turns an object of one group-version into the same object of another; the groups and versions are those of
/// discovery. Does nothing for kinds that have only one. This is a trip of its own: [`convert`] is for objects
/// that come back in the version they came in.
pub fn to_version(kind: &str, from: (&str, &str), to: (&str, &str), value: &mut Value) {
    let Value::Object(object) = &mut *value else { return };
    match (kind, from, to) {
        ("Event", ("", _), ("events.k8s.io", _)) | ("Event", ("events.k8s.io", _), ("", _)) => {
            event::rename(object, to.0);
        }
        ("HorizontalPodAutoscaler", (_, "v1"), (_, "v2")) => autoscaler::to_v2(object),
        ("HorizontalPodAutoscaler", (_, "v2"), (_, "v1")) => autoscaler::to_v1(object),
        _ => return,
    }
    let api_version = if to.0.is_empty() { to.1.to_owned() } else { format!("{}/{}", to.0, to.1) };
    object.insert("apiVersion".to_owned(), json!(api_version));
    if let Some(decoded) =
        catalog().type_of(to.0, to.1, kind).and_then(|ty| codec::decode(ty, value.take()).ok())
    {
        *value = decoded.value;
    }
}

/// The annotation that carries the generation of a DaemonSet's template.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn text<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The deprecated name of the field always says the same as the current one, which wins.
fn service_account(spec: &mut Object) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = json!(name);
        spec.insert("serviceAccount".to_owned(), name.clone());
        spec.insert("serviceAccountName".to_owned(), name);
    }
}

fn pod(pod: &mut Object) {
    if let Some(grace) = pod.get_mut("spec").and_then(|s| s.get_mut("terminationGracePeriodSeconds"))
        && grace.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *grace = json!(1);
    }
    let Some(Value::Object(metadata)) = pod.get_mut("metadata") else { return };
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        for alpha_or_beta in ["alpha", "beta"] {
            for part in ["init-containers", "init-container-statuses"] {
                annotations.remove(&format!("pod.{alpha_or_beta}.kubernetes.io/{part}"));
            }
        }
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// A single field and a list whose first item it repeats; when they differ, the single field wins.
fn twin(map: &mut Object, single: &str, list: &str, wrap: fn(Value) -> Value, unwrap: fn(&Value) -> Value) {
    let first = map.get(list).and_then(|l| l.get(0)).map(unwrap);
    match (text(map, single), first) {
        ("", None) => {}
        ("", Some(first)) if first.as_str().is_some_and(|text| !text.is_empty()) => {
            map.insert(single.to_owned(), first);
        }
        ("", Some(_)) => {}
        (one, first) if first.as_ref().and_then(Value::as_str) != Some(one) => {
            let wrapped = wrap(json!(one));
            map.insert(list.to_owned(), json!([wrapped]));
        }
        _ => {}
    }
}

fn pod_ips(status: &mut Object) {
    twin(status, "podIP", "podIPs", |ip| json!({"ip": ip}), |item| item["ip"].clone());
}

fn pod_cidrs(spec: &mut Object) {
    twin(spec, "podCIDR", "podCIDRs", |cidr| cidr, Value::clone);
}

/// Plain strings become data; the field itself is never shown.
fn string_data(secret: &mut Object) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else { return };
    if strings.is_empty() {
        return;
    }
    let data = secret.entry("data").or_insert_with(|| json!({}));
    if let Value::Object(data) = data {
        for (key, text) in strings {
            data.insert(key, json!(base64::encode(text.as_str().unwrap_or_default().as_bytes())));
        }
    }
}

fn claim_templates(spec: &mut Object) {
    let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
        claim.insert("apiVersion".to_owned(), json!("v1"));
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
    }
}

/// The numbers of a rolling update are no pointers inside.
fn rolling(strategy: &mut Object, numbers: &[&str]) {
    if let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate") {
        for number in numbers {
            rolling.entry(*number).or_insert_with(|| json!(0));
        }
    }
}

fn daemon_set(daemon_set: &mut Object) {
    let Some(Value::Object(metadata)) = daemon_set.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| json!("0"));
    }
}

fn through_v2(autoscaler: &mut Object) {
    autoscaler::to_v2(autoscaler);
    autoscaler::to_v1(autoscaler);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_with_two_versions_are_one_object() {
        let hpa = ("autoscaling", "v2");
        let old = ("autoscaling", "v1");
        let mut object = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "d"},
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
                    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        let before = object.clone();
        to_version("HorizontalPodAutoscaler", hpa, old, &mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(
            object["metadata"]["annotations"],
            json!({
                "autoscaling.alpha.kubernetes.io/metrics":
                    r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5"}}]"#,
                "autoscaling.alpha.kubernetes.io/behavior":
                    r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#,
            })
        );
        to_version("HorizontalPodAutoscaler", old, hpa, &mut object);
        assert_eq!(object, before);
        let mut event = json!({"note": "n", "regarding": {"name": "a"}, "eventTime": null, "metadata": {}});
        to_version("Event", ("events.k8s.io", "v1"), ("", "v1"), &mut event);
        assert_eq!((&event["message"], &event["involvedObject"]), (&json!("n"), &json!({"name": "a"})));
        assert_eq!(event["reportingComponent"], "");
    }

    #[test]
    fn twin_fields_agree_and_write_only_fields_go() {
        for (kind, given, expected) in [
            ("Secret", json!({"stringData": {"a": "x"}}), json!({"data": {"a": "eA=="}})),
            (
                "Secret",
                json!({"stringData": {"a": "x"}, "data": {"a": "eXk=", "b": ""}}),
                json!({"data": {"a": "eA==", "b": ""}}),
            ),
            (
                "Pod",
                json!({"spec": {"serviceAccount": "a"}}),
                json!({"spec": {"serviceAccount": "a", "serviceAccountName": "a"}}),
            ),
            (
                "Pod",
                json!({"status": {"podIP": "1.1.1.1", "podIPs": [{"ip": "2.2.2.2"}]}}),
                json!({"status": {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}}),
            ),
            (
                "Node",
                json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}}),
                json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}),
            ),
        ] {
            let ty = catalog().type_of("", "v1", kind).expect(kind);
            let mut value = given.clone();
            convert(ty, &mut value);
            assert_eq!(value, expected, "{given}");
        }
    }
}
