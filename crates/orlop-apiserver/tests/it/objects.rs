//! The smallest objects that are accepted.

use serde_json::{Value, json};

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
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

/// A definition of namespaced `widgets.example.com` in these versions, the last one stored.
pub(crate) fn widgets(versions: &[&str]) -> Value {
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": versions.last() == Some(name),
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"status": {}},
        })
    };
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

/// A custom object.
pub(crate) fn widget(name: &str) -> Value {
    json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": name}, "spec": {"size": 1}})
}

/// A binding of `kind` role `role` to a user.
pub(crate) fn binding(kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    })
}
