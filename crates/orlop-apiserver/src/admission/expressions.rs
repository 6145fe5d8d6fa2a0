//! A request as the expressions of policies and match conditions see it, and the authorizer they may ask.

use super::matching::{Gvr, Matched};
use super::{Attributes, Gvk};
use crate::auth::{self, Decision, User};
use crate::kind::Kind;
use crate::route::api_version;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_cel::admission::Input;
use orlop_cel::{Authorizer, Check, Subject, Value as Cel};
use serde_json::{Value, json};

/// Fields of a namespace that expressions see.
const NAMESPACE_META: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// The new and the old object of a request.
pub(super) type Objects = (Cel, Cel);

/// The objects of a request in the kind that a policy matched.
pub(super) async fn shown(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
    matched: &Matched,
) -> Result<Objects, ApiError> {
    let to = api_version(&matched.kind.group, &matched.kind.version);
    let converts = matched.is_converted(attributes);
    let show = async |object: &Value| {
        if converts && object.is_object() {
            kind.convert_for(server, object.clone(), &to).await.map(|object| Cel::dynamic(&object))
        } else {
            Ok(Cel::dynamic(object))
        }
    };
    Ok((show(&attributes.object).await?, show(&attributes.old).await?))
}

/// The input of a policy's expressions.
pub(super) fn input(
    kind: &Kind,
    attributes: &Attributes,
    matched: &Matched,
    (object, old_object): Objects,
    namespace: Option<&Value>,
) -> Input {
    Input {
        object,
        old_object,
        request: Cel::dynamic(&request(kind, attributes, &matched.resource, &matched.kind)),
        params: Cel::Null,
        namespace: namespace.map_or(Cel::Null, |namespace| Cel::dynamic(&namespace_object(namespace))),
        resource: Check::resource(
            &kind.group,
            &kind.plural,
            &attributes.subresource,
            &attributes.namespace,
            &attributes.name,
        ),
    }
}

/// The same input for match conditions, which see the request as it came and no namespace.
pub(super) fn for_conditions(input: &Input, kind: &Kind, attributes: &Attributes, shown: &Gvk) -> Input {
    let request = Cel::dynamic(&request(kind, attributes, &Gvr::of(kind), shown));
    Input { request, namespace: Cel::Null, ..input.clone() }
}

/// The `AdmissionRequest` without its objects; what is empty is not there.
fn request(kind: &Kind, attributes: &Attributes, resource: &Gvr, shown: &Gvk) -> Value {
    let mut request = json!({
        "uid": "", "kind": shown.to_json(), "resource": resource.to_json(),
        "requestKind": attributes.object_kind.to_json(), "requestResource": Gvr::of(kind).to_json(),
        "operation": attributes.operation.as_str(), "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run, "options": attributes.options,
    });
    for (field, text) in [
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
    ] {
        if !text.is_empty() {
            request[field] = text.as_str().into();
        }
    }
    request
}

fn namespace_object(namespace: &Value) -> Value {
    let metadata: serde_json::Map<String, Value> = NAMESPACE_META
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), namespace["metadata"].get(*field)?.clone())))
        .collect();
    let part = |field: &str| namespace.get(field).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}

/// Answers expressions that ask what the requester or a service account may do.
pub(super) struct Asked<'a> {
    pub(super) server: &'a Inner,
    pub(super) user: &'a User,
}

impl Authorizer for Asked<'_> {
    fn authorize(&self, check: &Check) -> orlop_cel::Decision {
        let wanted = auth::Attributes {
            path: &check.path,
            is_resource: check.path.is_empty(),
            ..auth::Attributes::resource(
                &check.verb,
                &check.group,
                &check.resource,
                &check.subresource,
                &check.namespace,
                &check.name,
            )
        };
        let decision = match &check.subject {
            Subject::Requester => self.server.auth.decide(self.server, self.user, &wanted),
            Subject::ServiceAccount { namespace, name } => {
                self.server.auth.decide(self.server, &User::service_account(namespace, name), &wanted)
            }
        };
        match decision {
            Decision::Allowed(reason) => orlop_cel::Decision { allowed: true, reason, error: None },
            Decision::Denied(reason) => orlop_cel::Decision { allowed: false, reason, error: None },
        }
    }
}
