//! The way from client-side to server-side apply: kubectl's annotation with the configuration it applied last.

use serde_json::{Map, Value};

use super::entries::Identity;
use super::{Request, to_version};
use crate::fieldset::FieldSet;
use crate::go;
use crate::typed::{Duplicates, Typed};
use crate::updater::{Conflict, Versions};
use crate::value;

/// The manager for which the annotation counts.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together may not be larger.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The conflicts that are left when kubectl takes over the fields it applied itself, client-side, and that still have
/// the values it gave them.
pub(super) fn remaining(
    versions: &dyn Versions,
    live: &Value,
    conflicts: Vec<Conflict<Identity>>,
    request: &Request<'_>,
) -> Vec<Conflict<Identity>> {
    match own_fields(versions, live, request) {
        Some(own) => conflicts.into_iter().filter(|conflict| !own.contains(&conflict.path.0)).collect(),
        None => conflicts,
    }
}

/// Writes the annotation anew if the object has it.
pub(super) fn refresh(object: &mut Value, patch: &Value) {
    if annotation(object).is_none_or(str::is_empty) {
        return;
    }
    let mut configuration = patch.clone();
    if let Some(annotations) = annotations_mut(&mut configuration) {
        annotations.remove(ANNOTATION);
    }
    let configuration = format!("{}\n", go::json(&configuration));
    let Some(annotations) = annotations_mut(object) else { return };
    annotations.insert(ANNOTATION.into(), configuration.into());
    let bytes: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn own_fields(versions: &dyn Versions, live: &Value, request: &Request<'_>) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live).filter(|text| !text.is_empty())?).ok()?;
    if value::too_deep(&last) || last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    let live = to_version(versions, live, request).ok()?;
    let ty = Typed::new(versions.object_type(request.api_version)?);
    ty.validate(&live, Duplicates::Refused).ok()?;
    ty.validate(&last, Duplicates::Refused).ok()?;
    let comparison = ty.compare(&last, &live);
    let set = ty.field_set(&last);
    Some(set.difference(&comparison.modified).difference(&comparison.added).difference(&comparison.removed))
}

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
