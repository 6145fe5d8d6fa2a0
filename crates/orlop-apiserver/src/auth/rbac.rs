//! Role-based access control: bindings give subjects the rules of roles.

use super::{Access, User};
use crate::object::{self, Header};
use crate::route::Route;
use crate::server::Inner;
use crate::status::{ApiError, qualified};
use orlop_store::{Revision, Store, Table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const GROUP: &str = "rbac.authorization.k8s.io";

/// What someone wants to do.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Set for paths that name no resource.
    pub(crate) path: &'a str,
    pub(crate) is_resource: bool,
}

impl<'a> Attributes<'a> {
    /// What a request wants to do.
    pub(crate) fn of(route: &'a Route) -> Self {
        Self {
            verb: route.verb,
            group: &route.group,
            resource: &route.resource,
            subresource: &route.subresource,
            namespace: &route.namespace,
            name: if route.name.is_empty() { &route.selected_name } else { &route.name },
            path: &route.path,
            is_resource: route.is_resource,
        }
    }

    /// Something to do with a resource.
    pub(crate) fn resource(
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        subresource: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> Self {
        Self { verb, group, resource, subresource, namespace, name, path: "", is_resource: true }
    }

    pub(super) fn access(&self, user: &User) -> Access {
        Access {
            user: user.clone(),
            verb: self.verb.to_owned(),
            group: self.group.to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            path: self.path.to_owned(),
        }
    }

    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The answer to someone who may not.
    pub(crate) fn refusal(&self, user: &User, why: &str) -> ApiError {
        let (name, verb) = (&user.name, self.verb);
        let suffix = if why.is_empty() { String::new() } else { format!(": {why}") };
        if !self.is_resource {
            let message = format!("forbidden: User \"{name}\" cannot {verb} path \"{}\"{suffix}", self.path);
            return ApiError::new(403, "Forbidden", message).with_details(serde_json::json!({}));
        }
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        let message = format!(
            "User \"{name}\" cannot {verb} resource \"{}\" in API group \"{}\" {scope}{suffix}",
            self.full_resource(),
            self.group
        );
        ApiError::forbidden(self.group, self.resource, self.name, &message)
    }
}

/// Yes with a reason, or no with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed(String),
    Denied(String),
}

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) resource_names: Vec<String>,
    pub(crate) paths: Vec<String>,
}

impl Rule {
    fn parse(rule: &Value) -> Self {
        let list = |field: &str| {
            let items = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            paths: list("nonResourceURLs"),
        }
    }

    fn allows(&self, attributes: &Attributes<'_>) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        if !attributes.is_resource {
            return self.paths.iter().any(|path| match path.strip_suffix('*') {
                Some(prefix) => attributes.path.starts_with(prefix),
                None => path == attributes.path,
            });
        }
        let full = attributes.full_resource();
        let any_with_sub = format!("*/{}", attributes.subresource);
        let resource = self.resources.iter().any(|resource| {
            resource == "*"
                || *resource == full
                || (!attributes.subresource.is_empty() && *resource == any_with_sub)
        });
        let name =
            self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == attributes.name);
        has(&self.api_groups, attributes.group) && resource && name
    }

    /// The rule as many rules, each about one thing.
    fn atoms(&self) -> Vec<Rule> {
        let mut atoms = Vec::new();
        for verb in &self.verbs {
            for path in &self.paths {
                atoms.push(Rule { verbs: vec![verb.clone()], paths: vec![path.clone()], ..Rule::default() });
            }
            for group in &self.api_groups {
                for resource in &self.resources {
                    let base = Rule {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Rule::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(base.clone());
                    }
                    for name in &self.resource_names {
                        atoms.push(Rule { resource_names: vec![name.clone()], ..base.clone() });
                    }
                }
            }
        }
        atoms
    }

    /// Whether this rule gives everything an atom asks for.
    fn covers(&self, atom: &Rule) -> bool {
        let all = |mine: &[String], wanted: &[String]| {
            mine.iter().any(|m| m == "*") || wanted.iter().all(|w| mine.contains(w))
        };
        let resource = |wanted: &String| {
            let any_with_sub = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            self.resources
                .iter()
                .any(|mine| mine == "*" || mine == wanted || Some(mine) == any_with_sub.as_ref())
        };
        let path = |wanted: &String| {
            self.paths.iter().any(|mine| match mine.strip_suffix('*') {
                Some(prefix) => mine == wanted || wanted.trim_end_matches('*').starts_with(prefix),
                None => mine == wanted,
            })
        };
        let names = self.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom.resource_names.iter().all(|n| self.resource_names.contains(n)));
        all(&self.verbs, &atom.verbs)
            && all(&self.api_groups, &atom.api_groups)
            && atom.resources.iter().all(resource)
            && (atom.resources.is_empty() || names)
            && atom.paths.iter().all(path)
    }

    fn describe(&self) -> String {
        let quoted = |list: &[String]| {
            let all: Vec<String> = list.iter().map(|text| orlop_schema::field::go_quote(text)).collect();
            format!("[{}]", all.join(" "))
        };
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

#[derive(Debug)]
struct Binding {
    name: String,
    /// Empty for a binding in the whole cluster.
    namespace: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    fn is(&self, user: &User, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                !namespace.is_empty()
                    && user.name == format!("system:serviceaccount:{namespace}:{}", self.name)
            }
            _ => false,
        }
    }

    fn describe(&self, binding_namespace: &str) -> String {
        if self.kind == "ServiceAccount" {
            let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
            return format!("{} \"{}/{namespace}\"", self.kind, self.name);
        }
        format!("{} \"{}\"", self.kind, self.name)
    }
}

/// All roles and bindings at one moment.
#[derive(Debug, Default)]
pub(crate) struct Index {
    cluster_roles: BTreeMap<String, Vec<Rule>>,
    roles: BTreeMap<(String, String), Vec<Rule>>,
    bindings: Vec<Binding>,
}

/// The index of the newest state, made again when roles or bindings have changed.
#[derive(Default)]
pub(super) struct Cache(Mutex<Option<([Revision; 4], Arc<Index>)>>);

const TABLES: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];

impl Cache {
    pub(super) fn index(&self, server: &Inner) -> Arc<Index> {
        let tables = TABLES.map(|plural| Table::new(&qualified(plural, GROUP)));
        let revisions = [0, 1, 2, 3].map(|n: usize| server.store.table_revision(&tables[n]));
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, index)) = &*cached
            && *at == revisions
        {
            return index.clone();
        }
        let index = Arc::new(Index::load(&server.store, &tables));
        *cached = Some((revisions, index.clone()));
        index
    }
}

fn rules_of(role: &Value) -> Vec<Rule> {
    role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Rule::parse).collect()
}

impl Index {
    fn load(store: &Store<Header>, tables: &[Table; 4]) -> Self {
        let all = |table: &Table| -> Vec<Value> {
            let snapshot = store.snapshot(table);
            snapshot.iter().map(|stored| object::decode(&stored.body)).collect()
        };
        let name = |object: &Value| object::meta_str(object, "name").to_owned();
        let namespace = |object: &Value| object::meta_str(object, "namespace").to_owned();
        let mut index = Self::default();
        for role in all(&tables[0]) {
            index.cluster_roles.insert(name(&role), rules_of(&role));
        }
        for role in all(&tables[1]) {
            index.roles.insert((namespace(&role), name(&role)), rules_of(&role));
        }
        for table in &tables[2..] {
            for binding in all(table) {
                let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
                index.bindings.push(Binding {
                    name: name(&binding),
                    namespace: namespace(&binding),
                    role_kind: object::text(&binding["roleRef"], "kind").to_owned(),
                    role_name: object::text(&binding["roleRef"], "name").to_owned(),
                    subjects: subjects
                        .map(|subject| Subject {
                            kind: object::text(subject, "kind").to_owned(),
                            name: object::text(subject, "name").to_owned(),
                            namespace: object::text(subject, "namespace").to_owned(),
                        })
                        .collect(),
                });
            }
        }
        index
    }

    fn role(&self, binding: &Binding) -> Option<&Vec<Rule>> {
        match binding.role_kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(&binding.role_name),
            _ => self.roles.get(&(binding.namespace.clone(), binding.role_name.clone())),
        }
    }

    /// Bindings that concern a user in a namespace, with the subject that is meant.
    fn bindings_of<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, &'a Subject)> {
        self.bindings
            .iter()
            .filter(move |binding| binding.namespace.is_empty() || binding.namespace == namespace)
            .filter_map(move |binding| {
                let subject = binding.subjects.iter().find(|subject| subject.is(user, &binding.namespace))?;
                Some((binding, subject))
            })
    }

    /// Whether a user may do something.
    pub(super) fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        let mut missing = Vec::new();
        for (binding, subject) in self.bindings_of(user, attributes.namespace) {
            let Some(rules) = self.role(binding) else {
                let kind = if binding.role_kind == "ClusterRole" { "clusterrole" } else { "role" };
                missing.push(format!("{kind}.{GROUP} \"{}\" not found", binding.role_name));
                continue;
            };
            if rules.iter().any(|rule| rule.allows(attributes)) {
                let (kind, name) = if binding.namespace.is_empty() {
                    ("ClusterRoleBinding", binding.name.clone())
                } else {
                    ("RoleBinding", format!("{}/{}", binding.name, binding.namespace))
                };
                let subject = subject.describe(&binding.namespace);
                return Decision::Allowed(format!(
                    "RBAC: allowed by {kind} \"{name}\" of {} \"{}\" to {subject}",
                    binding.role_kind, binding.role_name
                ));
            }
        }
        Decision::Denied(if missing.is_empty() {
            String::new()
        } else {
            format!("RBAC: {}", orlop_schema::field::aggregate(missing))
        })
    }

    /// All rules of a user in a namespace.
    pub(super) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let roles = self.bindings_of(user, namespace).filter_map(|(binding, _)| self.role(binding));
        roles.flatten().cloned().collect()
    }
}

/// Refuses roles and bindings that would give more than their author has.
pub(super) fn check_escalation(
    index: &Index,
    user: &User,
    plural: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let (name, namespace) = (object::meta_str(object, "name"), object::meta_str(object, "namespace"));
    if old.is_some_and(|old| differ_in_ownership_only(object, old)) {
        return Ok(());
    }
    let may = |verb: &str, resource: &str, name: &str| {
        let attributes = Attributes::resource(verb, GROUP, resource, "", namespace, name);
        matches!(index.decide(user, &attributes), Decision::Allowed(_))
    };
    let granted = if matches!(plural, "roles" | "clusterroles") {
        // A request to create names no object: rules for some names only do not reach it.
        if may("escalate", plural, if old.is_some() { name } else { "" }) {
            return Ok(());
        }
        rules_of(object)
    } else {
        let (kind, role) =
            (object::text(&object["roleRef"], "kind"), object::text(&object["roleRef"], "name"));
        let resource = if kind == "ClusterRole" { "clusterroles" } else { "roles" };
        if may("bind", resource, role) {
            return Ok(());
        }
        let rules = if kind == "ClusterRole" {
            index.cluster_roles.get(role)
        } else {
            index.roles.get(&(namespace.to_owned(), role.to_owned()))
        };
        rules.ok_or_else(|| ApiError::not_found(GROUP, resource, role))?.clone()
    };
    let held = index.rules(user, namespace);
    let missing = missing(&held, &granted);
    if missing.is_empty() {
        // An aggregated role can gather anything.
        let aggregates = [Some(object), old].into_iter().flatten().any(has_aggregation_rule);
        if !aggregates || self::missing(&held, &everything()).is_empty() {
            return Ok(());
        }
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(ApiError::forbidden(GROUP, plural, name, why));
    }
    let described: BTreeSet<String> = compact(missing).iter().map(Rule::describe).collect();
    let groups: Vec<String> = user.groups.iter().map(|group| orlop_schema::field::go_quote(group)).collect();
    let why = format!(
        "user \"{}\" (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        described.into_iter().collect::<Vec<_>>().join("\n")
    );
    Err(ApiError::forbidden(GROUP, plural, name, &why))
}

/// The parts of rules that someone does not hold.
fn missing(held: &[Rule], granted: &[Rule]) -> Vec<Rule> {
    let atoms = granted.iter().flat_map(Rule::atoms);
    atoms.filter(|atom| !held.iter().any(|rule| rule.covers(atom))).collect()
}

/// All rights there are.
fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), paths: all(), ..Rule::default() },
    ]
}

fn has_aggregation_rule(role: &Value) -> bool {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

/// Whether two states differ at most in what garbage collection changes.
fn differ_in_ownership_only(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        rest
    };
    rest(object) == rest(old)
}

/// Joins rules about the same resource into one with all verbs.
fn compact(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::new();
    for atom in atoms {
        let same = |rule: &&mut Rule| {
            atom.paths.is_empty()
                && rule.api_groups == atom.api_groups
                && rule.resources == atom.resources
                && rule.resource_names == atom.resource_names
        };
        match joined.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => joined.push(atom),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(value: Value) -> Rule {
        Rule::parse(&value)
    }

    #[test]
    fn rules_allow_what_they_say() {
        let pods = rule(
            json!({"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get"], "resourceNames": []}),
        );
        let named =
            rule(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["a"]}));
        let paths = rule(json!({"nonResourceURLs": ["/api/*", "/version"], "verbs": ["get"]}));
        let resource = |verb, sub, name| Attributes::resource(verb, "", "pods", sub, "n", name);
        assert!(pods.allows(&resource("get", "", "x")));
        assert!(!pods.allows(&resource("list", "", "")));
        assert!(!pods.allows(&resource("get", "log", "x")));
        assert!(pods.allows(&resource("get", "scale", "x")));
        assert!(named.allows(&resource("delete", "", "a")));
        assert!(!named.allows(&resource("delete", "", "b")));
        let path = |path| Attributes { path, is_resource: false, ..resource("get", "", "") };
        assert!(paths.allows(&path("/api/v1")));
        assert!(!paths.allows(&path("/apis")));
    }

    #[test]
    fn a_rule_covers_what_it_could_grant() {
        let held =
            rule(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}));
        let covered = |value: Value| rule(value).atoms().iter().all(|atom| held.covers(atom));
        assert!(covered(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]})));
        assert!(covered(
            json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["x"]})
        ));
        assert!(!covered(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]})));
        assert!(!covered(json!({"apiGroups": ["*"], "resources": ["deployments"], "verbs": ["get"]})));
    }
}
