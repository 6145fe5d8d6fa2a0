//! The smallest objects that are accepted.

use serde_json::{Value, json};

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// An object of a kind that needs no more than a name.
pub(crate) fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"key": value}})
}

pub(crate) fn labelled(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": label}}})
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    })
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "image"}]},
            },
        },
    })
}

/// A binding of `kind` role `role` to a user.
pub(crate) fn binding(kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    })
}
