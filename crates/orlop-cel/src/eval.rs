//! The evaluator: walks a checked tree, absorbs errors where CEL does, and counts what it does against a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Field, Fold, Kind, Literal};
use crate::authorizer::{Check, Decision};
use crate::check::{Checked, is_patch_type, type_named};
use crate::library;
use crate::value::{Key, List, Object, Value};

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The expression failed, for example with `no such key: a`.
    #[error("{0}")]
    Failed(String),
    /// The expression did more than one call may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
}

pub(crate) type Eval<T = Value> = Result<T, EvalError>;

/// An error with this text.
pub(crate) fn fail<T>(message: impl Into<String>) -> Eval<T> {
    Err(EvalError::Failed(message.into()))
}

pub(crate) fn no_such_overload<T>() -> Eval<T> {
    fail("no such overload")
}

/// What an expression can ask for beside its variables.
pub(crate) trait Host {
    /// A variable of the policy; worked out when it is first asked for.
    fn composed(&self, name: &str) -> Eval;
    /// All variables of the policy.
    fn all_composed(&self) -> Value;
    /// The authorizer's answer.
    fn decide(&self, check: &Check) -> Option<Decision>;
}

/// Name of the variable that holds a policy's variables.
const COMPOSED: &str = "variables";

/// Runs the expression; gives its value and what it cost.
pub(crate) fn run(
    checked: &Checked,
    variables: Vec<(String, Value)>,
    limit: u64,
    host: Option<&dyn Host>,
) -> (Eval, u64) {
    let scope = variables.into_iter().map(|(name, value)| (name, Ok(value))).collect();
    let mut machine = Machine { checked, scope, host, cost: 0, limit };
    let value = machine.eval(&checked.expr);
    (value, machine.cost)
}

struct Machine<'a> {
    checked: &'a Checked,
    /// Variables, innermost last; an accumulator may hold an error.
    scope: Vec<(String, Eval)>,
    host: Option<&'a dyn Host>,
    cost: u64,
    limit: u64,
}

impl Machine<'_> {
    fn charge(&mut self, cost: u64) -> Eval<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostExceeded) } else { Ok(()) }
    }

    fn eval(&mut self, expr: &Expr) -> Eval {
        let value = match &expr.kind {
            Kind::Literal(literal) => Ok(constant(literal)),
            Kind::Ident(name) => self.ident(name),
            Kind::Select { operand, field, test: false } => self.select(operand, field),
            Kind::Select { operand, field, test: true } => self.presence(operand, field),
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, optional } => self.list(items, optional),
            Kind::Map { entries } => self.map(entries),
            Kind::Struct { name, fields } => self.structure(name, fields),
            Kind::Fold(fold) => self.fold(fold),
        }?;
        match value {
            Value::Invalid(why) => fail(why.to_string()),
            value => Ok(value),
        }
    }

    fn ident(&mut self, name: &str) -> Eval {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, value)) = self.scope.iter().rev().find(|(found, _)| found == name) {
            let value = value.clone();
            self.charge(1)?;
            return value;
        }
        if let (COMPOSED, Some(host)) = (name, self.host) {
            self.charge(1)?;
            return Ok(host.all_composed());
        }
        match type_named(name) {
            Some(_) => Ok(Value::Type(name.into())),
            None if is_patch_type(name) => Ok(Value::Type(name.into())),
            None => fail(format!("no such attribute(s): {name}")),
        }
    }

    /// What a selection or index reads from; values that are no variables cost one more.
    fn base(&mut self, operand: &Expr) -> Eval {
        let value = self.eval(operand)?;
        self.charge(if is_attribute(operand) { 1 } else { 2 })?;
        Ok(value)
    }

    /// A branch or an index; a variable there is part of what reads it and costs nothing of its own.
    fn part(&mut self, expr: &Expr) -> Eval {
        let before = self.cost;
        let value = self.eval(expr);
        let attribute = matches!(expr.kind, Kind::Ident(_) | Kind::Select { test: false, .. });
        if attribute && self.cost > before && value.as_ref().err() != Some(&EvalError::CostExceeded) {
            self.cost -= 1;
        }
        value
    }

    /// The policy's variables, if that is what the expression names.
    fn composed(&self, operand: &Expr) -> Option<&dyn Host> {
        let shadowed = || self.scope.iter().any(|(name, _)| name == COMPOSED);
        match &operand.kind {
            Kind::Ident(name) if name == COMPOSED && !shadowed() => self.host,
            _ => None,
        }
    }

    /// `Name{field: value}`.
    fn structure(&mut self, name: &str, fields: &[Field]) -> Eval {
        let mut values = BTreeMap::new();
        for field in fields {
            let value = match self.eval(&field.value)? {
                Value::Optional(inner) if field.optional => match inner {
                    Some(inner) => (*inner).clone(),
                    None => continue,
                },
                value => value,
            };
            values.insert(Arc::from(field.name.as_str()), value);
        }
        self.charge(40)?;
        let name = name.strip_prefix('.').unwrap_or(name);
        if name == "JSONPatch" {
            check_patch(&values)?;
        }
        Ok(Value::Object(Arc::new(Object { name: name.into(), fields: values })))
    }

    fn select(&mut self, operand: &Expr, field: &str) -> Eval {
        if let Some(host) = self.composed(operand) {
            let value = host.composed(field);
            self.charge(2)?;
            return value;
        }
        let base = self.base(operand)?;
        if let Value::Optional(inner) = &base {
            return Ok(Value::Optional(match inner {
                Some(inner) => find(inner, &Value::string(field))?.map(Arc::new),
                None => None,
            }));
        }
        match &base {
            Value::Object(object) => Ok(object.fields.get(field).cloned().unwrap_or(Value::Null)),
            Value::Map(_) => {
                find(&base, &Value::string(field))?.map_or_else(|| fail(format!("no such key: {field}")), Ok)
            }
            _ => fail(format!("no such key: {field}")),
        }
    }

    fn presence(&mut self, operand: &Expr, field: &str) -> Eval {
        if let Some(host) = self.composed(operand) {
            let value = host.composed(field);
            self.charge(1)?;
            return value.map(|_| Value::Bool(true));
        }
        let base = self.eval(operand)?;
        if !is_attribute(operand) {
            self.charge(1)?;
        }
        let base = match &base {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => inner,
            other => other,
        };
        match base {
            Value::Map(map) => Ok(Value::Bool(map.contains_key(&Key::String(field.into())))),
            Value::Object(object) => Ok(Value::Bool(object.fields.contains_key(field))),
            _ => Ok(Value::Bool(false)),
        }
    }

    fn list(&mut self, items: &[Expr], optional: &[usize]) -> Eval {
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = self.eval(item)?;
            match value {
                Value::Optional(inner) if optional.contains(&index) => {
                    values.extend(inner.map(|v| (*v).clone()));
                }
                value => values.push(value),
            }
        }
        if !optional.is_empty() || !items.iter().all(is_constant) {
            self.charge(10)?;
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Eval {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match self.eval(value)? {
                Value::Optional(inner) if *optional => match inner {
                    Some(inner) => (*inner).clone(),
                    None => continue,
                },
                value => value,
            };
            let Some(key) = key.key() else { return fail("unsupported key type") };
            map.insert(key, value);
        }
        if !entries.iter().all(|(key, value, optional)| !optional && is_constant(key) && is_constant(value)) {
            self.charge(30)?;
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Eval {
        match (function, args) {
            ("_&&_", [left, right]) => return self.logic(left, right, false),
            ("_||_", [left, right]) => return self.logic(left, right, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.eval(condition)? {
                    Value::Bool(true) => self.part(yes),
                    Value::Bool(false) => self.part(no),
                    _ => no_such_overload(),
                };
            }
            ("@not_strictly_false", [arg]) => {
                let value = self.eval(arg);
                self.charge(1)?;
                return match value {
                    Err(EvalError::CostExceeded) => Err(EvalError::CostExceeded),
                    Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
                    _ => Ok(Value::Bool(true)),
                };
            }
            ("_[_]" | "_[?_]" | "_?._", [operand, index]) => return self.index(function, operand, index),
            ("or" | "orValue", [other]) => {
                let Some(target) = target else { return no_such_overload() };
                return match self.eval(target)? {
                    Value::Optional(Some(inner)) if function == "orValue" => Ok((*inner).clone()),
                    Value::Optional(Some(inner)) => Ok(Value::Optional(Some(inner))),
                    Value::Optional(None) => self.eval(other),
                    _ => no_such_overload(),
                };
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        for part in target.into_iter().chain(args) {
            values.push(self.eval(part)?);
        }
        let overload = match self.checked.overloads.get(expr.id).map(Vec::as_slice) {
            Some([overload]) => overload,
            _ => "",
        };
        // what multiplies data is paid for before it is done
        if let ("lists.range", [Value::Int(count)]) = (function, values.as_slice())
            && self.cost.saturating_add((*count).max(0) as u64) > self.limit
        {
            return Err(EvalError::CostExceeded);
        }
        let result = match (function, values.as_slice(), self.checked.patterns.get(&expr.id)) {
            ("check", [Value::Check(check), Value::String(verb)], _) => self.ask(check, verb),
            (_, [Value::String(text), _, limit @ ..], Some(pattern)) => {
                Ok(library::search(function, text, pattern, limit))
            }
            _ => library::call(function, &values),
        };
        let member = function == "@in"
            && args.get(1).is_some_and(|list| matches!(list.kind, Kind::List { .. }) && is_constant(list));
        if is_constant(expr) || member {
            return result;
        }
        self.charge(library::cost(function, overload, &values, result.as_ref().ok()))?;
        result
    }

    fn ask(&self, check: &Check, verb: &str) -> Eval {
        let asked = check.with_verb(verb);
        let decision = asked.and_then(|check| self.host?.decide(&check));
        decision.map_or_else(no_such_overload, |decision| Ok(Value::Decision(Arc::new(decision))))
    }

    fn logic(&mut self, left: &Expr, right: &Expr, decisive: bool) -> Eval {
        let mut first_error = None;
        for side in [left, right] {
            match self.eval(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(EvalError::CostExceeded) => return Err(EvalError::CostExceeded),
                Ok(_) => {
                    first_error.get_or_insert(EvalError::Failed("no such overload".to_owned()));
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn index(&mut self, function: &str, operand: &Expr, index: &Expr) -> Eval {
        if let (Some(host), "_?._", Kind::Literal(Literal::String(name))) =
            (self.composed(operand), function, &index.kind)
        {
            let value = host.composed(name);
            self.charge(2)?;
            return value.map(Value::some);
        }
        let before = self.cost;
        let base = self.base(operand)?;
        let index = self.part(index)?;
        let (inner, wrapped) = match &base {
            Value::Optional(None) => {
                self.cost = before.max(self.cost.saturating_sub(1));
                return Ok(Value::Optional(None));
            }
            Value::Optional(Some(inner)) => (&**inner, true),
            other => (other, false),
        };
        let found = find(inner, &index)?;
        if found.is_none() && (wrapped || function != "_[_]") {
            // what is not there is not read
            self.cost = before.max(self.cost.saturating_sub(1));
        }
        if wrapped || function != "_[_]" {
            return Ok(Value::Optional(found.map(Arc::new)));
        }
        match (found, inner) {
            (Some(value), _) => Ok(value),
            (None, Value::List(_)) => fail(format!("index out of bounds: {}", library::display(&index))),
            (None, _) => fail(format!("no such key: {}", library::display(&index))),
        }
    }

    fn fold(&mut self, fold: &Fold) -> Eval {
        let depth = self.scope.len();
        let value = self.fold_in_scope(fold);
        self.scope.truncate(depth);
        value
    }

    fn fold_in_scope(&mut self, fold: &Fold) -> Eval {
        let range = self.eval(&fold.range)?;
        let entries: Vec<(Value, Value)> = match &range {
            Value::List(list) if fold.iter2.is_some() => {
                list.items.iter().enumerate().map(|(i, v)| (Value::Int(i as i64), v.clone())).collect()
            }
            Value::List(list) => list.items.iter().map(|v| (v.clone(), Value::Null)).collect(),
            Value::Map(map) => map.iter().map(|(k, v)| (key_value(k), v.clone())).collect(),
            _ => return no_such_overload(),
        };
        let init = self.eval(&fold.init);
        let at = self.scope.len();
        self.scope.push((fold.accu.clone(), init));
        for (first, second) in entries {
            self.scope.truncate(at + 1);
            self.scope.push((fold.iter.clone(), Ok(first)));
            if let Some(name) = &fold.iter2 {
                self.scope.push((name.clone(), Ok(second)));
            }
            match self.eval(&fold.condition)? {
                Value::Bool(true) => {}
                _ => break,
            }
            let next = self.step(&fold.step, at);
            if next == Some(Err(EvalError::CostExceeded)) {
                return Err(EvalError::CostExceeded);
            }
            match next {
                Some(Err(error)) => self.scope[at].1 = Err(error),
                Some(Ok(())) => {}
                None => {
                    let value = self.eval(&fold.step);
                    if value.as_ref().err() == Some(&EvalError::CostExceeded) {
                        return value;
                    }
                    self.scope[at].1 = value;
                }
            }
        }
        self.scope.truncate(at + 1);
        self.eval(&fold.result)
    }

    /// Steps that only append to the accumulator do so in place, or the loop would copy a growing list.
    fn step(&mut self, step: &Expr, at: usize) -> Option<Eval<()>> {
        let Kind::Call { function, target: None, args } = &step.kind else { return None };
        let is_accu = |expr: &Expr, scope: &[(String, Eval)]| matches!(&expr.kind, Kind::Ident(name) if *name == scope[at].0);
        match (function.as_str(), args.as_slice()) {
            ("_?_:_", [condition, yes, no]) if is_accu(no, &self.scope) => {
                // only when the yes branch is itself an append
                if !appends(yes, &self.scope[at].0) && !inserts(yes) {
                    return None;
                }
                match self.eval(condition) {
                    Ok(Value::Bool(true)) => self.step(yes, at),
                    Ok(Value::Bool(false)) => Some(Ok(())),
                    Ok(_) => Some(no_such_overload()),
                    Err(error) => Some(Err(error)),
                }
            }
            ("_+_", [_, list]) if appends(step, &self.scope[at].0) => {
                let Kind::List { items, .. } = &list.kind else { return None };
                let item = match self.eval(items.first()?) {
                    Ok(item) => item,
                    Err(error) => return Some(Err(error)),
                };
                if let Err(error) = self.charge(12) {
                    return Some(Err(error));
                }
                if let Ok(Value::List(list)) = &mut self.scope[at].1 {
                    Arc::<List>::make_mut(list).items.push(item);
                    return Some(Ok(()));
                }
                Some(Ok(()))
            }
            ("cel.@mapInsert", [_, key, value]) => {
                let (key, value) = match (self.eval(key), self.eval(value)) {
                    (Ok(key), Ok(value)) => (key, value),
                    (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
                };
                if let Err(error) = self.charge(2) {
                    return Some(Err(error));
                }
                let Some(key) = key.key() else { return Some(fail("unsupported key type")) };
                Some(self.insert(at, vec![(key, value)]))
            }
            ("cel.@mapInsert", [_, entries]) => {
                let entries = match self.eval(entries) {
                    Ok(Value::Map(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
                    Ok(_) => return Some(no_such_overload()),
                    Err(error) => return Some(Err(error)),
                };
                if let Err(error) = self.charge(2) {
                    return Some(Err(error));
                }
                Some(self.insert(at, entries))
            }
            _ => None,
        }
    }

    fn insert(&mut self, at: usize, entries: Vec<(Key, Value)>) -> Eval<()> {
        if let Ok(Value::Map(map)) = &mut self.scope[at].1 {
            let map = Arc::make_mut(map);
            for (key, value) in entries {
                if map.contains_key(&key) {
                    return fail(format!(
                        "insert failed: key {} already exists",
                        library::display(&key_value(&key))
                    ));
                }
                map.insert(key, value);
            }
        }
        Ok(())
    }
}

/// Whether the expression only names a place in the variables.
fn is_attribute(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Ident(_) | Kind::Select { .. } => true,
        Kind::Call { function, .. } => matches!(function.as_str(), "_[_]" | "_[?_]" | "_?._" | "_?_:_"),
        _ => false,
    }
}

/// The fields a `JSONPatch{…}` may have.
fn check_patch(fields: &BTreeMap<Arc<str>, Value>) -> Eval<()> {
    for (name, value) in fields {
        match (&**name, value) {
            ("value", _) | ("op" | "path" | "from", Value::String(_)) => {}
            ("op" | "path" | "from", other) => {
                let ty = match other {
                    Value::Int(_) => "int64",
                    Value::Uint(_) => "uint64",
                    Value::Double(_) => "float64",
                    other => other.type_name(),
                };
                return fail(format!("unexpected type {ty} for JSONPatchType '{name}' field"));
            }
            _ => return fail(format!("unexpected JSONPatchType field: {name}")),
        }
    }
    Ok(())
}

/// Whether the step puts entries into the accumulated map.
fn inserts(step: &Expr) -> bool {
    matches!(&step.kind, Kind::Call { function, target: None, .. } if function == "cel.@mapInsert")
}

/// Whether the original knows the value before it runs, so that it costs nothing.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::List { items, optional } => optional.is_empty() && items.iter().all(is_constant),
        Kind::Map { entries } => {
            entries.iter().all(|(key, value, optional)| !optional && is_constant(key) && is_constant(value))
        }
        Kind::Call { function, target: None, args } => {
            is_conversion(function) && args.iter().all(is_constant)
        }
        _ => false,
    }
}

/// Conversions of constants are done when a program is made.
pub(crate) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint" | "type" | "dyn"
    )
}

/// Whether the step is `accu + [item]`.
fn appends(step: &Expr, accu: &str) -> bool {
    let Kind::Call { function, target: None, args } = &step.kind else { return false };
    match args.as_slice() {
        [Expr { kind: Kind::Ident(name), .. }, Expr { kind: Kind::List { items, optional }, .. }] => {
            function == "_+_" && name == accu && accu == "@result" && items.len() == 1 && optional.is_empty()
        }
        _ => false,
    }
}

/// The value of a literal.
pub(crate) fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(i) => Value::Int(*i),
        Literal::Uint(u) => Value::Uint(*u),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(s) => Value::string(s.as_str()),
        Literal::Bytes(b) => Value::Bytes(b.as_slice().into()),
    }
}

/// A key as a value.
pub(crate) fn key_value(key: &Key) -> Value {
    match key {
        Key::Bool(b) => Value::Bool(*b),
        Key::Int(i) => Value::Int(*i),
        Key::Uint(u) => Value::Uint(*u),
        Key::String(s) => Value::String(s.clone()),
    }
}

/// The element of a list or map, if it is there.
fn find(base: &Value, index: &Value) -> Eval<Option<Value>> {
    let found = match base {
        Value::List(list) => {
            let at = match index {
                Value::Int(i) => usize::try_from(*i).ok(),
                Value::Uint(u) => usize::try_from(*u).ok(),
                Value::Double(d) if d.fract() == 0.0 => Some(*d as usize).filter(|_| *d >= 0.0),
                _ => return fail("unsupported index type 'string' in list"),
            };
            at.and_then(|at| list.items.get(at)).cloned()
        }
        Value::Map(map) => index.key().and_then(|key| map.get(&key)).cloned(),
        _ => None,
    };
    match found {
        Some(Value::Invalid(why)) => fail(why.to_string()),
        found => Ok(found),
    }
}
