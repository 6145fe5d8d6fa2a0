//! The authorizer library: builds questions step by step and reads answers; and the escaping of JSON pointers.

use std::sync::Arc;

use orlop_schema::names;

use crate::authorizer::{Check, Stage, Subject};
use crate::eval::{Eval, fail};
use crate::value::Value;

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    Some(match (function, args) {
        ("jsonpatch.escapeKey", [Value::String(key)]) => {
            Ok(Value::string(key.replace('~', "~0").replace('/', "~1")))
        }
        ("errored", [Value::Decision(decision)]) => Ok(Value::Bool(decision.error.is_some())),
        ("error", [Value::Decision(decision)]) => {
            Ok(Value::string(decision.error.as_deref().unwrap_or_default()))
        }
        ("allowed", [Value::Decision(decision)]) => Ok(Value::Bool(decision.allowed)),
        ("reason", [Value::Decision(decision)]) => Ok(Value::string(decision.reason.as_str())),
        ("serviceAccount", [Value::Check(check), Value::String(namespace), Value::String(name)])
            if check.stage == Stage::Start =>
        {
            service_account(check, namespace, name)
        }
        (_, [Value::Check(check), Value::String(text)]) => step(function, check, text)?,
        _ => return None,
    })
}

fn service_account(check: &Check, namespace: &str, name: &str) -> Eval {
    if !names::dns1123_subdomain(name).is_empty() {
        return fail("Invalid service account name");
    }
    if !names::dns1123_label(namespace).is_empty() {
        return fail("Invalid service account namespace");
    }
    let subject = Subject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(Value::Check(Arc::new(Check { subject, ..check.clone() })))
}

fn step(function: &str, check: &Check, text: &str) -> Option<Eval> {
    let mut next = check.clone();
    let field = match (function, check.stage) {
        ("path", Stage::Start) => {
            if text.trim().is_empty() {
                return Some(fail("path must not be empty"));
            }
            next.stage = Stage::Path;
            &mut next.path
        }
        ("group", Stage::Start) => {
            next.stage = Stage::Group;
            &mut next.group
        }
        ("resource", Stage::Group) => {
            if text.trim().is_empty() {
                return Some(fail("resource must not be empty"));
            }
            next.stage = Stage::Resource;
            &mut next.resource
        }
        ("subresource", Stage::Resource) => &mut next.subresource,
        ("namespace", Stage::Resource) => &mut next.namespace,
        ("name", Stage::Resource) => &mut next.name,
        ("fieldSelector", Stage::Resource) => &mut next.field_selector,
        ("labelSelector", Stage::Resource) => &mut next.label_selector,
        _ => return None,
    };
    text.clone_into(field);
    Some(Ok(Value::Check(Arc::new(next))))
}
