//! Webhook configurations and admission policies.

use super::expressions::Expressions;
use super::meta::{self, Scope};
use super::view::{At, Report, same};
use super::{Rules, conditions};
use orlop_cel::admission::Returns;
use orlop_schema::field::{Path, go_quote};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};
use serde_json::Value;
use std::collections::BTreeSet;

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::new(GROUP, "ValidatingWebhookConfiguration", Scope::Cluster, webhooks, webhooks_update, &[]),
    Rules::new(GROUP, "MutatingWebhookConfiguration", Scope::Cluster, webhooks, webhooks_update, &[]),
    Rules::new(
        GROUP,
        "ValidatingAdmissionPolicy",
        Scope::Cluster,
        validating_policy,
        validating_policy_update,
        &[("status", policy_status)],
    ),
    Rules::new(
        GROUP,
        "ValidatingAdmissionPolicyBinding",
        Scope::Cluster,
        validating_binding,
        validating_binding_update,
        &[],
    ),
    Rules::new(
        GROUP,
        "MutatingAdmissionPolicy",
        Scope::Cluster,
        mutating_policy,
        mutating_policy_update,
        &[],
    ),
    Rules::new(
        GROUP,
        "MutatingAdmissionPolicyBinding",
        Scope::Cluster,
        mutating_binding,
        mutating_binding_update,
        &[],
    ),
];

/// What is asked of webhooks; an update asks no more than the old object fulfilled.
#[derive(Clone, Copy)]
struct Demands {
    match_conditions: bool,
    no_side_effects: bool,
    known_versions: bool,
    unique_names: bool,
    label_values: bool,
}

const ALL: Demands = Demands {
    match_conditions: true,
    no_side_effects: true,
    known_versions: true,
    unique_names: true,
    label_values: true,
};

fn webhooks(r: &mut Report, object: &At<'_>) {
    configuration(r, object, ALL);
}

fn webhooks_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    let (now, before) = (new.get("webhooks").items(), old.get("webhooks").items());
    let same_conditions = now.len() == before.len()
        && now
            .iter()
            .zip(&before)
            .all(|(a, b)| same(a.get("matchConditions").value, b.get("matchConditions").value));
    let mut seen = BTreeSet::new();
    let bad_selector =
        |at: &At<'_>| !labels::selector(&Path::root(), at.value, SelectorOptions::default()).is_empty();
    let demands = Demands {
        match_conditions: !same_conditions,
        no_side_effects: before.iter().all(|h| harmless(h.get("sideEffects").str())),
        known_versions: before.iter().all(|h| {
            let versions = h.get("admissionReviewVersions").strings();
            versions.is_empty() || versions.iter().any(|v| VERSIONS.contains(v))
        }),
        unique_names: before.iter().all(|h| seen.insert(h.get("name").str())),
        label_values: !before
            .iter()
            .any(|h| bad_selector(&h.get("namespaceSelector")) || bad_selector(&h.get("objectSelector"))),
    };
    configuration(r, new, demands);
}

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

fn harmless(side_effects: &str) -> bool {
    ["None", "NoneOnDryRun"].contains(&side_effects)
}

fn configuration(r: &mut Report, object: &At<'_>, demands: Demands) {
    meta::plain_create(r, object, Scope::Cluster, NameRule::Subdomain);
    let mut seen = BTreeSet::new();
    for hook in object.get("webhooks").items() {
        webhook(r, &hook, demands);
        review_versions(r, &hook.get("admissionReviewVersions"), demands);
        let name = hook.get("name");
        if demands.unique_names && !name.is_empty() {
            r.when(!seen.insert(name.str()), || name.duplicate());
        }
    }
}

fn webhook(r: &mut Report, hook: &At<'_>, demands: Demands) {
    let name = hook.get("name");
    if !r.required(&name) {
        let wrong = names::dns1123_subdomain(name.str());
        if !wrong.is_empty() {
            r.add(name.invalid(wrong.join(",")));
        } else if name.str().split('.').count() < 3 {
            r.add(name.invalid("should be a domain with at least three segments separated by dots"));
        }
    }
    for rule in hook.get("rules").items() {
        rule_with_operations(r, &rule);
    }
    r.optional_one_of(&hook.get("failurePolicy"), &FAILURE_POLICIES);
    r.optional_one_of(&hook.get("matchPolicy"), &MATCH_POLICIES);
    let effects = hook.get("sideEffects");
    let allowed: &[&str] = if demands.no_side_effects {
        &["None", "NoneOnDryRun"]
    } else {
        &["None", "NoneOnDryRun", "Some", "Unknown"]
    };
    if effects.is_set() {
        r.one_of(&effects, allowed);
    } else {
        r.add(effects.required(format!("must specify one of {}", allowed.join(", "))));
    }
    let timeout = hook.get("timeoutSeconds");
    r.when(timeout.is_set() && !(1..=30).contains(&timeout.int()), || {
        timeout.invalid("the timeout value must be between 1 and 30 seconds")
    });
    let options = SelectorOptions { any_value: !demands.label_values, any_operator: false };
    r.selector(&hook.get("namespaceSelector"), options);
    r.selector(&hook.get("objectSelector"), options);
    r.optional_one_of(&hook.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    client(r, &hook.get("clientConfig"));
    if demands.match_conditions {
        match_conditions(r, &hook.get("matchConditions"), &Expressions::plain(false));
    }
}

fn client(r: &mut Report, at: &At<'_>) {
    let (url, service) = (at.get("url"), at.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => webhook_url(r, &url),
        (false, true) => webhook_service(r, &service),
        _ => r.add(at.required("exactly one of url or service is required")),
    }
}

/// The URL of a webhook: `https`, a host, nothing but a path.
fn webhook_url(r: &mut Report, at: &At<'_>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = at.str();
    if let Some(wrong) = bad_escape(text) {
        let (text, wrong) = (go_quote(text), go_quote(wrong));
        return r.add(
            at.required(format!("url must be a valid URL: parse {text}: invalid URL escape {wrong}{FORM}")),
        );
    }
    if text.starts_with(':') {
        let text = go_quote(text);
        return r.add(
            at.required(format!("url must be a valid URL: parse {text}: missing protocol scheme{FORM}")),
        );
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) =>
        {
            (scheme.to_lowercase(), rest)
        }
        _ => (String::new(), rest),
    };
    let authority = rest.strip_prefix("//").map_or("", |r| r.split('/').next().unwrap_or(""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut refuse = |bad: bool, value: &str, words: String| {
        if bad {
            r.add(at.invalid_with(go_quote(value), words));
        }
    };
    refuse(scheme != "https", &scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    refuse(host.is_empty(), host, format!("host must be specified{FORM}"));
    refuse(authority.contains('@'), user, "user information is not permitted in the URL".to_owned());
    refuse(!fragment.is_empty(), fragment, "fragments are not permitted in the URL".to_owned());
    refuse(!query.is_empty(), query, "query parameters are not permitted in the URL".to_owned());
}

/// The first percent sign that is not followed by two hexadecimal digits, with what follows it.
fn bad_escape(text: &str) -> Option<&str> {
    text.match_indices('%').map(|(at, _)| &text[at..]).find_map(|rest| {
        let end = rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at);
        let escape = &rest[..end];
        let fine = escape.len() == 3 && escape[1..].bytes().all(|b| b.is_ascii_hexdigit());
        (!fine).then_some(escape)
    })
}

fn webhook_service(r: &mut Report, at: &At<'_>) {
    // The API server passes name and namespace in the wrong order, so each is reported as the other.
    r.when(at.get("namespace").is_empty(), || at.get("name").required(""));
    r.when(at.get("name").is_empty(), || at.get("namespace").required(""));
    let port = at.get("port");
    let wrong = names::port_number(port.int());
    r.when(!wrong.is_empty(), || port.invalid_int(format!("port is not valid: {}", wrong.join(", "))));
    let path = at.get("path");
    let text = path.str();
    if text.is_empty() || text == "/" {
        return;
    }
    if text == "//" {
        return r.add(path.invalid("segment[0] may not be empty"));
    }
    r.when(!text.starts_with('/'), || path.invalid("must start with a '/'"));
    let rest = text.char_indices().nth(1).map_or("", |(at, _)| &text[at..]);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            r.add(path.invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        for wrong in names::dns1123_subdomain(step) {
            r.add(path.invalid(format!("segment[{index}]: {wrong}")));
        }
    }
}

fn review_versions(r: &mut Report, list: &At<'_>, demands: Demands) {
    if list.is_empty() {
        return r.add(list.required("must specify one of v1, v1beta1"));
    }
    let (mut seen, mut known) = (BTreeSet::new(), false);
    for version in list.items() {
        if !seen.insert(version.str()) {
            r.add(version.invalid("duplicate version"));
            continue;
        }
        r.each(&version, names::dns1035_label(version.str()));
        known |= VERSIONS.contains(&version.str());
    }
    r.when(demands.known_versions && !known, || list.invalid("must include at least one of v1, v1beta1"));
}

fn rule_with_operations(r: &mut Report, rule: &At<'_>) {
    let operations = rule.get("operations");
    star(r, &operations, "operations");
    for operation in operations.items() {
        r.one_of(&operation, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
    star(r, &rule.get("apiGroups"), "API groups");
    let versions = rule.get("apiVersions");
    star(r, &versions, "API versions");
    for version in versions.items() {
        r.required(&version);
    }
    resources(r, &rule.get("resources"));
    r.optional_one_of(&rule.get("scope"), &["*", "Cluster", "Namespaced"]);
}

/// A list that must not be empty and may have `*` only alone.
fn star(r: &mut Report, list: &At<'_>, what: &str) {
    r.required(list);
    r.when(list.len() > 1 && list.strings().contains(&"*"), || {
        list.invalid(format!("if '*' is present, must not specify other {what}"))
    });
}

fn resources(r: &mut Report, list: &At<'_>) {
    r.required(list);
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    let (mut everything, mut all, mut plain) = (false, false, false);
    for item in list.items() {
        let text = item.str();
        if r.required(&item) {
            continue;
        }
        everything |= text == "*/*";
        all |= text == "*";
        let Some((resource, part)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        r.when(whole.contains(resource), || {
            item.invalid(format!("if '{resource}/*' is present, must not specify {text}"))
        });
        r.when(parts.contains(part), || {
            item.invalid(format!("if '*/{part}' is present, must not specify {text}"))
        });
        if part == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            parts.insert(part);
        }
    }
    r.when(list.len() > 1 && everything, || {
        list.invalid("if '*/*' is present, must not specify other resources")
    });
    r.when(all && plain, || {
        list.invalid("if '*' is present, must not specify other resources without subresources")
    });
}

fn match_conditions(r: &mut Report, list: &At<'_>, expressions: &Expressions) {
    r.when(list.len() > 64, || list.too_many(64));
    let mut seen = BTreeSet::new();
    for condition in list.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        match expression.str().trim() {
            "" => r.add(expression.required("")),
            source => expressions.check(r, &expression, source, Returns::Bool),
        }
        if !r.required(&name) {
            r.qualified(&name);
            r.when(!seen.insert(name.str()), || name.duplicate());
        }
    }
}

fn policy_head(r: &mut Report, spec: &At<'_>) {
    r.given_one_of(&spec.get("failurePolicy"), &FAILURE_POLICIES);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        param_kind(r, &kind);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        match_resources(r, &constraints);
        r.required(&constraints.get("resourceRules"));
    } else {
        r.add(constraints.required(""));
    }
}

fn param_kind(r: &mut Report, at: &At<'_>) {
    let (version, kind) = (at.get("apiVersion"), at.get("kind"));
    let text = version.str();
    if !r.required(&version) {
        if text.matches('/').count() > 1 {
            r.add(version.invalid(format!("unexpected GroupVersion string: {text}")));
        } else {
            let (group, number) =
                if text == "/" { ("", "") } else { text.split_once('/').unwrap_or(("", text)) };
            let wrong = names::dns1123_subdomain(group);
            if !group.is_empty() && !wrong.is_empty() {
                r.add(version.invalid_with(go_quote(group), wrong.join(",")));
            }
            let wrong = names::dns1035_label(number);
            if number.is_empty() {
                r.add(version.invalid("version must be specified"));
            } else if !wrong.is_empty() {
                r.add(version.invalid_with(go_quote(number), wrong.join(",")));
            }
        }
    }
    if !r.required(&kind) {
        let wrong = names::dns1035_label(&kind.str().to_lowercase());
        r.when(!wrong.is_empty(), || {
            let wrong = wrong.join(",");
            kind.invalid(format!("may have mixed case, but should otherwise match: {wrong}"))
        });
    }
}

fn match_resources(r: &mut Report, at: &At<'_>) {
    r.given_one_of(&at.get("matchPolicy"), &MATCH_POLICIES);
    for key in ["namespaceSelector", "objectSelector"] {
        let selector = at.get(key);
        r.when(!selector.is_set(), || selector.required(""));
        r.selector(&selector, SelectorOptions::default());
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for rule in at.get(key).items() {
            let mut seen = BTreeSet::new();
            for name in rule.get("resourceNames").items() {
                r.each(&name, names::path_segment(name.str()));
                r.when(!seen.insert(name.str()), || name.duplicate());
            }
            rule_with_operations(r, &rule);
        }
    }
}

fn variables(r: &mut Report, list: &At<'_>, expressions: &mut Expressions) {
    for variable in list.items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.str().trim().is_empty() {
            r.add(name.required("name is not specified"));
        } else {
            r.when(!is_cel_identifier(name.str()), || name.invalid("must be a valid CEL identifier"));
        }
        if expression.str().trim().is_empty() {
            r.add(expression.required("expression is not specified"));
        } else {
            expressions.declare(r, &expression, name.str());
        }
    }
}

fn is_cel_identifier(text: &str) -> bool {
    names::c_identifier(text).is_empty() && !orlop_cel::is_reserved(text)
}

/// The longest expression of an audit annotation.
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;

fn validating_policy(r: &mut Report, object: &At<'_>) {
    validating(r, object, true);
}

fn validating_policy_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    validating(r, new, conditions_changed(new, old));
}

fn conditions_changed(new: &At<'_>, old: &At<'_>) -> bool {
    ["spec.paramKind", "spec.matchConditions"]
        .iter()
        .any(|key| !same(new.down(key).value, old.down(key).value))
}

fn validating(r: &mut Report, object: &At<'_>, with_conditions: bool) {
    meta::plain_create(r, object, Scope::Cluster, NameRule::Subdomain);
    let spec = object.get("spec");
    policy_head(r, &spec);
    let params = spec.get("paramKind").is_set();
    if with_conditions {
        match_conditions(r, &spec.get("matchConditions"), &Expressions::plain(params));
    }
    let declared = spec.get("variables");
    let mut expressions =
        if declared.is_empty() { Expressions::plain(params) } else { Expressions::composed(params) };
    variables(r, &declared, &mut expressions);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for at in [validations, annotations] {
            r.add(at.required("validations or auditAnnotations must contain at least one item"));
        }
        return;
    }
    for validation in validations.items() {
        validation_rule(r, &validation, &expressions);
    }
    r.when(annotations.len() > 20, || annotations.invalid("must not have more than 20 auditAnnotations"));
    let mut seen = BTreeSet::new();
    let name = object.down("metadata.name").str();
    for annotation in annotations.items() {
        let (key, value) = (annotation.get("key"), annotation.get("valueExpression"));
        if name.is_empty() {
            r.add(key.invalid_str("requires metadata.name be non-empty"));
        } else {
            let full = Value::String(format!("{name}/{}", key.str()));
            r.qualified(&At { value: &full, path: key.path.clone() });
        }
        let expression = value.str().trim();
        if expression.is_empty() {
            r.add(value.required("valueExpression is not specified"));
        } else if expression.len() > ANNOTATION_BYTES_MAX {
            r.add(value.required(format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length")));
        } else {
            expressions.check_annotation(r, &value);
        }
        r.when(!seen.insert(key.str()), || key.duplicate_str());
    }
}

fn validation_rule(r: &mut Report, at: &At<'_>, expressions: &Expressions) {
    let (expression, message) = (at.get("expression"), at.get("message"));
    if expression.str().trim().is_empty() {
        r.add(expression.required("expression is not specified"));
    } else {
        expressions.check(r, &expression, expression.str(), Returns::Bool);
    }
    let computed = at.get("messageExpression");
    let blank = |at: &At<'_>| !at.is_empty() && at.str().trim().is_empty();
    if blank(&computed) {
        r.add(computed.invalid("must be non-empty if specified"));
    } else if !computed.is_empty() {
        expressions.check_message(r, &computed, computed.str());
    }
    if blank(&message) {
        r.add(message.invalid("must be non-empty if specified"));
    } else {
        r.when(message.str().trim().contains(['\n', '\r']), || {
            message.invalid("must not contain line breaks")
        });
    }
    r.optional_one_of(&at.get("reason"), &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
}

fn policy_status(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    for warning in new.down("status.typeChecking.expressionWarnings").items() {
        r.required(&warning.get("warning"));
        let field = warning.get("fieldRef");
        r.when(field.str().trim().is_empty(), || field.required(""));
    }
    conditions(r, &new.down("status.conditions"));
}

fn param_ref(r: &mut Report, at: &At<'_>) {
    const BOTH: &str = "name and selector are mutually exclusive";
    if !at.is_set() {
        return;
    }
    let (name, selector) = (at.get("name"), at.get("selector"));
    if !name.is_empty() {
        r.each(&name, names::path_segment(name.str()));
        r.when(selector.is_set(), || name.forbidden(BOTH));
    }
    if selector.is_set() {
        r.selector(&selector, SelectorOptions::default());
        r.when(!name.is_empty(), || selector.forbidden(BOTH));
    }
    r.when(name.is_empty() && !selector.is_set(), || {
        at.required("one of name or selector must be specified")
    });
    r.required_one_of(&at.get("parameterNotFoundAction"), &["Deny", "Allow"]);
}

fn binding(r: &mut Report, object: &At<'_>) {
    meta::plain_create(r, object, Scope::Cluster, NameRule::Subdomain);
    let spec = object.get("spec");
    r.required_subdomain(&spec.get("policyName"));
    param_ref(r, &spec.get("paramRef"));
    let matched = spec.get("matchResources");
    if matched.is_set() {
        match_resources(r, &matched);
    }
}

fn validating_binding(r: &mut Report, object: &At<'_>) {
    binding(r, object);
    let list = object.down("spec.validationActions");
    let mut seen = BTreeSet::new();
    for action in list.items() {
        r.one_of(&action, &["Audit", "Deny", "Warn"]);
        r.when(!seen.insert(action.str()), || action.duplicate());
    }
    r.when(seen.contains("Deny") && seen.contains("Warn"), || {
        list.invalid("must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
    });
    r.when(seen.is_empty(), || list.required("at least one validation action is required"));
}

fn validating_binding_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    validating_binding(r, new);
}

fn mutating_operations(r: &mut Report, at: &At<'_>) {
    let rules = at.get("resourceRules");
    for rule in rules.items() {
        for operation in rule.get("operations").items() {
            let at = operation.named(rules.path.child("operations"));
            r.one_of(&at, &["*", "CONNECT", "CREATE", "UPDATE"]);
        }
    }
}

fn mutating_policy(r: &mut Report, object: &At<'_>) {
    mutating(r, object, true);
}

fn mutating_policy_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    mutating(r, new, conditions_changed(new, old));
}

fn mutating(r: &mut Report, object: &At<'_>, with_conditions: bool) {
    meta::plain_create(r, object, Scope::Cluster, NameRule::Subdomain);
    let spec = object.get("spec");
    policy_head(r, &spec);
    mutating_operations(r, &spec.get("matchConstraints"));
    let params = spec.get("paramKind").is_set();
    if with_conditions {
        match_conditions(r, &spec.get("matchConditions"), &Expressions::plain(params));
    }
    let mut expressions = Expressions::composed(params);
    variables(r, &spec.get("variables"), &mut expressions);
    let mutations = spec.get("mutations");
    r.when(mutations.is_empty(), || mutations.required("mutations must contain at least one item"));
    for mutation in mutations.items() {
        mutation_rule(r, &mutation, &expressions);
    }
    r.required_one_of(&spec.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
}

fn mutation_rule(r: &mut Report, at: &At<'_>, expressions: &Expressions) {
    let kind = at.get("patchType");
    let (wanted, other, returns) = match kind.str() {
        "" => return r.add(kind.required("")),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Returns::Patches),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Returns::Object),
        _ => return r.add(kind.unsupported(&["ApplyConfiguration", "JSONPatch"])),
    };
    let (wanted, other) = (at.get(wanted), at.get(other));
    if wanted.is_set() {
        let expression = wanted.get("expression");
        match expression.str().trim() {
            "" => r.add(expression.required("")),
            source => expressions.check_patch(r, &expression, source, returns),
        }
    } else {
        r.add(wanted.required(format!("must be specified when patchType is {}", kind.str())));
    }
    r.when(other.is_set(), || {
        let name = other.path.as_str().rsplit('.').next().unwrap_or("").to_owned();
        other.invalid_with(
            format!("\"{{{name}}}\""),
            format!("must not be specified when patchType is {}", kind.str()),
        )
    });
}

fn mutating_binding(r: &mut Report, object: &At<'_>) {
    binding(r, object);
    mutating_operations(r, &object.down("spec.matchResources"));
}

fn mutating_binding_update(r: &mut Report, new: &At<'_>, _old: &At<'_>) {
    mutating_binding(r, new);
}
