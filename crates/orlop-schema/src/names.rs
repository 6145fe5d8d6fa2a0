//! Names and other small text formats of the Kubernetes API, with the words the API server finds for a mistake.
//!
//! Every check returns the list of complaints; an empty list means the text is fine. Lengths are in bytes.

/// How a kind wants to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// An RFC 1123 subdomain such as `my.name`.
    Subdomain,
    /// An RFC 1123 label such as `my-name`.
    Label,
    /// An RFC 1035 label: like a label, but it begins with a letter.
    Label1035,
    /// Anything that can stand in a URL path.
    PathSegment,
    /// No rule of its own.
    Any,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn name(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => dns1123_subdomain(name),
            Self::Label => dns1123_label(name),
            Self::Label1035 => dns1035_label(name),
            Self::PathSegment => path_segment(name),
            Self::Any => Vec::new(),
        }
    }

    /// What is wrong with a `generateName`, to which a suffix will be appended.
    pub fn prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment_prefix(prefix),
            _ => self.name(&mask_trailing_dash(prefix)),
        }
    }
}

/// A prefix may end in a dash, because a suffix follows.
fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(head) if !head.is_empty() => {
            let cut = head.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &head[..cut])
        }
        _ => prefix.to_owned(),
    }
}

/// The complaint that a text is too long, counted in characters.
pub fn max_len(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// The complaint that a number is outside a range.
pub fn inclusive_range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// The complaint that a text does not match a pattern, with examples that do.
pub fn pattern(words: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{words} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Whether the text begins with `first`, ends with `last` and has only `middle` between.
fn shaped(
    text: &str,
    first: impl Fn(u8) -> bool,
    middle: impl Fn(u8) -> bool,
    last: impl Fn(u8) -> bool,
) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => first(*only),
        [head, body @ .., tail] => first(*head) && body.iter().all(|b| middle(*b)) && last(*tail),
    }
}

fn is_label(text: &str) -> bool {
    shaped(text, is_lower_alnum, |b| is_lower_alnum(b) || b == b'-', is_lower_alnum)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// What is wrong with an RFC 1123 label.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(max_len(63));
    }
    if !is_label(text) {
        if is_subdomain(text) {
            wrong.push("must not contain dots".to_owned());
        } else {
            wrong.push(pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL_FMT,
                &["my-name", "123-abc"],
            ));
        }
    }
    wrong
}

/// What is wrong with an RFC 1123 subdomain.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain_counting(text, "characters")
}

fn subdomain_counting(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(format!("must be no more than 253 {unit}"));
    }
    if !is_subdomain(text) {
        wrong.push(pattern(SUBDOMAIN_WORDS, SUBDOMAIN_FMT, &["example.com"]));
    }
    wrong
}

/// What is wrong with a subdomain that may contain underscores, as DNS search paths do.
pub fn dns1123_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(max_len(253));
    }
    let fine = text.split('.').all(|label| {
        let label = label.strip_prefix('_').unwrap_or(label);
        shaped(label, is_lower_alnum, |b| is_lower_alnum(b) || b == b'-' || b == b'_', is_lower_alnum)
    });
    if !fine {
        wrong.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    wrong
}

/// What is wrong with an RFC 1035 label.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(max_len(63));
    }
    if !shaped(text, |b| b.is_ascii_lowercase(), |b| is_lower_alnum(b) || b == b'-', is_lower_alnum) {
        wrong.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// What is wrong with a wildcard host such as `*.example.com`.
pub fn wildcard_dns1123_subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(max_len(253));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(pattern(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!("\\*\\.{SUBDOMAIN_FMT}"),
            &["*.example.com"],
        ));
    }
    wrong
}

const NAME_PART_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_PART_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn is_name_part(text: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_alphanumeric();
    shaped(text, alnum, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'), alnum)
}

/// What is wrong with a qualified name: a label key, an annotation key, a finalizer.
pub fn qualified_name(text: &str) -> Vec<String> {
    let words = || pattern(NAME_PART_WORDS, NAME_PART_FMT, &["MyName", "my.name", "123-abc"]);
    let mut wrong = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain_counting(prefix, "bytes").iter().map(|w| format!("prefix part {w}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                words()
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        wrong.push(format!("name part {}", words()));
    }
    wrong
}

/// What is wrong with a label value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_name_part(text) {
        wrong.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({NAME_PART_FMT})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// What is wrong with a name that stands in a URL path.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// What is wrong with the beginning of a name that will stand in a URL path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"].iter().filter(|c| text.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// What is wrong with a port number.
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// What is wrong with a number that must lie in a range.
pub fn in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) { Vec::new() } else { vec![inclusive_range(low, high)] }
}

/// What is wrong with a numeric user or group id.
pub fn user_id(id: i64) -> Vec<String> {
    in_range(id, 0, i64::from(i32::MAX))
}

/// What is wrong with a port name.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push(max_len(15));
    }
    if text.is_empty() || !text.bytes().all(|b| is_lower_alnum(b) || b == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// What is wrong with a percentage such as `30%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// What is wrong with the name of an HTTP header.
pub fn http_header_name(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![pattern(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// What is wrong with the name of an environment variable.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if text.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// What is wrong with a key of a ConfigMap or Secret.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(max_len(253));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        wrong.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// What is wrong with a C identifier.
pub fn c_identifier(text: &str) -> Vec<String> {
    let first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let rest = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if shaped(text, first, rest, rest) {
        return Vec::new();
    }
    vec![pattern(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// What is wrong with a decimal integer without leading zeros.
pub fn decimal_integer(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["must be non-empty".to_owned()];
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let fine = text == "0"
        || (digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() && !digits.starts_with('0'));
    if fine {
        return Vec::new();
    }
    vec!["must be a valid decimal integer in canonical form".to_owned()]
}

/// Whether all characters of an HTTP path are allowed.
pub fn is_http_path(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b))
}

/// The pattern that goes with [`is_http_path`].
pub const HTTP_PATH_FMT: &str = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_fine_and_names_that_are_not() {
        for (rule, name, complaints) in [
            (NameRule::Subdomain, "a.b-c.9", 0),
            (NameRule::Subdomain, "a..b", 1),
            (NameRule::Subdomain, "", 1),
            (NameRule::Label, "a.b", 1),
            (NameRule::Label, "-a", 1),
            (NameRule::Label1035, "9a", 1),
            (NameRule::PathSegment, "a:b", 0),
            (NameRule::PathSegment, "a/b%c", 2),
            (NameRule::PathSegment, "..", 1),
        ] {
            assert_eq!(rule.name(name).len(), complaints, "{name}");
        }
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        for (prefix, fine) in [("a-", true), ("ab-", true), ("-", false), ("a.", false)] {
            assert_eq!(NameRule::Subdomain.prefix(prefix).is_empty(), fine, "{prefix}");
        }
    }

    #[test]
    fn qualified_names_say_which_part_is_wrong() {
        assert!(qualified_name("example.com/My.Name_1").is_empty());
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("a/")[0], "name part must be non-empty");
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist"));
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-b").len(), 1);
    }

    #[test]
    fn a_pattern_is_quoted_with_its_examples() {
        assert_eq!(
            percent("10")[0],
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        );
    }
}
