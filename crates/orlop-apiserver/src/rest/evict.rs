//! Evicting a pod: it goes if its disruption budget allows.

use super::Call;
use super::decode::Expected;
use super::delete::Admission;
use super::pods::success;
use super::render::Answer;
use crate::object::{self, Stored};
use crate::options::{DeleteOptions, FieldValidation, WriteOptions, WriteVerb};
use crate::selector::LabelSelector;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_store::{Expect, Key};
use serde_json::{Value, json};

/// How many pods a budget remembers as being disrupted.
const DISRUPTED_MAX: usize = 2000;
/// How often an eviction is tried again when the pod or its budget changes meanwhile.
const TRIES: usize = 20;
/// When a client whose eviction has to wait may ask again.
const RETRY_SECONDS: u32 = 10;
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Why a pod may go.
enum Leave {
    /// No budget is about it, or the budget was charged.
    Given,
    /// It does not count for its budget as it is now; if it changes, the budget must be asked again.
    AsItIs {
        /// The budget.
        budget: String,
    },
}

impl Call {
    /// POST of an Eviction.
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
        for _ in 0..TRIES {
            let pod = self.object(&name).await?;
            if !ignores_budgets(&pod) {
                self.evict_counted(&pod, options).await?;
                return Ok(Answer::Value(201, success(201)));
            }
            let mut guarded = options.clone();
            if phase(&pod) == "Pending" && !object::is_deleting(&pod) && guarded.resource_version.is_none() {
                guarded.resource_version = Some(object::meta_str(&pod, "resourceVersion").to_owned());
            }
            match self.delete_evicted(&name, guarded).await {
                Err(error) if error.reason() == "Conflict" && options.resource_version.is_none() => {}
                result => return result.map(|()| Answer::Value(201, success(201))),
            }
        }
        Err(ApiError::modified("", "pods", &name))
    }

    /// Evicts a pod that its budget has a say in.
    async fn evict_counted(&mut self, pod: &Value, options: DeleteOptions) -> Result<(), ApiError> {
        let name = object::meta_str(pod, "name");
        let Leave::AsItIs { budget } = self.ask_budget(pod, &options)? else {
            return self.delete_evicted(name, options).await;
        };
        let was_given = options.resource_version.is_some();
        let version = Some(object::meta_str(pod, "resourceVersion").to_owned());
        let mut guarded = options;
        guarded.resource_version = version;
        match self.delete_evicted(name, guarded).await {
            Err(error) if error.reason() == "Conflict" && !was_given => Err(unsettled(&budget)),
            result => result,
        }
    }

    /// Says in the pod why it goes, then deletes it.
    async fn delete_evicted(&mut self, name: &str, mut options: DeleteOptions) -> Result<(), ApiError> {
        let mut stored = self.stored(name)?;
        if !options.dry_run {
            for _ in 0..TRIES {
                let live = self.kind.read(&stored);
                self.check_preconditions(&live, &options)?;
                let next = disrupted(&live, &self.server.now());
                if next == live {
                    break;
                }
                if let Ok(next) = self.commit(Expect::At(stored.revision), next).await? {
                    if options.resource_version.is_some() {
                        options.resource_version =
                            Some(object::meta_str(&next, "resourceVersion").to_owned());
                    }
                    break;
                }
                stored = self.stored(name)?;
            }
            stored = self.stored(name)?;
        }
        self.delete_stored(stored, &options, Admission::Done).await.map(|_| ())
    }

    /// Takes one disruption from the pod's budget, or says that there is none to take.
    fn ask_budget(&self, pod: &Value, options: &DeleteOptions) -> Result<Leave, ApiError> {
        let budgets = Inner::built_in("policy", "v1", "poddisruptionbudgets");
        let mut name = String::new();
        for _ in 0..TRIES {
            let Some((stored, budget)) = self.budget_of(pod)? else { return Ok(Leave::Given) };
            object::meta_str(&budget, "name").clone_into(&mut name);
            let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
            let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
            let healthy_enough =
                number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
            if !is_ready(pod) && (always || healthy_enough) {
                return Ok(Leave::AsItIs { budget: name });
            }
            let charged = charge(&budget, pod, &self.server.now())?;
            if options.dry_run || self.server.commit(&budgets, Expect::At(stored.revision), charged).is_ok() {
                return Ok(Leave::Given);
            }
        }
        let why = format!("couldn't update PodDisruptionBudget {name:?} due to conflicts");
        Err(ApiError::new(504, "Timeout", format!("Timeout: {why}"))
            .with_details(json!({"retryAfterSeconds": RETRY_SECONDS}))
            .with_retry_after(RETRY_SECONDS))
    }

    /// The budget that is about a pod.
    fn budget_of(&self, pod: &Value) -> Result<Option<(Stored, Value)>, ApiError> {
        let budgets = Inner::built_in("policy", "v1", "poddisruptionbudgets");
        let labels: Vec<(Box<str>, Box<str>)> =
            object::labels(pod).map(|(k, v)| (k.into(), v.into())).collect();
        let prefix = format!("{}/", self.namespace());
        let snapshot = self.server.store.snapshot(&budgets.table);
        let start = Key::from_text(&prefix);
        let mut matching = snapshot
            .within(&prefix, &start)
            .map(|stored| (stored.clone(), budgets.read(stored)))
            .filter(|(_, budget)| {
                LabelSelector::from_object(&budget["spec"]["selector"]).is_some_and(|s| s.matches(&labels))
            });
        let first = matching.next();
        if matching.next().is_some() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::internal_plain(why));
        }
        Ok(first)
    }
}

/// A budget with one disruption less.
fn charge(budget: &Value, pod: &Value, now: &str) -> Result<Value, ApiError> {
    let name = object::meta_str(budget, "name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let forbidden = |why: &str| Err(ApiError::forbidden("policy", "poddisruptionbudgets", name, why));
    let observed = number("observedGeneration");
    if observed < object::meta_i64(budget, "generation").unwrap_or(0) {
        return Err(unsettled(name));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let mut disrupted = budget["status"]["disruptedPods"].as_object().cloned().unwrap_or_default();
    if disrupted.len() > DISRUPTED_MAX {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
        let message =
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
        let cause = json!({"reason": "DisruptionBudget", "message": message});
        return Err(ApiError::new(429, "TooManyRequests", VIOLATED).with_details(json!({"causes": [cause]})));
    }
    disrupted.insert(object::meta_str(pod, "name").to_owned(), now.into());
    let mut next = budget.clone();
    object::set_at(&mut next, "status.disruptedPods", Value::Object(disrupted));
    object::set_at(&mut next, "status.disruptionsAllowed", (allowed - 1).into());
    if allowed == 1 {
        set_condition(
            &mut next,
            json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": observed, "lastTransitionTime": now,
            }),
        );
    }
    Ok(next)
}

/// A pod that says that it was evicted.
fn disrupted(pod: &Value, now: &str) -> Value {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|c| c["type"] == "DisruptionTarget" && c["status"] == "True") {
        return pod.clone();
    }
    let mut next = pod.clone();
    set_condition(
        &mut next,
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": now, "lastProbeTime": null,
        }),
    );
    next
}

fn set_condition(object: &mut Value, condition: Value) {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|other| other["type"] != condition["type"]);
    conditions.push(condition);
    object::set_at(object, "status.conditions", Value::Array(conditions));
}

/// 429: the budget's controller has not caught up, or the pod has changed.
fn unsettled(budget: &str) -> ApiError {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    let cause = json!({"reason": "DisruptionBudget", "message": message});
    ApiError::new(429, "TooManyRequests", VIOLATED)
        .with_details(json!({"causes": [cause], "retryAfterSeconds": RETRY_SECONDS}))
        .with_retry_after(RETRY_SECONDS)
}

fn phase(pod: &Value) -> &str {
    object::at(pod, "status.phase").and_then(Value::as_str).unwrap_or_default()
}

/// Pods that are over, or have not begun, disturb nobody when they go.
fn ignores_budgets(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
