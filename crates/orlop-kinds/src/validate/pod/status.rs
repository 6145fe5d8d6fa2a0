//! What a kubelet may say about a pod.

use super::super::meta;
use super::super::view::{At, Report};
use super::PodOptions;
use orlop_schema::field::{Fault, FieldError, go_quote};
use orlop_schema::names::user_id;
use std::collections::BTreeSet;

const CONTAINERS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// A change through `status`.
pub(super) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let options = PodOptions::for_update(&old.get("spec"), &old.get("metadata"));
    meta::update(r, new, old);
    super::update::annotation_updates(r, new, old, &options);
    let (status, before) = (new.get("status"), old.get("status"));
    conditions(r, &status.get("conditions"));
    let node = status.get("nodeName");
    r.when(new.down("spec.nodeName").str() != old.down("spec.nodeName").str(), || {
        node.forbidden("may not be changed directly")
    });
    nominated(r, &status.get("nominatedNodeName"), &before.get("nominatedNodeName"), old);
    let generation = status.get("observedGeneration");
    r.when(generation.int() < 0, || generation.invalid("must be a non-negative integer"));
    r.immutable_str(&status.get("qosClass"), &before.get("qosClass"));
    for (statuses, containers) in CONTAINERS {
        transitions(r, &status.get(statuses), &before.get(statuses), &old.get("spec"), containers);
    }
    claims(r, &status.get("resourceClaimStatuses"), &new.down("spec.resourceClaims"));
    extended_claim(r, &status.get("extendedResourceClaimStatus"), &new.get("spec"));
    allocatable_claims(r, &status, &new.get("spec"));
    addresses(r, &status.get("podIPs"), &before.get("podIPs"), "[core.PodIP");
    let (host, hosts) = (status.get("hostIP"), status.get("hostIPs"));
    if let Some(first) = hosts.items().first() {
        let ip = first.get("ip");
        r.when(ip.str() != host.str(), || ip.invalid_str("must be equal to `hostIP`"));
    }
    addresses(r, &hosts, &before.get("hostIPs"), "[core.HostIP");
    for (statuses, _) in CONTAINERS {
        users(r, &status.get(statuses), new.down("spec.os.name").str());
    }
    for (statuses, containers) in CONTAINERS {
        if containers == "ephemeralContainers" {
            for status in status.get(statuses).items() {
                let list = status.get("allocatedResourcesStatus");
                r.when(!list.is_empty(), || list.forbidden("must not be specified in container status"));
            }
        } else {
            health(r, &status.get(statuses), &new.get("spec").get(containers));
        }
    }
}

fn conditions(r: &mut Report, list: &At<'_>) {
    for condition in list.items() {
        let generation = condition.get("observedGeneration");
        r.when(generation.int() < 0, || generation.invalid("must be a non-negative integer"));
        let kind = condition.get("type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.str()) {
            r.qualified(&kind.named(condition.path.child("Type")));
        }
    }
}

fn nominated(r: &mut Report, now: &At<'_>, before: &At<'_>, old: &At<'_>) {
    if now.str() == before.str() || now.is_empty() {
        return;
    }
    r.subdomain(now);
    r.when(!old.down("spec.nodeName").is_empty(), || {
        now.forbidden("may not be set on pods that are already bound to a node")
    });
}

/// Whether a container that ended with `code` is started again.
fn restarts(container: &At<'_>, spec: &At<'_>, code: i64) -> bool {
    for rule in container.get("restartPolicyRules").items() {
        let codes = rule.get("exitCodes");
        let listed = codes.get("values").items().iter().any(|v| v.int() == code);
        let applies = match codes.get("operator").str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        if applies {
            return true;
        }
    }
    let own = container.get("restartPolicy");
    let policy = if own.is_set() { own.str() } else { spec.get("restartPolicy").str() };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn transitions(r: &mut Report, now: &At<'_>, before: &At<'_>, spec: &At<'_>, containers: &str) {
    let all_restart = super::all_containers(spec)
        .iter()
        .flat_map(|c| c.get("restartPolicyRules").items())
        .any(|rule| rule.get("action").str() == "RestartAllContainers");
    if all_restart && containers != "ephemeralContainers" {
        return;
    }
    for (index, old) in before.items().iter().enumerate() {
        let ended = old.down("state.terminated");
        if !ended.is_set() {
            continue;
        }
        let name = old.get("name").str();
        let revived =
            now.items().iter().any(|s| s.get("name").str() == name && !s.down("state.terminated").is_set());
        let found = spec.get(containers).items().into_iter().find(|c| c.get("name").str() == name);
        let allowed = containers != "ephemeralContainers"
            && found.is_some_and(|c| restarts(&c, spec, ended.get("exitCode").int()));
        r.when(revived && !allowed, || {
            now.named(now.path.index(index).child("state"))
                .forbidden("may not be transitioned to non-terminated state")
        });
    }
}

fn claims(r: &mut Report, statuses: &At<'_>, claims: &At<'_>) {
    let mut seen = BTreeSet::new();
    for status in statuses.items() {
        let name = status.get("name");
        let known = claims.items().iter().any(|c| c.get("name").str() == name.str());
        r.when(!known, || name.invalid_str("must match the name of an entry in `spec.resourceClaims`"));
        r.when(!seen.insert(name.str()), || name.duplicate_str());
        let claim = status.get("resourceClaimName");
        if claim.is_set() {
            r.subdomain(&claim);
        }
    }
}

fn addresses(r: &mut Report, list: &At<'_>, old: &At<'_>, kind: &'static str) {
    let before: Vec<&str> = old.items().iter().map(|ip| ip.get("ip").str()).collect();
    let now: Vec<&str> = list.items().iter().map(|ip| ip.get("ip").str()).collect();
    for item in list.items() {
        r.ip(&item.get("ip").named(item.path.clone()), &before);
    }
    let unreadable = now.iter().position(|ip| orlop_schema::ip::parse_lenient(ip).is_none());
    if let Some(index) = unreadable.filter(|_| now.len() > 1) {
        let words = format!("failed to check for dual stack with error:invalid IP[{index}]: {}", now[index]);
        r.add(FieldError::with_value(Fault::Internal, &list.path, None, words));
    }
    let six = now.iter().filter(|ip| ip.contains(':')).count();
    let dual = unreadable.is_none() && six > 0 && six < now.len();
    r.when(now.len() > 1 && (!dual || now.len() > 2), || {
        list.invalid_as(kind, "may specify no more than one IP for each IP family")
    });
}

fn users(r: &mut Report, statuses: &At<'_>, os: &str) {
    for status in statuses.items() {
        let linux = status.down("user.linux");
        if !linux.is_set() {
            continue;
        }
        if os == "windows" {
            r.add(linux.forbidden("cannot be set for a windows pod"));
            continue;
        }
        for key in ["uid", "gid"] {
            let id = linux.get(key);
            r.each_int(&id, user_id(id.int()));
        }
        for group in linux.get("supplementalGroups").items() {
            r.each_int(&group, user_id(group.int()));
        }
    }
}

/// The claim that was made for the extended resources of a pod.
fn extended_claim(r: &mut Report, at: &At<'_>, spec: &At<'_>) {
    if !at.is_set() {
        return;
    }
    let containers = [spec.get("initContainers").items(), spec.get("containers").items()].concat();
    let mappings = at.get("requestMappings");
    r.when(mappings.is_empty(), || mappings.required("at least one request mapping is required"));
    let mut seen = BTreeSet::new();
    for mapping in mappings.items() {
        let (container, resource) = (mapping.get("containerName"), mapping.get("resourceName"));
        let request = mapping.get("requestName");
        match containers.iter().rev().find(|c| c.get("name").str() == container.str()) {
            Some(found) => r.when(!found.down("resources.requests").key(resource.str()).is_set(), || {
                resource.invalid_str("must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
            }),
            None => r.add(container.invalid_str(
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            )),
        }
        r.label(&request.named(at.path.child("requestName")));
        if !seen.insert((container.str(), resource.str(), request.str())) {
            for twice in [container, resource, request] {
                r.add(twice.duplicate_str());
            }
        }
    }
    r.required_subdomain(&at.get("resourceClaimName"));
}

/// Claims for resources that nodes count themselves.
fn allocatable_claims(r: &mut Report, status: &At<'_>, spec: &At<'_>) {
    let claims = [spec.get("resourceClaims").items(), status.get("resourceClaimStatuses").items()].concat();
    for entry in status.get("nodeAllocatableResourceClaimStatuses").items() {
        let (claim, resources) = (entry.get("resourceClaimName"), entry.get("resources"));
        r.when(claim.is_empty(), || claim.required("must not be empty"));
        let known = claims.iter().any(|c| c.get("resourceClaimName").value.as_str() == Some(claim.str()));
        r.when(!known, || claim.invalid_str("no mapping found in pod reference"));
        for list in [entry.get("containers"), resources.clone()] {
            r.when(list.is_empty(), || list.required("must not be empty"));
        }
        for (name, quantity) in resources.entries() {
            let native = !name.contains('/') || name.contains("kubernetes.io/");
            r.when(!native, || {
                quantity.invalid_with(go_quote(name), "must be a node allocatable resource name")
            });
            if let Some(q) = quantity.quantity()
                && q.sign() < 0
            {
                r.add(quantity.invalid_with(go_quote(&q.to_string()), "must be non-negative"));
            }
        }
    }
}

/// The health of devices that containers were given.
fn health(r: &mut Report, statuses: &At<'_>, containers: &At<'_>) {
    const MESSAGE_MAX: usize = 1024;
    for status in statuses.items() {
        let name = status.get("name").str();
        let container = containers.items().into_iter().find(|c| c.get("name").str() == name);
        for allocated in status.get("allocatedResourcesStatus").items() {
            let resource = allocated.get("name");
            if let Some(container) = &container {
                resource_is_asked_for(r, &resource, container);
            }
            let mut seen = BTreeSet::new();
            for device in allocated.get("resources").items() {
                r.one_of(&device.get("health"), &["Healthy", "Unhealthy", "Unknown"]);
                let (message, id) = (device.get("message"), device.get("resourceID"));
                if message.is_set() && message.is_empty() {
                    r.add(message.required("must be non-empty if specified"));
                }
                r.when(message.len() > MESSAGE_MAX, || message.too_long(MESSAGE_MAX));
                r.when(!seen.insert(id.str()), || id.duplicate_str());
            }
        }
    }
}

fn resource_is_asked_for(r: &mut Report, resource: &At<'_>, container: &At<'_>) {
    if resource.str().starts_with("claim:") {
        let found = container.down("resources.claims").items().iter().any(|claim| {
            let (name, request) = (claim.get("name").str(), claim.get("request").str());
            let full = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            resource.str().strip_prefix("claim:") == Some(full.as_str())
        });
        r.when(!found, || resource.invalid("must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"));
    } else {
        let found = container.down("resources.requests").key(resource.str()).is_set();
        r.when(!found, || resource.invalid_str("must match one of the container's resource requests"));
    }
}
