//! What a controller may say about a job.

use super::super::meta;
use super::super::view::{At, Report, same};
use orlop_schema::field::go_quote;
use std::collections::BTreeSet;

fn is_true(job: &At<'_>, kind: &str) -> bool {
    job.down("status.conditions")
        .items()
        .iter()
        .any(|c| c.get("type").str() == kind && c.get("status").str() == "True")
}

fn is_finished(job: &At<'_>) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// A change through `status`.
pub(super) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let (status, before) = (new.get("status"), old.get("status"));
    let spec = new.get("spec");
    let changed = |key: &str| !same(status.get(key).value, before.get(key).value);
    let turned = |kind: &str| is_true(new, kind) != is_true(old, kind);
    let (complete, failed) = (is_true(new, "Complete"), is_true(new, "Failed"));
    let target = is_true(new, "FailureTarget");
    let met = is_true(new, "SuccessCriteriaMet");
    let (finished, finish_turned) = (is_finished(new), is_finished(new) != is_finished(old));
    let conditions = status.get("conditions");
    let refuse = |r: &mut Report, when: bool, words: &str| r.when(when, || conditions.invalid_bare(words));

    r.all_non_negative(&status, &["active", "succeeded", "failed", "ready", "terminating"]);
    uncounted(r, &status.get("uncountedTerminatedPods"));
    let (complete_turned, failed_turned) = (turned("Complete"), turned("Failed"));
    refuse(
        r,
        (complete_turned || failed_turned) && complete && failed,
        "cannot set Complete=True and Failed=true conditions",
    );
    refuse(
        r,
        (complete_turned || turned("FailureTarget")) && complete && target,
        "cannot set Complete=True and FailureTarget=true conditions",
    );
    let (start, end) = (status.get("startTime"), status.get("completionTime"));
    if complete_turned || changed("completionTime") {
        r.when(end.is_set() && !complete, || {
            end.invalid_with(
                end.value.to_string(),
                "cannot set completionTime when there is no Complete=True condition",
            )
        });
        r.when(!end.is_set() && complete, || end.required("completionTime is required for Complete jobs"));
    }
    r.when(
        (changed("startTime") || changed("completionTime"))
            && start.is_set()
            && end.is_set()
            && end.str() < start.str(),
        || end.invalid_with(end.value.to_string(), "must be equal to or after `startTime`"),
    );
    refuse(
        r,
        (failed_turned || changed("failedIndexes")) && failed && !target,
        "cannot set Failed=True condition without the FailureTarget=true condition",
    );
    refuse(
        r,
        (complete_turned || turned("SuccessCriteriaMet")) && complete && !met,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    );
    finished_job(r, new, finished, finish_turned, &changed);
    index_lists(r, new, &changed);
    let (terminating, ready) = (status.get("terminating"), status.get("ready"));
    r.when((finish_turned || changed("terminating")) && terminating.int() > 0 && finished, || {
        terminating.invalid("terminating>0 is invalid for finished job")
    });
    r.when(
        (changed("ready") || changed("active")) && ready.is_set() && ready.int() > status.get("active").int(),
        || ready.invalid("cannot set more ready pods than active"),
    );
    refuse(r, met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    refuse(r, met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    refuse(
        r,
        spec.get("successPolicy").is_set() && !met && complete,
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
    );
    transitions(r, new, old);
}

fn uncounted(r: &mut Report, at: &At<'_>) {
    let mut seen = BTreeSet::new();
    for key in ["succeeded", "failed"] {
        for uid in at.get(key).items() {
            if uid.is_empty() {
                r.add(uid.invalid_str("must not be empty"));
            } else {
                r.when(!seen.insert(uid.str()), || uid.duplicate());
            }
        }
    }
}

fn finished_job(r: &mut Report, job: &At<'_>, finished: bool, turned: bool, changed: &dyn Fn(&str) -> bool) {
    let (status, spec) = (job.get("status"), job.get("spec"));
    let (active, start) = (status.get("active"), status.get("startTime"));
    r.when((turned || changed("active")) && active.int() > 0 && finished, || {
        active.invalid("active>0 is invalid for finished job")
    });
    let nothing_to_do = spec.get("suspend").is_true() && spec.get("completions").number() == Some(0);
    r.when((turned || changed("startTime")) && !nothing_to_do && !start.is_set() && finished, || {
        start.required("startTime is required for finished job")
    });
    let pods = status.get("uncountedTerminatedPods");
    let some = !pods.get("succeeded").is_empty() || !pods.get("failed").is_empty();
    r.when((turned || changed("uncountedTerminatedPods")) && finished && some, || {
        pods.invalid_as("batch.UncountedTerminatedPods", "must be empty for finished job")
    });
}

fn index_lists(r: &mut Report, job: &At<'_>, changed: &dyn Fn(&str) -> bool) {
    let (status, spec) = (job.get("status"), job.get("spec"));
    let (done, failed) = (status.get("completedIndexes"), status.get("failedIndexes"));
    let completions = spec.get("completions");
    let per_index = spec.get("backoffLimitPerIndex").is_set();
    if changed("completedIndexes")
        && completions.is_set()
        && let Err(error) = indexes(done.str(), completions.int())
    {
        r.add(done.invalid_str(format!("error parsing completedIndexes: {error}")));
    }
    if changed("failedIndexes")
        && completions.is_set()
        && per_index
        && failed.is_set()
        && let Err(error) = indexes(failed.str(), completions.int())
    {
        r.add(failed.invalid(format!("error parsing failedIndexes: {error}")));
    }
    let indexed = spec.get("completionMode").str() == "Indexed";
    r.when(changed("completedIndexes") && !done.is_empty() && !indexed, || {
        done.invalid("cannot set non-empty completedIndexes when non-indexed completion mode")
    });
    r.when(changed("failedIndexes") && !per_index && failed.is_set(), || {
        failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null")
    });
    if (changed("failedIndexes") || changed("completedIndexes"))
        && completions.is_set()
        && failed.is_set()
        && let Some(index) = overlap(done.str(), failed.str(), completions.int())
    {
        r.add(failed.invalid(format!("failedIndexes and completedIndexes overlap at index: {index}")));
    }
}

fn overlap(done: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (done, failed) = (read(done), read(failed));
    failed
        .iter()
        .flat_map(|(low, high)| {
            done.iter().filter(move |(l, h)| l <= high && low <= h).map(move |(l, _)| *l.max(low))
        })
        .min()
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let read = |part: &str| -> Result<i64, String> {
        let quoted = go_quote(part);
        let index: i64 =
            part.parse().map_err(|_| format!("cannot convert string to integer for index: {quoted}"))?;
        if index >= completions { Err(format!("too large index: {quoted}")) } else { Ok(index) }
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [only] => read(only).map(|i| (i, i)),
        [low, high] => {
            let (low, high) = (read(low)?, read(high)?);
            if low >= high {
                return Err(format!("non-increasing order, previous: {low}, current: {high}"));
            }
            Ok((low, high))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            go_quote(text)
        )),
    }
}

/// How many indexes a text such as `1,3-5` names.
pub(super) fn indexes(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut last, mut total) = (None, 0);
    for part in text.split(',') {
        let (low, high) = interval(part, completions)?;
        if let Some(last) = last
            && last >= low
        {
            return Err(format!("non-increasing order, previous: {last}, current: {low}"));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

fn transitions(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let (status, before, spec) = (new.get("status"), old.get("status"), new.get("spec"));
    let conditions = status.get("conditions");
    for kind in ["Failed", "Complete", "FailureTarget"] {
        r.when(is_true(old, kind) && !is_true(new, kind), || {
            conditions.invalid_bare(format!("cannot disable the terminal {kind}=True condition"))
        });
    }
    let elastic = spec.get("completionMode").str() == "Indexed"
        && spec.get("completions").value == spec.get("parallelism").value;
    for (key, watched) in [("failed", true), ("succeeded", !elastic)] {
        let at = status.get(key);
        r.when(watched && at.int() < before.get(key).int(), || {
            at.invalid_int(format!("cannot decrease the {key} counter"))
        });
    }
    let (end, was_end) = (status.get("completionTime"), before.get("completionTime"));
    r.when(end.is_set() && was_end.is_set() && end.value != was_end.value, || {
        end.invalid_with(end.value.to_string(), "field is immutable")
    });
    let (start, was_start) = (status.get("startTime"), before.get("startTime"));
    let resuming = is_true(old, "Suspended")
        && conditions
            .items()
            .iter()
            .any(|c| c.get("type").str() == "Suspended" && c.get("status").str() == "False");
    r.when(
        was_start.is_set() && start.value != was_start.value && !spec.get("suspend").is_true() && !resuming,
        || start.invalid_with(start.value.to_string(), "field is immutable for unsuspended job once set"),
    );
    r.when(is_true(old, "SuccessCriteriaMet") && !is_true(new, "SuccessCriteriaMet"), || {
        conditions.invalid_bare("cannot disable the SuccessCriteriaMet=True condition")
    });
    r.when(
        is_true(old, "Complete") && !is_true(old, "SuccessCriteriaMet") && is_true(new, "SuccessCriteriaMet"),
        || {
            conditions.invalid_bare(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            )
        },
    );
}
