//! Custom kinds: from CustomResourceDefinitions to descriptors, and the controllers for them that live in the
//! server itself (naming, establishing, finalising).

mod definition;
mod kind;
mod lifecycle;

pub(crate) use definition::{is_definition, validate};
pub(crate) use kind::CustomKind;
pub(crate) use lifecycle::{changed, instance_changed, openapi, reload};
