//! CustomResourceDefinitions as objects: what makes one valid.

use crate::kind::Kind;
use orlop_schema::field::FieldError;
use serde_json::Value;

/// Whether a kind is the kind of definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// What is wrong with a definition.
pub(crate) fn validate(_definition: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
