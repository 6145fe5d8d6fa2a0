//! Jobs get a selector that matches only their own pods; DaemonSets count changes of their template.

use super::{Object, find, same};
use crate::conversion::TEMPLATE_GENERATION;
use serde_json::{Value, json};

pub(super) fn create_daemon_set(daemon_set: &mut Object) {
    let generation = template_generation(daemon_set).max(1);
    set_template_generation(daemon_set, generation);
}

pub(super) fn update_daemon_set(daemon_set: &mut Object, old: &Object) {
    let changed = !same(find(daemon_set, "/spec/template"), find(old, "/spec/template"));
    let generation = template_generation(old) + i64::from(changed);
    set_template_generation(daemon_set, generation);
}

fn template_generation(daemon_set: &Object) -> i64 {
    let annotations = daemon_set.get("metadata").and_then(|m| m.get("annotations"));
    let text = annotations.and_then(|a| a.get(TEMPLATE_GENERATION)).and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Object, generation: i64) {
    if let Some(Value::Object(metadata)) = daemon_set.get_mut("metadata")
        && let Value::Object(annotations) = metadata.entry("annotations").or_insert_with(|| json!({}))
    {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(generation.to_string()));
    }
}

/// Labels the template with the job's name and uid and selects by the uid, unless the selector is manual.
pub(super) fn create_job(job: &mut Object, submitted: Option<&Value>) {
    if find(job, "/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let metadata = |key: &str| {
        job.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (name, uid) = (metadata("name"), metadata("uid"));
    let template_labels = find(job, "/spec/template/metadata/labels").cloned();
    // Labels that were defaulted from the template are the template's own map in Kubernetes, so what is added
    // to the one appears in the other.
    let shared = template_labels.is_some()
        && match submitted {
            Some(submitted) => submitted.pointer("/metadata/labels").is_none_or(is_empty),
            None => find(job, "/metadata/labels") == template_labels.as_ref(),
        };
    let Some(Value::Object(spec)) = job.get_mut("spec") else { return };
    let Some(labels) = labels_of_template(spec) else { return };
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels.entry(key).or_insert_with(|| json!(value));
    }
    let labels = labels.clone();
    if let Value::Object(selector) = spec.entry("selector").or_insert_with(|| json!({}))
        && let Value::Object(matches) = selector.entry("matchLabels").or_insert_with(|| json!({}))
    {
        matches.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
    }
    if let (true, Some(Value::Object(metadata))) = (shared, job.get_mut("metadata")) {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
}

fn labels_of_template(spec: &mut Object) -> Option<&mut Object> {
    let template = spec.get_mut("template")?.as_object_mut()?;
    let metadata = template.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
    metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}
