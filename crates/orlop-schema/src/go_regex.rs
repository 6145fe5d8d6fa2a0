//! Regular expressions in Go's syntax, run by the `regex` crate.
//!
//! The two engines are cousins, so the pattern is copied token by token with the differences put right: Perl
//! classes mean ASCII in Go, brackets do not nest, and escapes are read a little differently. Mistakes are
//! reported in Go's words.

use regex::Regex;
use std::fmt::Write;

/// The names of classes in double brackets.
const CLASS_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];
/// The greatest count in a repetition.
const REPEAT_MAX: u32 = 1000;

/// Compiles a pattern, or says what is wrong with it as Go's `regexp` does.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    Regex::new(&translated).map_err(|_| fault("invalid or unsupported Perl syntax", pattern))
}

fn fault(what: &str, where_: &str) -> String {
    format!("error parsing regexp: {what}: `{where_}`")
}

/// The pattern in the syntax of the `regex` crate.
fn translate(pattern: &str) -> Result<String, String> {
    let mut reader = Reader { text: pattern, at: 0, out: String::with_capacity(pattern.len() + 16) };
    let mut depth = 0usize;
    // Whether something stands before that can be repeated, and where the last repetition began.
    let mut repeatable = false;
    let mut last_repeat: Option<usize> = None;
    while let Some(c) = reader.peek() {
        let start = reader.at;
        let mut repeat = None;
        match c {
            '(' => {
                depth += usize::from(reader.group()?);
                repeatable = false;
            }
            ')' => {
                if depth == 0 {
                    return Err(fault("unexpected )", pattern));
                }
                depth -= 1;
                reader.copy();
                repeatable = true;
            }
            '|' => {
                reader.copy();
                repeatable = false;
            }
            '*' | '+' | '?' => {
                reader.repetition(start, repeatable, last_repeat, 1)?;
                repeat = Some(start);
            }
            '{' => {
                if let Some(Counted { length, min, max }) = reader.counted() {
                    let text = &pattern[start..start + length];
                    let too_many = |count: Option<u32>| count.is_some_and(|count| count > REPEAT_MAX);
                    if too_many(Some(min)) || too_many(max) || max.is_some_and(|max| min > max) {
                        return Err(fault("invalid repeat count", text));
                    }
                    reader.repetition(start, repeatable, last_repeat, length)?;
                    repeat = Some(start);
                } else {
                    reader.next();
                    reader.out.push_str("\\{");
                    repeatable = true;
                }
            }
            '[' => {
                reader.class()?;
                repeatable = true;
            }
            '\\' => {
                reader.escape()?;
                repeatable = true;
            }
            '}' | ']' => {
                reader.next();
                reader.out.push('\\');
                reader.out.push(c);
                repeatable = true;
            }
            _ => {
                reader.copy();
                repeatable = true;
            }
        }
        last_repeat = repeat;
    }
    if depth > 0 {
        return Err(fault("missing closing )", pattern));
    }
    Ok(reader.out)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

/// A repetition such as `{2,5}`.
struct Counted {
    length: usize,
    min: u32,
    max: Option<u32>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn copy(&mut self) {
        if let Some(c) = self.next() {
            self.out.push(c);
        }
    }

    /// The opening of a group, with its flags or its name; false if it is only flags.
    fn group(&mut self) -> Result<bool, String> {
        let rest = self.rest();
        if !rest.starts_with("(?") {
            self.copy();
            return Ok(true);
        }
        let named = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
        if let Some(name) = named {
            let Some(end) = name.find('>') else { return Err(fault("invalid named capture", rest)) };
            let length = rest.len() - name.len() + end + 1;
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if end == 0 || !name[..end].chars().all(is_word) {
                return Err(fault("invalid named capture", &rest[..length]));
            }
            self.out.push_str(&rest[..length]);
            self.at += length;
            return Ok(true);
        }
        let flags = rest[2..].find([':', ')']);
        let valid = flags.is_some_and(|end| rest[2..2 + end].chars().all(|c| "imsU-".contains(c)));
        match flags {
            Some(end) if valid => {
                let length = 2 + end + 1;
                self.out.push_str(&rest[..length]);
                self.at += length;
                // Flags alone, as in `(?i)`, hold to the end of the group around them.
                Ok(!rest[..length].ends_with(')'))
            }
            _ => {
                let shown = rest.char_indices().nth(3).map_or(rest, |(end, _)| &rest[..end]);
                Err(fault("invalid or unsupported Perl syntax", shown))
            }
        }
    }

    /// A repetition operator, with its optional `?`.
    fn repetition(
        &mut self,
        start: usize,
        repeatable: bool,
        last: Option<usize>,
        length: usize,
    ) -> Result<(), String> {
        let mut end = start + length;
        if self.text[end..].starts_with('?') {
            end += 1;
        }
        if let Some(last) = last {
            return Err(fault("invalid nested repetition operator", &self.text[last..end]));
        }
        if !repeatable {
            return Err(fault("missing argument to repetition operator", &self.text[start..start + length]));
        }
        self.out.push_str(&self.text[start..end]);
        self.at = end;
        Ok(())
    }

    fn counted(&self) -> Option<Counted> {
        let body = self.rest().strip_prefix('{')?;
        let end = body.find('}')?;
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            (plain && (text.len() == 1 || !text.starts_with('0')))
                .then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let (min, max) = match body[..end].split_once(',') {
            None => {
                let count = number(&body[..end])?;
                (count, Some(count))
            }
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        Some(Counted { length: end + 2, min, max })
    }

    fn escape(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let Some(c) = rest[1..].chars().next() else {
            return Err(fault("trailing backslash at end of expression", ""));
        };
        if c == 'Q' {
            let quoted = &rest[2..];
            let end = quoted.find("\\E").unwrap_or(quoted.len());
            self.out.push_str(&regex::escape(&quoted[..end]));
            self.at += (2 + end + 2).min(rest.len());
            return Ok(());
        }
        let simple = match c {
            'A' => Some("\\A"),
            'z' => Some("\\z"),
            'b' => Some("(?-u:\\b)"),
            'B' => Some("(?-u:\\B)"),
            'd' => Some("[0-9]"),
            'D' => Some("[^0-9]"),
            'w' => Some("[0-9A-Za-z_]"),
            'W' => Some("[^0-9A-Za-z_]"),
            's' => Some("[\\t\\n\\f\\r ]"),
            'S' => Some("[^\\t\\n\\f\\r ]"),
            _ => None,
        };
        if let Some(simple) = simple {
            self.out.push_str(simple);
            self.at += 1 + c.len_utf8();
            return Ok(());
        }
        self.character()
    }

    /// An escape that means one character or a Unicode class.
    fn character(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let c = rest[1..].chars().next().unwrap_or_default();
        let whole = &rest[..=c.len_utf8()];
        match c {
            'p' | 'P' => {
                let body = &rest[2..];
                let length = if body.starts_with('{') {
                    body.find('}').map(|end| end + 1)
                } else {
                    body.chars().next().map(char::len_utf8)
                };
                let Some(length) = length else { return Err(fault("invalid character class range", rest)) };
                let whole = &rest[..2 + length];
                if Regex::new(whole).is_err() {
                    return Err(fault("invalid character class range", whole));
                }
                self.out.push_str(whole);
                self.at += whole.len();
            }
            'x' => {
                let body = &rest[2..];
                let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
                let length = match body.strip_prefix('{') {
                    Some(braced) => braced.find('}').filter(|end| is_hex(&braced[..*end])).map(|end| end + 2),
                    None => body.get(..2).filter(|digits| is_hex(digits)).map(|_| 2),
                };
                let Some(length) = length else { return Err(fault("invalid escape sequence", whole)) };
                self.out.push_str(&rest[..2 + length]);
                self.at += 2 + length;
            }
            '0'..='7' => {
                let digits: String = rest[1..].chars().take(3).take_while(char::is_ascii_digit).collect();
                let octal = u32::from_str_radix(&digits, 8).ok();
                match octal {
                    Some(code) if c == '0' || digits.len() > 1 => {
                        let _ = write!(self.out, "\\x{{{code:x}}}");
                        self.at += 1 + digits.len();
                    }
                    _ => return Err(fault("invalid escape sequence", whole)),
                }
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
                self.out.push_str(whole);
                self.at += whole.len();
            }
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                match c {
                    '<' | '>' | '_' => self.out.push(c),
                    _ => self.out.push_str(whole),
                }
                self.at += whole.len();
            }
            _ => return Err(fault("invalid escape sequence", whole)),
        }
        Ok(())
    }

    /// A character class: Go's do not nest and have no set operations.
    fn class(&mut self) -> Result<(), String> {
        let start = self.at;
        self.copy();
        if self.peek() == Some('^') {
            self.copy();
        }
        let mut first = true;
        loop {
            let Some(c) = self.peek() else {
                return Err(fault("missing closing ]", &self.text[start..]));
            };
            match c {
                ']' if !first => {
                    self.copy();
                    return Ok(());
                }
                '[' if self.rest().starts_with("[:") => {
                    let rest = self.rest();
                    if let Some(end) = rest.find(":]") {
                        let whole = &rest[..end + 2];
                        let name = whole[2..end].trim_start_matches('^');
                        if !CLASS_NAMES.contains(&name) {
                            return Err(fault("invalid character class range", whole));
                        }
                        self.out.push_str(whole);
                        self.at += whole.len();
                    } else {
                        self.next();
                        self.out.push_str("\\[");
                    }
                }
                _ => self.range()?,
            }
            first = false;
        }
    }

    /// One character of a class, or a range of them.
    fn range(&mut self) -> Result<(), String> {
        let start = self.at;
        let low = self.class_character()?;
        let rest = self.rest();
        let is_range = rest.starts_with('-') && rest[1..].chars().next().is_some_and(|c| c != ']');
        let Some(low) = low.filter(|_| is_range) else { return Ok(()) };
        self.next();
        self.out.push('-');
        let high = self.class_character()?;
        match high {
            Some(high) if low <= high => Ok(()),
            _ => Err(fault("invalid character class range", &self.text[start..self.at])),
        }
    }

    /// Copies a character of a class; `None` if it stands for a whole class itself.
    fn class_character(&mut self) -> Result<Option<char>, String> {
        let rest = self.rest();
        let Some(c) = self.peek() else { return Err(fault("missing closing ]", rest)) };
        if c != '\\' {
            self.next();
            if "[]&~-^".contains(c) {
                self.out.push('\\');
            }
            self.out.push(c);
            return Ok(Some(c));
        }
        let escaped = rest[1..].chars().next();
        let perl = match escaped {
            None => {
                return Err(fault("trailing backslash at end of expression", ""));
            }
            Some('d') => Some("0-9"),
            Some('D') => Some("[^0-9]"),
            Some('w') => Some("0-9A-Za-z_"),
            Some('W') => Some("[^0-9A-Za-z_]"),
            Some('s') => Some("\\t\\n\\f\\r "),
            Some('S') => Some("[^\\t\\n\\f\\r ]"),
            Some('b' | 'B' | 'A' | 'z') => {
                return Err(fault("invalid escape sequence", &rest[..2]));
            }
            Some(_) => None,
        };
        if let Some(perl) = perl {
            self.out.push_str(perl);
            self.at += 2;
            return Ok(None);
        }
        let before = self.out.len();
        self.character()?;
        if matches!(escaped, Some('p' | 'P')) {
            return Ok(None);
        }
        let one = Regex::new(&format!("^{}$", &self.out[before..]));
        let value = self.out[before..].chars().last();
        // Only plain escapes take part in the order of a range; the others are checked by the engine.
        Ok(value.filter(|_| one.is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, text, matches) in [
            (r"^[a-z]+$", "abc", true),
            (r"^[a-z]+$", "ab1", false),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a-b.c_d", true),
            (r"^[[]$", "[", true),
            (r"^[a&&b]+$", "&a", true),
            (r"^\<x\>$", "<x>", true),
            (r"^a\/b$", "a/b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^abc$", "ABC", true),
            (r"^(?:a|b){2,3}$", "abb", true),
            (r"^{a}$", "{a}", true),
            (r"^[^\s]+$", "a b", false),
            (r"^(?P<n>a)$", "a", true),
            (r"^[0-9]+((\.[0-9]+)?[a-z]?|)$", "1.5k", true),
            (r"^[]a]+$", "]a", true),
            (r"^x*?$", "xxx", true),
        ] {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn mistakes_are_worded_as_in_go() {
        for (pattern, error) in [
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("a)", "error parsing regexp: unexpected ): `a)`"),
            ("[a", "error parsing regexp: missing closing ]: `[a`"),
            ("*a", "error parsing regexp: missing argument to repetition operator: `*`"),
            ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
            ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
            (r"\y", r"error parsing regexp: invalid escape sequence: `\y`"),
            ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
            ("[b-a]", "error parsing regexp: invalid character class range: `b-a`"),
            ("a\\", "error parsing regexp: trailing backslash at end of expression: ``"),
            ("(?i", "error parsing regexp: invalid or unsupported Perl syntax: `(?i`"),
            ("(?i)*", "error parsing regexp: missing argument to repetition operator: `*`"),
            ("a+?+", "error parsing regexp: invalid nested repetition operator: `+?+`"),
            ("[[:foo:]]", "error parsing regexp: invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"error parsing regexp: invalid character class range: `\p{Foo}`"),
        ] {
            assert_eq!(compile(pattern).err().as_deref(), Some(error), "{pattern}");
        }
    }
}
