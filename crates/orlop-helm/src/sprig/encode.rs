//! Base64, base32 and checksums.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use orlop_gotemplate::{Func, Type, Value};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};

use super::{func, text};

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) fn functions() -> Vec<(&'static str, Func)> {
    vec![
        ("b64enc", func(&[Type::Str], Type::Str, |args| Ok(STANDARD.encode(text(&args[0])).into()))),
        ("b64dec", func(&[Type::Str], Type::Str, |args| Ok(Value::from(decode64(text(&args[0])))))),
        ("b32enc", func(&[Type::Str], Type::Str, |args| Ok(Value::from(encode32(text(&args[0])))))),
        ("sha1sum", func(&[Type::Str], Type::Str, |args| Ok(digest(&SHA1_FOR_LEGACY_USE_ONLY, args)))),
        ("sha256sum", func(&[Type::Str], Type::Str, |args| Ok(digest(&SHA256, args)))),
        ("sha512sum", func(&[Type::Str], Type::Str, |args| Ok(digest(&SHA512, args)))),
        ("adler32sum", func(&[Type::Str], Type::Str, |args| Ok(adler32(text(&args[0])).to_string().into()))),
    ]
}

fn digest(algorithm: &'static Algorithm, args: &[Value]) -> Value {
    let sum = ring::digest::digest(algorithm, text(&args[0]));
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

/// Bits that the last symbol has too many are dropped, as Go does.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Go skips line ends, and says where the text stops being base64.
fn decode64(encoded: &[u8]) -> Vec<u8> {
    if let Some(at) = first_illegal(encoded) {
        return format!("illegal base64 data at input byte {at}").into_bytes();
    }
    let clean: Vec<u8> = encoded.iter().copied().filter(|b| !is_line_end(*b)).collect();
    LENIENT.decode(&clean).unwrap_or_default()
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Where Go stops, four symbols at a time.
fn first_illegal(encoded: &[u8]) -> Option<usize> {
    let mut at = 0;
    let skip = |mut at: usize| {
        while encoded.get(at).is_some_and(|b| is_line_end(*b)) {
            at += 1;
        }
        at
    };
    loop {
        let mut symbols = 0;
        while symbols < 4 {
            let Some(&byte) = encoded.get(at) else {
                return (symbols > 0).then(|| at - symbols);
            };
            at += 1;
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => symbols += 1,
                byte if is_line_end(byte) => {}
                b'=' if symbols >= 2 => {
                    if symbols == 2 {
                        at = skip(at);
                        match encoded.get(at) {
                            None => return Some(encoded.len()),
                            Some(b'=') => at += 1,
                            Some(_) => return Some(at - 1),
                        }
                    }
                    at = skip(at);
                    return (at < encoded.len()).then_some(at);
                }
                _ => return Some(at - 1),
            }
        }
    }
}

fn encode32(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut group = [0u8; 8];
        group[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(group);
        let symbols = (chunk.len() * 8).div_ceil(5);
        for place in 0..8 {
            let index = (bits >> (35 - 5 * place) & 31) as usize;
            out.push(if place < symbols { BASE32[index] } else { b'=' });
        }
    }
    out
}
