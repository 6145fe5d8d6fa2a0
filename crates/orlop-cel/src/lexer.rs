//! Text to tokens, with the complaints of the original about characters that begin no token.

use crate::source::Issue;

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// An operator, a bracket or one of the words `in`, `true`, `false`, `null`.
    Sign(&'static str),
    Int(String),
    Uint(String),
    Float(String),
    /// The text of the literal as written, quotes and prefix included.
    String(String),
    Bytes(String),
    Ident(String),
    /// A name in backquotes.
    Quoted(String),
    End,
}

/// A token and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) offset: usize,
    pub(crate) text: String,
}

const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "in",
];

/// Splits the text; what cannot be read is reported and skipped.
pub(crate) fn lex(source: &str) -> (Vec<Lexeme>, Vec<Issue>) {
    let chars: Vec<char> = source.chars().collect();
    let mut lexemes = Vec::new();
    let mut issues = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{c}') {
            at += 1;
        } else if c == '/' && chars.get(at + 1) == Some(&'/') {
            at += chars[at..].iter().take_while(|&&c| c != '\n').count();
        } else {
            match token(&chars, at) {
                Ok((token, end)) => {
                    lexemes.push(Lexeme { token, offset: at, text: chars[at..end].iter().collect() });
                    at = end;
                }
                Err(end) => {
                    let bad: String = chars[at..(end + 1).min(chars.len())].iter().collect();
                    let shown = bad.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
                    issues.push(Issue {
                        offset: at,
                        message: format!("Syntax error: token recognition error at: '{shown}'"),
                    });
                    at = end + 1;
                }
            }
        }
    }
    lexemes.push(Lexeme { token: Token::End, offset: chars.len(), text: "<EOF>".to_owned() });
    (lexemes, issues)
}

/// The token at `at` and its end, or the place of the character that fits nothing.
fn token(chars: &[char], at: usize) -> Result<(Token, usize), usize> {
    let c = chars[at];
    if let Some(found) = string(chars, at) {
        return found;
    }
    if c.is_ascii_digit() || (c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)) {
        return Ok(number(chars, at));
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let end = run(chars, at, |c| c.is_ascii_alphanumeric() || c == '_');
        let word: String = chars[at..end].iter().collect();
        let token = match word.as_str() {
            "in" => Token::Sign("in"),
            "true" => Token::Sign("true"),
            "false" => Token::Sign("false"),
            "null" => Token::Sign("null"),
            _ => Token::Ident(word),
        };
        return Ok((token, end));
    }
    if c == '`' {
        let end =
            run(chars, at + 1, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
        return if end > at + 1 && chars.get(end) == Some(&'`') {
            Ok((Token::Quoted(chars[at + 1..end].iter().collect()), end + 1))
        } else {
            Err(end)
        };
    }
    for sign in SIGNS {
        if sign.chars().enumerate().all(|(i, s)| chars.get(at + i) == Some(&s)) {
            return Ok((Token::Sign(sign), at + sign.len()));
        }
    }
    Err(if matches!(c, '&' | '|' | '=') { at + 1 } else { at })
}

fn run(chars: &[char], from: usize, accept: impl Fn(char) -> bool) -> usize {
    from + chars.get(from..).unwrap_or_default().iter().take_while(|&&c| accept(c)).count()
}

fn number(chars: &[char], at: usize) -> (Token, usize) {
    let text = |end: usize| chars[at..end].iter().collect::<String>();
    let unsigned = |end: usize| matches!(chars.get(end), Some('u' | 'U'));
    if chars[at] == '0'
        && chars.get(at + 1) == Some(&'x')
        && chars.get(at + 2).is_some_and(char::is_ascii_hexdigit)
    {
        let end = run(chars, at + 2, |c| c.is_ascii_hexdigit());
        return if unsigned(end) { (Token::Uint(text(end)), end + 1) } else { (Token::Int(text(end)), end) };
    }
    let whole = run(chars, at, |c| c.is_ascii_digit());
    let mut end = whole;
    if chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit) {
        end = run(chars, end + 1, |c| c.is_ascii_digit());
    }
    if matches!(chars.get(end), Some('e' | 'E')) {
        let digits = end + if matches!(chars.get(end + 1), Some('+' | '-')) { 2 } else { 1 };
        if chars.get(digits).is_some_and(char::is_ascii_digit) {
            end = run(chars, digits, |c| c.is_ascii_digit());
        }
    }
    if end > whole {
        (Token::Float(text(end)), end)
    } else if unsigned(end) {
        (Token::Uint(text(end)), end + 1)
    } else {
        (Token::Int(text(end)), end)
    }
}

/// A string or bytes literal, if one begins here.
fn string(chars: &[char], at: usize) -> Option<Result<(Token, usize), usize>> {
    let prefix = chars[at..].iter().take(2).take_while(|c| matches!(c, 'r' | 'R' | 'b' | 'B')).count();
    let marks: Vec<char> = chars[at..at + prefix].iter().map(char::to_ascii_lowercase).collect();
    if marks == ['r', 'b'] || (prefix == 2 && marks[0] == marks[1]) {
        return None;
    }
    let start = at + prefix;
    let quote = *chars.get(start).filter(|c| matches!(c, '\'' | '"'))?;
    let raw = marks.contains(&'r');
    let triple = chars.get(start + 1) == Some(&quote) && chars.get(start + 2) == Some(&quote);
    let mut end = start + if triple { 3 } else { 1 };
    loop {
        let Some(&c) = chars.get(end) else { return Some(Err(end)) };
        if c == quote && !triple {
            end += 1;
            break;
        }
        if c == quote && chars.get(end + 1) == Some(&quote) && chars.get(end + 2) == Some(&quote) {
            end += 3;
            break;
        }
        if !triple && matches!(c, '\n' | '\r') {
            return Some(Err(end));
        }
        end += 1;
        if c == '\\' && !raw {
            match escape_len(chars, end) {
                Ok(len) => end += len,
                Err(bad) => return Some(Err(bad)),
            }
        }
    }
    let text: String = chars[at..end].iter().collect();
    Some(Ok((if marks.contains(&'b') { Token::Bytes(text) } else { Token::String(text) }, end)))
}

/// Length of the escape behind a backslash, or the place where it fails.
fn escape_len(chars: &[char], at: usize) -> Result<usize, usize> {
    let digits = |from: usize, n: usize, ok: fn(&char) -> bool| match (from..from + n)
        .find(|&i| !chars.get(i).is_some_and(ok))
    {
        Some(bad) => Err(bad),
        None => Ok(from + n - at),
    };
    match chars.get(at) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(1),
        Some('x' | 'X') => digits(at + 1, 2, char::is_ascii_hexdigit),
        Some('u') => digits(at + 1, 4, char::is_ascii_hexdigit),
        Some('U') => digits(at + 1, 8, char::is_ascii_hexdigit),
        Some('0'..='3') => digits(at + 1, 2, |c| ('0'..='7').contains(c)),
        _ => Err(at),
    }
}

/// The value of a string literal as written; bytes for bytes literals.
pub(crate) fn unescape(literal: &str) -> Result<Vec<u8>, ()> {
    let body = literal.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = literal[..literal.len() - body.len()].to_ascii_lowercase();
    let (raw, bytes) = (prefix.contains('r'), prefix.contains('b'));
    let quotes =
        if body.len() >= 6 && (body.starts_with("'''") || body.starts_with("\"\"\"")) { 3 } else { 1 };
    let inner = body.get(quotes..body.len() - quotes).ok_or(())?.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(inner.into_bytes());
    }
    let mut out = Vec::new();
    let mut chars = inner.chars();
    let put = |out: &mut Vec<u8>, c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    while let Some(c) = chars.next() {
        if c != '\\' {
            put(&mut out, c);
            continue;
        }
        let escape = chars.next().ok_or(())?;
        let simple = match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => escape,
            _ => {
                let (first, len, radix) = match escape {
                    'x' | 'X' => (None, 2, 16),
                    'u' => (None, 4, 16),
                    'U' => (None, 8, 16),
                    '0'..='3' => (Some(escape), 2, 8),
                    _ => return Err(()),
                };
                let digits: String = first.into_iter().chain(chars.by_ref().take(len)).collect();
                let code = u32::from_str_radix(&digits, radix).map_err(drop)?;
                if bytes && !matches!(escape, 'u' | 'U') {
                    out.push(u8::try_from(code).map_err(drop)?);
                } else if bytes {
                    return Err(());
                } else {
                    put(&mut out, char::from_u32(code).ok_or(())?);
                }
                continue;
            }
        };
        put(&mut out, simple);
    }
    Ok(out)
}
