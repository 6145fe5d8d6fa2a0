//! Reviews: what a webhook is told, and what it says.

use super::hooks::Hook;
use crate::admission::Attributes;
use crate::admission::matching::{Gvr, Matched};
use crate::kind::Kind;
use crate::object;
use crate::outbound::Expected;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_kinds::codec::base64;
use serde_json::{Map, Value, json};

/// What a webhook can be called for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// The objects of a request in the version that a webhook asked for.
pub(super) struct Shown {
    pub(super) object: Value,
    pub(super) old: Value,
}

/// A webhook's consent.
pub(super) struct Consent {
    pub(super) warnings: Vec<String>,
    /// A patch that is not empty, and its type.
    pub(super) patch: Option<(Vec<u8>, String)>,
}

/// Why a webhook did not consent.
pub(super) enum Refusal {
    /// It could not be asked; the failure policy decides.
    Call(String),
    /// It said no, with these warnings.
    Denied(Box<ApiError>, Vec<String>),
    /// It must not be asked.
    Unasked(ApiError),
}

impl Refusal {
    /// The error for the client, unless the webhook is one whose failures count as consent.
    pub(super) fn into_error(self, hook: &Hook) -> Option<ApiError> {
        match self {
            Self::Call(_) if hook.fails_open => None,
            Self::Call(why) => {
                Some(ApiError::internal(&format!("failed calling webhook \"{}\": {why}", hook.name)))
            }
            Self::Denied(error, _) => Some(*error),
            Self::Unasked(error) => Some(error),
        }
    }
}

/// Asks a webhook.
pub(super) async fn ask(
    server: &Inner,
    hook: &Hook,
    phase: Phase,
    kind: &Kind,
    attributes: &Attributes,
    matched: &Matched,
    shown: &Shown,
) -> Result<Consent, Refusal> {
    if attributes.dry_run && !hook.dry_runs {
        let why = format!("admission webhook \"{}\" does not support dry run", hook.name);
        return Err(Refusal::Unasked(ApiError::bad_request(why)));
    }
    let Some(version) = hook.review_version else {
        let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, \
                   v1beta1)";
        return Err(Refusal::Call(why.to_owned()));
    };
    let endpoint = hook.endpoint.as_ref().map_err(|why| {
        Refusal::Call(format!("could not get REST client: failed calling webhook \"{}\": {why}", hook.name))
    })?;
    let uid = server.rng.uuid();
    let review = request(version, &uid, kind, attributes, matched, shown);
    let mut body = Vec::with_capacity(1024);
    object::write_json(&mut body, &review);
    let expected =
        Expected { group: "admission.k8s.io", version, kind: "AdmissionReview", others: &["v1", "v1beta1"] };
    let answer = server.outbound.post(server, endpoint, body, hook.timeout).await;
    let answer = answer
        .and_then(|reply| reply.review(&expected))
        .map_err(|why| Refusal::Call(format!("failed to call webhook: {why}")))?;
    let invalid = |why: String| Refusal::Call(format!("received invalid webhook response: {why}"));
    let response = answer.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| invalid("webhook response was absent".to_owned()))?;
    if version == "v1" {
        check(&answer, response, &uid, phase).map_err(invalid)?;
    }
    let list = response["warnings"].as_array().into_iter().flatten();
    let warnings = list.filter_map(|text| Some(text.as_str()?.to_owned())).collect();
    if response["allowed"] != true {
        return Err(Refusal::Denied(Box::new(denial(&hook.name, &response["status"])), warnings));
    }
    let patch = base64::decode(object::text(response, "patch")).unwrap_or_default();
    // Earlier reviews knew no other type.
    let ty = if version == "v1" { object::text(response, "patchType") } else { "JSONPatch" };
    Ok(Consent { warnings, patch: (!patch.is_empty()).then(|| (patch, ty.to_owned())) })
}

fn request(
    version: &str,
    uid: &str,
    kind: &Kind,
    attributes: &Attributes,
    matched: &Matched,
    shown: &Shown,
) -> Value {
    let mut request = Map::new();
    let mut set = |name: &str, value: Value| request.insert(name.to_owned(), value);
    set("uid", uid.into());
    set("kind", matched.kind.to_json());
    set("resource", matched.resource.to_json());
    set("requestKind", attributes.object_kind.to_json());
    set("requestResource", Gvr::of(kind).to_json());
    for (name, text) in [
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
    ] {
        if !text.is_empty() {
            set(name, text.as_str().into());
        }
    }
    set("operation", attributes.operation.as_str().into());
    set("userInfo", attributes.user.info());
    set("object", shown.object.clone());
    set("oldObject", shown.old.clone());
    set("dryRun", attributes.dry_run.into());
    set("options", attributes.options.clone());
    json!({
        "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request,
    })
}

/// What the first version of reviews did not ask of an answer.
fn check(answer: &Value, response: &Value, uid: &str, phase: Phase) -> Result<(), String> {
    let given = object::text(response, "uid");
    if given != uid {
        return Err(format!("expected response.uid=\"{uid}\", got {}", orlop_schema::field::go_quote(given)));
    }
    let (version, kind) = (object::text(answer, "apiVersion"), object::text(answer, "kind"));
    if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        ));
    }
    let has_patch = !object::text(response, "patch").is_empty();
    let patch_type = response.get("patchType").and_then(Value::as_str);
    match (phase, has_patch, patch_type) {
        (Phase::Mutating, true, None) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (Phase::Mutating, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (Phase::Mutating, true, Some("")) => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (Phase::Validating, true, _) => Err("validating webhook may not return response.patch".to_owned()),
        (Phase::Validating, false, Some(_)) => {
            Err("validating webhook may not return response.patchType".to_owned())
        }
        _ => Ok(()),
    }
}

/// A webhook's no, as the client sees it.
fn denial(name: &str, status: &Value) -> ApiError {
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let (message, reason) = (object::text(status, "message"), object::text(status, "reason"));
    let denied = format!("admission webhook {} denied the request", orlop_schema::field::go_quote(name));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let details = status.get("details").cloned().unwrap_or_default();
    let seconds = details.get("retryAfterSeconds").and_then(Value::as_u64).unwrap_or(0);
    let error = ApiError::new(code.filter(|code| *code >= 400).unwrap_or(400), "", message)
        .with_reason(reason)
        .with_metadata(status.get("metadata").cloned().unwrap_or_default())
        .with_details(details);
    match u32::try_from(seconds) {
        Ok(seconds) if seconds > 0 => error.with_retry_after(seconds),
        _ => error,
    }
}
