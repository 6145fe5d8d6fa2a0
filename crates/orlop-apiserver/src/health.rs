//! Health: named checks, laid out as the original's are. Everything they name is part of one process here, so that
//! all of them pass when it answers.

use crate::rest::Answer;
use crate::route::Query;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The endpoints that have checks.
pub(crate) const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// The checks that all endpoints have in common.
const HOOKS: [&str; 30] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];
/// The checks of an endpoint, in the order in which they are made.
pub(crate) fn checks(endpoint: &str) -> Vec<&'static str> {
    match endpoint {
        "readyz" => {
            let early = ["ping", "log", "etcd", "etcd-readiness", "informer-sync"];
            [&early[..], &HOOKS, &["shutdown"]].concat()
        }
        _ => [&["ping", "log", "loopback-serving-certificate", "etcd"][..], &HOOKS].concat(),
    }
}

/// An endpoint, or one of its checks; nothing if it has no such check.
pub(crate) fn answer(endpoint: &str, check: &str, query: &Query) -> Option<Answer> {
    let checks = checks(endpoint);
    if !check.is_empty() {
        return checks.contains(&check).then(|| Answer::Text(200, "ok".to_owned()));
    }
    if query.get("verbose").is_none() {
        return Some(Answer::Text(200, "ok".to_owned()));
    }
    let excluded: BTreeSet<&str> = query.all("exclude").collect();
    let mut report = String::new();
    for check in &checks {
        let result = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        let _ = writeln!(report, "[+]{check} {result}");
    }
    let unknown = excluded.iter().filter(|name| !checks.contains(name));
    let unknown: Vec<String> = unknown.map(|name| orlop_schema::field::go_quote(name)).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        let _ = writeln!(report, "warn: some health checks cannot be excluded: no matches for {unknown}");
    }
    let _ = writeln!(report, "{endpoint} check passed");
    Some(Answer::Text(200, report))
}
