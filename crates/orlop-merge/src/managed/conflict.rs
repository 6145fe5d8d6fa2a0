//! Conflicts as the API tells them.

use std::collections::BTreeMap;

use super::entries::{Identity, Operation};
use crate::go;
use crate::updater::Conflict;

/// Fields that other managers own and a configuration would change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Conflicts {
    /// The message of the answer.
    pub message: String,
    /// One cause for each field and manager.
    pub causes: Vec<Cause>,
}

/// One conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The path of the field.
    pub field: String,
    /// Who owns it.
    pub message: String,
}

impl Conflicts {
    pub(super) fn new(conflicts: &[Conflict<Identity>]) -> Self {
        let mut by_manager: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for conflict in conflicts {
            let group = by_manager
                .entry(conflict.manager.text())
                .or_insert_with(|| (describe(&conflict.manager), Vec::new()));
            group.1.push(conflict.path.to_string());
        }
        let causes: Vec<Cause> = by_manager
            .values()
            .flat_map(|(manager, paths)| {
                paths.iter().map(move |path| Cause {
                    field: path.clone(),
                    message: format!("conflict with {manager}"),
                })
            })
            .collect();
        let message = match causes.as_slice() {
            [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
            all => {
                let mut lines = Vec::new();
                for (manager, paths) in by_manager.values() {
                    lines.push(format!("conflicts with {manager}:"));
                    lines.extend(paths.iter().map(|path| format!("- {path}")));
                }
                format!("Apply failed with {} conflicts: {}", all.len(), lines.join("\n"))
            }
        };
        Self { message, causes }
    }
}

fn describe(identity: &Identity) -> String {
    let mut out = go::quote(&identity.manager);
    if !identity.subresource.is_empty() {
        out.push_str(" with subresource ");
        out.push_str(&go::quote(&identity.subresource));
    }
    if identity.operation == Operation::Update {
        out.push_str(" using ");
        out.push_str(&identity.api_version);
    }
    out
}
