//! From what shall exist and what does to what is to be done. A plan is data: it can be printed, compared and tested,
//! and nothing has happened yet.

use crate::desired::{Adoption, Child, Desired, Immutable};
use crate::names;
use crate::owner::{Owner, OwnerError, Ownership, Scope};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// The label by which an operator finds what is its own; its value is [`Controller::id`].
pub const TRACKING_LABEL: &str = "orlop.dev/controller";
/// The annotation that holds the hash of what was wanted when the object was written last.
pub const INTENT_ANNOTATION: &str = "orlop.dev/intent";

/// A controller of an operator. Its identity is kept in the cluster, so it must stay the same between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    operator: String,
    name: String,
}

impl Controller {
    /// The controller `name` of `operator`.
    pub fn new(operator: &str, name: &str) -> Self {
        Self { operator: operator.to_owned(), name: name.to_owned() }
    }

    /// Whose fields it applies.
    pub fn field_manager(&self) -> String {
        format!("{}/{}", self.operator, self.name)
    }

    /// The value of [`TRACKING_LABEL`] on what it owns.
    pub fn id(&self) -> String {
        names::label_value(&format!("{}.{}", self.operator, self.name))
    }
}

/// An object by kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The API group; a child stays the same when its version changes.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty if it has none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        Self {
            group: api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}

/// An object that exists and may be a child.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object, or as much as is known of it: `apiVersion`, `kind` and `metadata` at least.
    pub object: Value,
    /// What of it the controller has applied; see [`crate::fields::applied`].
    pub applied: Option<Value>,
    /// What is remembered of the last write to it.
    pub memory: Memory,
}

/// What a controller remembers of a child. It may forget: then a write more is made, never a write less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The intent that was written, and a hash of what the server made of it.
    pub confirmed: Option<(String, String)>,
    /// The intent that the server refused because a field cannot be changed.
    pub immutable: Option<String>,
}

impl Memory {
    /// What to remember after a write of `intent` that the server answered with an object of which `applied` is ours.
    pub fn confirmed(intent: &Value, applied: &Value) -> Self {
        let written = intent["metadata"]["annotations"][INTENT_ANNOTATION].as_str().unwrap_or_default();
        Self { confirmed: Some((written.to_owned(), hash(applied))), immutable: None }
    }
}

/// Why an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is not there.
    Missing,
    /// Something else is wanted now.
    Changed,
    /// Somebody changed what is ours.
    Drifted,
    /// It is there and becomes ours.
    Adopted,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Changed => "changed",
            Self::Drifted => "drifted",
            Self::Adopted => "adopted",
        }
    }
}

/// One thing to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The object is applied.
    Apply {
        /// Complete: with owner, tracking label and intent.
        intent: Value,
        /// Why.
        why: Why,
    },
    /// The object is deleted and made anew, since a field has to change that cannot.
    Recreate {
        /// Complete.
        intent: Value,
        /// What is deleted.
        uid: String,
    },
    /// Nothing: it is as it shall be.
    Keep(Key),
    /// Nothing yet.
    Wait {
        /// Which object.
        key: Key,
        /// For what.
        what: String,
    },
    /// The object is deleted: it is ours and not wanted any more.
    Prune {
        /// Which object.
        key: Key,
        /// Only this one, not one of the same name that came later.
        uid: String,
    },
}

/// A child that cannot be had. The others are not held up by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Another controller has it.
    #[error("{key} belongs to {controller}")]
    Foreign {
        /// Which object.
        key: Key,
        /// Kind and name of whose it is.
        controller: String,
    },
    /// It is there, belongs to nobody, and was not to be adopted.
    #[error("{key} exists and belongs to nobody; adopt it, or choose another name")]
    NotAdopted {
        /// Which object.
        key: Key,
    },
    /// The owner cannot own it.
    #[error(transparent)]
    Owner(#[from] OwnerError),
}

/// A desired state that makes no sense; nothing is planned, and nothing is deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Two children are one object.
    #[error("{0} is desired twice")]
    Twice(Key),
    /// A child has no name or kind.
    #[error("a child needs apiVersion, kind and metadata.name, and child {number} has not")]
    Nameless {
        /// Counted from 1.
        number: usize,
    },
    /// There are children, and none are desired, maybe by accident.
    #[error("no child is desired and {count} exist; if they shall go, say `Desired::none()`")]
    EmptyByAccident {
        /// How many exist.
        count: usize,
    },
}

/// What is to be done for one parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In order: children as they are desired, then what goes.
    pub steps: Vec<Step>,
    /// What cannot be done.
    pub refusals: Vec<Refusal>,
}

impl Plan {
    /// Plans. `observed` are the objects that are the controller's own, and those that have the name of a desired child.
    pub fn make(
        controller: &Controller,
        owner: &Owner,
        desired: &Desired,
        observed: &[Observed],
    ) -> Result<Self, PlanError> {
        let mut plan = Self::default();
        let mut wanted = BTreeSet::new();
        let own = |one: &&Observed| owner.ownership(&one.object) == Ownership::Own;
        if desired.is_empty_by_accident() && observed.iter().any(|one| own(&one)) {
            let count = observed.iter().filter(own).count();
            return Err(PlanError::EmptyByAccident { count });
        }
        for (n, child) in desired.children.iter().enumerate() {
            let key = key_of(child, owner);
            if key.name.is_empty() || key.kind.is_empty() || child.object["apiVersion"].as_str().is_none() {
                return Err(PlanError::Nameless { number: n + 1 });
            }
            if !wanted.insert(key.clone()) {
                return Err(PlanError::Twice(key));
            }
            let existing = observed.iter().find(|one| Key::of(&one.object) == key);
            match step(controller, owner, child, key, existing) {
                Ok(step) => plan.steps.push(step),
                Err(refusal) => plan.refusals.push(refusal),
            }
        }
        let unwanted = observed.iter().filter(own).filter(|one| !wanted.contains(&Key::of(&one.object)));
        let going = unwanted.filter(|one| one.object["metadata"]["deletionTimestamp"].is_null());
        plan.steps.extend(going.map(|one| Step::Prune { key: Key::of(&one.object), uid: uid(&one.object) }));
        Ok(plan)
    }

    /// Whether everything is as it shall be.
    pub fn is_converged(&self) -> bool {
        self.refusals.is_empty() && self.steps.iter().all(|step| matches!(step, Step::Keep(_)))
    }
}

/// One line for each step, as `plan` prints them.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                Step::Apply { intent, why } => {
                    writeln!(f, "apply    {} ({})", Key::of(intent), why.as_str())?;
                }
                Step::Recreate { intent, .. } => writeln!(f, "recreate {}", Key::of(intent))?,
                Step::Keep(key) => writeln!(f, "keep     {key}")?,
                Step::Wait { key, what } => writeln!(f, "wait     {key} (for {what})")?,
                Step::Prune { key, .. } => writeln!(f, "prune    {key}")?,
            }
        }
        self.refusals.iter().try_for_each(|refusal| writeln!(f, "refuse   {refusal}"))
    }
}

fn key_of(child: &Child, owner: &Owner) -> Key {
    let mut key = Key::of(&child.object);
    match child.scope {
        Scope::Namespaced if key.namespace.is_empty() => key.namespace.clone_from(&owner.namespace),
        Scope::Namespaced => {}
        Scope::Cluster => key.namespace.clear(),
    }
    key
}

fn step(
    controller: &Controller,
    owner: &Owner,
    child: &Child,
    key: Key,
    existing: Option<&Observed>,
) -> Result<Step, Refusal> {
    let intent = intent(controller, owner, child)?;
    let waits = |what: &str| Step::Wait { key: key.clone(), what: what.to_owned() };
    let Some(existing) = existing else {
        return Ok(match &child.waits_for {
            Some(what) => waits(what),
            None => Step::Apply { intent, why: Why::Missing },
        });
    };
    let object = &existing.object;
    match (owner.ownership(object), child.adoption) {
        (Ownership::Own, _) | (Ownership::Free, Adoption::Adopt) => {}
        (Ownership::Stale, _) => return Ok(waits("the garbage of a former owner to be collected")),
        (Ownership::Free, Adoption::Refuse) => return Err(Refusal::NotAdopted { key }),
        (Ownership::Foreign, _) => return Err(Refusal::Foreign { key, controller: controller_of(object) }),
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Ok(waits("its deletion to finish"));
    }
    if let Some(what) = &child.waits_for {
        return Ok(waits(what));
    }
    let written = intent["metadata"]["annotations"][INTENT_ANNOTATION].as_str().unwrap_or_default();
    if child.immutable == Immutable::Recreate && existing.memory.immutable.as_deref() == Some(written) {
        return Ok(Step::Recreate { intent, uid: uid(object) });
    }
    let found = object["metadata"]["annotations"][INTENT_ANNOTATION].as_str();
    let why = match (&existing.applied, found) {
        (None, _) if owner.ownership(object) == Ownership::Free => Some(Why::Adopted),
        (Some(applied), Some(found)) if found == written => {
            (!is_as_written(&intent, written, applied, &existing.memory)).then_some(Why::Drifted)
        }
        (_, Some(found)) if found == written => Some(Why::Drifted),
        _ => Some(Why::Changed),
    };
    Ok(why.map_or(Step::Keep(key), |why| Step::Apply { intent, why }))
}

/// Whether what is ours is still as the server made it of the intent. If that was forgotten, it must be the intent word
/// for word; where the server writes something differently, that costs one write more.
fn is_as_written(intent: &Value, written: &str, applied: &Value, memory: &Memory) -> bool {
    match &memory.confirmed {
        Some((of, made)) if of == written => *made == hash(applied),
        _ => {
            let mut fields = intent.clone();
            if let Some(fields) = fields.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            if let Some(meta) = fields["metadata"].as_object_mut() {
                meta.remove("name");
                meta.remove("namespace");
            }
            fields == *applied
        }
    }
}

/// A child as it is applied: with its owner, the tracking label, and a hash of all that.
fn intent(controller: &Controller, owner: &Owner, child: &Child) -> Result<Value, OwnerError> {
    let mut intent = child.object.clone();
    owner.claim(&mut intent, child.scope)?;
    let meta = &mut intent["metadata"];
    if child.scope == Scope::Cluster
        && let Some(meta) = meta.as_object_mut()
    {
        meta.remove("namespace");
    }
    put(&mut meta["labels"], TRACKING_LABEL, &controller.id());
    let hash = hash(&intent);
    put(&mut intent["metadata"]["annotations"], INTENT_ANNOTATION, &hash);
    Ok(intent)
}

fn put(map: &mut Value, key: &str, value: &str) {
    if !map.is_object() {
        *map = json!({});
    }
    map[key] = value.into();
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn controller_of(object: &Value) -> String {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let controller = references.into_iter().find(|reference| reference["controller"] == true);
    let text = |field: &str| controller.and_then(|c| c[field].as_str()).unwrap_or_default().to_owned();
    format!("{} {}", text("kind"), text("name"))
}

/// Sixteen characters that stand for a value.
fn hash(value: &Value) -> String {
    format!("{:016x}", names::fnv(value.to_string().as_bytes()))
}
