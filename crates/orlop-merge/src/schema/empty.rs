//! The object a server starts from when it creates one: what Go encodes of the zero struct.

use serde_json::{Map as JsonMap, Value};

use super::{Field, ObjectType, TypeRef};

impl ObjectType {
    /// The empty object of a built-in type.
    ///
    /// Structs that are not behind a pointer are there and empty (their fields have the default `{}`), scalars with a
    /// zero default are zero, required fields without a default null. Without these, a first write would own the
    /// structs themselves.
    pub fn empty(&self) -> JsonMap<String, Value> {
        match self.empty_value(&self.root, DEPTH_MAX) {
            Value::Object(map) => map,
            _ => JsonMap::new(),
        }
    }

    fn empty_value(&self, ty: &TypeRef, depth: usize) -> Value {
        let fields = self.schema.resolve(ty).and_then(|atom| atom.map).map(|map| &map.map.fields);
        let Some(fields) = fields.filter(|_| depth > 0) else { return Value::Object(JsonMap::new()) };
        let definition = self.schema.name_of(ty).unwrap_or_default();
        let empty = fields.iter().filter_map(|(name, field)| {
            let value = match exception(definition, name) {
                Some(Exception::Null) => Value::Null,
                Some(Exception::Absent) => return None,
                None => self.empty_field(field, depth)?,
            };
            Some((name.to_string(), value))
        });
        Value::Object(empty.collect())
    }

    fn empty_field(&self, field: &Field, depth: usize) -> Option<Value> {
        match &field.default {
            Some(Value::Object(default)) if default.is_empty() => {
                let atom = self.schema.resolve(&field.ty)?;
                // Times and quantities are structs that do not encode as maps.
                atom.map.filter(|_| atom.scalar.is_none())?;
                Some(self.empty_value(&field.ty, depth - 1))
            }
            Some(default) if is_zero(default) => Some(default.clone()),
            None if field.required => Some(Value::Null),
            _ => None,
        }
    }
}

/// No built-in type nests embedded structs deeper than this.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Copy)]
enum Exception {
    /// Encoded though it is optional: the Go field lacks `omitempty`, or is a time.
    Null,
    /// Not encoded though it is required: the Go field has `omitempty`, or is a pointer to a scalar.
    Absent,
}

/// Fields of which OpenAPI does not tell how Go encodes them.
const EXCEPTIONS: [(&str, Exception, &[&str]); 22] = [
    (
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        Exception::Absent,
        &["policyName", "validationActions"],
    ),
    ("io.k8s.api.apps.v1.ControllerRevision", Exception::Null, &["data"]),
    ("io.k8s.api.autoscaling.v1.ScaleSpec", Exception::Absent, &["replicas"]),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", Exception::Null, &["currentMetrics"]),
    (
        "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec",
        Exception::Null,
        &["pkixPublicKey", "proofOfPossession"],
    ),
    ("io.k8s.api.coordination.v1alpha2.LeaseCandidateSpec", Exception::Absent, &["strategy"]),
    ("io.k8s.api.coordination.v1beta1.LeaseCandidateSpec", Exception::Absent, &["strategy"]),
    ("io.k8s.api.core.v1.Event", Exception::Null, &["eventTime", "firstTimestamp", "lastTimestamp"]),
    ("io.k8s.api.core.v1.ReplicationControllerSpec", Exception::Absent, &["minReadySeconds"]),
    ("io.k8s.api.discovery.v1.EndpointSlice", Exception::Null, &["endpoints", "ports"]),
    ("io.k8s.api.events.v1.Event", Exception::Null, &["deprecatedFirstTimestamp", "deprecatedLastTimestamp"]),
    ("io.k8s.api.networking.v1.IPAddressSpec", Exception::Absent, &["parentRef"]),
    ("io.k8s.api.networking.v1beta1.IPAddressSpec", Exception::Absent, &["parentRef"]),
    ("io.k8s.api.rbac.v1.ClusterRole", Exception::Null, &["rules"]),
    ("io.k8s.api.rbac.v1.Role", Exception::Null, &["rules"]),
    ("io.k8s.api.resource.v1.DeviceClaim", Exception::Null, &["requests"]),
    ("io.k8s.api.resource.v1beta1.DeviceClaim", Exception::Null, &["requests"]),
    ("io.k8s.api.resource.v1beta2.DeviceClaim", Exception::Null, &["requests"]),
    ("io.k8s.api.scheduling.v1alpha2.PodGroupSpec", Exception::Null, &["podGroupTemplateRef"]),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
        Exception::Null,
        &["conditions", "storedVersions"],
    ),
    ("io.k8s.api.authentication.v1.TokenRequestStatus", Exception::Null, &["expirationTimestamp"]),
    (
        "io.k8s.api.authentication.v1.TokenRequestSpec",
        Exception::Null,
        &["audiences", "boundObjectRef", "expirationSeconds"],
    ),
];

fn exception(definition: &str, field: &str) -> Option<Exception> {
    EXCEPTIONS
        .iter()
        .find(|(name, _, fields)| *name == definition && fields.contains(&field))
        .map(|(_, exception, _)| *exception)
}

/// Whether a default only says that Go has no pointer there.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}
