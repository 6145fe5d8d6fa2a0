//! What OpenAPI documents say about operations and their parameters.

use super::unpack;
use serde_json::Value;
use std::sync::OnceLock;

/// What an operation does.
pub(super) fn operation(verb: &str, sub: Option<&str>, parent: &str, kind: &str, watches: bool) -> String {
    let of = sub.map(|sub| format!("{sub} of ")).unwrap_or_default();
    match verb {
        "list" if watches => format!("list or watch objects of kind {kind}"),
        "list" => format!("list objects of kind {kind}"),
        "get" => format!("read {of}the specified {parent}"),
        "update" => format!("replace {of}the specified {parent}"),
        "patch" => format!("partially update {of}the specified {parent}"),
        "deletecollection" => format!("delete collection of {kind}"),
        "create" => format!("create {of}{}{parent}", article(parent)),
        _ => format!("delete {of}{}{parent}", article(parent)),
    }
}

/// What a connection does.
pub(super) fn connection(method: &str, sub: &str, parent: &str) -> String {
    format!("connect {} requests to {sub} of {parent}", method.to_uppercase())
}

/// The article of a noun, with a space after it; plurals have none.
fn article(noun: &str) -> &'static str {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return "";
    }
    if noun.starts_with(['A', 'E', 'I', 'O', 'U']) { "an " } else { "a " }
}

/// Adds descriptions to parameters; `owner` is the prefix of texts that differ for an operation.
pub(super) fn describe(parameters: &mut [Value], owner: &str, kind: &str) {
    static TEXTS: OnceLock<Value> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        serde_json::from_str(unpack(include_bytes!("../../data/parameters.json.gz"))).unwrap_or_default()
    });
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        let text = match (parameter["in"].as_str(), name) {
            (Some("path"), "name") => format!("name of the {kind}").into(),
            (Some("path"), _) => "object name and auth scope, such as for teams and projects".into(),
            _ => {
                texts.get(format!("{owner}/{name}")).or_else(|| texts.get(name)).cloned().unwrap_or_default()
            }
        };
        if !text.is_null() {
            parameter["description"] = text;
        }
    }
}
