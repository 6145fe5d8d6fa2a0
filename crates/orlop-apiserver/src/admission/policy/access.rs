//! Who lets a policy read params must be allowed to read them.

use super::{GROUP, params};
use crate::admission::{Attributes, Operation};
use crate::auth::{self, Decision, User};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_schema::field::{FieldError, Path};
use serde_json::Value;

/// Refuses policies and bindings whose params their writer may not read.
pub(in crate::admission) fn check(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
) -> Result<(), ApiError> {
    let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
    if kind.group != GROUP
        || !writes
        || !attributes.subresource.is_empty()
        || attributes.user.is_in("system:masters")
    {
        return Ok(());
    }
    let (spec, old) = (&attributes.object["spec"], &attributes.old["spec"]);
    let (field, refused) = match kind.plural.as_str() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            let param_kind = &spec["paramKind"];
            if param_kind.is_null() || *param_kind == old["paramKind"] {
                return Ok(());
            }
            ("paramKind", of_policy(server, &attributes.user, param_kind))
        }
        "validatingadmissionpolicybindings" if spec["paramRef"].is_object() => {
            ("paramRef", of_binding(server, &attributes.user, "validatingadmissionpolicies", spec))
        }
        "mutatingadmissionpolicybindings" if spec["paramRef"].is_object() => {
            ("paramRef", of_binding(server, &attributes.user, "mutatingadmissionpolicies", spec))
        }
        _ => return Ok(()),
    };
    match refused {
        None => Ok(()),
        Some(why) => {
            let error = FieldError::forbidden(&Path::new("spec").child(field), why);
            Err(kind.refuse(&attributes.object, &[error]))
        }
    }
}

/// The resource that a kind of params is, as far as it is known.
struct Asked {
    group: String,
    resource: String,
    resolved: bool,
}

fn asked(server: &Inner, param_kind: &Value) -> Asked {
    let group = object::text(param_kind, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    match params::kind_of(server, param_kind) {
        Ok(Some(kind)) => Asked { group: kind.group.clone(), resource: kind.plural.clone(), resolved: true },
        _ => Asked { group: group.to_owned(), resource: "*".to_owned(), resolved: false },
    }
}

fn may(server: &Inner, user: &User, verb: &str, asked: &Asked, namespace: &str, name: &str) -> bool {
    let wanted = auth::Attributes::resource(verb, &asked.group, &asked.resource, "", namespace, name);
    matches!(server.auth.decide(server, user, &wanted), Decision::Allowed(_))
}

fn of_policy(server: &Inner, user: &User, param_kind: &Value) -> Option<String> {
    if may(server, user, "get", &asked(server, param_kind), "*", "*") {
        return None;
    }
    let (kind, version) = (object::text(param_kind, "kind"), object::text(param_kind, "apiVersion"));
    Some(format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
         apiVersion={version})",
        print(user)
    ))
}

fn of_binding(server: &Inner, user: &User, policies: &str, spec: &Value) -> Option<String> {
    let name = object::text(spec, "policyName");
    let policy = server.find(&Inner::built_in(GROUP, "v1", policies), "", name);
    let param_kind = policy.as_ref().map(|policy| &policy["spec"]["paramKind"]);
    let asked = match param_kind {
        Some(kind) if kind.is_object() => asked(server, kind),
        _ => Asked { group: "*".to_owned(), resource: "*".to_owned(), resolved: true },
    };
    let reference = &spec["paramRef"];
    let object_name = object::text(reference, "name");
    let verb = if object_name.is_empty() { "list" } else { "get" };
    if may(server, user, verb, &asked, object::text(reference, "namespace"), object_name) {
        return None;
    }
    let user = print(user);
    let everywhere = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
         versions and resources"
    );
    Some(match param_kind {
        None => format!("unable to get policy {name} {everywhere}"),
        Some(kind) if !asked.resolved => {
            let (version, kind) = (object::text(kind, "apiVersion"), object::text(kind, "kind"));
            format!("unable to resolve paramKind &{{{version} {kind}}} {everywhere}")
        }
        // the original names verb and user in the wrong order
        Some(_) if policies.starts_with("mutating") => {
            format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
        }
        Some(_) => {
            format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef")
        }
    })
}

/// A user as Go prints its structure.
fn print(user: &User) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
