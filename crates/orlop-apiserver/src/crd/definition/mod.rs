//! CustomResourceDefinitions as objects: what makes one valid, and what its writer should know.

mod conversion;
mod internal;
mod spec;

use crate::kind::Kind;
use crate::object;
use internal::Internal;
use orlop_kinds::validate::{Scope, object_meta_create, object_meta_update};
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::names::NameRule;
use orlop_schema::structural::Schema;
use orlop_schema::structural::formats::Format;
use serde_json::{Value, json};

const APPROVED: &str = "api-approved.kubernetes.io";

/// Whether a kind is the kind of definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// What is wrong with a definition.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = match old {
        None => metadata_create(definition),
        Some(old) => metadata_update(definition, old),
    };
    let internal = Internal::of(&definition["spec"]);
    errors.extend(spec::validate(&definition["spec"], &internal));
    if let Some(old) = old {
        errors.extend(immutable(definition, old));
    }
    errors.extend(status(definition));
    errors.extend(stored_versions(definition));
    errors.extend(approval(definition, old));
    let preserves = |definition: &Value| definition["spec"]["preserveUnknownFields"] == true;
    if preserves(definition) && !old.is_some_and(preserves) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(
            &Path::new("spec").child("preserveUnknownFields"),
            &Value::Bool(true),
            why,
        ));
    }
    errors
}

/// What is wrong with a change of a definition's status.
pub(crate) fn validate_status(definition: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata_update(definition, old);
    errors.extend(status(definition));
    errors
}

/// Formats that the server does not know and therefore does not check; those known before are not repeated.
pub(crate) fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unknown_formats).unwrap_or_default();
    let new = unknown_formats(definition).into_iter().filter(|format| !known.contains(format));
    new.map(|format| format!("unrecognized format {}", go_quote(&format))).collect()
}

fn unknown_formats(definition: &Value) -> Vec<String> {
    fn collect(schema: &Schema, found: &mut Vec<String>) {
        let types = if schema.ty.is_empty() { vec![] } else { vec![schema.ty.as_str()] };
        if !schema.format.is_empty() && Format::known(&types, &schema.format).is_none() {
            found.push(schema.format.clone());
        }
        schema.children().for_each(|child| collect(child, found));
    }
    let mut found = Vec::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        collect(&Schema::parse(&version["schema"]["openAPIV3Schema"]), &mut found);
    }
    found
}

fn metadata_create(definition: &Value) -> Vec<FieldError> {
    let path = Path::new("metadata");
    let mut errors = object_meta_create(&definition["metadata"], Scope::Cluster, NameRule::Subdomain, &path);
    let names = &definition["spec"]["names"];
    let wanted = format!("{}.{}", object::text(names, "plural"), object::text(&definition["spec"], "group"));
    for field in ["name", "generateName"] {
        let name = object::meta_str(definition, field);
        if !name.is_empty() && name != wanted {
            let path = path.child(field);
            let error =
                FieldError::invalid(&path, &name.into(), "must be spec.names.plural+\".\"+spec.group");
            let after = errors.iter().rposition(|known| known.path == path).map_or(0, |index| index + 1);
            errors.insert(after, error);
        }
    }
    errors
}

fn metadata_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    object_meta_update(&definition["metadata"], &old["metadata"], &Path::new("metadata"))
}

fn immutable(definition: &Value, old: &Value) -> Vec<FieldError> {
    let established = super::conditions::is_true(old, "Established");
    [
        ("spec.scope", established),
        ("spec.names.kind", established),
        ("spec.group", true),
        ("spec.names.plural", true),
    ]
    .into_iter()
    .filter(|(field, applies)| *applies && object::at(definition, field) != object::at(old, field))
    .map(|(field, _)| {
        let value = object::at(definition, field).cloned().unwrap_or_else(|| json!(""));
        FieldError::invalid(&Path::new(field), &value, "field is immutable")
    })
    .collect()
}

fn status(definition: &Value) -> Vec<FieldError> {
    spec::names(&definition["status"]["acceptedNames"], &Path::new("status").child("acceptedNames"))
}

fn stored_versions(definition: &Value) -> Vec<FieldError> {
    let path = Path::new("status").child("storedVersions");
    let value = &definition["status"]["storedVersions"];
    let stored: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        let value = if value.is_array() { value.clone() } else { Value::Null };
        return vec![FieldError::invalid(&path, &value, "must have at least one stored version")];
    }
    let versions: Vec<&Value> = definition["spec"]["versions"].as_array().into_iter().flatten().collect();
    let mut errors = Vec::new();
    for version in versions.iter().filter(|version| version["storage"] == true) {
        let name = object::text(version, "name");
        if !stored.contains(&name) {
            errors.push(FieldError::invalid(&path, value, format!("must have the storage version {name}")));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if versions.iter().any(|version| version["name"] == *name) {
            continue;
        }
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a \
             storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(index), &(*name).into(), why));
    }
    errors
}

/// Whether a definition in a group of the Kubernetes project has been approved, and the words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

/// The approval of a definition; `None` if its group needs none.
pub(super) fn approval_of(definition: &Value) -> Option<(Approval, String)> {
    let group = object::text(&definition["spec"], "group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.')));
    if !protected {
        return None;
    }
    let note =
        definition["metadata"]["annotations"].get(APPROVED).and_then(Value::as_str).unwrap_or_default();
    let required = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_url = note.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.split('/').next().unwrap_or_default().is_empty() && !note.contains(' ')
    });
    Some(if note.is_empty() {
        (Approval::Missing, format!("{required}, {see}"))
    } else if note.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", go_quote(note)))
    } else if is_url {
        (Approval::Approved, format!("approved in {note}"))
    } else {
        let why = format!("{required} with either a URL or a reason starting with \"unapproved\", {see}");
        (Approval::Invalid, why)
    })
}

fn approval(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    let (state, why) = approval_of(definition)?;
    if old.and_then(approval_of).is_some_and(|(before, _)| before == state) {
        return None;
    }
    let path = Path::new("metadata").child("annotations").key(APPROVED);
    match state {
        Approval::Missing => Some(FieldError::required(&path, why)),
        Approval::Invalid => {
            Some(FieldError::invalid(&path, &definition["metadata"]["annotations"][APPROVED], why))
        }
        Approval::Approved | Approval::Bypassed => None,
    }
}

#[cfg(test)]
mod tests;
