//! The rights that an operator needs, from what it declares. Least privilege by construction: there is no rule that
//! nothing asked for, and none can be forgotten.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A resource that rights are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub plural: String,
}

impl Resource {
    /// A resource by group and plural name.
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }

    fn part(&self, subresource: &str) -> Self {
        Self { group: self.group.clone(), plural: format!("{}/{subresource}", self.plural) }
    }
}

/// One thing that an operator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reconciles these: watches them, writes their status.
    Primary {
        /// What.
        resource: Resource,
        /// Whether they have a status that it writes.
        status: Writes,
        /// Whether it sets a finalizer on them.
        finalizer: Writes,
    },
    /// It owns these: watches, applies and deletes them.
    Owned(Resource),
    /// It looks at these.
    Read(Resource),
    /// It records events.
    Events,
    /// It elects a leader.
    Leases,
    /// Anything else.
    Other {
        /// On what.
        resource: Resource,
        /// Which verbs.
        verbs: Vec<String>,
    },
}

/// Whether something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Where an operator works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In all namespaces.
    Cluster,
    /// In these.
    Namespaces(Vec<String>),
}

const WATCH: [&str; 3] = ["get", "list", "watch"];
/// Server-side apply of what is not there yet is a creation, and needs both rights.
const OWN: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Rights: verbs by resource. Adding the same twice changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    verbs: BTreeMap<Resource, BTreeSet<String>>,
}

impl Rules {
    /// The rights that these uses need.
    pub fn of<'a>(uses: impl IntoIterator<Item = &'a Use>) -> Self {
        let mut rules = Self::default();
        for one in uses {
            rules.add(one);
        }
        rules
    }

    /// Adds what one use needs.
    pub fn add(&mut self, one: &Use) {
        match one {
            Use::Primary { resource, status, finalizer } => {
                self.allow(resource, &WATCH);
                if *status == Writes::Yes {
                    self.allow(&resource.part("status"), &["patch"]);
                }
                if *finalizer == Writes::Yes {
                    self.allow(resource, &["patch"]);
                }
                // Children that block the deletion of their owner may only be made by who may set its finalizers.
                self.allow(&resource.part("finalizers"), &["update"]);
            }
            Use::Owned(resource) => self.allow(resource, &OWN),
            Use::Read(resource) => self.allow(resource, &WATCH),
            Use::Events => self.allow(&Resource::new("events.k8s.io", "events"), &["create", "patch"]),
            Use::Leases => {
                let leases = Resource::new("coordination.k8s.io", "leases");
                self.allow(&leases, &["get", "list", "watch", "create", "update"]);
            }
            Use::Other { resource, verbs } => {
                let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
                self.allow(resource, &verbs);
            }
        }
    }

    /// Allows verbs on a resource.
    pub fn allow(&mut self, resource: &Resource, verbs: &[&str]) {
        let known = self.verbs.entry(resource.clone()).or_default();
        known.extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    /// Whether all of `other` is allowed here.
    pub fn covers(&self, other: &Self) -> bool {
        other.missing_in(self).verbs.is_empty()
    }

    /// What is here and not in `others`.
    #[must_use]
    pub fn missing_in(&self, others: &Self) -> Self {
        let mut missing = Self::default();
        for (resource, verbs) in &self.verbs {
            let allowed = |verb: &&String| others.allows(resource, verb);
            let left: BTreeSet<String> = verbs.iter().filter(|verb| !allowed(verb)).cloned().collect();
            if !left.is_empty() {
                missing.verbs.insert(resource.clone(), left);
            }
        }
        missing
    }

    fn allows(&self, resource: &Resource, verb: &str) -> bool {
        let matches = |wanted: &str, rule: &str| rule == "*" || rule == wanted;
        self.verbs.iter().any(|(known, verbs)| {
            matches(&resource.group, &known.group)
                && matches(&resource.plural, &known.plural)
                && verbs.iter().any(|rule| matches(verb, rule))
        })
    }

    /// The rules of a role: resources of one group with the same verbs share one, everything is sorted.
    pub fn to_json(&self) -> Value {
        let mut shared: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
        for (resource, verbs) in &self.verbs {
            let verbs = sorted(verbs);
            shared.entry((&resource.group, verbs)).or_default().push(&resource.plural);
        }
        let mut rules: Vec<(&str, Vec<&str>, Vec<&str>)> =
            shared.into_iter().map(|((group, verbs), plurals)| (group, plurals, verbs)).collect();
        rules.sort();
        let rule = |(group, plurals, verbs): (&str, Vec<&str>, Vec<&str>)| json!({"apiGroups": [group], "resources": plurals, "verbs": verbs});
        Value::Array(rules.into_iter().map(rule).collect())
    }
}

/// Verbs in the order in which people read them.
fn sorted(verbs: &BTreeSet<String>) -> Vec<&str> {
    const ORDER: [&str; 8] =
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let place = |verb: &str| ORDER.iter().position(|known| *known == verb).unwrap_or(ORDER.len());
    let mut verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    verbs.sort_by_key(|verb| (place(verb), *verb));
    verbs
}

/// The roles of an operator and their bindings to its service account: one ClusterRole, or one Role in each namespace.
pub fn roles(rules: &Rules, scope: &Scope, name: &str, account_namespace: &str) -> Vec<Value> {
    let subject = json!([{"kind": "ServiceAccount", "name": name, "namespace": account_namespace}]);
    let pair = |prefix: &str, namespace: Option<&str>| {
        let mut meta = json!({"name": name});
        if let Some(namespace) = namespace {
            meta["namespace"] = namespace.into();
        }
        let api = "rbac.authorization.k8s.io";
        let (role, version) = (format!("{prefix}Role"), format!("{api}/v1"));
        [
            json!({"apiVersion": version, "kind": role, "metadata": meta, "rules": rules.to_json()}),
            json!({
                "apiVersion": version, "kind": format!("{role}Binding"), "metadata": meta,
                "roleRef": {"apiGroup": api, "kind": role, "name": name}, "subjects": subject,
            }),
        ]
    };
    match scope {
        Scope::Cluster => pair("Cluster", None).into(),
        Scope::Namespaces(namespaces) => {
            let unique: BTreeSet<&String> = namespaces.iter().collect();
            unique.into_iter().flat_map(|namespace| pair("", Some(namespace))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shells() -> Resource {
        Resource::new("example.com", "shells")
    }

    #[test]
    fn rules_follow_from_what_is_declared() {
        let uses = [
            Use::Primary { resource: shells(), status: Writes::Yes, finalizer: Writes::No },
            Use::Owned(Resource::new("apps", "deployments")),
            Use::Owned(Resource::new("", "services")),
            Use::Owned(Resource::new("", "configmaps")),
            Use::Read(Resource::new("", "pods")),
            Use::Events,
        ];
        let own = json!(["get", "list", "watch", "create", "patch", "delete"]);
        let expected = json!([
            {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": own},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": own},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": ["example.com"], "resources": ["shells"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": ["shells/finalizers"], "verbs": ["update"]},
            {"apiGroups": ["example.com"], "resources": ["shells/status"], "verbs": ["patch"]},
        ]);
        assert_eq!(Rules::of(&uses).to_json(), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let needed = Rules::of(&[Use::Owned(Resource::new("apps", "deployments")), Use::Events]);
        let mut allowed = Rules::default();
        allowed.allow(&Resource::new("apps", "*"), &["get", "list", "watch"]);
        allowed.allow(&Resource::new("events.k8s.io", "events"), &["*"]);
        let missing = needed.missing_in(&allowed);
        assert_eq!(
            missing.to_json(),
            json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "patch", "delete"]}])
        );
        assert!(!allowed.covers(&needed) && needed.covers(&needed));
    }

    #[test]
    fn a_role_for_each_namespace_or_one_for_all() {
        let rules = Rules::of(&[Use::Read(shells())]);
        let kinds = |scope: &Scope| -> Vec<String> {
            let roles = roles(&rules, scope, "op", "system");
            let name = |role: &Value| {
                let namespace = role["metadata"]["namespace"].as_str().unwrap_or("-");
                format!("{} {namespace}", role["kind"].as_str().unwrap_or_default())
            };
            roles.iter().map(name).collect()
        };
        assert_eq!(kinds(&Scope::Cluster), ["ClusterRole -", "ClusterRoleBinding -"]);
        let two = Scope::Namespaces(vec!["b".to_owned(), "a".to_owned(), "b".to_owned()]);
        assert_eq!(kinds(&two), ["Role a", "RoleBinding a", "Role b", "RoleBinding b"]);
    }

    proptest! {
        #[test]
        fn the_order_of_uses_does_not_matter(mut numbers in proptest::collection::vec(0_usize..6, 0..12)) {
            let all = [
                Use::Primary { resource: shells(), status: Writes::Yes, finalizer: Writes::Yes },
                Use::Owned(shells()),
                Use::Read(shells()),
                Use::Events,
                Use::Leases,
                Use::Other { resource: shells(), verbs: vec!["deletecollection".to_owned()] },
            ];
            let rules = Rules::of(numbers.iter().map(|n| &all[*n]));
            numbers.reverse();
            numbers.extend_from_within(..);
            prop_assert_eq!(Rules::of(numbers.iter().map(|n| &all[*n])), rules);
        }
    }
}
