//! Autoscalers, disruption budgets, priority classes, runtime classes, leases.

use super::Rules;
use super::meta::{self, Scope};
use super::pod::PodOptions;
use super::pod::resources::{container_resource_name, requirements};
use super::pod::scheduling::tolerations;
use super::view::{At, NEGATIVE, Report};
use super::{conditions, golang};
use orlop_schema::field::{Path, go_quote};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rules] = &[
    Rules::new(
        "autoscaling",
        "HorizontalPodAutoscaler",
        Scope::Namespaced,
        autoscaler,
        autoscaler_update,
        &[("status", autoscaler_status)],
    ),
    Rules::new("autoscaling", "Scale", Scope::Namespaced, scale, scale_update, &[]),
    Rules::new(
        "policy",
        "PodDisruptionBudget",
        Scope::Namespaced,
        budget,
        budget_update,
        &[("status", budget_status)],
    ),
    Rules::new("scheduling.k8s.io", "PriorityClass", Scope::Cluster, priority, priority_update, &[]),
    Rules::new("node.k8s.io", "RuntimeClass", Scope::Cluster, runtime, runtime_update, &[]),
    Rules::new("coordination.k8s.io", "Lease", Scope::Namespaced, lease, lease_update, &[]),
];

fn scale(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    r.non_negative(&object.down("spec.replicas"));
}

fn scale_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    scale(r, new);
}

/// An autoscaler of the first version, written as one of the second.
fn modern(spec: &At<'_>) -> Value {
    let mut value = spec.value.clone();
    let target = spec.get("targetCPUUtilizationPercentage");
    if target.is_set()
        && !spec.get("metrics").is_set()
        && let Some(map) = value.as_object_mut()
    {
        map.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target.value}}}]),
        );
    }
    value
}

fn autoscaler(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    autoscaler_spec(r, &object.get("spec"), None);
}

fn autoscaler_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    autoscaler_spec(r, &new.get("spec"), Some(&old.get("spec")));
}

fn autoscaler_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.all_non_negative(&new.get("status"), &["currentReplicas", "desiredReplicas"]);
}

fn autoscaler_spec(r: &mut Report, spec: &At<'_>, before: Option<&At<'_>>) {
    let value = modern(spec);
    let spec = &At { value: &value, path: spec.path.clone() };
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let lowest = i64::from(before.is_none_or(|b| b.get("minReplicas").number() != Some(0)));
    r.when(min.is_set() && min.int() < lowest, || {
        min.invalid(format!("must be greater than or equal to {lowest}"))
    });
    if max.int() == 0 {
        r.add(max.required("must be set and greater than 0"));
    } else {
        r.when(max.int() < 0, || max.invalid("must be greater than or equal to 1"));
    }
    r.when(min.is_set() && max.int() < min.int(), || {
        max.invalid_int("must be greater than or equal to `minReplicas`")
    });
    let target = spec.get("scaleTargetRef");
    let kept = before.is_some_and(|b| {
        let was = b.get("scaleTargetRef");
        ["apiVersion", "kind"].iter().all(|key| was.get(key).str() == target.get(key).str())
    });
    let version = match (kept, target.get("kind").str()) {
        (true, _) => ApiVersion::Any,
        (false, "ReplicationController") => ApiVersion::Readable,
        (false, _) => ApiVersion::WithGroup,
    };
    cross_reference(r, &target, version);
    let metrics = spec.get("metrics");
    for metric in metrics.items() {
        metric_spec(r, &metric);
    }
    let outside = metrics.items().iter().any(|m| ["Object", "External"].contains(&m.get("type").str()));
    r.when(min.number() == Some(0) && !outside, || {
        metrics.forbidden(
            "must specify at least one Object or External metric to support scaling to zero replicas",
        )
    });
    for key in ["scaleUp", "scaleDown"] {
        scaling_rules(r, &spec.get("behavior").get(key));
    }
}

/// What is asked of the `apiVersion` of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersion {
    /// Nothing, because it was accepted before.
    Any,
    /// That it can be read.
    Readable,
    /// That it also names a group.
    WithGroup,
}

/// A reference to an object of any version.
fn cross_reference(r: &mut Report, at: &At<'_>, wanted: ApiVersion) {
    for key in ["kind", "name"] {
        let part = at.get(key);
        if !r.required(&part) {
            r.each(&part, names::path_segment(part.str()));
        }
    }
    let version = at.get("apiVersion");
    let slashes = if version.str() == "/" { 0 } else { version.str().matches('/').count() };
    if wanted == ApiVersion::Any {
        return;
    }
    if slashes > 1 {
        r.add(version.invalid(format!("unexpected GroupVersion string: {}", version.str())));
    } else if wanted == ApiVersion::WithGroup && (slashes == 0 || version.str().starts_with('/')) {
        r.add(version.invalid_str("apiVersion must specify API group"));
    }
}

const METRICS: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

fn metric_spec(r: &mut Report, at: &At<'_>) {
    const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    let kind = at.get("type");
    r.when(kind.is_empty(), || kind.required("must specify a metric source type"));
    r.one_of(&kind, &TYPES);
    let mut present: Vec<&str> = Vec::new();
    for (_, key) in METRICS {
        let source = at.get(key);
        if source.is_set() {
            present.push(key);
            if present.len() == 1 {
                metric_source(r, &source, key);
            }
        }
    }
    let expected = METRICS.iter().find(|(name, _)| *name == kind.str()).map(|(_, key)| *key);
    match expected {
        Some(key) => r.when(!at.get(key).is_set(), || {
            at.get(key).required("must populate information for the given metric source")
        }),
        None => r.add(kind.unsupported(&TYPES)),
    }
    if present.len() != 1 {
        for key in present.into_iter().filter(|key| Some(*key) != expected) {
            r.add(at.get(key).forbidden("must populate the given metric source only"));
        }
    }
}

fn metric_source(r: &mut Report, at: &At<'_>, key: &str) {
    let target = at.get("target");
    let (value, average) = (target.get("value"), target.get("averageValue"));
    let use_of = target.get("averageUtilization");
    match key {
        "object" => {
            cross_reference(r, &at.get("describedObject"), ApiVersion::Readable);
            metric_name(r, at);
            metric_target(r, &target);
            r.when(!value.is_set() && !average.is_set(), || {
                average.required("must set either a target value or averageValue")
            });
        }
        "external" => {
            metric_name(r, at);
            metric_target(r, &target);
            r.when(!value.is_set() && !average.is_set(), || {
                average.required("must set either a target value for metric or a per-pod target")
            });
            r.when(value.is_set() && average.is_set(), || {
                value.forbidden("may not set both a target value for metric and a per-pod target")
            });
        }
        "pods" => {
            metric_name(r, at);
            metric_target(r, &target);
            r.when(!average.is_set(), || average.required("must specify a positive target averageValue"));
        }
        _ => {
            let name = at.get("name");
            r.when(name.is_empty(), || name.required("must specify a resource name"));
            if key == "containerResource" {
                if !name.is_empty() {
                    container_resource_name(r, name.str(), &name);
                }
                let container = at.get("container");
                if container.is_empty() {
                    r.add(container.required("must specify a container"));
                } else {
                    r.label(&container);
                }
            }
            metric_target(r, &target);
            r.when(!use_of.is_set() && !average.is_set(), || {
                use_of.required("must set either a target raw value or a target utilization")
            });
            r.when(use_of.is_set() && average.is_set(), || {
                average.forbidden("may not set both a target raw value and a target utilization")
            });
        }
    }
}

fn metric_name(r: &mut Report, at: &At<'_>) {
    let name = at.down("metric.name");
    if name.is_empty() {
        r.add(name.required("must specify a metric name"));
    } else {
        r.each(&name, names::path_segment(name.str()));
    }
}

fn metric_target(r: &mut Report, at: &At<'_>) {
    let kind = at.get("type");
    r.when(kind.is_empty(), || kind.required("must specify a metric target type"));
    r.when(!["Utilization", "Value", "AverageValue"].contains(&kind.str()), || {
        kind.invalid_str("must be either Utilization, Value, or AverageValue")
    });
    for key in ["value", "averageValue"] {
        let value = at.get(key);
        r.when(value.quantity().is_some_and(|q| q.sign() <= 0), || value.invalid("must be positive"));
    }
    let use_of = at.get("averageUtilization");
    r.when(use_of.is_set() && use_of.int() < 1, || use_of.invalid("must be greater than 0"));
}

fn scaling_rules(r: &mut Report, at: &At<'_>) {
    if !at.is_set() {
        return;
    }
    let window = at.get("stabilizationWindowSeconds");
    r.when(window.int() < 0, || window.invalid("must be greater than or equal to zero"));
    r.when(window.int() > 3600, || window.invalid("must be less than or equal to 3600"));
    r.optional_one_of(&at.get("selectPolicy"), &["Disabled", "Max", "Min"]);
    let policies = at.get("policies");
    r.when(policies.is_empty(), || policies.required("must specify at least one Policy"));
    for policy in policies.items() {
        r.one_of(&policy.get("type"), &["Percent", "Pods"]);
        r.positive(&policy.get("value"));
        let period = policy.get("periodSeconds");
        r.positive(&period);
        r.when(period.int() > 1800, || period.invalid("must be less than or equal to 1800"));
    }
    let tolerance = at.get("tolerance");
    if let Some(q) = tolerance.quantity()
        && q.sign() < 0
    {
        r.add(tolerance.invalid_with(go_quote(&q.to_string()), NEGATIVE));
    }
}

fn budget(r: &mut Report, object: &At<'_>) {
    budget_spec(r, &object.get("spec"), SelectorOptions::default());
}

fn budget_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let before = old.down("spec.selector");
    let any_value = !labels::selector(&Path::root(), before.value, SelectorOptions::default()).is_empty();
    budget_spec(r, &new.get("spec"), SelectorOptions { any_value, any_operator: false });
}

fn budget_spec(r: &mut Report, spec: &At<'_>, selector: SelectorOptions) {
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    r.when(min.is_set() && max.is_set(), || {
        spec.invalid_as(
            "policy.PodDisruptionBudgetSpec",
            "minAvailable and maxUnavailable cannot be both set",
        )
    });
    for at in [min, max] {
        if at.is_set() {
            r.count_or_percent(&at);
            r.at_most_100_percent(&at);
        }
    }
    r.selector(&spec.get("selector"), selector);
    r.optional_one_of(&spec.get("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
}

fn budget_status(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    let status = new.get("status");
    conditions(r, &status.get("conditions"));
    r.all_non_negative(&status, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
}

fn priority(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let (name, value) = (object.down("metadata.name"), object.get("value"));
    if name.str().starts_with("system-") {
        if let Some(error) = system_priority(name.str(), value.int(), object.get("globalDefault").is_true()) {
            r.add(name.forbidden(format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {error}"
            )));
        }
    } else {
        r.when(value.int() > 1_000_000_000, || {
            value.forbidden("maximum allowed value of a user defined priority is 1000000000")
        });
    }
    let preemption = object.get("preemptionPolicy");
    if preemption.is_set() {
        r.required_one_of(&preemption, &["PreemptLowerPriority", "Never"]);
    }
}

fn system_priority(name: &str, value: i64, global: bool) -> Option<String> {
    let known = match name {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => return Some(format!("{name} is not a known system priority class")),
    };
    if value != known {
        return Some(format!("value of {name} PriorityClass must be {known}"));
    }
    global.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

fn priority_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let value = new.get("value");
    r.when(value.int() != old.get("value").int(), || value.forbidden("may not be changed in an update."));
    r.immutable(&new.get("preemptionPolicy"), &old.get("preemptionPolicy"));
}

fn runtime(r: &mut Report, object: &At<'_>) {
    meta::plain_create(r, object, Scope::Cluster, NameRule::Subdomain);
    r.required_label(&object.get("handler"));
    let overhead = object.get("overhead");
    if overhead.is_set() {
        let wrapped = json!({"limits": overhead.get("podFixed").value});
        let at = At { value: &wrapped, path: overhead.path.clone() };
        requirements(r, &at, &BTreeSet::new(), &PodOptions::default());
    }
    let scheduling = object.get("scheduling");
    r.labels(&scheduling.get("nodeSelector"));
    let list = scheduling.get("tolerations");
    tolerations(r, &list);
    let mut seen = BTreeSet::new();
    for toleration in list.items() {
        let key = ["key", "operator", "value", "effect"].map(|k| toleration.get(k).str());
        if !seen.insert(key) {
            let mut error = toleration.duplicate();
            error.value = Some(golang::print("core.Toleration", toleration.value));
            r.add(error);
        }
    }
}

fn runtime_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    runtime(r, new);
    meta::plain_update(r, new, old);
    r.immutable_str(&new.get("handler"), &old.get("handler"));
}

fn lease(r: &mut Report, object: &At<'_>) {
    meta::plain_create(r, object, Scope::Namespaced, NameRule::Subdomain);
    lease_spec(r, &object.get("spec"));
}

fn lease_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::plain_update(r, new, old);
    lease_spec(r, &new.get("spec"));
}

fn lease_spec(r: &mut Report, spec: &At<'_>) {
    let (duration, transitions) = (spec.get("leaseDurationSeconds"), spec.get("leaseTransitions"));
    r.when(duration.is_set() && duration.int() <= 0, || duration.invalid("must be greater than 0"));
    r.when(transitions.int() < 0, || transitions.invalid(NEGATIVE));
}
