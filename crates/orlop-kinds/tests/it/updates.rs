//! Recorded updates of built-in kinds, by `PUT` and by merge patch, with the object as the step before left it.

use crate::validation::{FOREIGN, UID, corpus, expand, expected_causes};
use orlop_kinds::catalog::catalog;
use orlop_kinds::validate::{self, Kind};
use orlop_kinds::{codec, defaults};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;

const CHAPTERS: [&str; 8] =
    ["update", "crud", "metadata", "subresources", "patch-merge", "deletion", "dryrun", "leases-events"];

/// Steps that cannot be judged here: the server compares the raw bytes of a ControllerRevision's data, and
/// admission completes the specs of pods that are put.
const ELSEWHERE: [&str; 4] = [
    "crud.life-controllerrevision#6",
    "crud.life-controllerrevision#7",
    "update.status-pod#1",
    "update.status-pod#4",
];

/// An update and what the server found wrong with it.
struct Update {
    id: String,
    kind: (String, String, String),
    part: String,
    new: Value,
    old: Value,
    causes: Vec<(String, String)>,
}

#[test]
fn recorded_updates_are_judged_as_recorded() {
    let Some(directory) = std::env::var_os("ORLOP_PARITY") else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: recorded_updates_are_judged_as_recorded (ORLOP_PARITY is not set)"
        );
        return;
    };
    let (mut checked, mut wrong) = (0, Vec::new());
    for case in corpus(std::path::Path::new(&directory), &CHAPTERS) {
        for update in updates(&case) {
            if ELSEWHERE.contains(&update.id.as_str()) {
                continue;
            }
            checked += 1;
            let (group, version, kind) = &update.kind;
            let kind = Kind { group, version, kind };
            let found: Vec<(String, String)> =
                validate::update(&kind, &update.part, &update.new, &update.old)
                    .iter()
                    .map(|e| (e.path.as_str().to_owned(), e.body()))
                    .collect();
            if found != update.causes {
                wrong.push(format!("{}\n  expected {:#?}\n  found {found:#?}", update.id, update.causes));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} updates differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 0, "the corpus has no updates");
}

/// Gives placeholders of recorded answers a form that decodes.
fn concrete(value: &Value) -> Option<Value> {
    let mut text = expand(&value.to_string());
    for (placeholder, stand_in) in [
        ("<time>", "2026-01-01T00:00:00Z"),
        ("<microtime>", "2026-01-01T00:00:00.000000Z"),
        ("<ip>", "10.0.0.9"),
        ("<rv>", "7"),
    ] {
        text = text.replace(placeholder, stand_in);
    }
    for number in 1..9 {
        text = text.replace(&format!("<uid:{number}>"), UID).replace(&format!("<rv:{number}>"), "7");
    }
    serde_json::from_str(&text).ok()
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(map) = target.as_object_mut() {
                map.remove(key);
            }
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

fn updates(case: &Value) -> Vec<Update> {
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let mut out = Vec::new();
    for (index, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        let Some(path) = step["p"].as_str().map(expand) else { continue };
        let answer = concrete(&step["exp"]["body"]).unwrap_or_default();
        let status = step["exp"]["status"].as_u64().unwrap_or(0);
        let id = format!("{}#{index}", case["id"].as_str().unwrap_or(""));
        let dry = !step["q"].is_null();
        match step["m"].as_str() {
            Some("PUT" | "PATCH") if !dry && [200, 422].contains(&status) => {
                out.extend(update(&id, step, &path, &objects, &answer, status));
            }
            _ => {}
        }
        let whole =
            answer["metadata"]["uid"].is_string() && answer["kind"].is_string() && step["pick"].is_null();
        match (step["m"].as_str(), status) {
            (Some("POST"), 201) if whole && !dry => {
                let name = answer["metadata"]["name"].as_str().unwrap_or("").to_owned();
                objects.insert(format!("{path}/{name}"), answer);
            }
            (Some("PUT" | "PATCH" | "GET"), 200) if whole && !dry => {
                let main = main_path(&path).0;
                if answer["kind"] != "Scale" {
                    objects.insert(main, answer);
                }
            }
            (Some("GET"), _) => {}
            // What happened to the object is not known.
            _ if !dry && status != 422 && status != 409 => {
                objects.remove(&main_path(&path).0);
            }
            _ => {}
        }
    }
    out
}

/// The path of the object, and the subresource.
fn main_path(path: &str) -> (String, String) {
    for part in ["status", "scale", "resize", "ephemeralcontainers", "finalize", "approval"] {
        if let Some(main) = path.strip_suffix(&format!("/{part}")) {
            return (main.to_owned(), part.to_owned());
        }
    }
    (path.to_owned(), String::new())
}

fn update(
    id: &str,
    step: &Value,
    path: &str,
    objects: &BTreeMap<String, Value>,
    answer: &Value,
    status: u64,
) -> Option<Update> {
    let (main, part) = main_path(path);
    let recorded = objects.get(&main)?;
    if part == "scale" {
        return None;
    }
    let (group, version) = match recorded["apiVersion"].as_str()?.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), recorded["apiVersion"].as_str()?.to_owned()),
    };
    let kind = recorded["kind"].as_str()?.to_owned();
    let ty = catalog().type_of(&group, &version, &kind)?;
    let body = concrete(&step["b"])?;
    if body.to_string().contains("${") || !body.is_object() {
        return None;
    }
    let mut raw = recorded.clone();
    match step["m"].as_str()? {
        "PUT" => raw = body,
        _ if step["h"]["Content-Type"] == "application/merge-patch+json" => merge(&mut raw, &body),
        _ => return None,
    }
    let decode = |value: Value| {
        let mut value = codec::decode(ty, value).ok()?.value;
        defaults::default_object(ty, &mut value);
        if let Some(meta) = value["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        Some(value)
    };
    let (mut new, old) = (decode(raw)?, decode(recorded.clone())?);
    prepare(&mut new, &old, &part, &kind);
    let causes = if status == 422 { expected_causes(answer) } else { Vec::new() };
    let foreign = causes.iter().any(|(field, message)| {
        field == "patch"
            || FOREIGN.iter().any(|f| message.contains(f))
            || message.starts_with("Invalid value: 0: must be specified")
    });
    if foreign || (status == 422 && answer["reason"] != "Invalid") {
        return None;
    }
    Some(Update { id: id.to_owned(), kind: (group, version, kind), part, new, old, causes })
}

/// What the API server sets before it validates an update.
fn prepare(new: &mut Value, old: &Value, part: &str, kind: &str) {
    let has_status = !["ConfigMap", "Secret", "CSINode", "Event", "Lease"].contains(&kind);
    if part == "status" {
        let mut whole = old.clone();
        whole["status"] = new["status"].clone();
        whole["metadata"] = new["metadata"].clone();
        if whole["status"]["qosClass"].is_null() && !old["status"]["qosClass"].is_null() {
            whole["status"]["qosClass"] = old["status"]["qosClass"].clone();
        }
        *new = whole;
    } else if has_status && !old["status"].is_null() {
        new["status"] = old["status"].clone();
    }
    let meta = &mut new["metadata"];
    for key in ["creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if !old["metadata"][key].is_null() {
            meta[key] = old["metadata"][key].clone();
        }
    }
    for key in ["uid", "resourceVersion", "name", "namespace"] {
        if meta[key].is_null() && !old["metadata"][key].is_null() {
            meta[key] = old["metadata"][key].clone();
        }
    }
    if kind == "Service" && part.is_empty() {
        let spec = &mut new["spec"];
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec[key].is_null() && spec["type"] != "ExternalName" {
                spec[key] = old["spec"][key].clone();
            }
        }
        let first = spec["clusterIP"].clone();
        if old["spec"]["clusterIP"] != first
            && first.is_string()
            && old["spec"]["clusterIPs"] == spec["clusterIPs"]
        {
            spec["clusterIPs"] = json!([first]);
        }
    }
}
