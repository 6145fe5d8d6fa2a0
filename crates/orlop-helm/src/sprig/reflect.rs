//! What a value is, and whether two are alike.

use orlop_gotemplate::{Func, Type, Value};

use super::{func, text};

/// How deep values are compared.
const DEPTH_MAX: usize = 500;

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    vec![
        ("typeOf", func(&[Type::Any], Type::Str, |args| Ok(args[0].type_name().into()))),
        (
            "typeIs",
            func(&[Type::Str, Type::Any], Type::Bool, |args| {
                Ok((text(&args[0]) == args[1].type_name().as_bytes()).into())
            }),
        ),
        (
            "typeIsLike",
            func(&[Type::Str, Type::Any], Type::Bool, |args| {
                let name = args[1].type_name();
                let like = name.strip_prefix('*').unwrap_or(&name);
                Ok((text(&args[0]) == name.as_bytes() || text(&args[0]) == like.as_bytes()).into())
            }),
        ),
        ("kindOf", func(&[Type::Any], Type::Str, |args| Ok(kind(&args[0]).into()))),
        (
            "kindIs",
            func(&[Type::Str, Type::Any], Type::Bool, |args| {
                Ok((text(&args[0]) == kind(&args[1]).as_bytes()).into())
            }),
        ),
        (
            "deepEqual",
            func(&[Type::Any, Type::Any], Type::Bool, |args| Ok(deep_equal(&args[0], &args[1], 0).into())),
        ),
    ]
}

/// Go's name for the kind of a value.
pub(super) fn kind(value: &Value) -> String {
    let name = match value {
        Value::Nil => "invalid",
        Value::List(_) | Value::Bytes(_) => "slice",
        Value::Map(_) => "map",
        Value::Func(_) => "func",
        Value::TypedNil(of) => match &**of {
            Type::List(_) => "slice",
            Type::Map(_) => "map",
            Type::Func(_) => "func",
            _ => "ptr",
        },
        Value::Object(object) => match object.underlying() {
            Some(inner) => return kind(&inner),
            None if object.type_name().starts_with('*') => "ptr",
            None => "struct",
        },
        other => return other.type_name(),
    };
    name.to_owned()
}

/// Go's `reflect.DeepEqual`: types must be the same, and contents all the way down.
#[expect(clippy::float_cmp, reason = "floats are equal when they are the same number")]
pub(super) fn deep_equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > DEPTH_MAX || a.type_of() != b.type_of() {
        return false;
    }
    match (a, b) {
        (Value::Nil, Value::Nil) | (Value::TypedNil(_), Value::TypedNil(_)) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_, a), Value::Int(_, b)) => a == b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Float32(a), Value::Float32(b)) => a == b,
        (Value::Str(a), Value::Str(b)) | (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.items().len() == b.items().len()
                && a.items().iter().zip(b.items()).all(|(a, b)| deep_equal(a, b, depth + 1))
        }
        (Value::Map(a), Value::Map(b)) => {
            let (a, b) = (a.entries(), b.entries());
            a.len() == b.len()
                && a.iter().zip(&b).all(|((ka, a), (kb, b))| ka == kb && deep_equal(a, b, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) => match (a.underlying(), b.underlying()) {
            (Some(a), Some(b)) => deep_equal(&a, &b, depth + 1),
            _ => std::rc::Rc::ptr_eq(a, b),
        },
        _ => false,
    }
}
