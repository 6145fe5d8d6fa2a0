//! Every recorded creation of a built-in kind comes out as the real server answered it.
//!
//! The recordings are in the directory named by `ORLOP_PARITY`; without it the test says so and passes.

use flate2::read::GzDecoder;
use orlop_kinds::{catalog::catalog, codec, conversion, defaults, strategy};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// What allocation and admission add, which is not this crate's work: kind and JSON pointer.
const BY_OTHERS: &[(&str, &str)] = &[
    ("Node", "/spec/taints"),
    ("PersistentVolumeClaim", "/spec/storageClassName"),
    ("Pod", "/spec/tolerations"),
    ("Pod", "/spec/priority"),
    ("Pod", "/spec/preemptionPolicy"),
    ("Service", "/spec/clusterIP"),
    ("Service", "/spec/clusterIPs"),
    ("Service", "/spec/healthCheckNodePort"),
    ("Service", "/spec/ipFamilies"),
    ("Service", "/spec/ipFamilyPolicy"),
];

#[test]
fn recorded_creations_come_out_as_recorded() {
    let Some(corpus) = std::env::var_os("ORLOP_PARITY") else {
        return skipped();
    };
    let (mut checked, mut wrong) = (0, Vec::new());
    for chapter in ["defaulting", "crud", "metadata", "update", "validation"] {
        let path = Path::new(&corpus).join("cases").join(format!("{chapter}.jsonl.gz"));
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.expect("readable").replace("${NS}", "ns-${U}");
            let case: Value = serde_json::from_str(&line).expect("a case");
            for step in case["steps"].as_array().into_iter().flatten() {
                if let Some(differences) = check(step) {
                    checked += 1;
                    let name = case["id"].as_str().unwrap_or_default();
                    wrong.extend(differences.iter().map(|difference| format!("{name}: {difference}")));
                }
            }
        }
    }
    assert!(checked > 100, "only {checked} creations found");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}

#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
fn skipped() {
    eprintln!("skipped: recorded_creations_come_out_as_recorded (ORLOP_PARITY is not set)");
}

/// The differences of one creation; nothing for steps that are no successful creation of a built-in kind.
fn check(step: &Value) -> Option<Vec<String>> {
    let (body, answer) = (step.get("b")?, &step["exp"]["body"]);
    // `${rep:a:63}` stands for a long text that the recording tool fills in.
    if body.to_string().contains("${rep:") {
        return None;
    }
    if step["m"] != "POST" || step["exp"]["status"] != 201 || step["q"].get("dryRun").is_some() {
        return None;
    }
    let path = step["p"].as_str()?.split('?').next()?;
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let ([resource] | ["namespaces", _, resource]) = rest else { return None };
    let resource = catalog().resource(group, version, resource)?;
    if answer["kind"] != resource.kind {
        return None;
    }
    let ty = catalog().type_of(group, version, &resource.kind)?;
    let mut object = match codec::decode(ty, body.clone()) {
        Ok(decoded) => decoded.value,
        Err(error) => return Some(vec![error.to_string()]),
    };
    let submitted = object.clone();
    defaults::default_object(ty, &mut object);
    conversion::convert(ty, &mut object);
    for key in ["name", "uid"] {
        if let Some(value) = answer["metadata"].get(key) {
            object["metadata"][key] = value.clone();
        }
    }
    let context = strategy::Context { now: "<time>", user: None, submitted: Some(&submitted) };
    strategy::prepare_create(group, version, &resource.kind, &mut object, &context);
    let mut object = codec::decode(ty, with_times(object, "<time>", TIME)).ok()?.value;
    codec::through_storage(ty, &mut object);
    defaults::default_object(ty, &mut object);
    let mut found = with_times(object, TIME, "<time>");
    let mut expected = answer.clone();
    for value in [&mut found, &mut expected] {
        forget(value, &resource.kind);
    }
    let mut differences = Vec::new();
    compare("", &expected, &found, &mut differences);
    Some(differences)
}

const TIME: &str = "1999-09-09T09:09:09Z";

fn with_times(mut value: Value, from: &str, to: &str) -> Value {
    match &mut value {
        Value::String(text) if text == from => return json!(to),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = with_times(item.take(), from, to)),
        Value::Object(map) => map.values_mut().for_each(|item| *item = with_times(item.take(), from, to)),
        _ => {}
    }
    value
}

/// Drops what others add, and all metadata but labels, annotations and the generation.
fn forget(object: &mut Value, kind: &str) {
    for (row, pointer) in BY_OTHERS {
        if *row == kind
            && let Some((parent, key)) = pointer.rsplit_once('/')
            && let Some(Value::Object(parent)) = object.pointer_mut(parent)
        {
            parent.remove(key);
        }
    }
    if kind == "Service" {
        for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
    }
    if let Value::Object(map) = object {
        map.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations" | "generation"));
    }
}

fn compare(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                compare(&format!("{path}/{key}"), a, b, differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{index}"), a, b, differences);
            }
        }
        _ if expected != found => differences.push(format!("{path}: {expected} expected, {found} found")),
        _ => {}
    }
}
