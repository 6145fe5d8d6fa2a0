//! Values in place of empty ones, and JSON.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use orlop_gotemplate::{CallResult, Func, Type, Value};

use super::{func, strval};
use crate::json::{self, Html};

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    vec![
        ("default", func(&[Type::Any], Type::Any, default).variadic(Type::Any)),
        ("empty", func(&[Type::Any], Type::Bool, |args| Ok(Value::Bool(!args[0].truth())))),
        (
            "coalesce",
            func(&[], Type::Any, |args| {
                Ok(args.iter().find(|value| value.truth()).cloned().unwrap_or_default())
            })
            .variadic(Type::Any),
        ),
        ("all", func(&[], Type::Bool, |args| Ok(args.iter().all(Value::truth).into())).variadic(Type::Any)),
        ("any", func(&[], Type::Bool, |args| Ok(args.iter().any(Value::truth).into())).variadic(Type::Any)),
        (
            "ternary",
            func(&[Type::Any, Type::Any, Type::Bool], Type::Any, |args| {
                Ok(args[usize::from(!args[2].truth())].clone())
            }),
        ),
        ("toJson", func(&[Type::Any], Type::Str, |args| Ok(lenient(json::compact(&args[0], Html::Escaped))))),
        ("mustToJson", func(&[Type::Any], Type::Str, |args| strict(json::compact(&args[0], Html::Escaped)))),
        ("toPrettyJson", func(&[Type::Any], Type::Str, |args| Ok(lenient(json::pretty(&args[0]))))),
        ("mustToPrettyJson", func(&[Type::Any], Type::Str, |args| strict(json::pretty(&args[0])))),
        ("toRawJson", func(&[Type::Any], Type::Str, |args| strict(json::compact(&args[0], Html::Plain)))),
        ("mustToRawJson", func(&[Type::Any], Type::Str, |args| strict(json::compact(&args[0], Html::Plain)))),
        ("mustFromJson", func(&[Type::Str], Type::Any, |args| Ok(json::parse(&strval(&args[0]))?))),
        ("toYaml", func(&[Type::Any], Type::Str, |args| Ok(yaml(&args[0]).unwrap_or_else(|_| "".into())))),
        ("mustToYaml", func(&[Type::Any], Type::Str, |args| Ok(yaml(&args[0])?))),
    ]
}

fn default(args: &[Value]) -> CallResult {
    Ok(args.get(1).filter(|given| given.truth()).unwrap_or(&args[0]).clone())
}

fn yaml(value: &Value) -> Result<Value, String> {
    let mut out = crate::yaml::to_yaml(value)?;
    if out.last() == Some(&b'\n') {
        out.pop();
    }
    Ok(Value::from(out))
}

fn lenient(text: Result<Vec<u8>, String>) -> Value {
    Value::from(text.unwrap_or_default())
}

fn strict(text: Result<Vec<u8>, String>) -> CallResult {
    Ok(Value::from(text?))
}
