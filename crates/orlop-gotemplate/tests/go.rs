//! Programs that real Go ran, each with what it wrote and the error it ended with.

use std::rc::Rc;

use orlop_gotemplate::{Func, FuncError, Int, List, Map, MissingKey, Set, Str, Type, Uint, Value, fmt};

fn text(text: &str) -> Value {
    Value::from(text)
}

fn typed_list(elem: Type, items: Vec<Value>) -> Value {
    Value::List(Rc::new(List::typed(elem, items)))
}

fn typed_map<const N: usize>(elem: Type, entries: [(&str, Value); N]) -> Value {
    Value::Map(Rc::new(Map::typed(elem, entries.map(|(key, value)| (Str::from(key), value)).into())))
}

fn data() -> Value {
    let (int, float) = (Value::int, Value::Float);
    Value::map([
        ("i", int(1)),
        ("i0", int(0)),
        ("big", float(1_000_000.0)),
        ("f", float(1.5)),
        ("neg", int(-3)),
        ("i64", Value::int64(7)),
        ("u", Value::Uint(Uint::Uint, 9)),
        ("u8", Value::Uint(Uint::U8, 200)),
        ("f32", Value::Float32(0.1)),
        ("s", text("str")),
        ("e", text("")),
        ("t", true.into()),
        ("fl", false.into()),
        ("n", Value::Nil),
        ("h", text("h\u{e9}llo\u{2028}")),
        ("q", text("a\"b\n\t\\`")),
        ("bad", Value::from(b"a\xffb".to_vec())),
        (
            "l",
            Value::list(vec![
                int(1),
                float(2.5),
                text("x"),
                Value::Nil,
                true.into(),
                Value::map([("k", text("v"))]),
            ]),
        ),
        ("li", Value::list(vec![int(3), int(1), int(2)])),
        ("ls", typed_list(Type::Str, vec![text("a"), text("b"), text("c")])),
        ("ints", typed_list(Type::Int(Int::Int), vec![int(4), int(5)])),
        (
            "m",
            Value::map([
                ("b", int(2)),
                ("a", int(1)),
                ("C", Value::map([("z", Value::Nil), ("y", text("q"))])),
            ]),
        ),
        ("ms", typed_map(Type::Str, [("x", text("1")), ("y", text(""))])),
        ("mi", typed_map(Type::Int(Int::Int), [("one", int(1))])),
        ("el", Value::list(Vec::new())),
        ("em", Value::map::<&str>([])),
        ("nm", Type::map(Type::Any).zero()),
        ("ns", Type::list(Type::Str).zero()),
        ("by", Value::Bytes(Str::from("hi\0"))),
        ("html", text("<a href='x'>&\0</a>")),
        ("z", float(0.0)),
        ("nan1", float(1e21)),
        ("small", float(1e-7)),
    ])
}

/// A function value: it joins its arguments, and fails on thirteen.
fn function() -> Value {
    let func = Func::new([Type::Int(Int::Int)], Type::Str, |_, args| {
        if matches!(args[0], Value::Int(_, 13)) {
            return Err("unlucky".into());
        }
        let rest = typed_list(Type::Str, args[1..].to_vec());
        let count = Value::int(args.len() as i64 - 1);
        Ok(Value::from(fmt::sprint(&[args[0].clone(), count, rest])))
    });
    Value::Func(Rc::new(func.variadic(Type::Str).fallible()))
}

fn funcs() -> Vec<(&'static str, Func)> {
    let int = || Type::Int(Int::Int);
    let dict = || Type::map(Type::Any);
    let bytes = |value: &Value| match value {
        Value::Str(text) => text.clone(),
        other => Str::from(fmt::sprint(std::slice::from_ref(other))),
    };
    vec![
        (
            "upper",
            Func::new([Type::Str], Type::Str, move |_, args| Ok(bytes(&args[0]).to_ascii_uppercase().into())),
        ),
        (
            "add",
            Func::new([int(), int()], int(), |_, args| match args {
                [Value::Int(_, a), Value::Int(_, b)] => Ok(Value::int(a + b)),
                _ => Err("no integers".into()),
            }),
        ),
        (
            "fail",
            Func::new([Type::Str], Type::Str, move |_, args| Err(FuncError::new(bytes(&args[0]).to_text()))),
        ),
        (
            "dict",
            Func::new([], dict(), move |_, args| {
                Ok(Value::map(args.chunks_exact(2).map(|pair| (bytes(&pair[0]), pair[1].clone()))))
            })
            .variadic(Type::Any),
        ),
        (
            "list",
            Func::new([], Type::list(Type::Any), |_, args| Ok(Value::list(args.to_vec())))
                .variadic(Type::Any),
        ),
        (
            "set",
            Func::new([dict(), Type::Str, Type::Any], dict(), move |_, args| {
                let Value::Map(map) = &args[0] else { return Err("assignment to entry in nil map".into()) };
                map.set(bytes(&args[1]), args[2].clone());
                Ok(args[0].clone())
            }),
        ),
        ("anyv", Func::new([Type::Any], Type::Any, |_, args| Ok(args[0].clone()))),
        ("now", Func::new([], Type::Any, |_, _| Ok(Value::map([("x", Value::int(5))])))),
        ("nilv", Func::new([], Type::Any, |_, _| Ok(Value::Nil))),
        ("fnv", Func::new([], Type::Any, |_, _| Ok(function()))),
        (
            "half",
            Func::new([Type::Float], Type::Float, |_, args| match args[0] {
                Value::Float(float) => Ok(Value::Float(float / 2.0)),
                _ => Err("no float".into()),
            }),
        ),
        ("yes", Func::new([Type::Bool], Type::Bool, |_, args| Ok(Value::Bool(!args[0].truth())))),
        ("u64", Func::new([Type::Uint(Uint::U64)], Type::Uint(Uint::U64), |_, args| Ok(args[0].clone()))),
        (
            "strs",
            Func::new([Type::list(Type::Str)], int(), |_, args| match &args[0] {
                Value::List(list) => Ok(Value::int(list.items().len() as i64)),
                _ => Ok(Value::int(0)),
            }),
        ),
    ]
}

fn outcome(template: &str, missing: MissingKey) -> String {
    let mut set = Set::named("t").option(missing).funcs(funcs());
    let template = match set.parse("t", template) {
        Ok(template) => template,
        Err(error) => return format!("ERR {error}"),
    };
    let mut out = Vec::new();
    let result = set.execute_template(&template, &data(), &mut out);
    let out = String::from_utf8_lossy(&out);
    match result {
        Ok(()) => out.into_owned(),
        Err(error) => format!("{out}\nERR {error}"),
    }
}

#[test]
fn templates_answer_like_go() {
    let mut wrong = Vec::new();
    for row in include_str!("go.jsonl").lines() {
        let [group, missing, template, expected]: [String; 4] = serde_json::from_str(row).unwrap();
        let missing = match missing.as_str() {
            "zero" => MissingKey::Zero,
            "error" => MissingKey::Error,
            _ => MissingKey::Invalid,
        };
        let found = outcome(&template, missing);
        if found != expected {
            wrong.push(format!("{group}: {template:?}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
