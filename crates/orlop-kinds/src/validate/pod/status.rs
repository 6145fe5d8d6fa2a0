//! What a kubelet may say about a pod.

use super::super::meta;
use super::super::view::{At, Report};
use super::PodOptions;
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
    let six = now.iter().filter(|ip| ip.contains(':')).count();
    let dual = six > 0 && six < now.len();
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
