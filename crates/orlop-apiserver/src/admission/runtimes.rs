//! `RuntimeClass`: what a pod's runtime costs and where it can run.

use super::resources::Resources;
use super::{Attributes, Operation, refusal};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::Value;

const UNEQUAL: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const ALONE: &str = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

/// Gives a new pod the overhead, the node selector and the tolerations of its class.
pub(super) fn mutate(server: &Inner, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
    let Some(class) = class_of(server, kind, attributes)? else { return Ok(()) };
    let overhead = &class["overhead"]["podFixed"];
    if class["overhead"].is_object() {
        let given = &attributes.object["spec"]["overhead"];
        if given.as_object().is_some_and(|given| !given.is_empty()) && !same(given, overhead) {
            return Err(refusal::forbidden(kind, attributes, UNEQUAL));
        }
        object::set_at(&mut attributes.object, "spec.overhead", overhead.clone());
    }
    let scheduling = &class["scheduling"];
    if scheduling.is_object() {
        let mut selector = attributes.object["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
        for (key, wanted) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
            if let Some(given) = selector.get(key).filter(|given| *given != wanted) {
                let (wanted, given) =
                    (wanted.as_str().unwrap_or_default(), given.as_str().unwrap_or_default());
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = \
                     {given}"
                );
                return Err(refusal::forbidden(kind, attributes, &why));
            }
            selector.insert(key.clone(), wanted.clone());
        }
        if !selector.is_empty() {
            object::set_at(&mut attributes.object, "spec.nodeSelector", Value::Object(selector));
        }
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let own = list(&attributes.object["spec"]["tolerations"]);
        let merged = merge(&[own, list(&scheduling["tolerations"])].concat());
        if !merged.is_empty() {
            object::set_at(&mut attributes.object, "spec.tolerations", Value::Array(merged));
        }
    }
    Ok(())
}

/// Refuses pods whose overhead is not that of their class.
pub(super) fn validate(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    if !attributes.is(kind, Operation::Create, "", "pods") {
        return Ok(());
    }
    let class = class_of(server, kind, attributes)?;
    let given = &attributes.object["spec"]["overhead"];
    let why = match class.as_ref().map(|class| &class["overhead"]).filter(|overhead| overhead.is_object()) {
        Some(overhead) if same(given, &overhead["podFixed"]) => return Ok(()),
        Some(_) => UNEQUAL,
        None if given.is_null() => return Ok(()),
        None => ALONE,
    };
    Err(refusal::forbidden(kind, attributes, why))
}

fn class_of(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<Option<Value>, ApiError> {
    let name = attributes.object["spec"]["runtimeClassName"].as_str();
    let Some(name) = name.filter(|_| attributes.is(kind, Operation::Create, "", "pods")) else {
        return Ok(None);
    };
    let classes = Inner::built_in("node.k8s.io", "v1", "runtimeclasses");
    let found = server.find(&classes, "", name);
    found.map(Some).ok_or_else(|| {
        refusal::forbidden(kind, attributes, &format!("pod rejected: RuntimeClass \"{name}\" not found"))
    })
}

fn same(left: &Value, right: &Value) -> bool {
    Resources::read(left).equals(&Resources::read(right))
}

/// All tolerations but those that another one includes.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let known = merged.iter().any(|other| includes(other, one));
        let later = all[index + 1..].iter().any(|other| other != one && includes(other, one));
        if !known && !later {
            merged.push(one.clone());
        }
    }
    merged
}

fn includes(wide: &Value, one: &Value) -> bool {
    if wide == one {
        return true;
    }
    let text = |toleration: &Value, field: &str| object::text(toleration, field).to_owned();
    let operator = text(wide, "operator");
    let any_key = text(wide, "key").is_empty() && operator == "Exists";
    if text(wide, "key") != text(one, "key") && !any_key {
        return false;
    }
    let effect = text(wide, "effect");
    if effect != text(one, "effect") && !effect.is_empty() {
        return false;
    }
    if let (true, Some(most)) = (effect == "NoExecute", wide["tolerationSeconds"].as_i64())
        && one["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match operator.as_str() {
        "Equal" | "" => text(one, "operator") == "Equal" && text(one, "value") == text(wide, "value"),
        "Exists" => true,
        _ => false,
    }
}
