#![doc = include_str!("../README.md")]

pub mod admission;
mod ast;
mod authorizer;
mod base64;
mod check;
mod cost;
mod decl;
mod devices;
mod eval;
mod formats;
mod functions;
mod lexer;
mod library;
mod parser;
mod patch;
mod program;
pub mod rules;
mod semver;
mod source;
mod time;
mod types;
mod url;
mod value;

pub use authorizer::{Authorizer, Check, Decision, Subject};
pub use decl::{Node, escape, is_reserved};
pub use devices::check_selector;
pub use eval::EvalError;
pub use program::{Budget, CALL_COST_MAX, CompileError, Env, OBJECT_COST_MAX, OldSelf, Output, Program};
pub use source::Issue;
pub use value::Value;
