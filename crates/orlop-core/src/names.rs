//! Names and labels that are the same every time and never too long.

/// The longest name of an object that becomes part of a host name or a label: a DNS label.
pub const LABEL_BYTES_MAX: usize = 63;
/// The longest name of most objects: a DNS subdomain.
pub const NAME_BYTES_MAX: usize = 253;
/// How many characters tell shortened names apart.
const HASH_CHARS: usize = 8;

/// A name for a child: the parts joined by dashes, at most [`LABEL_BYTES_MAX`] bytes. Characters that a name cannot
/// have become dashes. A name that had to be changed ends in a hash of the original, so that different parts give
/// different names.
pub fn child(parts: &[&str]) -> String {
    bounded(&parts.join("-"), LABEL_BYTES_MAX)
}

/// A name of at most `bytes_max` bytes, made as [`child`] makes it.
pub fn bounded(wanted: &str, bytes_max: usize) -> String {
    let bytes_max = bytes_max.max(HASH_CHARS + 2);
    let lower = wanted.to_ascii_lowercase();
    let allowed = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let cleaned: String = lower.chars().map(allowed).collect();
    let cleaned = cleaned.trim_matches('-');
    if cleaned == wanted && wanted.len() <= bytes_max && !wanted.is_empty() {
        return wanted.to_owned();
    }
    let hash = short_hash(wanted.as_bytes());
    let room = bytes_max - HASH_CHARS - 1;
    let kept = cleaned.get(..cleaned.len().min(room)).unwrap_or_default().trim_end_matches('-');
    if kept.is_empty() { format!("x-{hash}") } else { format!("{kept}-{hash}") }
}

/// A value for a label: `wanted` if it is one, else shortened and cleaned with a hash at its end.
pub fn label_value(wanted: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let is_value = wanted.len() <= LABEL_BYTES_MAX
        && wanted.chars().all(allowed)
        && ends(wanted.chars().next())
        && ends(wanted.chars().next_back());
    if is_value {
        return wanted.to_owned();
    }
    let cleaned: String = wanted.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let cleaned = cleaned.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let room = LABEL_BYTES_MAX - HASH_CHARS - 1;
    let kept = cleaned.get(..cleaned.len().min(room)).unwrap_or_default();
    let kept = kept.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let hash = short_hash(wanted.as_bytes());
    if kept.is_empty() { hash } else { format!("{kept}-{hash}") }
}

/// Eight characters that stand for some bytes: letters and digits without vowels, so that they spell nothing.
pub fn short_hash(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = fnv(bytes);
    let mut out = String::with_capacity(HASH_CHARS);
    for _ in 0..HASH_CHARS {
        let at = usize::try_from(hash % 27).unwrap_or_default();
        out.push(char::from(ALPHABET[at]));
        hash /= 27;
    }
    out
}

/// FNV-1a, with its bits mixed once more: the end of a text matters as much as its beginning.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn good_names_stay_as_they_are() {
        assert_eq!(child(&["web", "config"]), "web-config");
        assert_eq!(label_value("Some.Value_1"), "Some.Value_1");
        assert_eq!(label_value(""), "");
    }

    #[test]
    fn other_names_are_cleaned_and_told_apart() {
        let long = "a".repeat(80);
        let names =
            [child(&[&long, "x"]), child(&[&long, "y"]), child(&["A.b"]), child(&["a-b"]), child(&["---"])];
        for (n, name) in names.iter().enumerate() {
            assert!(name.len() <= LABEL_BYTES_MAX, "{name}");
            assert!(!names[..n].contains(name), "{name}");
        }
        assert!(names[2].starts_with("a-b-"), "{}", names[2]);
    }

    proptest! {
        #[test]
        fn every_name_is_a_name_and_the_same_each_time(wanted in ".{0,120}", bytes_max in 0_usize..80) {
            let name = bounded(&wanted, bytes_max);
            prop_assert_eq!(&name, &bounded(&wanted, bytes_max));
            prop_assert!(name.len() <= bytes_max.max(HASH_CHARS + 2));
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            prop_assert!(!name.is_empty() && name.chars().all(inner), "{}", name);
            prop_assert!(!name.starts_with('-') && !name.ends_with('-'), "{}", name);
        }

        #[test]
        fn every_label_value_is_one(wanted in ".{0,120}") {
            let value = label_value(&wanted);
            prop_assert!(value.len() <= LABEL_BYTES_MAX);
            prop_assert_eq!(&label_value(&value), &value);
        }
    }
}
