//! What becomes of definitions: names are accepted, kinds are served, and on deletion instances go first.
//!
//! kube-apiserver has a controller for each of these; here they run within the write that gives them a reason,
//! step by step as watchers would see them.

use super::conditions::{self, Condition};
use super::definition::{Approval, approval_of};
use super::{CustomKind, naming};
use crate::kind::{Kind, Registry};
use crate::object;
use crate::server::Inner;
use orlop_store::{Expect, Revision};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const MANAGER: &str = "kube-apiserver";
/// How often a change is tried again when another writer was faster.
const TRIES: usize = 5;

/// Called after a definition was written: its conditions and the served kinds follow.
pub(crate) fn changed(server: &Inner, old: Option<&Value>, new: Option<&Value>) {
    let Some(definition) = new.or(old) else { return };
    match new {
        Some(new) if object::is_deleting(new) => {
            reload(server);
            finalize(server, object::meta_str(new, "name"));
        }
        Some(new) => {
            let before = &new["status"]["acceptedNames"];
            let settled = settle(server, object::meta_str(new, "name"));
            if settled.is_some_and(|settled| settled["status"]["acceptedNames"] != *before) {
                settle_others(server, definition);
            }
        }
        None => settle_others(server, definition),
    }
    reload(server);
}

/// Makes the served kinds anew from all established definitions; those that have not changed are kept.
pub(crate) fn reload(server: &Inner) {
    let _alone = server.reloading();
    reload_from(server, &server.custom_kinds());
}

/// Makes all served kinds anew: after another state was put in place, equal revisions mean nothing.
pub(crate) fn rebuild(server: &Inner) {
    let _alone = server.reloading();
    reload_from(server, &Registry::default());
}

fn reload_from(server: &Inner, before: &Registry) {
    let definitions = definitions();
    let mut known: BTreeMap<&str, Vec<&Arc<Kind>>> = BTreeMap::new();
    for kind in before.iter() {
        if let Some(custom) = kind.custom() {
            known.entry(&custom.definition).or_default().push(kind);
        }
    }
    let mut registry = Registry::default();
    for stored in server.store.snapshot(&definitions.table).iter() {
        let name = stored.key.as_str().rsplit('/').next().unwrap_or_default();
        let kinds = known.get(name).map_or(&[][..], Vec::as_slice);
        let customs = || kinds.iter().filter_map(|kind| kind.custom());
        if customs().next().is_some_and(|custom| custom.revision == stored.revision) {
            for kind in kinds {
                registry.insert_shared((*kind).clone());
            }
            continue;
        }
        let definition = definitions.read(stored);
        if conditions::is_true(&definition, "Established") {
            let loaded = CustomKind::load(&definition, stored.revision, customs().next());
            for kind in loaded {
                registry.insert(kind);
            }
        }
    }
    server.set_custom_kinds(registry);
}

fn definitions() -> Arc<Kind> {
    Inner::built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

/// Writes what `next` makes of a definition, as the server itself; returns the state that is stored then.
fn update(server: &Inner, name: &str, next: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let kind = definitions();
    for _ in 0..TRIES {
        let stored = server.store.get(&kind.table, &kind.key("", name))?;
        let live = kind.read(&stored);
        let Some(next) = next(&live) else { return Some(live) };
        let next = kind.own(Some(&live), next, MANAGER, "status", &server.now());
        if let Ok(written) = server.commit(&kind, Expect::At(stored.revision), next) {
            return Some(written);
        }
    }
    None
}

/// Brings the conditions of a definition in line with its spec.
fn settle(server: &Inner, name: &str) -> Option<Value> {
    let now = server.now();
    let named = update(server, name, |definition| {
        let mut taken = naming::Taken::default();
        for other in in_group(server, definition) {
            taken.add(&other);
        }
        naming::settle(definition, &taken, &now)
    })?;
    if !conditions::is_true(&named, "NamesAccepted") {
        return Some(named);
    }
    let established = update(server, name, |definition| {
        if conditions::is_true(definition, "Established") {
            return None;
        }
        let mut next = definition.clone();
        let message = "the initial names have been accepted";
        conditions::set(
            &mut next,
            &Condition::new("Established", "True", "InitialNamesAccepted", message),
            &now,
        );
        Some(next)
    })?;
    update(server, name, |definition| {
        let (approval, message) = approval_of(definition)?;
        let (status, reason) = match approval {
            Approval::Invalid => ("False", "InvalidAnnotation"),
            Approval::Missing => ("False", "MissingAnnotation"),
            Approval::Approved => ("True", "ApprovedAnnotation"),
            Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        };
        let condition = Condition::new("KubernetesAPIApprovalPolicyConformant", status, reason, message);
        with_condition(definition, &condition, &now)
    })
    .or(Some(established))
}

fn with_condition(definition: &Value, condition: &Condition, now: &str) -> Option<Value> {
    if conditions::has(definition, condition) {
        return None;
    }
    let mut next = definition.clone();
    conditions::set(&mut next, condition, now);
    Some(next)
}

/// All definitions of a definition's group, itself among them.
fn in_group(server: &Inner, definition: &Value) -> Vec<Value> {
    let kind = definitions();
    let group = &definition["spec"]["group"];
    let all = server.store.snapshot(&kind.table);
    all.iter().map(|stored| kind.read(stored)).filter(|other| other["spec"]["group"] == *group).collect()
}

/// Names may have become free: others of the group try again.
fn settle_others(server: &Inner, definition: &Value) {
    let name = object::meta_str(definition, "name");
    for other in in_group(server, definition) {
        let other_name = object::meta_str(&other, "name");
        if other_name != name && !object::is_deleting(&other) {
            settle(server, other_name);
        }
    }
}

/// A definition whose deletion has been asked for: instances must go before it does.
pub(crate) fn begin_deletion(definition: &Value, now: &str) -> Value {
    let mut next = definition.clone();
    object::set_meta(&mut next, "deletionTimestamp", now);
    let mut finalizers: Vec<String> = object::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    object::set_meta(&mut next, "finalizers", json!(finalizers));
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    let condition = Condition::new("Terminating", "True", "InstanceDeletionPending", message);
    conditions::set(&mut next, &condition, now);
    next
}

/// Deletes all instances, then lets the definition go.
fn finalize(server: &Inner, name: &str) {
    let now = server.now();
    let message = "CustomResource deletion is in progress";
    let progress = Condition::new("Terminating", "True", "InstanceDeletionInProgress", message);
    let started = update(server, name, |definition| {
        if !object::finalizers(definition).contains(&FINALIZER) {
            return None;
        }
        with_condition(definition, &progress, &now)
    });
    let Some(definition) = started.filter(|definition| object::finalizers(definition).contains(&FINALIZER))
    else {
        return;
    };
    if conditions::is_true(&definition, "Established")
        && let Some(kind) = storage_kind(&definition)
    {
        delete_instances(server, &kind, &now);
    }
    finish(server, name);
}

/// The kinds of an established definition in all versions, whether served or not.
pub(crate) fn all_versions(definition: &Value) -> Vec<Kind> {
    if !conditions::is_true(definition, "Established") {
        return Vec::new();
    }
    let mut served = definition.clone();
    let versions = served.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(version) = version.as_object_mut() {
            version.insert("served".to_owned(), true.into());
        }
    }
    CustomKind::load(&served, Revision(0), None)
}

/// The kind in the version that is stored, enough to reach its instances.
fn storage_kind(definition: &Value) -> Option<Kind> {
    all_versions(definition).into_iter().find(|kind| kind.storage == kind.api_version())
}

fn delete_instances(server: &Inner, kind: &Kind, now: &str) {
    for stored in server.store.snapshot(&kind.table).iter() {
        let last = kind.read(stored);
        // A writer that is faster finds the definition terminating when it is done, and comes here itself.
        if object::finalizers(&last).is_empty() {
            let _ = server.erase(kind, stored, last);
        } else if !object::is_deleting(&last) {
            let mut next = last;
            object::set_meta(&mut next, "deletionTimestamp", now);
            object::set_meta(&mut next, "deletionGracePeriodSeconds", 0);
            let generation = object::meta_i64(&next, "generation").unwrap_or(0);
            object::set_meta(&mut next, "generation", generation + 1);
            let _ = server.commit(kind, Expect::At(stored.revision), next);
        }
    }
}

/// Takes the finalizer off a definition without instances; it goes if that was the last one.
fn finish(server: &Inner, name: &str) {
    let kind = definitions();
    for _ in 0..TRIES {
        let Some(stored) = server.store.get(&kind.table, &kind.key("", name)) else { return };
        let live = kind.read(&stored);
        let left: Vec<String> =
            object::finalizers(&live).into_iter().filter(|f| *f != FINALIZER).map(str::to_owned).collect();
        let established = conditions::is_true(&live, "Established");
        let waiting = established
            && storage_kind(&live)
                .is_some_and(|kind| server.store.snapshot(&kind.table).iter().next().is_some());
        if !object::is_deleting(&live) || left.len() == object::finalizers(&live).len() || waiting {
            return;
        }
        if left.is_empty() {
            if server.remove(&kind, &stored, live).is_ok() {
                return;
            }
            continue;
        }
        let (reason, message) = if established {
            ("InstanceDeletionCompleted", "removed all instances")
        } else {
            ("NeverEstablished", "resource was never established")
        };
        let mut next = live.clone();
        conditions::set(&mut next, &Condition::new("Terminating", "False", reason, message), &server.now());
        object::set_meta(&mut next, "finalizers", json!(left));
        let next = kind.own(Some(&live), next, MANAGER, "status", &server.now());
        if server.commit(&kind, Expect::At(stored.revision), next).is_ok() {
            return;
        }
    }
}

/// Called after an instance was written. The definition may have begun to go, or have gone, while the write was
/// under way: then the instance goes too, and a definition that waited for it is done.
pub(crate) fn instance_changed(server: &Inner, kind: &Kind, custom: &CustomKind, gone: bool) {
    let current = server.custom_kinds();
    let current = current.get(&kind.group, &kind.version, &kind.plural).and_then(|kind| kind.custom());
    if current.is_some_and(|current| !current.is_terminating()) {
        return;
    }
    let definitions = definitions();
    let definition = server.find(&definitions, "", &custom.definition);
    if definition.as_ref().is_some_and(|definition| !object::is_deleting(definition)) {
        // Only this version is served no more.
        return;
    }
    if !gone {
        delete_instances(server, kind, &server.now());
    }
    finish(server, &custom.definition);
}
