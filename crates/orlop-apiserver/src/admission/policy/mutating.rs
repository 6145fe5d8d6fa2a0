//! Mutating policies: expressions that give patches, in order, and once more for policies that ask for it.

use super::{
    Attributes, Inner, Invocation, Kind, Misconfigured, Policy, compiler, expressions, invocations,
    namespace, refusal,
};
use crate::admission::conditions::Conditions;
use crate::admission::expressions::Asked;
use crate::admission::matching::Matched;
use crate::fields;
use crate::kind::Source;
use crate::object;
use crate::route::api_version;
use crate::status::ApiError;
use orlop_cel::admission::{Compiler, Declared, Expression, Input, POLICY_COST_MAX, Returns, Session};
use orlop_cel::{Budget, CompileError, Value as Cel};
use orlop_kinds::catalog::catalog;
use orlop_kinds::codec;
use orlop_merge::json_patch;
use orlop_merge::typed::{Duplicates, Typed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The compiled expressions of a policy.
pub(super) struct Evaluator {
    compiler: Compiler,
    conditions: Conditions,
    mutations: Vec<Mutation>,
    reinvoked: bool,
}

struct Mutation {
    form: Form,
    expression: Result<Expression, CompileError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    ApplyConfiguration,
    JsonPatch,
}

/// What is remembered between the two rounds of mutation.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Those that may go again if something changes after them.
    invoked: BTreeSet<String>,
    /// Those that go again.
    again: BTreeSet<String>,
    /// The object as the first round left it.
    output: Value,
}

impl Memory {
    fn changed(&mut self) {
        self.again.append(&mut self.invoked);
    }
}

/// Why a patch is not applied.
enum Failure {
    /// The failure policy decides.
    Policy(String),
    /// The request fails.
    Request(ApiError),
}

impl Evaluator {
    pub(super) fn compile(spec: &Value) -> Self {
        let (compiler, declared) = compiler(spec);
        let declared = Declared { patches: true, ..declared };
        let compile = |item: &Value| {
            let (form, field, returns) = match object::text(item, "patchType") {
                "JSONPatch" => (Form::JsonPatch, "jsonPatch", Returns::Patches),
                _ => (Form::ApplyConfiguration, "applyConfiguration", Returns::Object),
            };
            let source = object::text(&item[field], "expression");
            Mutation { form, expression: compiler.compile(source, declared, returns) }
        };
        Self {
            mutations: spec["mutations"].as_array().into_iter().flatten().map(compile).collect(),
            conditions: Conditions::with_params(&spec["matchConditions"], declared.params),
            reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
            compiler,
        }
    }
}

/// Lets all policies that are about the request change its object.
pub(super) async fn dispatch(
    server: &Inner,
    kind: &Kind,
    attributes: &mut Attributes,
    policies: &[Policy<Evaluator>],
) -> Result<(), ApiError> {
    let mut refusals = Vec::new();
    let mut active = Vec::new();
    for policy in policies {
        for invocation in invocations(server, kind, attributes, policy) {
            match invocation {
                Ok(invocation) => active.push(invocation),
                Err(wrong) => refusals.push((wrong, false)),
            }
        }
    }
    if attributes.rounds.again && attributes.rounds.policies.output != attributes.object {
        attributes.rounds.policies.changed();
    }
    if !active.is_empty() {
        let namespace = namespace(server, attributes)?;
        for invocation in &active {
            let failures = invoke(server, kind, attributes, invocation, namespace.as_ref()).await?;
            refusals.extend(failures.into_iter().map(|why| {
                let wrong = Misconfigured {
                    policy: &invocation.policy.name,
                    spec: &invocation.policy.spec,
                    binding: Some(&invocation.binding.name),
                    why,
                };
                (wrong, true)
            }));
        }
        attributes.rounds.policies.output = attributes.object.clone();
    }
    refuse(kind, attributes, &refusals)
}

/// One policy with one param; gives what went wrong for the failure policy to judge.
async fn invoke(
    server: &Inner,
    kind: &Kind,
    attributes: &mut Attributes,
    invocation: &Invocation<'_, Evaluator>,
    namespace: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let evaluator = &invocation.policy.evaluator;
    let user = attributes.user.clone();
    let asked = Asked { server, user: &user };
    let matched = &invocation.matched;
    let objects = match expressions::shown(server, kind, attributes, matched).await {
        Ok(objects) => objects,
        Err(error) => return Ok(vec![error.message().to_owned()]),
    };
    let mut input = expressions::input(kind, attributes, matched, objects, namespace);
    input.params = Cel::dynamic(&invocation.param);
    let for_conditions = expressions::for_conditions(&input, kind, attributes, &matched.kind);
    match evaluator.conditions.hold(server, &user, &for_conditions) {
        Ok(true) => {}
        Ok(false) => return Ok(Vec::new()),
        Err(why) => return Ok(vec![why]),
    }
    let key = invocation.key();
    if attributes.rounds.again && !attributes.rounds.policies.again.contains(&key) {
        return Ok(Vec::new());
    }
    let mut failures = Vec::new();
    let mut patched = false;
    if attributes.object.is_object() {
        let before = attributes.object.clone();
        for mutation in &evaluator.mutations {
            match mutation.patch(evaluator, kind, attributes, matched, &input, &asked).await {
                Ok(object) => {
                    patched = true;
                    attributes.object = object;
                    (input.object, _) = expressions::shown(server, kind, attributes, matched).await?;
                }
                Err(Failure::Policy(why)) => failures.push(why),
                Err(Failure::Request(error)) => return Err(error),
            }
        }
        if before != attributes.object {
            attributes.rounds.policies.changed();
            attributes.rounds.wanted = true;
        }
    }
    if evaluator.reinvoked {
        attributes.rounds.policies.invoked.insert(key);
    }
    if patched {
        attributes.rounds.policies.changed();
        attributes.rounds.wanted = true;
    }
    Ok(failures)
}

impl Invocation<'_, Evaluator> {
    fn key(&self) -> String {
        let param = |field: &str| object::meta_str(&self.param, field);
        [&self.policy.name, &self.binding.name, param("namespace"), param("name")].join("/")
    }
}

impl Mutation {
    /// The object with the patch applied, decoded and defaulted again.
    async fn patch(
        &self,
        evaluator: &Evaluator,
        kind: &Kind,
        attributes: &Attributes,
        matched: &Matched,
        input: &Input,
        asked: &Asked<'_>,
    ) -> Result<Value, Failure> {
        let shown = &matched.kind;
        let version = api_version(&shown.group, &shown.version);
        let ty = fields::merge_type(kind, shown);
        if ty.is_none() && shown.kind == kind.kind {
            return Err(Failure::Request(ApiError::new(
                503,
                "ServiceUnavailable",
                format!(
                    "Resource kind {version}, Kind={} not found. There can be a delay between when \
                     CustomResourceDefinitions are created and when they are available.",
                    shown.kind
                ),
            )));
        }
        if let Err(error) = &self.expression {
            return Err(Failure::Policy(error.to_string()));
        }
        let value = Session::new(&evaluator.compiler, input, Some(asked))
            .evaluate(&self.expression, &mut Budget::of(POLICY_COST_MAX))
            .map_err(|fault| Failure::Policy(fault.to_string()))?;
        let mut object = attributes.object.clone();
        if matched.is_converted(attributes) {
            object = kind.convert_for(asked.server, object, &version).await.map_err(Failure::Request)?;
        }
        let patched = match self.form {
            Form::ApplyConfiguration => {
                let mut configuration = value.to_configuration().map_err(Failure::Policy)?;
                configuration["apiVersion"] = version.as_str().into();
                configuration["kind"] = shown.kind.as_str().into();
                let merged = match &ty {
                    Some(ty) => merge(Typed::new(ty), &object, &configuration),
                    None => Err(format!(
                        "failed to convert patch object to typed object: no corresponding type for {version}, Kind={}",
                        shown.kind
                    )),
                };
                merged.map_err(|why| Failure::Policy(format!("error applying patch: {why}")))?
            }
            Form::JsonPatch => {
                let operations = value.to_patch().map_err(Failure::Policy)?;
                match json_patch::apply(object.clone(), &operations) {
                    Ok(patched) => patched,
                    Err(error) if error.to_string().ends_with("test failed") => object,
                    Err(error) => return Err(Failure::Policy(format!("JSON Patch: {error}"))),
                }
            }
        };
        let mut patched = decode(kind, attributes, patched, &version, &shown.kind, self.form)?;
        if matched.is_converted(attributes) {
            let own = &attributes.object_kind;
            let to = api_version(&own.group, &own.version);
            patched = kind.convert_for(asked.server, patched, &to).await.map_err(Failure::Request)?;
        }
        if *shown.kind == *kind.kind {
            kind.default(&mut patched);
        }
        Ok(patched)
    }
}

/// The object with what the configuration says, if it says nothing that would be replaced as a whole.
fn merge(ty: Typed<'_>, object: &Value, configuration: &Value) -> Result<Value, String> {
    ty.validate(configuration, Duplicates::Refused)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let atomics = ty.atomics(configuration);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    ty.validate(object, Duplicates::Allowed)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    Ok(ty.merge(object, configuration))
}

/// What the server reads from a patched object.
fn decode(
    kind: &Kind,
    attributes: &Attributes,
    object: Value,
    version: &str,
    shown: &str,
    form: Form,
) -> Result<Value, Failure> {
    let internal = |why: &str| Failure::Request(ApiError::internal(why));
    if matches!(kind.source, Source::Custom(_)) && attributes.object_kind.kind == kind.kind {
        return kind.decode_custom(object).map(|(object, _)| object).map_err(|why| internal(&why));
    }
    let (group, bare) = version.rsplit_once('/').unwrap_or(("", version));
    let given = object::text(&object, "kind");
    if catalog().type_of(group, bare, given).is_none() {
        return Err(internal(&format!(
            "no kind \"{given}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let Some(ty) = catalog().type_of(group, bare, shown) else { return Ok(object) };
    let decoded = codec::decode(ty, object).map_err(|why| internal(&why.to_string()))?;
    if form == Form::JsonPatch && !decoded.strict.is_empty() {
        return Err(internal(&format!("strict decoding error: {}", decoded.strict.join(", "))));
    }
    Ok(decoded.value)
}

/// The refusal that follows from all that went wrong, if the failure policies want one.
fn refuse(
    kind: &Kind,
    attributes: &Attributes,
    refusals: &[(Misconfigured<'_>, bool)],
) -> Result<(), ApiError> {
    let mut counted = refusals.iter().filter(|(wrong, _)| !wrong.is_ignored());
    let Some(found) = counted.next() else { return Ok(()) };
    let (first, invoked) = found;
    let words = |wrong: &Misconfigured<'_>| match wrong.binding {
        Some(binding) => {
            format!("policy '{}' with binding '{binding}' denied request: {}", wrong.policy, wrong.why)
        }
        None => format!("policy \"{}\" denied request: {}", wrong.policy, wrong.why),
    };
    let reason = if *invoked { "Invalid" } else { "Forbidden" };
    let mut error = refusal::forbidden(kind, attributes, "admission request denied by policy")
        .with_code(403, reason)
        .with_message(words(first));
    for (wrong, _) in std::iter::once(found).chain(counted) {
        error = error.with_cause(json!({"message": words(wrong)}));
    }
    Err(error)
}
