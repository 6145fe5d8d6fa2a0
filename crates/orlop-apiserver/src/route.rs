//! What a request asks for, read from its method and path as `RequestInfo` does in Kubernetes.

use http::Method;
use percent_encoding::percent_decode_str;

/// A request's path and method, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    /// The path as it came.
    pub path: String,
    /// Whether it names a resource (below `/api/v1` or `/apis/GROUP/VERSION`).
    pub is_resource: bool,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower
    /// case for other paths.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace, if the path has one.
    pub namespace: String,
    /// The plural resource name.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The subresource, with all that follows it.
    pub subresource: String,
    /// How many parts followed the subresource.
    pub extra: usize,
    /// The one object that a collection request selects by name; rules about names apply to it.
    pub selected_name: String,
}

impl Route {
    /// Reads a path (still percent-encoded), a method and the query.
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let mut route = Self { path: path.to_owned(), verb: plain_verb(method), ..Self::default() };
        let decoded: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let mut rest: &[&str] = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                route.version = (*version).to_owned();
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                route.group = (*group).to_owned();
                route.version = (*version).to_owned();
                rest
            }
            _ => return route,
        };
        route.is_resource = true;
        route.verb = resource_verb(method);
        if rest[0] == "watch" && rest.len() > 1 {
            route.verb = "watch";
            rest = &rest[1..];
        }
        if rest[0] == "namespaces" && rest.len() > 1 {
            route.namespace = rest[1].to_owned();
            if rest.len() > 2 && !matches!(rest[2], "status" | "finalize") {
                rest = &rest[2..];
            }
        }
        route.resource = rest[0].to_owned();
        route.name = rest.get(1).map(|s| (*s).to_owned()).unwrap_or_default();
        route.subresource = rest.get(2).map(|s| (*s).to_owned()).unwrap_or_default();
        route.extra = rest.len().saturating_sub(3);
        if route.name.is_empty() {
            route.verb = match route.verb {
                "get" if query.wants_watch() => "watch",
                "get" => "list",
                "delete" => "deletecollection",
                other => other,
            };
            if matches!(route.verb, "list" | "watch" | "deletecollection") {
                let selector = query.get("fieldSelector").unwrap_or_default();
                let by_name = selector.strip_prefix("metadata.name=").filter(|name| !name.contains(','));
                by_name.unwrap_or_default().clone_into(&mut route.selected_name);
            }
        }
        route
    }
}

/// `apps/v1`, or `v1` for the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn resource_verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

fn plain_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "",
    }
}

/// The query of a URL: names and values, decoded, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`.
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        Self(
            text.split('&')
                .filter(|pair| !pair.is_empty())
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(name), decode(value))
                })
                .collect(),
        )
    }

    /// The first value called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All values called `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is given and, as Kubernetes reads booleans, not `false` or `0`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "false" | "0"))
    }

    /// Whether the query asks for a watch.
    pub(crate) fn wants_watch(&self) -> bool {
        self.is_true("watch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_routes() {
        for (method, path, query, expected) in [
            (Method::GET, "/api/v1/pods", "", "list v1 pods"),
            (Method::GET, "/api/v1/pods", "watch=true", "watch v1 pods"),
            (Method::GET, "/api/v1/pods", "watch=0", "list v1 pods"),
            (Method::GET, "/api/v1/namespaces/n", "", "get v1 n: namespaces n"),
            (Method::PUT, "/api/v1/namespaces/n/finalize", "", "update v1 n: namespaces n finalize"),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/n/deployments",
                "",
                "deletecollection apps/v1 n: deployments",
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/n/deployments/d/scale",
                "",
                "patch apps/v1 n: deployments d scale",
            ),
            (Method::GET, "/api/v1/watch/namespaces/n/pods", "", "watch v1 n: pods"),
            (
                Method::GET,
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "",
                "get rbac.authorization.k8s.io/v1 clusterroles system:node",
            ),
            (Method::GET, "/healthz/ping", "", "get"),
            (Method::GET, "/apis/apps/v1", "", "get"),
        ] {
            let r = Route::parse(&method, path, &Query::parse(query));
            let mut text = r.verb.to_owned();
            if r.is_resource {
                text.push_str(&format!(" {}", api_version(&r.group, &r.version)));
                if !r.namespace.is_empty() {
                    text.push_str(&format!(" {}:", r.namespace));
                }
                for part in [&r.resource, &r.name, &r.subresource] {
                    if !part.is_empty() {
                        text.push_str(&format!(" {part}"));
                    }
                }
            }
            assert_eq!(text, expected, "{method} {path}?{query}");
        }
    }
}
