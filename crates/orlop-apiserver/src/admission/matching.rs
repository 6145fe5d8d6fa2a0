//! Whether a webhook or a policy is about a request.
//!
//! Configurations are plain JSON as they are stored. [`webhook`] takes a webhook (`rules`, `namespaceSelector`,
//! `objectSelector`, `matchPolicy`), [`resources`] the `matchConstraints` or `matchResources` of a policy or its
//! binding (`resourceRules`, `excludeResourceRules`, the same selectors and policy). Both answer with the resource
//! and kind under which the request matched: with `matchPolicy: Equivalent` that may be another version than the
//! request's, and the object is converted to `Matched::kind` before anyone sees it ([`Matched::is_converted`]).
//! [`is_exempt`] says which objects neither may be about.

use super::{Attributes, Gvk, Operation};
use crate::kind::{Kind, Registry};
use crate::object;
use crate::selector::LabelSelector;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gvr {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
}

impl Gvr {
    fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), resource: resource.to_owned() }
    }

    /// The resource that a request named.
    pub(crate) fn of(kind: &Kind) -> Self {
        Self::new(&kind.group, &kind.version, &kind.plural)
    }

    /// As a review shows it.
    pub(crate) fn to_json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.resource})
    }

    fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.resource == "namespaces"
    }
}

/// What a request was recognised as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) resource: Gvr,
    /// The kind in which the object is shown.
    pub(crate) kind: Gvk,
}

impl Matched {
    fn request(kind: &Kind, attributes: &Attributes) -> Self {
        Self { resource: Gvr::of(kind), kind: attributes.object_kind.clone() }
    }

    /// Whether objects of the request must be converted to be shown.
    pub(crate) fn is_converted(&self, attributes: &Attributes) -> bool {
        self.kind != attributes.object_kind
    }
}

/// Whether a request is about the configuration of admission itself, which only the server judges.
pub(crate) fn is_exempt(attributes: &Attributes) -> bool {
    attributes.object_kind.group == "admissionregistration.k8s.io"
        && matches!(
            attributes.object_kind.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// What a webhook sees a request as, if it is about it. A webhook without rules is about nothing.
pub(crate) fn webhook(
    server: &Inner,
    hook: &Value,
    kind: &Kind,
    attributes: &Attributes,
) -> Result<Option<Matched>, ApiError> {
    let selected = selected(server, hook, kind, attributes);
    if matches!(selected, Ok(false)) {
        return Ok(None);
    }
    let Some(matched) = by_rules(&hook["rules"], hook, kind, attributes) else { return Ok(None) };
    selected.map(|_| Some(matched))
}

/// What a policy or a binding sees a request as, if it is about it. One without rules is about everything.
pub(crate) fn resources(
    server: &Inner,
    constraints: &Value,
    kind: &Kind,
    attributes: &Attributes,
) -> Result<Option<Matched>, ApiError> {
    let selected = selected(server, constraints, kind, attributes);
    if matches!(selected, Ok(false)) {
        return Ok(None);
    }
    if by_rules(&constraints["excludeResourceRules"], constraints, kind, attributes).is_some() {
        return Ok(None);
    }
    let rules = &constraints["resourceRules"];
    let matched = if items(rules).next().is_none() {
        Some(Matched::request(kind, attributes))
    } else {
        by_rules(rules, constraints, kind, attributes)
    };
    let Some(matched) = matched else { return Ok(None) };
    selected.map(|_| Some(matched))
}

/// Whether both selectors agree. An error counts only if the rules agree too.
fn selected(server: &Inner, config: &Value, kind: &Kind, attributes: &Attributes) -> Result<bool, ApiError> {
    let by_namespace = selects_namespace(server, &config["namespaceSelector"], kind, attributes);
    if matches!(by_namespace, Ok(false)) || !selects_object(&config["objectSelector"], attributes) {
        return Ok(false);
    }
    by_namespace
}

fn selects_namespace(
    server: &Inner,
    selector: &Value,
    kind: &Kind,
    attributes: &Attributes,
) -> Result<bool, ApiError> {
    if attributes.namespace.is_empty() && kind.plural != "namespaces" {
        return Ok(true);
    }
    let Some(selector) = LabelSelector::from_object(selector).filter(|selector| !selector.is_empty()) else {
        return Ok(true);
    };
    let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
    if kind.plural == "namespaces" && attributes.subresource.is_empty() && writes {
        return Ok(selector.matches(&labels(&attributes.object)));
    }
    let namespaces = Inner::built_in("", "v1", "namespaces");
    match server.store.get(&namespaces.table, &namespaces.key("", &attributes.namespace)) {
        Some(stored) => Ok(selector.matches(&stored.header.labels)),
        None => Err(ApiError::not_found("", "namespaces", &attributes.namespace)),
    }
}

fn selects_object(selector: &Value, attributes: &Attributes) -> bool {
    let Some(selector) = LabelSelector::from_object(selector).filter(|selector| !selector.is_empty()) else {
        return true;
    };
    [&attributes.object, &attributes.old]
        .into_iter()
        .any(|object| object.get("metadata").is_some() && selector.matches(&labels(object)))
}

fn labels(object: &Value) -> Vec<(Box<str>, Box<str>)> {
    object::labels(object).map(|(key, value)| (key.into(), value.into())).collect()
}

/// The first rule that is about the request, as it came or, if the policy allows, in another version.
fn by_rules(rules: &Value, config: &Value, kind: &Kind, attributes: &Attributes) -> Option<Matched> {
    let requested = Gvr::of(kind);
    if items(rules).any(|rule| applies(rule, &requested, attributes)) {
        return Some(Matched::request(kind, attributes));
    }
    if config["matchPolicy"] != "Equivalent" || items(rules).next().is_none() {
        return None;
    }
    let equivalents = equivalents(kind, &attributes.subresource);
    items(rules).find_map(|rule| {
        let others = equivalents.iter().filter(|other| other.resource != requested);
        others.into_iter().find(|other| applies(rule, &other.resource, attributes)).cloned()
    })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn applies(rule: &Value, resource: &Gvr, attributes: &Attributes) -> bool {
    let has = |field: &str, wanted: &str| items(&rule[field]).any(|item| item == "*" || item == wanted);
    let in_scope = match object::text(rule, "scope") {
        "" | "*" => true,
        "Namespaced" => !resource.is_namespaces() && !attributes.namespace.is_empty(),
        "Cluster" => resource.is_namespaces() || attributes.namespace.is_empty(),
        _ => false,
    };
    let names_resource = || {
        items(&rule["resources"]).filter_map(Value::as_str).any(|item| {
            let (name, part) = item.split_once('/').unwrap_or((item, ""));
            (name == "*" || name == resource.resource) && (part == "*" || part == attributes.subresource)
        })
    };
    let names_object = || {
        items(&rule["resourceNames"]).next().is_none()
            || items(&rule["resourceNames"]).any(|name| *name == attributes.name)
    };
    in_scope
        && has("operations", attributes.operation.as_str())
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && names_resource()
        && names_object()
}

/// All resources that show the same stored objects and have the same subresource, in the order in which the server
/// knows them.
fn equivalents(kind: &Kind, subresource: &str) -> Vec<Matched> {
    if let Some(custom) = kind.custom() {
        return custom
            .all_versions()
            .iter()
            .filter_map(|(version, parts)| {
                let own = Gvk::new(&kind.group, version, &kind.kind);
                let kind_of_part = match subresource {
                    "" => own,
                    part => {
                        let part = parts.get(part)?;
                        Gvk::new(&part.group, &part.version, &part.kind)
                    }
                };
                Some(Matched { resource: Gvr::new(&kind.group, version, &kind.plural), kind: kind_of_part })
            })
            .collect();
    }
    let same = built_in_by_table().get(kind.table.as_str()).map(Vec::as_slice).unwrap_or_default();
    same.iter()
        .filter_map(|other| {
            let shown = match subresource {
                "" => Gvk::of(other),
                part => {
                    let part = other.subresources.get(part)?;
                    Gvk::new(&part.group, &part.version, &part.kind)
                }
            };
            Some(Matched { resource: Gvr::of(other), kind: shown })
        })
        .collect()
}

fn built_in_by_table() -> &'static BTreeMap<String, Vec<Arc<Kind>>> {
    static TABLES: OnceLock<BTreeMap<String, Vec<Arc<Kind>>>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables: BTreeMap<String, Vec<Arc<Kind>>> = BTreeMap::new();
        for kind in Registry::built_in().iter() {
            tables.entry(kind.table.as_str().to_owned()).or_default().push(kind.clone());
        }
        for kinds in tables.values_mut() {
            kinds.sort_by_key(|kind| {
                let versions =
                    orlop_kinds::catalog::catalog().group(&kind.group).map(|group| &group.versions);
                let place = versions.and_then(|all| all.iter().position(|v| v.name == kind.version));
                (kind.group.clone(), place)
            });
        }
        tables
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Rounds;
    use crate::auth::User;
    use crate::builder::ApiServer;

    fn attributes(operation: Operation, kind: &Kind, namespace: &str, subresource: &str) -> Attributes {
        Attributes {
            operation,
            namespace: namespace.to_owned(),
            name: "x".to_owned(),
            subresource: subresource.to_owned(),
            object: json!({"metadata": {"name": "x", "labels": {"new": "1"}}}),
            old: json!({"metadata": {"name": "x", "labels": {"old": "1"}}}),
            object_kind: Gvk::of(kind),
            options: Value::Null,
            dry_run: false,
            user: Arc::new(User::admin()),
            warnings: Vec::new(),
            rounds: Rounds::default(),
        }
    }

    fn rule(group: &str, version: &str, resource: &str, scope: &str) -> Value {
        json!({"operations": ["UPDATE"], "apiGroups": [group], "apiVersions": [version],
            "resources": [resource], "scope": scope})
    }

    #[test]
    fn rules_name_resources_subresources_and_scopes() {
        let server = ApiServer::builder().build();
        for (path, part, namespace, rule, expected) in [
            (("", "v1", "pods"), "", "default", rule("", "v1", "pods", "*"), true),
            (("", "v1", "pods"), "status", "default", rule("", "v1", "pods", "*"), false),
            (("", "v1", "pods"), "status", "default", rule("", "v1", "pods/*", "*"), true),
            (("", "v1", "pods"), "", "default", rule("", "v1", "pods/*", "*"), true),
            (("", "v1", "pods"), "status", "default", rule("", "v1", "*/status", "*"), true),
            (("", "v1", "pods"), "", "default", rule("", "v1", "*/status", "*"), false),
            (("", "v1", "pods"), "status", "default", rule("*", "*", "*/*", "*"), true),
            (("", "v1", "pods"), "status", "default", rule("*", "*", "*", "*"), false),
            (("", "v1", "pods"), "", "default", rule("", "v1", "pods", "Cluster"), false),
            (("", "v1", "nodes"), "", "", rule("", "v1", "nodes", "Cluster"), true),
            (("", "v1", "nodes"), "", "", rule("", "v1", "nodes", "Namespaced"), false),
            (("", "v1", "namespaces"), "", "x", rule("", "v1", "*", "Cluster"), true),
            (("", "v1", "namespaces"), "", "x", rule("", "v1", "*", "Namespaced"), false),
            (("apps", "v1", "deployments"), "", "default", rule("apps", "v2", "deployments", "*"), false),
        ] {
            let kind = Inner::built_in(path.0, path.1, path.2);
            let attributes = attributes(Operation::Update, &kind, namespace, part);
            let hook = json!({"rules": [rule]});
            let found = webhook(&server.0, &hook, &kind, &attributes).expect("nothing fails here");
            assert_eq!(found.is_some(), expected, "{path:?}/{part} {hook}");
        }
    }

    #[test]
    fn equivalent_versions_match_unless_exactness_is_asked_for() {
        let server = ApiServer::builder().build();
        let kind = Inner::built_in("autoscaling", "v1", "horizontalpodautoscalers");
        let attributes = attributes(Operation::Update, &kind, "default", "");
        for (policy, expected) in [("Exact", None), ("Equivalent", Some("v2"))] {
            let hook = json!({
                "matchPolicy": policy, "rules": [rule("autoscaling", "v2", "horizontalpodautoscalers", "*")],
            });
            let found = webhook(&server.0, &hook, &kind, &attributes).expect("nothing fails here");
            assert_eq!(found.map(|matched| matched.kind.version).as_deref(), expected);
        }
    }

    #[test]
    fn selectors_look_at_both_objects_and_at_the_namespace() {
        let server = ApiServer::builder().build();
        let kind = Inner::built_in("", "v1", "pods");
        let labels = |key: &str| json!({"matchLabels": {key: "1"}});
        let name = |name: &str| json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
        for (namespace, namespaces, objects, expected) in [
            ("default", json!({}), labels("new"), Ok(true)),
            ("default", json!({}), labels("old"), Ok(true)),
            ("default", json!({}), labels("other"), Ok(false)),
            ("default", name("default"), json!({}), Ok(true)),
            ("default", name("other"), json!({}), Ok(false)),
            ("missing", name("other"), json!({}), Err(404)),
            ("missing", name("other"), labels("other"), Ok(false)),
        ] {
            let attributes = attributes(Operation::Update, &kind, namespace, "");
            let policy = json!({"namespaceSelector": namespaces, "objectSelector": objects});
            let found = resources(&server.0, &policy, &kind, &attributes);
            let found = found.map(|found| found.is_some()).map_err(|error| error.code());
            assert_eq!(found, expected, "{namespace} {policy}");
        }
    }

    #[test]
    fn policies_may_name_objects_and_exclude_resources() {
        let server = ApiServer::builder().build();
        let kind = Inner::built_in("", "v1", "pods");
        let attributes = attributes(Operation::Update, &kind, "default", "");
        let named = |name: &str| {
            let mut rule = rule("", "v1", "pods", "*");
            rule["resourceNames"] = json!([name]);
            json!([rule])
        };
        for (rules, excluded, expected) in [
            (json!([]), json!([]), true),
            (named("x"), json!([]), true),
            (named("y"), json!([]), false),
            (json!([]), named("x"), false),
            (json!([]), named("y"), true),
        ] {
            let policy = json!({"resourceRules": rules, "excludeResourceRules": excluded});
            let found = resources(&server.0, &policy, &kind, &attributes).expect("nothing fails here");
            assert_eq!(found.is_some(), expected, "{policy}");
        }
    }
}
