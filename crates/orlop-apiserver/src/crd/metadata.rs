//! Object metadata as the server decodes and validates it, for custom objects and those embedded in them.

use crate::object;
use orlop_kinds::catalog::catalog;
use orlop_kinds::codec;
use orlop_kinds::validate::{Scope, object_meta_create};
use orlop_schema::field::{FieldError, Path};
use orlop_schema::names::NameRule;
use orlop_schema::structural::embedded::Metadata;
use serde_json::{Value, json};

/// The metadata of the Kubernetes API.
pub(super) struct ServerMetadata;

impl Metadata for ServerMetadata {
    fn decode(&self, metadata: &Value) -> Result<(Value, Vec<String>), String> {
        let id = catalog().type_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let Some(id) = id.filter(|_| !metadata.is_null()) else { return Ok((json!({}), Vec::new())) };
        let decoded = codec::decode(id, metadata.clone()).map_err(|why| why.to_string())?;
        let unknown = decoded.strict.iter().filter_map(|text| unknown_field(text)).collect();
        let mut value = decoded.value;
        if let Some(fields) =
            value.as_object_mut().filter(|fields| fields.get("creationTimestamp") == Some(&Value::Null))
        {
            fields.remove("creationTimestamp");
        }
        Ok((value, unknown))
    }

    fn validate(&self, metadata: &Value, path: &Path) -> Vec<FieldError> {
        let mut metadata = match self.decode(metadata) {
            Ok((metadata, _)) => metadata,
            Err(why) => return vec![FieldError::invalid(path, metadata, why)],
        };
        if object::text(&metadata, "name").is_empty() {
            metadata["name"] = "fakename".into();
        }
        let scope =
            if object::text(&metadata, "namespace").is_empty() { Scope::Cluster } else { Scope::Namespaced };
        object_meta_create(&metadata, scope, NameRule::PathSegment, path)
    }
}

/// The field in `unknown field "a.b"`.
fn unknown_field(text: &str) -> Option<String> {
    let quoted = text.strip_prefix("unknown field \"")?;
    Some(quoted.strip_suffix('"')?.to_owned())
}
