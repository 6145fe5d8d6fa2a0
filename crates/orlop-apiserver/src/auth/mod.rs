//! Who is calling, and what they may do.

mod authn;
mod impersonate;
mod rbac;
mod recorder;
mod token;

pub use recorder::{Access, Recorder};
pub use token::random_token;
#[cfg(feature = "persistence")]
pub(crate) use token::{is_signing_key, new_signing_key};

pub(crate) use rbac::{Attributes, Decision, Rule};

use crate::route::Route;
use crate::server::Inner;
use crate::status::ApiError;
use http::HeaderMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use token::Signer;

/// The issuer and audience of service account tokens.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Paths that anyone may get, as kube-apiserver has it by default.
const OPEN_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Someone who calls the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further facts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has proven to be `name`.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        if !groups.iter().any(|group| group == "system:authenticated" || group == "system:unauthenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// A user who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &["system:masters"])
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &["system:unauthenticated"])
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("system:serviceaccounts:{namespace}");
        Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &["system:serviceaccounts", &own])
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// `UserInfo` as reviews show it.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// Authentication and authorisation.
pub(crate) struct Auth {
    tokens: BTreeMap<String, Arc<User>>,
    signer: Signer,
    recorder: Option<Arc<dyn Recorder>>,
    rbac: rbac::Cache,
}

impl Auth {
    pub(crate) fn new(
        tokens: BTreeMap<String, Arc<User>>,
        recorder: Option<Arc<dyn Recorder>>,
        signing_key: Option<&[u8]>,
    ) -> Self {
        // A key that cannot be read signs nothing; tokens it signed are refused either way.
        let signer = signing_key.and_then(Signer::of).unwrap_or_default();
        Self { tokens, signer, recorder, rbac: rbac::Cache::default() }
    }

    /// Lets a request through, or says why not.
    pub(crate) fn authorize(&self, server: &Inner, user: &User, route: &Route) -> Result<(), ApiError> {
        let attributes = Attributes::of(route);
        if !route.is_resource && OPEN_PATHS.contains(&route.path.as_str()) {
            return Ok(());
        }
        self.note(user, &attributes);
        match self.decide(server, user, &attributes) {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied(why) => Err(attributes.refusal(user, &why)),
        }
    }

    /// Lets the recorder hear what a user wants to do.
    fn note(&self, user: &User, attributes: &Attributes<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.record(&attributes.access(user));
        }
    }

    /// Whether a user may do something, and by what right.
    pub(crate) fn decide(&self, server: &Inner, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_in("system:masters") {
            return Decision::Allowed(String::new());
        }
        self.rbac.index(server).decide(user, attributes)
    }

    /// All rules of a user in a namespace.
    pub(crate) fn rules(&self, server: &Inner, user: &User, namespace: &str) -> Vec<Rule> {
        self.rbac.index(server).rules(user, namespace)
    }

    /// Refuses to let a user grant what they do not have themselves.
    pub(crate) fn check_escalation(
        &self,
        server: &Inner,
        user: &User,
        plural: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if user.is_in("system:masters") {
            return Ok(());
        }
        rbac::check_escalation(&self.rbac.index(server), user, plural, object, old)
    }

    /// `/.well-known/openid-configuration`.
    pub(crate) fn openid_configuration(headers: &HeaderMap) -> Value {
        let host =
            headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:6443");
        json!({
            "issuer": ISSUER, "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    /// `/openid/v1/jwks`.
    pub(crate) fn jwks(&self) -> Value {
        self.signer.jwks()
    }

    /// Signs the claims of a service account token.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.signer.sign(claims)
    }
}
