//! Admission by webhooks: mutating ones in turn, validating ones at once.
//!
//! Nothing is locked while a webhook is asked: it may call this server.

mod hooks;
mod mutating;
mod review;
mod validating;

pub(crate) use mutating::Reinvocation;

use super::Attributes;
use super::matching::Matched;
use crate::kind::Kind;
use crate::server::Inner;
use crate::status::ApiError;
use hooks::Hooks;
use review::Shown;
use serde_json::Value;

/// The webhooks of a server.
pub(crate) struct Webhooks {
    mutating: Hooks,
    validating: Hooks,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            mutating: Hooks::of("mutatingwebhookconfigurations"),
            validating: Hooks::of("validatingwebhookconfigurations"),
        }
    }
}

/// The objects of a request as a webhook wants to see them.
async fn shown(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
    matched: &Matched,
) -> Result<Shown, ApiError> {
    if !matched.is_converted(attributes) {
        return Ok(Shown { object: attributes.object.clone(), old: attributes.old.clone() });
    }
    let to = crate::route::api_version(&matched.kind.group, &matched.kind.version);
    let convert = async |object: &Value| match object {
        Value::Null => Ok(Value::Null),
        object => kind.convert_shown(server, object.clone(), &to).await,
    };
    Ok(Shown { object: convert(&attributes.object).await?, old: convert(&attributes.old).await? })
}
