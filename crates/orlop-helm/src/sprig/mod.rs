//! The functions of sprig that Helm gives to templates, by their Go signatures.

mod case;
mod cast;
mod defaults;
mod dicts;
mod encode;
mod lists;
mod numbers;
mod paths;
mod reflect;
mod regex;
mod strings;
mod versions;

use orlop_gotemplate::{CallResult, Func, FuncError, Int, Str, Type, Value};

/// Every function with its name; those of clock, randomness and certificates are not among them.
pub fn functions() -> Vec<(&'static str, Func)> {
    let mut all = Vec::with_capacity(200);
    all.extend(case::functions());
    all.extend(defaults::functions());
    all.extend(dicts::functions());
    all.extend(encode::functions());
    all.extend(lists::functions());
    all.extend(numbers::functions());
    all.extend(paths::functions());
    all.extend(reflect::functions());
    all.extend(regex::functions());
    all.extend(strings::functions());
    all.extend(versions::functions());
    all
}

const INT: Type = Type::Int(Int::Int);
const INT64: Type = Type::Int(Int::I64);

fn list_type() -> Type {
    Type::list(Type::Any)
}

fn dict_type() -> Type {
    Type::map(Type::Any)
}

/// A function with fixed parameters.
fn func(params: &[Type], result: Type, body: fn(&[Value]) -> CallResult) -> Func {
    Func::new(params.to_vec(), result, move |_, args| body(args))
}

/// The bytes of an argument that was checked to be a string.
fn text(value: &Value) -> &[u8] {
    match value {
        Value::Str(text) => text,
        _ => b"",
    }
}

/// An argument that was checked to be an integer.
fn int(value: &Value) -> i64 {
    match value {
        Value::Int(_, int) => *int,
        _ => 0,
    }
}

/// sprig's `strval`: a string itself, and anything else as `%v` prints it.
fn strval(value: &Value) -> Str {
    match value {
        Value::Str(text) | Value::Bytes(text) => text.clone(),
        other => Str::from(orlop_gotemplate::fmt::sprint(std::slice::from_ref(other))),
    }
}

fn strings_value(items: Vec<Str>) -> Value {
    let items = items.into_iter().map(Value::Str).collect();
    Value::List(std::rc::Rc::new(orlop_gotemplate::List::typed(Type::Str, items)))
}

/// What Go says where a nil was taken for something.
fn nil_dereference() -> FuncError {
    FuncError::new("runtime error: invalid memory address or nil pointer dereference")
}
