//! Recorded creates of built-in kinds: what was refused must be refused for the same causes, what was accepted
//! must be accepted. `ORLOP_PARITY` names the directory of the corpus; without it the test is skipped.

use flate2::read::GzDecoder;
use orlop_kinds::catalog::catalog;
use orlop_kinds::validate::{self, Kind};
use orlop_kinds::{codec, defaults};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;

/// Chapters whose creates are about validation, defaulting and storage, without webhooks or policies.
const CHAPTERS: [&str; 10] = [
    "validation",
    "metadata",
    "update",
    "crud",
    "subresources",
    "fieldvalidation",
    "dryrun",
    "defaulting",
    "leases-events",
    "deletion",
];

/// Words of causes that come from elsewhere: allocation of addresses, admission, expressions.
pub(crate) const FOREIGN: [&str; 7] = [
    "failed to allocate",
    "compilation failed",
    "must evaluate to",
    "provided port is not in the valid range",
    "provided port is already allocated",
    "<gen",
    "exceeded quota",
];

/// The uid that objects of the test have.
pub(crate) const UID: &str = "11111111-2222-3333-4444-555555555556";

/// Cases that decoding makes impossible: an empty map is not told from a missing one.
const KNOWN: [&str; 1] = ["metadata.template-labels-and-annotations-are-validated-too#2"];

struct Create {
    id: String,
    kind: (String, String, String),
    object: Value,
    causes: Vec<(String, String)>,
    warnings: Vec<String>,
}

#[test]
fn recorded_creates_are_judged_as_recorded() {
    let Some(directory) = std::env::var_os("ORLOP_PARITY") else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: recorded_creates_are_judged_as_recorded (ORLOP_PARITY is not set)"
        );
        return;
    };
    let (mut checked, mut wrong) = (0, Vec::new());
    for create in creates(Path::new(&directory)) {
        if KNOWN.contains(&create.id.as_str()) {
            continue;
        }
        checked += 1;
        let (group, version, kind) = &create.kind;
        let kind = Kind { group, version, kind };
        let found: Vec<(String, String)> = validate::create(&kind, &create.object)
            .iter()
            .map(|e| (e.path.as_str().to_owned(), e.body()))
            .collect();
        if found != create.causes {
            wrong.push(format!("{}\n  expected {:#?}\n  found {found:#?}", create.id, create.causes));
            continue;
        }
        let mut warnings = validate::warnings(&kind, &create.object, None);
        warnings.sort_unstable();
        if create.causes.is_empty() && warnings != create.warnings {
            wrong.push(format!("{}\n  expected {:#?}\n  found {warnings:#?}", create.id, create.warnings));
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} creates differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 0, "the corpus has no creates");
}

/// All cases of some chapters that need no controllers.
pub(crate) fn corpus(directory: &Path, chapters: &[&str]) -> Vec<Value> {
    let mut out = Vec::new();
    for chapter in chapters {
        let path = directory.join("cases").join(format!("{chapter}.jsonl.gz"));
        let Ok(file) = std::fs::File::open(path) else { continue };
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        out.extend(
            lines.map(|line| -> Value { serde_json::from_str(&line.expect("a line")).expect("JSON") }),
        );
    }
    out.retain(|case| case["profile"].as_str() != Some("kcm"));
    out
}

fn creates(directory: &Path) -> Vec<Create> {
    let mut out = Vec::new();
    for case in corpus(directory, &CHAPTERS) {
        for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
            out.extend(create(&format!("{}#{index}", case["id"].as_str().unwrap_or("")), step));
        }
    }
    out
}

/// The causes of a refusal: field and message.
pub(crate) fn expected_causes(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let causes = answer["details"]["causes"].as_array();
    causes.into_iter().flatten().map(|c| (text(&c["field"]), text(&c["message"]))).collect()
}

/// Writes out `${U}` and `${rep:text:count}`.
pub(crate) fn expand(text: &str) -> String {
    let mut text = text.replace("<uid:1>", UID).replace("${U}", "u0").replace("${NS}", "ns-u0");
    while let Some(start) = text.find("${rep:") {
        let Some(end) = text[start..].find('}').map(|e| start + e) else { break };
        let Some((unit, count)) = text[start + 6..end].rsplit_once(':') else { break };
        let repeated = unit.repeat(count.parse().unwrap_or(0));
        text.replace_range(start..=end, &repeated);
    }
    text
}

fn create(id: &str, step: &Value) -> Option<Create> {
    let status = step["exp"]["status"].as_u64()?;
    let dry_or_plain =
        step["q"].as_object().is_none_or(|q| q.iter().all(|(key, value)| key == "dryRun" && value == "All"));
    if step["m"] != "POST" || !dry_or_plain || step["score"] == false {
        return None;
    }
    let path = expand(step["p"].as_str()?);
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, resource) = match rest {
        ["namespaces", namespace, resource] => (Some(*namespace), *resource),
        [resource] => (None, *resource),
        _ => return None,
    };
    let known = catalog().resource(group, version, resource)?;
    let text = match &step["raw"] {
        Value::String(raw) => expand(raw),
        _ => expand(&step["b"].to_string()),
    };
    let body: Value = serde_json::from_str(&text).ok()?;
    let answer: Value = serde_json::from_str(&expand(&step["exp"]["body"].to_string())).ok()?;
    let refused = status == 422 && answer["reason"] == "Invalid";
    if !(refused || status == 201) || body["kind"] != known.kind.as_str() {
        return None;
    }
    let causes = expected_causes(&answer);
    if causes.iter().any(|(_, message)| FOREIGN.iter().any(|f| message.contains(f))) {
        return None;
    }
    let ty = catalog().type_of(group, version, &known.kind)?;
    let mut object = codec::decode(ty, body).ok()?.value;
    defaults::default_object(ty, &mut object);
    prepare(&mut object, namespace, &known.kind);
    let warnings: Vec<String> = step["exp"]["headers"]["warning"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(unquoted)
        .filter(|w| {
            !w.contains("unknown field") && !w.contains("duplicate field") && !w.contains("deprecated in v1")
        })
        .collect();
    let kind = (group.to_owned(), version.to_owned(), known.kind.clone());
    let mut warnings: Vec<String> = warnings;
    warnings.sort_unstable();
    Some(Create { id: id.to_owned(), kind, object, causes, warnings })
}

/// The text of a `Warning` header.
fn unquoted(header: &str) -> String {
    let text = header.strip_prefix("299 - \"").and_then(|h| h.strip_suffix('"')).unwrap_or(header);
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// What the strategies of the API server do before they validate.
fn prepare(object: &mut Value, namespace: Option<&str>, kind: &str) {
    let meta = &mut object["metadata"];
    if let Some(namespace) = namespace {
        meta["namespace"] = json!(namespace);
    }
    if meta["name"].as_str().unwrap_or("").is_empty()
        && let Some(prefix) = meta["generateName"].as_str().filter(|p| !p.is_empty())
    {
        meta["name"] = json!(format!("{prefix}abcde"));
    }
    meta["uid"] = json!(UID);
    let name = meta["name"].clone();
    if kind != "Node"
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
    }
    if kind == "Service" {
        let spec = &mut object["spec"];
        if spec["clusterIPs"].is_null() && spec["clusterIP"].as_str().is_some_and(|ip| !ip.is_empty()) {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        let local = spec["externalTrafficPolicy"] == "Local" && spec["type"] == "LoadBalancer";
        if local && spec["healthCheckNodePort"].as_u64().unwrap_or(0) == 0 {
            spec["healthCheckNodePort"] = json!(30000);
        }
    }
    if kind == "Secret" {
        for (key, value) in object["stringData"].as_object().cloned().unwrap_or_default() {
            let bytes = value.as_str().unwrap_or("").as_bytes();
            object["data"][key] = json!(codec::base64::encode(bytes));
        }
    }
    if kind == "Job" && object["spec"]["manualSelector"] != true {
        let labels = &mut object["spec"]["template"]["metadata"]["labels"];
        for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
            labels[key] = json!(UID);
        }
        for key in ["job-name", "batch.kubernetes.io/job-name"] {
            labels[key] = name.clone();
        }
        object["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = json!(UID);
    }
}
