//! The rules of a schema: compiled once, refused when they are wrong or too expensive, and applied to objects.
//!
//! [`check`] says what is wrong with the rules of a definition; it expects that the schema itself was found to be
//! in order. [`compile`] and [`validate`] judge objects; a rule that does not compile is an error of the object.

use std::collections::BTreeMap;

use orlop_schema::field::{Fault, FieldError, Path, go_escape};
use orlop_schema::structural::field_path::{Arrays, resolve};
use orlop_schema::structural::{Rule, Schema};
use serde_json::Value as Json;

use crate::decl::Node;
use crate::eval::EvalError;
use crate::program::{Budget, CompileError, Env, OldSelf, Output, Program};
use crate::value::{Value, from_json};

/// Most that one rule of a definition may be estimated to cost.
pub const RULE_COST_MAX: u64 = 10_000_000;
/// Most that all rules of a definition may be estimated to cost.
pub const DEFINITION_COST_MAX: u64 = 100_000_000;

const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The compiled rules of a schema, shaped like it.
#[derive(Debug, Default)]
pub struct Compiled {
    rules: Vec<CompiledRule>,
    items: Option<Box<Compiled>>,
    values: Option<Box<Compiled>>,
    properties: BTreeMap<String, Compiled>,
    all_of: Vec<Compiled>,
    root: bool,
}

#[derive(Debug)]
struct CompiledRule {
    rule: Rule,
    program: Result<Program, String>,
    message: Option<Program>,
    path: Option<Path>,
}

/// What validation found.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// Rules that refuse the object.
    pub errors: Vec<FieldError>,
    /// Rules that would refuse it, had the data changed.
    pub warnings: Vec<String>,
}

/// Compiles the rules of a root schema; nothing if it has none.
pub fn compile(schema: &Schema) -> Option<Compiled> {
    compile_node(schema, schema, Node::ResourceRoot)
}

fn compile_node(rules: &Schema, node: &Schema, place: Node) -> Option<Compiled> {
    let mut compiled = Compiled { root: place == Node::ResourceRoot, ..Compiled::default() };
    if !rules.rules.is_empty() {
        let env = Env::crd(node, place);
        compiled.rules = rules.rules.iter().map(|rule| compile_rule(rule, node, &env)).collect();
    }
    if let (Some(rules), Some(node)) = (rules.item(), node.item()) {
        compiled.items = compile_node(rules, node, Node::of(node)).map(Box::new);
    }
    if let (Some(rules), Some(node)) = (rules.additional.schema(), node.additional.schema()) {
        compiled.values = compile_node(rules, node, Node::of(node)).map(Box::new);
    }
    for (name, rules) in &rules.properties {
        if let Some(node) = node.properties.get(name)
            && let Some(property) = compile_node(rules, node, Node::of(node))
        {
            compiled.properties.insert(name.clone(), property);
        }
    }
    compiled.all_of = rules.all_of.iter().filter_map(|rules| compile_node(rules, node, place)).collect();
    let empty = compiled.rules.is_empty()
        && compiled.items.is_none()
        && compiled.values.is_none()
        && compiled.properties.is_empty()
        && compiled.all_of.is_empty();
    (!empty).then_some(compiled)
}

fn old_self(rule: &Rule) -> OldSelf {
    if rule.optional_old_self == Some(true) { OldSelf::Optional } else { OldSelf::Required }
}

fn compile_rule(rule: &Rule, schema: &Schema, env: &Result<Env, CompileError>) -> CompiledRule {
    let compile = |source: &str, output: Output| match env {
        Ok(env) => Program::compile(source, env, old_self(rule), output),
        Err(error) => Err(error.clone()),
    };
    let message = (!rule.message_expression.is_empty())
        .then(|| compile(&rule.message_expression, Output::String).ok())
        .flatten();
    let path = (!rule.field_path.is_empty())
        .then(|| resolve(&rule.field_path, schema, Arrays::Allowed).ok().map(|(path, _)| path))
        .flatten();
    let program = compile(&rule.rule, Output::Bool).map_err(|error| error.to_string());
    CompiledRule { rule: rule.clone(), program, message, path }
}

/// What is wrong with the rules of the schema at `path`; the schema itself must be in order.
pub fn check(schema: &Schema, path: &Path) -> Vec<FieldError> {
    let mut total = Total::default();
    let mut errors = Vec::new();
    check_node(schema, path, Node::ResourceRoot, Some(1), None, &mut total, &mut errors);
    if total.cost > DEFINITION_COST_MAX {
        for (_, path) in &total.expensive {
            let text =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, text));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, over_budget(what, total.cost, DEFINITION_COST_MAX)));
    }
    errors
}

/// The cost of all rules and the four most expensive of them.
#[derive(Default)]
struct Total {
    cost: u64,
    expensive: Vec<(u64, Path)>,
}

impl Total {
    fn observe(&mut self, path: &Path, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost >= DEFINITION_COST_MAX / 100 {
            self.expensive.push((cost, path.clone()));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }
}

fn check_node(
    schema: &Schema,
    path: &Path,
    place: Node,
    cardinality: Option<u64>,
    uncorrelated: Option<&Path>,
    total: &mut Total,
    errors: &mut Vec<FieldError>,
) {
    let repeats = match schema.ty.as_str() {
        "object" if schema.additional.is_some() => schema.max_properties.map(|n| n.max(0) as u64),
        "array" => schema.max_items.map(|n| n.max(0) as u64),
        _ => Some(1),
    };
    let inner = cardinality.zip(repeats).map(|(outer, repeats)| outer.saturating_mul(repeats));
    if let Some(values) = schema.additional.schema() {
        check_node(
            values,
            &path.child("additionalProperties"),
            Node::of(values),
            inner,
            uncorrelated,
            total,
            errors,
        );
    }
    for (name, property) in &schema.properties {
        let path = path.child("properties").key(name);
        check_node(property, &path, Node::of(property), inner, uncorrelated, total, errors);
    }
    if let Some(item) = schema.item() {
        let keyed = schema.list_type.as_deref() == Some("map");
        let uncorrelated = if keyed { uncorrelated } else { uncorrelated.or(Some(path)) };
        check_node(item, &path.child("items"), Node::of(item), inner, uncorrelated, total, errors);
    }
    if schema.rules.is_empty() {
        return;
    }
    let path = path.child("x-kubernetes-validations");
    let Ok(env) = Env::crd(schema, place) else {
        let text = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        errors.push(FieldError::with_value(Fault::Internal, &path, None, text));
        return;
    };
    let repeats = cardinality.unwrap_or_else(|| env.cardinality_max());
    for (index, rule) in schema.rules.iter().enumerate() {
        check_rule(rule, &path.index(index), &env, repeats, uncorrelated, total, errors);
    }
}

fn check_rule(
    rule: &Rule,
    path: &Path,
    env: &Env,
    repeats: u64,
    uncorrelated: Option<&Path>,
    total: &mut Total,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("rule");
    let refuse =
        |path: &Path, detail: String| FieldError::with_value(Fault::Invalid, path, Some(shown(rule)), detail);
    let mut observe = |path: &Path, what: &str, cost: u64, errors: &mut Vec<FieldError>| {
        if cost > RULE_COST_MAX {
            errors.push(FieldError::forbidden(path, over_budget(what, cost, RULE_COST_MAX)));
        }
        total.observe(path, cost);
    };
    let mut reads_old = false;
    match Program::compile(&rule.rule, env, old_self(rule), Output::Bool) {
        Err(error) => errors.push(refuse(&at, error.to_string())),
        Ok(program) => {
            reads_old = program.uses_old_self();
            observe(&at, "estimated rule cost", program.cost_max().saturating_mul(repeats), errors);
            if !rule.message_expression.is_empty() {
                let at = path.child("messageExpression");
                match Program::compile(&rule.message_expression, env, old_self(rule), Output::String) {
                    Err(CompileError::Issues(text)) => {
                        errors.push(refuse(&at, format!("messageExpression compilation failed: {text}")));
                    }
                    Err(error) => errors.push(refuse(&at, error.to_string())),
                    Ok(program) => {
                        observe(&at, "estimated messageExpression cost", program.cost_max(), errors);
                    }
                }
            }
        }
    }
    match (reads_old, uncorrelated, rule.optional_old_self) {
        (true, Some(within), _) => {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            errors.push(FieldError::invalid(&at, &Json::String(rule.rule.clone()), detail));
        }
        (false, _, Some(flag)) => {
            let at = path.child("optionalOldSelf");
            errors.push(FieldError::invalid(
                &at,
                &Json::Bool(flag),
                "may not be set if oldSelf is not used in rule",
            ));
        }
        _ => {}
    }
}

/// The rule as the server's field errors print it.
fn shown(rule: &Rule) -> String {
    let text = |text: &str| Json::String(text.to_owned()).to_string();
    let reason = rule.reason.as_deref().map_or("null".to_owned(), text);
    let optional = rule.optional_old_self.map_or("null".to_owned(), |flag| flag.to_string());
    go_escape(&format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\"OptionalOldSelf\":{optional}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    ))
}

fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Applies the rules to an object; `old` is what it replaces.
pub fn validate(
    compiled: &Compiled,
    schema: &Schema,
    object: &Json,
    old: Option<&Json>,
    budget: &mut Budget,
) -> Outcome {
    let mut run = Run { budget, outcome: Outcome::default() };
    let correlation = Correlation { current: old, parent_equal: false, top: true };
    run.node(compiled, schema, &Path::root(), object, old, correlation);
    for error in run.outcome.errors.iter_mut().filter(|error| error.path == Path::root()) {
        error.path = Path::new("<nil>");
    }
    run.outcome
}

/// Whether a node was the same before, so that its errors are only warnings.
#[derive(Clone, Copy)]
struct Correlation<'a> {
    current: Option<&'a Json>,
    parent_equal: bool,
    top: bool,
}

impl<'a> Correlation<'a> {
    fn unchanged(&self, object: &Json) -> bool {
        self.current.map_or(self.parent_equal, |old| old == object)
    }

    fn below(&self, object: &Json, child: Option<&'a Json>, name: &str) -> Self {
        match self.current {
            None => *self,
            Some(_) if self.top && matches!(name, "apiVersion" | "kind") => {
                Self { current: None, parent_equal: false, top: false }
            }
            Some(old) => Self { current: child, parent_equal: child.is_none() && old == object, top: false },
        }
    }
}

struct Run<'a> {
    budget: &'a mut Budget,
    outcome: Outcome,
}

impl Run<'_> {
    fn node(
        &mut self,
        compiled: &Compiled,
        schema: &Schema,
        path: &Path,
        object: &Json,
        old: Option<&Json>,
        correlation: Correlation<'_>,
    ) {
        if object.is_null() || self.budget.left().is_none() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(compiled, schema, path, object, old, correlation);
        for all_of in &compiled.all_of {
            let correlation = Correlation { current: None, ..correlation };
            self.node(all_of, schema, path, object, old, correlation);
        }
        match object {
            Json::Array(items) => {
                let (Some(rules), Some(item)) = (&compiled.items, schema.item()) else { return };
                for (index, object) in items.iter().enumerate() {
                    let before = old.and_then(|old| counterpart(schema, object, old));
                    let inner = correlation.below(
                        &Json::Null,
                        correlation.current.and_then(|old| counterpart(schema, object, old)),
                        "",
                    );
                    let same = correlation.unchanged(&Json::Array(items.clone()));
                    let inner = Correlation { parent_equal: inner.current.is_none() && same, ..inner };
                    self.node(rules, item, &path.index(index), object, before, inner);
                }
            }
            Json::Object(fields) => {
                if let (Some(rules), Some(values)) = (&compiled.values, schema.additional.schema()) {
                    for (name, value) in fields {
                        let inner = correlation.below(
                            object,
                            correlation.current.and_then(|old| old.get(name)),
                            name,
                        );
                        self.node(
                            rules,
                            values,
                            &path.key(name),
                            value,
                            old.and_then(|old| old.get(name)),
                            inner,
                        );
                    }
                }
                for (name, value) in fields {
                    if let (Some(rules), Some(property)) =
                        (compiled.properties.get(name), schema.properties.get(name))
                    {
                        let inner = correlation.below(
                            object,
                            correlation.current.and_then(|old| old.get(name)),
                            name,
                        );
                        self.node(
                            rules,
                            property,
                            &path.child(name),
                            value,
                            old.and_then(|old| old.get(name)),
                            inner,
                        );
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        compiled: &Compiled,
        schema: &Schema,
        path: &Path,
        object: &Json,
        old: Option<&Json>,
        correlation: Correlation<'_>,
    ) {
        if compiled.rules.is_empty() {
            return;
        }
        let typed = |detail: String| FieldError::invalid(path, &Json::String(schema.ty.clone()), detail);
        if self.budget.left() == Some(0) {
            self.outcome.errors.push(typed("validation failed due to running out of cost budget, no further validation rules will be run".to_owned()));
            self.budget.exhaust();
            return;
        }
        let node = if compiled.root { Node::ResourceRoot } else { Node::Inner };
        let value = from_json(object, schema, node);
        let reads_old = |rule: &CompiledRule| rule.program.as_ref().is_ok_and(Program::uses_old_self);
        let old_value =
            old.filter(|_| compiled.rules.iter().any(reads_old)).map(|old| from_json(old, schema, node));
        for compiled in &compiled.rules {
            let rule = &compiled.rule;
            let name = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
            let program = match &compiled.program {
                Ok(program) => program,
                Err(error) => {
                    self.outcome.errors.push(typed(format!("rule compile error: {error}")));
                    continue;
                }
            };
            if program.uses_old_self() && old_value.is_none() && rule.optional_old_self != Some(true) {
                continue;
            }
            let (verdict, cost) = program.run(&value, old_value.as_ref());
            if !self.budget.take(cost) {
                self.outcome.errors.push(typed("validation failed due to running out of cost budget, no further validation rules will be run".to_owned()));
                return;
            }
            match verdict {
                Ok(Value::Bool(true)) => {}
                Err(EvalError::CostExceeded) => {
                    let why = EvalError::CostExceeded;
                    self.outcome.errors.push(typed(format!("'{why}': no further validation rules will be run due to call cost exceeds limit for rule: {name}")));
                    self.budget.exhaust();
                    return;
                }
                Err(EvalError::Failed(why)) if why.starts_with("no such overload") => {
                    self.outcome.errors.push(typed(format!("'{why}': call arguments did not match a supported operator, function or macro signature for rule: {name}")));
                }
                Err(EvalError::Failed(why)) => {
                    self.outcome.errors.push(typed(format!("{why} evaluating rule: {name}")));
                }
                Ok(_) => {
                    let ratchets = !program.uses_old_self() && correlation.unchanged(object);
                    let found = self.failed(compiled, schema, path, object, &value, old_value.as_ref());
                    if ratchets {
                        self.outcome.warnings.push(found.to_string());
                    } else {
                        self.outcome.errors.push(found);
                    }
                    if self.budget.left().is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// The error of a rule that does not hold.
    fn failed(
        &mut self,
        compiled: &CompiledRule,
        schema: &Schema,
        path: &Path,
        object: &Json,
        value: &Value,
        old: Option<&Value>,
    ) -> FieldError {
        let rule = &compiled.rule;
        let path = match &compiled.path {
            Some(relative) => path.child(relative.as_str()),
            None => path.clone(),
        };
        let default = || {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.rule.trim())
            } else {
                rule.message.trim().to_owned()
            }
        };
        let detail = match &compiled.message {
            None => default(),
            Some(program) => {
                let (message, cost) = program.run(value, old);
                let typed =
                    |detail: String| FieldError::invalid(&path, &Json::String(schema.ty.clone()), detail);
                if !self.budget.take(cost) {
                    return typed("messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned());
                }
                match message {
                    Err(EvalError::CostExceeded) => {
                        self.budget.exhaust();
                        let source = orlop_schema::field::go_quote(&rule.message_expression);
                        return typed(format!(
                            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
                        ));
                    }
                    Ok(Value::String(text)) if acceptable(text.trim()) => text.trim().to_owned(),
                    _ => default(),
                }
            }
        };
        let shown =
            (!matches!(schema.ty.as_str(), "object" | "array")).then(|| orlop_schema::field::quote(object));
        match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(&path, detail),
            Some("FieldValueRequired") => FieldError::required(&path, detail),
            Some("FieldValueDuplicate") => FieldError::with_value(Fault::Duplicate, &path, shown, ""),
            _ => FieldError::with_value(Fault::Invalid, &path, shown, detail),
        }
    }
}

fn acceptable(message: &str) -> bool {
    !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n')
}

/// The element of an old keyed list with the keys of `item`.
fn counterpart<'a>(schema: &Schema, item: &Json, old: &'a Json) -> Option<&'a Json> {
    if schema.list_type.as_deref() != Some("map") || schema.list_map_keys.is_empty() {
        return None;
    }
    let same = |candidate: &&Json| schema.list_map_keys.iter().all(|key| candidate.get(key) == item.get(key));
    old.as_array()?.iter().find(same)
}
