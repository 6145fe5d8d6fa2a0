//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`: policies with expressions, and the bindings that put
//! them to use.
//!
//! Policies are compiled once and kept until one of them or one of their bindings is written, so that they take
//! effect with the write. A policy without a binding does nothing.

pub(super) mod access;
mod mutating;
mod params;
mod validating;

use super::expressions;
use super::matching::{self, Matched};
use super::{Attributes, refusal};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use orlop_cel::admission::{Compiler, Declared};
use orlop_store::Revision;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use mutating::Memory;

const GROUP: &str = "admissionregistration.k8s.io";
/// Policies and their bindings, for both kinds.
const PLURALS: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];
/// Reviews, which policies must not break.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// A policy in use.
struct Policy<E> {
    name: String,
    spec: Value,
    bindings: Vec<Binding>,
    evaluator: E,
}

/// How a policy is used.
struct Binding {
    name: String,
    spec: Value,
}

/// All policies in use, by name.
#[derive(Default)]
struct Policies {
    validating: Vec<Policy<validating::Evaluator>>,
    mutating: Vec<Policy<mutating::Evaluator>>,
}

/// The policies of the newest state, compiled again when one of them has changed.
pub(super) struct Cache {
    /// In the order of [`PLURALS`].
    kinds: [Arc<Kind>; 4],
    known: Mutex<Option<([Revision; 4], Arc<Policies>)>>,
}

impl Default for Cache {
    fn default() -> Self {
        let kinds = PLURALS.map(|plural| Inner::built_in(GROUP, "v1", plural));
        Self { kinds, known: Mutex::default() }
    }
}

impl Cache {
    /// Refuses what a validating policy denies.
    pub(super) async fn validate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        let policies = self.policies(server);
        if policies.validating.is_empty() || is_exempt(kind) {
            return Ok(());
        }
        validating::dispatch(server, kind, attributes, &policies.validating).await
    }

    /// Lets mutating policies change the object.
    pub(super) async fn mutate(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        let policies = self.policies(server);
        if policies.mutating.is_empty() || is_exempt(kind) {
            return Ok(());
        }
        mutating::dispatch(server, kind, attributes, &policies.mutating).await
    }

    fn policies(&self, server: &Inner) -> Arc<Policies> {
        let revisions = [0, 1, 2, 3].map(|n: usize| server.store.table_revision(&self.kinds[n].table));
        let mut cached = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, policies)) = &*cached
            && *at == revisions
        {
            return policies.clone();
        }
        let [validating, validating_bindings, mutating, mutating_bindings] = &self.kinds;
        let policies = Arc::new(Policies {
            validating: load(server, validating, validating_bindings, validating::Evaluator::compile),
            mutating: load(server, mutating, mutating_bindings, mutating::Evaluator::compile),
        });
        *cached = Some((revisions, policies.clone()));
        policies
    }
}

/// Policies do not judge policies, nor reviews.
fn is_exempt(kind: &Kind) -> bool {
    kind.group == GROUP && PLURALS.contains(&kind.plural.as_str()) || REVIEWS.contains(&kind.group.as_str())
}

fn load<E>(
    server: &Inner,
    policies: &Kind,
    bindings: &Kind,
    compile: impl Fn(&Value) -> E,
) -> Vec<Policy<E>> {
    let mut by_policy: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
    for stored in server.store.snapshot(&bindings.table).iter() {
        let mut binding = bindings.read(stored);
        let (name, spec) = (object::meta_str(&binding, "name").to_owned(), binding["spec"].take());
        by_policy
            .entry(object::text(&spec, "policyName").to_owned())
            .or_default()
            .push(Binding { name, spec });
    }
    let load_one = |(name, bindings): (String, Vec<Binding>)| {
        let spec = server.find(policies, "", &name)?["spec"].take();
        Some(Policy { evaluator: compile(&spec), name, spec, bindings })
    };
    by_policy.into_iter().filter_map(load_one).collect()
}

/// A compiler that knows the variables of a policy, and what its expressions may use.
fn compiler(spec: &Value) -> (Compiler, Declared) {
    let declared = Declared { params: !spec["paramKind"].is_null(), authorizer: true, patches: false };
    let mut compiler = Compiler::composed();
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let (name, expression) = (object::text(variable, "name"), object::text(variable, "expression"));
        // what is wrong with a variable is said by the expressions that use it
        let _ = compiler.declare(name, expression, declared);
    }
    (compiler, declared)
}

/// A binding that is about a request, with one of the params it names.
struct Invocation<'p, E> {
    policy: &'p Policy<E>,
    binding: &'p Binding,
    matched: Matched,
    /// Null if the policy has none.
    param: Value,
}

/// A policy or binding that cannot be used.
struct Misconfigured<'p> {
    policy: &'p str,
    spec: &'p Value,
    binding: Option<&'p str>,
    why: String,
}

impl Misconfigured<'_> {
    fn is_ignored(&self) -> bool {
        ignores_failure(self.spec)
    }
}

fn ignores_failure(spec: &Value) -> bool {
    spec["failurePolicy"] == "Ignore"
}

/// The bindings of one policy that are about the request.
fn invocations<'p, E>(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
    policy: &'p Policy<E>,
) -> Vec<Result<Invocation<'p, E>, Misconfigured<'p>>> {
    let wrong = |binding: Option<&'p Binding>, why: String| {
        let what = if binding.is_some() { "binding" } else { "policy" };
        Err(Misconfigured {
            policy: &policy.name,
            spec: &policy.spec,
            binding: binding.map(|binding| binding.name.as_str()),
            why: format!("failed to configure {what}: {why}"),
        })
    };
    let matched = match matching::resources(server, &policy.spec["matchConstraints"], kind, attributes) {
        Ok(Some(matched)) => matched,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![wrong(None, error.message().to_owned())],
    };
    let param_kind = match params::kind_of(server, &policy.spec["paramKind"]) {
        Ok(kind) => kind,
        Err(why) => return vec![wrong(None, why)],
    };
    let mut found = Vec::new();
    for binding in &policy.bindings {
        match binding_matches(server, kind, attributes, binding) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                found.push(wrong(Some(binding), error.message().to_owned()));
                continue;
            }
        }
        let reference = &binding.spec["paramRef"];
        match params::collect(server, param_kind.as_deref(), reference, &attributes.namespace) {
            Ok(params) => found.extend(
                params
                    .into_iter()
                    .map(|param| Ok(Invocation { policy, binding, matched: matched.clone(), param })),
            ),
            Err(why) => found.push(wrong(Some(binding), why)),
        }
    }
    found
}

fn binding_matches(
    server: &Inner,
    kind: &Kind,
    attributes: &Attributes,
    binding: &Binding,
) -> Result<bool, ApiError> {
    match &binding.spec["matchResources"] {
        Value::Null => Ok(true),
        constraints => Ok(matching::resources(server, constraints, kind, attributes)?.is_some()),
    }
}

/// The namespace of the request, unless it is about a namespace or about nothing in one.
fn namespace(server: &Inner, attributes: &Attributes) -> Result<Option<Value>, ApiError> {
    let shown = &attributes.object_kind;
    let is_namespace = shown.group.is_empty() && shown.kind == "Namespace";
    if attributes.namespace.is_empty() || is_namespace {
        return Ok(None);
    }
    let namespaces = Inner::built_in("", "v1", "namespaces");
    let found = server.find(&namespaces, "", &attributes.namespace);
    found.map(Some).ok_or_else(|| ApiError::not_found("", "namespaces", &attributes.namespace))
}
