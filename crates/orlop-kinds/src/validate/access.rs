//! Reviews of tokens and access, token requests, certificate signing requests, API services.

use super::Rules;
use super::meta::{self, Scope};
use super::pod::volume::{signer_name, token_seconds};
use super::view::{At, Report};
use orlop_schema::field::{FieldError, Path};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule};
use serde_json::Value;
use std::collections::BTreeSet;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

pub(super) const RULES: &[Rules] = &[
    Rules::review(AUTHENTICATION, "TokenRequest", Scope::Namespaced, token_request),
    Rules::review(AUTHENTICATION, "TokenReview", Scope::Cluster, token_review),
    Rules::review(AUTHORIZATION, "SubjectAccessReview", Scope::Cluster, subject_review),
    Rules::review(AUTHORIZATION, "SelfSubjectAccessReview", Scope::Cluster, self_review),
    Rules::review(AUTHORIZATION, "LocalSubjectAccessReview", Scope::Namespaced, local_review),
    Rules::new(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        Scope::Cluster,
        signing_request,
        signing_request_update,
        &[("status", signing_request_status), ("approval", signing_request_approval)],
    ),
    Rules::new(
        "apiregistration.k8s.io",
        "APIService",
        Scope::Cluster,
        api_service,
        api_service_update,
        &[("status", api_service_status)],
    ),
];

fn token_request(r: &mut Report, object: &At<'_>) {
    token_seconds(r, &object.down("spec.expirationSeconds"));
}

fn token_review(r: &mut Report, object: &At<'_>) {
    let token = object.down("spec.token");
    r.when(token.is_empty(), || token.required("token is required for TokenReview in authentication"));
}

fn is_bare(meta: &At<'_>, but: &[&str]) -> bool {
    let kept = |value: &Value| match value {
        Value::Null => false,
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
        Value::Number(n) => n.as_i64() != Some(0),
        Value::Bool(b) => *b,
    };
    meta.value
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| but.contains(&key.as_str()) || !kept(value))
}

fn review(r: &mut Report, object: &At<'_>, needs_subject: bool) {
    let spec = object.get("spec");
    let (resource, other) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    r.when(resource.is_set() && other.is_set(), || {
        other.invalid_as(
            "authorization.NonResourceAttributes",
            "cannot be specified in combination with resourceAttributes",
        )
    });
    r.when(!resource.is_set() && !other.is_set(), || {
        resource.invalid_with(
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
    });
    let user = spec.get("user");
    r.when(needs_subject && user.is_empty() && spec.get("groups").is_empty(), || {
        user.invalid_str("at least one of user or group must be specified")
    });
    if resource.is_set() {
        let path = Path::new("spec.resourceAttributes");
        selector_attributes(r, &resource.get("fieldSelector").named(path.child("fieldSelector")), false);
        selector_attributes(r, &resource.get("labelSelector").named(path.child("labelSelector")), true);
    }
}

fn selector_attributes(r: &mut Report, at: &At<'_>, is_labels: bool) {
    if !at.is_set() {
        return;
    }
    let (raw, requirements) = (at.get("rawSelector"), at.get("requirements"));
    r.when(!raw.is_empty() && !requirements.is_empty(), || {
        raw.invalid("may not specified at the same time as requirements")
    });
    r.when(raw.is_empty() && requirements.is_empty(), || {
        requirements
            .required(format!("when {} is specified, requirements or rawSelector is required", at.path))
    });
    let lenient = SelectorOptions { any_value: false, any_operator: true };
    for rule in requirements.items() {
        if is_labels {
            r.extend(labels::requirement(&rule.path, rule.value, lenient));
            continue;
        }
        let (key, values) = (rule.get("key"), rule.get("values"));
        r.when(key.is_empty(), || key.required("must be specified"));
        match rule.get("operator").str() {
            "In" | "NotIn" => r.when(values.is_empty(), || {
                values.required("must be specified when `operator` is 'In' or 'NotIn'")
            }),
            "Exists" | "DoesNotExist" => r.when(!values.is_empty(), || {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            }),
            _ => {}
        }
    }
}

fn subject_review(r: &mut Report, object: &At<'_>) {
    review(r, object, true);
    metadata_is_empty(r, object, &["managedFields"], "must be empty");
}

fn self_review(r: &mut Report, object: &At<'_>) {
    review(r, object, false);
    metadata_is_empty(r, object, &["managedFields"], "must be empty");
}

fn metadata_is_empty(r: &mut Report, object: &At<'_>, but: &[&str], words: &str) {
    let meta = object.get("metadata");
    r.when(!is_bare(&meta, but), || meta.invalid_as("meta.ObjectMeta", words));
}

fn local_review(r: &mut Report, object: &At<'_>) {
    review(r, object, true);
    metadata_is_empty(r, object, &["managedFields", "namespace"], "must be empty except for namespace");
    let resource = object.down("spec.resourceAttributes");
    let namespace = resource.get("namespace").named(Path::new("spec.resourceAttributes.namespace"));
    r.when(resource.is_set() && namespace.str() != object.down("metadata.namespace").str(), || {
        namespace.invalid_str("must match metadata.namespace")
    });
    let other = object.down("spec.nonResourceAttributes").named(Path::new("spec.nonResourceAttributes"));
    r.when(other.is_set(), || {
        other.invalid_as("authorization.NonResourceAttributes", "disallowed on this kind of request")
    });
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Who changes a certificate signing request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Through {
    Object,
    Status,
    Approval,
}

fn signing_request(r: &mut Report, object: &At<'_>) {
    request(r, object, None);
}

fn request(r: &mut Report, object: &At<'_>, old: Option<&At<'_>>) {
    const LEGACY: &str = "kubernetes.io/legacy-unknown";
    meta::create(r, object, Scope::Cluster, NameRule::Any);
    let spec = object.get("spec");
    pem_request(r, &spec.get("request"));
    let usages = spec.get("usages");
    r.required(&usages);
    let before = old.map(|o| o.down("spec.usages").strings()).unwrap_or_default();
    if before.iter().all(|u| USAGES.contains(u)) {
        for usage in usages.items() {
            r.one_of(&usage, &USAGES);
        }
    }
    let repeats = |list: &[&str]| list.iter().collect::<BTreeSet<_>>().len() != list.len();
    if !repeats(&before) {
        let mut seen = BTreeSet::new();
        for usage in usages.items() {
            r.when(!seen.insert(usage.str()), || usage.duplicate());
        }
    }
    let signer = spec.get("signerName");
    if signer.str() == LEGACY && old.is_none_or(|o| o.down("spec.signerName").str() != LEGACY) {
        r.add(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        signer_name(r, &signer);
    }
    let seconds = spec.get("expirationSeconds");
    r.when(seconds.is_set() && seconds.int() < 600, || {
        seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)")
    });
    request_conditions(r, &object.down("status.conditions"), old);
    let certificate = object.down("status.certificate");
    if old.is_none_or(|o| o.down("status.certificate").value != certificate.value) {
        pem_certificate(r, &certificate);
    }
}

fn pem_text(at: &At<'_>) -> String {
    let bytes = crate::codec::base64::decode(at.str()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pem_request(r: &mut Report, at: &At<'_>) {
    let text = pem_text(at);
    let begins = ["-----BEGIN CERTIFICATE REQUEST-----", "-----BEGIN NEW CERTIFICATE REQUEST-----"];
    if !begins.iter().any(|begin| text.contains(begin)) {
        r.add(at.invalid_with(
            if at.is_set() { at.value.to_string() } else { "null".to_owned() },
            "PEM block type must be CERTIFICATE REQUEST",
        ));
    }
}

fn pem_certificate(r: &mut Report, at: &At<'_>) {
    if at.is_empty() {
        return;
    }
    let text = pem_text(at);
    let kinds: Vec<&str> =
        text.lines().filter_map(|l| l.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----")).collect();
    let words = match kinds.iter().find(|kind| **kind != "CERTIFICATE") {
        Some(kind) => {
            format!("only CERTIFICATE PEM blocks are allowed, found {}", orlop_schema::field::go_quote(kind))
        }
        None if kinds.is_empty() => "must contain at least one CERTIFICATE PEM block".to_owned(),
        None => return,
    };
    r.add(at.invalid_with("\"<certificate data>\"", words));
}

fn request_conditions(r: &mut Report, list: &At<'_>, old: Option<&At<'_>>) {
    let before = old.map(|o| o.down("status.conditions").items()).unwrap_or_default();
    let kinds: Vec<&str> = before.iter().map(|c| c.get("type").str()).collect();
    let any_empty = kinds.contains(&"");
    let any_both = kinds.contains(&"Approved") && kinds.contains(&"Denied");
    let any_twice = kinds.iter().collect::<BTreeSet<_>>().len() != kinds.len();
    let mut seen = BTreeSet::new();
    for condition in list.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if !any_empty {
            r.required(&kind);
        }
        let allowed: &[&str] = if ["Approved", "Denied", "Failed"].contains(&kind.str()) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        r.required_one_of(&status, allowed);
        let rival = match kind.str() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        r.when(!any_both && !rival.is_empty() && seen.contains(rival), || {
            kind.named(list.path.clone()).invalid("Approved and Denied conditions are mutually exclusive")
        });
        let twice = !seen.insert(kind.str());
        r.when(twice && !any_twice, || kind.duplicate_str());
    }
}

fn change(r: &mut Report, new: &At<'_>, old: &At<'_>, through: Through) {
    request(r, new, Some(old));
    let conditions = new.down("status.conditions");
    let find = |at: &At<'_>, kind: &str| -> Vec<Value> {
        at.down("status.conditions")
            .items()
            .iter()
            .filter(|c| c.get("type").str() == kind)
            .map(|c| c.value.clone())
            .collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        r.when(find(new, kind).len() < find(old, kind).len(), || {
            conditions.forbidden(format!("updates may not remove a condition of type \"{kind}\""))
        });
    }
    if through != Through::Approval {
        for kind in ["Approved", "Denied"] {
            let (now, then) = (find(new, kind), find(old, kind));
            if now.len() > then.len() {
                r.add(conditions.forbidden(format!("updates may not add a condition of type \"{kind}\"")));
            } else if now.len() == then.len() && now != then {
                r.add(
                    conditions.forbidden(format!("updates may not modify a condition of type \"{kind}\"\n")),
                );
            }
        }
    }
    let (certificate, before) = (new.down("status.certificate"), old.down("status.certificate"));
    if certificate.str() != before.str() {
        if through == Through::Status {
            r.when(!before.is_empty(), || {
                certificate.forbidden("updates may not modify existing certificate content")
            });
        } else {
            r.add(certificate.forbidden("updates may not set certificate content"));
        }
    }
    meta::update(r, new, old);
}

fn signing_request_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    change(r, new, old, Through::Object);
}

fn signing_request_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    change(r, new, old, Through::Status);
}

fn signing_request_approval(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    change(r, new, old, Through::Approval);
}

fn api_service(r: &mut Report, object: &At<'_>) {
    let spec = object.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let required = format!("{}.{}", version.str(), group.str());
    let meta = object.get("metadata");
    let start = r.0.len();
    meta::plain_create(r, object, Scope::Cluster, NameRule::Any);
    let name = meta.get("name");
    if !name.is_empty() {
        let mut wrong = Report::default();
        wrong.each(&name, names::path_segment(name.str()));
        wrong.when(name.str() != required, || {
            name.invalid(format!("must be `spec.version+\".\"+spec.group`: \"{required}\""))
        });
        r.0.splice(start..start, wrong.0);
    }
    if !group.is_empty() {
        r.subdomain(&group);
    }
    r.each(&version, names::dns1035_label(version.str()));
    let (minimum, priority) = (spec.get("groupPriorityMinimum"), spec.get("versionPriority"));
    r.when(!(1..=20000).contains(&minimum.int()), || {
        minimum.invalid_int("must be positive and less than 20000")
    });
    r.when(!(1..=1000).contains(&priority.int()), || {
        priority.invalid_int("must be positive and less than 1000")
    });
    let service = spec.get("service");
    let (ca, insecure) = (spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    if !service.is_set() {
        r.when(!ca.is_empty(), || {
            ca.invalid_with(format!("\"{}\"", ca.str()), "local APIServices may not have a caBundle")
        });
        r.when(insecure.is_true(), || {
            insecure.invalid("local APIServices may not have insecureSkipTLSVerify")
        });
        return;
    }
    r.all_required(&service, &["namespace", "name"]);
    let port = service.get("port");
    let wrong = names::port_number(port.int());
    r.when(!wrong.is_empty(), || port.invalid_int(format!("port is not valid: {}", wrong.join(", "))));
    r.when(insecure.is_true() && !ca.is_empty(), || {
        FieldError::invalid(&insecure.path, &Value::Bool(true), "may not be true if caBundle is present")
    });
}

fn api_service_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::plain_update(r, new, old);
    api_service(r, new);
}

fn api_service_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::plain_update(r, new, old);
    let list = new.down("status.conditions");
    for condition in list.items() {
        r.one_of(&condition.get("status"), &["True", "False", "Unknown"]);
    }
}
