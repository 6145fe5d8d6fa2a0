//! Validating policies: expressions that must hold, and what is said when they do not.

use super::{
    Attributes, Binding, Inner, Kind, Policy, compiler, expressions, ignores_failure, invocations, namespace,
    refusal,
};
use crate::admission::conditions::Conditions;
use crate::admission::expressions::Asked;
use crate::admission::matching::Matched;
use crate::object;
use crate::status::ApiError;
use orlop_cel::admission::{Compiler, Declared, Expression, Fault, Input, POLICY_COST_MAX, Returns, Session};
use orlop_cel::{Budget, CompileError, Value as Cel};
use serde_json::{Value, json};

/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

type Compiled = Result<Expression, CompileError>;

/// The compiled expressions of a policy.
pub(super) struct Evaluator {
    compiler: Compiler,
    conditions: Conditions,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
    ignores_failure: bool,
}

struct Validation {
    source: String,
    expression: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: &'static str,
}

/// What one expression says against a request.
struct Denial {
    message: String,
    reason: &'static str,
}

/// What a policy says about a request.
#[derive(Default)]
struct Verdict {
    /// For those the binding decides what is done.
    denials: Vec<Denial>,
    /// These are refused whatever the binding says.
    errors: Vec<String>,
}

impl Evaluator {
    pub(super) fn compile(spec: &Value) -> Self {
        let (compiler, declared) = compiler(spec);
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        let compile_validation = |item: &Value| {
            let without = Declared { authorizer: false, ..declared };
            let message = object::text(item, "messageExpression");
            Validation {
                source: object::text(item, "expression").to_owned(),
                expression: compiler.compile(object::text(item, "expression"), declared, Returns::Bool),
                message: object::text(item, "message").trim().to_owned(),
                message_expression: (!message.trim().is_empty())
                    .then(|| compiler.compile(message, without, Returns::String)),
                reason: match object::text(item, "reason") {
                    "Forbidden" => "Forbidden",
                    "Unauthorized" => "Unauthorized",
                    "RequestEntityTooLarge" => "RequestEntityTooLarge",
                    _ => "Invalid",
                },
            }
        };
        let compile_annotation = |item: &Value| {
            let source = object::text(item, "valueExpression");
            (source.to_owned(), compiler.compile(source, declared, Returns::StringOrNull))
        };
        Self {
            validations: list("validations").map(compile_validation).collect(),
            annotations: list("auditAnnotations").map(compile_annotation).collect(),
            conditions: Conditions::with_params(&spec["matchConditions"], declared.params),
            ignores_failure: ignores_failure(spec),
            compiler,
        }
    }

    fn failure(&self, message: String) -> Option<Denial> {
        (!self.ignores_failure).then_some(Denial { message, reason: "Invalid" })
    }

    fn judge(&self, input: &Input, conditions_input: &Input, asked: &Asked<'_>) -> Verdict {
        let only = |denial: Option<Denial>| Verdict { denials: Vec::from_iter(denial), errors: Vec::new() };
        match self.conditions.hold(asked.server, asked.user, conditions_input) {
            Ok(true) => {}
            Ok(false) => return Verdict::default(),
            Err(why) => return only(self.failure(why)),
        }
        let mut budget = Budget::of(POLICY_COST_MAX);
        let session = Session::new(&self.compiler, input, Some(asked));
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            match session.evaluate(&validation.expression, &mut budget) {
                Err(fault @ Fault::OutOfBudget) => return only(self.failure(fault.to_string())),
                result => results.push(result),
            }
        }
        let messages = self.messages(input, &mut budget);
        let mut denials = Vec::new();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            denials.extend(match (result, &messages) {
                (Err(fault), _) => self.failure(fault.to_string()),
                (Ok(_), Err(fault)) => self.failure(format!("failed messageExpression: {fault}")),
                (Ok(Cel::Bool(true)), Ok(_)) => None,
                (Ok(_), Ok(messages)) => Some(Denial {
                    message: validation.words(messages[index].as_deref()),
                    reason: validation.reason,
                }),
            });
        }
        match self.annotate(input) {
            Ok(errors) => Verdict { denials, errors },
            Err(fault) => only(self.failure(fault.to_string())),
        }
    }

    /// What the expressions for messages give; those that fail give nothing.
    fn messages(&self, input: &Input, budget: &mut Budget) -> Result<Vec<Option<String>>, Fault> {
        let session = Session::new(&self.compiler, input, None);
        let evaluate = |validation: &Validation| {
            let Some(expression) = &validation.message_expression else { return Ok(None) };
            match session.evaluate(expression, budget) {
                Ok(value) => Ok(value.as_str().map(str::to_owned)),
                Err(Fault::OutOfBudget) => Err(Fault::OutOfBudget),
                Err(_) => Ok(None),
            }
        };
        self.validations.iter().map(evaluate).collect()
    }

    /// Nobody reads audit annotations here, but expressions that fail refuse the request.
    fn annotate(&self, input: &Input) -> Result<Vec<String>, Fault> {
        let session = Session::new(&self.compiler, input, None);
        let mut budget = Budget::of(POLICY_COST_MAX);
        let mut errors = Vec::new();
        for (source, expression) in &self.annotations {
            match session.evaluate(expression, &mut budget) {
                Ok(Cel::String(_) | Cel::Null) => {}
                Ok(other) => errors.push(format!(
                    "valueExpression '{source}' resulted in unsupported return type: {}. Return type must be either \
                     string or null.",
                    other.type_name()
                )),
                Err(Fault::OutOfBudget) => return Err(Fault::OutOfBudget),
                Err(_) if self.ignores_failure => {}
                Err(fault) => errors.push(fault.to_string()),
            }
        }
        Ok(errors)
    }
}

impl Validation {
    /// The message: computed, given, or the expression itself.
    fn words(&self, computed: Option<&str>) -> String {
        let usable =
            |text: &&str| !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        match computed.map(str::trim).filter(usable) {
            Some(text) => text.to_owned(),
            None if !self.message.is_empty() => self.message.clone(),
            None => format!("failed expression: {}", self.source.trim()),
        }
    }
}

/// Inputs by what the request was matched as, each made once.
#[derive(Default)]
struct Inputs(Vec<(Matched, Input)>);

impl Inputs {
    /// The input without params, or why the objects cannot be shown.
    async fn of(
        &mut self,
        server: &Inner,
        kind: &Kind,
        attributes: &Attributes,
        matched: &Matched,
    ) -> Result<Result<Input, String>, ApiError> {
        if let Some((_, input)) = self.0.iter().find(|(known, _)| known == matched) {
            return Ok(Ok(input.clone()));
        }
        let objects = match expressions::shown(server, kind, attributes, matched).await {
            Ok(objects) => objects,
            Err(error) => {
                let why = error.message();
                let message = "failed to configure binding: failed to convert object version";
                return Ok(Err(format!("{message}: {why}")));
            }
        };
        let namespace = namespace(server, attributes)?;
        let input = expressions::input(kind, attributes, matched, objects, namespace.as_ref());
        self.0.push((matched.clone(), input.clone()));
        Ok(Ok(input))
    }
}

/// Asks all policies; the first that denies says why, after all have been asked.
pub(super) async fn dispatch(
    server: &Inner,
    kind: &Kind,
    attributes: &mut Attributes,
    policies: &[Policy<Evaluator>],
) -> Result<(), ApiError> {
    let mut first: Option<ApiError> = None;
    let mut warnings = Vec::new();
    let mut inputs = Inputs::default();
    for policy in policies {
        for invocation in invocations(server, kind, attributes, policy) {
            let invocation = match invocation {
                Ok(invocation) => invocation,
                Err(wrong) if wrong.is_ignored() => continue,
                Err(wrong) => {
                    let denial = Denial { message: wrong.why, reason: "Invalid" };
                    first.get_or_insert_with(|| refuse(kind, attributes, policy, wrong.binding, &denial));
                    continue;
                }
            };
            let Binding { name, spec } = invocation.binding;
            let matched = &invocation.matched;
            let mut input = match inputs.of(server, kind, attributes, matched).await? {
                Ok(input) => input,
                Err(_) if ignores_failure(&policy.spec) => continue,
                Err(message) => {
                    let denial = Denial { message, reason: "Invalid" };
                    first.get_or_insert_with(|| refuse(kind, attributes, policy, Some(name), &denial));
                    continue;
                }
            };
            input.params = Cel::dynamic(&invocation.param);
            let for_conditions = expressions::for_conditions(&input, kind, attributes, &matched.kind);
            let asked = Asked { server, user: &attributes.user };
            let verdict = policy.evaluator.judge(&input, &for_conditions, &asked);
            let acts = |action: &str| {
                spec["validationActions"].as_array().is_some_and(|all| all.contains(&action.into()))
            };
            for denial in verdict.denials {
                if acts("Deny") {
                    first.get_or_insert_with(|| refuse(kind, attributes, policy, Some(name), &denial));
                }
                if acts("Warn") {
                    warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{name}': {}",
                        policy.name, denial.message
                    ));
                }
            }
            for message in verdict.errors {
                let denial = Denial { message, reason: "Invalid" };
                first.get_or_insert_with(|| refuse(kind, attributes, policy, Some(name), &denial));
            }
        }
    }
    for warning in warnings {
        attributes.warn(warning);
    }
    first.map_or(Ok(()), Err)
}

fn refuse(
    kind: &Kind,
    attributes: &Attributes,
    policy: &Policy<Evaluator>,
    binding: Option<&str>,
    denial: &Denial,
) -> ApiError {
    let with = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
    let message =
        format!("ValidatingAdmissionPolicy '{}'{with} denied request: {}", policy.name, denial.message);
    let code = match denial.reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    refusal::forbidden(kind, attributes, &message)
        .with_code(code, denial.reason)
        .with_cause(json!({"message": message}))
}
