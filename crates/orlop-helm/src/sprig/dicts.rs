//! Dictionaries: shared maps, changed in place by `set`, `unset` and the merges.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use std::rc::Rc;

use orlop_gotemplate::{CallResult, Func, FuncError, Map, Str, Type, Value};

use super::{dict_type, func, list_type, strings_value, strval, text};

/// How deep values are copied and merged; what is deeper stays shared.
const DEPTH_MAX: usize = 500;

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let dict = dict_type;
    let mut all = vec![
        ("dict", func(&[], dict(), make).variadic(Type::Any)),
        ("get", func(&[dict(), Type::Str], Type::Any, |args| Ok(find(args).unwrap_or_else(|| "".into())))),
        ("set", func(&[dict(), Type::Str, Type::Any], dict(), set)),
        ("unset", func(&[dict(), Type::Str], dict(), unset)),
        ("hasKey", func(&[dict(), Type::Str], Type::Bool, |args| Ok(find(args).is_some().into()))),
        ("pluck", func(&[Type::Str], list_type(), pluck).variadic(dict())),
        ("keys", func(&[], Type::list(Type::Str), keys).variadic(dict())),
        ("values", func(&[dict()], list_type(), values)),
        ("pick", func(&[dict()], dict(), pick).variadic(Type::Str)),
        ("omit", func(&[dict()], dict(), omit).variadic(Type::Str)),
        ("dig", func(&[], Type::Any, dig).variadic(Type::Any)),
    ];
    for name in ["merge", "mustMerge"] {
        all.push((name, func(&[dict()], Type::Any, |args| merged(args, false)).variadic(dict())));
    }
    for name in ["mergeOverwrite", "mustMergeOverwrite"] {
        all.push((name, func(&[dict()], Type::Any, |args| merged(args, true)).variadic(dict())));
    }
    for name in ["deepCopy", "mustDeepCopy"] {
        all.push((name, func(&[Type::Any], Type::Any, copied)));
    }
    all
}

fn map(value: &Value) -> Option<&Rc<Map>> {
    match value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

fn find(args: &[Value]) -> Option<Value> {
    map(&args[0])?.get(text(&args[1]))
}

fn make(args: &[Value]) -> CallResult {
    Ok(Value::map(
        args.chunks(2).map(|pair| (strval(&pair[0]), pair.get(1).cloned().unwrap_or_else(|| "".into()))),
    ))
}

fn set(args: &[Value]) -> CallResult {
    let Some(map) = map(&args[0]) else { return Err(FuncError::new("assignment to entry in nil map")) };
    map.set(text(&args[1]), args[2].clone());
    Ok(args[0].clone())
}

fn unset(args: &[Value]) -> CallResult {
    if let Some(map) = map(&args[0]) {
        map.remove(text(&args[1]));
    }
    Ok(args[0].clone())
}

fn pluck(args: &[Value]) -> CallResult {
    let found = args[1..].iter().filter_map(|dict| map(dict)?.get(text(&args[0])));
    Ok(Value::list(found.collect()))
}

/// Go gives the keys in no order; here they are sorted.
fn keys(args: &[Value]) -> CallResult {
    let keys = args.iter().filter_map(map).flat_map(|map| map.entries()).map(|(key, _)| key);
    Ok(strings_value(keys.collect()))
}

fn values(args: &[Value]) -> CallResult {
    let entries = map(&args[0]).map(|map| map.entries()).unwrap_or_default();
    Ok(Value::list(entries.into_iter().map(|(_, value)| value).collect()))
}

fn filtered(args: &[Value], keep: impl Fn(&Str) -> bool) -> Value {
    let entries = map(&args[0]).map(|map| map.entries()).unwrap_or_default();
    Value::map(entries.into_iter().filter(|(key, _)| keep(key)))
}

fn pick(args: &[Value]) -> CallResult {
    Ok(filtered(args, |key| args[1..].iter().any(|wanted| text(wanted) == key.as_bytes())))
}

fn omit(args: &[Value]) -> CallResult {
    Ok(filtered(args, |key| !args[1..].iter().any(|wanted| text(wanted) == key.as_bytes())))
}

fn conversion(value: &Value, wanted: &str) -> FuncError {
    let found = if matches!(value, Value::Nil) { "nil".to_owned() } else { value.type_name() };
    FuncError::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

/// Follows keys to a value, or answers the default where one is missing.
fn dig(args: &[Value]) -> CallResult {
    let [path @ .., default, start] = args else {
        return Err(FuncError::new("dig needs at least three arguments"));
    };
    if path.is_empty() {
        return Err(FuncError::new("dig needs at least three arguments"));
    }
    if let Some(key) = path.iter().find(|key| !matches!(key, Value::Str(_))) {
        if dict_type().assign(start).is_none() || !matches!(start, Value::Map(_) | Value::TypedNil(_)) {
            return Err(conversion(start, "map[string]interface {}"));
        }
        return Err(conversion(key, "string"));
    }
    let mut current = start.clone();
    for key in path {
        let found = match &current {
            Value::Map(map) if *map.elem() == Type::Any => map.get(text(key)),
            Value::TypedNil(of) if **of == dict_type() => None,
            other => return Err(conversion(other, "map[string]interface {}")),
        };
        match found {
            Some(next) => current = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(current)
}

fn merged(args: &[Value], overwrite: bool) -> CallResult {
    // A nil dictionary becomes a new one when there is something to take over.
    let sources: Vec<&Rc<Map>> = args[1..].iter().filter_map(map).collect();
    let target = match map(&args[0]) {
        Some(target) => Rc::clone(target),
        None if sources.is_empty() => return Ok(args[0].clone()),
        None => Rc::new(Map::new(std::collections::BTreeMap::new())),
    };
    sources.into_iter().for_each(|source| merge(&target, source, overwrite, 0));
    Ok(Value::Map(target))
}

/// Takes over what the target lacks or has empty; with `overwrite` everything. Maps merge key by key.
fn merge(target: &Rc<Map>, source: &Rc<Map>, overwrite: bool, depth: usize) {
    if Rc::ptr_eq(target, source) || depth > DEPTH_MAX {
        return;
    }
    for (key, theirs) in source.entries() {
        let ours = target.get(&key);
        match (&ours, &theirs) {
            (_, Value::Nil | Value::TypedNil(_)) if !overwrite => {}
            (Some(Value::Map(ours)), Value::Map(theirs)) if !ours.is_empty() => {
                merge(ours, theirs, overwrite, depth + 1);
            }
            (Some(ours), _) if !overwrite && ours.truth() => {}
            _ => {
                target.set(key, theirs);
            }
        }
    }
}

fn copied(args: &[Value]) -> CallResult {
    match &args[0] {
        Value::Nil => Err(FuncError::new("reflect: call of reflect.Value.Type on zero Value")),
        value => Ok(deep_copy(value, 0)),
    }
}

fn deep_copy(value: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return value.clone();
    }
    match value {
        Value::Map(map) => {
            let entries =
                map.entries().into_iter().map(|(key, value)| (key, deep_copy(&value, depth + 1))).collect();
            Value::Map(Rc::new(Map::typed(map.elem().clone(), entries)))
        }
        Value::List(list) => {
            let items = list.items().iter().map(|item| deep_copy(item, depth + 1)).collect();
            Value::List(Rc::new(orlop_gotemplate::List::typed(list.elem().clone(), items)))
        }
        other => other.clone(),
    }
}
