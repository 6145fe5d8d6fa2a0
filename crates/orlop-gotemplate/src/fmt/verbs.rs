//! Format strings: flags, widths, precisions, argument indexes.

use super::{Flags, Printer};
use crate::text::decode_rune;
use crate::value::Value;

/// The largest width and precision.
const NUMBER_MAX: i64 = 1_000_000;

/// Where reading a format string has got to.
struct Cursor<'f> {
    format: &'f [u8],
    at: usize,
    arg: usize,
    after_index: bool,
    good_index: bool,
    reordered: bool,
}

impl Cursor<'_> {
    fn byte(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// Reads a decimal number; one too large ends the format.
    fn number(&mut self) -> Option<usize> {
        let (number, next) = parse_number(self.format, self.at, self.format.len());
        self.at = next;
        number
    }

    /// Reads `[n]`.
    fn index(&mut self, args: usize) -> bool {
        if self.byte() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let (index, width) = parse_index(&self.format[self.at..]);
        self.at += width;
        match index {
            Some(index) if (1..=args).contains(&index) => {
                self.arg = index - 1;
                true
            }
            index => {
                self.good_index = false;
                index.is_some()
            }
        }
    }

    /// Takes an integer for `*`.
    fn star(&mut self, args: &[Value]) -> Option<i64> {
        let value = args.get(self.arg)?;
        self.arg += 1;
        let number = match value.plain() {
            Value::Int(_, int) => int,
            Value::Uint(_, uint) => i64::try_from(uint).ok()?,
            _ => return None,
        };
        (-NUMBER_MAX..=NUMBER_MAX).contains(&number).then_some(number)
    }
}

fn parse_number(format: &[u8], start: usize, end: usize) -> (Option<usize>, usize) {
    let (mut number, mut at) = (None, start);
    while at < end && format[at].is_ascii_digit() {
        let so_far = number.unwrap_or(0);
        if so_far > NUMBER_MAX {
            return (None, end);
        }
        number = Some(so_far * 10 + i64::from(format[at] - b'0'));
        at += 1;
    }
    (number.map(|n| n as usize), at)
}

/// The number in brackets and how many bytes to skip.
fn parse_index(format: &[u8]) -> (Option<usize>, usize) {
    if format.len() < 3 {
        return (None, 1);
    }
    let Some(close) = format.iter().position(|b| *b == b']') else { return (None, 1) };
    let (number, next) = parse_number(format, 1, close);
    (number.filter(|_| next == close), close + 1)
}

impl Printer {
    pub(super) fn format(&mut self, format: &[u8], args: &[Value]) {
        let mut cursor =
            Cursor { format, at: 0, arg: 0, after_index: false, good_index: true, reordered: false };
        while cursor.at < format.len() {
            cursor.good_index = true;
            let rest = &format[cursor.at..];
            let literal = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
            self.out.extend_from_slice(&rest[..literal]);
            cursor.at += literal;
            if cursor.at >= format.len() {
                break;
            }
            cursor.at += 1;
            if !self.directive(&mut cursor, args) {
                break;
            }
        }
        if !cursor.reordered && cursor.arg < args.len() {
            self.extra(&args[cursor.arg..]);
        }
    }

    fn extra(&mut self, args: &[Value]) {
        self.flags = Flags::default();
        self.text("%!(EXTRA ");
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            if matches!(arg, Value::Nil) {
                self.text("<nil>");
            } else {
                self.text(&arg.type_name());
                self.out.push(b'=');
                self.arg(arg, 'v');
            }
        }
        self.out.push(b')');
    }

    /// One `%…`; whether the format goes on.
    fn directive(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) -> bool {
        self.flags = Flags::default();
        while let Some(byte) = cursor.byte() {
            match byte {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                b'a'..=b'z' if cursor.arg < args.len() => {
                    cursor.at += 1;
                    self.verb(char::from(byte), &args[cursor.arg]);
                    cursor.arg += 1;
                    return true;
                }
                _ => break,
            }
            cursor.at += 1;
        }
        cursor.after_index = cursor.index(args.len());
        self.width(cursor, args);
        self.precision(cursor, args);
        if !cursor.after_index {
            cursor.after_index = cursor.index(args.len());
        }
        if cursor.at >= cursor.format.len() {
            self.text("%!(NOVERB)");
            return false;
        }
        let (rune, width) = decode_rune(&cursor.format[cursor.at..]);
        let verb = char::from_u32(rune).unwrap_or(char::REPLACEMENT_CHARACTER);
        cursor.at += width;
        if verb == '%' {
            self.out.push(b'%');
        } else if !cursor.good_index {
            self.complain(verb, "(BADINDEX)");
        } else if let Some(arg) = args.get(cursor.arg) {
            self.verb(verb, arg);
            cursor.arg += 1;
        } else {
            self.complain(verb, "(MISSING)");
        }
        true
    }

    fn verb(&mut self, verb: char, arg: &Value) {
        if matches!(verb, 'v' | 'w') {
            self.flags.sharp_v = std::mem::replace(&mut self.flags.sharp, false);
            self.flags.plus_v = std::mem::replace(&mut self.flags.plus, false);
        }
        self.arg(arg, verb);
    }

    fn complain(&mut self, verb: char, what: &str) {
        self.text("%!");
        self.out.extend_from_slice(verb.encode_utf8(&mut [0; 4]).as_bytes());
        self.text(what);
    }

    fn width(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) {
        if cursor.byte() == Some(b'*') {
            cursor.at += 1;
            match cursor.star(args) {
                Some(width) => {
                    self.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        self.flags.minus = true;
                        self.flags.zero = false;
                    }
                }
                None => self.text("%!(BADWIDTH)"),
            }
            cursor.after_index = false;
        } else {
            self.flags.width = cursor.number();
            if cursor.after_index && self.flags.width.is_some() {
                cursor.good_index = false;
            }
        }
    }

    fn precision(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) {
        if cursor.byte() != Some(b'.') || cursor.at + 1 >= cursor.format.len() {
            return;
        }
        cursor.at += 1;
        if cursor.after_index {
            cursor.good_index = false;
        }
        cursor.after_index = cursor.index(args.len());
        if cursor.byte() == Some(b'*') {
            cursor.at += 1;
            self.flags.precision = cursor.star(args).and_then(|precision| usize::try_from(precision).ok());
            if self.flags.precision.is_none() {
                self.text("%!(BADPREC)");
            }
            cursor.after_index = false;
        } else {
            self.flags.precision = Some(cursor.number().unwrap_or(0));
        }
    }
}
