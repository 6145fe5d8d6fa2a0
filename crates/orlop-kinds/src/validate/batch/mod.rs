//! Jobs and CronJobs.

mod cron;
mod status;

use super::Rules;
use super::meta::{self, Scope};
use super::pod::{PodOptions, lenient, template};
use super::view::{At, IMMUTABLE, Report, same};
use orlop_schema::field::{Path, go_quote};
use orlop_schema::labels;
use orlop_schema::names::{self, NameRule};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rules] = &[
    Rules::new("batch", "Job", Scope::Namespaced, job, job_update, &[("status", status::update)]),
    Rules::new("batch", "CronJob", Scope::Namespaced, cron_job, cron_job_update, &[]),
];

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

fn job(r: &mut Report, object: &At<'_>) {
    whole_job(r, object, &PodOptions::default());
}

fn whole_job(r: &mut Report, object: &At<'_>, options: &PodOptions) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    generated_selector(r, object);
    let spec = object.get("spec");
    selected_spec(r, &spec, options);
    let completions = spec.get("completions").int();
    if spec.get("completionMode").str() == "Indexed" && completions > 0 {
        let name = object.down("metadata.name");
        let host = format!("{}-{}", name.str(), completions - 1);
        r.when(!names::dns1123_label(&host).is_empty(), || {
            name.invalid_str(format!("will not able to create pod with invalid DNS label: {host}"))
        });
    }
}

fn generated_selector(r: &mut Report, object: &At<'_>) {
    let spec = object.get("spec");
    let chosen = spec.get("selector");
    if spec.get("manualSelector").is_true() || !chosen.is_set() {
        return;
    }
    let (uid, name) = (object.down("metadata.uid"), object.down("metadata.name"));
    r.required(&uid);
    let found = spec.down("template.metadata.labels");
    let wanted =
        [("controller-uid", uid.str()), ("job-name", name.str()), (UID, uid.str()), (NAME, name.str())];
    for (key, value) in wanted {
        let at = found.key(key);
        if !at.is_set() {
            r.add(at.required(format!("must be '{value}'")));
        } else if at.str() != value {
            r.add(found.named(at.path).invalid(format!("must be '{value}'")));
        }
    }
    let expected: Map<String, Value> = wanted.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
    let usable = labels::selector_is_usable(chosen.value);
    r.when(usable && !labels::selector_matches(chosen.value, &Value::Object(expected)), || {
        chosen.invalid_as("meta.LabelSelector", "`selector` not auto-generated")
    });
}

fn selected_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    job_spec(r, spec, options);
    let chosen = spec.get("selector");
    if chosen.is_set() {
        r.selector(&chosen, lenient(options));
    } else {
        r.add(chosen.required(""));
    }
    let found = spec.down("template.metadata.labels");
    let matches = chosen.is_set() && labels::selector_matches(chosen.value, found.value);
    r.when(labels::selector_is_usable(chosen.value) && !matches, || {
        found.invalid("`selector` does not match template `labels`")
    });
}

/// The spec of a job, without its selector.
fn job_spec(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    r.all_non_negative(
        spec,
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
    );
    let (per_index, failed) = (spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"));
    r.when(failed.is_set() && !per_index.is_set(), || {
        per_index.required("when maxFailedIndexes is specified")
    });
    let managed = spec.get("managedBy");
    if managed.is_set() {
        r.domain_prefixed_path(&managed);
        r.when(managed.len() > 63, || managed.too_long(63));
    }
    let mode = spec.get("completionMode");
    r.optional_one_of(&mode, &["NonIndexed", "Indexed"]);
    if mode.str() == "Indexed" {
        indexed(r, spec);
    }
    if !mode.is_set() || mode.str() == "NonIndexed" {
        for at in [&per_index, &failed] {
            r.when(at.is_set(), || at.invalid("requires indexed completion mode"));
        }
    }
    let (failure, success) = (spec.get("podFailurePolicy"), spec.get("successPolicy"));
    if failure.is_set() {
        failure_policy(r, &failure, spec);
    }
    if success.is_set() {
        if mode.str() == "Indexed" {
            success_policy(r, &success, spec);
        } else {
            r.add(success.invalid_as("batch.SuccessPolicy", "requires indexed completion mode"));
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    let allowed: &[&str] = if failure.is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    r.optional_one_of(&replacement, allowed);
    template(r, &spec.get("template"), options);
    let restart = spec.down("template.spec.restartPolicy");
    match restart.str() {
        "Always" | "" => r.add(restart.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" | "Never" => r.when(failure.is_set() && restart.str() != "Never", || {
            restart.invalid("only \"Never\" is supported when podFailurePolicy is specified")
        }),
        _ => r.add(restart.unsupported(&["OnFailure", "Never"])),
    }
}

fn indexed(r: &mut Report, spec: &At<'_>) {
    const PARALLELISM_MAX: i64 = 100_000;
    const MANY: i64 = 100_000;
    const SOME: i64 = 10_000;
    let (completions, parallelism) = (spec.get("completions"), spec.get("parallelism"));
    let failed = spec.get("maxFailedIndexes");
    r.when(!completions.is_set(), || completions.required("when completion mode is Indexed"));
    r.when(parallelism.int() > PARALLELISM_MAX, || {
        parallelism.invalid(format!(
            "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
        ))
    });
    r.when(completions.is_set() && failed.is_set() && failed.int() > completions.int(), || {
        failed.invalid("must be less than or equal to completions")
    });
    r.when(failed.int() > MANY, || failed.invalid(format!("must be less than or equal to {MANY}")));
    if completions.int() > MANY && spec.get("backoffLimitPerIndex").is_set() {
        let above = format!("when completions are above {MANY} and used with backoff limit per index");
        r.when(!failed.is_set(), || {
            failed.required(format!("must be specified when completions is above {MANY}"))
        });
        for at in [&parallelism, &failed] {
            r.when(at.int() > SOME, || at.invalid(format!("must be less than or equal to {SOME} {above}")));
        }
    }
}

fn failure_policy(r: &mut Report, at: &At<'_>, spec: &At<'_>) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let rules = at.get("rules");
    r.when(rules.len() > 20, || rules.too_many(20));
    let pod = spec.down("template.spec");
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|key| pod.get(key).items())
        .map(|c| c.get("name").str())
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.str() {
            "" => r.add(action.required(values(&ACTIONS))),
            "FailIndex" => r.when(!spec.get("backoffLimitPerIndex").is_set(), || {
                action.invalid("requires the backoffLimitPerIndex to be set")
            }),
            _ => {
                r.one_of(&action, &ACTIONS);
            }
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(r, &codes, &containers);
        }
        pod_conditions(r, &conditions);
        r.when(codes.is_set() && !conditions.is_empty(), || {
            rule.invalid_bare("specifying both OnExitCodes and OnPodConditions is not supported")
        });
        r.when(!codes.is_set() && conditions.is_empty(), || {
            rule.invalid_bare("specifying one of OnExitCodes and OnPodConditions is required")
        });
    }
}

/// The words Go prints for a list of valid values.
fn values(list: &[&str]) -> String {
    let quoted: Vec<String> = list.iter().map(|v| go_quote(v)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn pod_conditions(r: &mut Report, list: &At<'_>) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    r.when(list.len() > 20, || list.too_many(20));
    for pattern in list.items() {
        r.qualified(&pattern.get("type"));
        let status = pattern.get("status");
        if status.is_empty() {
            r.add(status.required(values(&STATUSES)));
        } else {
            r.one_of(&status, &STATUSES);
        }
    }
}

fn exit_codes(r: &mut Report, at: &At<'_>, containers: &BTreeSet<&str>) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let (operator, container, list) = (at.get("operator"), at.get("containerName"), at.get("values"));
    if operator.is_empty() {
        r.add(operator.required(values(&OPERATORS)));
    } else {
        r.one_of(&operator, &OPERATORS);
    }
    r.when(container.is_set() && !containers.contains(container.str()), || {
        container.invalid("must be one of the container or initContainer names in the pod template")
    });
    r.when(list.is_empty(), || list.invalid("at least one value is required"));
    r.when(list.len() > 255, || list.too_many(255));
    let mut seen = BTreeSet::new();
    let items = list.items();
    for code in &items {
        r.when(operator.str() == "In" && code.int() == 0, || {
            code.invalid("must not be 0 for the In operator")
        });
        r.when(!seen.insert(code.int()), || code.duplicate());
    }
    let ordered = items.windows(2).all(|pair| pair[0].int() <= pair[1].int());
    r.when(!ordered, || list.invalid("must be ordered"));
}

fn success_policy(r: &mut Report, at: &At<'_>, spec: &At<'_>) {
    let rules = at.get("rules");
    let completions = spec.get("completions").int();
    r.when(rules.is_empty(), || {
        rules.required("at least one rules must be specified when the successPolicy is specified")
    });
    r.when(rules.len() > 20, || rules.too_many(20));
    for rule in rules.items() {
        let (count, indexes) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        r.when(!count.is_set() && !indexes.is_set(), || {
            rule.required("at least one of succeededCount or succeededIndexes must be specified")
        });
        let mut total = 0;
        if indexes.is_set() {
            r.when(indexes.len() > 64 * 1024, || indexes.too_long(64 * 1024));
            match status::indexes(indexes.str(), completions) {
                Ok(found) => total = found,
                Err(error) => {
                    r.add(indexes.invalid(format!("error parsing succeededIndexes: {error}")));
                }
            }
        }
        if count.is_set() {
            r.non_negative(&count);
            r.when(count.int() > completions, || {
                count.invalid(format!(
                    "must be less than or equal to {completions} (the number of specified completions)"
                ))
            });
            r.when(indexes.is_set() && count.int() > total, || {
                count.invalid(format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                ))
            });
        }
    }
}

fn job_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let template = before.get("template");
    let options = PodOptions::for_update(&template.get("spec"), &template.get("metadata"));
    whole_job(r, new, &options);
    meta::update(r, new, old);
    selected_spec(r, &spec, &options);
    let (now, then) = (spec.get("completions"), before.get("completions"));
    if spec.get("completionMode").str() == "Indexed" {
        let changed = now.value != then.value && now.is_set();
        r.when(changed && now.int() != spec.get("parallelism").int(), || {
            now.invalid("can only be modified in tandem with spec.parallelism")
        });
    } else {
        r.immutable(&now, &then);
    }
    r.immutable_as("*meta.LabelSelector", &spec.get("selector"), &before.get("selector"));
    template_update(r, new, old);
    r.immutable(&spec.get("completionMode"), &before.get("completionMode"));
    let kinds = [("podFailurePolicy", "*batch.PodFailurePolicy"), ("successPolicy", "*batch.SuccessPolicy")];
    r.immutable_as(kinds[0].1, &spec.get(kinds[0].0), &before.get(kinds[0].0));
    r.immutable(&spec.get("backoffLimitPerIndex"), &before.get("backoffLimitPerIndex"));
    r.immutable(&spec.get("managedBy"), &before.get("managedBy"));
    r.immutable_as(kinds[1].1, &spec.get(kinds[1].0), &before.get(kinds[1].0));
}

/// Whether the pods of a job are not running and will not be, so that its template may change.
fn template_is_open(old: &At<'_>) -> bool {
    let suspended = old.down("spec.suspend").is_true();
    let condition = old
        .down("status.conditions")
        .items()
        .into_iter()
        .any(|c| c.get("type").str() == "Suspended" && c.get("status").str() == "True");
    let idle = old.down("status.active").int() == 0;
    suspended && idle && (!old.down("status.startTime").is_set() || condition)
}

fn take(to: &mut Value, from: &Value, key: &str) {
    if let Some(map) = to.as_object_mut() {
        match from.get(key) {
            Some(value) => map.insert(key.to_owned(), value.clone()),
            None => map.remove(key),
        };
    }
}

fn template_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let (now, then) = (new.down("spec.template"), old.down("spec.template"));
    let mut allowed = then.value.clone();
    let open = template_is_open(old);
    if open {
        let meta = now.get("metadata");
        if allowed.get("metadata").is_none() {
            allowed["metadata"] = json!({});
        }
        take(&mut allowed["metadata"], meta.value, "labels");
        take(&mut allowed["metadata"], meta.value, "annotations");
        let spec = now.get("spec");
        for key in ["nodeSelector", "tolerations", "schedulingGates"] {
            take(&mut allowed["spec"], spec.value, key);
        }
        let affinity = spec.get("affinity");
        let mut kept = allowed["spec"]["affinity"].clone();
        if !kept.is_object() {
            kept = json!({});
        }
        take(&mut kept, affinity.value, "nodeAffinity");
        let empty = kept.as_object().is_some_and(Map::is_empty) && !affinity.is_set();
        allowed["spec"]["affinity"] = if empty { Value::Null } else { kept };
    }
    if old.down("spec.suspend").is_true() && open {
        let mut spec = allowed["spec"].clone();
        for key in ["containers", "initContainers"] {
            let containers = now.get("spec").get(key).items();
            if let Some(Value::Array(list)) = spec.get_mut(key)
                && list.len() == containers.len()
            {
                for (before, container) in list.iter_mut().zip(containers) {
                    if before.get("name") == container.value.get("name") {
                        take(before, container.value, "resources");
                    }
                }
            }
        }
        let at = now.get("spec").named(Path::new("spec").child("template.spec"));
        r.immutable_as("core.PodSpec", &at, &At { value: &spec, path: at.path.clone() });
        return;
    }
    r.when(!same(now.value, &allowed), || now.invalid_as("core.PodTemplateSpec", IMMUTABLE));
}

fn cron_job(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    cron_job_spec(r, &object.get("spec"), None, &PodOptions::default());
    let name = object.down("metadata.name");
    r.when(name.len() > 52, || name.invalid("must be no more than 52 characters"));
}

fn cron_job_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let before = old.get("spec");
    let template = before.down("jobTemplate.spec.template");
    let options = PodOptions::for_update(&template.get("spec"), &template.get("metadata"));
    cron_job_spec(r, &new.get("spec"), Some(&before), &options);
}

fn cron_job_spec(r: &mut Report, spec: &At<'_>, before: Option<&At<'_>>, options: &PodOptions) {
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if !r.required(&schedule) {
        if let Err(error) = cron::schedule(schedule.str()) {
            r.add(schedule.invalid(error));
        }
        let has_zone = schedule.str().contains("TZ");
        let had_zone = before.is_some_and(|b| b.get("schedule").str().contains("TZ"));
        r.when(had_zone && has_zone && zone.is_set(), || {
            schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule")
        });
        r.when(!had_zone && has_zone, || {
            schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        });
    }
    r.non_negative(&spec.get("startingDeadlineSeconds"));
    if before.is_none_or(|b| b.get("timeZone").value != zone.value) {
        time_zone(r, &zone);
    }
    r.required_one_of(&spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.down("jobTemplate.spec");
    job_spec(r, &job, options);
    let (chosen, manual) = (job.get("selector"), job.get("manualSelector"));
    r.when(chosen.is_set(), || chosen.invalid_as("meta.LabelSelector", "`selector` will be auto-generated"));
    r.when(manual.is_true(), || {
        let mut error = manual.unsupported(&["nil", "false"]);
        error.value = Some("true".to_owned());
        error
    });
    r.all_non_negative(spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
}

fn time_zone(r: &mut Report, at: &At<'_>) {
    if !at.is_set() {
        return;
    }
    if at.is_empty() {
        return r.add(at.invalid("timeZone must be nil or non-empty string"));
    }
    let name = at.str();
    let strange = name.split('/').any(|part| {
        let fine = (1..=14).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b));
        part == "." || part == ".." || part.starts_with('-') || !fine
    });
    if strange {
        return r.add(at.invalid(format!("unknown time zone {name}")));
    }
    r.when(name.eq_ignore_ascii_case("local"), || {
        at.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    });
    r.when(!cron::is_zone(name), || at.invalid(format!("unknown time zone {name}")));
}
