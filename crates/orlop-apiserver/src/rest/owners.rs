//! Owner references: one that is given twice counts once, and the client is told.

use super::Call;
use crate::object;
use serde_json::Value;

/// When references are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Requested,
    Admitted,
}

impl Call {
    /// Drops owner references that an object has twice.
    pub(super) fn dedup_owners(&mut self, object: &mut Value, when: When) {
        let references = object::meta_mut(object).get_mut("ownerReferences").and_then(Value::as_array_mut);
        let Some(references) = references else { return };
        let mut kept: Vec<Value> = Vec::with_capacity(references.len());
        let mut dropped = Vec::new();
        for reference in references.drain(..) {
            if kept.contains(&reference) {
                dropped.push(object::text(&reference, "uid").to_owned());
            } else {
                kept.push(reference);
            }
        }
        *references = kept;
        if dropped.is_empty() {
            return;
        }
        let when = if when == When::Admitted { " after mutating admission happens" } else { "" };
        self.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            dropped.join(", ")
        ));
    }
}
