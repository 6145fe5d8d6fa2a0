//! OpenAPI v3: the index and one document per group-version.

use crate::rest::Answer;
use crate::route::api_version;
use crate::server::Inner;
use crate::{crd, discovery};
use orlop_kinds::catalog::catalog;
use serde_json::{Map, Value, json};

/// `/openapi/v3` and below.
pub(crate) fn v3(server: &Inner, rest: &[&str]) -> Answer {
    let document = match rest {
        [] => return Answer::Text(200, index(server).to_string()),
        ["api", version] => catalog().openapi_v3("", version),
        ["apis", group, version] => {
            catalog().openapi_v3(group, version).or_else(|| crd::openapi(server, group, version))
        }
        ["api" | "apis" | "version"] | ["apis" | ".well-known", _] | ["openid", ..] => Some(empty()),
        _ => None,
    };
    document.map_or(Answer::Empty(404), |document| Answer::Value(200, document))
}

/// The media type of OpenAPI v2 in protobuf; kubectl asks for it with an `@`, which no media type may have.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`: a document that describes nothing. kubectl reads it for a kind that it has not found in v3, and
/// takes a kind that is not in it as one that need not be checked.
pub(crate) fn v2(accept: Option<&str>) -> Answer {
    if accept.is_some_and(|accept| accept.contains("proto-openapi.spec.v2") && !accept.contains("json")) {
        let text = |number: u8, text: &[u8]| [&[number << 3 | 2, text.len() as u8], text].concat();
        let info = [text(1, b"Kubernetes"), text(2, discovery::GIT_VERSION.as_bytes())].concat();
        let document = [text(1, b"2.0"), text(2, &info), text(8, b"")].concat();
        return Answer::Encoded(V2_PROTOBUF, document.into());
    }
    let info = json!({"title": "Kubernetes", "version": discovery::GIT_VERSION});
    Answer::Value(200, json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}))
}

fn empty() -> Value {
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": discovery::GIT_VERSION}, "paths": {}})
}

fn index(server: &Inner) -> Value {
    let mut paths = Map::new();
    let mut add = |path: String, state: u64| {
        let url = format!("/openapi/v3/{path}?hash={:016X}{state:016X}", hash(path.bytes()));
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    for path in [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"] {
        add(path.to_owned(), 0);
    }
    for (group, versions) in discovery::groups(server) {
        if group.is_empty() {
            versions.iter().for_each(|version| add(format!("api/{version}"), 0));
            continue;
        }
        if catalog().group(&group).is_some() {
            add(format!("apis/{group}"), 0);
        }
        for version in &versions {
            add(format!("apis/{}", api_version(&group, version)), state(server, &group, version));
        }
    }
    json!({"paths": paths})
}

/// A number that changes with the definitions behind a document.
fn state(server: &Inner, group: &str, version: &str) -> u64 {
    let kinds = server.custom_kinds();
    let kinds = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let states: Vec<u8> = kinds.flat_map(|kind| kind.schema_state().to_be_bytes()).collect();
    if states.is_empty() { 0 } else { hash(states) }
}

/// FNV-1a.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}
