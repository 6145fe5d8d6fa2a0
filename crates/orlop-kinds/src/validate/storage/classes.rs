//! The kinds of `storage.k8s.io`: classes, CSI drivers, nodes, capacities, attachments.

use super::super::meta::{self, Scope};
use super::super::view::{At, IMMUTABLE, NEGATIVE, Report, same};
use super::volume::{Place, spec as volume_spec};
use crate::validate::pod::volume::{csi_driver_name, token_seconds};
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::labels::SelectorOptions;
use orlop_schema::names::{self, NameRule};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn provisioner(r: &mut Report, at: &At<'_>) {
    if !r.required(at) {
        let lower = Value::String(at.str().to_lowercase());
        r.qualified(&At { value: &lower, path: at.path.clone() });
    }
}

fn parameters(r: &mut Report, at: &At<'_>) {
    const BYTES_MAX: usize = 256 * 1024;
    if at.len() > 512 {
        return r.add(at.too_long(512));
    }
    let mut bytes = 0;
    for (key, value) in at.entries() {
        r.when(key.is_empty(), || at.invalid_with("\"\"", "field can not be empty."));
        bytes += key.len() + value.str().len();
    }
    r.when(bytes > BYTES_MAX, || at.too_long(BYTES_MAX));
}

pub(super) fn class(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    provisioner(r, &object.get("provisioner"));
    parameters(r, &object.get("parameters"));
    let reclaim = object.get("reclaimPolicy");
    if !reclaim.is_empty() {
        r.one_of(&reclaim, &["Delete", "Retain"]);
    }
    let mode = object.get("volumeBindingMode");
    if mode.is_set() {
        r.one_of(&mode, &["Immediate", "WaitForFirstConsumer"]);
    } else {
        r.add(mode.required(""));
    }
    topologies(r, &object.get("allowedTopologies"));
}

fn topologies(r: &mut Report, list: &At<'_>) {
    // The API server compares each term also with as many empty ones as there are terms.
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); list.len()];
    for term in list.items() {
        let mut rules = BTreeMap::new();
        let expressions = term.get("matchLabelExpressions");
        for rule in expressions.items() {
            let (key, values) = (rule.get("key"), rule.get("values"));
            r.required(&values);
            let mut unique = BTreeSet::new();
            for value in values.items() {
                r.when(!unique.insert(value.str()), || value.duplicate());
            }
            r.qualified(&key);
            r.when(rules.contains_key(key.str()), || key.duplicate());
            rules.insert(key.str(), unique);
        }
        for _ in seen.iter().filter(|before| **before == rules) {
            r.add(FieldError::duplicate(&expressions.path, &Value::String(String::new())));
        }
        seen.push(rules);
    }
}

pub(super) fn class_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    class(r, new);
    meta::update(r, new, old);
    let (now, then) = (new.get("parameters"), old.get("parameters"));
    r.when(!same(now.value, then.value) && (!now.is_empty() || !then.is_empty()), || now.invalid(IMMUTABLE));
    r.immutable_str(&new.get("provisioner"), &old.get("provisioner"));
    r.immutable(&new.get("reclaimPolicy"), &old.get("reclaimPolicy"));
    r.immutable(&new.get("volumeBindingMode"), &old.get("volumeBindingMode"));
}

pub(super) fn attributes_class(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    provisioner(r, &object.get("driverName"));
    let list = object.get("parameters");
    parameters(r, &list);
    r.when(list.is_empty(), || list.required("must contain at least one key/value pair"));
}

pub(super) fn attributes_class_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    for key in ["driverName", "parameters"] {
        let at = new.get(key);
        r.when(!same(at.value, old.get(key).value), || {
            at.forbidden(format!("updates to {key} are forbidden."))
        });
    }
    attributes_class(r, new);
}

fn driver_spec(r: &mut Report, spec: &At<'_>) {
    let given = |r: &mut Report, at: At<'_>| r.when(!at.is_set(), || at.required(""));
    given(r, spec.get("attachRequired").named(spec.path.child("attachedRequired")));
    given(r, spec.get("podInfoOnMount"));
    given(r, spec.get("storageCapacity"));
    r.optional_one_of(&spec.get("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.get("tokenRequests");
    let mut seen = BTreeSet::new();
    for request in requests.items() {
        let audience = request.get("audience");
        if !seen.insert(audience.str()) {
            r.add(audience.duplicate_str());
            continue;
        }
        let seconds = request.get("expirationSeconds");
        if seconds.is_set() {
            token_seconds(r, &seconds);
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        r.one_of(&mode.named(modes.path.clone()), &["Persistent", "Ephemeral"]);
    }
    given(r, spec.get("seLinuxMount"));
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    r.when(period.is_set() && period.int() < 10, || {
        period.invalid("must be greater than or equal to 10 seconds")
    });
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    r.when(in_secrets.is_set() && requests.is_empty(), || {
        in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified")
    });
}

pub(super) fn driver(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    driver_spec(r, &object.get("spec"));
}

pub(super) fn driver_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    driver_spec(r, &spec);
    let required = spec.get("attachRequired").named(spec.path.child("attachedRequired"));
    r.immutable(&required, &before.get("attachRequired"));
    r.immutable(&spec.get("volumeLifecycleModes"), &before.get("volumeLifecycleModes"));
}

pub(super) fn node(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let mut seen = BTreeSet::new();
    for driver in object.down("spec.drivers").items() {
        let name = driver.get("name");
        csi_driver_name(r, &name);
        let id = driver.get("nodeID");
        r.required(&id);
        r.when(id.len() > 256, || id.invalid("must be 256 characters or less"));
        r.non_negative(&driver.down("allocatable.count"));
        r.when(!seen.insert(name.str()), || name.duplicate_str());
        let mut keys = BTreeSet::new();
        for key in driver.get("topologyKeys").items() {
            let key = key.named(driver.path.clone());
            r.required(&key);
            r.when(!keys.insert(key.str()), || key.duplicate_str());
            r.qualified(&key);
        }
    }
}

pub(super) fn node_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    node(r, new);
    let list = new.down("spec.drivers");
    let trimmed = |at: &At<'_>| {
        let mut map = at.value.as_object().cloned().unwrap_or_default();
        map.remove("allocatable");
        Value::Object(map)
    };
    for before in old.down("spec.drivers").items() {
        for now in list.items() {
            if now.get("name").str() == before.get("name").str() && !same(&trimmed(&now), &trimmed(&before)) {
                let value = trimmed(&now);
                let at = At { value: &value, path: list.path.clone() };
                r.add(at.invalid_as("storage.CSINodeDriver", IMMUTABLE));
            }
        }
    }
}

pub(super) fn capacity(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    r.selector(&object.get("nodeTopology"), SelectorOptions::default());
    r.subdomain(&object.get("storageClassName"));
    let amount = object.get("capacity");
    if let Some(q) = amount.quantity()
        && q.sign() < 0
    {
        r.add(amount.invalid_with(go_quote(&q.to_string()), NEGATIVE));
    }
}

pub(super) fn capacity_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    capacity(r, new);
    meta::update(r, new, old);
    r.immutable_as("*meta.LabelSelector", &new.get("nodeTopology"), &old.get("nodeTopology"));
    r.immutable_str(&new.get("storageClassName"), &old.get("storageClassName"));
}

pub(super) fn attachment(r: &mut Report, object: &At<'_>) {
    const BYTES_MAX: usize = 256 * 1024;
    const WORDS: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let spec = object.get("spec");
    csi_driver_name(r, &spec.get("attacher"));
    let source = spec.get("source");
    let (name, inline) = (source.get("persistentVolumeName"), source.get("inlineVolumeSpec"));
    match (name.is_set(), inline.is_set()) {
        (false, false) => r.add(source.required(WORDS)),
        (true, true) => r.add(source.forbidden(WORDS)),
        (true, false) => {
            r.when(name.is_empty(), || name.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => volume_spec(r, &inline, "", Place::Inline),
    }
    r.subdomain(&spec.get("nodeName"));
    let status = object.get("status");
    let bytes: usize =
        status.get("attachmentMetadata").entries().iter().map(|(k, v)| k.len() + v.str().len()).sum();
    r.when(bytes > BYTES_MAX, || status.get("attachmentMetadata").too_long(BYTES_MAX));
    for key in ["attachError", "detachError"] {
        let error = status.get(key);
        let (message, code) = (error.get("message"), error.get("errorCode"));
        r.when(message.len() > 1024, || message.too_long(BYTES_MAX));
        r.when(code.int() < 0, || code.invalid(names::inclusive_range(0, i64::from(i32::MAX))));
    }
    if name.is_set() {
        r.subdomain(&name.named(Path::new("spec.source.persistentVolumeName")));
    }
}

pub(super) fn attachment_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    attachment(r, new);
    r.immutable_as("storage.VolumeAttachmentSpec", &new.get("spec"), &old.get("spec"));
}
