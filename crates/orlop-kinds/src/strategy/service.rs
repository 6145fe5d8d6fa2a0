//! Services: fields that only some types have go when the type changes and the writer left them as they were.

use super::Object;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn drop_type_dependent(service: &mut Object, old: &Object) {
    let empty = Object::new();
    let before = old.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    let (ty, old_ty) = (text(spec, "type").to_owned(), text(before, "type").to_owned());
    if old_ty != "ExternalName" && ty == "ExternalName" {
        if same(spec, before, "clusterIP") && same(spec, before, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            remove_if_same(spec, before, key);
        }
    }
    if has_node_ports(&old_ty) && !has_node_ports(&ty) && node_ports(before).is_superset(&node_ports(spec)) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    if has_health_check(before) && !has_health_check(spec) {
        remove_if_same(spec, before, "healthCheckNodePort");
    }
    if old_ty == "LoadBalancer" && ty != "LoadBalancer" {
        remove_if_same(spec, before, "allocateLoadBalancerNodePorts");
        remove_if_same(spec, before, "loadBalancerClass");
    }
    if is_externally_accessible(before) && !is_externally_accessible(spec) {
        remove_if_same(spec, before, "externalTrafficPolicy");
    }
    if ty != "LoadBalancer"
        && let Some(Value::Object(status)) = service.get_mut("status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

fn text<'a>(spec: &'a Object, key: &str) -> &'a str {
    spec.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn same(spec: &Object, before: &Object, key: &str) -> bool {
    spec.get(key) == before.get(key)
}

fn remove_if_same(spec: &mut Object, before: &Object, key: &str) {
    if same(spec, before, key) {
        spec.remove(key);
    }
}

fn has_node_ports(ty: &str) -> bool {
    matches!(ty, "NodePort" | "LoadBalancer")
}

fn node_ports(spec: &Object) -> BTreeSet<i64> {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports
        .into_iter()
        .flatten()
        .filter_map(|port| port["nodePort"].as_i64())
        .filter(|port| *port != 0)
        .collect()
}

fn has_health_check(spec: &Object) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn is_externally_accessible(spec: &Object) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty()),
        _ => false,
    }
}
