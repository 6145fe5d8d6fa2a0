//! `ResourceQuota`: counts what a request adds against the quotas of its namespace.
//!
//! A quota limits by what its status says: `status.hard`, and what is used so far. What a request adds is written to
//! `status.used` before the object is stored, and nothing is given back here when the object is not stored after
//! all or deleted: that is the work of a controller.

mod usage;

use super::resources::Resources;
use super::{Attributes, Operation, refusal};
use crate::kind::Kind;
use crate::object::{self, Stored};
use crate::server::Inner;
use crate::status::ApiError;
use orlop_store::Expect;
use serde_json::{Value, json};
use usage::Counted;

/// How often quotas are looked at again when someone else changed them meanwhile.
const TRIES: usize = 4;
/// The server itself, as an owner of fields.
const MANAGER: &str = "kube-apiserver";

/// A quota at one moment.
struct Quota {
    stored: Stored,
    object: Value,
    hard: Resources,
    used: Resources,
}

impl Quota {
    fn name(&self) -> &str {
        object::meta_str(&self.object, "name")
    }

    /// `scopes` and `scopeSelector` as one list of requirements.
    fn scopes(&self) -> Vec<Value> {
        let spec = &self.object["spec"];
        let plain = spec["scopes"].as_array().into_iter().flatten();
        let plain = plain.map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
        let selected = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
        plain.chain(selected.cloned()).collect()
    }

    fn matches(&self, counted: Counted<'_>, object: &Value) -> bool {
        let names = self.hard.names();
        names.iter().any(|name| counted.knows(name))
            && self.scopes().iter().all(|scope| counted.is_in_scope(scope, object))
    }
}

/// Refuses what exceeds a quota; charges the quotas otherwise.
pub(super) fn charge(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    if attributes.namespace.is_empty() || kind.group.is_empty() && kind.plural == "namespaces" {
        return Ok(());
    }
    let Some(counted) = Counted::of(kind).filter(|counted| counted.handles(attributes)) else {
        return Ok(());
    };
    let kinds = Inner::built_in("", "v1", "resourcequotas");
    let mut quotas = load(server, &kinds, &attributes.namespace);
    for _ in 0..TRIES {
        let charges = check(server, kind, attributes, counted, &quotas)?;
        if attributes.dry_run {
            return Ok(());
        }
        let mut failed = Vec::new();
        for (quota, used) in charges {
            if !commit(server, &kinds, quota, &used) {
                failed.push(quota.name().to_owned());
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        quotas = load(server, &kinds, &attributes.namespace);
        quotas.retain(|quota| failed.iter().any(|name| name == quota.name()));
    }
    let name = quotas.first().map(Quota::name).unwrap_or_default();
    Err(ApiError::modified("", "resourcequotas", name))
}

fn load(server: &Inner, kind: &Kind, namespace: &str) -> Vec<Quota> {
    let read = |stored: Stored| {
        let object = kind.read(&stored);
        let list = |field: &str| Resources::read(&object["status"][field]);
        Quota { hard: list("hard"), used: list("used"), stored, object }
    };
    server.stored_within(kind, namespace).into_iter().map(read).collect()
}

/// Writes what is used; false if the quota is not what it was.
fn commit(server: &Inner, kind: &Kind, quota: &Quota, used: &Resources) -> bool {
    let mut object = quota.object.clone();
    object["status"]["used"] = used.to_json();
    let object = kind.own(Some(&quota.object), object, MANAGER, "status", &server.now());
    match server.commit(kind, Expect::At(quota.stored.revision), object) {
        Ok(updated) => {
            server.committed(kind, Some(&quota.object), Some(&updated));
            true
        }
        Err(_) => false,
    }
}

/// What each quota that is concerned will have used.
fn check<'q>(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
    counted: Counted<'_>,
    quotas: &'q [Quota],
) -> Result<Vec<(&'q Quota, Resources)>, ApiError> {
    let forbidden = |why: String| refusal::forbidden(kind, attributes, &why);
    let object = &attributes.object;
    let mut concerned = Vec::new();
    for quota in quotas.iter().filter(|quota| quota.matches(counted, object)) {
        let mut known: Vec<&str> = quota.hard.names();
        known.retain(|name| counted.knows(name));
        let name = quota.name();
        counted.demand(&known, object).map_err(|why| forbidden(format!("failed quota: {name}: {why}")))?;
        if known.iter().any(|resource| quota.used.get(resource).is_none()) {
            let resources = known.join(",");
            return Err(forbidden(format!("status unknown for quota: {name}, resources: {resources}")));
        }
        concerned.push(quota);
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let now_ms = server.now_ms();
    let usage = counted.usage(object, now_ms);
    let negative: Vec<&str> =
        usage.0.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        let resources = negative.join(",");
        return Err(forbidden(format!("quota usage is negative for resource(s): {resources}")));
    }
    let mut charges = Vec::new();
    for quota in concerned {
        let counted_before =
            attributes.operation == Operation::Update && quota.matches(counted, &attributes.old);
        let added = if counted_before {
            usage.beyond(&counted.usage(&attributes.old, now_ms))
        } else {
            usage.without_zeros()
        };
        let requested = added.masked(&quota.hard.names());
        let mut used = quota.used.clone();
        used.add(&requested);
        if attributes.subresource != "status" {
            let asked = used.masked(&requested.names());
            let exceeded = asked.exceeding(&quota.hard);
            if !exceeded.is_empty() {
                return Err(forbidden(format!(
                    "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                    quota.name(),
                    requested.masked(&exceeded).print(),
                    quota.used.masked(&exceeded).print(),
                    quota.hard.masked(&exceeded).print()
                )));
            }
        }
        if !used.equals(&quota.used) {
            charges.push((quota, used));
        }
    }
    Ok(charges)
}
