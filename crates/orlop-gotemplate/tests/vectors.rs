//! Programs that real Go ran, if `ORLOP_VECTORS` names the directory of the recordings.

use orlop_gotemplate::{MissingKey, Set, Value};
use serde_json::Value as Json;

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(value).collect()),
        Json::Object(entries) => Value::map(entries.iter().map(|(key, item)| (key.as_str(), value(item)))),
    }
}

fn outcome(text: &str, data: &Value) -> String {
    let mut set = Set::named("t").option(MissingKey::Zero);
    let mut out = Vec::new();
    let done = set.parse("t", text).and_then(|template| set.execute_template(&template, data, &mut out));
    match done {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(error) => format!("ERR {error}"),
    }
}

#[test]
fn programs_answer_like_go_when_vectors_are_present() {
    let Ok(directory) = std::env::var("ORLOP_VECTORS") else { return };
    let text = std::fs::read_to_string(format!("{directory}/go-template-cases.json")).unwrap();
    let recorded: Json = serde_json::from_str(&text).unwrap();
    let data = value(&recorded["data"]);
    let mut wrong = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let found = outcome(case["tpl"].as_str().unwrap(), &data);
        let expected = case["out"].as_str().unwrap();
        if found != expected {
            wrong.push(format!("{}\n  expected {expected:?}\n  found    {found:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
