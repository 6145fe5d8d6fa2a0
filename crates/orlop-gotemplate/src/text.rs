//! Byte strings the way Go sees them: runes decoded leniently, and Go's quoted literals.

use std::fmt::Write as _;

/// What Go reads where the bytes are no UTF-8.
pub(crate) const RUNE_ERROR: u32 = 0xFFFD;

/// The first rune of `bytes` and its width; a broken byte is `RUNE_ERROR` of width 1.
pub(crate) fn decode_rune(bytes: &[u8]) -> (u32, usize) {
    let Some(&first) = bytes.first() else { return (RUNE_ERROR, 0) };
    if first < 0x80 {
        return (u32::from(first), 1);
    }
    let width = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return (RUNE_ERROR, 1),
    };
    match bytes.get(..width).and_then(|b| std::str::from_utf8(b).ok()).and_then(|s| s.chars().next()) {
        Some(c) => (u32::from(c), width),
        None => (RUNE_ERROR, 1),
    }
}

/// How many runes there are.
pub(crate) fn rune_count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        return bytes.len();
    }
    let (mut rest, mut count) = (bytes, 0);
    while !rest.is_empty() {
        rest = &rest[decode_rune(rest).1..];
        count += 1;
    }
    count
}

/// How many lines end in the text.
pub(crate) fn newlines(text: &[u8]) -> usize {
    text.iter().map(|b| usize::from(*b == b'\n')).sum()
}

/// Appends a rune as UTF-8; what is no rune becomes the replacement character.
pub(crate) fn push_rune(out: &mut Vec<u8>, rune: u32) {
    let c = char::from_u32(rune).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_print(rune: u32) -> bool {
    if rune < 0x80 {
        return (0x20..0x7F).contains(&rune);
    }
    let Some(c) = char::from_u32(rune) else { return false };
    // Rust's debug escaping knows the same table; the letter in front keeps marks unescaped.
    let mut pair = [b'a'; 5];
    let len = 1 + c.encode_utf8(&mut pair[1..]).len();
    std::str::from_utf8(&pair[..len]).is_ok_and(|s| s.escape_debug().nth(1) == Some(c))
}

/// Go's `unicode.IsLetter` or `unicode.IsDigit`, or an underscore: what identifiers are made of.
pub(crate) fn is_alphanumeric(rune: u32) -> bool {
    if rune < 0x80 {
        return rune == u32::from(b'_') || (rune as u8).is_ascii_alphanumeric();
    }
    char::from_u32(rune).is_some_and(|c| c.is_alphanumeric())
}

/// Appends a double-quoted Go literal.
pub(crate) fn quote_into(out: &mut Vec<u8>, text: &[u8], ascii_only: bool) {
    out.push(b'"');
    let mut rest = text;
    while !rest.is_empty() {
        let (rune, width) = decode_rune(rest);
        if width == 1 && rune == RUNE_ERROR {
            push_hex(out, b"\\x", u32::from(rest[0]), 2);
        } else {
            escape_rune(out, rune, b'"', ascii_only);
        }
        rest = &rest[width..];
    }
    out.push(b'"');
}

/// A double-quoted Go literal as text.
pub(crate) fn quote(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote_into(&mut out, text, false);
    lossy(&out)
}

/// Appends a single-quoted Go character literal.
pub(crate) fn quote_rune_into(out: &mut Vec<u8>, rune: u32, ascii_only: bool) {
    let rune = if char::from_u32(rune).is_some() { rune } else { RUNE_ERROR };
    out.push(b'\'');
    escape_rune(out, rune, b'\'', ascii_only);
    out.push(b'\'');
}

/// Whether a raw string literal could hold the text unchanged on one line.
pub(crate) fn can_backquote(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let (rune, width) = decode_rune(rest);
        rest = &rest[width..];
        let fine = if width > 1 {
            rune != 0xFEFF
        } else {
            rune != RUNE_ERROR && (rune >= 0x20 || rune == 0x09) && rune != u32::from(b'`') && rune != 0x7F
        };
        if !fine {
            return false;
        }
    }
    true
}

/// The text of bytes for an error message.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Go's `%#U`: the code point, and the character where it can be seen.
pub(crate) fn code_point(rune: Option<u32>) -> String {
    let Some(rune) = rune else { return "U+FFFFFFFFFFFFFFFF".to_owned() };
    let mut out = format!("U+{rune:04X}");
    if is_print(rune)
        && let Some(c) = char::from_u32(rune)
    {
        let _ = write!(out, " '{c}'");
    }
    out
}

/// Go's `strconv.Unquote` for double-quoted and raw literals, quotes included; `None` is a syntax error.
pub(crate) fn unquote(literal: &[u8]) -> Option<Vec<u8>> {
    let (&open, rest) = literal.split_first()?;
    let (&close, body) = rest.split_last()?;
    if open != close {
        return None;
    }
    if open == b'`' {
        return Some(body.iter().copied().filter(|b| *b != b'\r').collect());
    }
    let (mut out, mut rest) = (Vec::with_capacity(body.len()), body);
    while let Some(&first) = rest.first() {
        if first == b'\n' {
            return None;
        }
        let (rune, multibyte, tail) = unquote_char(rest, open)?;
        if rune < 0x80 || !multibyte {
            out.push(rune as u8);
        } else {
            push_rune(&mut out, rune);
        }
        rest = tail;
    }
    Some(out)
}

/// One character of a literal: its rune, whether it stands for UTF-8, and what follows.
pub(crate) fn unquote_char(text: &[u8], quote: u8) -> Option<(u32, bool, &[u8])> {
    let &first = text.first()?;
    if first == quote {
        return None;
    }
    if first >= 0x80 {
        let (rune, width) = decode_rune(text);
        return Some((rune, true, &text[width..]));
    }
    if first != b'\\' {
        return Some((u32::from(first), false, &text[1..]));
    }
    let &escape = text.get(1)?;
    let rest = &text[2..];
    let simple = |rune: u8| Some((u32::from(rune), false, rest));
    match escape {
        b'a' => simple(0x07),
        b'b' => simple(0x08),
        b'f' => simple(0x0C),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(0x0B),
        b'\\' => simple(b'\\'),
        b'\'' | b'"' if escape == quote => simple(escape),
        b'x' | b'u' | b'U' => {
            let digits = match escape {
                b'x' => 2,
                b'u' => 4,
                _ => 8,
            };
            let value = parse_digits(rest.get(..digits)?, 16)?;
            if escape != b'x' && char::from_u32(value).is_none() {
                return None;
            }
            Some((value, escape != b'x', &rest[digits..]))
        }
        b'0'..=b'7' => {
            let value = parse_digits(text.get(1..4)?, 8)?;
            (value <= 255).then_some((value, false, &text[4..]))
        }
        _ => None,
    }
}

fn parse_digits(digits: &[u8], radix: u32) -> Option<u32> {
    digits.iter().try_fold(0u32, |value, b| {
        let digit = char::from(*b).to_digit(radix)?;
        Some(value.wrapping_mul(radix).wrapping_add(digit))
    })
}

fn push_hex(out: &mut Vec<u8>, prefix: &[u8], value: u32, digits: u32) {
    out.extend_from_slice(prefix);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * place) & 0xF) as usize]);
    }
}

fn escape_rune(out: &mut Vec<u8>, rune: u32, quote: u8, ascii_only: bool) {
    if rune == u32::from(quote) || rune == u32::from(b'\\') {
        out.extend_from_slice(&[b'\\', rune as u8]);
    } else if is_print(rune) && (rune < 0x80 || !ascii_only) {
        push_rune(out, rune);
    } else {
        match rune {
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            0x0A => out.extend_from_slice(b"\\n"),
            0x0D => out.extend_from_slice(b"\\r"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0B => out.extend_from_slice(b"\\v"),
            0x00..0x20 | 0x7F => push_hex(out, b"\\x", rune, 2),
            0x80..0x1_0000 => push_hex(out, b"\\u", rune, 4),
            _ => push_hex(out, b"\\U", rune, 8),
        }
    }
}
