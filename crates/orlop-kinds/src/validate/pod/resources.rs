//! Resource names, amounts, requests and limits.

use super::super::view::{At, NEGATIVE, Report};
use super::PodOptions;
use orlop_schema::field::go_quote;
use orlop_schema::names;
use orlop_schema::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};

const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether a node may promise more of a resource than it has.
pub(crate) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Whether a quota can limit the resource.
pub(crate) fn is_quota_resource(name: &str) -> bool {
    (STANDARD.contains(&name) && name != "storage") || is_quota_huge_page(name)
}

/// A resource name.
pub(crate) fn resource_name(r: &mut Report, name: &str, at: &At<'_>) -> bool {
    let wrong = names::qualified_name(name);
    let bad = !wrong.is_empty();
    r.extend(wrong.into_iter().map(|w| at.invalid_with(go_quote(name), w)));
    if bad {
        return false;
    }
    let fine = name.contains('/') || STANDARD.contains(&name) || is_quota_huge_page(name);
    r.when(!fine, || at.invalid_with(go_quote(name), "must be a standard resource type or fully qualified"));
    fine
}

/// The name of a resource a container can ask for.
pub(crate) fn container_resource_name(r: &mut Report, name: &str, at: &At<'_>) {
    resource_name(r, name, at);
    if name.contains('/') {
        r.when(!is_native(name) && !is_extended(name), || {
            at.invalid_with(go_quote(name), "doesn't follow extended resource name standard")
        });
    } else {
        r.when(!["cpu", "memory", "ephemeral-storage"].contains(&name) && !is_huge_page(name), || {
            at.invalid_with(go_quote(name), "must be a standard resource for containers")
        });
    }
}

/// The name of a resource a whole pod can ask for.
fn pod_resource_name(r: &mut Report, name: &str, at: &At<'_>) {
    if resource_name(r, name, at) && !["cpu", "memory"].contains(&name) && !is_huge_page(name) {
        let mut error = at.unsupported(&["cpu", "hugepages-", "memory"]);
        error.value = Some(go_quote(name));
        r.add(error);
    }
}

/// An amount of a resource.
pub(crate) fn amount(r: &mut Report, name: &str, at: &At<'_>) {
    let Some(quantity) = at.quantity() else { return };
    let shown = go_quote(&quantity.to_string());
    r.when(quantity.sign() < 0, || at.invalid_with(shown.clone(), NEGATIVE));
    r.when(is_counted(name) && quantity.milli_value() % 1000 != 0, || {
        at.invalid_with(shown, "must be an integer")
    });
}

fn huge_page(r: &mut Report, name: &str, at: &At<'_>, options: &PodOptions) {
    let Some(quantity) = at.quantity() else { return };
    let size = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    let divisible = size.is_some_and(|size| {
        size.sign() > 0
            && size.milli_value() % 1000 == 0
            && quantity.value().checked_rem(size.value()) == Some(0)
    });
    r.when(!options.any_huge_pages && !divisible, || {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        at.invalid_with(go_quote(&quantity.to_string()), detail)
    });
}

/// Requests and limits of a container.
pub(crate) fn requirements(r: &mut Report, at: &At<'_>, claims: &BTreeSet<&str>, options: &PodOptions) {
    checked_requirements(r, at, claims, options, container_resource_name);
}

fn checked_requirements(
    r: &mut Report,
    at: &At<'_>,
    claims: &BTreeSet<&str>,
    options: &PodOptions,
    name_rule: fn(&mut Report, &str, &At<'_>),
) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    let (mut computes, mut huge) = (false, false);
    for (name, limit) in limits.entries() {
        name_rule(r, name, &limit);
        amount(r, name, &limit);
        if is_huge_page(name) {
            huge = true;
            huge_page(r, name, &limit, options);
        }
        computes |= ["cpu", "memory"].contains(&name);
    }
    for (name, request) in requests.entries() {
        name_rule(r, name, &request);
        amount(r, name, &request);
        match (request.quantity(), limits.key(name).quantity()) {
            (Some(asked), Some(limit)) => {
                let shown = go_quote(&asked.to_string());
                if asked != limit && !is_overcommit_allowed(name) {
                    let detail = format!("must be equal to {name} limit of {limit}");
                    r.add(requests.invalid_with(shown, detail));
                } else if asked > limit {
                    let detail = format!("must be less than or equal to {name} limit of {limit}");
                    r.add(requests.invalid_with(shown, detail));
                }
            }
            (_, None) if !is_overcommit_allowed(name) => {
                r.add(limits.required("Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
        if is_huge_page(name) {
            huge = true;
            huge_page(r, name, &request, options);
        }
        computes |= ["cpu", "memory"].contains(&name);
    }
    r.when(huge && !computes, || at.forbidden("HugePages require cpu or memory"));
    claim_names(r, &at.get("claims"), claims);
}

fn claim_names(r: &mut Report, list: &At<'_>, known: &BTreeSet<&str>) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in list.items() {
        let (name, request) = (claim.get("name"), claim.get("request"));
        if name.is_empty() {
            r.add(claim.required(""));
            continue;
        }
        let twice = |text: &str| {
            let mut error = claim.duplicate();
            error.value = Some(go_quote(text));
            error
        };
        if seen.contains(name.str()) {
            r.add(twice(name.str()));
        } else {
            let mut key = name.str().to_owned();
            if !request.is_empty() {
                r.label(&request);
                key = format!("{key}/{}", request.str());
            }
            if seen.contains(&key) {
                r.add(twice(&key));
            } else if request.is_empty() {
                let prefix = format!("{key}/");
                for _ in seen.iter().filter(|other| other.starts_with(&prefix)) {
                    r.add(twice(name.str()));
                }
            }
            seen.insert(key);
        }
        if !known.contains(name.str()) {
            let mut error = name.named(claim.path.clone()).not_found();
            let known: Vec<&str> = known.iter().copied().collect();
            let list = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.join(", "))
            };
            error.detail = format!("must be one of the names in pod.spec.resourceClaims{list}");
            r.add(error);
        }
    }
}

/// Requests and limits of a whole pod.
pub(crate) fn pod_requirements(r: &mut Report, spec: &At<'_>, claims: &BTreeSet<&str>, options: &PodOptions) {
    let at = spec.get("resources");
    if !at.is_set() {
        return;
    }
    if spec.down("os.name").str() == "windows" {
        r.add(at.forbidden("may not be set for a windows pod"));
        return;
    }
    let own = at.get("claims");
    r.when(own.is_set(), || own.forbidden("claims may not be set for Resources at pod-level"));
    checked_requirements(r, &at, claims, options, pod_resource_name);
    consistency(r, spec, &at);
}

/// What all containers of a pod ask for together: the larger of the running ones and any step of the start.
fn aggregate<'a>(spec: &At<'a>, field: &str) -> BTreeMap<&'a str, Quantity> {
    let mut sum: BTreeMap<&str, Quantity> = BTreeMap::new();
    let add = |sum: &mut BTreeMap<&'a str, Quantity>, container: &At<'a>| {
        for (name, at) in container.get("resources").get(field).entries() {
            if let Some(q) = at.quantity() {
                let total = sum.get(name).map_or(q.clone(), |old| old.plus(&q));
                sum.insert(name, total);
            }
        }
    };
    for container in spec.get("containers").items() {
        add(&mut sum, &container);
    }
    let mut sidecars: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut peak: BTreeMap<&str, Quantity> = BTreeMap::new();
    for container in spec.get("initContainers").items() {
        if container.get("restartPolicy").str() == "Always" {
            add(&mut sum, &container);
            add(&mut sidecars, &container);
        }
        let mut now = sidecars.clone();
        if container.get("restartPolicy").str() != "Always" {
            add(&mut now, &container);
        }
        for (name, q) in now {
            if peak.get(name).is_none_or(|old| q > *old) {
                peak.insert(name, q);
            }
        }
    }
    for (name, q) in peak {
        if sum.get(name).is_none_or(|old| q > *old) {
            sum.insert(name, q);
        }
    }
    sum
}

fn consistency(r: &mut Report, spec: &At<'_>, at: &At<'_>) {
    let (requests, limits) = (at.get("requests"), at.get("limits"));
    for (field, list, only_huge) in [("requests", &requests, false), ("limits", &limits, true)] {
        for (name, total) in aggregate(spec, field) {
            let own = list.key(name);
            if let Some(given) = own.quantity()
                && (!only_huge || is_huge_page(name))
                && total > given
            {
                let detail =
                    format!("must be greater than or equal to aggregate container {field} of {total}");
                r.add(own.invalid_with(go_quote(&given.to_string()), detail));
            }
        }
    }
    for (index, container) in spec.get("containers").items().iter().enumerate() {
        for (name, limit) in container.down("resources.limits").entries() {
            if let (Some(own), Some(pod)) = (limit.quantity(), limits.key(name).quantity())
                && own > pod
            {
                let path = at.path.child("containers").index(index).key(name).child("limits");
                let detail = format!("must be less than or equal to pod limits of {pod}");
                r.add(limit.named(path).invalid_with(go_quote(&own.to_string()), detail));
            }
        }
    }
}
