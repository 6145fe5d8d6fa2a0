//! Defaults of a Pod itself, which templates of pods do not get: requests from limits, host ports.

use super::rules::{object, set_if_unset, text};
use super::{Object, is_zero};
use orlop_schema::quantity::Quantity;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const MILLI: i32 = -3;

pub(super) fn pod(pod: &mut Object) {
    let Some(spec) = object(pod, "spec") else { return };
    for list in ["containers", "initContainers"] {
        for container in containers(spec, list) {
            if let Some(resources) = object(container, "resources") {
                requests_from_limits(resources);
            }
        }
    }
    pod_level_limits(spec);
    pod_level_requests(spec);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            containers(spec, list).for_each(host_ports);
        }
    }
}

/// Quantities are kept in thousandths; anything finer is rounded up.
pub(super) fn round_up_to_milli(value: &mut Value) {
    if let Some(mut quantity) = value.as_str().and_then(|text| Quantity::parse(text).ok()) {
        quantity.round_up(MILLI);
        *value = json!(quantity.to_string());
    }
}

fn containers<'a>(spec: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = spec.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn requests_from_limits(resources: &mut Object) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    set_if_unset(resources, "requests", json!({}));
    let Some(requests) = object(resources, "requests") else { return };
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn host_ports(container: &mut Object) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if port.get("hostPort").is_none_or(is_zero)
            && let Some(number) = port.get("containerPort").filter(|number| !is_zero(number)).cloned()
        {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Huge-page limits of the pod default to what its containers may use together.
fn pod_level_limits(spec: &mut Object) {
    let together = aggregate(spec, "limits");
    let Some(resources) = object(spec, "resources") else { return };
    let given = |key: &str| resources.get(key).is_some_and(|list| !is_zero(list));
    if !given("limits") && !given("requests") {
        return;
    }
    let mut limits = list_of(resources, "limits");
    let requests = list_of(resources, "requests");
    for (name, quantity) in together {
        if is_huge_page(&name) && !requests.contains_key(&name) {
            limits.entry(name).or_insert_with(|| json!(quantity.to_string()));
        }
    }
    if !limits.is_empty() {
        resources.insert("limits".to_owned(), Value::Object(limits));
    }
}

/// Requests of the pod default to those of its containers, then to its own limits.
fn pod_level_requests(spec: &mut Object) {
    let together = aggregate(spec, "requests");
    let Some(resources) = object(spec, "resources") else { return };
    let limits = list_of(resources, "limits");
    if limits.is_empty() {
        return;
    }
    let mut requests = list_of(resources, "requests");
    for (name, quantity) in together {
        if is_pod_level(&name) && !is_huge_page(&name) {
            requests.entry(name).or_insert_with(|| json!(quantity.to_string()));
        }
    }
    for (name, quantity) in limits {
        if is_pod_level(&name) {
            requests.entry(name).or_insert(quantity);
        }
    }
    if !requests.is_empty() {
        resources.insert("requests".to_owned(), Value::Object(requests));
    }
}

fn list_of(resources: &Object, key: &str) -> Object {
    resources.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

type Amounts = BTreeMap<String, Quantity>;

/// What the containers ask for together: the running ones as a sum, or the hungriest init container with the
/// sidecars started before it, whichever is more.
fn aggregate(spec: &Object, key: &str) -> Amounts {
    let amounts = |container: &Object| -> Amounts {
        let list = container.get("resources").and_then(|r| r.get(key)).and_then(Value::as_object);
        let parsed = list
            .into_iter()
            .flatten()
            .filter_map(|(name, quantity)| Some((name.clone(), Quantity::parse(quantity.as_str()?).ok()?)));
        parsed.collect()
    };
    let each = |list: &str| {
        let list = spec.get(list).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object)
    };
    let mut total = Amounts::new();
    for container in each("containers") {
        add(&mut total, &amounts(container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in each("initContainers") {
        let mut own = amounts(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        greatest(&mut starting, &own);
    }
    greatest(&mut total, &starting);
    total
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, quantity) in more {
        let sum = to.get(name).map_or_else(|| quantity.clone(), |have| have.plus(quantity));
        to.insert(name.clone(), sum);
    }
}

fn greatest(of: &mut Amounts, other: &Amounts) {
    for (name, quantity) in other {
        if of.get(name).is_none_or(|have| quantity > have) {
            of.insert(name.clone(), quantity.clone());
        }
    }
}
