//! What the server serves: discovery (legacy and aggregated), version, health, OpenAPI; and which kind a path
//! names.

use crate::auth::Auth;
use crate::kind::{Kind, Registry};
use crate::negotiate::{self, Accepted, Format, Offer};
use crate::openapi;
use crate::rest::Answer;
use crate::route::{Query, Route, api_version};
use crate::server::Inner;
use crate::service::header_text;
use crate::status::ApiError;
use crate::{health, metrics};
use http::{HeaderMap, Method, header};
use orlop_kinds::catalog::catalog;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The Kubernetes version whose behaviour this server has.
pub(crate) const GIT_VERSION: &str = "v1.36.3";

const AGGREGATED: &str = "APIGroupDiscoveryList";
/// Clients know aggregated discovery by its media type alone.
const AGGREGATED_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The kind that a resource path names, if the method can be used there.
pub(crate) fn resolve(server: &Inner, method: &Method, route: &Route) -> Result<Arc<Kind>, ApiError> {
    let known_group = catalog().group(&route.group).is_some();
    let Some(kind) = server.kind(&route.group, &route.version, &route.resource) else {
        return Err(if known_group { ApiError::no_such_resource() } else { ApiError::no_such_page() });
    };
    let is_namespace = kind.plural == "namespaces" && kind.group.is_empty();
    if !kind.namespaced && !route.namespace.is_empty() && !is_namespace
        || route.extra > 0 && route.subresource != "proxy"
    {
        return Err(if kind.custom().is_some() {
            ApiError::no_such_page()
        } else {
            ApiError::no_such_resource()
        });
    }
    let everywhere = kind.namespaced && route.namespace.is_empty();
    if everywhere && !route.name.is_empty() && route.verb != "watch" {
        return Err(ApiError::no_such_resource());
    }
    if !matches!(*method, Method::GET | Method::POST | Method::PUT | Method::PATCH | Method::DELETE) {
        return Err(ApiError::method_not_allowed());
    }
    let verbs = match route.subresource.as_str() {
        "" => &kind.verbs,
        name => match kind.subresources.get(name) {
            Some(subresource) => &subresource.verbs,
            None if kind.custom().is_some() => {
                return Err(ApiError::not_found(&kind.group, &kind.plural, &route.name));
            }
            None => return Err(ApiError::no_such_resource()),
        },
    };
    let only_reads = everywhere && !matches!(route.verb, "list" | "watch") && kind.is_stored();
    let names_no_object = route.subresource.is_empty()
        && route.name.is_empty() == (route.verb == "update" || route.verb == "patch");
    let creates_by_name = route.verb == "create" && !route.name.is_empty() && route.subresource.is_empty();
    if only_reads || (names_no_object && matches!(route.verb, "update" | "patch")) || creates_by_name {
        return Err(ApiError::method_not_allowed());
    }
    if verbs.iter().any(|verb| verb == route.verb) {
        return Ok(kind);
    }
    if route.verb == "watch" && verbs.iter().any(|verb| verb == "list") {
        // The handler says why not.
        return Ok(kind);
    }
    Err(ApiError::method_not_allowed())
}

/// Answers a path that names no resource.
pub(crate) fn answer(
    server: &Inner,
    method: &Method,
    route: &Route,
    query: &Query,
    headers: &HeaderMap,
    accepted: &mut Accepted,
) -> Result<Answer, ApiError> {
    let path = route.path.trim_end_matches('/');
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let known = matches!(
        parts.as_slice(),
        ["api" | "apis" | "version"] | ["api" | "apis", _] | ["apis", _, _] | ["openapi", ..]
    );
    if known && *method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    match parts.as_slice() {
        [""] => Ok(Answer::Value(200, json!({"paths": paths(server)}))),
        ["version"] => Ok(Answer::Value(200, version())),
        [endpoint, check @ ..] if health::ENDPOINTS.contains(endpoint) => {
            health::answer(endpoint, &check.join("/"), query).ok_or_else(ApiError::no_such_page)
        }
        ["metrics"] => Ok(Answer::Encoded(metrics::TEXT, server.metrics.text().into())),
        ["metrics", "slis"] => Ok(Answer::Encoded(metrics::TEXT, metrics::slis().into())),
        [page @ ("flagz" | "statusz")] => Ok(Answer::Text(200, zpage(page))),
        ["api" | "apis"] => {
            let accept = header_text(headers, header::ACCEPT);
            let format = accept_discovery(accept, accepted)?;
            Ok(match (parts[0], format) {
                ("api", false) => Answer::Value(200, core_versions()),
                (_, false) => Answer::Value(200, group_list(server)),
                (root, true) => Answer::Typed(AGGREGATED_TYPE, aggregated(server, root)),
            })
        }
        ["api", version] => legacy(server, "", version, headers, accepted),
        ["apis", group] => {
            accept_plain(headers, accepted)?;
            let groups = groups(server);
            let found = groups.get(*group).ok_or_else(ApiError::no_such_page)?;
            Ok(Answer::Value(200, group_value(group, found, true)))
        }
        ["apis", group, version] => legacy(server, group, version, headers, accepted),
        ["openapi", "v3", rest @ ..] => Ok(openapi::v3(server, rest, query, headers)),
        ["openapi", "v2"] => Ok(openapi::v2(server, headers)),
        [".well-known", "openid-configuration"] => {
            Ok(Answer::Value(200, Auth::openid_configuration(headers)))
        }
        ["openid", "v1", "jwks"] => match header_text(headers, header::ACCEPT) {
            None | Some("*/*" | "application/jwk-set+json" | "") => {
                Ok(Answer::Value(200, server.auth.jwks()))
            }
            Some(_) => Err(ApiError::new(406, "", "")),
        },
        _ => Err(ApiError::no_such_page()),
    }
}

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": concat!("orlop-", env!("CARGO_PKG_VERSION")), "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// A page for people: what is running. There are no flags to show.
fn zpage(page: &str) -> String {
    let warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                   guarantees and is for debugging purposes only.";
    match page {
        "statusz" => format!("\nkube-apiserver statusz\n{warning}\n\nBinary version: {GIT_VERSION}\n"),
        page => format!("\nkube-apiserver {page}\n{warning}\n\n"),
    }
}

fn paths(server: &Inner) -> Vec<String> {
    let mut all: Vec<String> = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/"]
        .map(str::to_owned)
        .to_vec();
    for (group, versions) in groups(server).iter().filter(|(group, _)| !group.is_empty()) {
        all.push(format!("/apis/{group}"));
        all.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    for endpoint in health::ENDPOINTS {
        all.push(format!("/{endpoint}"));
        all.extend(health::checks(endpoint).iter().map(|check| format!("/{endpoint}/{check}")));
    }
    let others = [
        "/flagz",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/statusz",
        "/version",
    ];
    all.extend(others.map(str::to_owned));
    all.sort();
    all
}

/// Served versions of each group, the preferred one first; custom groups after built-in ones share the map.
pub(crate) fn groups(server: &Inner) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for group in catalog().groups() {
        all.insert(group.name.clone(), group.versions.iter().map(|v| v.name.clone()).collect());
    }
    for kind in server.custom_kinds().iter() {
        let versions = all.entry(kind.group.clone()).or_default();
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
            versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        }
    }
    all
}

/// Groups in the order discovery shows them: built-in ones in theirs, custom ones by name.
fn group_order(server: &Inner) -> Vec<String> {
    let mut order: Vec<String> = catalog().groups().iter().map(|group| group.name.clone()).collect();
    let custom: Vec<String> = groups(server).into_keys().filter(|name| !order.contains(name)).collect();
    order.extend(custom);
    order
}

/// How Kubernetes ranks versions: GA before beta before alpha, higher numbers first, others last by name.
fn priority(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (level, minor) = match &rest[digits..] {
            "" => (3, 0),
            stage => {
                let (level, number) = stage
                    .strip_prefix("beta")
                    .map(|n| (2, n))
                    .or_else(|| stage.strip_prefix("alpha").map(|n| (1, n)))?;
                (level, number.parse().ok()?)
            }
        };
        Some((level, major, minor))
    };
    let (level, major, minor) = parse().unwrap_or((0, 0, 0));
    let name = if level == 0 { version.to_owned() } else { String::new() };
    (level, major, minor, std::cmp::Reverse(name))
}

fn core_versions() -> Value {
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]);
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses})
}

fn group_list(server: &Inner) -> Value {
    let groups = groups(server);
    let list: Vec<Value> = group_order(server)
        .iter()
        .filter(|name| !name.is_empty())
        .filter_map(|name| Some(group_value(name, groups.get(name)?, false)))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
}

fn group_value(name: &str, versions: &[String], alone: bool) -> Value {
    let version = |v: &String| json!({"groupVersion": api_version(name, v), "version": v});
    let mut value = json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    });
    if alone {
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
    }
    value
}

fn kinds_of(server: &Inner, group: &str, version: &str) -> Vec<Arc<Kind>> {
    let built_in = catalog().version(group, version).map(|v| {
        let names = v.resources.iter().filter(|r| r.subresource().is_none());
        names.filter_map(|r| Registry::built_in().get(group, version, &r.name).cloned()).collect::<Vec<_>>()
    });
    built_in.unwrap_or_else(|| {
        let custom = server.custom_kinds();
        custom.iter().filter(|k| k.group == group && k.version == version).cloned().collect()
    })
}

fn legacy(
    server: &Inner,
    group: &str,
    version: &str,
    headers: &HeaderMap,
    accepted: &mut Accepted,
) -> Result<Answer, ApiError> {
    accept_plain(headers, accepted)?;
    let known = groups(server);
    let versions = known.get(group).ok_or_else(ApiError::no_such_page)?;
    if !versions.iter().any(|v| v == version) {
        let built_in = catalog().group(group).is_some();
        return Err(if built_in { ApiError::no_such_resource() } else { ApiError::no_such_page() });
    }
    let mut resources = Vec::new();
    for kind in kinds_of(server, group, version) {
        let mut value = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": kind.verbs,
        });
        for (field, list) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
            if !list.is_empty() {
                value[field] = json!(list);
            }
        }
        if !kind.storage_version_hash.is_empty() {
            value["storageVersionHash"] = kind.storage_version_hash.as_str().into();
        }
        resources.push(value);
        for (name, sub) in &kind.subresources {
            let mut value = json!({
                "name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group.as_str(), sub.version.as_str()) != (group, version) {
                value["group"] = sub.group.as_str().into();
                value["version"] = sub.version.as_str().into();
                if sub.group.is_empty() {
                    value.as_object_mut().map(|v| v.remove("group"));
                }
            }
            resources.push(value);
        }
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": api_version(group, version), "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Ok(Answer::Value(200, list))
}

fn aggregated(server: &Inner, root: &str) -> Value {
    let groups = groups(server);
    let items: Vec<Value> = group_order(server)
        .iter()
        .filter(|name| name.is_empty() == (root == "api"))
        .filter_map(|name| {
            let versions: Vec<Value> =
                groups.get(name)?.iter().map(|version| aggregated_version(server, name, version)).collect();
            let mut metadata = Map::new();
            if !name.is_empty() {
                metadata.insert("name".to_owned(), name.as_str().into());
            }
            Some(json!({"metadata": metadata, "versions": versions}))
        })
        .collect();
    json!({"kind": AGGREGATED, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_version(server: &Inner, group: &str, version: &str) -> Value {
    // Built-in kinds leave out what the list says already; custom kinds say it again.
    let response_kind = |custom: bool, g: &str, v: &str, kind: &str| {
        let same = !custom && (g, v) == (group, version);
        json!({"group": if same { "" } else { g }, "version": if same { "" } else { v }, "kind": kind})
    };
    let resources: Vec<Value> = kinds_of(server, group, version)
        .iter()
        .map(|kind| {
            let mut value = json!({
                "resource": kind.plural, "responseKind": response_kind(kind.custom().is_some(), group, version, &kind.kind),
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": kind.singular, "verbs": kind.verbs,
            });
            for (field, list) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
                if !list.is_empty() {
                    value[field] = json!(list);
                }
            }
            let subresources: Vec<Value> = kind
                .subresources
                .iter()
                .map(|(name, sub)| {
                    let kind = response_kind(kind.custom().is_some(), &sub.group, &sub.version, &sub.kind);
                    json!({"subresource": name, "responseKind": kind, "verbs": sub.verbs})
                })
                .collect();
            if !subresources.is_empty() {
                value["subresources"] = Value::Array(subresources);
            }
            value
        })
        .collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

/// Whether aggregated discovery is wanted; 406 if nothing that is accepted can be given.
fn accept_discovery(accept: Option<&str>, accepted: &mut Accepted) -> Result<bool, ApiError> {
    for clause in accept.unwrap_or_default().split(',') {
        let parts: Vec<&str> = clause.split(';').map(str::trim).collect();
        let is_json = parts.first() == Some(&"application/json");
        let has = |wanted: &str| parts.contains(&wanted);
        if is_json && has("g=apidiscovery.k8s.io") && has("as=APIGroupDiscoveryList") {
            if has("v=v2") {
                return Ok(true);
            }
            continue;
        }
        if let Ok(plain) = negotiate::accept(Some(clause), Offer::Plain) {
            *accepted = plain;
            return Ok(false);
        }
    }
    if accept.unwrap_or_default().is_empty() {
        return Ok(false);
    }
    Err(ApiError::not_acceptable(&negotiate::BUILT_IN))
}

fn accept_plain(headers: &HeaderMap, accepted: &mut Accepted) -> Result<(), ApiError> {
    *accepted = negotiate::accept(header_text(headers, header::ACCEPT), Offer::Plain)?;
    if accepted.format == Format::Yaml {
        accepted.pretty = false;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ranked_as_in_kubernetes() {
        let mut versions = vec!["v1alpha1", "foo1", "v2", "v1beta2", "v10", "v1", "v1beta1", "bar"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo1"]);
    }
}
