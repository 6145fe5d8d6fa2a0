//! The functions: one room per library, and what each call costs.
//!
//! [`call`] looks at the values, not at overloads: the checker has already refused what no overload takes, and
//! `dyn` values find their overload here.

mod authz;
mod cost;
mod lists;
mod net;
mod operators;
mod standard;
mod strings;

use crate::eval::{Eval, no_such_overload};
use crate::value::Value;

pub(crate) use cost::cost;
pub(crate) use standard::display;
pub(crate) use strings::search;

/// Calls a function; the target of a member call is the first value.
pub(crate) fn call(function: &str, args: &[Value]) -> Eval {
    let rooms = [operators::call, standard::call, strings::call, lists::call, net::call, authz::call];
    rooms.into_iter().find_map(|room| room(function, args)).unwrap_or_else(no_such_overload)
}
