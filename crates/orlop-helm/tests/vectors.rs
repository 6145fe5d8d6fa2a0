//! Expressions and YAML that real Helm answered, if `ORLOP_VECTORS` names the directory of the recordings.

use orlop_gotemplate::{MissingKey, Set, Value};
use serde_json::Value as Json;

/// Functions that are still to come; their rows are left out.
const MISSING: &[&str] = &[
    "toToml",
    "fromToml",
    "fromYaml",
    "fromYamlArray",
    "fromJson",
    "date",
    "dateInZone",
    "dateModify",
    "htmlDate",
    "toDate",
    "mustToDate",
    "unixEpoch",
    "duration",
    "durationRound",
    "now",
    "ago",
    "urlParse",
    "urlJoin",
    "htpasswd",
    "bcrypt",
    "derivePassword",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
    "encryptAES",
    "randAlphaNum",
    "randInt",
    "randBytes",
    "uuidv4",
    "shuffle",
];

fn recording(name: &str) -> Option<Json> {
    let directory = std::env::var("ORLOP_VECTORS").ok()?;
    serde_json::from_str(&std::fs::read_to_string(format!("{directory}/{name}")).ok()?).ok()
}

fn value(json: &Json) -> Value {
    orlop_helm::json::parse(json.to_string().as_bytes()).unwrap()
}

fn outcome(expression: &str, data: &Value) -> Result<String, String> {
    let mut set = Set::named("gotpl").option(MissingKey::Zero).funcs(orlop_helm::sprig::functions());
    set = set.funcs(orlop_helm::engine::functions());
    let text =
        format!("{{{{define \"w\" -}}}}{{{{ {expression} }}}}{{{{-    end -}}}}{{{{ include \"w\" . }}}}");
    let mut out = Vec::new();
    let template =
        set.parse("ht/templates/t.yaml", text).map_err(|error| orlop_helm::engine::describe(&error))?;
    set.execute_template(&template, data, &mut out).map_err(|error| orlop_helm::engine::describe(&error))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn expressions_answer_like_helm_when_vectors_are_present() {
    let Some(recorded) = recording("helm-4.3.1-exprs.json") else { return };
    let data = value(&serde_json::json!({"Values": {
        "a": {"b": {"c": 1}, "l": [1, 2]},
        "base": {"x": 1, "true": {"z": 1, "w": 2}, "f": false, "l": [1, 2]},
        "over": {"x": 2, "true": {"z": 9}, "f": true, "l": [3]},
        "s": "str",
    }}));
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for row in recorded.as_array().unwrap() {
        let (expression, expected) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let uses = |name: &&&str| expression.split(|c: char| !c.is_alphanumeric()).any(|word| word == **name);
        let context = ["Chart", "Release", "Capabilities", "Files", "Template", "Subcharts", "common.Values"];
        let of_chart =
            context.iter().any(|word| expression.contains(word) || expected.contains("common.Values"));
        if MISSING.iter().find(uses).is_some() || of_chart {
            continue;
        }
        compared += 1;
        let found = outcome(expression, &data);
        let agrees = match (&found, expected.strip_prefix("ERR Error: ")) {
            (Ok(found), None) => found == expected,
            (Err(found), Some(expected)) => found == expected,
            _ => false,
        };
        if !agrees {
            wrong.push(format!("{expression}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(compared > 200, "only {compared} rows were compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn strings_are_written_like_helm_when_vectors_are_present() {
    let (Some(recorded), Ok(directory)) =
        (recording("helm-4.3.1-toyaml.json"), std::env::var("ORLOP_VECTORS"))
    else {
        return;
    };
    let values = std::fs::read_to_string(format!("{directory}/helm-3.17.3-exprs.values.yaml")).unwrap();
    let line = values.lines().find_map(|line| line.strip_prefix("strs: ")).unwrap();
    let strings = value(&serde_json::from_str(line).unwrap());
    let written = orlop_helm::yaml::to_yaml(&strings).unwrap();
    assert_eq!(String::from_utf8_lossy(&written).trim_end_matches('\n'), recorded["strs"].as_str().unwrap());
    let keys = value(&serde_json::json!({
        "true": "x", "1": true, "on": "z", "0x1": "h", "1e3": "e", "null": false, "~": "t", "": "emp", "a b": "sp",
        "a:b": "c", "-": "d", "#": "ha", "*": "st", "123": "num", "1.5": "fl", "2024-01-01": "dt", "y": "yy", "N": "nn",
        "=": "eq", "<<": "mg", "0o7": "oc", "+1": "p", ".": "dot", "_": "us", "a#b": "c2", "a #b": "c3", "@x": "at",
        "%": "pct", "&a": "amp", "!t": "bang", "`": "bt", "é": "uni", "😀": "emo", " lead": "sp2", "trail ": "sp3",
        "a\nb": "nl", "\t": "tab",
    }));
    let written = orlop_helm::yaml::to_yaml(&keys).unwrap();
    assert_eq!(String::from_utf8_lossy(&written).trim_end_matches('\n'), recorded["k"].as_str().unwrap());
}
