//! What a new cluster holds before anyone has written to it.

use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use orlop_kinds::catalog::catalog;
use orlop_store::Expect;
use serde_json::{Value, json};
use std::sync::PoisonError;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Writes namespaces, roles, priority classes and the `kubernetes` Service.
pub(crate) fn populate(server: &Inner) {
    for name in NAMESPACES {
        let namespaces = Inner::built_in("", "v1", "namespaces");
        add(
            server,
            &namespaces,
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            }),
        );
    }
    let rbac = |plural: &str| Inner::built_in("rbac.authorization.k8s.io", "v1", plural);
    let policy = catalog();
    for (plural, objects) in [
        ("clusterroles", policy.bootstrap_cluster_roles()),
        ("clusterrolebindings", policy.bootstrap_cluster_role_bindings()),
        ("roles", policy.bootstrap_roles()),
        ("rolebindings", policy.bootstrap_role_bindings()),
    ] {
        let kind = rbac(plural);
        for object in objects {
            add(server, &kind, object.clone());
        }
    }
    let classes = Inner::built_in("scheduling.k8s.io", "v1", "priorityclasses");
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        add(
            server,
            &classes,
            json!({
                "metadata": {"name": name, "generation": 1}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        );
    }
    let services = Inner::built_in("", "v1", "services");
    let service = json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
        "status": {"loadBalancer": {}},
    });
    server.addresses.lock().unwrap_or_else(PoisonError::into_inner).claim(&service);
    add(server, &services, service);
}

fn add(server: &Inner, kind: &Kind, mut object: Value) {
    object["kind"] = kind.kind.as_str().into();
    object["apiVersion"] = kind.api_version().into();
    object::set_meta(&mut object, "uid", server.rng.uuid());
    object::set_meta(&mut object, "creationTimestamp", server.now());
    // Only a name that stands twice in the data could be refused, and the first one stays.
    let _ = server.commit(kind, Expect::Absent, object);
}
