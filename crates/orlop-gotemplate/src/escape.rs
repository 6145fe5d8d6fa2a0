//! The escapers: HTML, JavaScript and URL queries.

use crate::text::{decode_rune, is_print};

/// `html`
pub(crate) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{FFFD}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(*other),
        }
    }
    out
}

/// `js`
pub(crate) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let mut width = 1;
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\'' => out.extend_from_slice(b"\\'"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'<' => out.extend_from_slice(b"\\u003C"),
            b'>' => out.extend_from_slice(b"\\u003E"),
            b'&' => out.extend_from_slice(b"\\u0026"),
            b'=' => out.extend_from_slice(b"\\u003D"),
            0x00..0x20 => out.extend_from_slice(format!("\\u00{byte:02X}").as_bytes()),
            0x20..0x80 => out.push(byte),
            _ => {
                let rune;
                (rune, width) = decode_rune(rest);
                if is_print(rune) {
                    out.extend_from_slice(&rest[..width]);
                } else {
                    out.extend_from_slice(format!("\\u{rune:04X}").as_bytes());
                }
            }
        }
        rest = &rest[width..];
    }
    out
}

/// `urlquery`
pub(crate) fn url_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            b' ' => out.push(b'+'),
            other => out.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    out
}
