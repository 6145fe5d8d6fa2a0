//! Autoscalers in `autoscaling/v1`: one number for cpu; everything else hides in annotations.
//!
//! The annotations are JSON in the field order of Go structs, and a behavior is even spelled with Go field
//! names, so they are written by hand here.

use super::Object;
use serde_json::{Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

const STATUS_FIELDS: [&str; 4] =
    ["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"];

/// `autoscaling/v2` to `v1`.
pub(super) fn to_v1(autoscaler: &mut Object) {
    drop_annotations(autoscaler);
    let spec = autoscaler.remove("spec").unwrap_or_default();
    let status = autoscaler.remove("status").unwrap_or_default();
    let mut old_spec = pick(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        list(&spec, "metrics").partition(|m| is_cpu_utilization(m));
    if let Some(percent) = cpu.first().map(|m| m["resource"]["target"]["averageUtilization"].clone()) {
        old_spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
    }
    let mut old_status = pick(&status, &STATUS_FIELDS);
    for metric in list(&status, "currentMetrics") {
        let percent = &metric["resource"]["current"]["averageUtilization"];
        if metric["type"] == "Resource" && metric["resource"]["name"] == "cpu" && !percent.is_null() {
            old_status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
        }
    }
    if !others.is_empty() {
        annotate(autoscaler, METRICS, array(others.into_iter().map(metric_spec)));
    }
    if list(&status, "currentMetrics").next().is_some() {
        annotate(autoscaler, CURRENT_METRICS, array(list(&status, "currentMetrics").map(metric_status)));
    }
    if let Some(behavior) = spec.get("behavior").filter(|b| !b.is_null()) {
        annotate(autoscaler, BEHAVIOR, write_behavior(behavior));
    }
    if list(&status, "conditions").next().is_some() {
        annotate(autoscaler, CONDITIONS, array(list(&status, "conditions").map(condition)));
    }
    autoscaler.insert("spec".to_owned(), Value::Object(old_spec));
    autoscaler.insert("status".to_owned(), Value::Object(old_status));
}

/// `autoscaling/v1` to `v2`.
pub(super) fn to_v2(autoscaler: &mut Object) {
    let hidden = |key: &str| -> Option<Value> {
        let annotations = autoscaler.get("metadata")?.get("annotations")?;
        serde_json::from_str(annotations.get(key)?.as_str()?).ok()
    };
    let (metrics, current) = (hidden(METRICS), hidden(CURRENT_METRICS));
    let (conditions, behavior) = (hidden(CONDITIONS), hidden(BEHAVIOR));
    drop_annotations(autoscaler);
    let spec = autoscaler.remove("spec").unwrap_or_default();
    let status = autoscaler.remove("status").unwrap_or_default();
    let mut new_spec = pick(&spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let mut all: Vec<Value> = metrics.iter().flat_map(items).map(read_metric_spec).collect();
    let percent = spec.get("targetCPUUtilizationPercentage").filter(|p| !p.is_null()).cloned();
    if percent.is_some() || all.is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": percent.unwrap_or(json!(80))});
        all.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    new_spec.insert("metrics".to_owned(), Value::Array(all));
    if let Some(behavior) = behavior.as_ref().and_then(read_behavior) {
        new_spec.insert("behavior".to_owned(), behavior);
    }
    let mut new_status = pick(&status, &STATUS_FIELDS);
    if let Some(current) = &current {
        let current = items(current).map(read_metric_status).collect();
        new_status.insert("currentMetrics".to_owned(), Value::Array(current));
    } else if let Some(percent) = status.get("currentCPUUtilizationPercentage") {
        let resource = json!({"name": "cpu", "current": {"averageUtilization": percent}});
        new_status.insert("currentMetrics".to_owned(), json!([{"type": "Resource", "resource": resource}]));
    }
    if let Some(conditions) = conditions.filter(Value::is_array) {
        new_status.insert("conditions".to_owned(), conditions);
    }
    autoscaler.insert("spec".to_owned(), Value::Object(new_spec));
    autoscaler.insert("status".to_owned(), Value::Object(new_status));
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && !metric["resource"]["target"]["averageUtilization"].is_null()
}

fn drop_annotations(autoscaler: &mut Object) {
    let Some(Value::Object(metadata)) = autoscaler.get_mut("metadata") else { return };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return };
    for key in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        annotations.remove(key);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn annotate(autoscaler: &mut Object, key: &str, text: String) {
    if let Value::Object(metadata) = autoscaler.entry("metadata").or_insert_with(|| json!({}))
        && let Value::Object(annotations) = metadata.entry("annotations").or_insert_with(|| json!({}))
    {
        annotations.insert(key.to_owned(), Value::String(text));
    }
}

fn pick(from: &Value, keys: &[&str]) -> Object {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), from.get(key)?.clone())));
    found.collect()
}

fn list<'a>(from: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    from.get(key).into_iter().flat_map(items)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A JSON object with its fields in the order given; null fields are left out.
fn ordered(fields: &[(&str, String)]) -> String {
    let printed: Vec<String> =
        fields.iter().filter(|(_, v)| v != "null").map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", printed.join(","))
}

fn plain(value: &Value) -> String {
    value.to_string()
}

fn or_zero(value: &Value) -> String {
    if value.is_null() { "\"0\"".to_owned() } else { value.to_string() }
}

fn reference(value: &Value) -> String {
    ordered(&[
        ("kind", plain(&value["kind"])),
        ("name", plain(&value["name"])),
        ("apiVersion", plain(&value["apiVersion"])),
    ])
}

fn selector(value: &Value) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    ordered(&[
        ("matchLabels", plain(&value["matchLabels"])),
        ("matchExpressions", plain(&value["matchExpressions"])),
    ])
}

fn metric_spec(metric: &Value) -> String {
    metric_of(metric, |kind, source| {
        let (name, target) = (&source["metric"]["name"], &source["target"]);
        let select = selector(&source["metric"]["selector"]);
        match kind {
            "object" => ordered(&[
                ("target", reference(&source["describedObject"])),
                ("metricName", plain(name)),
                ("targetValue", or_zero(&target["value"])),
                ("selector", select),
                ("averageValue", plain(&target["averageValue"])),
            ]),
            "pods" => ordered(&[
                ("metricName", plain(name)),
                ("targetAverageValue", or_zero(&target["averageValue"])),
                ("selector", select),
            ]),
            "external" => ordered(&[
                ("metricName", plain(name)),
                ("metricSelector", select),
                ("targetValue", plain(&target["value"])),
                ("targetAverageValue", plain(&target["averageValue"])),
            ]),
            _ => ordered(&[
                ("name", plain(&source["name"])),
                ("targetAverageUtilization", plain(&target["averageUtilization"])),
                ("targetAverageValue", plain(&target["averageValue"])),
                ("container", plain(&source["container"])),
            ]),
        }
    })
}

fn metric_status(metric: &Value) -> String {
    metric_of(metric, |kind, source| {
        let (name, current) = (&source["metric"]["name"], &source["current"]);
        let select = selector(&source["metric"]["selector"]);
        match kind {
            "object" => ordered(&[
                ("target", reference(&source["describedObject"])),
                ("metricName", plain(name)),
                ("currentValue", or_zero(&current["value"])),
                ("selector", select),
                ("averageValue", plain(&current["averageValue"])),
            ]),
            "pods" => ordered(&[
                ("metricName", plain(name)),
                ("currentAverageValue", or_zero(&current["averageValue"])),
                ("selector", select),
            ]),
            "external" => ordered(&[
                ("metricName", plain(name)),
                ("metricSelector", select),
                ("currentValue", or_zero(&current["value"])),
                ("currentAverageValue", plain(&current["averageValue"])),
            ]),
            _ => ordered(&[
                ("name", plain(&source["name"])),
                ("currentAverageUtilization", plain(&current["averageUtilization"])),
                ("currentAverageValue", or_zero(&current["averageValue"])),
                ("container", plain(&source["container"])),
            ]),
        }
    })
}

/// The sources of a metric in the order of the Go struct.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

fn metric_of(metric: &Value, write: impl Fn(&str, &Value) -> String) -> String {
    let mut fields = vec![("type", plain(&metric["type"]))];
    for kind in SOURCES {
        if let Some(source) = metric.get(kind).filter(|source| !source.is_null()) {
            fields.push((kind, write(kind, source)));
        }
    }
    ordered(&fields)
}

/// A condition; unlike other fields an unset time is printed.
fn condition(condition: &Value) -> String {
    let mut fields = Vec::new();
    for key in ["type", "status", "lastTransitionTime", "reason", "message"] {
        if key == "lastTransitionTime" || !condition[key].is_null() {
            fields.push(format!("\"{key}\":{}", condition[key]));
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn write_behavior(behavior: &Value) -> String {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return "null".to_owned();
        }
        let policies = match rules["policies"].as_array() {
            None => "null".to_owned(),
            Some(list) => array(list.iter().map(|policy| {
                format!(
                    "{{\"Type\":{},\"Value\":{},\"PeriodSeconds\":{}}}",
                    policy["type"], policy["value"], policy["periodSeconds"]
                )
            })),
        };
        format!(
            "{{\"StabilizationWindowSeconds\":{},\"SelectPolicy\":{},\"Policies\":{policies},\"Tolerance\":{}}}",
            rules["stabilizationWindowSeconds"], rules["selectPolicy"], rules["tolerance"]
        )
    };
    format!("{{\"ScaleUp\":{},\"ScaleDown\":{}}}", rules(&behavior["scaleUp"]), rules(&behavior["scaleDown"]))
}

fn read_behavior(behavior: &Value) -> Option<Value> {
    let rules = |rules: &Value| {
        let mut read = Object::new();
        for (from, to) in [
            ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
            ("SelectPolicy", "selectPolicy"),
            ("Tolerance", "tolerance"),
        ] {
            insert(&mut read, to, &rules[from]);
        }
        if let Some(policies) = rules["Policies"].as_array() {
            let policies = policies.iter().map(|policy| {
                json!({"type": policy["Type"], "value": policy["Value"], "periodSeconds": policy["PeriodSeconds"]})
            });
            read.insert("policies".to_owned(), policies.collect());
        }
        Value::Object(read)
    };
    let mut read = Object::new();
    for (from, to) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        if behavior[from].is_object() {
            read.insert(to.to_owned(), rules(&behavior[from]));
        }
    }
    (!read.is_empty()).then_some(Value::Object(read))
}

fn insert(into: &mut Object, key: &str, value: &Value) {
    if !value.is_null() {
        into.insert(key.to_owned(), value.clone());
    }
}

fn read_metric_spec(metric: &Value) -> Value {
    read_metric(metric, "target", |kind, source| {
        let mut target = Object::new();
        let ty = match kind {
            "object" => {
                insert(&mut target, "averageValue", &source["averageValue"]);
                if target.is_empty() {
                    insert(&mut target, "value", &source["targetValue"]);
                    "Value"
                } else {
                    "AverageValue"
                }
            }
            "pods" => {
                insert(&mut target, "averageValue", &source["targetAverageValue"]);
                "AverageValue"
            }
            "external" => {
                insert(&mut target, "value", &source["targetValue"]);
                insert(&mut target, "averageValue", &source["targetAverageValue"]);
                if source["targetValue"].is_null() { "AverageValue" } else { "Value" }
            }
            _ => {
                insert(&mut target, "averageUtilization", &source["targetAverageUtilization"]);
                insert(&mut target, "averageValue", &source["targetAverageValue"]);
                if source["targetAverageUtilization"].is_null() { "AverageValue" } else { "Utilization" }
            }
        };
        target.insert("type".to_owned(), json!(ty));
        target
    })
}

fn read_metric_status(metric: &Value) -> Value {
    read_metric(metric, "current", |kind, source| {
        let mut current = Object::new();
        match kind {
            "object" => {
                insert(&mut current, "value", &source["currentValue"]);
                insert(&mut current, "averageValue", &source["averageValue"]);
            }
            "pods" => insert(&mut current, "averageValue", &source["currentAverageValue"]),
            "external" => {
                insert(&mut current, "value", &source["currentValue"]);
                insert(&mut current, "averageValue", &source["currentAverageValue"]);
            }
            _ => {
                insert(&mut current, "averageUtilization", &source["currentAverageUtilization"]);
                insert(&mut current, "averageValue", &source["currentAverageValue"]);
            }
        }
        current
    })
}

/// A metric of v2 from one of v1; `amounts` gives the part called `part`.
fn read_metric(metric: &Value, part: &str, amounts: impl Fn(&str, &Value) -> Object) -> Value {
    let mut read = pick(metric, &["type"]);
    for kind in SOURCES {
        let Some(source) = metric.get(kind).filter(|source| source.is_object()) else { continue };
        let mut new = Object::new();
        new.insert(part.to_owned(), Value::Object(amounts(kind, source)));
        insert(&mut new, "name", &source["name"]);
        insert(&mut new, "container", &source["container"]);
        if kind == "object" {
            insert(&mut new, "describedObject", &source["target"]);
        }
        if !source["metricName"].is_null() {
            let mut identifier = Object::new();
            insert(&mut identifier, "name", &source["metricName"]);
            let key = if kind == "external" { "metricSelector" } else { "selector" };
            insert(&mut identifier, "selector", &source[key]);
            new.insert("metric".to_owned(), Value::Object(identifier));
        }
        read.insert(kind.to_owned(), Value::Object(new));
    }
    Value::Object(read)
}
