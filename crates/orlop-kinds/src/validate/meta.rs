//! The rules for `metadata`, the same for every kind but for the name.

use super::view::{At, IMMUTABLE, Report, same};
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::names::{self, NameRule};
use serde_json::Value;

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They stand alone.
    Cluster,
}

/// What is wrong with the metadata of a new object; used for built-in kinds and custom resources alike.
pub fn object_meta_create(meta: &Value, scope: Scope, rule: NameRule, path: &Path) -> Vec<FieldError> {
    let mut report = Report::default();
    generic_create(&mut report, &At { value: meta, path: path.clone() }, scope, rule);
    report.0
}

/// What is wrong with the change of an object's metadata; used for built-in kinds and custom resources alike.
pub fn object_meta_update(new: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut report = Report::default();
    generic_update(
        &mut report,
        &At { value: new, path: path.clone() },
        &At { value: old, path: path.clone() },
    );
    report.0
}

/// The metadata of a new built-in object; `object` is the whole object.
pub(crate) fn create(r: &mut Report, object: &At<'_>, scope: Scope, rule: NameRule) {
    let meta = object.get("metadata");
    generic_create(r, &meta, scope, rule);
    known_finalizers(r, &meta);
}

/// Like [`create`] for kinds that check `name` but not `generateName`.
pub(crate) fn create_named(r: &mut Report, object: &At<'_>, scope: Scope, rule: NameRule) {
    let meta = object.get("metadata");
    name_is_given(r, &meta, rule);
    common(r, &meta, scope);
    known_finalizers(r, &meta);
}

/// The change of a built-in object's metadata; both are whole objects.
pub(crate) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let meta = new.get("metadata");
    generic_update(r, &meta, &old.get("metadata"));
    known_finalizers(r, &meta);
}

/// Like [`create`] for kinds that do not look at finalizers twice.
pub(crate) fn plain_create(r: &mut Report, object: &At<'_>, scope: Scope, rule: NameRule) {
    generic_create(r, &object.get("metadata"), scope, rule);
}

/// Like [`update`] for kinds that do not look at finalizers twice.
pub(crate) fn plain_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    generic_update(r, &new.get("metadata"), &old.get("metadata"));
}

/// The metadata of a template, which may have only labels and annotations.
pub(crate) fn template(r: &mut Report, meta: &At<'_>) {
    r.annotations(&meta.get("annotations"));
    r.labels(&meta.get("labels"));
    for key in [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ] {
        let field = meta.get(key);
        let path = if key == "uid" { meta.path.child("uID") } else { field.path.clone() };
        let given = match field.value {
            Value::Null => false,
            Value::Number(_) => true,
            _ => !field.is_empty(),
        };
        r.when(given, || field.named(path).forbidden("cannot be set"));
    }
}

fn name_is_given(r: &mut Report, meta: &At<'_>, rule: NameRule) {
    let name = meta.get("name");
    if name.is_empty() {
        r.add(name.required("name or generateName is required"));
    } else {
        r.each(&name, rule.name(name.str()));
    }
}

fn generic_create(r: &mut Report, meta: &At<'_>, scope: Scope, rule: NameRule) {
    let prefix = meta.get("generateName");
    if !prefix.is_empty() {
        r.each(&prefix, rule.prefix(prefix.str()));
    }
    name_is_given(r, meta, rule);
    common(r, meta, scope);
}

fn common(r: &mut Report, meta: &At<'_>, scope: Scope) {
    let namespace = meta.get("namespace");
    match scope {
        Scope::Namespaced => r.required_label(&namespace),
        Scope::Cluster => r.when(!namespace.is_empty(), || namespace.forbidden("not allowed on this type")),
    }
    r.non_negative(&meta.get("generation"));
    labels_and_owners(r, meta);
    finalizers(r, &meta.get("finalizers"));
    managed_fields(r, &meta.get("managedFields"));
}

/// What create and update both look at before finalizers.
fn labels_and_owners(r: &mut Report, meta: &At<'_>) {
    r.labels(&meta.get("labels"));
    r.annotations(&meta.get("annotations"));
    owners(r, &meta.get("ownerReferences"));
}

fn owners(r: &mut Report, owners: &At<'_>) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        // The path names the list, not the item.
        let owner = owner.named(owners.path.clone());
        let (api_version, kind, name) = (owner.get("apiVersion"), owner.get("kind"), owner.get("name"));
        let uid = owner.get("uid");
        let (group, version) = match api_version.str().split_once('/') {
            None => ("", api_version.str()),
            Some((_, version)) if version.contains('/') => ("", ""),
            Some(parts) => parts,
        };
        r.when(version.is_empty(), || api_version.invalid_str("version must not be empty"));
        for field in [kind.clone(), name.clone(), uid] {
            r.when(field.is_empty(), || field.invalid_str("must not be empty"));
        }
        r.when((group, version, kind.str()) == ("", "v1", "Event"), || {
            owner.invalid_as("meta.OwnerReference", "/v1, Kind=Event is disallowed from being an owner")
        });
        if owner.get("controller").is_true() {
            let this = format!("{}/{}", kind.str(), name.str());
            match &controller {
                None => controller = Some(this),
                Some(first) => r.add(owners.invalid_as(
                    "[meta.OwnerReference",
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                )),
            }
        }
    }
}

fn finalizers(r: &mut Report, finalizers: &At<'_>) {
    for finalizer in finalizers.strings() {
        for wrong in names::qualified_name(finalizer) {
            r.add(finalizers.invalid_with(go_quote(finalizer), wrong));
        }
    }
    let has = |name| finalizers.strings().contains(&name);
    r.when(has("orphan") && has("foregroundDeletion"), || {
        finalizers.invalid("finalizer orphan and foregroundDeletion cannot be both set")
    });
}

/// Built-in kinds accept only finalizers with a domain, or the few that Kubernetes itself uses.
pub(crate) fn known_finalizer(r: &mut Report, at: &At<'_>) {
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    r.when(!at.str().contains('/') && !standard.contains(&at.str()), || {
        at.invalid_str("name is neither a standard finalizer name nor is it fully qualified")
    });
}

fn known_finalizers(r: &mut Report, meta: &At<'_>) {
    for finalizer in meta.get("finalizers").items() {
        known_finalizer(r, &finalizer);
    }
}

fn managed_fields(r: &mut Report, entries: &At<'_>) {
    for entry in entries.items() {
        let operation = entry.get("operation");
        r.when(!["Apply", "Update"].contains(&operation.str()), || {
            operation.invalid_str("must be `Apply` or `Update`")
        });
        let fields_type = entry.get("fieldsType");
        r.when(!["", "FieldsV1"].contains(&fields_type.str()), || fields_type.invalid("must be `FieldsV1`"));
        field_manager(r, &entry.get("manager"));
        let subresource = entry.get("subresource");
        r.when(subresource.len() > 256, || subresource.too_long(256));
    }
}

/// The name of a field manager.
pub(crate) fn field_manager(r: &mut Report, at: &At<'_>) {
    r.when(at.len() > 128, || at.too_long(128));
    for (index, c) in at.str().char_indices() {
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            let shown = if c.is_control() { String::new() } else { format!(" '{c}'") };
            let detail = format!("invalid character U+{:04X}{shown} (at position {index})", c as u32);
            r.add(at.invalid(detail));
        }
    }
}

fn generic_update(r: &mut Report, meta: &At<'_>, old: &At<'_>) {
    if old.get("deletionTimestamp").is_set() {
        let (now, before) = (meta.get("finalizers"), old.get("finalizers"));
        let before = before.strings();
        let mut added: Vec<&str> = now.strings().into_iter().filter(|f| !before.contains(f)).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let added: Vec<String> = added.into_iter().map(go_quote).collect();
            r.add(now.forbidden(format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            )));
        }
    }
    let version = meta.get("resourceVersion");
    r.when(version.is_empty(), || version.invalid_str("must be specified for an update"));
    let generation = meta.get("generation");
    r.when(generation.int() < old.get("generation").int(), || {
        generation.invalid_int("must not be decremented")
    });
    for key in ["name", "namespace", "uid"] {
        r.immutable_str(&meta.get(key), &old.get(key));
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (now, before) = (meta.get(key), old.get(key));
        r.when(!same(now.value, before.value), || now.invalid_with(now.value.to_string(), IMMUTABLE));
    }
    labels_and_owners(r, meta);
    managed_fields(r, &meta.get("managedFields"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn metadata_of_a_new_object() {
        let path = Path::new("metadata");
        for (meta, expected) in [
            (json!({"name": "a", "namespace": "b"}), vec![]),
            (
                json!({"namespace": "b"}),
                vec!["metadata.name: Required value: name or generateName is required"],
            ),
            (json!({"name": "a"}), vec!["metadata.namespace: Required value"]),
            (
                json!({"name": "a", "namespace": "b", "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u"}]}),
                vec!["metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty"],
            ),
            (
                json!({"name": "a", "namespace": "b", "finalizers": ["orphan", "foregroundDeletion"]}),
                vec![
                    "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
                ],
            ),
        ] {
            let wrong = object_meta_create(&meta, Scope::Namespaced, NameRule::Subdomain, &path);
            assert_eq!(texts(&wrong), expected);
        }
    }

    #[test]
    fn metadata_that_may_not_change() {
        let old = json!({"name": "a", "uid": "u", "resourceVersion": "1", "deletionTimestamp": "t"});
        let new = json!({"name": "a", "uid": "v", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["x/y"]});
        assert_eq!(
            texts(&object_meta_update(&new, &old, &Path::new("metadata"))),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/y\"}",
                "metadata.uid: Invalid value: \"v\": field is immutable",
            ]
        );
    }
}
