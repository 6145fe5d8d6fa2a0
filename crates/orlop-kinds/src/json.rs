//! A JSON reader with the manners of Kubernetes: Go's error texts, duplicate fields reported with their path.
//!
//! Numbers without a point that fit stay integers, all others become floats; the last of several equal keys
//! wins. Unlike Go the nesting is bounded to a depth that the rest of the server can walk recursively.

use serde_json::{Map, Number, Value};

/// How deep arrays and objects may be nested.
pub const DEPTH_MAX: usize = 500;

/// Strict errors are no longer collected beyond this many.
pub(crate) const STRICT_ERRORS_MAX: usize = 100;

/// Why a text is no JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(String);

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The document.
    pub value: Value,
    /// The paths of fields that were given more than once, in document order.
    pub duplicates: Vec<String>,
}

impl Parsed {
    /// The duplicates as strict decoding reports them: `duplicate field "metadata.name"`.
    pub fn strict_errors(&self) -> Vec<String> {
        self.duplicates.iter().map(|path| format!("duplicate field {}", quoted(path))).collect()
    }
}

/// Reads one document.
pub fn parse(text: &[u8]) -> Result<Parsed, JsonError> {
    let mut reader = Reader { text, at: 0, duplicates: Vec::new(), trace: None };
    let value = reader.document()?;
    Ok(Parsed { value, duplicates: reader.duplicates })
}

/// The paths of all fields and items in the order they stand in a document; what cannot be read ends the list.
pub fn paths(text: &[u8]) -> Vec<String> {
    let mut reader = Reader { text, at: 0, duplicates: Vec::new(), trace: Some(Vec::new()) };
    let _ = reader.document();
    reader.trace.unwrap_or_default()
}

/// Rewrites floats without a fraction as integers, which is how Go prints them.
pub fn normalise_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = integral(number) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise_numbers),
        Value::Object(map) => map.values_mut().for_each(normalise_numbers),
        _ => {}
    }
}

/// A float that is a whole number Go prints without an exponent.
pub(crate) fn integral(number: &Number) -> Option<i64> {
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64)
}

/// A path in the quotes of a strict error.
pub(crate) fn quoted(path: &str) -> String {
    orlop_schema::field::go_quote(path)
}

/// Where the reader is, as a chain of stack frames; only spelled out when something is wrong there.
struct Crumb<'a> {
    parent: Option<&'a Crumb<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Crumb<'_> {
    fn write(&self, into: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(into);
        }
        match self.step {
            Step::Key(key) => {
                if self.parent.is_some() {
                    into.push('.');
                }
                into.push_str(key);
            }
            Step::Index(index) => {
                into.push('[');
                into.push_str(&index.to_string());
                into.push(']');
            }
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        self.write(&mut path);
        path
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    duplicates: Vec<String>,
    trace: Option<Vec<String>>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, JsonError> {
        let value = self.value(None, 0)?;
        match self.next_token() {
            None => Ok(value),
            Some(byte) => Err(unexpected(byte, "after top-level value")),
        }
    }

    /// The next byte that is no space, without consuming it.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn value(&mut self, crumb: Option<&Crumb<'_>>, depth: usize) -> Result<Value, JsonError> {
        match self.next_token().ok_or_else(ended)? {
            b'{' => self.object(crumb, deeper(depth)?),
            b'[' => self.array(crumb, deeper(depth)?),
            b'"' => Ok(Value::String(self.string()?)),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.number(),
            byte => Err(unexpected(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, crumb: Option<&Crumb<'_>>, depth: usize) -> Result<Value, JsonError> {
        let mut map = Map::new();
        self.at += 1;
        if self.next_token() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            match self.next_token().ok_or_else(ended)? {
                b'"' => {}
                byte => return Err(unexpected(byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            match self.next_token().ok_or_else(ended)? {
                b':' => self.at += 1,
                byte => return Err(unexpected(byte, "after object key")),
            }
            let here = Crumb { parent: crumb, step: Step::Key(&key) };
            if let Some(trace) = &mut self.trace {
                trace.push(here.path());
            }
            if map.contains_key(&key) && self.duplicates.len() < STRICT_ERRORS_MAX {
                let path = here.path();
                if !self.duplicates.contains(&path) {
                    self.duplicates.push(path);
                }
            }
            let value = self.value(Some(&here), depth)?;
            map.insert(key, value);
            match self.next_token().ok_or_else(ended)? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                byte => return Err(unexpected(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, crumb: Option<&Crumb<'_>>, depth: usize) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        if self.next_token() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            let here = Crumb { parent: crumb, step: Step::Index(items.len()) };
            if let Some(trace) = &mut self.trace {
                trace.push(here.path());
            }
            items.push(self.value(Some(&here), depth)?);
            match self.next_token().ok_or_else(ended)? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                byte => return Err(unexpected(byte, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        for expected in word.bytes() {
            let byte = self.byte_or_space();
            if byte != expected {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(unexpected(byte, &context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at).copied() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(unexpected(self.byte_or_space(), "in numeric literal")),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(number.into());
        }
        text.parse().ok().and_then(Number::from_f64).map(Value::Number).ok_or_else(|| {
            JsonError(format!("json: cannot unmarshal number {text} into Go value of type float64"))
        })
    }

    /// The next byte; inside a token Go reports the end of the text as a space.
    fn byte_or_space(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b' ')
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), JsonError> {
        match self.text.get(self.at).copied() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            _ => Err(unexpected(self.byte_or_space(), context)),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let start = self.at;
            while let Some(byte) = self.text.get(self.at) {
                if matches!(byte, b'"' | b'\\' | 0..=0x1f) {
                    break;
                }
                self.at += 1;
            }
            let plain = &self.text[start..self.at];
            match std::str::from_utf8(plain) {
                Ok(plain) => out.push_str(plain),
                Err(_) => out.push_str(&String::from_utf8_lossy(plain)),
            }
            match self.text.get(self.at).copied().ok_or_else(ended)? {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                byte => return Err(unexpected(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let byte = self.byte_or_space();
        self.at += 1;
        out.push(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                self.surrogates(first)?
            }
            byte => return Err(unexpected(byte, "in string escape code")),
        });
        Ok(())
    }

    /// The character of a `\u` escape; a lone surrogate becomes the replacement character.
    fn surrogates(&mut self, first: u32) -> Result<char, JsonError> {
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with(b"\\u") {
            return Ok(char::from_u32(first).unwrap_or('\u{fffd}'));
        }
        let after_first = self.at;
        self.at += 2;
        let second = self.hex()?;
        if (0xdc00..0xe000).contains(&second) {
            let point = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(point).unwrap_or('\u{fffd}'));
        }
        self.at = after_first;
        Ok('\u{fffd}')
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let mut number = 0;
        for _ in 0..4 {
            let byte = self.byte_or_space();
            let digit = char::from(byte)
                .to_digit(16)
                .ok_or_else(|| unexpected(byte, "in \\u hexadecimal character escape"))?;
            number = number * 16 + digit;
            self.at += 1;
        }
        Ok(number)
    }
}

fn deeper(depth: usize) -> Result<usize, JsonError> {
    if depth < DEPTH_MAX { Ok(depth + 1) } else { Err(JsonError("exceeded max depth".to_owned())) }
}

fn ended() -> JsonError {
    JsonError("unexpected end of JSON input".to_owned())
}

fn unexpected(byte: u8, context: &str) -> JsonError {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        byte => {
            let quoted = quoted(&char::from(byte).to_string());
            quoted[1..quoted.len() - 1].to_owned()
        }
    };
    JsonError(format!("invalid character '{shown}' {context}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_read_as_in_go() {
        for (text, value) in [
            (r#" {"a":[1,-2,3.5,1e2,true,null,"x"]} "#, json!({"a": [1, -2, 3.5, 100.0, true, null, "x"]})),
            (r#""\u00e9\ud83d\ude00\ud83dx\n\/""#, json!("é😀\u{fffd}x\n/")),
            ("18446744073709551615", json!(u64::MAX)),
            ("{}", json!({})),
            ("[]", json!([])),
            ("1.0", json!(1.0)),
        ] {
            assert_eq!(parse(text.as_bytes()).map(|p| p.value), Ok(value), "{text}");
        }
        assert_eq!(parse(b"\"\xff\"").map(|p| p.value), Ok(json!("\u{fffd}")));
    }

    #[test]
    fn errors_read_as_in_go() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("tr", "invalid character ' ' in literal true (expecting 'u')"),
            ("\"\\u0", "invalid character ' ' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("'", "invalid character '\\'' looking for beginning of value"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(JsonError(error.to_owned())), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()), Err(JsonError("exceeded max depth".to_owned())));
    }

    #[test]
    fn duplicate_fields_are_reported_with_their_path() {
        let text = br#"{"metadata":{"name":"a","name":"b","name":"c"},"l":[{"x":1},{"x":1,"x":2}]}"#;
        let parsed = parse(text).expect("valid");
        assert_eq!(parsed.value["metadata"]["name"], "c");
        assert_eq!(
            parsed.strict_errors(),
            [r#"duplicate field "metadata.name""#, r#"duplicate field "l[1].x""#]
        );
        assert_eq!(paths(br#"{"b":{"c":1},"a":[{"d":2}]}"#), ["b", "b.c", "a", "a[0]", "a[0].d"]);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_almost_json_panics(text in r#"[\[\]{}",:\\u0-9a-f.eE tn+-]{0,60}"#) {
            let _ = parse(text.as_bytes());
        }
    }
}
