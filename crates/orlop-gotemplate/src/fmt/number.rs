//! Numbers under verbs.

use super::Printer;
use crate::strconv::{Layout, push_float};
use crate::text::{RUNE_ERROR, is_print, push_rune, quote_rune_into};
use crate::value::Value;

impl Printer {
    /// An integer, given as its magnitude and sign.
    pub(super) fn integer(
        &mut self,
        value: &Value,
        magnitude: u64,
        negative: bool,
        signed: bool,
        verb: char,
    ) {
        match verb {
            'v' if self.flags.sharp_v && !signed => self.hex_number(magnitude),
            'v' | 'd' => self.integer_in(magnitude, negative, 10, verb, false),
            'b' => self.integer_in(magnitude, negative, 2, verb, false),
            'o' | 'O' => self.integer_in(magnitude, negative, 8, verb, false),
            'x' => self.integer_in(magnitude, negative, 16, verb, false),
            'X' => self.integer_in(magnitude, negative, 16, verb, true),
            'c' | 'q' | 'U' => {
                let code = if negative { magnitude.wrapping_neg() } else { magnitude };
                self.character(code, verb);
            }
            _ => self.bad_verb(verb, value),
        }
    }

    /// `0x…`, whatever the flags say about it.
    pub(super) fn hex_number(&mut self, number: u64) {
        let sharp = std::mem::replace(&mut self.flags.sharp, true);
        self.integer_in(number, false, 16, 'v', false);
        self.flags.sharp = sharp;
    }

    pub(super) fn integer_in(&mut self, magnitude: u64, negative: bool, base: u64, verb: char, upper: bool) {
        let flags = self.flags;
        let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let mut wanted = 0;
        if let Some(precision) = flags.precision {
            wanted = precision;
            if precision == 0 && magnitude == 0 {
                // Nothing to print but the padding.
                let zero = std::mem::replace(&mut self.flags.zero, false);
                self.padding(flags.width.unwrap_or(0));
                self.flags.zero = zero;
                return;
            }
        } else if flags.zero
            && !flags.minus
            && let Some(width) = flags.width
        {
            let sign = usize::from(negative || flags.plus || flags.space);
            wanted = width.saturating_sub(sign);
        }
        // Right to left, then turned around.
        let mut shown = Vec::with_capacity(24);
        let mut rest = magnitude;
        loop {
            shown.push(digits[(rest % base) as usize]);
            rest /= base;
            if rest == 0 {
                break;
            }
        }
        if shown.len() < wanted {
            shown.resize(wanted, b'0');
        }
        if flags.sharp {
            match base {
                2 => shown.extend_from_slice(b"b0"),
                8 if shown.last() != Some(&b'0') => shown.push(b'0'),
                16 => shown.extend_from_slice(if upper { b"X0" } else { b"x0" }),
                _ => {}
            }
        }
        if verb == 'O' {
            shown.extend_from_slice(b"o0");
        }
        if negative {
            shown.push(b'-');
        } else if flags.plus {
            shown.push(b'+');
        } else if flags.space {
            shown.push(b' ');
        }
        shown.reverse();
        self.pad_spaces(&shown);
    }

    fn character(&mut self, code: u64, verb: char) {
        let rune = u32::try_from(code).ok().filter(|rune| *rune <= 0x10_FFFF);
        let mut shown = Vec::new();
        match verb {
            'c' => {
                push_rune(&mut shown, rune.unwrap_or(RUNE_ERROR));
                self.pad(&shown);
            }
            'q' => {
                quote_rune_into(&mut shown, rune.unwrap_or(RUNE_ERROR), self.flags.plus);
                self.pad(&shown);
            }
            _ => {
                let precision = self.flags.precision.unwrap_or(4).max(4);
                shown.extend_from_slice(format!("U+{code:0precision$X}").as_bytes());
                if self.flags.sharp
                    && let Some(rune) = rune.filter(|rune| is_print(*rune))
                {
                    shown.extend_from_slice(b" '");
                    push_rune(&mut shown, rune);
                    shown.push(b'\'');
                }
                self.pad_spaces(&shown);
            }
        }
    }

    pub(super) fn float(&mut self, value: &Value, float: f64, single: bool, verb: char) {
        let (layout, precision) = match verb {
            'v' | 'g' | 'G' => (Layout::Shortest, None),
            'b' => (Layout::Binary, None),
            'x' | 'X' => (Layout::Hex, None),
            'f' | 'F' => (Layout::Fixed, Some(6)),
            'e' | 'E' => (Layout::Exponent, Some(6)),
            _ => return self.bad_verb(verb, value),
        };
        let precision = self.flags.precision.or(precision);
        let mut shown = Vec::with_capacity(24);
        push_float(&mut shown, float, layout, precision, single);
        if matches!(verb, 'G' | 'E' | 'X') && float.is_finite() {
            shown.make_ascii_uppercase();
        }
        if !matches!(shown[0], b'-' | b'+') {
            shown.insert(0, b'+');
        }
        let flags = self.flags;
        if flags.space && shown[0] == b'+' && !flags.plus {
            shown[0] = b' ';
        }
        if !float.is_finite() {
            let bare = float.is_nan() && !flags.space && !flags.plus;
            // An infinity keeps its plus sign.
            return self.pad_spaces(&shown[usize::from(bare)..]);
        }
        if flags.sharp && verb != 'b' {
            keep_point(&mut shown, verb, precision);
        }
        if !flags.plus && shown[0] == b'+' {
            return self.pad(&shown[1..]);
        }
        if flags.zero
            && !flags.minus
            && let Some(width) = flags.width.filter(|width| *width > shown.len())
        {
            self.out.push(shown[0]);
            self.padding(width - shown.len());
            self.out.extend_from_slice(&shown[1..]);
            return;
        }
        self.pad(&shown);
    }

    pub(super) fn complex(&mut self, value: &Value, re: f64, im: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(verb, value);
        }
        self.out.push(b'(');
        self.float(value, re, false, verb);
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(value, im, false, verb);
        self.flags.plus = plus;
        self.out.extend_from_slice(b"i)");
    }
}

/// The sharp flag: a decimal point always, and the zeros that `%g` drops.
fn keep_point(shown: &mut Vec<u8>, verb: char, precision: Option<usize>) {
    let mut digits = match verb {
        'v' | 'g' | 'G' | 'x' => precision.map_or(6, |p| i64::try_from(p).unwrap_or(i64::MAX)),
        _ => 0,
    };
    let hex = matches!(verb, 'x' | 'X');
    let (mut point, mut nonzero) = (false, false);
    let mut end = shown.len();
    for (i, b) in shown.iter().enumerate().skip(1) {
        match b {
            b'.' => point = true,
            b'p' | b'P' => {
                end = i;
                break;
            }
            b'e' | b'E' if !hex => {
                end = i;
                break;
            }
            _ => {
                nonzero |= *b != b'0';
                digits -= i64::from(nonzero);
            }
        }
    }
    let tail = shown.split_off(end);
    if !point {
        if shown.len() == 2 && shown[1] == b'0' {
            digits -= 1;
        }
        shown.push(b'.');
    }
    shown.resize(shown.len() + usize::try_from(digits).unwrap_or(0), b'0');
    shown.extend_from_slice(&tail);
}
