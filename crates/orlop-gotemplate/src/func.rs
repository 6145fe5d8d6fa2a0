//! Functions that the host gives to templates, with the signature that calls are checked against.

use std::fmt;
use std::rc::Rc;

use crate::exec::Context;
use crate::types::Type;
use crate::value::{CallResult, Value};

type Body = dyn Fn(&mut Context<'_>, &[Value]) -> CallResult;

/// A function or a bound method.
pub struct Func {
    pub(crate) params: Vec<Type>,
    pub(crate) variadic: Option<Type>,
    pub(crate) result: Type,
    fallible: bool,
    body: Box<Body>,
}

impl Func {
    /// A function with fixed parameters and a result of that static type.
    pub fn new(
        params: impl Into<Vec<Type>>,
        result: Type,
        body: impl Fn(&mut Context<'_>, &[Value]) -> CallResult + 'static,
    ) -> Self {
        Self { params: params.into(), variadic: None, result, fallible: false, body: Box::new(body) }
    }

    /// The same function taking any number of further arguments of a type.
    #[must_use]
    pub fn variadic(self, rest: Type) -> Self {
        Self { variadic: Some(rest), ..self }
    }

    /// The same function shown with an error among its results, as Go declares those that can fail.
    #[must_use]
    pub fn fallible(self) -> Self {
        Self { fallible: true, ..self }
    }

    /// Runs the function on arguments that were checked.
    pub(crate) fn run(&self, context: &mut Context<'_>, args: &[Value]) -> CallResult {
        (self.body)(context, args)
    }

    /// The type of the parameter at a position.
    pub(crate) fn param(&self, position: usize) -> &Type {
        self.params.get(position).or(self.variadic.as_ref()).unwrap_or(&Type::Any)
    }

    /// The type as `%T` prints it.
    pub fn type_name(&self) -> Rc<str> {
        let mut params: Vec<String> = self.params.iter().map(Type::to_string).collect();
        if let Some(rest) = &self.variadic {
            params.push(format!("...{rest}"));
        }
        let params = params.join(", ");
        if self.fallible {
            format!("func({params}) ({}, error)", self.result).into()
        } else {
            format!("func({params}) {}", self.result).into()
        }
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name())
    }
}
