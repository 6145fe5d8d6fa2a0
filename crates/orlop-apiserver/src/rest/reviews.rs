//! Questions that are answered and not stored: may someone do this, who am I, whose token is this.

use super::Call;
use super::render::Answer;
use crate::auth::{Attributes, Decision, ISSUER, User};
use crate::object;
use crate::options::{WriteOptions, WriteVerb};
use crate::status::ApiError;
use orlop_kinds::validate;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Call {
    /// POST of a review.
    pub(super) async fn review(&mut self) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, WriteVerb::Create)?;
        let mut review = self.decode_body(options.field_validation)?;
        self.check_namespace(&mut review)?;
        review = self.own_answered(review, &options);
        review = self.admit_answered(review, &options).await?;
        let kind = self.kind.clone();
        if kind.kind == "TokenReview" && object::text(&review["spec"], "token").is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let errors = validate::create(&kind.id(), &review);
        if !errors.is_empty() {
            // Reviews of access do not know their kind by then.
            let named = if kind.group == "authorization.k8s.io" { "" } else { &kind.kind };
            return Err(ApiError::invalid(&kind.group, named, "", &errors));
        }
        if kind.kind != "LocalSubjectAccessReview" {
            self.check_answered(&review, &options).await?;
        }
        match kind.kind.as_str() {
            "SelfSubjectReview" => {
                review["metadata"]["creationTimestamp"] = self.server.now().into();
                review["status"] = json!({"userInfo": self.user.info()});
            }
            "SelfSubjectAccessReview" => {
                let user = self.user.clone();
                review["status"] = self.access_status(&user, &review["spec"], None);
            }
            "SubjectAccessReview" => {
                review["status"] = self.access_status(&asked_user(&review["spec"]), &review["spec"], None);
            }
            "LocalSubjectAccessReview" => {
                let namespace = self.route.namespace.clone();
                let asked = object::at(&review, "spec.resourceAttributes.namespace").and_then(Value::as_str);
                if asked.unwrap_or_default() != namespace {
                    let why = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
                    return Err(ApiError::bad_request(why));
                }
                self.check_answered(&review, &options).await?;
                let status =
                    self.access_status(&asked_user(&review["spec"]), &review["spec"], Some(&namespace));
                review["status"] = status;
            }
            "SelfSubjectRulesReview" => {
                let namespace = object::text(&review["spec"], "namespace").to_owned();
                if namespace.is_empty() {
                    return Err(ApiError::bad_request("no namespace on request"));
                }
                review["status"] = self.rules_status(&namespace);
                review["spec"] = json!({});
                // The answer is an object of its own.
                object::set_meta(&mut review, "managedFields", Value::Null);
            }
            "TokenReview" => review["status"] = self.token_status(&review["spec"]),
            _ => return Err(ApiError::method_not_allowed()),
        }
        Ok(Answer::Value(201, review))
    }

    fn access_status(&self, user: &User, spec: &Value, _namespace: Option<&str>) -> Value {
        let resource = &spec["resourceAttributes"];
        let path = &spec["nonResourceAttributes"];
        let attributes = if resource.is_object() {
            Attributes::resource(
                object::text(resource, "verb"),
                object::text(resource, "group"),
                object::text(resource, "resource"),
                object::text(resource, "subresource"),
                object::text(resource, "namespace"),
                object::text(resource, "name"),
            )
        } else {
            let verb = object::text(path, "verb");
            Attributes {
                path: object::text(path, "path"),
                is_resource: false,
                ..Attributes::resource(verb, "", "", "", "", "")
            }
        };
        match self.server.auth.decide(&self.server, user, &attributes) {
            Decision::Allowed(reason) if reason.is_empty() => json!({"allowed": true}),
            Decision::Allowed(reason) => json!({"allowed": true, "reason": reason}),
            Decision::Denied(reason) if reason.is_empty() => json!({"allowed": false}),
            Decision::Denied(reason) => json!({"allowed": false, "reason": reason}),
        }
    }

    fn rules_status(&self, namespace: &str) -> Value {
        let rules = self.server.auth.rules(&self.server, &self.user, namespace);
        let (mut resources, mut paths) = (Vec::new(), Vec::new());
        for rule in rules {
            if !rule.resources.is_empty() {
                let mut value =
                    json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
                if !rule.resource_names.is_empty() {
                    value["resourceNames"] = json!(rule.resource_names);
                }
                resources.push(value);
            }
            if !rule.paths.is_empty() {
                paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}));
            }
        }
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
    }

    fn token_status(&self, spec: &Value) -> Value {
        let asked: Vec<&str> =
            spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let audiences = if asked.is_empty() { vec![ISSUER] } else { asked };
        match self.server.auth.token_user(&self.server, object::text(spec, "token"), &audiences) {
            Ok((user, good_for)) => {
                json!({"authenticated": true, "user": user.info(), "audiences": good_for})
            }
            Err(why) => json!({"user": {}, "error": why}),
        }
    }
}

/// The user a review asks about.
fn asked_user(spec: &Value) -> User {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|v| Some(v.as_str()?.to_owned())).collect()
    };
    let extra: BTreeMap<String, Vec<String>> = spec["extra"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), list(values)))
        .collect();
    User {
        name: object::text(spec, "user").to_owned(),
        uid: object::text(spec, "uid").to_owned(),
        groups: list(&spec["groups"]),
        extra,
    }
}
