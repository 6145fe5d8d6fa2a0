//! Strings, in bytes as Go has them.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use orlop_gotemplate::{CallResult, Func, FuncError, Type, Value, fmt};

use super::{INT, func, int, strings_value, strval, text};

/// The longest string that repeating and indenting make.
const LENGTH_MAX: usize = 1 << 26;

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let one = |body| func(&[Type::Str], Type::Str, body);
    let two = |body| func(&[Type::Str, Type::Str], Type::Str, body);
    let test = |body| func(&[Type::Str, Type::Str], Type::Bool, body);
    let sized = |body| func(&[INT, Type::Str], Type::Str, body);
    vec![
        ("hello", func(&[], Type::Str, |_| Ok("Hello!".into()))),
        ("trim", one(|args| Ok(lossy(&args[0]).trim().into()))),
        ("upper", one(|args| Ok(lossy(&args[0]).chars().map(upper).collect::<String>().into()))),
        ("lower", one(|args| Ok(lossy(&args[0]).chars().map(lower).collect::<String>().into()))),
        ("title", one(|args| Ok(words(&lossy(&args[0]), is_separator, upper).into()))),
        ("untitle", one(|args| Ok(words(&lossy(&args[0]), char::is_whitespace, lower).into()))),
        ("nospace", one(|args| Ok(no_space(text(&args[0]))))),
        ("initials", one(|args| Ok(initials(text(&args[0]))))),
        ("swapcase", one(|args| Ok(swap_case(&lossy(&args[0])).into()))),
        ("trimAll", two(|args| Ok(trim_all(args)))),
        ("trimall", two(|args| Ok(trim_all(args)))),
        (
            "trimSuffix",
            two(|args| {
                let whole = text(&args[1]);
                Ok(Value::string(whole.strip_suffix(text(&args[0])).unwrap_or(whole)))
            }),
        ),
        (
            "trimPrefix",
            two(|args| {
                let whole = text(&args[1]);
                Ok(Value::string(whole.strip_prefix(text(&args[0])).unwrap_or(whole)))
            }),
        ),
        ("contains", test(|args| Ok(find(text(&args[1]), text(&args[0]), 0).is_some().into()))),
        ("hasPrefix", test(|args| Ok(text(&args[1]).starts_with(text(&args[0])).into()))),
        ("hasSuffix", test(|args| Ok(text(&args[1]).ends_with(text(&args[0])).into()))),
        ("trunc", sized(trunc)),
        ("substr", func(&[INT, INT, Type::Str], Type::Str, substr)),
        ("repeat", sized(|args| repeat(text(&args[1]), int(&args[0])).map(Value::from))),
        ("indent", sized(|args| indent(args).map(Value::from))),
        (
            "nindent",
            sized(|args| {
                let mut out = indent(args)?;
                out.insert(0, b'\n');
                Ok(Value::from(out))
            }),
        ),
        ("abbrev", sized(|args| Ok(Value::from(abbreviate(text(&args[1]), 0, int(&args[0])))))),
        (
            "abbrevboth",
            func(&[INT, INT, Type::Str], Type::Str, |args| {
                Ok(Value::from(abbreviate(text(&args[2]), int(&args[0]), int(&args[1]))))
            }),
        ),
        ("wrap", sized(|args| Ok(Value::from(wrap(text(&args[1]), int(&args[0]), b"\n", false))))),
        (
            "wrapWith",
            func(&[INT, Type::Str, Type::Str], Type::Str, |args| {
                let separator = if text(&args[1]).is_empty() { b"\n" } else { text(&args[1]) };
                Ok(Value::from(wrap(text(&args[2]), int(&args[0]), separator, true)))
            }),
        ),
        (
            "replace",
            func(&[Type::Str, Type::Str, Type::Str], Type::Str, |args| {
                Ok(Value::from(replace(text(&args[2]), text(&args[0]), text(&args[1]))))
            }),
        ),
        (
            "plural",
            func(&[Type::Str, Type::Str, INT], Type::Str, |args| {
                Ok(args[usize::from(int(&args[2]) != 1)].clone())
            }),
        ),
        ("toString", func(&[Type::Any], Type::Str, |args| Ok(Value::Str(strval(&args[0]))))),
        (
            "quote",
            func(&[], Type::Str, |args| {
                Ok(joined(args, |value| fmt::sprintf(b"%q", &[Value::Str(strval(value))])))
            })
            .variadic(Type::Any),
        ),
        (
            "squote",
            func(&[], Type::Str, |args| {
                Ok(joined(args, |value| fmt::sprintf(b"'%v'", std::slice::from_ref(value))))
            })
            .variadic(Type::Any),
        ),
        (
            "cat",
            func(&[], Type::Str, |args| {
                Ok(joined(args, |value| fmt::sprintf(b"%v", std::slice::from_ref(value))))
            })
            .variadic(Type::Any),
        ),
        (
            "split",
            func(&[Type::Str, Type::Str], Type::map(Type::Str), |args| Ok(numbered(split(args, 1, None)))),
        ),
        (
            "splitn",
            func(&[Type::Str, INT, Type::Str], Type::map(Type::Str), |args| {
                let parts = usize::try_from(int(&args[1])).ok();
                Ok(numbered(split(args, 2, parts)))
            }),
        ),
        (
            "splitList",
            func(&[Type::Str, Type::Str], Type::list(Type::Str), |args| {
                Ok(strings_value(split(args, 1, None)))
            }),
        ),
    ]
}

fn lossy(value: &Value) -> String {
    String::from_utf8_lossy(text(value)).into_owned()
}

/// Go maps one rune to one rune; `ß` has no upper case that way.
fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        _ => c,
    }
}

fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !c.is_alphanumeric() && c.is_whitespace()
}

/// Changes the first character of each word.
fn words(text: &str, separates: fn(char) -> bool, change: fn(char) -> char) -> String {
    let mut start = true;
    text.chars()
        .map(|c| {
            let changed = if start { change(c) } else { c };
            start = separates(c);
            changed
        })
        .collect()
}

/// goutils takes bytes for characters here, so that text beyond ASCII comes out as Latin-1.
fn no_space(whole: &[u8]) -> Value {
    let kept: String = whole.iter().map(|b| char::from(*b)).filter(|c| !c.is_whitespace()).collect();
    if kept.chars().count() == whole.len() { Value::string(whole) } else { kept.into() }
}

/// The first byte of each word, taken for a character.
fn initials(whole: &[u8]) -> Value {
    let mut gap = true;
    let starts = whole.iter().map(|b| char::from(*b)).filter(|c| {
        let start = gap && !c.is_whitespace();
        gap = c.is_whitespace();
        start
    });
    starts.collect::<String>().into()
}

fn swap_case(text: &str) -> String {
    text.chars().map(|c| if c.is_uppercase() { lower(c) } else { upper(c) }).collect()
}

fn trim_all(args: &[Value]) -> Value {
    let (set, whole) = (lossy(&args[0]), lossy(&args[1]));
    whole.trim_matches(|c| set.contains(c)).into()
}

fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if needle.is_empty() {
        return Some(from);
    }
    haystack.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| from + at)
}

fn replace(whole: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    if old.is_empty() {
        return String::from_utf8_lossy(whole).replace("", &String::from_utf8_lossy(new)).into_bytes();
    }
    let (mut out, mut at) = (Vec::with_capacity(whole.len()), 0);
    while let Some(found) = find(whole, old, at) {
        out.extend_from_slice(&whole[at..found]);
        out.extend_from_slice(new);
        at = found + old.len();
    }
    out.extend_from_slice(&whole[at..]);
    out
}

fn trunc(args: &[Value]) -> CallResult {
    let (count, whole) = (int(&args[0]), text(&args[1]));
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(Value::string(match count {
        _ if size >= whole.len() => whole,
        0.. => &whole[..size],
        _ => &whole[whole.len() - size..],
    }))
}

fn substr(args: &[Value]) -> CallResult {
    let (start, end, whole) = (int(&args[0]), int(&args[1]), text(&args[2]));
    let length = whole.len() as i64;
    let (from, to) = match (start, end) {
        (..0, end) => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        range => range,
    };
    if to < 0 || to > length {
        return Err(FuncError::new(if to < 0 {
            format!("runtime error: slice bounds out of range [:{to}]")
        } else {
            format!("runtime error: slice bounds out of range [:{to}] with length {length}")
        }));
    }
    if from > to {
        return Err(FuncError::new(format!("runtime error: slice bounds out of range [{from}:{to}]")));
    }
    Ok(Value::string(&whole[from as usize..to as usize]))
}

fn repeat(unit: &[u8], count: i64) -> Result<Vec<u8>, FuncError> {
    let Ok(count) = usize::try_from(count) else {
        return Err(FuncError::new("strings: negative Repeat count"));
    };
    match unit.len().checked_mul(count) {
        Some(length) if length <= LENGTH_MAX => Ok(unit.repeat(count)),
        _ => Err(FuncError::new("strings: Repeat output length overflow")),
    }
}

fn indent(args: &[Value]) -> Result<Vec<u8>, FuncError> {
    let (pad, whole) = (repeat(b" ", int(&args[0]))?, text(&args[1]));
    let lines = 1 + whole.iter().map(|b| usize::from(*b == b'\n')).sum::<usize>();
    if pad.len().saturating_mul(lines) > LENGTH_MAX {
        return Err(FuncError::new("strings: Repeat output length overflow"));
    }
    let mut out = Vec::with_capacity(whole.len() + pad.len() * lines);
    for (i, line) in whole.split(|b| *b == b'\n').enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(&pad);
        out.extend_from_slice(line);
    }
    Ok(out)
}

/// Keeps a part of at most `width` bytes, with dots where something is left out.
fn abbreviate(whole: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = whole.len() as i64;
    if width < 4 || (offset > 0 && width < 7) || length <= width {
        return whole.to_vec();
    }
    let kept = width - 3;
    let offset = offset.min(length).min(length - kept);
    let mut out = Vec::new();
    if offset <= 4 {
        out.extend_from_slice(&whole[..kept as usize]);
        out.extend_from_slice(b"...");
    } else if offset + kept < length {
        out.extend_from_slice(b"...");
        out.extend_from_slice(&abbreviate(&whole[offset as usize..], 0, kept));
    } else {
        out.extend_from_slice(b"...");
        out.extend_from_slice(&whole[(length - kept) as usize..]);
    }
    out
}

fn wrap(whole: &[u8], width: i64, separator: &[u8], break_words: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let (mut out, mut at) = (Vec::new(), 0);
    while whole.len() - at > width {
        if whole[at] == b' ' {
            at += 1;
            continue;
        }
        let end = at + width;
        let space = whole[at..=end].iter().rposition(|b| *b == b' ').map(|space| at + space);
        let after = || whole[end..].iter().position(|b| *b == b' ').map(|space| end + space);
        match space {
            Some(space) => {
                out.extend_from_slice(&whole[at..space]);
                at = space + 1;
            }
            None if break_words => {
                out.extend_from_slice(&whole[at..end]);
                at = end;
            }
            None => match after() {
                Some(space) => {
                    out.extend_from_slice(&whole[at..space]);
                    at = space + 1;
                }
                None => {
                    out.extend_from_slice(&whole[at..]);
                    return out;
                }
            },
        }
        out.extend_from_slice(separator);
    }
    out.extend_from_slice(&whole[at..]);
    out
}

/// The values that are not nil, each shown, with spaces between.
fn joined(args: &[Value], show: impl Fn(&Value) -> Vec<u8>) -> Value {
    let shown: Vec<Vec<u8>> = args.iter().filter(|value| !matches!(value, Value::Nil)).map(show).collect();
    Value::from(shown.join(&b' '))
}

/// Splits the argument at a position by the first argument, into at most so many parts.
fn split(args: &[Value], at: usize, parts: Option<usize>) -> Vec<orlop_gotemplate::Str> {
    let (separator, whole) = (text(&args[0]), text(&args[at]));
    if parts == Some(0) {
        return Vec::new();
    }
    let (mut out, mut from) = (Vec::new(), 0);
    if separator.is_empty() {
        let whole = String::from_utf8_lossy(whole).into_owned();
        let mut rest = whole.as_str();
        while let Some(c) = rest.chars().next() {
            if parts.is_some_and(|parts| out.len() + 1 == parts) {
                out.push(rest.into());
                return out;
            }
            out.push(rest[..c.len_utf8()].into());
            rest = &rest[c.len_utf8()..];
        }
        return out;
    }
    while parts.is_none_or(|parts| out.len() + 1 < parts) {
        let Some(found) = find(whole, separator, from) else { break };
        out.push(whole[from..found].into());
        from = found + separator.len();
    }
    out.push(whole[from..].into());
    out
}

/// `_0`, `_1` and so on.
fn numbered(parts: Vec<orlop_gotemplate::Str>) -> Value {
    let entries = parts.into_iter().enumerate().map(|(i, part)| (format!("_{i}").into(), Value::Str(part)));
    Value::Map(std::rc::Rc::new(orlop_gotemplate::Map::typed(Type::Str, entries.collect())))
}
