//! Every recorded write of a built-in kind comes out as the real server answered it.
//!
//! The recordings are in the directory named by `ORLOP_PARITY`; without it the tests say so and pass.

use flate2::read::GzDecoder;
use orlop_kinds::catalog::{TypeId, catalog};
use orlop_kinds::{codec, conversion, defaults, strategy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    check_all(&["defaulting", "crud", "metadata", "update", "validation"], 100, |_, target, step| {
        (step["m"] == "POST" && target.sub.is_none() && step["b"].is_object())
            .then(|| created(target, &step["b"], &step["exp"]["body"]))
    });
}

#[test]
fn recorded_updates_come_out_as_recorded() {
    let chapters = ["crud", "metadata", "update", "subresources", "validation", "patch-merge", "policy"];
    check_all(&chapters, 60, |live, target, step| {
        let old = live.get(&target.key)?;
        let merge = step["h"]["Content-Type"] == "application/merge-patch+json";
        let body = match step["m"].as_str()? {
            "PUT" => step["b"].clone(),
            "PATCH" if merge && step["b"].is_object() => merged(old.clone(), &step["b"]),
            _ => return None,
        };
        let known = matches!(target.sub.as_deref(), None | Some("status" | "approval" | "finalize"));
        known.then(|| updated(target, body, old, &step["exp"]["body"]))
    });
}

#[test]
fn bodies_that_were_refused_are_refused_in_the_same_words() {
    let Some(corpus) = std::env::var_os("ORLOP_PARITY") else {
        return skipped();
    };
    let mut checked = 0;
    for chapter in ["fieldvalidation", "crud", "validation", "metadata", "update"] {
        for case in cases(Path::new(&corpus), chapter) {
            for step in case["steps"].as_array().into_iter().flatten() {
                let message = step["exp"]["body"]["message"].as_str().unwrap_or_default();
                let Some(target) = Target::of(step, &json!({"metadata": {"name": "x"}})) else { continue };
                let Some((_, refusal)) =
                    message.split_once(&format!("cannot be handled as a {}: ", target.kind))
                else {
                    continue;
                };
                let body = match (step["raw"].as_str(), step.get("b")) {
                    (Some(raw), _) if raw.starts_with('{') => raw.to_owned(),
                    (None, Some(body)) => body.to_string(),
                    _ => continue,
                };
                let found = match codec::decode_json(target.ty, body.as_bytes()) {
                    Ok(decoded) => format!("strict decoding error: {}", decoded.strict.join(", ")),
                    Err(error) => error.to_string(),
                };
                assert_eq!(found, refusal, "{}", case["id"]);
                checked += 1;
            }
        }
    }
    assert!(checked > 15, "only {checked} refusals found");
}

/// The objects of a case as last answered, by path.
type Live = BTreeMap<String, Value>;
type Check<'a> = &'a dyn Fn(&Live, &Target, &Value) -> Option<Vec<String>>;

fn check_all(
    chapters: &[&str],
    at_least: usize,
    check: impl Fn(&Live, &Target, &Value) -> Option<Vec<String>>,
) {
    let Some(corpus) = std::env::var_os("ORLOP_PARITY") else {
        return skipped();
    };
    let (mut checked, mut wrong) = (0, Vec::new());
    for chapter in chapters {
        for case in cases(Path::new(&corpus), chapter) {
            for differences in check_case(&case, &check) {
                checked += 1;
                let name = case["id"].as_str().unwrap_or_default();
                wrong.extend(differences.iter().map(|difference| format!("{name}: {difference}")));
            }
        }
    }
    assert!(checked > at_least, "only {checked} writes found");
    assert!(wrong.is_empty(), "{} in {checked} writes:\n{}", wrong.len(), wrong.join("\n"));
}

fn cases(corpus: &Path, chapter: &str) -> impl Iterator<Item = Value> + use<> {
    let path = corpus.join("cases").join(format!("{chapter}.jsonl.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| {
        let line = line.expect("readable").replace("${NS}", "ns-${U}");
        serde_json::from_str(&line).expect("a case")
    })
}

#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
fn skipped() {
    let test = std::thread::current().name().unwrap_or("tests/corpus.rs").to_owned();
    eprintln!("skipped: {test} (ORLOP_PARITY is not set)");
}

fn check_case(case: &Value, check: Check<'_>) -> Vec<Vec<String>> {
    let mut live = Live::new();
    let mut found = Vec::new();
    for step in case["steps"].as_array().into_iter().flatten() {
        let answer = &step["exp"]["body"];
        let success = step["exp"]["status"].as_u64().is_some_and(|status| status < 300);
        let picked = step.get("pick").is_some() || step["q"].get("dryRun").is_some();
        let Some(target) = Target::of(step, answer) else { continue };
        if !success || picked {
            // An answer that was not recorded leaves the object unknown.
            if step["exp"].is_null() {
                live.remove(&target.key);
            }
            continue;
        }
        // `${rep:a:63}` stands for a long text that the recording tool fills in.
        let readable = !step.to_string().contains("${rep:") && answer["kind"] == target.kind;
        if readable && let Some(differences) = check(&live, &target, step) {
            found.push(differences);
        }
        if answer["kind"] == target.kind {
            live.insert(target.key.clone(), answer.clone());
        }
    }
    found
}

/// What a request is about.
struct Target {
    group: String,
    version: String,
    kind: String,
    sub: Option<String>,
    /// The path of the object.
    key: String,
    ty: TypeId,
}

impl Target {
    fn of(step: &Value, answer: &Value) -> Option<Self> {
        let path = step["p"].as_str()?.split('?').next()?;
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (resource, rest) = match rest {
            ["namespaces", _, resource, rest @ ..] if *resource != "finalize" && *resource != "status" => {
                (*resource, rest)
            }
            [resource, rest @ ..] => (*resource, rest),
            [] => return None,
        };
        let name = rest.first().copied().or(answer["metadata"]["name"].as_str())?;
        let found = catalog().resource(group, version, resource)?;
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: found.kind.clone(),
            sub: rest.get(1).map(|sub| (*sub).to_owned()),
            key: format!("{group}/{resource}/{name}"),
            ty: catalog().type_of(group, version, &found.kind)?,
        })
    }
}

/// The differences of one creation.
fn created(target: &Target, body: &Value, answer: &Value) -> Vec<String> {
    let mut object = match read(target.ty, body.clone()) {
        Ok(object) => object,
        Err(error) => return vec![error],
    };
    let submitted = body.clone();
    for key in ["name", "uid"] {
        if let Some(value) = answer["metadata"].get(key) {
            object["metadata"][key] = value.clone();
        }
    }
    let context = strategy::Context { now: TIME, user: None, submitted: Some(&submitted) };
    strategy::prepare_create(&target.group, &target.version, &target.kind, &mut object, &context);
    differences(target, object, answer)
}

/// The differences of one update.
fn updated(target: &Target, body: Value, old: &Value, answer: &Value) -> Vec<String> {
    let mut object = match read(target.ty, with_times(body, "<time>", TIME)) {
        Ok(object) => object,
        Err(error) => return vec![error],
    };
    let old = with_times(old.clone(), "<time>", TIME);
    for (kind, pointer) in BY_OTHERS {
        if *kind == target.kind
            && object.pointer(pointer).is_none()
            && let (Some(value), Some((parent, key))) = (old.pointer(pointer), pointer.rsplit_once('/'))
            && let Some(Value::Object(parent)) = object.pointer_mut(parent)
        {
            parent.insert(key.to_owned(), value.clone());
        }
    }
    let context = strategy::Context { now: TIME, user: None, submitted: None };
    strategy::prepare_update(&target.group, &target.kind, target.sub.as_deref(), &mut object, &old, &context);
    differences(target, object, answer)
}

fn read(ty: TypeId, body: Value) -> Result<Value, String> {
    let mut object = codec::decode(ty, body).map_err(|error| error.to_string())?.value;
    defaults::default_object(ty, &mut object);
    conversion::convert(ty, &mut object);
    Ok(object)
}

/// Stores the object, reads it again, and compares what is left when others' work is taken away.
fn differences(target: &Target, object: Value, answer: &Value) -> Vec<String> {
    let mut object = match codec::decode(target.ty, object) {
        Ok(decoded) => decoded.value,
        Err(error) => return vec![error.to_string()],
    };
    codec::through_storage(target.ty, &mut object);
    defaults::default_object(target.ty, &mut object);
    let mut found = with_times(object, TIME, "<time>");
    let mut expected = answer.clone();
    for value in [&mut found, &mut expected] {
        forget(value, &target.kind);
    }
    let mut differences = Vec::new();
    compare("", &expected, &found, &mut differences);
    differences
}

/// RFC 7386.
fn merged(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut map = match target {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            let below = map.remove(key).unwrap_or_default();
            map.insert(key.clone(), merged(below, value));
        }
    }
    Value::Object(map)
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
