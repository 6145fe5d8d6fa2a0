//! `matchConditions` of webhooks and policies: expressions that all must hold for the rest to be looked at.

use super::expressions::{self, Asked};
use super::matching::{Gvr, Matched};
use super::{Attributes, Gvk};
use crate::auth::User;
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use orlop_cel::admission::{
    Compiler, Declared, Expression, Fault, Input, MATCH_CONDITIONS_COST_MAX, Returns, Session,
};
use orlop_cel::{Budget, CompileError, Value as Cel};
use orlop_schema::field::aggregate;
use serde_json::Value;

/// Compiled conditions.
#[derive(Debug)]
pub(crate) struct Conditions {
    compiler: Compiler,
    expressions: Vec<Result<Expression, CompileError>>,
}

impl Conditions {
    /// Compiles a list of `{name, expression}`; null is a list without conditions.
    pub(crate) fn compile(conditions: &Value) -> Self {
        Self::with_params(conditions, false)
    }

    /// Compiles the conditions of a policy, which may have params.
    pub(super) fn with_params(conditions: &Value, params: bool) -> Self {
        let compiler = Compiler::plain();
        let declared = Declared { params, authorizer: true, patches: false };
        let list = conditions.as_array().into_iter().flatten();
        let expressions = list
            .map(|item| compiler.compile(object::text(item, "expression"), declared, Returns::Bool))
            .collect();
        Self { compiler, expressions }
    }

    /// Whether all conditions of a webhook hold. The webhook is shown `object` and `old` as `shown`, which may be
    /// another version than the request's. An error says that none is false but at least one could not be
    /// evaluated: the failure policy decides.
    pub(crate) fn matches(
        &self,
        server: &Inner,
        kind: &Kind,
        attributes: &Attributes,
        shown: &Gvk,
        (object, old): (&Value, &Value),
    ) -> Result<bool, String> {
        if self.expressions.is_empty() {
            return Ok(true);
        }
        let matched = Matched { resource: Gvr::of(kind), kind: attributes.object_kind.clone() };
        let objects = (Cel::dynamic(object), Cel::dynamic(old));
        let input = expressions::input(kind, attributes, &matched, objects, None);
        self.hold(server, &attributes.user, &expressions::for_conditions(&input, kind, attributes, shown))
    }

    /// Whether all conditions hold on an input that has been made for conditions.
    pub(super) fn hold(&self, server: &Inner, user: &User, input: &Input) -> Result<bool, String> {
        let asked = Asked { server, user };
        let session = Session::new(&self.compiler, input, Some(&asked));
        let mut budget = Budget::of(MATCH_CONDITIONS_COST_MAX);
        let (mut holds, mut errors) = (true, Vec::new());
        for expression in &self.expressions {
            match session.evaluate(expression, &mut budget) {
                Ok(Cel::Bool(false)) => holds = false,
                Ok(_) => {}
                Err(Fault::Failed(why)) => errors.push(why),
                // one spent budget spoils all, even what was false before
                Err(fault) => return Err(fault.to_string()),
            }
        }
        if holds && !errors.is_empty() { Err(aggregate(errors)) } else { Ok(holds) }
    }
}
