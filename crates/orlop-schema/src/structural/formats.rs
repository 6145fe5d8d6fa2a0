//! The formats of strings, as `kube-openapi` checks them. Other formats are annotations only.

use crate::ip::{Cidr, parse_lenient};
use regex::Regex;
use std::net::Ipv6Addr;
use std::sync::OnceLock;

/// A format that values are checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A format of strings.
    Text(TextFormat),
    /// A number that fits a type, by its name in schemas.
    Number(&'static str),
}

/// A format of strings: its name without dashes, and the check.
#[derive(Clone, Copy, Debug)]
pub struct TextFormat {
    name: &'static str,
    check: fn(&str) -> bool,
}

impl PartialEq for TextFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFormat {}

const TEXT_FORMATS: [TextFormat; 26] = [
    TextFormat { name: "bsonobjectid", check: |s| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()) },
    TextFormat { name: "uri", check: is_uri },
    TextFormat { name: "email", check: is_email },
    TextFormat { name: "hostname", check: is_hostname },
    TextFormat { name: "ipv4", check: |s| s.contains('.') && parse_lenient(s).is_some() },
    TextFormat { name: "ipv6", check: is_ipv6 },
    TextFormat { name: "cidr", check: |s| Cidr::parse_lenient(s).is_some() },
    TextFormat { name: "mac", check: is_mac },
    TextFormat { name: "uuid", check: |s| is_uuid(s, None, false) },
    TextFormat { name: "uuid3", check: |s| is_uuid(s, Some('3'), false) },
    TextFormat { name: "uuid4", check: |s| is_uuid(s, Some('4'), true) },
    TextFormat { name: "uuid5", check: |s| is_uuid(s, Some('5'), true) },
    TextFormat { name: "isbn", check: |s| is_isbn10(s) || is_isbn13(s) },
    TextFormat { name: "isbn10", check: is_isbn10 },
    TextFormat { name: "isbn13", check: is_isbn13 },
    TextFormat { name: "creditcard", check: is_credit_card },
    TextFormat { name: "ssn", check: is_ssn },
    TextFormat { name: "hexcolor", check: is_hex_color },
    TextFormat { name: "rgbcolor", check: is_rgb_color },
    TextFormat { name: "byte", check: is_base64 },
    TextFormat { name: "password", check: |_| true },
    TextFormat { name: "date", check: is_date },
    TextFormat { name: "duration", check: is_duration },
    TextFormat { name: "datetime", check: is_date_time },
    TextFormat { name: "k8sshortname", check: |s| s.len() <= 63 && is_name_segment(s) },
    TextFormat { name: "k8slongname", check: |s| s.len() <= 253 && s.split('.').all(is_name_segment) },
];

impl Format {
    /// The format called `name`, if values of these types are checked for it.
    pub fn known(types: &[&str], name: &str) -> Option<Self> {
        match (types, name) {
            ([] | ["string"] | [_, _, ..], _) => {
                let normal = name.replace('-', "");
                TEXT_FORMATS.iter().find(|format| format.name == normal).map(|format| Self::Text(*format))
            }
            (["integer"], "int32") => Some(Self::Number("int32")),
            (["integer"], "int64") => Some(Self::Number("int64")),
            (["number"], "float") => Some(Self::Number("float")),
            (["number"], "double") => Some(Self::Number("double")),
            _ => None,
        }
    }
}

impl TextFormat {
    /// Whether a string has the format.
    pub fn matches(self, text: &str) -> bool {
        (self.check)(text)
    }
}

fn matcher(cell: &'static OnceLock<Option<Regex>>, pattern: &str, text: &str) -> bool {
    cell.get_or_init(|| Regex::new(pattern).ok()).as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_name_segment(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

/// What Go's `url.ParseRequestURI` accepts: an absolute URI or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let (rest, _query) = rest.split_once('?').unwrap_or((rest, ""));
    if scheme.is_empty() && !rest.starts_with('/') {
        return false;
    }
    if !scheme.is_empty() && !rest.starts_with('/') {
        // An opaque URI such as `mailto:x` is not one that a request can have.
        return false;
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(tail) if !scheme.is_empty() || !rest.starts_with("///") => {
            let end = tail.find('/').unwrap_or(tail.len());
            (Some(&tail[..end]), &tail[end..])
        }
        _ => (None, rest),
    };
    authority.is_none_or(is_authority) && unescapes(path, |_| true)
}

/// The scheme and what follows it; `None` if the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' => return (index > 0).then(|| (&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    let user_is_plain = user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c));
    let port_is_plain = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let host_is_plain = if let Some(rest) = host.strip_prefix('[') {
        rest.rsplit_once(']')
            .is_some_and(|(_, port)| port.is_empty() || port.strip_prefix(':').is_some_and(port_is_plain))
    } else {
        let port = host.rfind(':').map_or("", |colon| &host[colon + 1..]);
        let allowed =
            |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
        port_is_plain(port) && host.chars().all(allowed) && unescapes(host, |byte| byte >= 0x80)
    };
    user_is_plain && unescapes(user, |_| true) && host_is_plain
}

/// Whether every percent sign begins an escape of an acceptable byte.
fn unescapes(text: &str, accept: fn(u8) -> bool) -> bool {
    text.split('%')
        .skip(1)
        .all(|rest| rest.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).is_some_and(accept))
}

/// What Go's `mail.ParseAddress` accepts: `user@domain`, perhaps with a name before it.
fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    if let Some(rest) = text.strip_suffix('>') {
        let Some((name, address)) = rest.rsplit_once('<') else { return false };
        return is_phrase(name.trim_matches([' ', '\t'])) && is_address(address);
    }
    is_address(text)
}

fn is_phrase(name: &str) -> bool {
    if name.len() >= 2 && name.starts_with('"') && name.ends_with('"') {
        return !name[1..name.len() - 1].contains('"');
    }
    name.split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .all(|word| word.split('.').all(|atom| atom.chars().all(is_atom_char)))
}

fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_dot_atom = |text: &str| {
        !text.is_empty() && text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
    };
    let quoted = local.len() > 2
        && local.starts_with('"')
        && local.ends_with('"')
        && !local[1..local.len() - 1].contains('"');
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']'));
    let domain_is_good =
        literal.map_or_else(|| is_dot_atom(domain), |ip| ip.parse::<std::net::IpAddr>().is_ok());
    (quoted || is_dot_atom(local)) && domain_is_good
}

fn is_atom_char(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn is_hostname(text: &str) -> bool {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|",
        r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
    );
    matcher(&REGEX, pattern, text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

fn is_ipv6(text: &str) -> bool {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.len() == text.len() && text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_hex = |part: &&str| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_hex)
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

/// Groups of 8, 4, 4, 4 and 12 hexadecimal digits; any dash between them may be left out.
fn is_uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let mut rest = text;
    let mut digits = String::new();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..length) else { return false };
        digits.push_str(group);
        rest = &rest[length..];
    }
    let at = |index: usize| digits.chars().nth(index);
    rest.is_empty()
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|version| at(12) == Some(version))
        && (!variant || at(16).is_some_and(|c| "89abAB".contains(c)))
}

/// A book number without spaces and dashes.
fn book_number(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let number = book_number(text);
    let Some((body, check)) = number.split_at_checked(9) else { return false };
    let check = match check {
        "X" => 10,
        check if check.len() == 1 => match check.parse() {
            Ok(digit) => digit,
            Err(_) => return false,
        },
        _ => return false,
    };
    let digits: Option<Vec<u32>> = body.chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = digits.iter().zip(1..).map(|(digit, place)| digit * place).sum();
        (sum + 10 * check).is_multiple_of(11)
    })
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = book_number(text).chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        digits.len() == 13
            && digits
                .iter()
                .zip([1, 3].into_iter().cycle())
                .map(|(d, f)| d * f)
                .sum::<u32>()
                .is_multiple_of(10)
    })
}

fn is_credit_card(text: &str) -> bool {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let pattern = concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|",
        "3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    );
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double >= 10 => double % 10 + 1,
            (_, double) => double,
        })
        .sum();
    matcher(&REGEX, pattern, &digits) && sum.is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    text.len() == 11 && matcher(&REGEX, "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$", text)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    let body = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let part_is_good = |part: &str| {
        let part = part.trim_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let plain = part == "0" || (!part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()));
        plain && part.parse::<u8>().is_ok()
    };
    body.is_some_and(|body| body.split(',').count() == 3 && body.split(',').all(part_is_good))
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u32>().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let pattern = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    let in_range = |range: std::ops::Range<usize>, most: &str| time.get(range).is_some_and(|t| t <= most);
    text.len() >= 4
        && is_date(date)
        && matcher(&REGEX, pattern, time)
        && in_range(0..2, "23")
        && in_range(3..5, "59")
        && in_range(6..8, "59")
}

/// A Go duration such as `1h30m`, or one in words such as `3 days`.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if body == "0" {
        return true;
    }
    let mut rest = body;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = &rest[..end];
        let plain = number.bytes().any(|b| b.is_ascii_digit()) && number.matches('.').count() <= 1;
        let unit_end = rest[end..]
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .map_or(rest.len(), |length| end + length);
        if !plain || !matches!(&rest[end..unit_end], "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = &rest[unit_end..];
    }
    !body.is_empty()
}

fn is_worded_duration(text: &str) -> bool {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let regex = REGEX.get_or_init(|| Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").ok());
    let Some(regex) = regex else { return false };
    let mut found = false;
    for part in regex.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        found |= UNITS.iter().any(|names| {
            let long = names.last().is_some_and(|name| unit.starts_with(name));
            long || names.contains(&unit.as_str())
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_what_kubernetes_accepts() {
        for (format, good, bad) in [
            ("date", &["2020-02-29"][..], &["2020-1-1", "2021-02-29", "2020-13-01", "x", ""][..]),
            (
                "date-time",
                &["2020-01-01T00:00:00Z", "2020-01-01t23:59:59.1+02:00"],
                &["2020-01-01", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"],
            ),
            ("duration", &["1h30m", "0", "-1.5s", "3 days", "22 ns"], &["", "x", "1", "1x"]),
            ("byte", &["aGVsbG8=", "aaaa"], &["", "a", "aaa", "====", "aGVs_G8="]),
            ("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "::1", "256.1.1.1"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.2.3.4", "x", "::1%eth0"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
            (
                "mac",
                &["01:02:03:04:05:06", "01-02-03-04-05-06", "0123.4567.89ab"],
                &["x", "01:02", "01:02-03:04:05:06"],
            ),
            (
                "uuid",
                &["11111111-2222-4333-8444-555555555555", "11111111222243338444555555555555"],
                &["1", "11111111-2222-4333-8444-55555555555z"],
            ),
            ("uuid4", &["11111111-2222-4333-8444-555555555555"], &["a3bb189e-8bf9-3888-9912-ace4e6543002"]),
            ("uuid3", &["a3bb189e-8bf9-3888-9912-ace4e6543002"], &["11111111-2222-4333-8444-555555555555"]),
            ("email", &["a@b.c", "A <a@b.c>", "\"x y\" <a@b>"], &["a", "a@", "@b", "a b@c", "a@b..c"]),
            ("hostname", &["a", "example.com", "a-b.example.org"], &["a.b.c", "a_b", "-a", "1.2.3.4", ""]),
            (
                "uri",
                &["https://a.b/c", "/x", "http://u:p@h:80/p?q#f", "http://[::1]:80/"],
                &["a b", "x", "", "mailto:x", ":x", "http://a b/", "/%zz"],
            ),
            ("isbn10", &["0-306-40615-2", "0 306 40615 2"], &["1", "0-306-40615-3"]),
            ("isbn13", &["978-0-306-40615-7"], &["978-0-306-40615-8", "1"]),
            ("isbn", &["0-306-40615-2", "9780306406157"], &["x"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111111111111112", "1"]),
            ("ssn", &["123-45-6789"], &["123456789", "x"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ff", "#ggg"]),
            ("rgbcolor", &["rgb(1,2,3)", "rgb( 0 , 255 , 3 )"], &["x", "rgb(1,2)", "rgb(256,1,1)"]),
            ("password", &["", "x"], &[]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f", "zz7f1f77bcf86cd799439011"]),
            ("k8s-short-name", &["abc", "a-1"], &["Abc", "a.b", "-a", ""]),
            ("k8s-long-name", &["abc.def"], &["Abc", "a..b"]),
        ] {
            let Some(Format::Text(check)) = Format::known(&["string"], format) else {
                panic!("{format} is not known")
            };
            for text in good {
                assert!(check.matches(text), "{format} should accept {text:?}");
            }
            for text in bad {
                assert!(!check.matches(text), "{format} should refuse {text:?}");
            }
        }
    }

    #[test]
    fn unknown_formats_are_not_checked() {
        for (types, name) in [
            (&["string"][..], "ip"),
            (&["integer"], "date"),
            (&["object"], "date"),
            (&["string"], "int32"),
            (&["string"], "k8s-resource-fully-qualified-name"),
        ] {
            assert_eq!(Format::known(types, name), None, "{types:?} {name}");
        }
    }
}
