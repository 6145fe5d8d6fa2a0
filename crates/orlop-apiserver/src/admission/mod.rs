//! Admission: what is changed or refused between authorisation and storage, plugin by plugin, in the order of
//! kube-apiserver.

mod accounts;
mod certificates;
pub(crate) mod conditions;
mod expressions;
mod limits;
pub(crate) mod matching;
mod namespaces;
mod pods;
mod policy;
mod quota;
mod refusal;
mod resources;
mod runtimes;
mod security;
mod storage;
mod webhook;

use crate::auth::User;
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_merge::managed;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use webhook::Webhooks;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A stream to something behind the API, such as `exec`; the object is the request's options.
    Connect,
}

impl Operation {
    /// As rules and reviews spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The kind of an object: not always that of the resource it is sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Gvk {
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// The kind that objects of a resource have.
    pub(crate) fn of(kind: &Kind) -> Self {
        Self::new(&kind.group, &kind.version, &kind.kind)
    }

    /// As a review shows it.
    pub(crate) fn to_json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }
}

/// A write on its way through admission.
///
/// The `Kind` that goes with it is the resource the request named; `object_kind` differs from its kind for
/// subresources with objects of their own (`Scale`, `Eviction`, `Binding`, `TokenRequest`, `PodExecOptions`).
pub(crate) struct Attributes {
    pub(crate) operation: Operation,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The new state; null for a deletion.
    pub(crate) object: Value,
    /// The state so far; null for a creation.
    pub(crate) old: Value,
    /// The kind of `object` and `old`.
    pub(crate) object_kind: Gvk,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions` as a review shows them; null for `CONNECT`.
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
    pub(crate) user: Arc<User>,
    /// What the client is told beside the answer; the caller of admission hands it on.
    pub(crate) warnings: Vec<String>,
    pub(crate) rounds: Rounds,
}

/// Mutation goes round a second time if someone asks for it.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Whether this is the second round.
    pub(crate) again: bool,
    /// Set in the first round to have a second one.
    pub(crate) wanted: bool,
    pub(crate) webhooks: webhook::Reinvocation,
    /// Whether someone outside changed the object: what is unknown has not been dropped then.
    pub(crate) patched: bool,
    /// The managed fields before someone outside changed the object.
    pub(crate) owners: Option<Value>,
    /// What mutating policies remember of the first round.
    pub(crate) policies: policy::Memory,
}

impl Attributes {
    /// A warning for the client, once.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    fn is(&self, kind: &Kind, operation: Operation, group: &str, plural: &str) -> bool {
        self.operation == operation
            && self.subresource.is_empty()
            && kind.group == group
            && kind.plural == plural
    }
}

/// The plugins that are on.
pub(crate) struct Admission {
    disabled: BTreeSet<String>,
    webhooks: Webhooks,
    policies: policy::Cache,
}

/// Names of the plugins of this server, as `--disable-admission-plugins` takes them.
pub const PLUGINS: [&str; 19] = [
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "TaintNodesByCondition",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "DefaultStorageClass",
    "DefaultIngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
];

impl Admission {
    pub(crate) fn without(disabled: BTreeSet<String>) -> Self {
        Self { disabled, webhooks: Webhooks::default(), policies: policy::Cache::default() }
    }

    fn on(&self, plugin: &str) -> bool {
        !self.disabled.contains(plugin)
    }

    /// Lets plugins change the object, or refuse it: once, and once more if what came last changed what the
    /// first saw.
    pub(crate) async fn mutate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        self.mutate_once(server, kind, attributes).await?;
        if attributes.rounds.wanted {
            attributes.rounds.again = true;
            self.mutate_once(server, kind, attributes).await?;
        }
        restore_owners(attributes);
        Ok(())
    }

    async fn mutate_once(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        use Operation::{Create, Update};
        if self.on("NamespaceLifecycle") && attributes.operation != Operation::Connect {
            namespaces::check(server, kind, attributes)?;
        }
        if self.on("LimitRanger") {
            limits::mutate(server, kind, attributes);
        }
        if self.on("ServiceAccount") {
            accounts::mutate(server, kind, attributes)?;
        }
        if self.on("TaintNodesByCondition") && attributes.is(kind, Create, "", "nodes") {
            taint_new_node(&mut attributes.object);
        }
        if self.on("Priority") {
            if attributes.is(kind, Create, "", "pods") || attributes.is(kind, Update, "", "pods") {
                pods::set_priority(server, kind, attributes)?;
            }
            if kind.plural == "priorityclasses" && kind.group == "scheduling.k8s.io" {
                pods::check_priority_class(server, kind, attributes)?;
            }
        }
        let writes_pod = attributes.is(kind, Create, "", "pods") || attributes.is(kind, Update, "", "pods");
        if self.on("DefaultTolerationSeconds") && writes_pod {
            pods::add_tolerations(&mut attributes.object);
        }
        if self.on("DefaultStorageClass") && attributes.is(kind, Create, "", "persistentvolumeclaims") {
            storage::set_storage_class(server, attributes);
        }
        if self.on("StorageObjectInUseProtection") && attributes.operation == Create {
            storage::protect(kind, attributes);
        }
        if self.on("RuntimeClass") {
            runtimes::mutate(server, kind, attributes)?;
        }
        if self.on("DefaultIngressClass") && attributes.is(kind, Create, "networking.k8s.io", "ingresses") {
            storage::set_ingress_class(server, attributes);
        }
        if self.on("MutatingAdmissionPolicy") {
            self.policies.mutate(server, kind, attributes).await?;
        }
        if self.on("MutatingAdmissionWebhook") {
            self.webhooks.mutate(server, kind, attributes).await?;
        }
        Ok(())
    }

    /// Lets plugins refuse the object as it is to be stored.
    pub(crate) async fn validate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        if kind.group == "rbac.authorization.k8s.io" && attributes.operation != Operation::Delete {
            let old = (attributes.operation == Operation::Update).then_some(&attributes.old);
            server.auth.check_escalation(server, &attributes.user, &kind.plural, &attributes.object, old)?;
        }
        policy::access::check(server, kind, attributes)?;
        if self.on("LimitRanger") {
            limits::validate(server, kind, attributes)?;
        }
        if self.on("ServiceAccount") {
            accounts::validate(server, kind, attributes)?;
        }
        if self.on("PodSecurity") {
            security::validate(server, kind, attributes)?;
        }
        if self.on("PersistentVolumeClaimResize")
            && attributes.is(kind, Operation::Update, "", "persistentvolumeclaims")
        {
            storage::check_resize(server, kind, attributes)?;
        }
        if self.on("RuntimeClass") {
            runtimes::validate(server, kind, attributes)?;
        }
        if self.on("CertificateApproval") {
            certificates::check_approval(server, kind, attributes)?;
        }
        if self.on("CertificateSigning") {
            certificates::check_signing(server, kind, attributes)?;
        }
        if self.on("ValidatingAdmissionPolicy") {
            self.policies.validate(server, kind, attributes).await?;
        }
        if self.on("ValidatingAdmissionWebhook") {
            self.webhooks.validate(server, kind, attributes).await?;
        }
        // last, because it charges for what nobody refused
        if self.on("ResourceQuota") {
            quota::charge(server, kind, attributes)?;
        }
        Ok(())
    }
}

/// Puts managed fields back that someone outside has made unreadable.
fn restore_owners(attributes: &mut Attributes) {
    let Some(owners) = attributes.rounds.owners.take() else { return };
    let entries =
        attributes.object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Err(why) = managed::check(entries) {
        object::set_meta(&mut attributes.object, "managedFields", owners);
        attributes.warn(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {why}"
        ));
    }
}

/// A new node is not ready until something says that it is.
fn taint_new_node(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let mut taints = object::at(node, "spec.taints").and_then(Value::as_array).cloned().unwrap_or_default();
    if taints.iter().any(|taint| taint["key"] == KEY && taint["effect"] == "NoSchedule") {
        return;
    }
    taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    object::set_at(node, "spec.taints", Value::Array(taints));
}
