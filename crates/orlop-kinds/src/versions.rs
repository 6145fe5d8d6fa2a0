//! Kinds that are served in several versions or groups: one object, two spellings.

use serde_json::{Map, Value, json};

/// An object in another version of its kind. Kinds that look the same in both change their `apiVersion` only.
pub fn to_version(object: &Value, api_version: &str) -> Value {
    let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let mut converted = match (kind, from, api_version) {
        ("Event", "v1", "events.k8s.io/v1") => rename(object, EVENT_FIELDS, false),
        ("Event", "events.k8s.io/v1", "v1") => rename(object, EVENT_FIELDS, true),
        ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1") => autoscaler_v1(object),
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2") => autoscaler_v2(object),
        _ => object.clone(),
    };
    converted["apiVersion"] = api_version.into();
    converted
}

/// Fields of an Event in the core group and in `events.k8s.io`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Fields that the core group always shows, and those that `events.k8s.io` always shows.
const CORE_ALWAYS: &[&str] = &["source", "firstTimestamp", "lastTimestamp", "eventTime", "reportingComponent", "reportingInstance"];
const EVENTS_ALWAYS: &[&str] = &["eventTime", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "regarding"];

fn rename(object: &Value, fields: &[(&str, &str)], backwards: bool) -> Value {
    let Some(map) = object.as_object() else { return object.clone() };
    let renamed = map.iter().map(|(name, value)| {
        let found = fields.iter().find(|(core, events)| name == if backwards { events } else { core });
        let name = found.map_or(name.as_str(), |(core, events)| if backwards { core } else { events });
        (name.to_owned(), value.clone())
    });
    let mut out: Map<String, Value> = renamed.collect();
    let (always, never) = if backwards { (CORE_ALWAYS, EVENTS_ALWAYS) } else { (EVENTS_ALWAYS, CORE_ALWAYS) };
    for name in always {
        out.entry(*name).or_insert_with(|| match *name {
            "source" | "deprecatedSource" | "regarding" | "involvedObject" => json!({}),
            "reportingComponent" | "reportingInstance" => json!(""),
            _ => Value::Null,
        });
    }
    // What only the other spelling shows when it is empty goes again.
    out.retain(|name, value| always.contains(&name.as_str()) || !never.contains(&name.as_str()) || *value != json!(""));
    Value::Object(out)
}

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

/// v1 knows one metric, CPU; everything else travels in annotations.
fn autoscaler_v1(object: &Value) -> Value {
    let mut out = object.clone();
    let is_cpu = |metric: &Value| {
        metric["type"] == "Resource"
            && metric["resource"]["name"] == "cpu"
            && metric["resource"]["target"].get("averageUtilization").is_some()
    };
    let metrics = take_list(&mut out["spec"], "metrics");
    let (cpu, others): (Vec<Value>, Vec<Value>) = metrics.into_iter().partition(is_cpu);
    if let Some(first) = cpu.first() {
        out["spec"]["targetCPUUtilizationPercentage"] = first["resource"]["target"]["averageUtilization"].clone();
    }
    let others: Vec<Value> = others.into_iter().chain(cpu.into_iter().skip(1)).collect();
    annotate(&mut out, METRICS, others);
    if let Some(behavior) = out["spec"].as_object_mut().and_then(|spec| spec.remove("behavior")) {
        let text = internal_text(&behavior);
        out["metadata"]["annotations"][BEHAVIOR] = text.into();
    }
    let mut status = out.get("status").cloned().unwrap_or_else(|| json!({}));
    let current = take_list(&mut status, "currentMetrics");
    let (cpu, others): (Vec<Value>, Vec<Value>) = current.into_iter().partition(|metric| {
        metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
    });
    if let Some(used) = cpu.first().and_then(|m| m["resource"]["current"].get("averageUtilization")) {
        status["currentCPUUtilizationPercentage"] = used.clone();
    }
    annotate(&mut out, CURRENT, cpu.into_iter().chain(others).collect());
    let conditions = take_list(&mut status, "conditions");
    annotate(&mut out, CONDITIONS, conditions);
    for field in ["currentReplicas", "desiredReplicas"] {
        if status.get(field).is_none() {
            status[field] = 0.into();
        }
    }
    if let Some(status) = status.as_object_mut() {
        status.remove("currentMetrics");
    }
    out["status"] = status;
    out
}

fn autoscaler_v2(object: &Value) -> Value {
    let mut out = object.clone();
    let mut annotations = out["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let mut unpack = |name: &str| -> Option<Value> {
        let text = annotations.remove(name)?;
        serde_json::from_str(text.as_str()?).ok()
    };
    let mut metrics: Vec<Value> = unpack(METRICS).and_then(|m| m.as_array().cloned()).unwrap_or_default();
    let (behavior, conditions, current) = (unpack(BEHAVIOR), unpack(CONDITIONS), unpack(CURRENT));
    if let Some(target) = out["spec"].as_object_mut().and_then(|spec| spec.remove("targetCPUUtilizationPercentage")) {
        metrics.insert(0, json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target},
        }}));
    }
    if !metrics.is_empty() {
        out["spec"]["metrics"] = Value::Array(metrics);
    }
    if let Some(behavior) = behavior {
        out["spec"]["behavior"] = behavior;
    }
    if let Some(meta) = out["metadata"].as_object_mut() {
        if annotations.is_empty() {
            meta.remove("annotations");
        } else {
            meta.insert("annotations".to_owned(), Value::Object(annotations));
        }
    }
    let mut status = out.get("status").cloned().unwrap_or_else(|| json!({}));
    let used = status.as_object_mut().and_then(|status| status.remove("currentCPUUtilizationPercentage"));
    status["currentMetrics"] = match (current, used) {
        (Some(current), _) => current,
        (None, Some(used)) => json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]),
        (None, None) => Value::Null,
    };
    if let Some(conditions) = conditions {
        status["conditions"] = conditions;
    }
    if let Some(status) = status.as_object_mut()
        && status.get("currentReplicas") == Some(&json!(0))
    {
        status.remove("currentReplicas");
    }
    out["status"] = status;
    out
}

fn take_list(holder: &mut Value, field: &str) -> Vec<Value> {
    let taken = holder.as_object_mut().and_then(|map| map.remove(field));
    taken.and_then(|list| list.as_array().cloned()).unwrap_or_default()
}

fn annotate(object: &mut Value, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object["metadata"]["annotations"][name] = Value::Array(list).to_string().into();
    }
}

fn internal_text(value: &Value) -> String {
    value.to_string()
}
