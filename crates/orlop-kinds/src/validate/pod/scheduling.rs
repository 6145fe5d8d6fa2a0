//! Where a pod may run: affinity, tolerations, topology spread, node selectors.

use super::super::view::{At, Report};
use super::PodOptions;
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names;
use serde_json::Value;
use std::collections::BTreeSet;

/// The affinity of a pod.
pub(crate) fn affinity(r: &mut Report, at: &At<'_>, options: &PodOptions) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = at.get("nodeAffinity");
    let required = node.get(REQUIRED);
    if required.is_set() {
        node_selector(r, &required, options.any_node_label_value);
    }
    for term in node.get(PREFERRED).items() {
        weight(r, &term);
        node_selector_term(r, &term.get("preference"), true);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = at.get(kind);
        for term in pods.get(REQUIRED).items() {
            pod_affinity_term(r, &term, options);
        }
        for term in pods.get(PREFERRED).items() {
            weight(r, &term);
            pod_affinity_term(r, &term.get("podAffinityTerm"), options);
        }
    }
}

fn weight(r: &mut Report, term: &At<'_>) {
    let weight = term.get("weight");
    r.when(!(1..=100).contains(&weight.int()), || weight.invalid_int("must be in the range 1-100"));
}

/// A selector of nodes.
pub(crate) fn node_selector(r: &mut Report, at: &At<'_>, any_value: bool) {
    let terms = at.get("nodeSelectorTerms");
    if terms.is_empty() {
        r.add(terms.required("must have at least one node selector term"));
        return;
    }
    for term in terms.items() {
        node_selector_term(r, &term, any_value);
    }
}

fn node_selector_term(r: &mut Report, at: &At<'_>, any_value: bool) {
    for rule in at.get("matchExpressions").items() {
        let (operator, values) = (rule.get("operator"), rule.get("values"));
        match operator.str() {
            "In" | "NotIn" => r.when(values.is_empty(), || {
                values.required("must be specified when `operator` is 'In' or 'NotIn'")
            }),
            "Exists" | "DoesNotExist" => r.when(!values.is_empty(), || {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            }),
            "Gt" | "Lt" => r.when(values.len() != 1, || {
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'")
            }),
            _ => r.add(operator.invalid_str("not a valid selector operator")),
        }
        r.qualified(&rule.get("key"));
        if !any_value {
            for value in values.items() {
                r.each(&value, names::label_value(value.str()));
            }
        }
    }
    for rule in at.get("matchFields").items() {
        let (key, operator, values) = (rule.get("key"), rule.get("operator"), rule.get("values"));
        match operator.str() {
            "In" | "NotIn" => r.when(values.len() != 1, || {
                values.required(
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                )
            }),
            _ => r.add(operator.invalid_str("not a valid selector operator")),
        }
        if key.str() == "metadata.name" {
            for value in values.items() {
                r.subdomain(&value);
            }
        } else {
            r.add(key.invalid_str("not a valid field selector key"));
        }
    }
}

fn pod_affinity_term(r: &mut Report, at: &At<'_>, options: &PodOptions) {
    let lenient = SelectorOptions { any_value: options.any_selector_value, any_operator: false };
    r.selector(&at.get("labelSelector"), lenient);
    r.selector(&at.get("namespaceSelector"), lenient);
    for namespace in at.get("namespaces").strings() {
        for wrong in names::dns1123_label(namespace) {
            r.add(at.get("namespace").invalid_with(go_quote(namespace), wrong));
        }
    }
    label_keys(r, at, true);
    let topology = at.get("topologyKey");
    r.when(topology.is_empty(), || topology.required("can not be empty"));
    r.qualified(&topology);
}

/// `matchLabelKeys` and `mismatchLabelKeys`, which must not contradict each other or the selector.
fn label_keys(r: &mut Report, at: &At<'_>, with_mismatch: bool) {
    let selector = at.get("labelSelector");
    let (keys, mismatch) = (at.get("matchLabelKeys"), at.get("mismatchLabelKeys"));
    for list in [Some(&keys), with_mismatch.then_some(&mismatch)].into_iter().flatten() {
        if !list.is_empty() && !selector.is_set() {
            r.add(list.forbidden("must not be specified when labelSelector is not set"));
        } else {
            for key in list.items() {
                r.qualified(&key);
            }
        }
    }
    if selector.is_set() {
        let wanted = keys.strings();
        let mut seen: BTreeSet<&str> =
            selector.get("matchLabels").entries().iter().map(|(k, _)| *k).collect();
        for rule in selector.get("matchExpressions").items() {
            let key = rule.get("key").str();
            if let Some(index) = wanted.iter().rposition(|k| *k == key)
                && seen.contains(key)
            {
                r.add(FieldError::invalid(
                    &at.path.index(index),
                    &Value::String(key.to_owned()),
                    "exists in both matchLabelKeys and labelSelector",
                ));
            }
            seen.insert(key);
        }
    }
    if with_mismatch {
        let mismatch = mismatch.strings();
        for key in keys.items() {
            r.when(mismatch.contains(&key.str()), || {
                key.invalid("exists in both matchLabelKeys and mismatchLabelKeys")
            });
        }
    }
}

/// How a pod spreads over a topology.
pub(crate) fn topology_spread(r: &mut Report, list: &At<'_>, options: &PodOptions) {
    let all = list.items();
    for (index, constraint) in all.iter().enumerate() {
        r.positive(&constraint.get("maxSkew"));
        let (topology, action) = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        r.when(topology.is_empty(), || topology.required("can not be empty"));
        r.one_of(&action, &["DoNotSchedule", "ScheduleAnyway"]);
        let repeated = all[index + 1..].iter().any(|other| {
            other.get("topologyKey").str() == topology.str()
                && other.get("whenUnsatisfiable").str() == action.str()
        });
        r.when(repeated, || {
            let path = constraint.path.child("{topologyKey, whenUnsatisfiable}");
            let text = format!("{{{}, {}}}", topology.str(), action.str());
            FieldError::duplicate(&path, &Value::String(text))
        });
        let domains = constraint.get("minDomains");
        if domains.is_set() {
            r.positive(&domains);
            r.when(action.str() != "DoNotSchedule", || {
                domains.invalid(format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.str()
                ))
            });
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            r.optional_one_of(&constraint.get(key), &["Honor", "Ignore"]);
        }
        label_keys(r, constraint, false);
        if !options.any_spread_selector {
            r.selector(&constraint.get("labelSelector"), SelectorOptions::default());
        }
    }
}

/// Whether some spread constraint has a selector that would be refused today.
pub(crate) fn has_bad_spread_selector(spec: &At<'_>) -> bool {
    spec.get("topologySpreadConstraints").items().iter().any(|c| {
        let selector = c.get("labelSelector");
        !labels::selector(&Path::root(), selector.value, SelectorOptions::default()).is_empty()
    })
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The taints a pod tolerates.
pub(crate) fn tolerations(r: &mut Report, list: &At<'_>) {
    for toleration in list.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        let (value, effect) = (toleration.get("value"), toleration.get("effect"));
        if !key.is_empty() {
            r.qualified(&key);
        }
        r.when(key.is_empty() && operator.str() != "Exists", || {
            operator.invalid_str(
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            )
        });
        r.when(toleration.get("tolerationSeconds").is_set() && effect.str() != "NoExecute", || {
            effect.invalid_str("effect must be 'NoExecute' when `tolerationSeconds` is set")
        });
        let here = value.named(operator.path.clone());
        match operator.str() {
            "Equal" | "" => {
                let wrong = names::label_value(value.str());
                r.when(!wrong.is_empty(), || here.invalid_str(wrong.join(";")));
            }
            "Exists" => {
                r.when(!value.is_empty(), || here.invalid("value must be empty when `operator` is 'Exists'"));
            }
            "Lt" | "Gt" => r.add(operator.unsupported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => r.add(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            r.one_of(&effect, &EFFECTS);
        }
    }
}

/// The taints of a node.
pub(crate) fn taints(r: &mut Report, list: &At<'_>) {
    let mut seen = BTreeSet::new();
    for taint in list.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        r.qualified(&key);
        let wrong = names::label_value(value.str());
        r.when(!wrong.is_empty(), || value.invalid_str(wrong.join(";")));
        r.required_one_of(&effect, &EFFECTS);
        if !seen.insert((effect.str(), key.str())) {
            let mut error = taint.duplicate();
            error.value = Some(super::super::golang::print("core.Taint", taint.value));
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            r.add(error);
        }
    }
}
