//! TokenRequest: a signed token for a service account, good for a while and bound to what it is for.

use super::Call;
use super::decode::Expected;
use super::render::Answer;
use crate::auth::ISSUER;
use crate::object;
use crate::options::{WriteOptions, WriteVerb};
use crate::server::Inner;
use crate::status::ApiError;
use orlop_clock::SignedDuration;
use orlop_kinds::catalog::catalog;
use orlop_kinds::{defaults, validate};
use serde_json::{Value, json};

/// How long a token lives that asks for nothing.
const DEFAULT_SECONDS: i64 = 3600;

impl Call {
    /// POST of a TokenRequest.
    pub(super) async fn request_token(&mut self) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Create)?;
        let expected = Expected::built_in("authentication.k8s.io", "v1", "TokenRequest")?;
        let mut request = self.decode_as(expected, options.field_validation)?;
        if let Some(id) = catalog().type_of("authentication.k8s.io", "v1", "TokenRequest") {
            defaults::default_object(id, &mut request);
        }
        request = self.own_answered(request, &options);
        request = self.admit_answered(request, &options).await?;
        let name = self.route.name.clone();
        let given = object::meta_str(&request, "name");
        if !given.is_empty() && given != name {
            let path = orlop_schema::field::Path::new("metadata").child("name");
            let error = orlop_schema::field::FieldError::invalid(
                &path,
                &json!(given),
                "must match the service account name if specified",
            );
            return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", given, &[error]));
        }
        let account = self.object(&name).await?;
        let (asked, uid) = (object::meta_str(&request, "uid"), object::meta_str(&account, "uid"));
        if !asked.is_empty() && asked != uid {
            let why = format!(
                "the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
            );
            return Err(ApiError::conflict("authentication.k8s.io", "TokenRequest", &name, &why));
        }
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            object::set_at(&mut request, "spec.audiences", json!([ISSUER]));
        }
        for field in ["name", "namespace", "uid"] {
            object::copy_meta(&mut request, &account, field);
        }
        object::set_meta(&mut request, "creationTimestamp", self.server.now());
        let kind = validate::Kind { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
        let errors = validate::create(&kind, &request);
        if !errors.is_empty() {
            return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", &errors));
        }
        self.check_answered(&request, &options).await?;
        let spec = request["spec"].as_object().cloned().unwrap_or_default();
        let audiences = spec.get("audiences").cloned().unwrap_or_default();
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
        let bound = spec.get("boundObjectRef").filter(|bound| bound.is_object()).cloned();
        let mut claim = json!({
            "namespace": self.namespace(),
            "serviceaccount": {"name": name, "uid": object::meta_str(&account, "uid")},
        });
        if let Some(bound) = &bound {
            self.bind_claim(bound, &mut claim)?;
        }
        let now = self.server.clock.now();
        let ends = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
        let claims = json!({
            "iss": ISSUER, "aud": audiences, "sub": format!("system:serviceaccount:{}:{name}", self.namespace()),
            "iat": now.as_second(), "nbf": now.as_second(), "exp": ends.as_second(),
            "jti": self.server.rng.uuid(), "kubernetes.io": claim,
        });
        request["spec"] =
            json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound});
        let token = if options.dry_run { String::new() } else { self.server.auth.sign(&claims) };
        request["status"] = json!({"token": token, "expirationTimestamp": crate::server::rfc3339(ends)});
        Ok(Answer::Value(201, request))
    }

    /// Binds a token to an object: it dies with it.
    fn bind_claim(&self, bound: &Value, claim: &mut Value) -> Result<(), ApiError> {
        let (kind, api_version) = (object::text(bound, "kind"), object::text(bound, "apiVersion"));
        let name = object::text(bound, "name");
        let (part, plural, namespace) = match (kind, api_version) {
            ("Pod", "v1") => ("pod", "pods", self.namespace()),
            ("Secret", "v1") => ("secret", "secrets", self.namespace()),
            ("Node", "v1") => ("node", "nodes", ""),
            _ => {
                let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
                let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(ApiError::bad_request(why));
            }
        };
        let resource = Inner::built_in("", "v1", plural);
        let Some(found) = self.server.find(&resource, namespace, name) else {
            return Err(ApiError::not_found("", plural, name));
        };
        let uid = object::meta_str(&found, "uid");
        let wanted = object::text(bound, "uid");
        if !wanted.is_empty() && wanted != uid {
            let why = format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            );
            return Err(ApiError::conflict("", kind, name, &why));
        }
        claim[part] = json!({"name": name, "uid": uid});
        let account =
            object::at(&found, "spec.serviceAccountName").and_then(Value::as_str).unwrap_or_default();
        if part == "pod" && account != self.route.name {
            let why = format!(
                "cannot bind token for serviceaccount \"{}\" to pod running with different serviceaccount name.",
                self.route.name
            );
            return Err(ApiError::bad_request(why));
        }
        if part == "pod"
            && let Some(node) =
                object::at(&found, "spec.nodeName").and_then(Value::as_str).filter(|n| !n.is_empty())
        {
            let nodes = Inner::built_in("", "v1", "nodes");
            let uid =
                self.server.find(&nodes, "", node).map(|node| object::meta_str(&node, "uid").to_owned());
            claim["node"] = match uid {
                Some(uid) => json!({"name": node, "uid": uid}),
                None => json!({"name": node}),
            };
        }
        Ok(())
    }
}
