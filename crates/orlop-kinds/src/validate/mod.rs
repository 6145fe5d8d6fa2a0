//! The validation of built-in kinds: what the API server refuses, in its words and in its order.
//!
//! Each module holds the rules of one family of kinds and a table that names them. Objects come decoded and
//! defaulted; rules read them through `view::At`, which knows where a value stands, and write to a
//! `view::Report`. Rules about expressions of the common expression language live elsewhere.

mod access;
mod admission;
mod apps;
mod batch;
mod cluster;
mod config;
mod devices;
mod expressions;
mod flow;
mod golang;
mod meta;
mod networking;
mod pod;
mod rbac;
mod scaling;
mod service;
mod storage;
mod view;
mod warnings;

pub use meta::{Scope, object_meta_create, object_meta_update};

use orlop_schema::field::FieldError;
use orlop_schema::names::NameRule;
use serde_json::Value;
use view::{At, Report};

/// A kind of object, with the version the request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    /// The API group; the core group is empty.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// The rules for a new object.
type Create = fn(&mut Report, &At<'_>);
/// The rules for a change: the new object and the old.
type Update = fn(&mut Report, &At<'_>, &At<'_>);

/// The rules of one kind.
struct Rules {
    group: &'static str,
    kind: &'static str,
    scope: Scope,
    create: Create,
    update: Update,
    /// Rules for changes through a subresource.
    parts: &'static [(&'static str, Update)],
}

impl Rules {
    const fn new(
        group: &'static str,
        kind: &'static str,
        scope: Scope,
        create: Create,
        update: Update,
        parts: &'static [(&'static str, Update)],
    ) -> Self {
        Self { group, kind, scope, create, update, parts }
    }

    /// The rules of a kind that is only ever created, to ask a question; its metadata does not matter.
    const fn review(group: &'static str, kind: &'static str, scope: Scope, create: Create) -> Self {
        Self { group, kind, scope, create, update: meta::update, parts: &[("create", meta::update)] }
    }
}

/// The tables of all families.
const TABLES: &[&[Rules]] = &[
    config::RULES,
    pod::RULES,
    storage::RULES,
    service::RULES,
    apps::RULES,
    batch::RULES,
    cluster::RULES,
    networking::RULES,
    scaling::RULES,
    rbac::RULES,
    admission::RULES,
    flow::RULES,
    access::RULES,
    devices::RULES,
];

fn rules(kind: &Kind<'_>) -> Option<&'static Rules> {
    TABLES.iter().copied().flatten().find(|r| r.group == kind.group && r.kind == kind.kind)
}

/// What is wrong with a new object.
pub fn create(kind: &Kind<'_>, object: &Value) -> Vec<FieldError> {
    let mut report = Report::default();
    let at = At::root(object);
    let Some(rules) = rules(kind) else { return report.0 };
    if let Some(errors) = allocation_errors(kind, &at, None) {
        return errors;
    }
    (rules.create)(&mut report, &at);
    let is_question = rules.parts.iter().any(|(part, _)| *part == "create");
    if report.0.is_empty() && !is_question {
        report.extend(object_meta_create(
            at.get("metadata").value,
            rules.scope,
            NameRule::PathSegment,
            &at.get("metadata").path,
        ));
    }
    report.0
}

/// What is wrong with a change of an object, through the object itself (`""`) or one of its subresources.
///
/// Both are whole objects, already merged: what a subresource may not touch has the old value.
pub fn update(kind: &Kind<'_>, subresource: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut report = Report::default();
    let Some(rules) = rules(kind) else { return report.0 };
    let (new, old) = (At::root(new), At::root(old));
    if subresource.is_empty()
        && let Some(errors) = allocation_errors(kind, &new, Some(&old))
    {
        return errors;
    }
    let meta = new.get("metadata");
    report.extend(object_meta_create(meta.value, rules.scope, NameRule::PathSegment, &meta.path));
    report.extend(object_meta_update(meta.value, old.get("metadata").value, &meta.path));
    let part = rules.parts.iter().find(|(name, _)| *name == subresource).map(|(_, update)| *update);
    match part {
        Some(update) => update(&mut report, &new, &old),
        None if subresource.is_empty() => (rules.update)(&mut report, &new, &old),
        None => meta::update(&mut report, &new, &old),
    }
    report.0
}

/// What the server warns about when an object is created or, with the old object, changed.
///
/// Templates of workloads are looked at again only when `metadata.generation` differs, so the caller sets the
/// new generation before it asks.
pub fn warnings(kind: &Kind<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    warnings::warnings(kind, new, old)
}

/// Errors of what is allocated before an object is validated; they hide all others.
fn allocation_errors(kind: &Kind<'_>, new: &At<'_>, old: Option<&At<'_>>) -> Option<Vec<FieldError>> {
    if (kind.group, kind.kind) != ("", "Service") {
        return None;
    }
    Some(service::early(new, old).0).filter(|errors| !errors.is_empty())
}

/// A list of conditions as newer kinds have them.
fn conditions(r: &mut Report, list: &At<'_>) {
    let mut seen = std::collections::BTreeSet::new();
    for condition in list.items() {
        let (kind, reason) = (condition.get("type"), condition.get("reason"));
        r.when(!seen.insert(kind.str()), || kind.duplicate_str());
        r.qualified(&kind);
        r.one_of(&condition.get("status"), &["False", "True", "Unknown"]);
        let generation = condition.get("observedGeneration");
        r.when(generation.int() < 0, || generation.invalid("must be greater than or equal to zero"));
        let time = condition.get("lastTransitionTime");
        r.when(!time.is_set(), || time.required(""));
        if !r.required(&reason) {
            r.when(!is_reason(reason.str()), || {
                reason.invalid(orlop_schema::names::pattern(
                    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
                    "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                    &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
                ))
            });
            r.when(reason.len() > 1024, || reason.too_long(1024));
        }
        let message = condition.get("message");
        r.when(message.len() > 32 * 1024, || message.too_long(32 * 1024));
    }
}

fn is_reason(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(word)
        && text.chars().all(|c| word(c) || c == ',' || c == ':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn odd_objects_are_refused_or_accepted_but_never_a_panic() {
        let odd = [
            Value::Null,
            json!(1),
            json!("x"),
            json!([]),
            json!({"metadata": 5, "spec": [], "status": "x"}),
            json!({"metadata": {"labels": [1], "finalizers": {}, "ownerReferences": [1]}, "spec": {
                "template": "x", "containers": {}, "ports": [1], "clusterIPs": [1], "jobTemplate": [[]],
                "rules": [null], "limits": [[]], "metrics": [0], "devices": [0], "capacity": {"storage": {}}}}),
        ];
        for rules in TABLES.iter().copied().flatten() {
            let kind = Kind { group: rules.group, version: "v1", kind: rules.kind };
            for new in &odd {
                create(&kind, new);
                warnings(&kind, new, None);
                for old in &odd {
                    for part in
                        ["", "status", "resize", "ephemeralcontainers", "approval", "finalize", "other"]
                    {
                        update(&kind, part, new, old);
                    }
                }
            }
        }
    }

    #[test]
    fn each_kind_has_one_set_of_rules() {
        let mut kinds: Vec<(&str, &str)> =
            TABLES.iter().copied().flatten().map(|r| (r.group, r.kind)).collect();
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
    }

    #[test]
    fn unknown_kinds_have_no_rules() {
        let kind = Kind { group: "example.com", version: "v1", kind: "Foo" };
        assert!(create(&kind, &json!({})).is_empty());
    }
}
