//! Go's `text/template`, with its output and its error texts byte for byte.
//!
//! A [`Set`] holds templates that can call each other; texts are parsed into it once and executed on a
//! [`Value`] as often as needed. The host adds functions ([`Func`]) and objects with methods ([`Object`]).
//!
//! The flow: bytes → tokens (`lex`) → trees (`parse`, `ast`) → output (`exec` walks, `eval` computes,
//! `fmt` prints). Nothing here does IO, reads a clock or panics; depth, steps and output have [`Limits`].
//!
//! ```
//! use orlop_gotemplate::{Set, Value};
//!
//! let mut set = Set::new();
//! set.parse("hello", "Hello {{ .name | printf \"%q\" }}!")?;
//! let mut out = Vec::new();
//! set.execute("hello", &Value::map([("name", Value::from("orlop"))]), &mut out)?;
//! assert_eq!(out, b"Hello \"orlop\"!");
//! # Ok::<(), orlop_gotemplate::Error>(())
//! ```

mod ast;
mod builtins;
mod error;
mod escape;
mod eval;
mod exec;
pub mod fmt;
mod func;
mod lex;
mod number;
mod parse;
mod set;
mod strconv;
mod text;
mod types;
mod value;

pub use error::{Error, FuncError, Stage};
pub use exec::Context;
pub use func::Func;
pub use set::{Limits, MissingKey, Set, Template};
pub use types::{Int, Type, Uint};
pub use value::{CallResult, Iterate, List, Map, Object, Str, Value};
