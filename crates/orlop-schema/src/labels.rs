//! Labels, annotations and label selectors over JSON values: what is wrong with them, and what they match.

use crate::field::{Fault, FieldError, Path};
use crate::names;
use serde_json::Value;

/// How many bytes all annotations of an object may have together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// How strictly a selector is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectorOptions {
    /// Invalid label values are let through, because an older object has them.
    pub any_value: bool,
    /// Unknown operators are let through.
    pub any_operator: bool,
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    value.as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or("")))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn invalid(path: &Path, text: &str, detail: String) -> FieldError {
    FieldError::invalid(path, &Value::String(text.to_owned()), detail)
}

/// What is wrong with a label key.
pub fn key(path: &Path, key: &str) -> Vec<FieldError> {
    names::qualified_name(key).into_iter().map(|w| invalid(path, key, w)).collect()
}

/// What is wrong with a map of labels.
pub fn labels(path: &Path, labels: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    for (name, value) in entries(labels) {
        wrong.extend(key(path, name));
        wrong.extend(names::label_value(value).into_iter().map(|w| invalid(path, value, w)));
    }
    wrong
}

/// What is wrong with a map of annotations.
pub fn annotations(path: &Path, annotations: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let mut bytes = 0;
    for (name, value) in entries(annotations) {
        wrong.extend(names::qualified_name(&name.to_lowercase()).into_iter().map(|w| invalid(path, name, w)));
        bytes += name.len() + value.len();
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        wrong.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    wrong
}

/// What is wrong with a label selector; a missing one is fine.
pub fn selector(path: &Path, selector: &Value, options: SelectorOptions) -> Vec<FieldError> {
    let mut wrong = labels(&path.child("matchLabels"), selector.get("matchLabels").unwrap_or(&Value::Null));
    for (at, rule) in list(selector, "matchExpressions").iter().enumerate() {
        wrong.extend(requirement(&path.child("matchExpressions").index(at), rule, options));
    }
    wrong
}

/// What is wrong with one rule of a label selector.
pub fn requirement(path: &Path, rule: &Value, options: SelectorOptions) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let values = list(rule, "values");
    match text(rule, "operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                wrong.push(FieldError::required(
                    &path.child("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                wrong.push(FieldError::forbidden(
                    &path.child("values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
        }
        other => {
            if !options.any_operator {
                wrong.push(invalid(
                    &path.child("operator"),
                    other,
                    "not a valid selector operator".to_owned(),
                ));
            }
        }
    }
    wrong.extend(key(&path.child("key"), text(rule, "key")));
    if !options.any_value {
        for (at, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            let here = path.child("values").index(at);
            wrong.extend(names::label_value(value).into_iter().map(|w| invalid(&here, value, w)));
        }
    }
    wrong
}

/// Whether a selector could be turned into one that matches; a bad one is refused as a whole.
pub fn selector_is_usable(selector: &Value) -> bool {
    self::selector(&Path::root(), selector, SelectorOptions::default())
        .iter()
        .all(|e| matches!(e.fault, Fault::Internal))
}

/// Whether a selector has no rules at all.
pub fn selector_is_empty(selector: &Value) -> bool {
    entries(selector.get("matchLabels").unwrap_or(&Value::Null)).next().is_none()
        && list(selector, "matchExpressions").is_empty()
}

/// Whether a selector matches labels; an empty one matches everything.
pub fn selector_matches(selector: &Value, labels: &Value) -> bool {
    let has = |key: &str| labels.get(key).and_then(Value::as_str);
    let plain = selector.get("matchLabels").unwrap_or(&Value::Null);
    entries(plain).all(|(k, v)| has(k) == Some(v))
        && list(selector, "matchExpressions").iter().all(|rule| {
            let found = has(text(rule, "key"));
            let within = || list(rule, "values").iter().any(|v| v.as_str() == found);
            match text(rule, "operator") {
                "In" => found.is_some() && within(),
                "NotIn" => found.is_none() || !within(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_is_checked_rule_by_rule() {
        let path = Path::new("selector");
        for (value, field) in [
            (json!({"matchLabels": {"a b": "c"}}), "selector.matchLabels"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]}),
                "selector.matchExpressions[0].operator",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "selector.matchExpressions[0].values",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}),
                "selector.matchExpressions[0].values[0]",
            ),
        ] {
            let wrong = selector(&path, &value, SelectorOptions::default());
            assert_eq!(wrong.iter().map(|e| e.path.as_str()).collect::<Vec<_>>(), [field]);
        }
    }

    #[test]
    fn a_selector_matches_when_all_its_rules_do() {
        let labels = json!({"app": "a", "tier": "web"});
        for (value, matches) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}), true),
            (json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), false),
        ] {
            assert_eq!(selector_matches(&value, &labels), matches, "{value}");
        }
    }
}
