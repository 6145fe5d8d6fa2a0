//! Expressions and objects that kube-apiserver judged, if `ORLOP_VECTORS` names the directory of the recordings.

use orlop_cel::{Budget, Env, Node, OldSelf, Output, Program, Value};
use orlop_schema::structural::Schema;
use serde_json::Value as Json;

fn recording(name: &str) -> Option<Json> {
    let directory = std::env::var("ORLOP_VECTORS").ok()?;
    serde_json::from_str(&std::fs::read_to_string(format!("{directory}/{name}")).ok()?).ok()
}

#[test]
fn expressions_are_judged_like_the_real_server_when_vectors_are_present() {
    let Some(recorded) = recording("cel-crd-exprs-k8s-1.36.4.json") else { return };
    let schema = Schema::parse(&recorded["schema"]);
    let env = Env::crd(&schema, Node::Inner).unwrap();
    let mut wrong = Vec::new();
    let pairs = recorded["exprs"].as_array().unwrap().iter().zip(recorded["res"].as_array().unwrap());
    for (source, expected) in pairs {
        let (source, expected) = (source.as_str().unwrap(), expected.as_str().unwrap());
        let found = match Program::compile(source, &env, OldSelf::Required, Output::Bool) {
            Err(error) => format!("COMPILE {}", error.to_string().replace('\n', " ")),
            Ok(program) if program.cost_max() > 10_000_000 => "COMPILE Forbidden".to_owned(),
            Ok(program) => match program.evaluate(&schema, &recorded["obj"], None, &mut Budget::object()) {
                Ok(Value::Bool(true)) => "TRUE".to_owned(),
                Ok(Value::Bool(false)) => "FALSE".to_owned(),
                other => format!("{other:?}"),
            },
        };
        let agrees = match expected.strip_prefix("COMPILE") {
            None => found == expected,
            Some(text) if text.contains("Forbidden") => found == "COMPILE Forbidden",
            Some(text) => {
                let tail: String =
                    text.chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
                let squeeze = |text: &str| text.replace("  ", " ").replace("selfType541698389", "selfType");
                squeeze(&found).ends_with(&squeeze(&tail))
            }
        };
        if !agrees {
            wrong.push(format!("{source}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
