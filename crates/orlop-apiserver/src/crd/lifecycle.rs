//! What becomes of definitions: names are accepted, kinds are served, and on deletion instances go first.

use super::CustomKind;
use crate::kind::{Kind, Registry};
use crate::object;
use crate::server::Inner;
use orlop_store::Expect;
use serde_json::{Value, json};

const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Called after a definition was written: its conditions and the served kinds follow.
pub(crate) fn changed(server: &Inner, _old: Option<&Value>, new: Option<&Value>) {
    if let Some(definition) = new {
        settle(server, definition);
    }
    reload(server);
}

/// Makes the served kinds anew from all established definitions.
pub(crate) fn reload(server: &Inner) {
    let definitions = Inner::built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let mut registry = Registry::default();
    let snapshot = server.store.snapshot(&definitions.table);
    for stored in snapshot.iter() {
        let definition = definitions.read(stored);
        if condition(&definition, "Established") != Some("True") {
            continue;
        }
        for kind in CustomKind::load(&definition) {
            registry.insert(kind);
        }
    }
    server.set_custom_kinds(registry);
}

fn condition<'a>(definition: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = definition["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == name)
        .and_then(|condition| condition["status"].as_str())
}

/// Brings status in line with spec.
fn settle(server: &Inner, definition: &Value) {
    let kind = Inner::built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let mut next = definition.clone();
    let now = server.now();
    if object::is_deleting(definition) {
        finalize(server, &kind, definition);
        return;
    }
    next["status"]["acceptedNames"] = definition["spec"]["names"].clone();
    let conditions = json!([
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": now},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted", "lastTransitionTime": now},
    ]);
    if condition(definition, "Established").is_none() {
        next["status"]["conditions"] = conditions;
    }
    let finalizers = object::finalizers(&next);
    if !finalizers.contains(&FINALIZER) {
        let all: Vec<&str> = finalizers.into_iter().chain([FINALIZER]).collect();
        let all = json!(all);
        object::set_meta(&mut next, "finalizers", all);
    }
    if next != *definition {
        let expect = object::meta_str(definition, "resourceVersion").parse().map(orlop_store::Revision);
        if let Ok(revision) = expect {
            let _ = server.commit(&kind, Expect::At(revision), next);
        }
    }
}

/// Deletes all instances, then lets the definition go.
fn finalize(server: &Inner, kind: &Kind, definition: &Value) {
    for custom in CustomKind::load(definition) {
        let snapshot = server.store.snapshot(&custom.table);
        for stored in snapshot.iter() {
            let last = object::decode(&stored.body);
            if object::finalizers(&last).is_empty() {
                let _ = server.remove(&custom, stored, last);
            }
        }
    }
    let Some(stored) = server.store.get(&kind.table, &kind.key("", object::meta_str(definition, "name")))
    else {
        return;
    };
    let mut last = kind.read(&stored);
    let left: Vec<String> =
        object::finalizers(&last).into_iter().filter(|f| *f != FINALIZER).map(str::to_owned).collect();
    if left.is_empty() {
        object::set_meta(&mut last, "finalizers", Value::Null);
        let _ = server.remove(kind, &stored, last);
    }
}

/// Called after an instance was written: a definition that is being deleted may be done.
pub(crate) fn instance_changed(_server: &Inner, _custom: &CustomKind, _gone: bool) {}

/// The OpenAPI v3 document of a custom group-version.
pub(crate) fn openapi(_server: &Inner, _group: &str, _version: &str) -> Option<Value> {
    None
}
