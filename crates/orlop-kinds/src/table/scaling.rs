//! Autoscalers: what is measured, against what is wanted.

use super::cell::{View, at, items, text_at};
use super::text;
use serde_json::Value;

/// The metrics of an autoscaler, `current/wanted` each.
pub(super) fn metrics(view: &View<'_>) -> Value {
    let specs = view.items("spec.metrics");
    if specs.is_empty() {
        return "<none>".into();
    }
    let statuses = items(view.at("status.currentMetrics"));
    let shown = specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index)));
    text::cut(shown.collect(), 2, ", ").into()
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (field, is_named) = match text_at(spec, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (spec, status) = (&spec[field], status.map_or(&Value::Null, |status| &status[field]));
    let current = |kind: &str| at(status, &format!("current.{kind}"));
    let unknown = || "<unknown>".to_owned();
    let average = at(spec, "target.averageValue").as_str();
    match (average, is_named) {
        (_, false) if field == "pods" => {
            let now = if status.is_null() { unknown() } else { quantity(current("averageValue")) };
            format!("{now}/{}", quantity(at(spec, "target.averageValue")))
        }
        (Some(average), false) => {
            format!("{}/{average} (avg)", current("averageValue").as_str().unwrap_or("<unknown>"))
        }
        (None, false) => {
            let now = if status.is_null() { unknown() } else { quantity(current("value")) };
            format!("{now}/{}", quantity(at(spec, "target.value")))
        }
        (Some(average), true) => {
            let now = if status.is_null() { unknown() } else { quantity(current("averageValue")) };
            format!("{}: {now}/{average}", text_at(spec, "name"))
        }
        (None, true) => {
            let percent = |value: &Value, other: &str| {
                value.as_i64().map_or_else(|| other.to_owned(), |percent| format!("{percent}%"))
            };
            format!(
                "{}: {}/{}",
                text_at(spec, "name"),
                percent(current("averageUtilization"), "<unknown>"),
                percent(at(spec, "target.averageUtilization"), "<auto>"),
            )
        }
    }
}

fn quantity(value: &Value) -> String {
    value.as_str().unwrap_or("<nil>").to_owned()
}
