//! Template text into tokens: text, delimiters with their trim markers, and what actions are made of.

use crate::text::{code_point, decode_rune, is_alphanumeric, is_print, lossy, newlines, quote};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    Str,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    fn keyword(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"." => Self::Dot,
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"range" => Self::Range,
            b"nil" => Self::Nil,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        self as u8 >= Self::Block as u8
    }
}

/// A token: its place in the text, or the message of a lexical error.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: usize,
    pub(crate) error: Option<Box<str>>,
}

impl Token {
    /// The slot of a parser that has read nothing yet.
    pub(crate) const NONE: Self = Self { kind: Kind::Eof, start: 0, end: 0, line: 0, error: None };

    /// How Go names the token in its messages.
    pub(crate) fn describe(&self, text: &[u8]) -> String {
        if let Some(error) = &self.error {
            return error.to_string();
        }
        let value = &text[self.start..self.end];
        if self.kind == Kind::Eof {
            "EOF".to_owned()
        } else if self.kind.is_keyword() {
            format!("<{}>", lossy(value))
        } else if value.len() > 10 {
            let (mut end, mut runes) = (0, 0);
            while end < value.len() && runes < 10 {
                end += decode_rune(&value[end..]).1;
                runes += 1;
            }
            format!("{}...", quote(&value[..end]))
        } else {
            quote(value)
        }
    }
}

/// The scanner; `next` yields tokens, at the end for ever `Eof`.
pub(crate) struct Lexer<'t> {
    text: &'t [u8],
    left: &'t [u8],
    right: &'t [u8],
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    paren_depth: usize,
    inside_action: bool,
    failed: bool,
    /// `break` is a keyword unless a function has that name.
    pub(crate) break_ok: bool,
    /// `continue` is a keyword unless a function has that name.
    pub(crate) continue_ok: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|b| *b == first) {
        if haystack[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn left_trim_marker(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space(*space))
}

fn right_trim_marker(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if is_space(*space))
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t [u8], left: &'t [u8], right: &'t [u8]) -> Self {
        Self {
            text,
            left,
            right,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            inside_action: false,
            failed: false,
            break_ok: true,
            continue_ok: true,
        }
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        if self.failed {
            // An error ends the scan; who reads on inside an action finds it unclosed.
            return if self.inside_action {
                self.error("unclosed action".to_owned())
            } else {
                Token { kind: Kind::Eof, start: 0, end: 0, line: self.start_line, error: None }
            };
        }
        if self.inside_action { self.inside() } else { self.outside() }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.pos..]
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token { kind, start: self.start, end: self.pos, line: self.start_line, error: None };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    fn error(&mut self, message: String) -> Token {
        self.failed = true;
        Token {
            kind: Kind::Error,
            start: 0,
            end: 0,
            line: self.start_line,
            error: Some(message.into_boxed_str()),
        }
    }

    /// Drops what was passed without looking at its runes.
    fn ignore(&mut self) {
        self.line += newlines(&self.text[self.start..self.pos]);
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn peek(&self) -> Option<u32> {
        let rest = self.rest();
        (!rest.is_empty()).then(|| decode_rune(rest).0)
    }

    fn bump(&mut self) -> Option<u32> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let (rune, width) = decode_rune(rest);
        self.pos += width;
        if rune == u32::from(b'\n') {
            self.line += 1;
        }
        Some(rune)
    }

    fn accept(&mut self, set: &[u8]) -> bool {
        let found = self.rest().first().is_some_and(|b| set.contains(b));
        if found {
            self.pos += 1;
        }
        found
    }

    fn accept_run(&mut self, set: &[u8]) {
        while self.accept(set) {}
    }

    fn outside(&mut self) -> Token {
        loop {
            let Some(offset) = find(self.rest(), self.left) else {
                self.pos = self.text.len();
                if self.pos > self.start {
                    self.line += newlines(&self.text[self.start..self.pos]);
                    return self.emit(Kind::Text);
                }
                return self.emit(Kind::Eof);
            };
            if offset > 0 {
                self.pos += offset;
                let delim = self.pos;
                if left_trim_marker(&self.text[delim + self.left.len()..]) {
                    let kept = self.text[self.start..delim].iter().rposition(|b| !is_space(*b));
                    self.pos = kept.map_or(self.start, |at| self.start + at + 1);
                }
                self.line += newlines(&self.text[self.start..self.pos]);
                let token = self.emit(Kind::Text);
                self.pos = delim;
                self.ignore();
                if token.end > token.start {
                    return token;
                }
            }
            self.pos += self.left.len();
            let marker = if left_trim_marker(self.rest()) { 2 } else { 0 };
            if self.text[self.pos + marker..].starts_with(b"/*") {
                self.pos += marker;
                self.ignore();
                match self.comment() {
                    Some(error) => return error,
                    None => continue,
                }
            }
            let token = self.emit(Kind::LeftDelim);
            self.inside_action = true;
            self.pos += marker;
            self.ignore();
            self.paren_depth = 0;
            return token;
        }
    }

    /// Skips a comment with the delimiter that must follow it.
    fn comment(&mut self) -> Option<Token> {
        self.pos += 2;
        let Some(length) = find(self.rest(), b"*/") else {
            return Some(self.error("unclosed comment".to_owned()));
        };
        self.pos += length + 2;
        let Some(trim) = self.at_right_delim() else {
            return Some(self.error("comment ends before closing delimiter".to_owned()));
        };
        if trim {
            self.pos += 2;
        }
        self.pos += self.right.len();
        if trim {
            self.skip_spaces();
        }
        self.ignore();
        None
    }

    fn skip_spaces(&mut self) {
        self.pos += self.rest().iter().take_while(|b| is_space(**b)).count();
    }

    /// Whether a right delimiter is here, and if so whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if right_trim_marker(rest) && rest[2..].starts_with(self.right) {
            return Some(true);
        }
        rest.starts_with(self.right).then_some(false)
    }

    fn right_delim(&mut self) -> Token {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += self.right.len();
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.skip_spaces();
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside(&mut self) -> Token {
        if self.at_right_delim().is_some() {
            if self.paren_depth == 0 {
                return self.right_delim();
            }
            return self.error("unclosed left paren".to_owned());
        }
        let before = self.pos;
        let Some(rune) = self.bump() else { return self.error("unclosed action".to_owned()) };
        let ascii = if rune < 0x80 { rune as u8 } else { 0x80 };
        match ascii {
            b' ' | b'\t' | b'\r' | b'\n' => self.space(before),
            b'=' => self.emit(Kind::Assign),
            b':' => {
                if self.bump() != Some(u32::from(b'=')) {
                    return self.error("expected :=".to_owned());
                }
                self.emit(Kind::Declare)
            }
            b'|' => self.emit(Kind::Pipe),
            b'"' => self.quoted(b'"', Kind::Str, "unterminated quoted string"),
            b'\'' => self.quoted(b'\'', Kind::CharConstant, "unterminated character constant"),
            b'`' => self.raw_string(),
            b'$' => self.field_or_variable(Kind::Variable),
            b'.' if self.rest().first().is_some_and(|b| !b.is_ascii_digit()) => {
                self.field_or_variable(Kind::Field)
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => {
                self.pos = before;
                self.number()
            }
            b'(' => {
                self.paren_depth += 1;
                self.emit(Kind::LeftParen)
            }
            b')' => {
                if self.paren_depth == 0 {
                    return self.error("unexpected right paren".to_owned());
                }
                self.paren_depth -= 1;
                self.emit(Kind::RightParen)
            }
            _ if is_alphanumeric(rune) => self.identifier(),
            0x00..0x80 if is_print(rune) => self.emit(Kind::Char),
            _ => self.error(format!("unrecognized character in action: {}", code_point(Some(rune)))),
        }
    }

    /// A run of spaces; the last one may belong to a trimming delimiter.
    fn space(&mut self, first: usize) -> Token {
        while self.rest().first().is_some_and(|b| is_space(*b)) {
            self.bump();
        }
        let last = self.pos - 1;
        let tail = &self.text[last..];
        if right_trim_marker(tail) && tail[2..].starts_with(self.right) {
            if self.text[last] == b'\n' {
                self.line -= 1;
            }
            self.pos = last;
            if last == first {
                return self.right_delim();
            }
        }
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Token {
        while self.peek().is_some_and(is_alphanumeric) {
            self.bump();
        }
        if !self.at_terminator() {
            let message = format!("bad character {}", code_point(self.peek()));
            return self.error(message);
        }
        match &self.text[self.start..self.pos] {
            b"true" | b"false" => self.emit(Kind::Bool),
            word => match Kind::keyword(word) {
                Some(Kind::Break) if !self.break_ok => self.emit(Kind::Identifier),
                Some(Kind::Continue) if !self.continue_ok => self.emit(Kind::Identifier),
                Some(kind) => self.emit(kind),
                None => self.emit(Kind::Identifier),
            },
        }
    }

    fn field_or_variable(&mut self, kind: Kind) -> Token {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        while self.peek().is_some_and(is_alphanumeric) {
            self.bump();
        }
        if !self.at_terminator() {
            let message = format!("bad character {}", code_point(self.peek()));
            return self.error(message);
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.rest().first() {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => true,
            Some(_) => self.rest().starts_with(self.right),
        }
    }

    fn quoted(&mut self, quote: u8, kind: Kind, unterminated: &str) -> Token {
        loop {
            match self.bump() {
                Some(0x5C) if !matches!(self.bump(), None | Some(0x0A)) => {}
                None | Some(0x5C | 0x0A) => return self.error(unterminated.to_owned()),
                Some(rune) if rune == u32::from(quote) => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        loop {
            match self.bump() {
                None => return self.error("unterminated raw quoted string".to_owned()),
                Some(0x60) => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.rest().first(), Some(b'+' | b'-')) {
            if !self.scan_number() || self.text[self.pos - 1] != b'i' {
                return self.bad_number();
            }
            return self.emit(Kind::Complex);
        }
        self.emit(Kind::Number)
    }

    fn bad_number(&mut self) -> Token {
        let message = format!("bad number syntax: {}", quote(&self.text[self.start..self.pos]));
        self.error(message)
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &[u8] = b"0123456789_";
        const HEX: &[u8] = b"0123456789abcdefABCDEF_";
        self.accept(b"+-");
        let mut digits = DECIMAL;
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = HEX;
            } else if self.accept(b"oO") {
                digits = b"01234567_";
            } else if self.accept(b"bB") {
                digits = b"01_";
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        if (digits == DECIMAL && self.accept(b"eE")) || (digits == HEX && self.accept(b"pP")) {
            self.accept(b"+-");
            self.accept_run(DECIMAL);
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.bump();
            return false;
        }
        true
    }
}
