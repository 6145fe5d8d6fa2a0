//! Binding a pod to a node, and evicting it.

use super::Call;
use super::decode::Expected;
use super::delete::Admission;
use super::render::Answer;
use crate::object;
use crate::options::{DeleteOptions, FieldValidation, WriteOptions, WriteVerb};
use crate::selector::LabelSelector;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_kinds::validate;
use orlop_store::{Expect, Key};
use serde_json::{Value, json};

/// How many pods a budget remembers as being disrupted.
const DISRUPTED_MAX: usize = 2000;

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
        loop {
            let stored = self.stored(&name)?;
            let live = self.kind.read(&stored);
            let next = bound_pod(&live, &binding, &name, &node, &now)?;
            if options.dry_run {
                break;
            }
            // Another writer may have been faster: look again.
            if let Ok(next) = self.commit(Expect::At(stored.revision), next).await? {
                self.server.committed(&self.kind, Some(&live), Some(&next));
                break;
            }
        }
        Ok(Answer::Value(201, success(201)))
    }

    /// POST of an Eviction: the pod goes, if its budget allows.
    pub(super) async fn evict(&mut self) -> Result<Answer, ApiError> {
        let name = self.route.name.clone();
        let mut eviction =
            self.decode_as(Expected::built_in("policy", "v1", "Eviction")?, FieldValidation::Warn)?;
        let write = WriteOptions::parse(&self.query, WriteVerb::Create)?;
        self.check_namespace(&mut eviction)?;
        eviction = self.own_answered(eviction, &write);
        eviction = self.admit_answered(eviction, &write).await?;
        let given = object::meta_str(&eviction, "name");
        if !given.is_empty() && given != name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        if write.dry_run {
            object::set_at(&mut eviction, "deleteOptions.dryRun", json!(["All"]));
        }
        self.check_answered(&eviction, &write).await?;
        let mut options = match eviction.get("deleteOptions") {
            Some(options) if options.is_object() => DeleteOptions::from_body(options)?,
            _ => DeleteOptions::default(),
        };
        options.dry_run |= write.dry_run;
        let pod = self.object(&name).await?;
        if !ignores_budgets(&pod) {
            self.ask_budget(&pod, &options)?;
        }
        if !options.dry_run {
            self.say_evicted(&name, &mut options).await?;
        }
        let stored = self.stored(&name)?;
        self.delete_stored(stored, &options, Admission::Done).await?;
        Ok(Answer::Value(201, success(201)))
    }

    /// Lets a pod say why it goes.
    async fn say_evicted(&mut self, name: &str, options: &mut DeleteOptions) -> Result<(), ApiError> {
        loop {
            let stored = self.stored(name)?;
            let live = self.kind.read(&stored);
            self.check_preconditions(&live, options)?;
            let mut conditions = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": self.server.now(),
            });
            match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
                Some(known) if known["status"] == condition["status"] => return Ok(()),
                Some(known) => *known = condition,
                None => conditions.push(condition),
            }
            let mut next = live.clone();
            object::set_at(&mut next, "status.conditions", Value::Array(conditions));
            // Another writer may have been faster: look again.
            if let Ok(next) = self.commit(Expect::At(stored.revision), next).await? {
                self.server.committed(&self.kind, Some(&live), Some(&next));
                if options.resource_version.is_some() {
                    options.resource_version = Some(object::meta_str(&next, "resourceVersion").to_owned());
                }
                return Ok(());
            }
        }
    }

    /// Takes one disruption from the pod's budget, or says that there is none to take.
    fn ask_budget(&self, pod: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
        let budgets = Inner::built_in("policy", "v1", "poddisruptionbudgets");
        let labels: Vec<(Box<str>, Box<str>)> =
            object::labels(pod).map(|(k, v)| (k.into(), v.into())).collect();
        let prefix = format!("{}/", self.namespace());
        let snapshot = self.server.store.snapshot(&budgets.table);
        let matching: Vec<_> = snapshot
            .within(&prefix, &Key::from_text(&prefix))
            .map(|stored| (stored.clone(), budgets.read(stored)))
            .filter(|(_, budget)| {
                LabelSelector::from_object(&budget["spec"]["selector"]).is_some_and(|s| s.matches(&labels))
            })
            .collect();
        let (stored, mut budget) = match matching.len() {
            0 => return Ok(()),
            1 => matching.into_iter().next().expect("there is one"),
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::internal_plain(why));
            }
        };
        let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
        let unready = !is_ready(pod);
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let healthy_enough =
            number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
        if unready && (always || healthy_enough) {
            return Ok(());
        }
        let budget_name = object::meta_str(&budget, "name").to_owned();
        let observed = number("observedGeneration");
        let generation = object::meta_i64(&budget, "generation").unwrap_or(0);
        let too_many = |message: String| {
            let cause = json!({"reason": "DisruptionBudget", "message": message});
            let text = "Cannot evict pod as it would violate the pod's disruption budget.";
            ApiError::new(429, "TooManyRequests", text).with_details(json!({"causes": [cause]}))
        };
        if observed < generation {
            let cause = json!({
                "reason": "DisruptionBudget",
                "message": format!("The disruption budget {budget_name} is still being processed by the server."),
            });
            let text = "Cannot evict pod as it would violate the pod's disruption budget.";
            let details = json!({"causes": [cause], "retryAfterSeconds": 10});
            return Err(ApiError::new(429, "TooManyRequests", text)
                .with_details(details)
                .with_retry_after(10));
        }
        let allowed = number("disruptionsAllowed");
        if allowed < 0 {
            return Err(ApiError::forbidden(
                "policy",
                "poddisruptionbudgets",
                &budget_name,
                "pdb disruptions allowed is negative",
            ));
        }
        let disrupted = budget["status"]["disruptedPods"].as_object().cloned().unwrap_or_default();
        if disrupted.len() > DISRUPTED_MAX {
            let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
            return Err(ApiError::forbidden("policy", "poddisruptionbudgets", &budget_name, why));
        }
        if allowed == 0 {
            let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
            return Err(too_many(format!(
                "The disruption budget {budget_name} needs {desired} healthy pods and has {healthy} currently"
            )));
        }
        if options.dry_run {
            return Ok(());
        }
        let now = self.server.now();
        let mut disrupted = disrupted;
        disrupted.insert(object::meta_str(pod, "name").to_owned(), now.as_str().into());
        object::set_at(&mut budget, "status.disruptedPods", Value::Object(disrupted));
        object::set_at(&mut budget, "status.disruptionsAllowed", (allowed - 1).into());
        if allowed == 1 {
            let mut conditions = budget["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.retain(|condition| condition["type"] != "DisruptionAllowed");
            conditions.push(json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": observed, "lastTransitionTime": now,
            }));
            object::set_at(&mut budget, "status.conditions", Value::Array(conditions));
        }
        self.server
            .commit(&budgets, Expect::At(stored.revision), budget)
            .map(|_| ())
            .map_err(|_| too_many(format!("The disruption budget {budget_name} changed meanwhile")))
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

/// Pods that are over, or have not begun, disturb nobody when they go.
fn ignores_budgets(pod: &Value) -> bool {
    let phase = object::at(pod, "status.phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
