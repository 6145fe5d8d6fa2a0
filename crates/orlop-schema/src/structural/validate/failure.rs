//! Failures of checks, and how they become field errors.

use crate::field::{Fault, FieldError, Path};
use serde_json::Value;

/// One failed check.
#[derive(Debug)]
pub(super) struct Failure {
    /// Where, from the root of the validated value; `None` if the failure is about several checks.
    place: Option<String>,
    /// What `kube-openapi` says; equal messages are reported once.
    message: String,
    report: Report,
}

/// How a failure is reported.
#[derive(Debug)]
enum Report {
    Required,
    NotAllowed { value: Value, allowed: Vec<String> },
    TooLong(i64),
    TooMany { actual: i64, max: i64 },
    Type(Value),
    Invalid(Value),
}

impl Failure {
    fn new(place: &str, words: &str, report: Report) -> Self {
        Self { place: Some(place.to_owned()), message: format!("{place} in body {words}"), report }
    }

    /// The value has another type or format.
    pub(super) fn of_type(place: &str, wanted: &str, found: &str) -> Self {
        let words = format!("must be of type {wanted}: {}", crate::field::go_quote(found));
        Self::new(place, &words, Report::Type(Value::from(found)))
    }

    /// The value breaks a rule.
    pub(super) fn invalid(place: &str, value: Value, words: &str) -> Self {
        Self::new(place, words, Report::Invalid(value))
    }

    /// The schema itself makes no sense for the value.
    pub(super) fn stated(place: &str, value: Value, message: String) -> Self {
        Self { place: Some(place.to_owned()), message, report: Report::Invalid(value) }
    }

    /// The value is not one of an enumeration.
    pub(super) fn not_allowed(place: &str, value: &Value, allowed: &[Value]) -> Self {
        let spell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let allowed: Vec<String> = allowed.iter().map(spell).collect();
        let words = format!("should be one of [{}]", allowed.join(" "));
        Self::new(place, &words, Report::NotAllowed { value: value.clone(), allowed })
    }

    /// The string is too long.
    pub(super) fn too_long(place: &str, max: i64) -> Self {
        Self::new(place, &format!("should be at most {max} chars long"), Report::TooLong(max))
    }

    /// There are too many items or properties.
    pub(super) fn too_many(place: &str, actual: i64, max: i64, what: &str) -> Self {
        Self::new(place, &format!("should have at most {max} {what}"), Report::TooMany { actual, max })
    }

    /// A field is missing.
    pub(super) fn required(place: &str) -> Self {
        Self::new(place, "is required", Report::Required)
    }

    /// A field is not declared where none but declared ones may be.
    pub(super) fn forbidden_field(place: &str, name: &str) -> Self {
        let message = format!("{place}.{name} in body is a forbidden property");
        Self::stated(place, Value::from(name), message)
    }

    /// A failure that names its place only in its text.
    pub(super) fn whole(message: String) -> Self {
        Self { place: None, message, report: Report::Invalid(Value::from("")) }
    }

    fn into_error(self, prefix: Option<&Path>) -> FieldError {
        let root = || prefix.cloned().unwrap_or_else(|| Path::new("<nil>"));
        let path = match self.place.as_deref() {
            None | Some("" | ".") => root(),
            Some(place) => {
                let place = place.strip_prefix('.').unwrap_or(place);
                prefix.cloned().unwrap_or_default().child(place)
            }
        };
        match self.report {
            Report::Required => FieldError::required(&path, ""),
            Report::NotAllowed { value, allowed } => {
                let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
                FieldError::not_supported(&path, &value, &allowed)
            }
            Report::TooLong(max) => match usize::try_from(max) {
                Ok(max) => FieldError::too_long(&path, max),
                Err(_) => FieldError::with_value(Fault::TooLong, &path, None, "value is too long"),
            },
            Report::TooMany { actual, max } => {
                if let (Ok(actual), Ok(max)) = (usize::try_from(actual), usize::try_from(max)) {
                    FieldError::too_many(&path, actual, max)
                } else {
                    let actual = Some(actual.to_string());
                    FieldError::with_value(Fault::TooMany, &path, actual, "has too many items")
                }
            }
            Report::Type(value) => FieldError::type_invalid(&path, &value, self.message),
            Report::Invalid(value) => FieldError::invalid(&path, &value, self.message),
        }
    }
}

/// What came of some checks.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) failures: Vec<Failure>,
    /// How many checks there were and held; decides which alternative came closest.
    pub(super) matches: usize,
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self { failures: vec![failure], matches: 0 }
    }
}

impl Outcome {
    /// One check that held.
    pub(super) fn matched() -> Self {
        Self { failures: Vec::new(), matches: 1 }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn add(&mut self, failure: Failure) {
        if !self.failures.iter().any(|known| known.message == failure.message) {
            self.failures.push(failure);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.failures.into_iter().for_each(|failure| self.add(failure));
        self.matches += other.matches;
    }

    /// Merges the outcome of a check that applied to the value.
    pub(super) fn merge_check(&mut self, other: Self) {
        self.merge(other);
        self.matches += 1;
    }

    pub(super) fn into_errors(self, prefix: Option<&Path>) -> Vec<FieldError> {
        self.failures.into_iter().map(|failure| failure.into_error(prefix)).collect()
    }
}
