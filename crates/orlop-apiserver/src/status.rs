//! Errors as clients see them: a `Status` object with code, reason, message and details.

use orlop_schema::field::{FieldError, aggregate};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;

/// A request that failed, with everything its answer needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError(Box<Failure>);

#[derive(Clone, Debug, PartialEq)]
struct Failure {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Map<String, Value>>,
    retry_after: Option<u32>,
    /// Few have any: the token of an expired list, and what a webhook says.
    metadata: Map<String, Value>,
    /// Answered as plain text, as the mux in front of the API does.
    plain: bool,
}

impl ApiError {
    /// A failure without details.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details: None,
            retry_after: None,
            metadata: Map::new(),
            plain: false,
        }))
    }

    /// 400: the request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 500 as it comes from a plain Go error: no reason.
    pub(crate) fn internal_plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500 with the reason and the words of an internal error.
    pub(crate) fn internal(message: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .with_details(json!({"causes": [{"message": message}]}))
    }

    /// 404 for an object.
    pub(crate) fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(resource, group)))
            .about(group, resource, name)
    }

    /// 404 for a path below a known group.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(json!({}))
    }

    /// 404 as plain text, for paths that nothing serves.
    pub(crate) fn no_such_page() -> Self {
        let mut error = Self::new(404, "NotFound", "404 page not found\n");
        error.0.plain = true;
        error
    }

    /// 405.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(json!({}))
    }

    /// 409: the name is taken.
    pub(crate) fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", qualified(resource, group)))
            .about(group, resource, name)
    }

    /// 409: the object is not what the writer thought.
    pub(crate) fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(resource, group));
        Self::new(409, "Conflict", message).about(group, resource, name)
    }

    /// 409 with the words for a lost optimistic lock.
    pub(crate) fn modified(group: &str, resource: &str, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, why)
    }

    /// 403 by the authoriser or by an admission plugin.
    pub(crate) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let what = qualified(resource, group);
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 401.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 413.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 415 for a body.
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 406 for an `Accept` header.
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message)
    }

    /// 410: the revision has been forgotten.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 422: the object breaks rules of its kind.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut message = format!("{} \"{name}\" is invalid", qualified(kind, group));
        if !errors.is_empty() {
            message = format!("{message}: {}", aggregate(errors.iter().map(ToString::to_string)));
        }
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.fault.reason(), "message": e.body(), "field": e.path.as_str()}))
            .collect();
        let mut error = Self::new(422, "Invalid", message).about(group, kind, name);
        if let (Some(details), false) = (&mut error.0.details, causes.is_empty()) {
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        error
    }

    /// 504: a revision that has not happened yet.
    pub(crate) fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", format!("Timeout: {message}"))
            .with_details(json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            }))
            .with_retry_after(1)
    }

    /// Replaces the reason by one that the server does not know.
    #[must_use]
    pub(crate) fn with_reason(mut self, reason: &str) -> Self {
        self.0.reason = Cow::Owned(reason.to_owned());
        self
    }

    /// Replaces code and reason.
    #[must_use]
    pub(crate) fn with_code(mut self, code: u16, reason: &'static str) -> Self {
        (self.0.code, self.0.reason) = (code, Cow::Borrowed(reason));
        self
    }

    /// Replaces the message.
    #[must_use]
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Replaces the details.
    #[must_use]
    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.0.details = match details {
            Value::Object(map) => Some(map),
            _ => None,
        };
        self
    }

    /// Adds a cause.
    #[must_use]
    pub(crate) fn with_cause(mut self, cause: Value) -> Self {
        let details = self.0.details.get_or_insert_default();
        if let Value::Array(causes) = details.entry("causes").or_insert_with(|| json!([])) {
            causes.push(cause);
        }
        self
    }

    /// Adds a `Retry-After` header.
    #[must_use]
    pub(crate) fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// Replaces the metadata.
    #[must_use]
    pub(crate) fn with_metadata(mut self, metadata: Value) -> Self {
        if let Value::Object(metadata) = metadata {
            self.0.metadata = metadata;
        }
        self
    }

    /// Adds the token with which an expired list can go on inconsistently.
    #[must_use]
    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.0.metadata.insert("continue".to_owned(), token.into());
        self
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason; empty if there is none.
    pub(crate) fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Seconds for the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// The text, if the answer is not a `Status`.
    pub(crate) fn plain(&self) -> Option<&str> {
        self.0.plain.then_some(self.0.message.as_str())
    }

    /// The answer's body.
    pub(crate) fn to_status(&self) -> Value {
        let f = &self.0;
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": f.metadata, "status": "Failure",
            "message": f.message, "code": f.code,
        });
        if !f.reason.is_empty() {
            status["reason"] = f.reason.as_ref().into();
        }
        if let Some(details) = &f.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let mut details = Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        self.0.details = Some(details);
        self
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

/// `deployments.apps`, or `pods` where there is no group.
pub(crate) fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
