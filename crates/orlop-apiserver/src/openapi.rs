//! OpenAPI v3: the index and one document per group-version.

use crate::rest::Answer;
use crate::route::api_version;
use crate::server::Inner;
use crate::status::ApiError;
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

/// `/openapi/v2` exists for old clients only.
pub(crate) fn v2(_server: &Inner, accept: Option<&str>) -> Result<Answer, ApiError> {
    if accept.is_some_and(|accept| accept.contains("protobuf") && !accept.contains("json")) {
        return Err(ApiError::not_acceptable(&["application/json"]));
    }
    let document = json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": discovery::GIT_VERSION}, "paths": {}, "definitions": {}});
    Ok(Answer::Value(200, document))
}

fn empty() -> Value {
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": discovery::GIT_VERSION}, "paths": {}})
}

fn index(server: &Inner) -> Value {
    let mut paths = Map::new();
    let revision = server.custom_kinds().iter().count();
    let mut add = |path: String| {
        let url = format!("/openapi/v3/{path}?hash={:016X}{revision:016X}", path_hash(&path));
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    for path in [".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version"] {
        add(path.to_owned());
    }
    for (group, versions) in discovery::groups(server) {
        if group.is_empty() {
            versions.iter().for_each(|version| add(format!("api/{version}")));
            continue;
        }
        if catalog().group(&group).is_some() {
            add(format!("apis/{group}"));
        }
        versions.iter().for_each(|version| add(format!("apis/{}", api_version(&group, version))));
    }
    json!({"paths": paths})
}

/// FNV-1a: a stable number for a path.
fn path_hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
