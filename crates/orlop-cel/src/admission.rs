//! The CEL environment of admission: policies, match conditions of webhooks, and the patches of mutating policies.
//!
//! Objects are dynamic; `request` and `namespaceObject` are checked. A [`Compiler`] knows what is declared, an
//! [`Expression`] is compiled once, and a [`Session`] evaluates expressions for one request, working out each of
//! a policy's variables at most once and only when it is asked for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;

use crate::authorizer::{Authorizer, Check, Decision};
use crate::check::{Checked, Scope, Structs, check};
use crate::eval::{Eval, EvalError, Host, fail, run};
use crate::parser::parse;
use crate::program::{Budget, CALL_COST_MAX, CompileError, instantiation_fault};
use crate::source::{Issue, render};
use crate::types::Type;
use crate::value::{Key, Value};

/// Most that all expressions of one kind of a policy may cost on one request.
pub const POLICY_COST_MAX: u64 = 10_000_000;
/// Most that the match conditions of one policy or webhook may cost on one request.
pub const MATCH_CONDITIONS_COST_MAX: u64 = 2_500_000;

/// Most levels of expressions that variables may be nested into each other.
const NESTING_MAX: usize = 400;
const VARIABLES: &str = "kubernetes.variables";

/// What an expression may use beside `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declared {
    /// `params`.
    pub params: bool,
    /// `authorizer` and `authorizer.requestResource`.
    pub authorizer: bool,
    /// `Object{…}`, `JSONPatch{…}` and `jsonpatch.escapeKey`.
    pub patches: bool,
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A verdict.
    Bool,
    /// A message.
    String,
    /// An annotation.
    StringOrNull,
    /// A variable.
    Anything,
    /// An apply configuration.
    Object,
    /// A list of operations.
    Patches,
}

impl Returns {
    fn types(self) -> Vec<Type> {
        match self {
            Returns::Bool => vec![Type::Bool],
            Returns::String => vec![Type::String],
            Returns::StringOrNull => vec![Type::String, Type::Null],
            Returns::Anything => Vec::new(),
            Returns::Object => vec![Type::Struct("Object".into())],
            Returns::Patches => vec![Type::list(Type::Struct("JSONPatch".into()))],
        }
    }

    fn refuse(self, found: &Type) -> Option<CompileError> {
        let wanted = self.types();
        if wanted.is_empty() || wanted.contains(found) {
            return None;
        }
        let names: Vec<String> = wanted.iter().map(Type::go_name).collect();
        let found = found.go_name();
        Some(CompileError::Output(match names.as_slice() {
            [one] => format!("must evaluate to {one} but got {found}"),
            names => format!("must evaluate to one of [{}] but got {found}", names.join(" ")),
        }))
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    source: String,
    checked: Checked,
}

/// Compiles the expressions of one policy, in which later ones may use the variables declared before.
#[derive(Debug)]
pub struct Compiler {
    /// Whether `variables` is declared at all.
    composes: bool,
    structs: Structs,
    variables: BTreeMap<String, Result<Expression, CompileError>>,
}

impl Compiler {
    /// A compiler for expressions without variables, such as match conditions.
    pub fn plain() -> Self {
        Self { composes: false, structs: STRUCTS.clone(), variables: BTreeMap::new() }
    }

    /// A compiler for policies.
    pub fn composed() -> Self {
        let mut structs = STRUCTS.clone();
        structs.insert(VARIABLES.into(), BTreeMap::new());
        Self { composes: true, structs, variables: BTreeMap::new() }
    }

    /// Compiles an expression.
    pub fn compile(
        &self,
        source: &str,
        declared: Declared,
        returns: Returns,
    ) -> Result<Expression, CompileError> {
        let refuse = |issues: Vec<Issue>| CompileError::Issues(render(source, &issues));
        let mut variables = vec![
            ("object", Type::Dyn),
            ("oldObject", Type::Dyn),
            ("request", Type::Struct("kubernetes.AdmissionRequest".into())),
            ("namespaceObject", Type::Struct("kubernetes.Namespace".into())),
        ];
        if declared.params {
            variables.push(("params", Type::Dyn));
        }
        if declared.authorizer {
            variables.push(("authorizer", Type::read("authorizer")));
            variables.push(("authorizer.requestResource", Type::read("resourcecheck")));
        }
        if self.composes {
            variables.push(("variables", Type::Struct(VARIABLES.into())));
        }
        let parsed = parse(source).map_err(refuse)?;
        let scope = Scope { variables: &variables, structs: &self.structs, patches: declared.patches };
        let checked = check(parsed, scope).map_err(refuse)?;
        if let Some(error) = returns.refuse(&checked.output) {
            return Err(error);
        }
        if let Some(why) = instantiation_fault(&checked.expr) {
            return Err(CompileError::Instantiation(why));
        }
        Ok(Expression { source: source.to_owned(), checked })
    }

    /// Declares a variable; one that does not compile is dynamic, and reading it is an error.
    pub fn declare(&mut self, name: &str, source: &str, declared: Declared) -> Result<(), CompileError> {
        let compiled = self.compile(source, declared, Returns::Anything);
        let ty = compiled.as_ref().map_or(Type::Dyn, |expression| plain(&expression.checked.output));
        if let Some(fields) = self.structs.get_mut(VARIABLES) {
            fields.insert(name.to_owned(), ty);
        }
        let result = compiled.as_ref().map(|_| ()).map_err(Clone::clone);
        self.variables.insert(name.to_owned(), compiled);
        result
    }
}

/// What is known of the type of a variable.
fn plain(ty: &Type) -> Type {
    match ty {
        Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Null
        | Type::Duration
        | Type::Timestamp => ty.clone(),
        Type::List(item) => Type::list(plain(item)),
        Type::Map(key, value) => Type::map(plain(key), plain(value)),
        _ => Type::Dyn,
    }
}

/// The request as expressions see it.
#[derive(Debug, Clone)]
pub struct Input {
    /// The new state; null for deletions.
    pub object: Value,
    /// The state so far; null for creations.
    pub old_object: Value,
    /// The `AdmissionRequest` without objects.
    pub request: Value,
    /// The parameter; null if there is none.
    pub params: Value,
    /// The namespace; null for what is in none.
    pub namespace: Value,
    /// What `authorizer.requestResource` asks for.
    pub resource: Check,
}

/// Why an expression gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It does not compile or it failed; others may still be evaluated.
    #[error("{0}")]
    Failed(String),
    /// The budget is spent; nothing more is evaluated.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    OutOfBudget,
}

/// Evaluates expressions of one compiler on one request.
pub struct Session<'a> {
    compiler: &'a Compiler,
    input: &'a Input,
    authorizer: Option<&'a dyn Authorizer>,
    /// Variables that have been worked out.
    known: RefCell<BTreeMap<String, Eval>>,
    /// What the variables cost since it was last looked at.
    spent: Cell<u64>,
    /// Levels of expressions that are being evaluated.
    nesting: Cell<usize>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("input", &self.input).finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// A session in which nothing is known yet.
    pub fn new(compiler: &'a Compiler, input: &'a Input, authorizer: Option<&'a dyn Authorizer>) -> Self {
        Self {
            compiler,
            input,
            authorizer,
            known: RefCell::default(),
            spent: Cell::new(0),
            nesting: Cell::new(0),
        }
    }

    /// Evaluates an expression, or repeats why it does not compile.
    pub fn evaluate(
        &self,
        expression: &Result<Expression, CompileError>,
        budget: &mut Budget,
    ) -> Result<Value, Fault> {
        let expression = match expression {
            Ok(expression) => expression,
            Err(error) => return Err(Fault::Failed(format!("compilation error: {error}"))),
        };
        let (value, cost) = self.run(expression);
        let composed = self.spent.replace(0);
        if !budget.take(cost.saturating_add(composed)) {
            return Err(Fault::OutOfBudget);
        }
        value.map_err(|error| {
            Fault::Failed(format!("expression '{}' resulted in error: {error}", expression.source))
        })
    }

    fn run(&self, expression: &Expression) -> (Eval, u64) {
        let height = expression.checked.expr.height;
        if self.nesting.get() + height > NESTING_MAX {
            return (fail("variables are nested too deeply"), 0);
        }
        self.nesting.set(self.nesting.get() + height);
        let input = self.input;
        let mut variables = vec![
            ("object", input.object.clone()),
            ("oldObject", input.old_object.clone()),
            ("request", input.request.clone()),
            ("namespaceObject", input.namespace.clone()),
            ("params", input.params.clone()),
        ];
        if self.authorizer.is_some() {
            variables.push(("authorizer", Value::Check(Arc::default())));
            variables.push(("authorizer.requestResource", Value::Check(Arc::new(input.resource.clone()))));
        }
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let result = run(&expression.checked, variables, CALL_COST_MAX, Some(self));
        self.nesting.set(self.nesting.get() - height);
        result
    }

    fn work_out(&self, name: &str) -> Eval {
        let expression = match self.compiler.variables.get(name) {
            Some(Ok(expression)) => expression,
            Some(Err(error)) => {
                return fail(format!("composited variable \"{name}\" fails to compile: {error}"));
            }
            None => return fail(format!("no such key: {name}")),
        };
        let (value, cost) = self.run(expression);
        self.spent.set(self.spent.get().saturating_add(cost));
        value.or_else(|error| fail(format!("composited variable \"{name}\" fails to evaluate: {error}")))
    }
}

impl Host for Session<'_> {
    fn composed(&self, name: &str) -> Eval {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let value = self.work_out(name);
        self.known.borrow_mut().insert(name.to_owned(), value.clone());
        value
    }

    fn all_composed(&self) -> Value {
        // only what is read of them is paid for, and what reads the whole does not read them
        let spent = self.spent.get();
        let all = self.compiler.variables.keys().map(|name| {
            let value = self
                .composed(name)
                .unwrap_or_else(|error: EvalError| Value::Invalid(error.to_string().into()));
            (Key::String(name.as_str().into()), value)
        });
        let all = Value::Map(Arc::new(all.collect()));
        self.spent.set(spent);
        all
    }

    fn decide(&self, check: &Check) -> Option<Decision> {
        Some(self.authorizer?.authorize(check))
    }
}

/// The fields of `request` and `namespaceObject`, a line per type.
const TYPES: &str = "\
kubernetes.GroupVersionKind group=string version=string kind=string
kubernetes.GroupVersionResource group=string version=string resource=string
kubernetes.UserInfo username=string uid=string groups=list<string> extra=map<string,list<string>>
kubernetes.AdmissionRequest kind=@GroupVersionKind resource=@GroupVersionResource subResource=string \
requestKind=@GroupVersionKind requestResource=@GroupVersionResource requestSubResource=string name=string \
namespace=string operation=string userInfo=@UserInfo dryRun=bool options=dyn
kubernetes.NamespaceSpec finalizers=list<string>
kubernetes.NamespaceCondition status=string type=string lastTransitionTime=timestamp message=string reason=string
kubernetes.NamespaceStatus conditions=@@NamespaceCondition phase=string
kubernetes.NamespaceMetadata name=string generateName=string namespace=string labels=map<string,string> \
annotations=map<string,string> UID=string creationTimestamp=timestamp deletionGracePeriodSeconds=int \
deletionTimestamp=timestamp generation=int resourceVersion=string finalizers=list<string>
kubernetes.Namespace metadata=@NamespaceMetadata spec=@NamespaceSpec status=@NamespaceStatus";

static STRUCTS: LazyLock<Structs> = LazyLock::new(|| {
    let read = |text: &str| {
        let named = |name: &str| Type::Struct(format!("kubernetes.{name}").into());
        match (text.strip_prefix("@@"), text.strip_prefix('@')) {
            (Some(item), _) => Type::list(named(item)),
            (None, Some(name)) => named(name),
            (None, None) => Type::read(text),
        }
    };
    let line = |line: &'static str| {
        let (name, fields) = line.split_once(' ')?;
        let fields = fields.split_whitespace().filter_map(|field| field.split_once('='));
        Some((Arc::from(name), fields.map(|(name, ty)| (name.to_owned(), read(ty))).collect()))
    };
    TYPES.lines().filter_map(line).collect()
});

impl Value {
    /// JSON without a schema, as admission sees objects.
    pub fn dynamic(json: &Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Double(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Value::string(text.as_str()),
            Json::Array(items) => Value::list(items.iter().map(Value::dynamic).collect()),
            Json::Object(fields) => Value::Map(Arc::new(
                fields.iter().map(|(k, v)| (Key::String(k.as_str().into()), Value::dynamic(v))).collect(),
            )),
        }
    }

    /// The text, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}
