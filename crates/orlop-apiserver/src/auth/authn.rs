//! Authentication: a client certificate or a bearer token, or nobody in particular.

use super::{Auth, ISSUER, User};
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use orlop_clock::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// Clocks differ by so much: tokens are good for a little longer than they say.
const LEEWAY_SECONDS: i64 = 60;

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
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut words = header.trim().split(' ');
        let is_bearer = words.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
        let bearer = if is_bearer { words.next() } else { None };
        match bearer {
            None | Some("") => Ok(Arc::new(User::anonymous())),
            Some(token) => {
                let known = self.token_user(server, token, &[ISSUER]);
                known.map(|(user, _)| user).map_err(|_| ApiError::unauthorized())
            }
        }
    }

    /// The user a token stands for, and which of the audiences it is good for; or why it is good for nothing.
    pub(crate) fn token_user(
        &self,
        server: &Inner,
        token: &str,
        audiences: &[&str],
    ) -> Result<(Arc<User>, Vec<String>), String> {
        const UNKNOWN: &str = "invalid bearer token";
        if let Some(user) = self.tokens.get(token) {
            return Ok((user.clone(), audiences.iter().map(|a| (*a).to_owned()).collect()));
        }
        let claims = self.signer.verify(token).filter(|claims| claims["iss"] == ISSUER).ok_or(UNKNOWN)?;
        claimed_user(server, &claims, audiences).map_err(|why| format!("[{UNKNOWN}, {why}]"))
    }
}

/// The user that the claims of a token of this server stand for.
fn claimed_user(
    server: &Inner,
    claims: &Value,
    audiences: &[&str],
) -> Result<(Arc<User>, Vec<String>), String> {
    let own: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let good_for: Vec<String> =
        own.iter().filter(|audience| audiences.contains(audience)).map(|a| (*a).to_owned()).collect();
    if good_for.is_empty() {
        let (own, wanted) = (go_list(&own), go_list(audiences));
        return Err(format!("token audiences {own} is invalid for the target audiences {wanted}"));
    }
    let now = server.clock.now().as_second();
    if claims["exp"].as_i64().is_none_or(|end| end < now - LEEWAY_SECONDS) {
        return Err("service account token has expired".to_owned());
    }
    if claims["nbf"].as_i64().is_some_and(|start| start > now + LEEWAY_SECONDS) {
        return Err("service account token is not valid yet".to_owned());
    }
    Ok((Arc::new(bound_user(server, claims, now)?), good_for))
}

fn go_list(list: &[&str]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| orlop_schema::field::go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// The service account of a token, if it and everything the token is bound to still exist.
fn bound_user(server: &Inner, claims: &Value, now: i64) -> Result<User, String> {
    let bound = &claims["kubernetes.io"];
    let namespace = object::text(bound, "namespace");
    let text = |part: &str, field: &str| object::text(&bound[part], field).to_owned();
    let (name, uid) = (text("serviceaccount", "name"), text("serviceaccount", "uid"));
    let account = server
        .find(&Inner::built_in("", "v1", "serviceaccounts"), namespace, &name)
        .ok_or_else(|| format!("serviceaccounts \"{name}\" not found"))?;
    let live = object::meta_str(&account, "uid");
    if live != uid {
        return Err(format!("service account UID ({live}) does not match claim ({uid})"));
    }
    if is_gone(&account, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let mut user = User::service_account(namespace, &name);
    user.uid = uid;
    let credential = format!("JTI={}", object::text(claims, "jti"));
    user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
    for (part, plural, in_namespace) in
        [("secret", "secrets", namespace), ("pod", "pods", namespace), ("node", "nodes", "")]
    {
        if bound[part].is_null() {
            continue;
        }
        let (name, uid) = (text(part, "name"), text(part, "uid"));
        let is_part_of_pod = part == "node" && !bound["pod"].is_null();
        if !is_part_of_pod {
            let found = server.find(&Inner::built_in("", "v1", plural), in_namespace, &name);
            let found = found.filter(|found| !is_gone(found, now));
            let found = found.ok_or("service account token has been invalidated")?;
            let live = object::meta_str(&found, "uid");
            if live != uid {
                return Err(format!(
                    "{part} UID ({live}) does not match service account {part} ref claim ({uid})"
                ));
            }
        }
        if part != "secret" {
            user.extra.insert(format!("authentication.kubernetes.io/{part}-name"), vec![name]);
            user.extra.insert(format!("authentication.kubernetes.io/{part}-uid"), vec![uid]);
        }
    }
    Ok(user)
}

/// Whether an object's deletion was asked for long enough ago.
fn is_gone(object: &Value, now: i64) -> bool {
    let deleted = object::meta_str(object, "deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|deleted| deleted.as_second() < now - LEEWAY_SECONDS)
}
