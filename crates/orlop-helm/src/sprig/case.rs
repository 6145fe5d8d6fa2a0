//! Words joined by underscores, hyphens or capitals, cut where xstrings cuts them.

use orlop_gotemplate::{Func, Type, Value};

use super::{func, text};

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let one = |body| func(&[Type::Str], Type::Str, body);
    vec![
        ("snakecase", one(|args| Ok(lower_joined(&lossy(&args[0]), '_').into()))),
        ("kebabcase", one(|args| Ok(lower_joined(&lossy(&args[0]), '-').into()))),
        ("camelcase", one(|args| Ok(pascal(&lossy(&args[0])).into()))),
    ]
}

fn lossy(value: &Value) -> String {
    String::from_utf8_lossy(text(value)).into_owned()
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
}

fn upper(c: char) -> char {
    c.to_uppercase().next().unwrap_or(c)
}

fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Number,
    Capitals,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn kind(c: char) -> Kind {
    match c {
        c if is_connector(c) => Kind::Connector,
        c if is_punctuation(c) => Kind::Punctuation,
        c if c.is_uppercase() => Kind::Capitals,
        c if c.is_lowercase() => Kind::Letters,
        c if c.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

/// The words of a text: `HTTPServer2` is `HTTP`, `Server`, `2`.
fn words(text: &str) -> Vec<(Kind, Vec<char>)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let first = kind(chars[at]);
        let run = |from: usize, kind_wanted: Kind| {
            chars[from..].iter().take_while(|c| kind(**c) == kind_wanted).count()
        };
        let mut length = if first == Kind::Punctuation {
            // After other signs, hyphens and underscores are signs as well.
            chars[at..].iter().take_while(|c| is_punctuation(**c)).count()
        } else {
            run(at, first)
        };
        if first == Kind::Capitals {
            let letters = run(at + length, Kind::Letters);
            if length == 1 {
                length += letters;
            } else if letters > 0 {
                // The last capital starts the next word.
                length -= 1;
            }
        }
        out.push((first, chars[at..at + length].to_vec()));
        at += length;
    }
    out
}

fn push_lower(out: &mut String, (kind, word): &(Kind, Vec<char>), connector: char) {
    for &c in word {
        match kind {
            Kind::Connector if is_connector(c) => out.push(connector),
            Kind::Capitals => out.push(lower(c)),
            _ => out.push(c),
        }
    }
}

fn lower_joined(text: &str, connector: char) -> String {
    let mut words = words(text).into_iter().peekable();
    let mut out = String::with_capacity(text.len() + 8);
    let kind_of = |word: &Option<(Kind, Vec<char>)>| word.as_ref().map_or(Kind::Nothing, |(kind, _)| *kind);
    let joins = |kind: Kind| !matches!(kind, Kind::Nothing | Kind::Connector | Kind::Punctuation);
    let mut current = words.next();
    while let Some(word) = current.take() {
        let last = words.peek().is_none();
        push_lower(&mut out, &word, connector);
        if last {
            break;
        }
        let mut next = words.next();
        match word.0 {
            Kind::Connector | Kind::Punctuation => {}
            Kind::Number => {
                while matches!(kind_of(&next), Kind::Letters | Kind::Number) {
                    next.iter().for_each(|word| push_lower(&mut out, word, connector));
                    next = words.next();
                }
                if joins(kind_of(&next)) {
                    out.push(connector);
                }
            }
            _ if kind_of(&next) != Kind::Number => {
                if joins(kind_of(&next)) {
                    out.push(connector);
                }
            }
            // A number at the end belongs to the word before it.
            _ if words.peek().is_none() => {}
            _ => {
                let number = next.take();
                next = words.next();
                if kind_of(&next) == Kind::Letters {
                    out.push(connector);
                }
                let letters = kind_of(&next) == Kind::Letters;
                number.iter().for_each(|word| push_lower(&mut out, word, connector));
                while letters && matches!(kind_of(&next), Kind::Letters | Kind::Number) {
                    next.iter().for_each(|word| push_lower(&mut out, word, connector));
                    next = words.next();
                }
                if joins(kind_of(&next)) {
                    out.push(connector);
                }
            }
        }
        current = next;
    }
    out
}

/// Each word with a capital; connectors at the ends and doubled ones stay.
fn pascal(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let Some(start) = chars.iter().position(|c| !is_connector(*c)) else {
        // Nothing but connectors: the last one comes twice.
        return chars.iter().chain(chars.last()).collect();
    };
    out.extend(&chars[..start]);
    let mut capitals = chars[start].is_uppercase();
    let mut current = upper(chars[start]);
    for &next in &chars[start + 1..] {
        let previous = std::mem::replace(&mut current, next);
        if is_connector(next) && is_connector(previous) {
            out.push(previous);
        } else if is_connector(previous) {
            capitals = next.is_uppercase();
            current = upper(next);
        } else {
            if capitals {
                if next.is_uppercase() {
                    current = lower(next);
                } else {
                    capitals = false;
                }
            }
            out.push(previous);
        }
    }
    out.push(current);
    out
}
