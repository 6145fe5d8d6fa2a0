//! Compiled expressions: parse, check and estimate once, run many times.

use orlop_schema::structural::Schema;
use serde_json::Value as Json;

use crate::ast::{Expr, Kind, Literal};
use crate::check::{Checked, Scope, Structs, check};
use crate::cost::{self, Estimate};
use crate::decl::{Decl, Node};
use crate::eval::{EvalError, constant, is_conversion, run};
use crate::library;
use crate::parser::parse;
use crate::source::{Issue, render};
use crate::types::Type;
use crate::value::{Value, from_json};

/// Most that one run may cost.
pub const CALL_COST_MAX: u64 = 1_000_000;
/// Most that all rules may cost on one object.
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// How `oldSelf` is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldSelf {
    /// Of the type of `self`; rules that read it run on updates only.
    Required,
    /// An optional; rules that read it always run.
    Optional,
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A rule's verdict.
    Bool,
    /// A message.
    String,
}

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// It does not parse or check; the text shows each place.
    #[error("compilation failed: {0}")]
    Issues(String),
    /// It gives another type than it must.
    #[error("{0}")]
    Output(String),
    /// It checks, but no program can be made of it.
    #[error("program instantiation failed: {0}")]
    Instantiation(String),
    /// The schema is none that CEL sees.
    #[error("failed to convert to declType for CEL validation rules")]
    NoType,
}

/// What is left of an object's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: Option<u64>,
}

impl Budget {
    /// The budget of one object.
    pub fn object() -> Self {
        Self { left: Some(OBJECT_COST_MAX) }
    }

    /// A budget of this much.
    pub fn of(cost_max: u64) -> Self {
        Self { left: Some(cost_max) }
    }

    /// What is left; nothing once it was exceeded.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// Takes a cost; false if the budget does not have it.
    pub(crate) fn take(&mut self, cost: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(cost));
        self.left.is_some()
    }

    pub(crate) fn exhaust(&mut self) {
        self.left = None;
    }
}

/// The declarations rules on one schema node see.
#[derive(Debug)]
pub struct Env {
    decl: Decl,
    structs: Structs,
    self_type: Type,
    node: Node,
}

impl Env {
    /// The environment of CRD rules on this schema node.
    pub fn crd(schema: &Schema, node: Node) -> Result<Self, CompileError> {
        Ok(Self::of(Decl::of(schema, node).ok_or(CompileError::NoType)?, node))
    }

    fn of(decl: Decl, node: Node) -> Self {
        let mut structs = Structs::new();
        let self_type = decl.declare("selfType", &mut structs);
        Self { decl, structs, self_type, node }
    }

    /// How often data of this node can repeat in one request.
    pub(crate) fn cardinality_max(&self) -> u64 {
        (crate::decl::REQUEST_MAX / (self.decl.bytes_min + 1)).max(0) as u64
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    checked: Checked,
    estimate: Estimate,
    old_self: OldSelf,
    node: Node,
}

impl Program {
    /// Compiles an expression.
    pub fn compile(source: &str, env: &Env, old_self: OldSelf, output: Output) -> Result<Self, CompileError> {
        let refuse = |issues: Vec<Issue>| CompileError::Issues(render(source, &issues));
        let old_type = match old_self {
            OldSelf::Required => env.self_type.clone(),
            OldSelf::Optional => Type::optional(env.self_type.clone()),
        };
        let parsed = parse(source).map_err(refuse)?;
        let variables = [("self", env.self_type.clone()), ("oldSelf", old_type)];
        let checked = check(parsed, Scope { variables: &variables, structs: &env.structs, patches: false })
            .map_err(refuse)?;
        match output {
            Output::Bool if checked.output != Type::Bool => {
                return Err(CompileError::Output("cel expression must evaluate to a bool".to_owned()));
            }
            Output::String if checked.output != Type::String => {
                return Err(CompileError::Output("messageExpression must evaluate to a string".to_owned()));
            }
            _ => {}
        }
        if let Some(why) = instantiation_fault(&checked.expr) {
            return Err(CompileError::Instantiation(why));
        }
        let estimate = cost::estimate(&checked, &env.decl);
        Ok(Self { checked, estimate, old_self, node: env.node })
    }

    /// Whether `oldSelf` is read.
    pub fn uses_old_self(&self) -> bool {
        self.checked.reads.iter().any(|name| name == "oldSelf")
    }

    /// The most one run is estimated to cost.
    pub fn cost_max(&self) -> u64 {
        self.estimate.max
    }

    /// Runs the expression on data of the schema it was compiled for.
    pub fn evaluate(
        &self,
        schema: &Schema,
        object: &Json,
        old: Option<&Json>,
        budget: &mut Budget,
    ) -> Result<Value, EvalError> {
        let convert = |json: &Json| from_json(json, schema, self.node);
        let (value, cost) = self.run(&convert(object), old.map(convert).as_ref());
        if !budget.take(cost) {
            return Err(EvalError::CostExceeded);
        }
        value
    }

    pub(crate) fn run(&self, object: &Value, old: Option<&Value>) -> (Result<Value, EvalError>, u64) {
        let mut variables = vec![("self".to_owned(), object.clone())];
        match (self.old_self, old) {
            (OldSelf::Optional, Some(old)) => {
                variables.push(("oldSelf".to_owned(), Value::some(old.clone())));
            }
            (OldSelf::Optional, None) => variables.push(("oldSelf".to_owned(), Value::Optional(None))),
            (OldSelf::Required, Some(old)) => variables.push(("oldSelf".to_owned(), old.clone())),
            (OldSelf::Required, None) => {}
        }
        run(&self.checked, variables, CALL_COST_MAX, None)
    }
}

/// What fails before the program runs: conversions of constants, and constant patterns to find.
pub(crate) fn instantiation_fault(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => None,
        Kind::Select { operand, .. } => instantiation_fault(operand),
        Kind::Call { function, target, args } => {
            let inner = target.iter().map(|t| &**t).chain(args).find_map(instantiation_fault);
            inner.or_else(|| match (function.as_str(), args.first().map(|arg| &arg.kind)) {
                ("find" | "findAll", Some(Kind::Literal(Literal::String(pattern)))) => {
                    orlop_schema::go_regex::compile(pattern).err()
                }
                ("matches", Some(_)) if target.is_none() => match args.get(1).map(|arg| &arg.kind) {
                    Some(Kind::Literal(Literal::String(pattern))) => {
                        orlop_schema::go_regex::compile(pattern).err()
                    }
                    _ => None,
                },
                (name, Some(Kind::Literal(literal))) if target.is_none() && is_conversion(name) => {
                    library::call(name, &[constant(literal)]).err().map(|error| error.to_string())
                }
                _ => None,
            })
        }
        Kind::List { items, .. } => items.iter().find_map(instantiation_fault),
        Kind::Map { entries } => entries
            .iter()
            .find_map(|(key, value, _)| instantiation_fault(key).or_else(|| instantiation_fault(value))),
        Kind::Struct { fields, .. } => fields.iter().find_map(|f| instantiation_fault(&f.value)),
        Kind::Fold(f) => {
            [&f.range, &f.init, &f.condition, &f.step, &f.result].into_iter().find_map(instantiation_fault)
        }
    }
}
