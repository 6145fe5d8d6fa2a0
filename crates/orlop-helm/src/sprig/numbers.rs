//! Arithmetic: integers that wrap, floats, and decimals where sprig uses them.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use orlop_gotemplate::{CallResult, Func, FuncError, Int, List, Type, Value, fmt};

use super::cast::{to_f64, to_i64};
use super::{INT, INT64, func, int, text};

/// How many numbers `until` and `seq` make.
const COUNT_MAX: usize = 1_000_000;
/// Places after the point that a division keeps.
const DIVISION_PLACES: u32 = 16;

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let any_int = |body| func(&[Type::Any], INT64, body);
    let two = |body| func(&[Type::Any, Type::Any], INT64, body);
    let float = |body| func(&[Type::Any], Type::Float, body);
    vec![
        ("int64", any_int(|args| Ok(Value::int64(to_i64(&args[0]))))),
        ("int", func(&[Type::Any], INT, |args| Ok(Value::int(to_i64(&args[0]))))),
        ("float64", float(|args| Ok(Value::Float(to_f64(&args[0]))))),
        (
            "atoi",
            func(&[Type::Str], INT, |args| {
                Ok(Value::int(String::from_utf8_lossy(text(&args[0])).parse().unwrap_or(0)))
            }),
        ),
        (
            "toDecimal",
            any_int(|args| {
                let shown = fmt::sprint(&args[..1]);
                Ok(Value::int64(i64::from_str_radix(&String::from_utf8_lossy(&shown), 8).unwrap_or(0)))
            }),
        ),
        ("add1", any_int(|args| Ok(Value::int64(to_i64(&args[0]).wrapping_add(1))))),
        ("add", func(&[], INT64, |args| Ok(fold(0, args, i64::wrapping_add))).variadic(Type::Any)),
        (
            "mul",
            any_int(|args| Ok(fold(to_i64(&args[0]), &args[1..], i64::wrapping_mul))).variadic(Type::Any),
        ),
        ("sub", two(|args| Ok(Value::int64(to_i64(&args[0]).wrapping_sub(to_i64(&args[1])))))),
        ("div", two(|args| divide(args, i64::wrapping_div))),
        ("mod", two(|args| divide(args, i64::wrapping_rem))),
        ("max", any_int(|args| Ok(fold(to_i64(&args[0]), &args[1..], Ord::max))).variadic(Type::Any)),
        ("biggest", any_int(|args| Ok(fold(to_i64(&args[0]), &args[1..], Ord::max))).variadic(Type::Any)),
        ("min", any_int(|args| Ok(fold(to_i64(&args[0]), &args[1..], Ord::min))).variadic(Type::Any)),
        ("maxf", float(|args| Ok(fold_float(args, f64::max))).variadic(Type::Any)),
        ("minf", float(|args| Ok(fold_float(args, f64::min))).variadic(Type::Any)),
        ("floor", float(|args| Ok(Value::Float(to_f64(&args[0]).floor())))),
        ("ceil", float(|args| Ok(Value::Float(to_f64(&args[0]).ceil())))),
        ("round", func(&[Type::Any, INT], Type::Float, round).variadic(Type::Float)),
        ("add1f", float(|args| decimals(args, Some(1.0), Decimal::add))),
        ("addf", func(&[], Type::Float, |args| decimals(args, Some(0.0), Decimal::add)).variadic(Type::Any)),
        ("subf", float(|args| decimals(args, None, Decimal::sub)).variadic(Type::Any)),
        ("mulf", float(|args| decimals(args, None, Decimal::mul)).variadic(Type::Any)),
        ("divf", float(|args| decimals(args, None, Decimal::div)).variadic(Type::Any)),
        (
            "until",
            func(&[INT], Type::list(INT), |args| {
                let count = int(&args[0]);
                numbers(0, count, if count < 0 { -1 } else { 1 }).map(list)
            }),
        ),
        (
            "untilStep",
            func(&[INT, INT, INT], Type::list(INT), |args| {
                numbers(int(&args[0]), int(&args[1]), int(&args[2])).map(list)
            }),
        ),
        ("seq", func(&[], Type::Str, seq).variadic(INT)),
    ]
}

fn fold(first: i64, rest: &[Value], combine: fn(i64, i64) -> i64) -> Value {
    Value::int64(rest.iter().map(to_i64).fold(first, combine))
}

fn fold_float(args: &[Value], combine: fn(f64, f64) -> f64) -> Value {
    Value::Float(args[1..].iter().map(to_f64).fold(to_f64(&args[0]), combine))
}

fn divide(args: &[Value], operate: fn(i64, i64) -> i64) -> CallResult {
    match to_i64(&args[1]) {
        0 => Err(FuncError::new("runtime error: integer divide by zero")),
        divisor => Ok(Value::int64(operate(to_i64(&args[0]), divisor))),
    }
}

fn round(args: &[Value]) -> CallResult {
    let limit = args.get(2).map_or(0.5, to_f64);
    let power = 10f64.powi(i32::try_from(int(&args[1])).unwrap_or(0));
    let digits = to_f64(&args[0]) * power;
    let rounded = if digits.fract() >= limit { digits.ceil() } else { digits.floor() };
    Ok(Value::Float(rounded / power))
}

fn numbers(start: i64, stop: i64, step: i64) -> Result<Vec<i64>, FuncError> {
    let mut out = Vec::new();
    let mut at = start;
    while (step > 0 && stop >= start && at < stop) || (step < 0 && stop < start && at > stop) {
        if out.len() >= COUNT_MAX {
            return Err(FuncError::new(format!("more than {COUNT_MAX} numbers")));
        }
        out.push(at);
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(out)
}

fn list(numbers: Vec<i64>) -> Value {
    let items = numbers.into_iter().map(|number| Value::Int(Int::Int, number)).collect();
    Value::List(std::rc::Rc::new(List::typed(INT, items)))
}

fn seq(args: &[Value]) -> CallResult {
    let towards = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match args {
        [end] => (1, int(end), towards(1, int(end))),
        [start, end] => (int(start), int(end), towards(int(start), int(end))),
        [start, step, end] if int(end) < int(start) && int(step) > 0 => (int(start), int(start), 1),
        [start, step, end] => (int(start), int(end), int(step)),
        _ => return Ok("".into()),
    };
    if let [start, step, end] = args
        && int(end) < int(start)
        && int(step) > 0
    {
        return Ok("".into());
    }
    let shown: Vec<String> = numbers(start, end.saturating_add(towards(start, end)), step)?
        .into_iter()
        .map(|number| number.to_string())
        .collect();
    Ok(shown.join(" ").into())
}

/// A float taken as the decimal that it prints as.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    places: u32,
}

impl Decimal {
    fn new(float: f64) -> Option<Self> {
        let text = format!("{float}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { digits, places: u32::try_from(fraction.len()).ok()? })
    }

    fn scaled(self, places: u32) -> Option<i128> {
        self.digits.checked_mul(10i128.checked_pow(places.checked_sub(self.places)?)?)
    }

    fn add(self, other: Self) -> Option<Self> {
        let places = self.places.max(other.places);
        Some(Self { digits: self.scaled(places)?.checked_add(other.scaled(places)?)?, places })
    }

    fn sub(self, other: Self) -> Option<Self> {
        self.add(Self { digits: other.digits.checked_neg()?, ..other })
    }

    fn mul(self, other: Self) -> Option<Self> {
        Some(Self {
            digits: self.digits.checked_mul(other.digits)?,
            places: self.places.checked_add(other.places)?,
        })
    }

    /// Rounds half away from zero at the last place.
    fn div(self, other: Self) -> Option<Self> {
        let numerator = self.scaled(self.places.max(other.places))?;
        let denominator = other.scaled(self.places.max(other.places))?;
        let numerator = numerator.checked_mul(10i128.pow(DIVISION_PLACES))?;
        let (quotient, remainder) =
            (numerator.checked_div(denominator)?, numerator.checked_rem(denominator)?);
        let away = remainder.unsigned_abs().saturating_mul(2) >= denominator.unsigned_abs();
        let sign = if (numerator < 0) == (denominator < 0) { 1 } else { -1 };
        Some(Self { digits: quotient + if away { sign } else { 0 }, places: DIVISION_PLACES })
    }

    fn to_f64(self) -> f64 {
        format!("{}e-{}", self.digits, self.places).parse().unwrap_or(f64::NAN)
    }
}

fn decimals(
    args: &[Value],
    start: Option<f64>,
    operate: fn(Decimal, Decimal) -> Option<Decimal>,
) -> CallResult {
    let mut floats = args.iter().map(to_f64);
    let first = start.or_else(|| floats.next()).unwrap_or(0.0);
    let dividing = std::ptr::fn_addr_eq(operate, Decimal::div as fn(Decimal, Decimal) -> Option<Decimal>);
    let mut result = Decimal::new(first);
    for float in floats {
        if dividing && float == 0.0 {
            return Err(FuncError::new("decimal division by 0"));
        }
        result = match (result, Decimal::new(float)) {
            (Some(a), Some(b)) => operate(a, b),
            _ => None,
        };
    }
    match result {
        Some(result) => Ok(Value::Float(result.to_f64())),
        None => Err(FuncError::new("decimal out of range")),
    }
}
