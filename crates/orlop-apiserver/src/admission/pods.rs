//! Plugins for pods: priority, tolerations.

use super::{Attributes, Operation};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::{Value, json};

/// Seconds that a pod stays on a node that is not ready or not reachable.
const TOLERATION_SECONDS: i64 = 300;

/// `Priority`: the number comes from the class, never from the pod.
pub(super) fn set_priority(server: &Inner, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
    let forbidden = |why: &str| ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, why);
    if attributes.operation == Operation::Update {
        // Priority cannot be changed; a writer that leaves it out keeps it.
        for field in ["spec.priority", "spec.preemptionPolicy"] {
            if let (None, Some(kept)) =
                (object::at(&attributes.object, field), object::at(&attributes.old, field))
            {
                object::set_at(&mut attributes.object, field, kept.clone());
            }
        }
        return Ok(());
    }
    let classes = Inner::built_in("scheduling.k8s.io", "v1", "priorityclasses");
    let wanted =
        object::at(&attributes.object, "spec.priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = if wanted.is_empty() {
        default_class(server, &classes)
    } else {
        let found = server.find(&classes, "", wanted);
        Some(found.ok_or_else(|| forbidden(&format!("no PriorityClass with name {wanted} was found")))?)
    };
    let priority = class.as_ref().and_then(|c| c["value"].as_i64()).unwrap_or(0);
    let policy = class.as_ref().map(|c| object::text(c, "preemptionPolicy")).filter(|p| !p.is_empty());
    let policy = policy.unwrap_or("PreemptLowerPriority");
    if let Some(given) = object::at(&attributes.object, "spec.priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        )));
    }
    if let Some(given) = object::at(&attributes.object, "spec.preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return Err(forbidden(&format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    if let (true, Some(class)) = (wanted.is_empty(), &class) {
        let name = object::meta_str(class, "name").to_owned();
        object::set_at(&mut attributes.object, "spec.priorityClassName", name.into());
    }
    object::set_at(&mut attributes.object, "spec.priority", priority.into());
    object::set_at(&mut attributes.object, "spec.preemptionPolicy", policy.into());
    Ok(())
}

fn default_class(server: &Inner, classes: &Kind) -> Option<Value> {
    let snapshot = server.store.snapshot(&classes.table);
    let all = snapshot.iter().map(|stored| classes.read(stored));
    all.filter(|class| class["globalDefault"] == true).min_by_key(|class| class["value"].as_i64())
}

/// `Priority`: only one class can be the default.
pub(super) fn check_priority_class(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
) -> Result<(), ApiError> {
    if attributes.operation == Operation::Delete || attributes.object["globalDefault"] != true {
        return Ok(());
    }
    match default_class(server, kind) {
        Some(class) if object::meta_str(&class, "name") != attributes.name => {
            let name = object::meta_str(&class, "name");
            let why =
                format!("PriorityClass {name} is already marked as default. Only one default can exist");
            Err(ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, &why))
        }
        _ => Ok(()),
    }
}

/// `DefaultTolerationSeconds`: pods wait a while before they leave a broken node.
pub(super) fn add_tolerations(pod: &mut Value) {
    let mut tolerations =
        object::at(pod, "spec.tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let before = tolerations.len();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let (given, effect) = (object::text(toleration, "key"), object::text(toleration, "effect"));
            (given.is_empty() || given == key) && matches!(effect, "" | "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
    if tolerations.len() > before {
        object::set_at(pod, "spec.tolerations", Value::Array(tolerations));
    }
}
