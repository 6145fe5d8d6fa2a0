//! PersistentVolumeClaims.

use super::super::view::{At, IMMUTABLE, Report, same};
use super::super::{golang, meta};
use super::{VOLUME_MODES, access_modes};
use crate::validate::meta::Scope;
use crate::validate::pod::resources::amount;
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};
use orlop_schema::quantity::{Format, Quantity};
use serde_json::{Map, Value};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn create(r: &mut Report, claim: &At<'_>) {
    meta::create(r, claim, Scope::Namespaced, NameRule::Subdomain);
    claim_spec(r, &claim.get("spec"), false);
}

/// The spec of a claim; `existing` lets through what an older claim may have.
pub(crate) fn claim_spec(r: &mut Report, spec: &At<'_>, existing: bool) {
    checked_spec(r, spec, SelectorOptions::default(), existing);
}

fn checked_spec(r: &mut Report, spec: &At<'_>, selector: SelectorOptions, any_group: bool) {
    let modes = spec.get("accessModes");
    r.when(modes.is_empty(), || modes.required("at least 1 access mode is required"));
    r.selector(&spec.get("selector"), selector);
    access_modes(r, &modes);
    let storage = spec.down("resources.requests.storage").named(spec.path.child("resources").key("storage"));
    match storage.quantity() {
        None => r.add(storage.required("")),
        Some(q) if q.sign() <= 0 => {
            r.add(storage.invalid_with(go_quote(&q.to_string()), "must be greater than zero"));
        }
        Some(_) => amount(r, "storage", &storage),
    }
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        r.subdomain(&class);
    }
    r.optional_one_of(&spec.get("volumeMode"), &VOLUME_MODES);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    if source.is_set() {
        data_source(r, &source, any_group);
    }
    if reference.is_set() {
        data_source(r, &reference, any_group);
        let namespace = reference.get("namespace");
        if !namespace.is_empty() {
            r.label(&namespace);
        }
    }
    // The value in these messages is a field path, which prints as an empty structure.
    if !reference.get("namespace").is_empty() {
        r.when(source.is_set(), || {
            spec.invalid_with("{}", "may not be specified when dataSourceRef.namespace is specified")
        });
    } else if source.is_set() && reference.is_set() {
        let agree =
            ["apiGroup", "kind", "name"].iter().all(|k| source.get(k).value == reference.get(k).value);
        r.when(!agree, || spec.invalid_with("{}", "must match dataSourceRef"));
    }
    let attributes = spec.get("volumeAttributesClassName");
    if !attributes.is_empty() {
        r.subdomain(&attributes);
    }
}

fn data_source(r: &mut Report, at: &At<'_>, any_group: bool) {
    r.all_required(at, &["name", "kind"]);
    let (group, kind) = (at.get("apiGroup"), at.get("kind"));
    r.when(group.is_empty() && kind.str() != "PersistentVolumeClaim", || {
        kind.named(at.path.clone())
            .invalid_str("must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    });
    if !group.is_empty() && !any_group {
        r.subdomain(&group);
    }
}

pub(super) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let bad =
        !labels::selector(&Path::root(), before.get("selector").value, SelectorOptions::default()).is_empty();
    let any_group =
        before.down("dataSource.apiGroup").is_set() || before.down("dataSourceRef.apiGroup").is_set();
    meta::create(r, new, Scope::Namespaced, NameRule::Subdomain);
    checked_spec(r, &spec, SelectorOptions { any_value: bad, any_operator: false }, any_group);
    let (now, then) = (clone(spec.value), clone(before.value));
    let (now, then) = comparable(r, new, old, now, then);
    if !same(&now, &then) {
        let difference = golang::difference("core.PersistentVolumeClaimSpec", &then, &now);
        r.add(spec.forbidden(format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{difference}"
        )));
    }
    size(r, &spec, &before, old);
    let mode = spec.get("volumeMode").named(Path::new("volumeMode"));
    r.when(mode.value != before.get("volumeMode").value, || mode.invalid(IMMUTABLE));
    attributes_class(r, &spec, &before, old);
}

fn clone(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Both specs with everything that may change made equal.
fn comparable(
    r: &mut Report,
    new: &At<'_>,
    old: &At<'_>,
    mut now: Map<String, Value>,
    mut then: Map<String, Value>,
) -> (Value, Value) {
    let take = |to: &mut Map<String, Value>, from: &Value, key: &str| {
        match from.get(key) {
            Some(value) => to.insert(key.to_owned(), value.clone()),
            None => to.remove(key),
        };
    };
    let (spec, before) = (new.get("spec"), old.get("spec"));
    if before.get("volumeName").is_empty() {
        take(&mut then, spec.value, "volumeName");
    }
    let annotation = |at: &At<'_>| {
        at.down("metadata.annotations").value.get(BETA_CLASS).and_then(Value::as_str).map(str::to_owned)
    };
    let (beta_now, beta_then) = (annotation(new), annotation(old));
    let (class_now, class_then) = (spec.get("storageClassName"), before.get("storageClassName"));
    let upgrade = class_now.is_set()
        && !class_then.is_set()
        && beta_then.as_deref().is_some_and(|b| b == class_now.str())
        && beta_now.as_ref().is_none_or(|b| Some(b) == beta_then.as_ref());
    if upgrade {
        now.remove("storageClassName");
    } else {
        if beta_now.clone().unwrap_or_default() != beta_then.clone().unwrap_or_default() {
            let path = Path::new("metadata").child("annotations").child(BETA_CLASS);
            r.add(FieldError::invalid(&path, &Value::String(beta_now.unwrap_or_default()), IMMUTABLE));
        }
        let from_nothing = class_now.is_set()
            && !class_then.is_set()
            && beta_then.as_deref().is_none_or(|b| b == class_now.str());
        if from_nothing {
            now.remove("storageClassName");
        }
    }
    if new.down("status.phase").str() == "Bound" {
        let storage = before.down("resources.requests.storage").value.clone();
        if let Some(requests) =
            now.get_mut("resources").and_then(|v| v.get_mut("requests")).and_then(Value::as_object_mut)
        {
            requests.insert("storage".to_owned(), storage);
        }
        take(&mut now, before.value, "volumeAttributesClassName");
    }
    (Value::Object(now), Value::Object(then))
}

fn size(r: &mut Report, spec: &At<'_>, before: &At<'_>, old: &At<'_>) {
    let at = spec.down("resources.requests.storage");
    // What is not given counts as nothing.
    let read = |at: &At<'_>| at.quantity().unwrap_or_else(|| Quantity::whole(0, Format::DecimalSi));
    let (now, then) = (read(&at), read(&before.down("resources.requests.storage")));
    let below = now <= read(&old.down("status.capacity.storage"));
    r.when(now < then && below, || at.forbidden("field can not be less than status.capacity"));
}

fn attributes_class(r: &mut Report, spec: &At<'_>, before: &At<'_>, old: &At<'_>) {
    let at = spec.get("volumeAttributesClassName");
    if at.value == before.get("volumeAttributesClassName").value
        || !old.down("status.currentVolumeAttributesClassName").is_set()
    {
        return;
    }
    let to = if !at.is_set() {
        "nil"
    } else if at.is_empty() {
        "empty string"
    } else {
        return;
    };
    r.add(at.forbidden(format!(
        "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
    )));
}

pub(super) fn status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let version = new.down("metadata.resourceVersion").named(Path::new("resourceVersion"));
    r.required(&version);
    r.required(&new.down("spec.accessModes").named(Path::new("Spec").child("accessModes")));
    for (_, quantity) in new.down("status.capacity").entries() {
        not_negative(r, &quantity);
    }
    let statuses = new.down("status.allocatedResourceStatuses");
    let known = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    for (name, value) in statuses.entries() {
        resource_key(r, name, &statuses);
        if !known.contains(&value.str()) {
            let mut sorted = known;
            sorted.sort_unstable();
            let mut error = statuses.unsupported(&sorted);
            error.value = Some(go_quote(name));
            r.add(error);
        }
    }
    let allocated = new.down("status.allocatedResources");
    for (name, quantity) in allocated.entries() {
        if resource_key(r, name, &allocated) && not_negative(r, &quantity) {
            amount(r, "storage", &quantity);
        }
    }
}

fn resource_key(r: &mut Report, name: &str, at: &At<'_>) -> bool {
    let wrong = names::qualified_name(name);
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    let fine = wrong.is_empty() && (!native || name == "storage");
    if wrong.is_empty() && !fine {
        let mut error = at.unsupported(&["storage"]);
        error.value = Some(go_quote(name));
        r.add(error);
    }
    r.extend(wrong.into_iter().map(|w| at.invalid_with(go_quote(name), w)));
    fine
}

/// A quantity whose whole value is not negative.
pub(super) fn not_negative(r: &mut Report, at: &At<'_>) -> bool {
    let negative = at.quantity().filter(|q| q.value() < 0);
    if let Some(q) = &negative {
        r.add(at.invalid_with(q.value().to_string(), "must be a valid resource quantity"));
    }
    negative.is_none()
}
