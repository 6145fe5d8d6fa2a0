//! What the tests share.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::Status;
use orlop_cluster::Cluster;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A typed object from JSON.
pub(crate) fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the test's own object has the type's form")
}

/// A ConfigMap with one entry.
pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"key": value}}))
}

/// A Deployment with one container.
pub(crate) fn deployment(name: &str) -> Deployment {
    object(json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
            },
        },
    }))
}

/// ConfigMaps of the default namespace, as the administrator.
pub(crate) fn config_maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client())
}

/// The refusal that a call must have met.
pub(crate) fn refusal<T>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        Err(other) => panic!("the server did not answer: {other}"),
        Ok(_) => panic!("the server did not refuse"),
    }
}
