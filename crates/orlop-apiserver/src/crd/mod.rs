//! Custom kinds: from CustomResourceDefinitions to descriptors, and the controllers for them that live in the
//! server itself (naming, establishing, finalising).

mod conditions;
mod conversion;
mod definition;
mod kind;
mod lifecycle;
mod metadata;
mod naming;
mod openapi;

pub(crate) use conversion::Conversions;
pub(crate) use definition::{is_definition, validate, validate_status, warnings};
pub(crate) use kind::CustomKind;
pub(crate) use lifecycle::{all_versions, begin_deletion, changed, instance_changed, rebuild};
pub(crate) use openapi::document as openapi;
