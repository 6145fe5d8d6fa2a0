//! Authentication: a client certificate or a bearer token, or nobody in particular.

use super::{Auth, ISSUER, User};
use crate::server::Inner;
use crate::status::ApiError;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::Value;
use std::sync::Arc;

impl Auth {
    /// Who sends a request; `known` was proven by the transport.
    pub(crate) fn authenticate(
        &self,
        server: &Inner,
        known: Option<&Arc<User>>,
        headers: &HeaderMap,
    ) -> Result<Arc<User>, ApiError> {
        if let Some(user) = known {
            return Ok(user.clone());
        }
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        match bearer {
            None | Some("") => Ok(Arc::new(User::anonymous())),
            Some(token) => self
                .token_user(server, token, &[ISSUER])
                .map(|(user, _)| user)
                .ok_or_else(ApiError::unauthorized),
        }
    }

    /// The user a token stands for, and which of the audiences it is good for.
    pub(crate) fn token_user(
        &self,
        server: &Inner,
        token: &str,
        audiences: &[&str],
    ) -> Option<(Arc<User>, Vec<String>)> {
        if let Some(user) = self.tokens.get(token) {
            return Some((user.clone(), audiences.iter().map(|a| (*a).to_owned()).collect()));
        }
        let claims = self.signer.verify(token)?;
        let now = server.clock.now().as_second();
        if claims["iss"] != ISSUER || claims["exp"].as_i64()? <= now || claims["nbf"].as_i64()? > now {
            return None;
        }
        let good_for: Vec<String> = claims["aud"]
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .filter(|audience| audiences.contains(audience))
            .map(str::to_owned)
            .collect();
        if good_for.is_empty() {
            return None;
        }
        Some((Arc::new(bound_user(server, &claims)?), good_for))
    }
}

/// The service account of a token, if it and everything the token is bound to still exist.
fn bound_user(server: &Inner, claims: &Value) -> Option<User> {
    let bound = &claims["kubernetes.io"];
    let namespace = bound["namespace"].as_str()?;
    let text = |part: &str, field: &str| bound[part][field].as_str().map(str::to_owned);
    let exists = |plural: &str, namespace: &str, name: &str, uid: &str| {
        let kind = Inner::built_in("", "v1", plural);
        server.find(&kind, namespace, name).is_some_and(|object| object["metadata"]["uid"] == uid)
    };
    let name = text("serviceaccount", "name")?;
    if !exists("serviceaccounts", namespace, &name, &text("serviceaccount", "uid")?) {
        return None;
    }
    let mut user = User::service_account(namespace, &name);
    user.uid = text("serviceaccount", "uid")?;
    let credential = format!("JTI={}", claims["jti"].as_str().unwrap_or_default());
    user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
    for (part, plural, in_namespace) in
        [("pod", "pods", namespace), ("secret", "secrets", namespace), ("node", "nodes", "")]
    {
        let (Some(name), Some(uid)) = (text(part, "name"), text(part, "uid")) else { continue };
        let is_part_of_pod = part == "node" && !bound["pod"].is_null();
        if !is_part_of_pod && !exists(plural, in_namespace, &name, &uid) {
            return None;
        }
        if part != "secret" {
            user.extra.insert(format!("authentication.kubernetes.io/{part}-name"), vec![name]);
            user.extra.insert(format!("authentication.kubernetes.io/{part}-uid"), vec![uid]);
        }
    }
    Some(user)
}
