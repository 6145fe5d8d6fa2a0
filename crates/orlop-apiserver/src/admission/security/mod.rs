//! `PodSecurity`: labels of a namespace say how far its pods may reach, and whether more is refused or warned of.

mod checks;

use super::{Attributes, Operation};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use checks::{Finding, Pod, find};
use orlop_schema::field::{FieldError, Path};
use serde_json::Value;
use std::collections::BTreeMap;

const LABEL: &str = "pod-security.kubernetes.io/";
/// Pods that are looked at when a namespace becomes stricter.
const PODS_MAX: usize = 3000;
/// Subresources that do not change what a pod may do.
const HARMLESS: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// How far pods may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level as one version of Kubernetes, or the newest, understood it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    /// None is the newest.
    minor: Option<u32>,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            Some(minor) => write!(f, "{level}:v1.{minor}"),
            None => write!(f, "{level}:latest"),
        }
    }
}

/// What the labels of a namespace ask for.
struct Policy {
    enforce: Standard,
    warn: Standard,
    errors: Vec<FieldError>,
}

impl Policy {
    fn of(namespace: &Value) -> Self {
        let labels: BTreeMap<&str, &str> = object::labels(namespace).collect();
        let label = |name: &str| labels.get(format!("{LABEL}{name}").as_str()).copied();
        let mut errors = Vec::new();
        let mut wrong = |name: &str, value: &str, why: &str| {
            let path = Path::new("metadata").child("labels").key(&format!("{LABEL}{name}"));
            errors.push(FieldError::invalid(&path, &value.into(), why));
        };
        let mut read = |name: &str, otherwise: Level| {
            let mut standard = Standard { level: Level::Privileged, minor: None };
            if let Some(value) = label(name) {
                standard.level = parse_level(value).unwrap_or_else(|| {
                    wrong(name, value, "must be one of privileged, baseline, restricted");
                    otherwise
                });
            }
            let version = format!("{name}-version");
            if let Some(value) = label(&version) {
                standard.minor = parse_version(value).unwrap_or_else(|()| {
                    wrong(&version, value, "must be \"latest\" or \"v1.x\"");
                    None
                });
            }
            standard
        };
        let enforce = read("enforce", Level::Restricted);
        read("audit", Level::Privileged);
        let mut warn = read("warn", Level::Privileged);
        let enforced = label("enforce").is_some_and(|value| parse_level(value).is_some());
        if label("warn").is_none() && enforced && enforce.level > warn.level {
            warn.level = enforce.level;
            if label("warn-version").is_none() {
                warn.minor = enforce.minor;
            }
        }
        Self { enforce, warn, errors }
    }
}

fn parse_level(text: &str) -> Option<Level> {
    Some(match text {
        "privileged" => Level::Privileged,
        "baseline" => Level::Baseline,
        "restricted" => Level::Restricted,
        _ => return None,
    })
}

/// The minor version, or none for the newest.
fn parse_version(text: &str) -> Result<Option<u32>, ()> {
    if text == "latest" {
        return Ok(None);
    }
    let digits = text.strip_prefix("v1.").ok_or(())?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    if plain { digits.parse().map(Some).map_err(|_| ()) } else { Err(()) }
}

/// Refuses or warns of what the namespace does not want.
pub(super) fn validate(server: &Inner, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
    if !matches!(attributes.operation, Operation::Create | Operation::Update) {
        return Ok(());
    }
    match (kind.group.as_str(), kind.plural.as_str(), attributes.subresource.as_str()) {
        ("", "namespaces", "") => validate_namespace(server, kind, attributes),
        ("", "pods", part) if !HARMLESS.contains(&part) => {
            let significant = attributes.operation == Operation::Create
                || is_significant(&attributes.object, &attributes.old);
            if !significant {
                return Ok(());
            }
            let Some(policy) = policy_of(server, attributes) else { return Ok(()) };
            let pod = Pod { metadata: &attributes.object["metadata"], spec: &attributes.object["spec"] };
            let found = find(policy.enforce, pod);
            if !found.is_empty() {
                let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&found));
                return Err(ApiError::forbidden(&kind.group, &kind.plural, &attributes.name, &why));
            }
            warn(attributes, policy.warn, &[]);
            Ok(())
        }
        (_, _, "") => {
            if let Some(path) = template(kind)
                && let Some(policy) = policy_of(server, attributes)
            {
                warn(attributes, policy.warn, path);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Where a kind keeps the pods that it makes.
fn template(kind: &Kind) -> Option<&'static [&'static str]> {
    Some(match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    })
}

fn policy_of(server: &Inner, attributes: &Attributes) -> Option<Policy> {
    let namespaces = Inner::built_in("", "v1", "namespaces");
    server.find(&namespaces, "", &attributes.namespace).map(|namespace| Policy::of(&namespace))
}

fn details(found: &[Finding]) -> String {
    let parts: Vec<String> =
        found.iter().map(|finding| format!("{} ({})", finding.reason, finding.detail)).collect();
    parts.join(", ")
}

fn warn(attributes: &mut Attributes, standard: Standard, path: &[&str]) {
    let pod = path.iter().fold(&attributes.object, |value, step| &value[*step]);
    if !pod.is_object() {
        return;
    }
    let found = find(standard, Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
    if !found.is_empty() {
        let text = format!("would violate PodSecurity \"{standard}\": {}", details(&found));
        attributes.warn(text);
    }
}

/// Whether an update brings other images or containers.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let list = |pod: &Value, field: &str| pod["spec"][field].as_array().cloned().unwrap_or_default();
    for field in ["containers", "initContainers"] {
        let (new, old) = (list(pod, field), list(old, field));
        let same = |(a, b): (&Value, &Value)| a["image"] == b["image"];
        if new.len() != old.len() || !new.iter().zip(&old).all(same) {
            return true;
        }
    }
    let known = list(old, "ephemeralContainers");
    list(pod, "ephemeralContainers").iter().any(|container| {
        let before = known.iter().find(|other| other["name"] == container["name"]);
        before.is_none_or(|before| before["image"] != container["image"])
    })
}

fn validate_namespace(server: &Inner, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
    let new = Policy::of(&attributes.object);
    let refuse =
        |errors: &[FieldError]| Err(ApiError::invalid(&kind.group, &kind.kind, &attributes.name, errors));
    if attributes.operation == Operation::Create {
        return if new.errors.is_empty() { Ok(()) } else { refuse(&new.errors) };
    }
    let old = Policy::of(&attributes.old);
    if !new.errors.is_empty() && new.errors != old.errors {
        return refuse(&new.errors);
    }
    let milder = new.enforce.minor == old.enforce.minor && new.enforce.level <= old.enforce.level;
    if new.enforce == old.enforce || new.enforce.level == Level::Privileged || milder {
        return Ok(());
    }
    for warning in warnings_of_pods(server, &attributes.name, new.enforce) {
        attributes.warn(warning);
    }
    Ok(())
}

/// What is said of pods that are there already.
fn warnings_of_pods(server: &Inner, namespace: &str, standard: Standard) -> Vec<String> {
    let pods = Inner::built_in("", "v1", "pods");
    let stored = server.stored_within(&pods, namespace);
    let mut by_reason: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in stored.iter().take(PODS_MAX).map(|stored| pods.read(stored)) {
        let found = find(standard, Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
        let reasons: Vec<&str> = found.iter().map(|finding| finding.reason.as_str()).collect();
        if !reasons.is_empty() {
            let name = object::meta_str(&pod, "name").to_owned();
            by_reason.entry(reasons.join(", ")).or_insert((name, 0)).1 += 1;
        }
    }
    let mut warnings = Vec::new();
    if stored.len() > PODS_MAX {
        let total = stored.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {total} existing pods"
        ));
    }
    if !by_reason.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut pods: Vec<String> = by_reason
        .into_iter()
        .map(|(reason, (name, count))| match count {
            1 => format!("{name}: {reason}"),
            2 => format!("{name} (and 1 other pod): {reason}"),
            more => format!("{name} (and {} other pods): {reason}", more - 1),
        })
        .collect();
    pods.sort();
    warnings.append(&mut pods);
    warnings
}
