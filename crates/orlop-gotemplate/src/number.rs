//! Number literals: one constant may be an integer, a float and a complex number at once.

use crate::ast::Pos;
use crate::text::{lossy, quote, unquote_char};
use crate::value::Str;

/// A constant with every reading its text allows.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) pos: Pos,
    pub(crate) text: Str,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

impl Number {
    fn empty(pos: Pos, text: &[u8]) -> Self {
        Self { pos, text: Str::from(text), int: None, uint: None, float: None, complex: None }
    }

    /// A character constant, quotes included.
    pub(crate) fn character(pos: Pos, text: &[u8]) -> Result<Self, String> {
        let Some((rune, _, tail)) = unquote_char(&text[1..], b'\'') else {
            return Err("invalid syntax".to_owned());
        };
        if tail != b"'" {
            return Err(format!("malformed character constant: {}", lossy(text)));
        }
        let mut number = Self::empty(pos, text);
        number.int = Some(i64::from(rune));
        number.uint = Some(u64::from(rune));
        number.float = Some(f64::from(rune));
        Ok(number)
    }

    /// `1+2i`.
    pub(crate) fn complex(pos: Pos, text: &[u8]) -> Result<Self, String> {
        let split =
            text.iter().enumerate().skip(1).rfind(|(i, b)| {
                matches!(b, b'+' | b'-') && !matches!(text[i - 1], b'e' | b'E' | b'p' | b'P')
            });
        let Some((split, _)) = split else { return Err("syntax error scanning complex number".to_owned()) };
        let (real, imaginary) = (&text[..split], &text[split..text.len() - 1]);
        match (parse_float(real), parse_float(imaginary)) {
            (Ok(re), Ok(im)) => {
                let mut number = Self::empty(pos, text);
                number.set_complex(re, im);
                Ok(number)
            }
            _ => Err("syntax error scanning complex number".to_owned()),
        }
    }

    /// Anything else that looks like a number.
    pub(crate) fn plain(pos: Pos, text: &[u8]) -> Result<Self, String> {
        let mut number = Self::empty(pos, text);
        if let Some(body) = text.strip_suffix(b"i")
            && let Ok(im) = parse_float(body)
        {
            number.set_complex(0.0, im);
            return Ok(number);
        }
        number.uint = parse_uint(text);
        number.int = parse_int(text);
        if number.int == Some(0) && number.uint.is_none() {
            number.uint = Some(0);
        }
        if let Some(int) = number.int {
            number.float = Some(int as f64);
        } else if let Some(uint) = number.uint {
            number.float = Some(uint as f64);
        } else if let Ok(float) = parse_float(text) {
            if !text.iter().any(|b| b".eEpP".contains(b)) {
                return Err(format!("integer overflow: {}", quote(text)));
            }
            number.float = Some(float);
            number.int = float_to_int(float);
            number.uint = float_to_uint(float);
        }
        if number.int.is_none() && number.uint.is_none() && number.float.is_none() {
            return Err(format!("illegal number syntax: {}", quote(text)));
        }
        Ok(number)
    }

    /// Whether the constant without a wanted type is a float.
    pub(crate) fn reads_as_float(&self) -> bool {
        let text: &[u8] = &self.text;
        let hex_int = matches!(text, [b'0', b'x' | b'X', _, ..]) && !text.iter().any(|b| b"pP".contains(b));
        let rune = text.first() == Some(&b'\'');
        self.float.is_some() && !hex_int && !rune && text.iter().any(|b| b".eEpP".contains(b))
    }

    fn set_complex(&mut self, re: f64, im: f64) {
        self.complex = Some((re, im));
        if im == 0.0 {
            self.float = Some(re);
            self.int = float_to_int(re);
            self.uint = float_to_uint(re);
        }
    }
}

#[expect(clippy::float_cmp, reason = "only an integral float has an exact integer")]
fn float_to_int(float: f64) -> Option<i64> {
    let int = float as i64;
    (int as f64 == float && float < 2f64.powi(63)).then_some(int)
}

#[expect(clippy::float_cmp, reason = "only an integral float has an exact integer")]
fn float_to_uint(float: f64) -> Option<u64> {
    let uint = float as u64;
    (float >= 0.0 && uint as f64 == float && float < 2f64.powi(64)).then_some(uint)
}

/// Go's `strconv.ParseInt(text, 0, 64)`.
pub(crate) fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let value = parse_uint(digits)?;
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Go's `strconv.ParseUint(text, 0, 64)`.
pub(crate) fn parse_uint(text: &[u8]) -> Option<u64> {
    let (radix, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (2, rest),
        [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (8, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        rest => (10, rest),
    };
    if digits.is_empty() || (digits.contains(&b'_') && !underscores_ok(text)) {
        return None;
    }
    let mut value = 0u64;
    for b in digits.iter().filter(|b| **b != b'_') {
        let digit = char::from(*b).to_digit(radix)?;
        value = value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Go's `strconv.ParseFloat(text, 64)` with the underscores that literals may have.
pub(crate) fn parse_float(text: &[u8]) -> Result<f64, ()> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let hex = matches!(body, [b'0', b'x' | b'X', ..]);
    if body.contains(&b'_') && !underscores_ok(body) {
        return Err(());
    }
    let clean: Vec<u8> = body.iter().copied().filter(|b| *b != b'_').collect();
    let value = if hex {
        parse_hex_float(&clean[2..]).ok_or(())?
    } else {
        if !clean.iter().all(|b| b.is_ascii_digit() || b".eE+-".contains(b))
            || !clean.iter().any(u8::is_ascii_digit)
        {
            return Err(());
        }
        std::str::from_utf8(&clean).map_err(|_| ())?.parse::<f64>().map_err(|_| ())?
    };
    if value.is_infinite() {
        return Err(());
    }
    Ok(if negative { -value } else { value })
}

/// `1.8p3` after its `0x`; the exponent is required.
fn parse_hex_float(text: &[u8]) -> Option<f64> {
    let split = text.iter().position(|b| matches!(b, b'p' | b'P'))?;
    let (digits, exponent) = (&text[..split], &text[split + 1..]);
    let exponent: i64 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
    let (mut mantissa, mut scale, mut seen, mut point) = (0u64, 0i64, false, false);
    for b in digits {
        if *b == b'.' {
            if point {
                return None;
            }
            point = true;
            continue;
        }
        let digit = u64::from(char::from(*b).to_digit(16)?);
        seen = true;
        if mantissa < 1 << 58 {
            mantissa = mantissa << 4 | digit;
            scale -= if point { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0);
            scale += if point { 0 } else { 4 };
        }
    }
    let exponent = (exponent + scale).clamp(-2400, 2400) as i32;
    // Two steps, because the power alone may leave the range of a float.
    let half = exponent / 2;
    seen.then(|| mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

/// Go's rule: underscores only between digits, or after a base prefix.
fn underscores_ok(text: &[u8]) -> bool {
    let body = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let (mut before, rest, hex) = match body {
        [b'0', p @ (b'x' | b'X' | b'b' | b'B' | b'o' | b'O'), rest @ ..] => {
            (b'0', rest, matches!(p, b'x' | b'X'))
        }
        rest => (b'^', rest, false),
    };
    for b in rest {
        if b.is_ascii_digit() || (hex && b.is_ascii_hexdigit()) {
            before = b'0';
        } else if *b == b'_' {
            if before != b'0' {
                return false;
            }
            before = b'_';
        } else {
            if before == b'_' {
                return false;
            }
            before = b'!';
        }
    }
    before != b'_'
}
