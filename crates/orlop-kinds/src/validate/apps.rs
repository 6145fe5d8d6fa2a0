//! Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, ControllerRevisions.

use super::Rules;
use super::meta::{self, Scope};
use super::pod::{PodOptions, lenient, template, template_is_selected, template_metadata};
use super::storage::claim_spec;
use super::view::{At, IMMUTABLE, Report, count_or_percent, same};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::NameRule;
use serde_json::{Value, json};

pub(super) const RULES: &[Rules] = &[
    Rules::new(
        "apps",
        "Deployment",
        Scope::Namespaced,
        deployment,
        deployment_update,
        &[("status", deployment_status), ("scale", deployment_update)],
    ),
    Rules::new(
        "apps",
        "ReplicaSet",
        Scope::Namespaced,
        replica_set,
        replica_set_update,
        &[("status", replica_set_status), ("scale", replica_set_update)],
    ),
    Rules::new(
        "apps",
        "StatefulSet",
        Scope::Namespaced,
        stateful_set,
        stateful_set_update,
        &[("status", stateful_set_status), ("scale", stateful_set_update)],
    ),
    Rules::new(
        "apps",
        "DaemonSet",
        Scope::Namespaced,
        daemon_set,
        daemon_set_update,
        &[("status", daemon_set_status)],
    ),
    Rules::new("apps", "ControllerRevision", Scope::Namespaced, revision, revision_update, &[]),
    Rules::new(
        "",
        "ReplicationController",
        Scope::Namespaced,
        controller,
        controller_update,
        &[("status", controller_status), ("scale", controller_update)],
    ),
];

fn update_options(old: &At<'_>) -> PodOptions {
    let template = old.down("spec.template");
    PodOptions::for_update(&template.get("spec"), &template.get("metadata"))
}

/// A selector that must be given and must not be empty.
fn selector(r: &mut Report, at: &At<'_>, what: &str) {
    if !at.is_set() {
        return r.add(at.required(""));
    }
    r.selector(at, SelectorOptions::default());
    r.when(labels::selector_is_empty(at.value), || {
        at.invalid_as("meta.LabelSelector", format!("empty selector is invalid for {what}"))
    });
}

/// A template whose pods are restarted for ever.
fn lasting_template(r: &mut Report, at: &At<'_>, what: &str, options: &PodOptions) {
    template(r, at, options);
    lasting(r, at, what);
}

fn lasting(r: &mut Report, at: &At<'_>, what: &str) {
    let (restart, deadline) = (at.down("spec.restartPolicy"), at.down("spec.activeDeadlineSeconds"));
    r.one_of(&restart, &["Always"]);
    r.when(deadline.is_set(), || {
        deadline.forbidden(format!("activeDeadlineSeconds in {what} is not Supported"))
    });
}

fn deployment(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    deployment_spec(r, &object.get("spec"), &PodOptions::default());
}

fn deployment_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    deployment_spec(r, &new.get("spec"), &update_options(old));
    r.immutable_as("*meta.LabelSelector", &new.down("spec.selector"), &old.down("spec.selector"));
}

fn selected_template(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    let chosen = spec.get("selector");
    let at = spec.get("template");
    if labels::selector_is_usable(chosen.value) {
        template_is_selected(r, &chosen, &at);
        lasting_template(r, &at, "ReplicaSet", options);
    } else {
        r.add(chosen.invalid_as("meta.LabelSelector", "invalid label selector"));
    }
}

fn deployment_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    r.non_negative(&spec.get("replicas"));
    selector(r, &spec.get("selector"), "deployment");
    selected_template(r, spec, options);
    strategy(r, &spec.get("strategy"));
    r.all_non_negative(spec, &["minReadySeconds", "revisionHistoryLimit"]);
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.is_set() {
        r.non_negative(&deadline);
        r.when(deadline.int() <= spec.get("minReadySeconds").int(), || {
            deadline.invalid("must be greater than minReadySeconds")
        });
    }
}

fn strategy(r: &mut Report, at: &At<'_>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").str() {
        "Recreate" => r.when(rolling.is_set(), || {
            rolling.forbidden("may not be specified when strategy `type` is 'Recreate'")
        }),
        "RollingUpdate" if !rolling.is_set() => {
            r.add(rolling.required("this should be defaulted and never be nil"));
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            r.count_or_percent(&unavailable);
            r.count_or_percent(&surge);
            r.when(count_or_percent(&unavailable) == 0 && count_or_percent(&surge) == 0, || {
                unavailable.invalid("may not be 0 when `maxSurge` is 0")
            });
            r.at_most_100_percent(&unavailable);
        }
        _ => r.add(at.unsupported_as("apps.DeploymentStrategy", &["Recreate", "RollingUpdate"])),
    }
}

/// Counters that may not exceed another.
fn at_most(r: &mut Report, status: &At<'_>, keys: &[&str], limit: &str, words: &str) {
    for key in keys {
        let at = status.get(key);
        r.when(at.int() > status.get(limit).int(), || at.invalid_int(words));
    }
}

fn collisions(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let at = new.down("status.collisionCount");
    let before = old.down("status.collisionCount").number();
    let decremented = before.is_some_and(|before| at.number().is_none_or(|now| now < before));
    r.when(decremented, || at.invalid_int("cannot be decremented"));
}

const TOTAL: &str = "cannot be greater than status.replicas";

fn deployment_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let status = new.get("status");
    r.all_non_negative(
        &status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    at_most(r, &status, &["updatedReplicas", "readyReplicas", "availableReplicas"], "replicas", TOTAL);
    at_most(r, &status, &["availableReplicas"], "readyReplicas", "cannot be greater than readyReplicas");
    collisions(r, new, old);
}

fn replica_set(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    replica_set_spec(r, &object.get("spec"), &PodOptions::default());
}

fn replica_set_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    replica_set_spec(r, &new.get("spec"), &update_options(old));
    r.immutable_as("*meta.LabelSelector", &new.down("spec.selector"), &old.down("spec.selector"));
}

fn replica_set_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    r.all_non_negative(spec, &["replicas", "minReadySeconds"]);
    selector(r, &spec.get("selector"), "deployment");
    selected_template(r, spec, options);
}

fn replica_set_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    replica_counters(r, &new.get("status"));
}

fn replica_counters(r: &mut Report, status: &At<'_>) {
    r.all_non_negative(
        status,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    at_most(r, status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], "replicas", TOTAL);
    at_most(r, status, &["availableReplicas"], "readyReplicas", "cannot be greater than readyReplicas");
}

fn controller(r: &mut Report, object: &At<'_>) {
    meta::create_named(r, object, Scope::Namespaced, NameRule::Subdomain);
    controller_spec(r, &object.get("spec"), &PodOptions::default());
}

fn controller_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    controller_spec(r, &new.get("spec"), &update_options(old));
}

fn controller_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    r.non_negative(&spec.get("minReadySeconds"));
    let chosen = spec.get("selector");
    r.required(&chosen);
    let replicas = spec.get("replicas");
    if replicas.is_set() {
        r.non_negative(&replicas);
    } else {
        r.add(replicas.required(""));
    }
    let at = spec.get("template");
    if !at.is_set() {
        return r.add(at.required(""));
    }
    let wrapped = json!({"matchLabels": chosen.value});
    template_is_selected(r, &At { value: &wrapped, path: chosen.path.clone() }, &at);
    lasting_template(r, &at, "ReplicationController", options);
}

fn controller_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    replica_counters(r, &new.get("status"));
}

/// What is let through when a StatefulSet changes.
#[derive(Clone, Copy, Default)]
struct SetOptions {
    any_service_name: bool,
    skip_template: bool,
    skip_claims: bool,
}

fn stateful_set(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Label);
    stateful_set_spec(r, &object.get("spec"), &PodOptions::default(), SetOptions::default());
}

fn stateful_set_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions, set: SetOptions) {
    let management = spec.get("podManagementPolicy");
    if !r.required(&management) {
        r.when(!["OrderedReady", "Parallel"].contains(&management.str()), || {
            management.invalid("must be 'OrderedReady' or 'Parallel'")
        });
    }
    set_strategy(r, &spec.get("updateStrategy"));
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for key in ["whenDeleted", "whenScaled"] {
            r.one_of(&retention.get(key), &["Retain", "Delete"]);
        }
    }
    if !set.skip_claims {
        for claim in spec.get("volumeClaimTemplates").items() {
            claim_spec(r, &claim.get("spec"), false);
        }
    }
    r.all_non_negative(spec, &["replicas", "minReadySeconds"]);
    r.non_negative(&spec.down("ordinals.start"));
    let service = spec.get("serviceName");
    if !set.any_service_name && !service.is_empty() {
        r.label(&service);
    }
    let chosen = spec.get("selector");
    selector(r, &chosen, "statefulset");
    if labels::selector_is_usable(chosen.value) {
        let real = set_template(spec);
        let at = At { value: &real, path: spec.get("template").path };
        template_is_selected(r, &chosen, &at);
        if !set.skip_template {
            template(r, &at, options);
        }
        template_metadata(r, &at, options);
    } else {
        r.add(chosen.invalid_as("meta.LabelSelector", ""));
    }
    lasting(r, &spec.get("template"), "StatefulSet");
}

/// The template as its pods will have it: with the volumes of the claims and without a host name.
fn set_template(spec: &At<'_>) -> Value {
    let mut template = spec.get("template").value.clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.remove("subdomain");
    pod.remove("hostname");
    let claims = spec.get("volumeClaimTemplates").items();
    if claims.is_empty() {
        return template;
    }
    let mut volumes: Vec<Value> = Vec::new();
    let mut names: Vec<&str> = claims.iter().map(|c| c.down("metadata.name").str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    }
    if let Some(Value::Array(own)) = pod.get("volumes") {
        volumes.extend(own.iter().filter(|v| !names.contains(&v["name"].as_str().unwrap_or(""))).cloned());
    }
    pod.insert("volumes".to_owned(), Value::Array(volumes));
    template
}

fn set_strategy(r: &mut Report, at: &At<'_>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").str() {
        "" => r.add(at.required("")),
        "OnDelete" => r.when(rolling.is_set(), || {
            rolling.invalid_as(
                "apps.RollingUpdateStatefulSetStrategy",
                "only allowed for updateStrategy 'RollingUpdate'",
            )
        }),
        "RollingUpdate" => {
            r.non_negative(&rolling.get("partition"));
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                r.count_or_percent(&unavailable);
                r.when(count_or_percent(&unavailable) == 0, || unavailable.invalid("cannot be 0"));
                r.at_most_100_percent(&unavailable);
            }
        }
        _ => r.add(at.invalid_as("apps.StatefulSetUpdateStrategy", "must be 'RollingUpdate' or 'OnDelete'")),
    }
}

fn stateful_set_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let options = update_options(old);
    let mut set = SetOptions { any_service_name: true, skip_claims: true, skip_template: false };
    let mut before = Report::default();
    stateful_set_spec(&mut before, &old.get("spec"), &options, set);
    set.skip_template = !before.0.is_empty();
    let spec = new.get("spec");
    stateful_set_spec(r, &spec, &options, set);
    let trimmed = |at: &At<'_>| {
        let mut map = at.get("spec").value.as_object().cloned().unwrap_or_default();
        for key in [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ] {
            map.remove(key);
        }
        Value::Object(map)
    };
    r.when(!same(&trimmed(new), &trimmed(old)), || {
        spec.forbidden("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
    });
}

fn stateful_set_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let status = new.get("status");
    r.all_non_negative(
        &status,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    );
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    at_most(r, &status, &parts, "replicas", TOTAL);
    at_most(
        r,
        &status,
        &["availableReplicas"],
        "readyReplicas",
        "cannot be greater than status.readyReplicas",
    );
    meta::update(r, new, old);
    collisions(r, new, old);
}

fn daemon_set(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    daemon_set_spec(r, &object.get("spec"), &PodOptions::default());
}

fn daemon_set_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    let (chosen, at) = (spec.get("selector"), spec.get("template"));
    r.selector(&chosen, lenient(options));
    let found = at.down("metadata.labels");
    let usable = labels::selector_is_usable(chosen.value);
    let matches = chosen.is_set() && labels::selector_matches(chosen.value, found.value);
    r.when(usable && !matches, || found.invalid("`selector` does not match template `labels`"));
    r.when(chosen.is_set() && labels::selector_is_empty(chosen.value), || {
        chosen.invalid_as("meta.LabelSelector", "empty selector is invalid for daemonset")
    });
    lasting_template(r, &at, "DaemonSet", options);
    r.non_negative(&spec.get("minReadySeconds"));
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").str() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => r.add(rolling.required("")),
        "RollingUpdate" => rolling_daemons(r, &rolling),
        _ => r.add(strategy.unsupported_as("apps.DaemonSetUpdateStrategy", &["RollingUpdate", "OnDelete"])),
    }
    r.non_negative(&spec.get("revisionHistoryLimit"));
}

fn rolling_daemons(r: &mut Report, at: &At<'_>) {
    let (unavailable, surge) = (at.get("maxUnavailable"), at.get("maxSurge"));
    r.count_or_percent(&unavailable);
    r.count_or_percent(&surge);
    r.at_most_100_percent(&unavailable);
    r.at_most_100_percent(&surge);
    match (count_or_percent(&unavailable) != 0, count_or_percent(&surge) != 0) {
        (true, true) => r.add(surge.invalid("may not be set when maxUnavailable is non-zero")),
        (false, false) => r.add(unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

fn daemon_set_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.immutable_as("*meta.LabelSelector", &new.down("spec.selector"), &old.down("spec.selector"));
    daemon_set_spec(r, &new.get("spec"), &update_options(old));
}

fn daemon_set_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.all_non_negative(
        &new.get("status"),
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    collisions(r, new, old);
}

fn revision_common(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    r.non_negative(&object.get("revision"));
}

fn revision(r: &mut Report, object: &At<'_>) {
    revision_common(r, object);
    let data = object.get("data");
    if data.is_set() {
        r.when(!data.value.is_object(), || data.required("data must be a valid JSON object"));
    } else {
        r.add(data.required("data is mandatory"));
    }
}

fn revision_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    revision_common(r, new);
    let data = new.get("data");
    r.when(data.value != old.get("data").value, || data.invalid(IMMUTABLE));
}
