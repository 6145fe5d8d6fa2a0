//! Refusals by admission plugins.

use super::Attributes;
use crate::kind::Kind;
use crate::object;
use crate::status::ApiError;

/// 403 that names the object, even if it has no name yet.
pub(super) fn forbidden(kind: &Kind, attributes: &Attributes, why: &str) -> ApiError {
    let named = || {
        let names = ["name", "generateName"].map(|field| object::meta_str(&attributes.object, field));
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
    };
    let name = if attributes.name.is_empty() { named() } else { &attributes.name };
    ApiError::forbidden(&kind.group, &kind.plural, name, why)
}
