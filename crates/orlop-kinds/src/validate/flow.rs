//! API priority and fairness: FlowSchemas and PriorityLevelConfigurations.

use super::Rules;
use super::meta::{self, Scope};
use super::view::{At, Report, same};
use orlop_schema::names::{self, NameRule};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::new(GROUP, "FlowSchema", Scope::Cluster, schema, schema_update, &[("status", status_update)]),
    Rules::new(
        GROUP,
        "PriorityLevelConfiguration",
        Scope::Cluster,
        level,
        level_update,
        &[("status", status_update)],
    ),
];

fn status(r: &mut Report, object: &At<'_>) {
    let mut seen = BTreeSet::new();
    for condition in object.down("status.conditions").items() {
        let kind = condition.get("type");
        r.when(!seen.insert(kind.str()), || kind.duplicate_str());
        r.required(&kind);
    }
}

fn status_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    status(r, new);
}

/// The schemas that every server has, and their fixed specs.
fn fixed_schema(name: &str) -> Option<Value> {
    let rules = |group: &str| {
        json!([{
            "subjects": [{"kind": "Group", "group": {"name": group}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }])
    };
    match name {
        "exempt" => Some(json!({
            "priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1,
            "rules": rules("system:masters"),
        })),
        "catch-all" => {
            let mut all = rules("system:unauthenticated");
            if let Some(subjects) = all[0]["subjects"].as_array_mut() {
                subjects.push(json!({"kind": "Group", "group": {"name": "system:authenticated"}}));
            }
            Some(json!({
                "priorityLevelConfiguration": {"name": "catch-all"}, "matchingPrecedence": 10000,
                "distinguisherMethod": {"type": "ByUser"}, "rules": all,
            }))
        }
        _ => None,
    }
}

fn schema(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let (spec, name) = (object.get("spec"), object.down("metadata.name").str());
    let precedence = spec.get("matchingPrecedence");
    r.when(precedence.int() <= 0, || precedence.invalid_int("must be a positive value"));
    r.when(precedence.int() > 10000, || precedence.invalid("must not be greater than 10000"));
    r.when(precedence.int() == 1 && name != "exempt", || {
        precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1")
    });
    let method = spec.get("distinguisherMethod");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&method.get("type").str()) {
        let at = method.named(method.path.child("type"));
        r.add(at.unsupported_as("flowcontrol.FlowDistinguisherMethod", &["ByNamespace", "ByUser"]));
    }
    let level = spec.down("priorityLevelConfiguration.name");
    if level.is_empty() {
        r.add(level.required("must reference a priority level"));
    } else {
        r.subdomain(&level);
    }
    for rule in spec.get("rules").items() {
        schema_rule(r, &rule);
    }
    if let Some(fixed) = fixed_schema(name)
        && !same(spec.value, &fixed)
    {
        let words = format!("spec of '{name}' must equal the fixed value");
        r.add(spec.invalid_as("flowcontrol.FlowSchemaSpec", words));
    }
    status(r, object);
}

fn schema_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    schema(r, new);
}

fn schema_rule(r: &mut Report, rule: &At<'_>) {
    let subjects = rule.get("subjects");
    r.when(subjects.is_empty(), || subjects.required("subjects must contain at least one value"));
    for subject in subjects.items() {
        subject_rule(r, &subject);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    r.when(resources.is_empty() && others.is_empty(), || {
        rule.required("at least one of resourceRules and nonResourceRules has to be non-empty")
    });
    for rule in resources.items() {
        resource_rule(r, &rule);
    }
    for rule in others.items() {
        other_rule(r, &rule);
    }
}

fn subject_rule(r: &mut Report, at: &At<'_>) {
    let kinds = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = at.get("kind");
    let Some((name, field)) = kinds.iter().find(|(name, _)| *name == kind.str()) else {
        return r.add(kind.unsupported(&["Group", "ServiceAccount", "User"]));
    };
    let subject = at.get(field);
    if !subject.is_set() {
        r.add(subject.required(format!("{field} is required when subject kind is '{name}'")));
    } else if *field == "serviceAccount" {
        let (account, namespace) = (subject.get("name"), subject.get("namespace"));
        if !r.required(&account) && account.str() != "*" {
            r.subdomain(&account);
        }
        if namespace.is_empty() {
            r.add(namespace.required("must specify namespace for service account"));
        } else {
            r.label(&namespace);
        }
    } else {
        r.required(&subject.get("name"));
    }
    for (other, field) in kinds.iter().filter(|(other, _)| other != name) {
        let at = at.get(field);
        r.when(at.is_set(), || {
            at.forbidden(format!("{field} is forbidden when subject kind is not '{other}'"))
        });
    }
}

fn verbs(r: &mut Report, list: &At<'_>) {
    const VERBS: [&str; 9] =
        ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
    let all = list.strings();
    if all.is_empty() {
        r.add(list.required("verbs must contain at least one value"));
    } else if all.contains(&"*") {
        r.when(all.len() > 1, || list.invalid("if '*' is present, must not specify other verbs"));
    } else if !all.iter().all(|verb| VERBS.contains(verb)) {
        let mut error = list.unsupported(&VERBS);
        error.value = Some(list.value.to_string());
        r.add(error);
    }
}

fn star(r: &mut Report, list: &At<'_>, missing: &str, what: &str) {
    r.when(list.is_empty(), || list.required(missing));
    r.when(list.len() > 1 && list.strings().contains(&"*"), || {
        list.invalid(format!("if '*' is present, must not specify other {what}"))
    });
}

fn resource_rule(r: &mut Report, rule: &At<'_>) {
    verbs(r, &rule.get("verbs"));
    star(r, &rule.get("apiGroups"), "resource rules must supply at least one api group", "api groups");
    star(r, &rule.get("resources"), "resource rules must supply at least one resource", "resources");
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        r.add(
            namespaces
                .required("resource rules that are not cluster scoped must supply at least one namespace"),
        );
    } else if namespaces.strings().contains(&"*") {
        r.when(namespaces.len() > 1, || {
            namespaces.invalid("if '*' is present, must not specify other namespaces")
        });
    } else {
        for namespace in namespaces.items() {
            for wrong in names::dns1123_label(namespace.str()) {
                r.add(
                    namespace.invalid(format!(
                        "each member of this list must be '*' or a DNS-1123 label; {wrong}"
                    )),
                );
            }
        }
    }
}

fn other_rule(r: &mut Report, rule: &At<'_>) {
    verbs(r, &rule.get("verbs"));
    let urls = rule.get("nonResourceURLs");
    star(r, &urls, "nonResourceURLs must contain at least one value", "non-resource URLs");
    if urls.strings().contains(&"*") {
        return;
    }
    for url in urls.items() {
        let path = url.str();
        let stars = path.matches('*').count();
        let wrong = if path.is_empty() {
            "must not be empty"
        } else if path == "/" {
            continue;
        } else if !path.starts_with('/') {
            "must start with slash"
        } else if path.contains(' ') {
            "must not contain white-space"
        } else if path.contains("//") {
            "must not contain double slash"
        } else if stars > 1 || (stars == 1 && !path.ends_with("/*")) {
            "wildcard can only do suffix matching"
        } else {
            continue;
        };
        r.add(url.invalid(wrong));
    }
}

fn level(r: &mut Report, object: &At<'_>) {
    const KEPT: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    meta::create(r, object, Scope::Cluster, NameRule::Subdomain);
    let annotations = object.down("metadata.annotations");
    r.when(annotations.key(KEPT).is_set(), || {
        annotations.forbidden(format!("annotation '{KEPT}' is forbidden"))
    });
    let (spec, name) = (object.get("spec"), object.down("metadata.name").str());
    level_spec(r, &spec, name);
    fixed_level(r, &spec, name);
    status(r, object);
}

fn level_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    level(r, new);
}

fn level_spec(r: &mut Report, spec: &At<'_>, name: &str) {
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    r.when((name == "exempt") != (kind.str() == "Exempt"), || {
        kind.invalid_str("must be 'Exempt' if and only if `name` is 'exempt'")
    });
    match kind.str() {
        "Exempt" => {
            r.when(limited.is_set(), || limited.forbidden("must be nil if the type is not Limited"));
            shares(r, &exempt);
            lendable(r, &exempt);
        }
        "Limited" => {
            r.when(exempt.is_set(), || exempt.forbidden("must be nil if the type is Limited"));
            if !limited.is_set() {
                return r.add(limited.required("must not be empty when type is Limited"));
            }
            shares(r, &limited);
            limit_response(r, &limited.get("limitResponse"));
            lendable(r, &limited);
            let borrowing = limited.get("borrowingLimitPercent");
            r.when(borrowing.int() < 0, || borrowing.invalid("if specified, must be a non-negative integer"));
        }
        _ => r.required_one_of(&kind, &["Exempt", "Limited"]),
    }
}

fn shares(r: &mut Report, at: &At<'_>) {
    let shares = at.get("nominalConcurrencyShares");
    r.when(shares.int() < 0, || shares.invalid("must be a non-negative integer"));
}

fn lendable(r: &mut Report, at: &At<'_>) {
    let percent = at.get("lendablePercent");
    r.when(percent.is_set() && !(0..=100).contains(&percent.int()), || {
        percent.invalid("must be between 0 and 100, inclusive")
    });
}

fn limit_response(r: &mut Report, at: &At<'_>) {
    let (kind, queuing) = (at.get("type"), at.get("queuing"));
    match kind.str() {
        "Reject" => r.when(queuing.is_set(), || {
            queuing.forbidden("must be nil if limited.limitResponse.type is not Limited")
        }),
        "Queue" if !queuing.is_set() => {
            r.add(queuing.required("must not be empty if limited.limitResponse.type is Limited"));
        }
        "Queue" => queues(r, &queuing),
        _ => r.required_one_of(&kind, &["Queue", "Reject"]),
    }
}

fn queues(r: &mut Report, at: &At<'_>) {
    const QUEUES_MAX: i64 = 10_000_000;
    const HASH_BITS: u32 = 60;
    let (length, queues, hand) = (at.get("queueLengthLimit"), at.get("queues"), at.get("handSize"));
    r.when(length.int() <= 0, || length.invalid_int("must be positive"));
    if queues.int() <= 0 {
        r.add(queues.invalid_int("must be positive"));
    } else {
        r.when(queues.int() > QUEUES_MAX, || {
            queues.invalid(format!("must not be greater than {QUEUES_MAX}"))
        });
    }
    if hand.int() <= 0 {
        r.add(hand.invalid_int("must be positive"));
    } else if hand.int() > queues.int() {
        r.add(hand.invalid(format!("should not be greater than queues ({})", queues.int())));
    } else if entropy_bits(queues.int(), hand.int()) > HASH_BITS {
        r.add(hand.invalid(format!(
            "required entropy bits of deckSize {} and handSize {} should not be greater than {HASH_BITS}",
            queues.int(),
            hand.int()
        )));
    }
}

/// How many random bits it takes to deal a hand from a deck.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    (f64::log2(deck as f64) * hand as f64).ceil() as u32
}

/// The levels that every server has, and their fixed specs.
fn fixed_level(r: &mut Report, spec: &At<'_>, name: &str) {
    let (fixed, except) = match name {
        "exempt" => (json!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        "catch-all" => (
            json!({"type": "Limited", "limited": {
                "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}}),
            "",
        ),
        _ => return,
    };
    let mut given = spec.value.clone();
    if name == "exempt"
        && let Some(map) = given.as_object_mut()
    {
        map.remove("exempt");
    }
    r.when(!same(&given, &fixed), || {
        spec.invalid_as(
            "flowcontrol.PriorityLevelConfigurationSpec",
            format!("spec of '{name}'{except} must equal the fixed value"),
        )
    });
}
