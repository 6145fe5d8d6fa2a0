//! `NamespaceLifecycle`: objects need a namespace that exists and is not ending.

use super::{Attributes, Operation};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::json;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn check(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    if is_namespace
        && attributes.operation == Operation::Delete
        && IMMORTAL.contains(&attributes.name.as_str())
    {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, why));
    }
    if kind.group == "authorization.k8s.io" && kind.plural == "localsubjectaccessreviews" {
        // What someone may do in a namespace can be asked before there is one.
        return Ok(());
    }
    let namespace = attributes.namespace.as_str();
    if is_namespace || !kind.namespaced || namespace.is_empty() || attributes.operation == Operation::Delete {
        return Ok(());
    }
    let namespaces = Inner::built_in("", "v1", "namespaces");
    let Some(found) = server.find(&namespaces, "", namespace) else {
        return Err(ApiError::not_found("", "namespaces", namespace));
    };
    let ending = object::is_deleting(&found) || found["status"]["phase"] == "Terminating";
    if attributes.operation != Operation::Create || !ending {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = json!({
        "reason": "NamespaceTerminating", "field": "metadata.namespace",
        "message": format!("namespace {namespace} is being terminated"),
    });
    Err(ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, &why).with_cause(cause))
}
