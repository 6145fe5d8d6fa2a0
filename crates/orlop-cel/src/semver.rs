//! Semantic versions: reading, with or without normalisation, and precedence.

use std::cmp::Ordering;

/// A version `major.minor.patch[-pre][+build]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    pub(crate) numbers: [u64; 3],
    pre: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Semver {
    /// Reads a strict version; on failure says why in the words of the original.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let number = |what: &str, text: &str| -> Result<u64, String> {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!(
                    "Invalid character(s) found in {what} number {}",
                    orlop_schema::field::go_quote(text)
                ));
            }
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "{} number must not contain leading zeroes {}",
                    capital(what),
                    orlop_schema::field::go_quote(text)
                ));
            }
            text.parse().map_err(|_| format!("strconv.ParseUint: parsing \"{text}\": value out of range"))
        };
        let numbers = [number("major", major)?, number("minor", minor)?, number("patch", patch)?];
        let mut found = Self { numbers, pre: Vec::new() };
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            found.pre.push(Part::parse(part)?);
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    orlop_schema::field::go_quote(part)
                ));
            }
        }
        Ok(found)
    }

    /// Reads a version after dropping a leading `v` and leading zeros and adding missing numbers.
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                let bare = trimmed.is_empty() || !trimmed.starts_with(|c: char| c.is_ascii_digit());
                *part = if bare { format!("0{trimmed}") } else { trimmed.to_owned() };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Precedence; build data does not count.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        })
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    orlop_schema::field::go_quote(text)
                ));
            }
            return text.parse().map(Part::Number).map_err(|_| "value out of range".to_owned());
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(format!(
                "Invalid character(s) found in prerelease {}",
                orlop_schema::field::go_quote(text)
            ));
        }
        Ok(Part::Word(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.2.3",
            "1.10.0",
        ];
        for pair in order.windows(2) {
            let (left, right) = (Semver::parse(pair[0]).unwrap(), Semver::parse(pair[1]).unwrap());
            assert_eq!(left.compare(&right), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn normalisation_fills_in() {
        for (text, strict, normal) in [
            ("v1.2", false, true),
            ("1.2.3", true, true),
            ("01.02.3", false, true),
            ("x", false, false),
            ("1.2-a", false, false),
        ] {
            assert_eq!(Semver::parse(text).is_ok(), strict, "{text}");
            assert_eq!(Semver::parse_normalized(text).is_ok(), normal, "{text}");
        }
    }
}
