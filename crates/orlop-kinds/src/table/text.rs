//! Texts that several kinds show: labels, selectors, lists cut short.

use super::cell::{at, items, text_at};
use serde_json::Value;

/// Labels as `a=b,c=d`, sorted by the whole text: `a.b=1` comes before `a=1`.
pub(super) fn labels(map: &Value) -> String {
    let labels = map.as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    let mut labels: Vec<String> = labels.map(text).collect();
    labels.sort_unstable();
    if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
}

/// A label selector as text, or a word for one that says nothing.
pub(super) fn selector_or_none(selector: &Value) -> String {
    match self::selector(selector) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
    }
}

/// A label selector as text; nothing if it is none.
pub(super) fn selector(selector: &Value) -> Option<String> {
    let mut terms = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in items(&selector["matchExpressions"]) {
        let key = text_at(expression, "key");
        let mut values: Vec<&str> = items(&expression["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text_at(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        terms.push((key, term));
    }
    terms.sort_by_key(|(key, _)| *key);
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    Some(terms.join(","))
}

/// A label selector as Go prints the struct.
pub(super) fn selector_struct(selector: &Value) -> String {
    let mut labels = String::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        labels.push_str(&format!("{key}: {},", value.as_str().unwrap_or_default()));
    }
    let mut expressions = String::new();
    for expression in items(&selector["matchExpressions"]) {
        let values: Vec<&str> = items(&expression["values"]).iter().filter_map(Value::as_str).collect();
        expressions.push_str(&format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text_at(expression, "key"),
            text_at(expression, "operator"),
            values.join(" "),
        ));
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// The first of some texts, and how many more there are.
pub(super) fn cut(mut texts: Vec<String>, most: usize, between: &str) -> String {
    let more = texts.len().saturating_sub(most);
    texts.truncate(most);
    let shown = texts.join(between);
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

/// Addresses of a load balancer, in order. They are not cut: the server always prints wide Tables.
pub(super) fn load_balancer(status: &Value) -> String {
    let mut addresses: Vec<&str> = items(at(status, "loadBalancer.ingress"))
        .iter()
        .map(|ingress| match text_at(ingress, "ip") {
            "" => text_at(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

/// The short names of access modes.
pub(super) fn access_modes(modes: &Value) -> String {
    let has = |mode: &str| items(modes).iter().any(|m| m == mode);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> = known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_sorted_by_their_whole_text() {
        assert_eq!(labels(&json!({"a": "1", "a.b": "2"})), "a.b=2,a=1");
        assert_eq!(labels(&json!({})), "<none>");
    }

    #[test]
    fn selectors_are_written_as_in_go() {
        let full = json!({"matchLabels": {"b": "2"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "NotIn", "values": ["z"]},
            {"key": "d", "operator": "Exists"}, {"key": "e", "operator": "DoesNotExist"}]});
        assert_eq!(selector_or_none(&full), "a in (x,y),b=2,c notin (z),d,!e");
        assert_eq!(selector_or_none(&Value::Null), "<none>");
        assert_eq!(
            selector_struct(&json!({"matchLabels": {"a": "b"}, "matchExpressions": [
                {"key": "k", "operator": "In", "values": ["x", "y"]}]})),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement\
             {LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
        );
    }
}
