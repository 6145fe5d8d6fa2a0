//! Text: the string extension, regular expressions and formatting.

use regex::Regex;

use crate::eval::{Eval, fail};
use crate::value::Value;

pub(super) fn call(function: &str, args: &[Value]) -> Option<Eval> {
    if let ("join", [Value::List(list), rest @ ..]) = (function, args) {
        let separator = match rest {
            [Value::String(separator)] => separator,
            _ => "",
        };
        let mut parts = Vec::new();
        for item in &list.items {
            let Value::String(part) = item else {
                return Some(fail(format!("join: invalid input: {}", super::display(item))));
            };
            parts.push(part.to_string());
        }
        return Some(Ok(Value::string(parts.join(separator))));
    }
    let (Value::String(text), rest) = args.split_first()? else { return None };
    let text: &str = text;
    Some(match (function, rest) {
        ("contains", [Value::String(part)]) => Ok(Value::Bool(text.contains(&**part))),
        ("startsWith", [Value::String(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
        ("endsWith", [Value::String(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("matches" | "find" | "findAll", [Value::String(pattern), limit @ ..]) => {
            match orlop_schema::go_regex::compile(pattern) {
                Ok(regex) => Ok(search(function, text, &regex, limit)),
                Err(why) if function == "matches" => fail(why),
                Err(why) => fail(format!("Illegal regex: {why}")),
            }
        }
        ("charAt", [Value::Int(at)]) => char_at(text, *at),
        ("indexOf", [Value::String(part)]) => Ok(index_of(text, part, 0)),
        ("indexOf", [Value::String(part), Value::Int(from)]) => match usize::try_from(*from) {
            Ok(from) => Ok(index_of(text, part, from)),
            Err(_) => fail(format!("index out of range: {from}")),
        },
        ("lastIndexOf", [Value::String(part)]) => Ok(last_index_of(text, part, usize::MAX)),
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => match usize::try_from(*from) {
            Ok(from) => Ok(last_index_of(text, part, from)),
            Err(_) => fail(format!("index out of range: {from}")),
        },
        ("lowerAscii", []) => Ok(Value::string(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::string(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Value::string(text.trim())),
        ("replace", [Value::String(from), Value::String(to)]) => Ok(Value::string(text.replace(&**from, to))),
        ("replace", [Value::String(from), Value::String(to), Value::Int(limit)]) => {
            Ok(Value::string(match usize::try_from(*limit) {
                Ok(limit) => text.replacen(&**from, to, limit),
                Err(_) => text.replace(&**from, to),
            }))
        }
        ("split", [Value::String(separator)]) => Ok(split(text, separator, -1)),
        ("split", [Value::String(separator), Value::Int(limit)]) => Ok(split(text, separator, *limit)),
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("format", [Value::List(args)]) => format(text, &args.items),
        ("strings.quote", []) => Ok(Value::string(quote(text))),
        _ => return None,
    })
}

/// What `matches`, `find` and `findAll` give for a compiled pattern.
pub(crate) fn search(function: &str, text: &str, pattern: &Regex, limit: &[Value]) -> Value {
    match (function, limit) {
        ("matches", _) => Value::Bool(pattern.is_match(text)),
        ("find", _) => Value::string(pattern.find(text).map_or("", |found| found.as_str())),
        (_, limit) => {
            let limit = match limit {
                [Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            Value::list(
                pattern.find_iter(text).take(limit).map(|found| Value::string(found.as_str())).collect(),
            )
        }
    }
}

fn char_at(text: &str, at: i64) -> Eval {
    let size = text.chars().count() as i64;
    if at < 0 || at > size {
        return fail(format!("index out of range: {at}"));
    }
    Ok(Value::string(text.chars().nth(at as usize).map(String::from).unwrap_or_default()))
}

fn index_of(text: &str, part: &str, from: usize) -> Value {
    if part.is_empty() {
        return Value::Int(from as i64);
    }
    let start = text.char_indices().nth(from).map(|(at, _)| at);
    let found = start.and_then(|start| text[start..].find(part).map(|at| start + at));
    Value::Int(found.map_or(-1, |at| text[..at].chars().count() as i64))
}

fn last_index_of(text: &str, part: &str, from: usize) -> Value {
    let size = text.chars().count();
    if part.is_empty() {
        return Value::Int(from.min(size) as i64);
    }
    if from != usize::MAX && from >= size {
        return Value::Int(-1);
    }
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let found = (0..starts.len()).rev().find(|&at| at <= from && text[starts[at]..].starts_with(part));
    Value::Int(found.map_or(-1, |at| at as i64))
}

fn split(text: &str, separator: &str, limit: i64) -> Value {
    let mut parts: Vec<String> = match (limit, separator) {
        (0, _) => Vec::new(),
        (_, "") => text.chars().map(String::from).collect(),
        (n, _) if n > 0 => text.splitn(n as usize, separator).map(str::to_owned).collect(),
        _ => text.split(separator).map(str::to_owned).collect(),
    };
    if separator.is_empty() && limit > 0 && parts.len() > limit as usize {
        let tail = parts.split_off(limit as usize - 1).concat();
        parts.push(tail);
    }
    Value::list(parts.into_iter().map(Value::string).collect())
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Eval {
    let size = text.chars().count() as i64;
    if let Some(end) = end
        && start > end
    {
        return fail(format!("invalid substring range. start: {start}, end: {end}"));
    }
    if start < 0 || start > size {
        return fail(format!("index out of range: {start}"));
    }
    let end = end.unwrap_or(size);
    if end > size {
        return fail(format!("index out of range: {end}"));
    }
    Ok(Value::string(text.chars().skip(start as usize).take((end - start) as usize).collect::<String>()))
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A double as Go's shortest form writes it.
pub(crate) fn write_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x`, `%X` and `%%`.
fn format(pattern: &str, args: &[Value]) -> Eval {
    let mut out = String::new();
    let mut args_left = args.iter();
    let mut count = 0;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut precision = None;
        match chars.peek() {
            None => return fail("unexpected end of string"),
            Some('%') => {
                chars.next();
                out.push('%');
                continue;
            }
            Some('.') => {
                chars.next();
                let mut digits = String::new();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                let Some(found) = digits.parse::<usize>().ok().filter(|n| *n < 1000) else {
                    return fail("could not parse formatting clause: error while parsing precision");
                };
                precision = Some(found);
            }
            Some(_) => {}
        }
        let Some(arg) = args_left.next() else { return fail(format!("index {count} out of range")) };
        count += 1;
        let Some(verb) = chars.next() else { return fail("unexpected end of string") };
        match verb {
            's' => out.push_str(&written(arg)),
            'd' => match arg {
                Value::Int(_) | Value::Uint(_) => out.push_str(&super::display(arg)),
                Value::Double(d) if !d.is_finite() => out.push_str(&infinite(*d)),
                other => return clause("decimal", "integers", other),
            },
            'f' | 'e' => {
                let number = match arg {
                    Value::Double(d) => *d,
                    Value::Int(i) => *i as f64,
                    Value::Uint(u) => *u as f64,
                    other => {
                        return clause(
                            if verb == 'f' { "fixed-point" } else { "scientific" },
                            "doubles",
                            other,
                        );
                    }
                };
                let precision = precision.unwrap_or(6);
                if !number.is_finite() {
                    out.push_str(&infinite(number));
                } else if verb == 'f' {
                    out.push_str(&grouped(&format!("{number:.precision$}")));
                } else {
                    let text = format!("{number:.precision$e}");
                    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                    let exponent: i32 = exponent.parse().unwrap_or(0);
                    let power = format!("{}{:02}", if exponent < 0 { "-" } else { "" }, exponent.abs());
                    out.push_str(&format!("{digits}×10{}", superscript(&power)));
                }
            }
            'b' | 'o' | 'x' | 'X' => {
                let text = match (verb, arg) {
                    ('b', Value::Bool(b)) => u8::from(*b).to_string(),
                    ('x', Value::String(s)) => s.bytes().map(|b| format!("{b:02x}")).collect(),
                    ('X', Value::String(s)) => s.bytes().map(|b| format!("{b:02X}")).collect(),
                    ('x', Value::Bytes(bytes)) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
                    ('X', Value::Bytes(bytes)) => bytes.iter().map(|b| format!("{b:02X}")).collect(),
                    (_, Value::Int(i)) => {
                        format!("{}{}", if *i < 0 { "-" } else { "" }, radix(verb, i.unsigned_abs()))
                    }
                    (_, Value::Uint(u)) => radix(verb, *u),
                    ('b', other) => return clause("binary", "integers and bools", other),
                    ('o', other) => return clause("octal", "integers", other),
                    (_, other) => return clause("hex", "integers, byte buffers, and strings", other),
                };
                out.push_str(&text);
            }
            other => {
                return fail(format!(
                    "could not parse formatting clause: unrecognized formatting clause \"{other}\""
                ));
            }
        }
    }
    Ok(Value::string(out))
}

fn clause(name: &str, on: &str, given: &Value) -> Eval {
    fail(format!(
        "error during formatting: {name} clause can only be used on {on}, was given {}",
        given.type_name()
    ))
}

/// A number with commas between its thousands, as the printer of the original writes it.
fn grouped(number: &str) -> String {
    let (whole, fraction) = number.find('.').map_or((number, ""), |at| number.split_at(at));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// The exponent as the printer of the original raises it.
fn superscript(number: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.chars().map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])).collect()
}

fn infinite(value: f64) -> String {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
    .to_owned()
}

fn radix(verb: char, value: u64) -> String {
    match verb {
        'b' => format!("{value:b}"),
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        _ => format!("{value:X}"),
    }
}

/// A value as `%s` writes it.
fn written(value: &Value) -> String {
    match value {
        Value::Double(d) if !d.is_finite() => infinite(*d),
        Value::List(list) => format!("[{}]", list.items.iter().map(nested).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let mut entries: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{}:{}", nested(&crate::eval::key_value(k)), nested(v)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => super::display(other),
    }
}

/// Within lists and maps texts are quoted.
fn nested(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        other => written(other),
    }
}
