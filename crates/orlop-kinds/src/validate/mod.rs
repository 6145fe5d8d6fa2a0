//! The validation of built-in kinds: what the API server refuses, in its words and in its order.
//!
//! Each module holds the rules of one family of kinds and a table that names them. Objects come decoded and
//! defaulted; rules read them through [`view::At`], which knows where a value stands, and write to a
//! [`view::Report`]. Rules about expressions of the common expression language live elsewhere.

mod apps;
mod config;
mod golang;
mod meta;
mod pod;
mod service;
mod storage;
mod view;

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
}

/// The tables of all families.
const TABLES: &[&[Rules]] = &[config::RULES, pod::RULES, storage::RULES, service::RULES, apps::RULES];

fn rules(kind: &Kind<'_>) -> Option<&'static Rules> {
    TABLES.iter().copied().flatten().find(|r| r.group == kind.group && r.kind == kind.kind)
}

/// What is wrong with a new object.
pub fn create(kind: &Kind<'_>, object: &Value) -> Vec<FieldError> {
    let mut report = Report::default();
    let at = At::root(object);
    let Some(rules) = rules(kind) else { return report.0 };
    (rules.create)(&mut report, &at);
    if report.0.is_empty() {
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
pub fn warnings(_kind: &Kind<'_>, _new: &Value, _old: Option<&Value>) -> Vec<String> {
    Vec::new()
}
