//! Roles and bindings.

use super::Rules;
use super::meta::{self, Scope};
use super::view::{At, Report, same};
use orlop_schema::field::Path;
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::new(GROUP, "Role", Scope::Namespaced, role, role_update, &[]),
    Rules::new(GROUP, "ClusterRole", Scope::Cluster, cluster_role, cluster_role_update, &[]),
    Rules::new(GROUP, "RoleBinding", Scope::Namespaced, role_binding, role_binding_update, &[]),
    Rules::new(GROUP, "ClusterRoleBinding", Scope::Cluster, cluster_binding, cluster_binding_update, &[]),
];

/// Names of roles are path segments; a generated name is checked like any other.
fn metadata(r: &mut Report, object: &At<'_>, scope: Scope) {
    let prefix = object.down("metadata.generateName");
    if !prefix.is_empty() {
        r.each(&prefix, names::path_segment(prefix.str()));
    }
    meta::create_named(r, object, scope, NameRule::PathSegment);
}

fn rules(r: &mut Report, object: &At<'_>, scope: Scope) {
    for rule in object.get("rules").items() {
        let verbs = rule.get("verbs");
        r.when(verbs.is_empty(), || verbs.required("verbs must contain at least one value"));
        let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            r.when(scope == Scope::Namespaced, || {
                urls.invalid("namespaced rules cannot apply to non-resource URLs")
            });
            let regular =
                !groups.is_empty() || !resources.is_empty() || !rule.get("resourceNames").is_empty();
            r.when(regular, || {
                urls.invalid("rules cannot apply to both regular resources and non-resource URLs")
            });
            continue;
        }
        r.when(groups.is_empty(), || groups.required("resource rules must supply at least one api group"));
        r.when(resources.is_empty(), || {
            resources.required("resource rules must supply at least one resource")
        });
    }
}

fn role(r: &mut Report, object: &At<'_>) {
    metadata(r, object, Scope::Namespaced);
    rules(r, object, Scope::Namespaced);
}

fn role_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    role(r, new);
    meta::update(r, new, old);
}

fn aggregation(r: &mut Report, object: &At<'_>, options: SelectorOptions) {
    let rule = object.get("aggregationRule");
    if !rule.is_set() {
        return;
    }
    let selectors = rule.get("clusterRoleSelectors");
    r.when(selectors.is_empty(), || {
        selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil")
    });
    for selector in selectors.items() {
        r.selector(&selector, options);
        r.when(!labels::selector_is_usable(selector.value), || {
            selector.invalid_with("null", "invalid label selector.")
        });
    }
}

fn cluster_role(r: &mut Report, object: &At<'_>) {
    metadata(r, object, Scope::Cluster);
    rules(r, object, Scope::Cluster);
    aggregation(r, object, SelectorOptions::default());
}

fn cluster_role_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    metadata(r, new, Scope::Cluster);
    rules(r, new, Scope::Cluster);
    let before = old.down("aggregationRule.clusterRoleSelectors");
    let any_value = before
        .items()
        .iter()
        .any(|s| !labels::selector(&Path::root(), s.value, SelectorOptions::default()).is_empty());
    aggregation(r, new, SelectorOptions { any_value, any_operator: false });
    meta::update(r, new, old);
}

fn binding(r: &mut Report, object: &At<'_>, scope: Scope, kinds: &[&str]) {
    metadata(r, object, scope);
    let reference = object.get("roleRef");
    r.one_of(&reference.get("apiGroup"), &[GROUP]);
    r.one_of(&reference.get("kind"), kinds);
    let name = reference.get("name");
    if !r.required(&name) {
        r.each(&name, names::path_segment(name.str()));
    }
    for subject in object.get("subjects").items() {
        let (name, group) = (subject.get("name"), subject.get("apiGroup"));
        r.required(&name);
        match subject.get("kind").str() {
            "ServiceAccount" => {
                if !name.is_empty() {
                    r.subdomain(&name);
                }
                r.when(!group.is_empty(), || group.unsupported(&[""]));
                if scope == Scope::Cluster {
                    r.required(&subject.get("namespace"));
                }
            }
            "User" | "Group" => {
                r.one_of(&group, &[GROUP]);
            }
            _ => r.add(subject.get("kind").unsupported(&["ServiceAccount", "User", "Group"])),
        }
    }
}

fn reference_is_kept(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let reference = new.get("roleRef");
    r.when(!same(reference.value, old.get("roleRef").value), || {
        reference.invalid_as("rbac.RoleRef", "cannot change roleRef")
    });
}

fn role_binding(r: &mut Report, object: &At<'_>) {
    binding(r, object, Scope::Namespaced, &["Role", "ClusterRole"]);
}

fn role_binding_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    role_binding(r, new);
    meta::update(r, new, old);
    reference_is_kept(r, new, old);
}

fn cluster_binding(r: &mut Report, object: &At<'_>) {
    binding(r, object, Scope::Cluster, &["ClusterRole"]);
}

fn cluster_binding_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    cluster_binding(r, new);
    meta::update(r, new, old);
    reference_is_kept(r, new, old);
}
