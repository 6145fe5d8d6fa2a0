//! Go's own functions, on values as they are.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::error::FuncError;
use crate::escape;
use crate::exec::{Context, Rv};
use crate::fmt::{sprint, sprintf, sprintln};
use crate::types::{Type, Uint};
use crate::value::{List, Value};

/// A function that every set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Slice,
    Urlquery,
}

impl Builtin {
    pub(crate) const ALL: [Self; 19] = [
        Self::And,
        Self::Call,
        Self::Eq,
        Self::Ge,
        Self::Gt,
        Self::Html,
        Self::Index,
        Self::Js,
        Self::Le,
        Self::Len,
        Self::Lt,
        Self::Ne,
        Self::Not,
        Self::Or,
        Self::Print,
        Self::Printf,
        Self::Println,
        Self::Slice,
        Self::Urlquery,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Call => "call",
            Self::Eq => "eq",
            Self::Ge => "ge",
            Self::Gt => "gt",
            Self::Html => "html",
            Self::Index => "index",
            Self::Js => "js",
            Self::Le => "le",
            Self::Len => "len",
            Self::Lt => "lt",
            Self::Ne => "ne",
            Self::Not => "not",
            Self::Or => "or",
            Self::Print => "print",
            Self::Printf => "printf",
            Self::Println => "println",
            Self::Slice => "slice",
            Self::Urlquery => "urlquery",
        }
    }

    /// How many parameters are fixed, and whether more may follow.
    pub(crate) fn arity(self) -> (usize, bool) {
        match self {
            Self::And | Self::Or | Self::Call | Self::Eq | Self::Index | Self::Slice | Self::Printf => {
                (1, true)
            }
            Self::Len | Self::Not => (1, false),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, false),
            Self::Html | Self::Js | Self::Print | Self::Println | Self::Urlquery => (0, true),
        }
    }

    pub(crate) fn param(self, position: usize) -> &'static Type {
        match self {
            Self::Printf if position == 0 => &Type::Str,
            Self::Html | Self::Js | Self::Print | Self::Printf | Self::Println | Self::Urlquery => &Type::Any,
            _ => &Type::Reflect,
        }
    }
}

type Called = Result<Rv, FuncError>;

/// Runs a function on checked arguments; `and`, `or` and `call` are the evaluator's.
pub(crate) fn run(builtin: Builtin, args: &[Rv]) -> Called {
    let plain = || args.iter().map(|arg| arg.v.clone()).collect::<Vec<_>>();
    let bytes = |bytes: Vec<u8>| Ok(Rv::concrete(Value::from(bytes)));
    let truth = |truth: bool| Ok(Rv::concrete(Value::Bool(truth)));
    match (builtin, args) {
        (Builtin::Print, _) => bytes(sprint(&plain())),
        (Builtin::Println, _) => bytes(sprintln(&plain())),
        (Builtin::Printf, [format, rest @ ..]) => {
            let Value::Str(format) = &format.v else { return Err(FuncError::new("format is no string")) };
            let rest: Vec<Value> = rest.iter().map(|arg| arg.v.clone()).collect();
            bytes(sprintf(format, &rest))
        }
        (Builtin::Html, _) => bytes(escape::html(&joined(args))),
        (Builtin::Js, _) => bytes(escape::js(&joined(args))),
        (Builtin::Urlquery, _) => bytes(escape::url_query(&joined(args))),
        (Builtin::Not, [arg, ..]) => truth(!arg.v.truth()),
        (Builtin::Len, [arg, ..]) => length(arg),
        (Builtin::Index, [item, indexes @ ..]) => index(item, indexes),
        (Builtin::Slice, [item, indexes @ ..]) => slice(item, indexes),
        (Builtin::Eq, [first, rest @ ..]) => truth(eq(&first.v, rest)?),
        (Builtin::Ne, [a, b, ..]) => truth(!eq(&a.v, std::slice::from_ref(b))?),
        (Builtin::Lt, [a, b, ..]) => truth(lt(&a.v, &b.v)?),
        (Builtin::Le, [a, b, ..]) => truth(lt(&a.v, &b.v)? || eq(&a.v, std::slice::from_ref(b))?),
        (Builtin::Gt, [a, b, ..]) => truth(!(lt(&a.v, &b.v)? || eq(&a.v, std::slice::from_ref(b))?)),
        (Builtin::Ge, [a, b, ..]) => truth(!lt(&a.v, &b.v)?),
        _ => Err(FuncError::new("unreachable")),
    }
}

/// What the escapers escape: the operands as `print` joins them, missing ones as templates print them.
fn joined(args: &[Rv]) -> Vec<u8> {
    let shown: Vec<Value> = args
        .iter()
        .map(|arg| match &arg.v {
            Value::Nil => Value::from("<no value>"),
            other => other.clone(),
        })
        .collect();
    sprint(&shown)
}

/// Go's `reflect.Value.String`: a string itself, or a note of the type.
pub(crate) fn value_string(value: &Value) -> String {
    match value.plain() {
        Value::Str(text) => text.to_text(),
        Value::Nil => "<invalid Value>".to_owned(),
        _ => format!("<{} Value>", value.type_name()),
    }
}

/// `call`: a function held by a value.
pub(crate) fn call(context: &mut Context<'_>, name: &str, values: &[Rv]) -> Called {
    let Some((callee, args)) = values.split_first() else { return Err(FuncError::new("call of nil")) };
    let func = match &callee.v {
        Value::Nil => return Err(FuncError::new("call of nil")),
        Value::Func(func) => Rc::clone(func),
        other => return Err(format!("non-function {name} of type {}", other.type_name()).into()),
    };
    let (given, fixed) = (args.len(), func.params.len());
    if func.variadic.is_some() && given < fixed {
        return Err(format!("wrong number of args for {name}: got {given} want at least {fixed}").into());
    }
    if func.variadic.is_none() && given != fixed {
        return Err(format!("wrong number of args for {name}: got {given} want {fixed}").into());
    }
    let mut checked = Vec::with_capacity(given);
    for (i, arg) in args.iter().enumerate() {
        let value = prepare(&arg.v, func.param(i)).map_err(|error| format!("arg {i}: {error}"))?;
        checked.push(value);
    }
    let result = func.run(context, &checked)?;
    Ok(Rv::of(result, &func.result))
}

/// Makes a value an argument of a type; integers are converted.
fn prepare(value: &Value, wanted: &Type) -> Result<Value, String> {
    if matches!(value, Value::Nil) {
        if wanted.can_be_nil() {
            return Ok(wanted.zero());
        }
        return Err(format!("value is nil; should be of type {wanted}"));
    }
    if let Some(value) = wanted.assign(value) {
        return Ok(value);
    }
    match (wanted, value.plain()) {
        (Type::Int(kind), Value::Int(_, int)) => Ok(Value::Int(*kind, int)),
        (Type::Int(kind), Value::Uint(_, uint)) => Ok(Value::Int(*kind, uint as i64)),
        (Type::Uint(kind), Value::Int(_, int)) => Ok(Value::Uint(*kind, int as u64)),
        (Type::Uint(kind), Value::Uint(_, uint)) => Ok(Value::Uint(*kind, uint)),
        _ => Err(format!("value has type {}; should be {wanted}", value.type_name())),
    }
}

fn length(arg: &Rv) -> Called {
    let count = match arg.v.plain() {
        Value::Nil if arg.iface => return Err(FuncError::new("len of nil pointer")),
        Value::Nil => return Err(FuncError::new("reflect: call of reflect.Value.Type on zero Value")),
        Value::Str(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        Value::TypedNil(of) => match &*of {
            Type::List(_) | Type::Map(_) => 0,
            Type::Named(_) => return Err(FuncError::new("len of nil pointer")),
            other => return Err(format!("len of type {other}").into()),
        },
        _ => return Err(format!("len of type {}", arg.v.type_name()).into()),
    };
    Ok(Rv::concrete(Value::int(count as i64)))
}

/// An index that is an integer from zero to the capacity.
fn position(index: &Rv, capacity: usize) -> Result<usize, FuncError> {
    let at = match index.v.plain() {
        _ if index.iface => return Err(FuncError::new("cannot index slice/array with type interface {}")),
        Value::Int(_, int) => int,
        Value::Uint(_, uint) => uint as i64,
        Value::Nil => return Err(FuncError::new("cannot index slice/array with nil")),
        _ => return Err(format!("cannot index slice/array with type {}", index.v.type_name()).into()),
    };
    match usize::try_from(at) {
        Ok(at) if at <= capacity => Ok(at),
        _ => Err(format!("index out of range: {at}").into()),
    }
}

fn index(item: &Rv, indexes: &[Rv]) -> Called {
    if matches!(item.v, Value::Nil) {
        return Err(FuncError::new("index of untyped nil"));
    }
    let mut item = item.clone();
    for index in indexes {
        let index = Rv::concrete(index.v.clone());
        item = match item.v.plain() {
            Value::Nil => return Err(FuncError::new("index of nil pointer")),
            Value::Str(text) | Value::Bytes(text) => {
                let at = position(&index, text.len())?;
                let Some(byte) = text.get(at) else {
                    let what = if matches!(item.v, Value::Bytes(_)) { "slice" } else { "string" };
                    return Err(format!("reflect: {what} index out of range").into());
                };
                Rv::concrete(Value::Uint(Uint::U8, u64::from(*byte)))
            }
            Value::List(list) => {
                let at = position(&index, list.items().len())?;
                let Some(found) = list.items().get(at) else {
                    return Err(FuncError::new("reflect: slice index out of range"));
                };
                Rv::of(found.clone(), list.elem())
            }
            Value::Map(map) => {
                let Value::Str(key) = prepare(&index.v, &Type::Str)? else {
                    return Err(FuncError::new("key is no string"));
                };
                let found = map.get(&key).unwrap_or_else(|| map.elem().zero());
                Rv::of(found, map.elem())
            }
            Value::TypedNil(of) => match &*of {
                Type::Map(elem) => {
                    prepare(&index.v, &Type::Str)?;
                    Rv::of(elem.zero(), elem)
                }
                Type::List(_) => {
                    position(&index, 0)?;
                    return Err(FuncError::new("reflect: slice index out of range"));
                }
                Type::Named(_) => return Err(FuncError::new("index of nil pointer")),
                other => return Err(format!("can't index item of type {other}").into()),
            },
            _ => return Err(format!("can't index item of type {}", item.v.type_name()).into()),
        };
    }
    Ok(item)
}

fn slice(item: &Rv, indexes: &[Rv]) -> Called {
    let plain = item.v.plain();
    match &plain {
        Value::Nil => return Err(FuncError::new("slice of untyped nil")),
        Value::TypedNil(of) if matches!(&**of, Type::Named(_)) => {
            return Err(FuncError::new("slice of nil pointer"));
        }
        _ => {}
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let (length, capacity) = match &plain {
        Value::Str(_) if indexes.len() == 3 => return Err(FuncError::new("cannot 3-index slice a string")),
        Value::Str(text) | Value::Bytes(text) => (text.len(), text.len()),
        Value::List(list) => (list.items().len(), list.capacity()),
        Value::TypedNil(of) if matches!(&**of, Type::List(_)) => (0, 0),
        _ => return Err(format!("can't slice item of type {}", item.v.type_name()).into()),
    };
    let mut bounds = [0, length, capacity];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, capacity)?;
    }
    let [from, to, cap] = bounds;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}").into());
    }
    if to > cap {
        return Err(format!("invalid slice index: {to} > {cap}").into());
    }
    Ok(Rv::concrete(match &plain {
        Value::Str(text) => Value::string(&text[from..to]),
        Value::Bytes(bytes) => Value::Bytes(bytes[from..to].into()),
        Value::List(list) => Value::List(Rc::new(List::window(list, from, to, cap))),
        other => other.clone(),
    }))
}

/// The kinds that compare with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    Str,
    Uint,
}

fn basic(value: &Value) -> Option<Basic> {
    Some(match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) | Value::Float32(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::Str(_) => Basic::Str,
        _ => return None,
    })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(float) => *float,
        Value::Float32(float) => f64::from(*float),
        _ => f64::NAN,
    }
}

/// How two basic values of one kind relate; integers compare whatever their sign.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(_, a), Value::Int(_, b)) => Some(a.cmp(b)),
        (Value::Uint(_, a), Value::Uint(_, b)) => Some(a.cmp(b)),
        (Value::Int(_, a), Value::Uint(_, b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(_, a), Value::Int(_, b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Complex(a, b), Value::Complex(c, d)) => {
            let same = a.partial_cmp(c) == Some(Ordering::Equal) && b.partial_cmp(d) == Some(Ordering::Equal);
            Some(if same { Ordering::Equal } else { Ordering::Less })
        }
        (a, b) => float(a).partial_cmp(&float(b)),
    }
}

fn comparable_kinds(a: Option<Basic>, b: Option<Basic>) -> bool {
    a == b || matches!((a, b), (Some(Basic::Int | Basic::Uint), Some(Basic::Int | Basic::Uint)))
}

fn incompatible(a: &Value, b: &Value) -> FuncError {
    FuncError::new(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}

/// `a == b || a == c || …`
fn eq(first: &Value, rest: &[Rv]) -> Result<bool, FuncError> {
    if rest.is_empty() {
        return Err(FuncError::new("missing argument for comparison"));
    }
    let a = first.plain();
    let kind = basic(&a);
    for other in rest {
        let b = other.v.plain();
        let other_kind = basic(&b);
        let equal = if !comparable_kinds(kind, other_kind) {
            if !matches!(a, Value::Nil) && !matches!(b, Value::Nil) {
                return Err(incompatible(first, &other.v));
            }
            false
        } else if kind.is_some() {
            compare(&a, &b) == Some(Ordering::Equal)
        } else {
            same(first, &other.v)?
        };
        if equal {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Go's kinds of what is not basic.
fn kind_of(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::List(_) | Value::Bytes(_) => 1,
        Value::Map(_) => 2,
        Value::Func(_) => 3,
        Value::Object(object) if object.type_name().starts_with('*') => 4,
        Value::TypedNil(of) => match &**of {
            Type::List(_) => 1,
            Type::Map(_) => 2,
            Type::Func(_) => 3,
            _ => 4,
        },
        _ => 5,
    }
}

/// Equality of what is not basic: nil with nil, or identical objects.
fn same(a: &Value, b: &Value) -> Result<bool, FuncError> {
    let (plain_a, plain_b) = (a.plain(), b.plain());
    let (kind_a, kind_b) = (kind_of(&plain_a), kind_of(&plain_b));
    let show = |format: &[u8], values: &[Value]| FuncError::new(crate::text::lossy(&sprintf(format, values)));
    if kind_a != kind_b && kind_a != 0 && kind_b != 0 {
        let types = [Value::from(a.type_name()), Value::from(b.type_name())];
        let [type_a, type_b] = types;
        return Err(show(b"non-comparable types %s: %v, %s: %v", &[a.clone(), type_a, type_b, b.clone()]));
    }
    let nil = |value: &Value| matches!(value, Value::Nil | Value::TypedNil(_));
    if nil(a) || nil(b) {
        return Ok(nil(a) == nil(b));
    }
    match (&plain_a, &plain_b) {
        (Value::Object(a), Value::Object(b)) => Ok(Rc::ptr_eq(a, b)),
        _ => Err(show(b"non-comparable type %s: %v", &[b.clone(), Value::from(b.type_name())])),
    }
}

fn lt(a: &Value, b: &Value) -> Result<bool, FuncError> {
    let bad = || FuncError::new("invalid type for comparison");
    let (plain_a, plain_b) = (a.plain(), b.plain());
    let (kind_a, kind_b) = (basic(&plain_a), basic(&plain_b));
    if kind_a.is_none() || kind_b.is_none() {
        return Err(bad());
    }
    if !comparable_kinds(kind_a, kind_b) {
        return Err(incompatible(a, b));
    }
    if matches!(kind_a, Some(Basic::Bool | Basic::Complex)) {
        return Err(bad());
    }
    Ok(compare(&plain_a, &plain_b) == Some(Ordering::Less))
}
