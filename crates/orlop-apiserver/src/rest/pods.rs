//! Binding a pod to a node.

use super::decode::Expected;
use super::render::Answer;
use super::{Call, OVERTAKEN_MAX};
use crate::object;
use crate::options::{FieldValidation, WriteOptions, WriteVerb};
use crate::server::Inner;
use crate::status::ApiError;
use orlop_kinds::validate;
use orlop_store::Expect;
use serde_json::{Value, json};

impl Call {
    /// POST of a Binding: the pod gets its node.
    pub(super) async fn bind(&mut self) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Create)?;
        let mut binding = self.decode_as(Expected::built_in("", "v1", "Binding")?, FieldValidation::Warn)?;
        self.check_namespace(&mut binding)?;
        binding = self.own_answered(binding, &options);
        binding = self.admit_answered(binding, &options).await?;
        let id = validate::Kind { group: "", version: "v1", kind: "Binding" };
        if let Some(error) = validate::create(&id, &binding).first() {
            return Err(ApiError::internal_plain(error.to_string()));
        }
        self.check_answered(&binding, &options).await?;
        if self.kind.plural == "bindings" {
            self.kind = Inner::built_in("", "v1", "pods");
            self.route.name = object::meta_str(&binding, "name").to_owned();
        }
        let (node, now) = (object::text(&binding["target"], "name").to_owned(), self.server.now());
        let name = self.route.name.clone();
        for _ in 0..OVERTAKEN_MAX {
            let stored = self.stored(&name)?;
            let live = self.kind.read(&stored);
            let next = bound_pod(&live, &binding, &name, &node, &now)?;
            if options.dry_run {
                return Ok(Answer::Value(201, success(201)));
            }
            // Another writer may have been faster: look again.
            if let Ok(next) = self.commit(Expect::At(stored.revision), next).await? {
                self.server.committed(&self.kind, Some(&live), Some(&next));
                return Ok(Answer::Value(201, success(201)));
            }
        }
        Err(ApiError::modified("", "pods", &name))
    }
}

/// A pod that has just been given its node.
fn bound_pod(pod: &Value, binding: &Value, name: &str, node: &str, now: &str) -> Result<Value, ApiError> {
    let conflict = |why: &str| Err(ApiError::conflict("", "pods/binding", name, why));
    if object::is_deleting(pod) {
        return conflict(&format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let assigned = object::at(pod, "spec.nodeName").and_then(Value::as_str).unwrap_or_default();
    if !assigned.is_empty() {
        return conflict(&format!("pod {name} is already assigned to node \"{assigned}\""));
    }
    let (wanted, found) = (object::meta_str(binding, "uid"), object::meta_str(pod, "uid"));
    if !wanted.is_empty() && wanted != found {
        return conflict(&format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({found})"
        ));
    }
    let mut next = pod.clone();
    object::set_at(&mut next, "spec.nodeName", node.into());
    let mut annotations = next["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    for (key, value) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
        annotations.insert(key.clone(), value.clone());
    }
    if !annotations.is_empty() {
        object::set_meta(&mut next, "annotations", Value::Object(annotations));
    }
    let mut conditions = next["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(
        json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now, "lastProbeTime": null}),
    );
    object::set_at(&mut next, "status.conditions", Value::Array(conditions));
    Ok(next)
}

pub(super) fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
