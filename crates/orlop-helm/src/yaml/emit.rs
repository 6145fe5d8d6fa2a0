//! Writing block YAML: indentation, indicators, and scalars folded after column 80.

use super::resolve::reads_as_string;
use super::scalar::{analyze, is_break, is_printable};

const INDENT: i32 = 2;
const WIDTH: i32 = 80;
/// The longest key that needs no question mark, in bytes.
const SIMPLE_KEY_MAX: usize = 128;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    mapping: bool,
    simple_key: bool,
}

impl Place {
    pub(super) const ROOT: Self = Self { mapping: false, simple_key: false };
    pub(super) const ITEM: Self = Self::ROOT;
    pub(super) const VALUE: Self = Self { mapping: true, simple_key: false };
    const SIMPLE_KEY: Self = Self { mapping: true, simple_key: true };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

pub(super) struct Emitter {
    out: Vec<u8>,
    column: i32,
    indent: i32,
    outer: Vec<i32>,
    whitespace: bool,
    indention: bool,
}

impl Emitter {
    pub(super) fn new() -> Self {
        Self { out: Vec::new(), column: 0, indent: -1, outer: Vec::new(), whitespace: true, indention: true }
    }

    /// Ends the document with a line.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.indent = -1;
        self.write_indent();
        self.out
    }

    fn put(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.put(c);
            self.column = 0;
        }
    }

    fn write_indent(&mut self) {
        let indent = self.indent.max(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, needs_space: bool, is_space: bool, keeps_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = is_space;
        self.indention = self.indention && keeps_indention;
    }

    fn deeper(&mut self, flow: bool, indentless: bool) {
        self.outer.push(self.indent);
        if self.indent < 0 {
            self.indent = if flow { INDENT } else { 0 };
        } else if !indentless {
            self.indent += INDENT;
        }
    }

    /// Ends a collection.
    pub(super) fn close(&mut self) {
        self.indent = self.outer.pop().unwrap_or(-1);
    }

    /// A collection without elements, in flow style.
    pub(super) fn empty(&mut self, open: u8, close: u8) {
        self.indicator(&char::from(open).to_string(), true, true, false);
        self.indicator(&char::from(close).to_string(), false, false, false);
    }

    /// Starts a sequence; as the value of a key it is not indented.
    pub(super) fn open_sequence(&mut self, place: Place) {
        self.deeper(false, place.mapping && !self.indention);
    }

    /// Starts an element.
    pub(super) fn item(&mut self) {
        self.write_indent();
        self.indicator("-", true, false, true);
    }

    /// Starts a mapping.
    pub(super) fn open_mapping(&mut self) {
        self.deeper(false, false);
    }

    /// Writes a key and what separates it from its value.
    pub(super) fn key(&mut self, key: &str) {
        self.write_indent();
        if !analyze(key).multiline && key.len() <= SIMPLE_KEY_MAX {
            self.string(key, Place::SIMPLE_KEY);
            self.indicator(":", false, false, false);
        } else {
            self.indicator("?", true, false, true);
            self.string(key, Place::VALUE);
            self.write_indent();
            self.indicator(":", true, false, true);
        }
    }

    /// A number, boolean or null.
    pub(super) fn plain(&mut self, text: &[u8], place: Place) {
        self.scalar(&String::from_utf8_lossy(text), Style::Plain, place);
    }

    /// A string in the style that reads back as it.
    pub(super) fn string(&mut self, text: &str, place: Place) {
        let style = if text.contains('\n') {
            Style::Literal
        } else if reads_as_string(text) {
            Style::Plain
        } else {
            Style::Double
        };
        self.scalar(text, style, place);
    }

    fn scalar(&mut self, text: &str, mut style: Style, place: Place) {
        let analysis = analyze(text);
        if place.simple_key && analysis.multiline {
            style = Style::Double;
        }
        if style == Style::Plain && (!analysis.plain || (text.is_empty() && place.simple_key)) {
            style = Style::Single;
        }
        if style == Style::Single && !analysis.single_quoted {
            style = Style::Double;
        }
        if style == Style::Literal && (!analysis.block || place.simple_key) {
            style = Style::Double;
        }
        self.deeper(true, false);
        let fold = !place.simple_key;
        match style {
            Style::Plain => self.write_plain(text, fold),
            Style::Single => self.write_single(text, fold),
            Style::Double => self.write_double(text, fold),
            Style::Literal => self.write_literal(text),
        }
        self.close();
    }

    fn write_plain(&mut self, text: &str, fold: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        self.write_folded(text, fold, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single(&mut self, text: &str, fold: bool) {
        self.indicator("'", true, false, false);
        self.write_folded(text, fold, true);
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Text whose lines may be broken at single spaces.
    fn write_folded(&mut self, text: &str, fold: bool, quoted: bool) {
        let chars: Vec<char> = text.chars().collect();
        let (mut spaces, mut breaks) = (false, false);
        for (i, &c) in chars.iter().enumerate() {
            if c == ' ' {
                let inside = !quoted || (i > 0 && i + 1 < chars.len());
                if fold && !spaces && self.column > WIDTH && inside && chars.get(i + 1) != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
    }

    fn write_double(&mut self, text: &str, fold: bool) {
        self.indicator("\"", true, false, false);
        let chars: Vec<char> = text.chars().collect();
        // goyaml asks of every character whether the text starts with a byte order mark.
        let marked = text.starts_with('\u{feff}');
        let mut spaces = false;
        for (i, &c) in chars.iter().enumerate() {
            if marked || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                if fold && !spaces && self.column > WIDTH && i > 0 && i + 1 < chars.len() {
                    self.write_indent();
                    if chars[i + 1] == ' ' {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let long = match code {
                    0..=0xFF => format!("x{code:02X}"),
                    0x100..=0xFFFF => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                long.chars().for_each(|c| self.put(c));
                return;
            }
        };
        self.put(short);
    }

    fn write_literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.indicator("2", false, false, false);
        }
        let mut back = text.chars().rev();
        let (last, before) = (back.next().is_some_and(is_break), back.next().is_none_or(is_break));
        match (last, before) {
            (false, _) => self.indicator("-", false, false, false),
            (true, true) => self.indicator("+", false, false, false),
            (true, false) => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}
