//! The conditions of a definition.

use serde_json::{Value, json};

/// A condition with its reason and message.
pub(super) struct Condition {
    pub(super) name: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    pub(super) fn new(
        name: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { name, status, reason, message: message.into() }
    }
}

/// A condition of a definition.
pub(super) fn find<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    definition["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

/// Whether a condition holds.
pub(super) fn is_true(definition: &Value, name: &str) -> bool {
    find(definition, name).is_some_and(|condition| condition["status"] == "True")
}

/// Whether a definition has a condition already, for the same reason.
pub(super) fn has(definition: &Value, condition: &Condition) -> bool {
    find(definition, condition.name).is_some_and(|found| {
        found["status"] == condition.status
            && found["reason"] == condition.reason
            && found["message"] == condition.message.as_str()
    })
}

/// Sets a condition; the time of its last change stays if the status does.
pub(super) fn set(definition: &mut Value, condition: &Condition, now: &str) {
    let list = &mut definition["status"]["conditions"];
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    let known = list.iter().position(|known| known["type"] == condition.name);
    let since = known
        .map(|index| &list[index])
        .filter(|known| known["status"] == condition.status && known["lastTransitionTime"].is_string())
        .map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone());
    let value = json!({
        "type": condition.name, "status": condition.status, "reason": condition.reason,
        "message": condition.message, "lastTransitionTime": since,
    });
    match known {
        Some(index) => list[index] = value,
        None => list.push(value),
    }
}
