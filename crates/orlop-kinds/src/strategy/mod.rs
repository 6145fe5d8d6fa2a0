//! How objects of each built-in kind are written: who owns status, when the generation grows, what a write may
//! not set.
//!
//! A table holds what can be said in a row; the other files hold what needs a rule. Allocation of service
//! addresses, names, uids and timestamps of metadata are the server's.

mod cluster;
mod gated;
mod pod;
mod reset;
mod service;
mod table;
mod workload;

pub use reset::reset_fields;

use crate::catalog::catalog;
use crate::codec;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// How objects of a kind are written.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// The API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// A PUT on a name that does not exist creates the object.
    pub create_on_update: bool,
    /// A PUT without a resource version overwrites whatever is there.
    pub unconditional_update: bool,
    /// What deletion does to dependents when the request does not say.
    pub default_deletion: Deletion,
    /// Whether deletion answers with the deleted object, not with a `Status`.
    pub returns_deleted: bool,
    /// Whether status belongs to its subresource: main writes cannot change it.
    pub status: Status,
    /// Which changes make a new generation.
    pub generation: Generation,
}

/// What happens to dependents of a deleted object by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// They are collected in the background.
    Background,
    /// They are orphaned.
    Orphan,
    /// The kind takes no part in garbage collection.
    Unsupported,
}

/// Who may write status, and what else a write to the status subresource may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no status, or it is written with the rest.
    Plain,
    /// The subresource changes status and metadata.
    WithMetadata,
    /// As before, and the creator may set status too.
    AtCreation,
    /// The subresource changes status and metadata apart from labels.
    WithoutLabels,
    /// The subresource changes status; of the metadata only managed fields.
    Only,
}

/// Which changes make a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// None: the field is what the creator wrote.
    Untracked,
    /// Starts at 1 and never changes.
    Fixed,
    /// Starts at 1 and grows when one of these fields (JSON pointers) changes.
    On(&'static [&'static str]),
    /// Is not set at first, and grows when one of these fields changes.
    Late(&'static [&'static str]),
    /// Starts at 1 and grows with any change outside metadata, and with labels.
    Everything,
}

/// What a rule may need beyond the object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The time as `metav1.Time` prints it.
    pub now: &'a str,
    /// Who writes, as a `UserInfo`: `username`, `uid`, `groups`, `extra`.
    pub user: Option<&'a Value>,
    /// The object before defaults were applied, when the server still has it.
    pub submitted: Option<&'a Value>,
}

/// The strategy of a kind.
pub fn strategy(group: &str, kind: &str) -> Option<&'static Strategy> {
    table::STRATEGIES.iter().find(|row| row.group == group && row.kind == kind)
}

/// How many seconds an object may take to end, for kinds that end gracefully: `None` for all others, which go at
/// once. The request's own wish counts, unless the object runs nowhere or has already ended.
pub fn grace_period(group: &str, kind: &str, object: &Value, requested: Option<i64>) -> Option<i64> {
    ((group, kind) == ("", "Pod")).then(|| pod::grace_period(object, requested))
}

/// What creation does to an object: status is cleared, the generation set, some fields filled in.
/// Name, uid and creation time must be set.
pub fn prepare_create(group: &str, version: &str, kind: &str, new: &mut Value, context: &Context<'_>) {
    let (Some(row), Value::Object(object)) = (strategy(group, kind), &mut *new) else { return };
    if !matches!(row.status, Status::Plain | Status::AtCreation) {
        clear_status(group, version, kind, object);
    }
    if matches!(row.generation, Generation::Fixed | Generation::On(_) | Generation::Everything) {
        set_generation(object, 1);
    }
    gated::drop_disabled(group, kind, object, None);
    match (group, kind) {
        ("", "Namespace") => cluster::create_namespace(object),
        ("", "PersistentVolume") => cluster::create_volume(object, context.now),
        ("", "PersistentVolumeClaim") => cluster::create_claim(object),
        ("", "Pod") => pod::create(object, context.now),
        ("", "ServiceAccount") => cluster::clean_secret_references(object),
        ("apps", "DaemonSet") => workload::create_daemon_set(object),
        ("batch", "Job") => workload::create_job(object, context.submitted),
        ("discovery.k8s.io", "EndpointSlice") => cluster::drop_topology(object),
        ("resource.k8s.io", "ResourceSlice") => cluster::stamp_taints(object, context.now),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::store_versions(object),
        ("apiregistration.k8s.io", "APIService") => cluster::create_api_service(object, context.now),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            cluster::create_signing_request(object, context.user);
        }
        _ => {}
    }
}

/// What an update does to an object: what the writer may not change is taken from the old object, and the
/// generation grows when it must. The subresource is `status`, `scale`, … or none for the object itself.
pub fn prepare_update(
    group: &str,
    kind: &str,
    subresource: Option<&str>,
    new: &mut Value,
    old: &Value,
    context: &Context<'_>,
) {
    let (Some(row), Value::Object(object), Value::Object(old)) = (strategy(group, kind), &mut *new, old)
    else {
        return;
    };
    copy_metadata(object, old, &["generation"]);
    match (group, kind, subresource) {
        ("", "Namespace", Some("finalize")) => copy(object, old, "status"),
        ("", "Pod", Some("status")) => pod::update_status(object, old),
        ("", "Pod", Some("ephemeralcontainers")) => pod::update_ephemeral_containers(object, old),
        ("", "Pod", Some("resize")) => pod::update_resources(object, old),
        ("", "PersistentVolume", Some("status")) => {
            copy(object, old, "spec");
            cluster::update_volume_status(object, old, context.now);
        }
        ("certificates.k8s.io", "CertificateSigningRequest", sub) => {
            cluster::update_signing_request(object, old, sub, context.now);
        }
        (_, _, Some("status")) => {
            copy(object, old, "spec");
            update_status_metadata(row, object, old);
        }
        (_, _, Some(_)) => {}
        (_, _, None) => update_main(row, object, old, context),
    }
    gated::drop_disabled(group, kind, object, Some(old));
    if row.generation != Generation::Untracked && subresource != Some("status") {
        grow_generation(row.generation, object, old);
    }
}

fn update_main(row: &Strategy, object: &mut Object, old: &Object, context: &Context<'_>) {
    if row.status != Status::Plain {
        copy(object, old, "status");
    }
    match (row.group, row.kind) {
        ("", "Namespace") => {
            copy_below(object, old, "spec", "finalizers");
            cluster::name_label(object);
        }
        ("", "PersistentVolumeClaim") => cluster::prepare_sources(object, Some(old)),
        ("", "Service") => service::drop_type_dependent(object, old),
        ("", "ServiceAccount") => cluster::clean_secret_references(object),
        ("apps", "DaemonSet") => workload::update_daemon_set(object, old),
        ("discovery.k8s.io", "EndpointSlice") => cluster::drop_topology(object),
        ("resource.k8s.io", "ResourceSlice") => cluster::stamp_taints(object, context.now),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::store_versions(object),
        _ => {}
    }
}

fn update_status_metadata(row: &Strategy, object: &mut Object, old: &Object) {
    match (row.status, row.kind) {
        (Status::Only, "FlowSchema" | "PriorityLevelConfiguration") => {
            let managed = object.get("metadata").and_then(|m| m.get("managedFields")).cloned();
            copy(object, old, "metadata");
            if let (Some(managed), Some(Value::Object(metadata))) = (managed, object.get_mut("metadata")) {
                metadata.insert("managedFields".to_owned(), managed);
            }
        }
        (Status::Only, _) => copy_metadata(object, old, STATUS_METADATA),
        (Status::WithoutLabels, _) => copy_metadata(object, old, &["labels"]),
        (Status::Plain | Status::WithMetadata | Status::AtCreation, _) => {}
    }
}

/// Metadata that most status subresources do not write.
const STATUS_METADATA: &[&str] = &[
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
];

fn clear_status(group: &str, version: &str, kind: &str, object: &mut Object) {
    let empty = catalog().type_of(group, version, kind).and_then(|ty| codec::zero(ty).get("status"));
    match empty {
        Some(empty) => object.insert("status".to_owned(), empty.clone()),
        None => object.remove("status"),
    };
}

fn grow_generation(generation: Generation, object: &mut Object, old: &Object) {
    let changed = |pointer: &str| !same(find(object, pointer), find(old, pointer));
    let grows = match generation {
        Generation::Untracked | Generation::Fixed => false,
        Generation::On(pointers) | Generation::Late(pointers) => pointers.iter().any(|p| changed(p)),
        Generation::Everything => {
            let keys = object.keys().chain(old.keys());
            let mut outside = keys.filter(|key| !matches!(key.as_str(), "metadata" | "apiVersion" | "kind"));
            outside.any(|key| !same(object.get(key), old.get(key))) || changed("/metadata/labels")
        }
    };
    if grows {
        let before = find(old, "/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        set_generation(object, before + 1);
    }
}

fn set_generation(object: &mut Object, generation: i64) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("generation".to_owned(), json!(generation));
    }
}

/// Whether two values mean the same: an empty list is as good as none.
fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let present = |value: &&Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    match (a.filter(present), b.filter(present)) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || same(None, Some(value)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (a, b) => a == b,
    }
}

/// The value at a JSON pointer; empty lists and maps count as absent.
fn find<'a>(object: &'a Object, pointer: &str) -> Option<&'a Value> {
    let (first, rest) = pointer.strip_prefix('/')?.split_once('/').unwrap_or((&pointer[1..], ""));
    let value = object.get(first)?;
    let value = if rest.is_empty() { Some(value) } else { value.pointer(&format!("/{rest}")) }?;
    let empty = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    (!empty).then_some(value)
}

/// Takes a field from the old object, absence included.
fn copy(object: &mut Object, old: &Object, key: &str) {
    match old.get(key) {
        Some(value) => object.insert(key.to_owned(), value.clone()),
        None => object.remove(key),
    };
}

fn copy_below(object: &mut Object, old: &Object, parent: &str, key: &str) {
    let value = old.get(parent).and_then(|parent| parent.get(key));
    match (object.entry(parent).or_insert_with(|| json!({})), value) {
        (Value::Object(parent), Some(value)) => {
            parent.insert(key.to_owned(), value.clone());
        }
        (Value::Object(parent), None) => {
            parent.remove(key);
        }
        _ => {}
    }
}

fn copy_metadata(object: &mut Object, old: &Object, keys: &[&str]) {
    for key in keys {
        copy_below(object, old, "metadata", key);
    }
}

#[cfg(test)]
mod tests;
