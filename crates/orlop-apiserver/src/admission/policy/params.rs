//! Parameters of policies: objects of any kind that a binding names or selects.

use crate::kind::{Kind, Registry};
use crate::object;
use crate::selector::labels::LabelSelector;
use crate::server::Inner;
use serde_json::Value;
use std::sync::Arc;

/// The kind that a policy's params have, if it has params.
pub(super) fn kind_of(server: &Inner, param_kind: &Value) -> Result<Option<Arc<Kind>>, String> {
    if param_kind.is_null() {
        return Ok(None);
    }
    let (api_version, kind) = (object::text(param_kind, "apiVersion"), object::text(param_kind, "kind"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let custom = server.custom_kinds();
    let found =
        Registry::built_in().by_kind(group, version, kind).or_else(|| custom.by_kind(group, version, kind));
    found.cloned().map(Some).ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'")
    })
}

/// The params that a binding gives a policy; one null if the policy or the binding knows none.
pub(super) fn collect(
    server: &Inner,
    kind: Option<&Kind>,
    reference: &Value,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let Some(kind) = kind.filter(|_| !reference.is_null()) else { return Ok(vec![Value::Null]) };
    let given = object::text(reference, "namespace");
    let namespace = match (kind.namespaced, given, namespace) {
        (true, "", "") => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, "", namespace) => namespace,
        (true, given, _) => given,
        (false, "", _) => "",
        (false, ..) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let name = object::text(reference, "name");
    let params: Vec<Value> = if name.is_empty() {
        select(server, kind, &reference["selector"], namespace)
    } else {
        server.find(kind, namespace, name).into_iter().collect()
    };
    if params.is_empty() && reference["parameterNotFoundAction"] == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}

fn select(server: &Inner, kind: &Kind, selector: &Value, namespace: &str) -> Vec<Value> {
    let selector = LabelSelector::from_object(selector);
    let stored = server.stored_within(kind, namespace).into_iter();
    let selected = stored.filter(|stored| selector.as_ref().is_none_or(|s| s.matches(&stored.header.labels)));
    selected.map(|stored| kind.read(&stored)).collect()
}
