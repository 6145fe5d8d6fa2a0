//! Acting as somebody else, for those who may.
//!
//! There are several ways to be allowed. The constrained ones, one for each sort of user, ask twice: may this be
//! done on behalf of such users, and may this one be impersonated. The legacy one asks for the user alone. They
//! are tried in order; if none succeeds, the first refusal is the answer.

use super::{Attributes, Auth, Decision, User};
use crate::route::Route;
use crate::server::Inner;
use crate::status::ApiError;
use http::HeaderMap;
use orlop_schema::field::{self, FieldError, Path};
use orlop_schema::names;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const EXTRA: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";
/// So many values are asked for all at once first, in the constrained ways.
const MANY: usize = 4;

impl Auth {
    /// The user a request is to be done as.
    pub(crate) fn impersonate(
        &self,
        server: &Inner,
        user: Arc<User>,
        headers: &HeaderMap,
        route: &Route,
    ) -> Result<Arc<User>, ApiError> {
        let Some(wanted) = wanted_user(headers)? else { return Ok(user) };
        let request = Request { auth: self, server, requestor: &user, wanted: &wanted, route };
        let mut refusal = None;
        for way in WAYS.into_iter().filter(|way| way.applies(&request)) {
            match request.check(way) {
                Ok(()) => return Ok(Arc::new(way.complete(wanted))),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| ApiError::internal("no way to impersonate was tried")))
    }
}

/// The user that the headers name, just as they name it.
fn wanted_user(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let groups =
        headers.get_all("impersonate-group").iter().filter_map(|v| Some(v.to_str().ok()?.to_owned()));
    let mut wanted = User {
        name: text("impersonate-user"),
        uid: text("impersonate-uid"),
        groups: groups.collect(),
        extra: BTreeMap::new(),
    };
    for (header, value) in headers {
        if let (Some(key), Ok(value)) = (header.as_str().strip_prefix(EXTRA), value.to_str()) {
            let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
            wanted.extra.entry(key).or_default().push(value.to_owned());
        }
    }
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if is_only_name(&wanted) {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:\"{}\", Groups:{}, Extra:{}}} without impersonating a user name",
        wanted.uid,
        go_strings(&wanted.groups),
        go_extra(&wanted.extra)
    )))
}

fn is_only_name(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// What a user name stands for.
enum Identity<'a> {
    Node(&'a str),
    ServiceAccount(&'a str, &'a str),
    Other,
}

impl<'a> Identity<'a> {
    fn of(name: &'a str) -> Self {
        if let Some(node) = name.strip_prefix("system:node:")
            && names::dns1123_subdomain(node).is_empty()
        {
            return Self::Node(node);
        }
        match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
            Some((namespace, name))
                if names::dns1123_label(namespace).is_empty()
                    && names::dns1123_subdomain(name).is_empty() =>
            {
                Self::ServiceAccount(namespace, name)
            }
            _ => Self::Other,
        }
    }
}

/// A way to be allowed to impersonate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// All ways, in the order they are tried.
const WAYS: [Way; 5] =
    [Way::AssociatedNode, Way::ArbitraryNode, Way::ServiceAccount, Way::UserInfo, Way::Legacy];

impl Way {
    /// The name in verbs; the legacy way has none.
    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// Whether this is a way to impersonate such a user at all.
    fn applies(self, request: &Request<'_>) -> bool {
        let only_name = is_only_name(request.wanted);
        match (self, Identity::of(&request.wanted.name)) {
            (Self::AssociatedNode, Identity::Node(node)) => {
                let own = request.requestor.extra.get("authentication.kubernetes.io/node-name");
                let is_account =
                    matches!(Identity::of(&request.requestor.name), Identity::ServiceAccount(..));
                only_name && is_account && own.is_some_and(|own| own.len() == 1 && own[0] == node)
            }
            (Self::ArbitraryNode, Identity::Node(_))
            | (Self::ServiceAccount, Identity::ServiceAccount(..)) => only_name,
            (Self::UserInfo, Identity::Other) | (Self::Legacy, _) => true,
            _ => false,
        }
    }

    /// The user with the groups that follow from the name.
    fn complete(self, mut user: User) -> User {
        match Identity::of(&user.name) {
            Identity::Node(_) if self != Self::Legacy => user.groups = vec!["system:nodes".to_owned()],
            Identity::ServiceAccount(namespace, _) if user.groups.is_empty() => {
                let own = format!("system:serviceaccounts:{namespace}");
                user.groups = vec!["system:serviceaccounts".to_owned(), own];
            }
            _ => {}
        }
        let group = match user.name.as_str() {
            "system:anonymous" => "system:unauthenticated",
            _ if user.is_in("system:unauthenticated") => return user,
            _ => "system:authenticated",
        };
        if !user.is_in(group) {
            user.groups.push(group.to_owned());
        }
        user
    }
}

/// A wish to act as somebody else.
struct Request<'a> {
    auth: &'a Auth,
    server: &'a Inner,
    requestor: &'a User,
    wanted: &'a User,
    route: &'a Route,
}

impl Request<'_> {
    fn allow(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        match self.auth.decide(self.server, self.requestor, attributes) {
            Decision::Allowed(_) => {
                self.auth.note(self.requestor, attributes);
                Ok(())
            }
            Decision::Denied(why) => Err(attributes.refusal(self.requestor, &why)),
        }
    }

    /// Asks for everything that one way needs.
    fn check(&self, way: Way) -> Result<(), ApiError> {
        let constrained = way != Way::Legacy;
        let (verb, group) = if constrained {
            let on = format!("impersonate-on:{}:{}", way.name(), self.route.verb);
            self.allow(&Attributes { verb: &on, ..Attributes::of(self.route) })?;
            (format!("impersonate:{}", way.name()), GROUP)
        } else {
            ("impersonate".to_owned(), "")
        };
        let attributes = |group, resource, namespace, name| Attributes {
            verb: &verb,
            ..Attributes::resource("", group, resource, "", namespace, name)
        };
        self.allow(&match Identity::of(&self.wanted.name) {
            // Whoever runs on a node may be any node, as far as rules go: which one is settled already.
            Identity::Node(_) if way == Way::AssociatedNode => attributes(group, "nodes", "", "*"),
            Identity::Node(node) if constrained => attributes(group, "nodes", "", node),
            Identity::ServiceAccount(namespace, name) => {
                attributes(group, "serviceaccounts", namespace, name)
            }
            _ => attributes(group, "users", "", &self.wanted.name),
        })?;
        if !self.wanted.uid.is_empty() {
            self.allow(&attributes(GROUP, "uids", "", &self.wanted.uid))?;
        }
        self.check_groups(constrained, &attributes(group, "groups", "", ""))?;
        self.check_extra(constrained, &attributes(GROUP, "userextras", "", ""))
    }

    fn check_groups(&self, constrained: bool, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let groups = &self.wanted.groups;
        let named = |name| Attributes { name, ..attributes.clone() };
        if constrained {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(attributes.refusal(self.requestor, why));
            }
            if self.wanted.is_in("system:masters") {
                let why = "impersonating the system:masters group is not allowed";
                return Err(named("system:masters").refusal(self.requestor, why));
            }
            if groups.len() >= MANY && self.allow(&named("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.allow(&named(group)))
    }

    fn check_extra(&self, constrained: bool, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let extra = &self.wanted.extra;
        let named = |subresource, name| Attributes { subresource, name, ..attributes.clone() };
        if constrained {
            if let Some(why) = extra.iter().find_map(|(key, values)| odd_extra(key, values)) {
                return Err(attributes.refusal(self.requestor, &why));
            }
            let many = extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.allow(&named("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let mut all = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        all.try_for_each(|(key, value)| self.allow(&named(key, value)))
    }
}

/// What is wrong with an extra value, where it is looked at closely.
fn odd_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let faults: Vec<String> = odd_key(key).iter().map(ToString::to_string).collect();
    if !faults.is_empty() {
        let why = field::aggregate(faults);
        return Some(format!("impersonating an invalid key in extra is not allowed: {why}"));
    }
    if key != key.to_lowercase() {
        let key = field::go_quote(key);
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
    }
    let empty = values.iter().any(String::is_empty);
    empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// What keeps a key from being a path with a domain before it, such as `acme.io/foo`.
fn odd_key(key: &str) -> Vec<FieldError> {
    const PATH: &str = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
    let at = Path::new("extra").child("key");
    let Some((host, path)) = key.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![FieldError::invalid(&at, &json!(key), why)];
    };
    let hosts = names::dns1123_subdomain(host).into_iter();
    let mut faults: Vec<FieldError> = hosts.map(|why| FieldError::invalid(&at, &json!(host), why)).collect();
    if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)) {
        faults.push(FieldError::invalid(&at, &json!(path), names::pattern("Invalid path", PATH, &[])));
    }
    faults
}

fn go_strings(list: &[String]) -> String {
    if list.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = list.iter().map(|text| field::go_quote(text)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

fn go_extra(extra: &BTreeMap<String, Vec<String>>) -> String {
    if extra.is_empty() {
        return "map[string][]string(nil)".to_owned();
    }
    let pairs: Vec<String> = extra
        .iter()
        .map(|(key, values)| format!("{}:{}", field::go_quote(key), go_strings(values)))
        .collect();
    format!("map[string][]string{{{}}}", pairs.join(", "))
}
