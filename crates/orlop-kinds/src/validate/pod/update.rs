//! What may change in a pod that exists: little, and resources through `resize`.

use super::super::view::{At, Report, same};
use super::super::{golang, meta};
use super::{PodOptions, annotations, metadata_and_spec, scheduling};
use orlop_schema::field::{Path, go_quote};
use orlop_schema::names::inclusive_range;
use orlop_schema::quantity::Quantity;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const MIRROR: &str = "kubernetes.io/config.mirror";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn options(old: &At<'_>) -> PodOptions {
    let options = PodOptions::for_update(&old.get("spec"), &old.get("metadata"));
    PodOptions { is_pod: true, ..options }
}

/// Annotations that a pod keeps for life.
pub(super) fn annotation_updates(r: &mut Report, new: &At<'_>, old: &At<'_>, options: &PodOptions) {
    let (now, before) = (new.down("metadata.annotations"), old.down("metadata.annotations"));
    for (key, value) in before.entries() {
        let changed = now.key(key);
        if changed.value == value.value {
            continue;
        }
        r.when(key.starts_with(APP_ARMOR), || {
            changed.forbidden("may not remove or update AppArmor annotations")
        });
        r.when(key == MIRROR, || changed.forbidden("may not remove or update mirror pod annotation"));
    }
    for (key, added) in now.entries() {
        if before.key(key).is_set() {
            continue;
        }
        r.when(key.starts_with(APP_ARMOR), || added.forbidden("may not add AppArmor annotations"));
        r.when(key == MIRROR, || added.forbidden("may not add mirror pod annotation"));
    }
    annotations(r, &now, &new.get("spec"), options);
}

/// A change of the pod itself.
pub(super) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let options = options(old);
    meta::update(r, new, old);
    metadata_and_spec(r, new, &options);
    annotation_updates(r, new, old, &options);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    for key in ["containers", "initContainers"] {
        if !same_containers(r, &spec.get(key), &before.get(key)) {
            return;
        }
    }
    if !deadline(r, &spec.get("activeDeadlineSeconds"), &before.get("activeDeadlineSeconds")) {
        return;
    }
    added_tolerations(r, &spec.get("tolerations"), &before.get("tolerations"));
    deleted_gates(r, &spec.get("schedulingGates"), &before.get("schedulingGates"));
    if same(spec.value, before.value) {
        return;
    }
    let munged = munge(r, &spec, &before);
    if !same(&munged, before.value) {
        let difference = golang::difference("core.PodSpec", before.value, &munged);
        r.add(spec.forbidden(format!(
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n{difference}"
        )));
    }
}

fn same_containers(r: &mut Report, new: &At<'_>, old: &At<'_>) -> bool {
    if new.len() != old.len() {
        r.add(new.forbidden("pod updates may not add or remove containers"));
        return false;
    }
    for container in new.items() {
        r.required(&container.get("image"));
        super::container::image_has_no_blanks(r, &container);
    }
    true
}

fn deadline(r: &mut Report, new: &At<'_>, old: &At<'_>) -> bool {
    let longest = i64::from(i32::MAX);
    match (new.number(), old.number()) {
        (Some(now), _) if !(0..=longest).contains(&now) => {
            r.add(new.invalid(inclusive_range(0, longest)));
            return false;
        }
        (Some(now), Some(before)) if before < now => {
            r.add(new.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => r.add(new.invalid("must not update from a positive integer to nil value")),
        _ => {}
    }
    true
}

fn without(value: &Value, key: &str) -> Map<String, Value> {
    let mut map = value.as_object().cloned().unwrap_or_default();
    map.remove(key);
    map
}

fn added_tolerations(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let now = new.items();
    for before in old.items() {
        let wanted = without(before.value, "tolerationSeconds");
        if !now.iter().any(|t| without(t.value, "tolerationSeconds") == wanted) {
            return r
                .add(new.forbidden("existing toleration can not be modified except its tolerationSeconds"));
        }
    }
    scheduling::tolerations(r, new);
}

fn deleted_gates(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let before: Vec<&str> = old.items().iter().map(|g| g.get("name").str()).collect();
    for gate in new.items() {
        let name = gate.get("name");
        r.when(!before.contains(&name.str()), || {
            name.forbidden(format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.str()
            ))
        });
    }
}

fn put(map: &mut Map<String, Value>, key: &str, from: &Value) {
    match from.get(key) {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.remove(key),
    };
}

/// The new spec with everything that may change taken back; what is still different may not be.
fn munge(r: &mut Report, new: &At<'_>, old: &At<'_>) -> Value {
    let mut spec = new.value.as_object().cloned().unwrap_or_default();
    for key in ["containers", "initContainers"] {
        if let Some(Value::Array(list)) = spec.get_mut(key) {
            for (container, before) in list.iter_mut().zip(old.get(key).items()) {
                if let Some(map) = container.as_object_mut() {
                    put(map, "image", before.value);
                }
            }
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut spec, key, old.value);
    }
    let grace = "terminationGracePeriodSeconds";
    if old.get(grace).int() < 0 && new.get(grace).number() == Some(1) {
        put(&mut spec, grace, old.value);
    }
    if old.get("schedulingGates").is_empty() {
        return Value::Object(spec);
    }
    node_selector_additions(r, &new.get("nodeSelector"), &old.get("nodeSelector"));
    put(&mut spec, "nodeSelector", old.value);
    let (now, before) = (new.down("affinity.nodeAffinity"), old.down("affinity.nodeAffinity"));
    if !same(now.value, before.value) {
        node_affinity_additions(r, &now, &before);
        let mut affinity = new.get("affinity").value.as_object().cloned().unwrap_or_default();
        put(&mut affinity, "nodeAffinity", old.get("affinity").value);
        if affinity.is_empty() && !old.get("affinity").is_set() {
            spec.remove("affinity");
        } else {
            spec.insert("affinity".to_owned(), Value::Object(affinity));
        }
    }
    Value::Object(spec)
}

fn node_selector_additions(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let kept = old.entries().iter().all(|(key, value)| new.key(key).value == value.value);
    r.when(!kept, || {
        new.invalid("only additions to spec.nodeSelector are allowed (no mutations or deletions)")
    });
}

fn node_affinity_additions(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    if !old.get(required).is_set() {
        return;
    }
    let (now, before) =
        (new.get(required).get("nodeSelectorTerms"), old.get(required).get("nodeSelectorTerms"));
    if !before.is_empty() && before.len() != now.len() {
        return r.add(now.invalid_as(
            "[core.NodeSelectorTerm",
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        ));
    }
    for (now, before) in now.items().iter().zip(before.items()) {
        let keys = ["matchExpressions", "matchFields"];
        let was_empty = keys.iter().all(|k| before.get(k).is_empty());
        let is_empty = keys.iter().all(|k| now.get(k).is_empty());
        let begins = |key: &&str| {
            let (now, before) = (now.get(key).items(), before.get(key).items());
            before.len() <= now.len() && before.iter().zip(&now).all(|(b, n)| same(b.value, n.value))
        };
        r.when((was_empty && !is_empty) || !keys.iter().all(begins), || {
            now.invalid_as("core.NodeSelectorTerm", "only additions are allowed (no mutations or deletions)")
        });
    }
}

fn nowhere(at: &At<'_>, detail: &str) -> Report {
    Report(vec![at.named(Path::root().key("")).forbidden(detail)])
}

/// A change through `ephemeralcontainers`.
pub(super) fn ephemeral_containers(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let before_report = r.0.len();
    let options = options(old);
    meta::update(r, new, old);
    metadata_and_spec(r, new, &options);
    annotation_updates(r, new, old, &options);
    if old.down("metadata.annotations").key(MIRROR).is_set() {
        r.0.truncate(before_report);
        r.extend(nowhere(new, "static pods do not support ephemeral containers").0);
        return;
    }
    let list = new.down("spec.ephemeralContainers");
    let now: BTreeMap<&str, At<'_>> = list.items().into_iter().map(|c| (c.get("name").str(), c)).collect();
    for before in old.down("spec.ephemeralContainers").items() {
        let name = go_quote(before.get("name").str());
        match now.get(before.get("name").str()) {
            None => {
                r.add(list.forbidden(format!("existing ephemeral containers {name} may not be removed\n")));
            }
            Some(now) => r.when(!same(now.value, before.value), || {
                let difference = golang::difference("core.EphemeralContainer", before.value, now.value);
                list.forbidden(format!(
                    "existing ephemeral containers {name} may not be changed\n{difference}"
                ))
            }),
        }
    }
}

/// A change through `resize`.
pub(super) fn resize(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let before_report = r.0.len();
    meta::update(r, new, old);
    metadata_and_spec(r, new, &options(old));
    let refused = if old.down("metadata.annotations").key(MIRROR).is_set() {
        "static pods cannot be resized"
    } else if old.down("spec.os.name").str() == "windows" {
        "windows pods cannot be resized"
    } else {
        ""
    };
    if !refused.is_empty() {
        r.0.truncate(before_report);
        r.extend(nowhere(new, refused).0);
        return;
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let class = old.down("status.qosClass").value.as_str().unwrap_or_else(|| quality(&before));
    r.when(class != quality(&spec), || {
        let shown = go_quote(new.down("status.qosClass").str());
        spec.invalid_with(shown, "Pod QOS Class may not change as a result of resizing")
    });
    let running = old.down("status.containerStatuses").items();
    let supported =
        running.iter().find(|c| c.down("state.running").is_set()).is_none_or(|c| c.get("resources").is_set());
    r.when(!supported, || spec.forbidden("Pod running on node without support for resize"));
    let start = r.0.len();
    if !same_order(r, &spec, &before) {
        return;
    }
    for key in ["initContainers", "containers"] {
        for (now, before) in spec.get(key).items().iter().zip(before.get(key).items()) {
            for list in ["requests", "limits"] {
                let (now, before) = (now.get("resources").get(list), before.get("resources").get(list));
                let removed = before.entries().iter().any(|(name, _)| !now.key(name).is_set());
                r.when(removed, || now.forbidden(format!("resource {list} cannot be removed")));
            }
        }
    }
    for (now, before) in spec.get("containers").items().iter().zip(before.get("containers").items()) {
        r.when(!only_computes_differ(now, &before), || {
            spec.forbidden("only cpu and memory resources are mutable")
        });
    }
    for (now, before) in spec.get("initContainers").items().iter().zip(before.get("initContainers").items()) {
        r.when(!only_computes_differ(now, &before), || {
            now.forbidden("only cpu and memory resources for init or sidecar containers are mutable")
        });
    }
    if r.0.len() > start {
        return;
    }
    let trimmed = |at: &At<'_>| {
        let mut map = at.value.as_object().cloned().unwrap_or_default();
        for key in ["containers", "initContainers", "resources"] {
            map.remove(key);
        }
        Value::Object(map)
    };
    r.when(!same(&trimmed(&spec), &trimmed(&before)), || {
        spec.forbidden("only cpu and memory resources are mutable")
    });
}

fn same_order(r: &mut Report, spec: &At<'_>, before: &At<'_>) -> bool {
    let start = r.0.len();
    for key in ["containers", "initContainers"] {
        let (now, then) = (spec.get(key), before.get(key));
        if now.len() != then.len() {
            r.add(now.forbidden(format!("{key} may not be added or removed on resize")));
            continue;
        }
        for (now, then) in now.items().iter().zip(then.items()) {
            let name = now.get("name");
            r.when(name.str() != then.get("name").str(), || {
                name.forbidden(format!("{key} may not be renamed or reordered on resize"))
            });
        }
    }
    r.0.len() == start
}

fn only_computes_differ(now: &At<'_>, before: &At<'_>) -> bool {
    let trimmed = |at: &At<'_>| {
        let mut map = at.value.as_object().cloned().unwrap_or_default();
        if let Some(resources) = map.get_mut("resources").and_then(Value::as_object_mut) {
            for list in ["requests", "limits"] {
                if let Some(list) = resources.get_mut(list).and_then(Value::as_object_mut) {
                    list.remove("cpu");
                    list.remove("memory");
                }
            }
        }
        Value::Object(map)
    };
    same(&trimmed(now), &trimmed(before))
}

/// The quality of service a pod is entitled to.
pub(crate) fn quality(spec: &At<'_>) -> &'static str {
    let mut requests: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut limits: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut guaranteed = true;
    let whole = spec.get("resources");
    let holders = if whole.get("requests").is_empty() && whole.get("limits").is_empty() {
        [spec.get("containers").items(), spec.get("initContainers").items()].concat()
    } else {
        vec![spec.clone()]
    };
    for holder in holders {
        let add = |sum: &mut BTreeMap<&str, Quantity>, list: &str| {
            let mut found = 0;
            for name in ["cpu", "memory"] {
                if let Some(q) = holder.get("resources").get(list).key(name).quantity()
                    && q.sign() > 0
                {
                    let total = sum.get(name).map_or(q.clone(), |old| old.plus(&q));
                    sum.insert(name, total);
                    found += 1;
                }
            }
            found
        };
        add(&mut requests, "requests");
        guaranteed &= add(&mut limits, "limits") == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let met = requests.iter().all(|(name, asked)| limits.get(name) == Some(asked));
    if guaranteed && met && requests.len() == limits.len() { "Guaranteed" } else { "Burstable" }
}
