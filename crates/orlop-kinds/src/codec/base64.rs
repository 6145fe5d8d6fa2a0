//! Base64 as Go's standard encoding reads and prints it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes of a text; line breaks are ignored. The error is Go's.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = (0u32, 0usize);
    let mut input = text.bytes().enumerate().filter(|(_, b)| !matches!(b, b'\r' | b'\n')).peekable();
    while let Some((at, byte)) = input.next() {
        if byte == b'=' {
            if group.1 < 2 {
                return Err(corrupt(at));
            }
            if group.1 == 2 {
                match input.next() {
                    Some((_, b'=')) => {}
                    Some((at, _)) => return Err(corrupt(at - 1)),
                    None => return Err(corrupt(text.len())),
                }
            }
            if let Some((at, _)) = input.next() {
                return Err(corrupt(at));
            }
            let bits = group.0 << (6 * (4 - group.1));
            out.extend_from_slice(&bits.to_be_bytes()[1..group.1]);
            return Ok(out);
        }
        let digit = ALPHABET.iter().position(|c| *c == byte).ok_or_else(|| corrupt(at))?;
        group = (group.0 << 6 | digit as u32, group.1 + 1);
        if group.1 == 4 {
            out.extend_from_slice(&group.0.to_be_bytes()[1..]);
            group = (0, 0);
        }
    }
    // Go names the first byte of the group that has no end.
    if group.1 == 0 { Ok(out) } else { Err(corrupt(text.len() - group.1)) }
}

/// The text of some bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_go() {
        for (text, bytes) in
            [("", &b""[..]), ("eA==", b"x"), ("eHk=", b"xy"), ("eHl6", b"xyz"), ("e\nHl6\r\n", b"xyz")]
        {
            assert_eq!(decode(text).as_deref(), Ok(bytes), "{text}");
        }
        assert_eq!(encode(b"xyzw"), "eHl6dw==");
        for (text, at) in
            [("a", 0), ("!!!!", 0), ("eA=", 3), ("eA==x", 4), ("eHl6e", 4), ("a===", 1), ("eA=AC", 2)]
        {
            assert_eq!(decode(text), Err(format!("illegal base64 data at input byte {at}")), "{text}");
        }
    }
}
