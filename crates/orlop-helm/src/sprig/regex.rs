//! Regular expressions with the meaning that Go's RE2 gives them.

#![expect(clippy::unnecessary_wraps, reason = "rows of one table have one signature")]

use orlop_gotemplate::{CallResult, Func, FuncError, Type, Value};
use regex::Regex;

use super::{INT, func, int, strings_value, text};

/// The largest count in braces.
const REPEAT_MAX: u32 = 1000;

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let all = || Type::list(Type::Str);
    let mut out = vec![(
        "regexQuoteMeta",
        func(&[Type::Str], Type::Str, |args| Ok(quote_meta(&lossy(&args[0])).into())),
    )];
    for (name, must, make) in [
        (
            "regexMatch",
            "mustRegexMatch",
            &(|body| func(&[Type::Str, Type::Str], Type::Bool, body)) as &dyn Fn(_) -> Func,
        ),
        ("regexFind", "mustRegexFind", &|body| func(&[Type::Str, Type::Str], Type::Str, body)),
        ("regexFindAll", "mustRegexFindAll", &|body| func(&[Type::Str, Type::Str, INT], all(), body)),
        ("regexSplit", "mustRegexSplit", &|body| func(&[Type::Str, Type::Str, INT], all(), body)),
        ("regexReplaceAll", "mustRegexReplaceAll", &|body| {
            func(&[Type::Str, Type::Str, Type::Str], Type::Str, body)
        }),
        ("regexReplaceAllLiteral", "mustRegexReplaceAllLiteral", &|body| {
            func(&[Type::Str, Type::Str, Type::Str], Type::Str, body)
        }),
    ] {
        let body: fn(&[Value]) -> CallResult = match name {
            "regexFind" => find,
            "regexFindAll" => find_all,
            "regexSplit" => split,
            "regexReplaceAll" => replace_all,
            "regexReplaceAllLiteral" => replace_literal,
            _ => is_match,
        };
        // A match without `must` hides that the expression is none; the others panic in Go, with more words.
        let lenient: fn(&[Value]) -> CallResult = match name {
            "regexFind" => |args| find(args).map_err(|error| panicked(args, &error)),
            "regexFindAll" => |args| find_all(args).map_err(|error| panicked(args, &error)),
            "regexSplit" => |args| split(args).map_err(|error| panicked(args, &error)),
            "regexReplaceAll" => |args| replace_all(args).map_err(|error| panicked(args, &error)),
            "regexReplaceAllLiteral" => |args| replace_literal(args).map_err(|error| panicked(args, &error)),
            _ => lenient_match,
        };
        out.push((name, make(lenient)));
        out.push((must, make(body)));
    }
    out
}

fn lossy(value: &Value) -> String {
    String::from_utf8_lossy(text(value)).into_owned()
}

fn compiled(value: &Value) -> Result<Regex, FuncError> {
    let pattern = lossy(value);
    let translated = translate(&pattern).map_err(|error| format!("error parsing regexp: {error}"))?;
    Regex::new(&translated).map_err(|_| FuncError::new(format!("error parsing regexp: invalid: `{pattern}`")))
}

/// How Go words it when an expression that must be right is not.
fn panicked(args: &[Value], error: &FuncError) -> FuncError {
    let quoted = orlop_gotemplate::fmt::sprintf(b"%#q", &args[..1]);
    FuncError::new(format!("regexp: Compile({}): {}", String::from_utf8_lossy(&quoted), error.text()))
}

fn is_match(args: &[Value]) -> CallResult {
    Ok(compiled(&args[0])?.is_match(&lossy(&args[1])).into())
}

fn lenient_match(args: &[Value]) -> CallResult {
    Ok(compiled(&args[0]).is_ok_and(|regex| regex.is_match(&lossy(&args[1]))).into())
}

fn find(args: &[Value]) -> CallResult {
    let subject = lossy(&args[1]);
    Ok(compiled(&args[0])?.find(&subject).map_or("", |found| found.as_str()).into())
}

fn find_all(args: &[Value]) -> CallResult {
    let (regex, subject) = (compiled(&args[0])?, lossy(&args[1]));
    let count = usize::try_from(int(&args[2])).unwrap_or(usize::MAX);
    let found: Vec<_> = regex.find_iter(&subject).take(count).map(|found| found.as_str().into()).collect();
    Ok(if found.is_empty() { Type::list(Type::Str).zero() } else { strings_value(found) })
}

fn split(args: &[Value]) -> CallResult {
    let (regex, subject) = (compiled(&args[0])?, lossy(&args[1]));
    let parts = int(&args[2]);
    if parts == 0 {
        return Ok(Type::list(Type::Str).zero());
    }
    if subject.is_empty() && !regex.as_str().is_empty() {
        return Ok(strings_value(vec!["".into()]));
    }
    let (mut out, mut begin, mut end) = (Vec::new(), 0, 0);
    for found in regex.find_iter(&subject) {
        if parts > 0 && out.len() as i64 == parts - 1 {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            out.push(subject[begin..end].into());
        }
        begin = found.end();
    }
    if end != subject.len() {
        out.push(subject[begin..].into());
    }
    Ok(strings_value(out))
}

fn replace_all(args: &[Value]) -> CallResult {
    Ok(compiled(&args[0])?.replace_all(&lossy(&args[1]), lossy(&args[2])).into_owned().into())
}

fn replace_literal(args: &[Value]) -> CallResult {
    let literal = lossy(&args[2]);
    Ok(compiled(&args[0])?.replace_all(&lossy(&args[1]), regex::NoExpand(&literal)).into_owned().into())
}

fn quote_meta(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = "\\.+*?()|[]{}^$".contains(c).then_some('\\');
            escape.into_iter().chain(std::iter::once(c))
        })
        .collect()
}

/// An expression of RE2 in the words of the `regex` crate, where they differ.
fn translate(pattern: &str) -> Result<String, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len() + 16);
    let (mut at, mut depth, mut repeated) = (0, 0usize, false);
    while at < chars.len() {
        let c = chars[at];
        let was_repeated = std::mem::replace(&mut repeated, false);
        match c {
            '\\' => at = escape(&chars, at, &mut out, false)?,
            '[' => at = class(&chars, at, &mut out)?,
            '*' | '+' | '?' => {
                if was_repeated {
                    return Err(format!("invalid nested repetition operator: `{}{c}`", chars[at - 1]));
                }
                out.push(c);
                at += 1;
                if chars.get(at) == Some(&'?') {
                    out.push('?');
                    at += 1;
                }
                repeated = true;
            }
            '{' => match braces(&chars, at) {
                Some((low, high, end)) => {
                    if was_repeated
                        || low > REPEAT_MAX
                        || high.is_some_and(|high| high > REPEAT_MAX || high < low)
                    {
                        let shown: String = chars[at..end].iter().collect();
                        return Err(format!("invalid repeat count: `{shown}`"));
                    }
                    out.extend(&chars[at..end]);
                    at = end;
                    if chars.get(at) == Some(&'?') {
                        out.push('?');
                        at += 1;
                    }
                    repeated = true;
                }
                None => {
                    out.push_str("\\{");
                    at += 1;
                }
            },
            '}' => {
                out.push_str("\\}");
                at += 1;
            }
            '(' => {
                depth += 1;
                out.push(c);
                at += 1;
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or_else(|| format!("unexpected ): `{pattern}`"))?;
                out.push(c);
                at += 1;
            }
            _ => {
                out.push(c);
                at += 1;
            }
        }
    }
    if depth > 0 {
        return Err(format!("missing closing ): `{pattern}`"));
    }
    Ok(out)
}

/// `{n}`, `{n,}` or `{n,m}` and where it ends; anything else is text.
fn braces(chars: &[char], start: usize) -> Option<(u32, Option<u32>, usize)> {
    let end = start + chars[start..].iter().position(|c| *c == '}')?;
    let body: String = chars[start + 1..end].iter().collect();
    let number = |text: &str| {
        let fine = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        fine.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let (low, high) = match body.split_once(',') {
        None => (number(&body)?, Some(number(&body)?)),
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((low, high, end + 1))
}

/// An escape; letters mean ASCII classes, signs mean themselves.
fn escape(chars: &[char], start: usize, out: &mut String, in_class: bool) -> Result<usize, String> {
    let Some(&c) = chars.get(start + 1) else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let next = start + 2;
    let ascii = match c {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\f\\r ",
        'D' => "^0-9",
        'W' => "^0-9A-Za-z_",
        'S' => "^\\t\\n\\f\\r ",
        _ => "",
    };
    if !ascii.is_empty() {
        out.push_str(&format!("[{ascii}]"));
        return Ok(next);
    }
    match c {
        'b' | 'B' if !in_class => out.push_str(&format!("(?-u:\\{c})")),
        'A' | 'z' if !in_class => out.push_str(&format!("\\{c}")),
        'a' | 'f' | 't' | 'n' | 'r' | 'v' => out.push_str(&format!("\\{c}")),
        'Q' if !in_class => {
            let rest = &chars[next..];
            let length = rest.windows(2).position(|pair| pair == ['\\', 'E']).unwrap_or(rest.len());
            out.push_str(&quote_meta(&rest[..length].iter().collect::<String>()));
            return Ok((next + length + 2).min(chars.len()));
        }
        'E' if !in_class => {}
        'p' | 'P' => {
            out.push_str(&format!("\\{c}"));
            if chars.get(next) == Some(&'{') {
                let end =
                    chars[next..].iter().position(|c| *c == '}').map_or(chars.len(), |end| next + end + 1);
                out.extend(&chars[next..end]);
                return Ok(end);
            }
            if let Some(letter) = chars.get(next) {
                out.push(*letter);
            }
            return Ok(next + 1);
        }
        'x' => {
            out.push_str("\\x");
            return Ok(next);
        }
        '0'..='7' => {
            let digits: String =
                chars[start + 1..].iter().take(3).take_while(|c| ('0'..='7').contains(*c)).collect();
            if c != '0' && digits.len() < 2 {
                return Err(format!("invalid escape sequence: `\\{c}`"));
            }
            let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
            out.push_str(&format!("\\x{{{code:x}}}"));
            return Ok(start + 1 + digits.len());
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => literal(out, c),
        c => return Err(format!("invalid escape sequence: `\\{c}`")),
    }
    Ok(next)
}

fn literal(out: &mut String, c: char) {
    out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
}

/// A class: RE2 has no set operations, so every sign inside is itself.
fn class(chars: &[char], start: usize, out: &mut String) -> Result<usize, String> {
    let missing = || {
        let shown: String = chars[start..].iter().collect();
        format!("missing closing ]: `{shown}`")
    };
    let mut at = start + 1;
    out.push('[');
    if chars.get(at) == Some(&'^') {
        out.push('^');
        at += 1;
    }
    let mut first = true;
    loop {
        let &c = chars.get(at).ok_or_else(missing)?;
        if c == ']' && !first {
            out.push(']');
            return Ok(at + 1);
        }
        first = false;
        if c == '[' && chars.get(at + 1) == Some(&':') {
            let rest = &chars[at..];
            if let Some(length) = rest.windows(2).skip(2).position(|pair| pair == [':', ']']) {
                out.extend(&rest[..length + 4]);
                at += length + 4;
                continue;
            }
        }
        let low_start = at;
        let low = single(chars, &mut at, out)?;
        let range = chars.get(at) == Some(&'-') && chars.get(at + 1).is_some_and(|c| *c != ']');
        match low {
            Some(low) if range => {
                at += 1;
                let Some(high) = single(chars, &mut at, out)?.filter(|high| *high >= low) else {
                    let shown: String = chars[low_start..at].iter().collect();
                    return Err(format!("invalid character class range: `{shown}`"));
                };
                literal(out, low);
                out.push('-');
                literal(out, high);
            }
            Some(low) => literal(out, low),
            None => {}
        }
    }
}

/// One character of a class; a named class is written at once and is none.
fn single(chars: &[char], at: &mut usize, out: &mut String) -> Result<Option<char>, String> {
    let c = chars[*at];
    if c != '\\' {
        *at += 1;
        return Ok(Some(c));
    }
    let named = match chars.get(*at + 1) {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('f') => '\u{c}',
        Some('v') => '\u{b}',
        Some('a') => '\u{7}',
        Some(c) if c.is_ascii_punctuation() || *c == ' ' => *c,
        _ => {
            *at = escape(chars, *at, out, true)?;
            return Ok(None);
        }
    };
    *at += 2;
    Ok(Some(named))
}
