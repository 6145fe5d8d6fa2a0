//! Lists: every function makes a new one. The `must` forms are the same, as errors end a template either way.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use orlop_gotemplate::{CallResult, Func, FuncError, Type, Value};

use super::cast::to_i64;
use super::reflect::{deep_equal, kind};
use super::{INT, func, int, list_type, nil_dereference, strings_value, strval, text};

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let one = |body| func(&[Type::Any], list_type(), body);
    let pair = |body| func(&[Type::Any, Type::Any], list_type(), body);
    let mut all = vec![
        ("list", func(&[], list_type(), |args| Ok(Value::list(args.to_vec()))).variadic(Type::Any)),
        ("tuple", func(&[], list_type(), |args| Ok(Value::list(args.to_vec()))).variadic(Type::Any)),
        ("join", func(&[Type::Str, Type::Any], Type::Str, join)),
        ("sortAlpha", func(&[Type::Any], Type::list(Type::Str), sort_alpha)),
        (
            "toStrings",
            func(&[Type::Any], Type::list(Type::Str), |args| Ok(strings_value(strslice(&args[0])))),
        ),
        ("concat", func(&[], Type::Any, concat).variadic(Type::Any)),
        ("push", pair(push)),
        ("mustPush", pair(push)),
    ];
    for (name, must, make) in [
        ("append", "mustAppend", &(|| pair(push)) as &dyn Fn() -> Func),
        ("prepend", "mustPrepend", &|| pair(prepend)),
        ("first", "mustFirst", &|| func(&[Type::Any], Type::Any, first)),
        ("last", "mustLast", &|| func(&[Type::Any], Type::Any, last)),
        ("rest", "mustRest", &|| one(rest)),
        ("initial", "mustInitial", &|| one(initial)),
        ("reverse", "mustReverse", &|| one(reverse)),
        ("compact", "mustCompact", &|| one(compact)),
        ("uniq", "mustUniq", &|| one(uniq)),
        ("without", "mustWithout", &|| one(without).variadic(Type::Any)),
        ("has", "mustHas", &|| func(&[Type::Any, Type::Any], Type::Bool, has)),
        ("slice", "mustSlice", &|| func(&[Type::Any], Type::Any, slice).variadic(Type::Any)),
        ("chunk", "mustChunk", &|| func(&[INT, Type::Any], Type::list(list_type()), chunk)),
    ] {
        all.push((name, make()));
        all.push((must, make()));
    }
    all
}

/// The elements of what is a list.
fn items(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(list) => Some(list.items().to_vec()),
        Value::TypedNil(of) if matches!(**of, Type::List(_)) => Some(Vec::new()),
        Value::Bytes(bytes) => {
            let byte = |b: &u8| Value::Uint(orlop_gotemplate::Uint::U8, u64::from(*b));
            Some(bytes.iter().map(byte).collect())
        }
        Value::Object(object) => object.underlying().and_then(|inner| items(&inner)),
        _ => None,
    }
}

/// The elements, or sprig's complaint.
fn elements(value: &Value, complaint: &str) -> Result<Vec<Value>, FuncError> {
    if matches!(value, Value::Nil) {
        return Err(nil_dereference());
    }
    items(value).ok_or_else(|| FuncError::new(format!("{complaint} {}", kind(value))))
}

fn strslice(value: &Value) -> Vec<orlop_gotemplate::Str> {
    match items(value) {
        Some(items) => items.iter().filter(|item| !matches!(item, Value::Nil)).map(strval).collect(),
        None if matches!(value, Value::Nil) => Vec::new(),
        None => vec![strval(value)],
    }
}

fn join(args: &[Value]) -> CallResult {
    let parts = strslice(&args[1]);
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    Ok(Value::from(parts.join(text(&args[0]))))
}

fn sort_alpha(args: &[Value]) -> CallResult {
    if matches!(args[0], Value::Nil) {
        return Ok(strings_value(vec![strval(&args[0])]));
    }
    let mut parts = strslice(&args[0]);
    parts.sort();
    Ok(strings_value(parts))
}

fn concat(args: &[Value]) -> CallResult {
    let mut all = Vec::new();
    for arg in args {
        if matches!(arg, Value::Nil) {
            return Err(nil_dereference());
        }
        let complaint = || FuncError::new(format!("Cannot concat type {} as list", kind(arg)));
        all.extend(items(arg).ok_or_else(complaint)?);
    }
    Ok(if all.is_empty() { list_type().zero() } else { Value::list(all) })
}

fn push(args: &[Value]) -> CallResult {
    let mut items = elements(&args[0], "Cannot push on type")?;
    items.push(args[1].clone());
    Ok(Value::list(items))
}

fn prepend(args: &[Value]) -> CallResult {
    let mut items = elements(&args[0], "Cannot prepend on type")?;
    items.insert(0, args[1].clone());
    Ok(Value::list(items))
}

fn first(args: &[Value]) -> CallResult {
    Ok(elements(&args[0], "Cannot find first on type")?.first().cloned().unwrap_or_default())
}

fn last(args: &[Value]) -> CallResult {
    Ok(elements(&args[0], "Cannot find last on type")?.last().cloned().unwrap_or_default())
}

/// The list, or a nil one where nothing was there to take from.
fn shortened(mut items: Vec<Value>, at: fn(usize) -> usize) -> Value {
    if items.is_empty() {
        return list_type().zero();
    }
    items.remove(at(items.len()));
    Value::list(items)
}

fn rest(args: &[Value]) -> CallResult {
    Ok(shortened(elements(&args[0], "Cannot find rest on type")?, |_| 0))
}

fn initial(args: &[Value]) -> CallResult {
    Ok(shortened(elements(&args[0], "Cannot find initial on type")?, |length| length - 1))
}

fn reverse(args: &[Value]) -> CallResult {
    let mut items = elements(&args[0], "Cannot find reverse on type")?;
    items.reverse();
    Ok(Value::list(items))
}

fn compact(args: &[Value]) -> CallResult {
    let items = elements(&args[0], "Cannot compact on type")?;
    Ok(Value::list(items.into_iter().filter(Value::truth).collect()))
}

fn contains(items: &[Value], needle: &Value) -> bool {
    items.iter().any(|item| deep_equal(needle, item, 0))
}

fn uniq(args: &[Value]) -> CallResult {
    let mut kept: Vec<Value> = Vec::new();
    for item in elements(&args[0], "Cannot find uniq on type")? {
        if !contains(&kept, &item) {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn without(args: &[Value]) -> CallResult {
    let items = elements(&args[0], "Cannot find without on type")?;
    Ok(Value::list(items.into_iter().filter(|item| !contains(&args[1..], item)).collect()))
}

fn has(args: &[Value]) -> CallResult {
    if matches!(args[1], Value::Nil) {
        return Ok(Value::Bool(false));
    }
    Ok(contains(&elements(&args[1], "Cannot find has on type")?, &args[0]).into())
}

fn slice(args: &[Value]) -> CallResult {
    let items = elements(&args[0], "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let bound = |at: usize, other: usize| args.get(at).map_or(other as i64, to_i64);
    let (from, to) = (bound(1, 0), bound(2, items.len()));
    match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) if from <= to && to <= items.len() => Ok(Value::list(items[from..to].to_vec())),
        _ => Err(FuncError::new("reflect.Value.Slice: slice index out of bounds")),
    }
}

fn chunk(args: &[Value]) -> CallResult {
    let items = elements(&args[1], "Cannot chunk type")?;
    let Some(size) = usize::try_from(int(&args[0])).ok().filter(|size| *size > 0) else {
        return Err(FuncError::new("runtime error: makeslice: len out of range"));
    };
    let chunks = items.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect();
    Ok(Value::List(std::rc::Rc::new(orlop_gotemplate::List::typed(list_type(), chunks))))
}
