//! Versions and constraints with the rules of Masterminds/semver.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

const CONSTRAINT_MAX: usize = 512;
const GROUPS_MAX: usize = 32;
const OPS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
const VERSION: &str = concat!(
    r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?",
    r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
);

fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

static ONE: LazyLock<Option<Regex>> = LazyLock::new(|| compile(&format!(r"^\s*({OPS})\s*({VERSION})\s*$")));
static RANGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile(&format!(r"\s*({VERSION})\s+-\s+({VERSION})\s*")));
static FIND: LazyLock<Option<Regex>> = LazyLock::new(|| compile(&format!(r"({OPS})\s*({VERSION})")));
static VALID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile(&format!(r"^(\s*({OPS})\s*({VERSION})\s*)((?:\s+|,\s*)({OPS})\s*({VERSION})\s*)*$"))
});

/// A version; parts that were left out are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first number
    pub major: u64,
    /// The second number
    pub minor: u64,
    /// The third number
    pub patch: u64,
    /// What follows a dash
    pub prerelease: String,
    /// What follows a plus
    pub metadata: String,
    /// The text it was read from
    pub original: String,
}

impl Version {
    /// Reads a version leniently: a leading `v` and one or two numbers are enough.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "invalid semantic version".to_owned();
        let body = text.strip_prefix('v').unwrap_or(text);
        let (body, metadata) = match body.split_once('+') {
            Some((body, metadata)) => (body, Some(metadata)),
            None => (body, None),
        };
        let (numbers, prerelease) = match body.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (body, None),
        };
        let parts: Vec<&str> = numbers.split('.').collect();
        if parts.len() > 3 || parts.iter().any(|p| p.is_empty() || !p.bytes().all(|b| b.is_ascii_digit())) {
            return Err(invalid());
        }
        let words = |text: &str| {
            text.split('.')
                .all(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
        };
        if !prerelease.is_none_or(words) || !metadata.is_none_or(words) {
            return Err(invalid());
        }
        let number =
            |at: usize| parts.get(at).map_or(Ok(0), |part| part.parse::<u64>().map_err(|_| invalid()));
        Ok(Self {
            major: number(0)?,
            minor: number(1)?,
            patch: number(2)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// The order of versions; metadata does not count.
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prerelease(&self.prerelease, &other.prerelease),
            }
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_prerelease(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) => match (x.parse::<u64>(), y.parse::<u64>()) {
                (Ok(x), Ok(y)) => x.cmp(&y),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => x.cmp(y),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// What `semverCompare` checks a version against: any group of which all hold.
#[derive(Clone, Debug)]
pub struct Constraints {
    groups: Vec<Vec<Constraint>>,
}

#[derive(Clone, Debug)]
struct Constraint {
    op: String,
    version: Version,
    /// Something was left out or wild.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

impl Constraints {
    /// Reads groups separated by `||`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > CONSTRAINT_MAX {
            return Err(format!("constraint string is too long (max {CONSTRAINT_MAX} bytes)"));
        }
        let text = rewrite_ranges(text);
        let parts: Vec<&str> = text.split("||").collect();
        if parts.len() > GROUPS_MAX {
            return Err(format!("too many constraint groups (max {GROUPS_MAX})"));
        }
        let groups = parts.into_iter().map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }

    /// Whether the version satisfies them; a prerelease only where the group names one.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            let prereleases = group.iter().any(|constraint| !constraint.version.prerelease.is_empty());
            (prereleases || version.prerelease.is_empty()) && group.iter().all(|c| c.check(version))
        })
    }
}

fn improper(text: &str) -> String {
    let shown = orlop_gotemplate::fmt::sprintf(b"improper constraint: %q", &[text.into()]);
    String::from_utf8_lossy(&shown).into_owned()
}

fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    if let Some(range) = RANGE.as_ref() {
        for captures in range.captures_iter(text) {
            let part = |at: usize| captures.get(at).map_or("", |m| m.as_str());
            out = out.replacen(part(0), &format!(">= {}, <= {} ", part(1), part(11)), 1);
        }
    }
    out
}

fn group(text: &str) -> Result<Vec<Constraint>, String> {
    if !VALID.as_ref().is_some_and(|valid| valid.is_match(text)) {
        return Err(improper(text));
    }
    let found: Vec<&str> =
        FIND.as_ref().map(|find| find.find_iter(text).map(|m| m.as_str()).collect()).unwrap_or_default();
    found.into_iter().map(constraint).collect()
}

fn constraint(text: &str) -> Result<Constraint, String> {
    let captures = ONE.as_ref().and_then(|one| one.captures(text)).ok_or_else(|| improper(text))?;
    let part = |at: usize| captures.get(at).map_or("", |m| m.as_str());
    let wild = |at: usize| matches!(part(at).trim_start_matches('.'), "" | "x" | "X" | "*");
    let (major, minor, pre) = (part(3), part(4), part(6));
    let (source, dirty, minor_dirty, patch_dirty) = if wild(3) {
        (format!("0.0.0{pre}"), true, false, false)
    } else if wild(4) {
        (format!("{major}.0.0{pre}"), true, true, false)
    } else if wild(5) {
        (format!("{major}{minor}.0{pre}"), true, false, true)
    } else {
        (part(2).to_owned(), false, false, false)
    };
    let version = Version::parse(&source).map_err(|_| "constraint parser error".to_owned())?;
    Ok(Constraint { op: part(1).to_owned(), version, dirty, minor_dirty, patch_dirty })
}

impl Constraint {
    fn check(&self, v: &Version) -> bool {
        let c = &self.version;
        let order = v.compare(c);
        match self.op.as_str() {
            "!=" => self.not_equal(v),
            ">" if !self.dirty => order.is_gt(),
            ">" => match v.major.cmp(&c.major) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal if self.minor_dirty => false,
                Ordering::Equal if self.patch_dirty => v.minor > c.minor,
                Ordering::Equal => order.is_gt(),
            },
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" if !self.dirty => order.is_le(),
            "<=" | "=<" => {
                v.major <= c.major && (v.major < c.major || v.minor <= c.minor || self.minor_dirty)
            }
            "~" | "~>" => self.tilde(v),
            "^" => self.caret(v),
            _ if self.dirty => self.tilde(v),
            _ => order.is_eq(),
        }
    }

    fn not_equal(&self, v: &Version) -> bool {
        let c = &self.version;
        if !self.dirty {
            return !v.compare(c).is_eq();
        }
        if v.major != c.major {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if v.minor != c.minor {
            return true;
        }
        if self.patch_dirty {
            return v.prerelease != c.prerelease;
        }
        v.patch != c.patch || !v.compare(c).is_eq()
    }

    fn tilde(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c).is_lt() {
            return false;
        }
        if (c.major, c.minor, c.patch) == (0, 0, 0) && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        v.major == c.major && (v.minor == c.minor || self.minor_dirty)
    }

    fn caret(&self, v: &Version) -> bool {
        let c = &self.version;
        if v.compare(c).is_lt() {
            return false;
        }
        if c.major > 0 || self.minor_dirty {
            return v.major == c.major;
        }
        if v.major > 0 {
            return false;
        }
        if c.minor > 0 || self.patch_dirty {
            return v.minor == c.minor;
        }
        v.minor == 0 && v.patch == c.patch
    }
}
