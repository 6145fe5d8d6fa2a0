//! Evaluating pipelines, commands and operands, with Go's checks of arguments.

use std::rc::Rc;

use crate::ast::{At, Command, Expr, Pipe};
use crate::builtins::{self, Builtin};
use crate::exec::{Outcome, Rv, State};
use crate::func::Func;
use crate::number::Number;
use crate::set::{Entry, MissingKey};
use crate::text::{lossy, quote};
use crate::types::Type;
use crate::value::{Map, Str, Value};

/// What a call gets: the operands after the name, and what flows in from the left.
struct Arguments<'t> {
    exprs: &'t [Expr],
    last: Option<Rv>,
}

impl Arguments<'_> {
    const NONE: Self = Self { exprs: &[], last: None };

    fn is_empty(&self) -> bool {
        self.exprs.is_empty() && self.last.is_none()
    }
}

impl<'t> State<'t, '_> {
    pub(crate) fn eval_pipeline(&mut self, dot: &Rv, pipe: &'t Pipe) -> Outcome<Rv> {
        self.at = At::Pipe(pipe);
        let mut value = None;
        for command in &pipe.cmds {
            let mut result = self.eval_command(dot, command, value.take())?;
            // What came as an interface goes on as what is inside.
            result.iface = false;
            value = Some(result);
        }
        let value = value.unwrap_or(Rv::INVALID);
        for variable in &pipe.decl {
            if pipe.assign {
                self.set_var(variable, value.clone())?;
            } else {
                self.vars.push((variable.id, value.clone()));
            }
        }
        Ok(value)
    }

    fn eval_command(&mut self, dot: &Rv, command: &'t Command, last: Option<Rv>) -> Outcome<Rv> {
        let first = &command.args[0];
        let args = Arguments { exprs: &command.args[1..], last };
        match first {
            Expr::Field { path, .. } => {
                self.at = At::Expr(first);
                self.eval_path(dot, dot, first, path, args)
            }
            Expr::Variable { .. } => self.eval_variable(dot, first, args),
            Expr::Chain { .. } => self.eval_chain(dot, first, args),
            Expr::Function { index, name, .. } => {
                self.at = At::Expr(first);
                self.eval_function(dot, *index, name, At::Command(command), args)
            }
            Expr::Pipe(pipe) => {
                self.not_a_function(first, &args)?;
                self.nested_pipeline(dot, pipe)
            }
            _ => {
                self.at = At::Expr(first);
                self.not_a_function(first, &args)?;
                match first {
                    Expr::Dot { .. } => Ok(dot.clone()),
                    Expr::Nil { .. } => self.fail("nil is not a command"),
                    constant => self.constant(constant),
                }
            }
        }
    }

    fn nested_pipeline(&mut self, dot: &Rv, pipe: &'t Pipe) -> Outcome<Rv> {
        self.enter()?;
        let value = self.eval_pipeline(dot, pipe)?;
        self.leave();
        Ok(value)
    }

    fn not_a_function(&self, expr: &Expr, args: &Arguments<'_>) -> Outcome<()> {
        if args.is_empty() {
            return Ok(());
        }
        self.fail(format!("can't give argument to non-function {}", self.shown(expr)))
    }

    fn shown(&self, expr: &Expr) -> String {
        let mut out = Vec::new();
        expr.print(&self.tree.text, &mut out);
        lossy(&out)
    }

    /// A literal where no type is asked for.
    fn constant(&mut self, expr: &'t Expr) -> Outcome<Rv> {
        self.at = At::Expr(expr);
        let value = match expr {
            Expr::Bool { value, .. } => Value::Bool(*value),
            Expr::Str { value, .. } => value.clone(),
            Expr::Number(number) => self.ideal(number)?,
            other => {
                return self.fail(format!("can't evaluate command {}", quote(self.shown(other).as_bytes())));
            }
        };
        Ok(Rv::concrete(value))
    }

    fn ideal(&self, number: &Number) -> Outcome<Value> {
        if let Some((re, im)) = number.complex {
            return Ok(Value::Complex(re, im));
        }
        match (number.float, number.int) {
            (Some(float), _) if number.reads_as_float() => Ok(Value::Float(float)),
            (_, Some(int)) => Ok(Value::int(int)),
            _ => self.fail(format!("{} overflows int", number.text.to_text())),
        }
    }

    fn eval_variable(&mut self, dot: &Rv, expr: &'t Expr, args: Arguments<'t>) -> Outcome<Rv> {
        self.at = At::Expr(expr);
        let Expr::Variable { id, name, path, .. } = expr else { return self.constant(expr) };
        let Some(value) =
            self.vars.iter().rev().find(|(known, _)| known == id).map(|(_, value)| value.clone())
        else {
            return self.undefined(name);
        };
        if path.is_empty() {
            self.not_a_function(expr, &args)?;
            return Ok(value);
        }
        self.eval_path(dot, &value, expr, path, args)
    }

    fn eval_chain(&mut self, dot: &Rv, expr: &'t Expr, args: Arguments<'t>) -> Outcome<Rv> {
        self.at = At::Expr(expr);
        let Expr::Chain { head, path, .. } = expr else { return self.constant(expr) };
        let receiver = match &**head {
            Expr::Pipe(pipe) => {
                self.at = At::Expr(head);
                self.nested_pipeline(dot, pipe)?
            }
            Expr::Function { index, name, .. } => {
                self.at = At::Expr(head);
                self.eval_function(dot, *index, name, At::Expr(head), Arguments::NONE)?
            }
            other => self.constant(other)?,
        };
        self.eval_path(dot, &receiver, expr, path, args)
    }

    /// Follows fields; the last one may be a method with arguments.
    fn eval_path(
        &mut self,
        dot: &Rv,
        receiver: &Rv,
        expr: &'t Expr,
        path: &'t [Str],
        args: Arguments<'t>,
    ) -> Outcome<Rv> {
        let Some((last, before)) = path.split_last() else { return Ok(receiver.clone()) };
        let mut holder;
        let mut current = receiver;
        for name in before {
            holder = self.eval_field(dot, current, expr, name, Arguments::NONE)?;
            current = &holder;
        }
        self.eval_field(dot, current, expr, last, args)
    }

    fn eval_field(
        &mut self,
        dot: &Rv,
        receiver: &Rv,
        expr: &'t Expr,
        name: &'t Str,
        args: Arguments<'t>,
    ) -> Outcome<Rv> {
        if !receiver.is_valid() {
            if self.set.missing_key == MissingKey::Error {
                return self.fail(format!("nil data; no entry for key {}", quote(name)));
            }
            return Ok(Rv::INVALID);
        }
        match &receiver.v {
            Value::Map(map) => return self.map_field(map, name, &args),
            Value::Nil => {
                return self.fail(format!(
                    "nil pointer evaluating {}.{}",
                    receiver.type_name(),
                    name.to_text()
                ));
            }
            Value::TypedNil(of) => match &**of {
                Type::Map(elem) => return self.missing_field(elem, name, &args),
                Type::Named(_) => {
                    return self.fail(format!(
                        "nil pointer evaluating {}.{}",
                        receiver.type_name(),
                        name.to_text()
                    ));
                }
                _ => {}
            },
            Value::Object(object) => {
                if let Some(method) = object.method(name) {
                    return self.call_func(dot, &method, At::Expr(expr), name, args);
                }
                if let Some(field) = object.field(name) {
                    if !args.is_empty() {
                        let name = name.to_text();
                        return self.fail(format!("{name} has arguments but cannot be invoked as function"));
                    }
                    let iface = matches!(field, Value::Nil);
                    return Ok(Rv { v: field, iface });
                }
                if let Some(Value::Map(map)) = object.underlying() {
                    return self.map_field(&map, name, &args);
                }
            }
            _ => {}
        }
        self.fail(format!("can't evaluate field {} in type {}", name.to_text(), receiver.type_name()))
    }

    fn map_field(&mut self, map: &Map, name: &Str, args: &Arguments<'t>) -> Outcome<Rv> {
        match map.get(name) {
            Some(value) if args.is_empty() => Ok(Rv::of(value, map.elem())),
            _ => self.missing_field(map.elem(), name, args),
        }
    }

    fn missing_field(&mut self, elem: &Type, name: &Str, args: &Arguments<'t>) -> Outcome<Rv> {
        if !args.is_empty() {
            return self.fail(format!("{} is not a method but has arguments", name.to_text()));
        }
        match self.set.missing_key {
            MissingKey::Invalid => Ok(Rv::INVALID),
            MissingKey::Zero => Ok(Rv::of(elem.zero(), elem)),
            MissingKey::Error => self.fail(format!("map has no entry for key {}", quote(name))),
        }
    }

    fn eval_function(
        &mut self,
        dot: &Rv,
        index: usize,
        name: &'t Str,
        node: At<'t>,
        args: Arguments<'t>,
    ) -> Outcome<Rv> {
        match self.set.entry(index) {
            Some(Entry::Host(func)) => self.call_func(dot, func, node, name, args),
            Some(Entry::Builtin(builtin)) => self.call_builtin(dot, *builtin, node, name, args),
            None => self.fail(format!("{} is not a defined function", quote(name))),
        }
    }

    fn check_count(&self, name: &Str, fixed: usize, variadic: bool, args: &Arguments<'t>) -> Outcome<usize> {
        let given = args.exprs.len() + usize::from(args.last.is_some());
        if variadic && given < fixed {
            return self.fail(format!(
                "wrong number of args for {}: want at least {fixed} got {}",
                name.to_text(),
                args.exprs.len()
            ));
        }
        if !variadic && given != fixed {
            return self
                .fail(format!("wrong number of args for {}: want {fixed} got {given}", name.to_text()));
        }
        Ok(given)
    }

    fn call_func(
        &mut self,
        dot: &Rv,
        func: &Rc<Func>,
        node: At<'t>,
        name: &Str,
        args: Arguments<'t>,
    ) -> Outcome<Rv> {
        let count = self.check_count(name, func.params.len(), func.variadic.is_some(), &args)?;
        let mut values = Vec::with_capacity(count);
        for (i, expr) in args.exprs.iter().enumerate() {
            values.push(self.eval_arg(dot, func.param(i), expr)?.v);
        }
        if let Some(last) = args.last {
            values.push(self.validate(last, func.param(count - 1))?.v);
        }
        match func.run(&mut self.context(), &values) {
            Ok(value) => Ok(Rv::of(value, &func.result)),
            Err(error) => self.call_failed(node, name, error),
        }
    }

    fn call_failed<T>(&mut self, node: At<'t>, name: &Str, error: crate::FuncError) -> Outcome<T> {
        self.at = node;
        let wrapped = self.error(format!("error calling {}: {}", name.to_text(), error.text));
        Err(wrapped.caused_by(error.cause))
    }

    fn call_builtin(
        &mut self,
        dot: &Rv,
        builtin: Builtin,
        node: At<'t>,
        name: &Str,
        args: Arguments<'t>,
    ) -> Outcome<Rv> {
        let (fixed, variadic) = builtin.arity();
        let count = self.check_count(name, fixed, variadic, &args)?;
        if matches!(builtin, Builtin::And | Builtin::Or) {
            return self.short_circuit(dot, builtin == Builtin::Or, args);
        }
        let mut values = Vec::with_capacity(count);
        for (i, expr) in args.exprs.iter().enumerate() {
            values.push(self.eval_arg(dot, builtin.param(i), expr)?);
        }
        let piped = args.exprs.is_empty();
        if let Some(last) = args.last {
            values.push(self.validate(last, builtin.param(count - 1))?);
        }
        let result = if builtin == Builtin::Call {
            let callee = match args.exprs.first() {
                Some(expr) if !piped => self.shown(expr),
                _ => builtins::value_string(&values[0].v),
            };
            builtins::call(&mut self.context(), &callee, &values)
        } else {
            builtins::run(builtin, &values)
        };
        match result {
            Ok(value) => {
                if let Value::Str(text) = &value.v {
                    self.charge(text.len())?;
                }
                Ok(value)
            }
            Err(error) => self.call_failed(node, name, error),
        }
    }

    /// `and` and `or`: the first operand that decides, or the last.
    fn short_circuit(&mut self, dot: &Rv, until: bool, args: Arguments<'t>) -> Outcome<Rv> {
        let mut value = Rv::INVALID;
        for expr in args.exprs {
            value = self.eval_arg(dot, &Type::Reflect, expr)?;
            if value.v.truth() == until {
                return Ok(value);
            }
        }
        match args.last {
            Some(last) => Ok(last),
            None => Ok(value),
        }
    }

    /// Checks that a value fits a parameter.
    fn validate(&self, value: Rv, wanted: &Type) -> Outcome<Rv> {
        if !value.is_valid() {
            if !wanted.can_be_nil() {
                return self.fail(format!("invalid value; expected {wanted}"));
            }
            return Ok(Rv::of(wanted.zero(), wanted));
        }
        if matches!(wanted, Type::Any | Type::Reflect) {
            return Ok(value);
        }
        match wanted.assign(&value.v) {
            Some(assigned) if !matches!(value.v, Value::Nil) => Ok(Rv::concrete(assigned)),
            _ => {
                let got = if matches!(value.v, Value::Nil) { value.type_name() } else { value.v.type_name() };
                self.fail(format!("wrong type for value; expected {wanted}; got {got}"))
            }
        }
    }

    fn eval_arg(&mut self, dot: &Rv, wanted: &Type, expr: &'t Expr) -> Outcome<Rv> {
        self.at = At::Expr(expr);
        let value = match expr {
            Expr::Dot { .. } => dot.clone(),
            Expr::Nil { .. } => {
                if wanted.can_be_nil() {
                    return Ok(Rv::of(wanted.zero(), wanted));
                }
                return self.fail(format!("cannot assign nil to {wanted}"));
            }
            Expr::Field { path, .. } => self.eval_path(dot, dot, expr, path, Arguments::NONE)?,
            Expr::Variable { .. } => self.eval_variable(dot, expr, Arguments::NONE)?,
            Expr::Pipe(pipe) => self.nested_pipeline(dot, pipe)?,
            Expr::Function { index, name, .. } => {
                self.eval_function(dot, *index, name, At::Expr(expr), Arguments::NONE)?
            }
            Expr::Chain { .. } => self.eval_chain(dot, expr, Arguments::NONE)?,
            Expr::Bool { .. } | Expr::Number(_) | Expr::Str { .. } => return self.literal_arg(wanted, expr),
        };
        self.validate(value, wanted)
    }

    /// A literal takes the type of the parameter where it can.
    fn literal_arg(&mut self, wanted: &Type, expr: &'t Expr) -> Outcome<Rv> {
        let number = match expr {
            Expr::Number(number) => Some(&**number),
            _ => None,
        };
        let (value, expected) = match wanted {
            Type::Any | Type::Reflect => return self.constant(expr),
            Type::Bool => (matches!(expr, Expr::Bool { .. }).then(|| self.constant(expr)), "bool"),
            Type::Str => (matches!(expr, Expr::Str { .. }).then(|| self.constant(expr)), "string"),
            Type::Int(kind) => {
                let int = number.and_then(|n| n.int);
                (int.map(|int| Ok(Rv::concrete(Value::Int(*kind, int)))), "integer")
            }
            Type::Uint(kind) => {
                let uint = number.and_then(|n| n.uint);
                (uint.map(|uint| Ok(Rv::concrete(Value::Uint(*kind, uint)))), "unsigned integer")
            }
            Type::Float => {
                (number.and_then(|n| n.float).map(|float| Ok(Rv::concrete(Value::Float(float)))), "float")
            }
            Type::Float32 => {
                let float = number.and_then(|n| n.float);
                (float.map(|float| Ok(Rv::concrete(Value::Float32(float as f32)))), "float")
            }
            Type::Complex => {
                let complex = number.and_then(|n| n.complex);
                (complex.map(|(re, im)| Ok(Rv::concrete(Value::Complex(re, im)))), "complex")
            }
            other => {
                return self.fail(format!("can't handle {} for arg of type {other}", self.shown(expr)));
            }
        };
        match value {
            Some(value) => value,
            None => self.fail(format!("expected {expected}; found {}", self.shown(expr))),
        }
    }
}
