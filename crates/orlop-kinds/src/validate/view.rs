//! The vocabulary of the validators: a value together with its path, and a report that collects mistakes.

use super::golang;
use orlop_schema::field::{Fault, FieldError, Path, go_quote};
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::quantity::Quantity;
use orlop_schema::{ip, names};
use serde_json::Value;

static NULL: Value = Value::Null;

/// A value and where it stands; a missing value is null, and reads as the zero value of whatever is asked.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: Path,
}

impl<'a> At<'a> {
    /// The whole object.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: Path::root() }
    }

    /// The same value, said to stand elsewhere.
    pub(crate) fn named(&self, path: Path) -> Self {
        Self { value: self.value, path }
    }

    /// The field `key`.
    pub(crate) fn get(&self, key: &str) -> Self {
        Self { value: self.value.get(key).unwrap_or(&NULL), path: self.path.child(key) }
    }

    /// A field some levels down, keys separated by dots.
    pub(crate) fn down(&self, keys: &str) -> Self {
        keys.split('.').fold(self.clone(), |at, key| at.get(key))
    }

    /// The value of a map under `key`, with the path `path[key]`.
    pub(crate) fn key(&self, key: &str) -> Self {
        Self { value: self.value.get(key).unwrap_or(&NULL), path: self.path.key(key) }
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Vec<Self> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(i, value)| Self { value, path: self.path.index(i) }).collect()
    }

    /// The entries of a map, in the order of their keys.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        self.value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, value)| (k.as_str(), Self { value, path: self.path.key(k) }))
            .collect()
    }

    /// The strings of a list.
    pub(crate) fn strings(&self) -> Vec<&'a str> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The text, or nothing.
    pub(crate) fn str(&self) -> &'a str {
        self.value.as_str().unwrap_or("")
    }

    /// The number, or 0.
    pub(crate) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    /// The number, if there is one.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    /// Whether there is a value at all.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether the text, list or map is empty or missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the text, list or map.
    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::String(s) => s.len(),
            Value::Array(a) => a.len(),
            Value::Object(o) => o.len(),
            _ => 0,
        }
    }

    /// The quantity, if it can be read; numbers are accepted too.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        match self.value {
            Value::String(text) => Quantity::parse(text).ok(),
            Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// The field must be given.
    pub(crate) fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(&self.path, detail)
    }

    /// The field may not be given.
    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(&self.path, detail)
    }

    /// The value is wrong; it is quoted as it is.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(&self.path, self.value, detail)
    }

    /// The value is wrong; a missing one is quoted as the empty text.
    pub(crate) fn invalid_str(&self, detail: impl Into<String>) -> FieldError {
        self.invalid_with(go_quote(self.str()), detail)
    }

    /// The number is wrong; a missing one is quoted as 0.
    pub(crate) fn invalid_int(&self, detail: impl Into<String>) -> FieldError {
        self.invalid_with(self.int().to_string(), detail)
    }

    /// The value is wrong, and quoted as the caller spells it.
    pub(crate) fn invalid_with(&self, quoted: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::with_value(Fault::Invalid, &self.path, Some(quoted.into()), detail)
    }

    /// The value is wrong, and quoted as the Go structure it is in the API server.
    pub(crate) fn invalid_as(&self, kind: &'static str, detail: impl Into<String>) -> FieldError {
        self.invalid_with(golang::print(kind, self.value), detail)
    }

    /// Something is wrong here, and no value is quoted.
    pub(crate) fn invalid_bare(&self, detail: impl Into<String>) -> FieldError {
        FieldError::with_value(Fault::Invalid, &self.path, None, detail)
    }

    /// The text is none of the supported ones.
    pub(crate) fn unsupported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(&self.path, &Value::String(self.str().to_owned()), supported)
    }

    /// The structure is none of the supported ones.
    pub(crate) fn unsupported_as(&self, kind: &'static str, supported: &[&str]) -> FieldError {
        let mut error = self.unsupported(supported);
        error.value = Some(golang::print(kind, self.value));
        error
    }

    /// The value stands twice.
    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(&self.path, self.value)
    }

    /// The text stands twice; a missing one is quoted as the empty text.
    pub(crate) fn duplicate_str(&self) -> FieldError {
        FieldError::duplicate(&self.path, &Value::String(self.str().to_owned()))
    }

    /// What the text refers to does not exist.
    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::not_found(&self.path, &Value::String(self.str().to_owned()))
    }

    /// The text is too long.
    pub(crate) fn too_long(&self, max: usize) -> FieldError {
        FieldError::too_long(&self.path, max)
    }

    /// The list has too many items.
    pub(crate) fn too_many(&self, max: usize) -> FieldError {
        FieldError::too_many(&self.path, self.len(), max)
    }
}

/// The mistakes found so far, in the order in which the API server finds them.
#[derive(Debug, Default)]
pub(crate) struct Report(pub(crate) Vec<FieldError>);

/// The words for a number below zero.
pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";
/// The words for a field that changed but may not.
pub(crate) const IMMUTABLE: &str = "field is immutable";

impl Report {
    pub(crate) fn add(&mut self, error: FieldError) {
        self.0.push(error);
    }

    pub(crate) fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.0.extend(errors);
    }

    /// Adds the error when the condition holds.
    pub(crate) fn when(&mut self, condition: bool, error: impl FnOnce() -> FieldError) {
        if condition {
            self.0.push(error());
        }
    }

    /// The text is wrong in each of these ways.
    pub(crate) fn each(&mut self, at: &At<'_>, wrong: Vec<String>) {
        self.extend(wrong.into_iter().map(|detail| at.invalid_str(detail)));
    }

    /// The number is wrong in each of these ways.
    pub(crate) fn each_int(&mut self, at: &At<'_>, wrong: Vec<String>) {
        self.extend(wrong.into_iter().map(|detail| at.invalid_int(detail)));
    }

    /// The text, list or map may not be empty; says whether it is.
    pub(crate) fn required(&mut self, at: &At<'_>) -> bool {
        let empty = at.is_empty();
        self.when(empty, || at.required(""));
        empty
    }

    /// Several fields below may not be empty.
    pub(crate) fn all_required(&mut self, at: &At<'_>, keys: &[&str]) {
        for key in keys {
            self.required(&at.get(key));
        }
    }

    /// An RFC 1123 label.
    pub(crate) fn label(&mut self, at: &At<'_>) {
        self.each(at, names::dns1123_label(at.str()));
    }

    /// An RFC 1123 label that may not be missing.
    pub(crate) fn required_label(&mut self, at: &At<'_>) {
        if !self.required(at) {
            self.label(at);
        }
    }

    /// An RFC 1123 subdomain.
    pub(crate) fn subdomain(&mut self, at: &At<'_>) {
        self.each(at, names::dns1123_subdomain(at.str()));
    }

    /// An RFC 1123 subdomain that may not be missing.
    pub(crate) fn required_subdomain(&mut self, at: &At<'_>) {
        if !self.required(at) {
            self.subdomain(at);
        }
    }

    /// A qualified name.
    pub(crate) fn qualified(&mut self, at: &At<'_>) {
        self.each(at, names::qualified_name(at.str()));
    }

    /// One of the supported texts; says whether it is.
    pub(crate) fn one_of(&mut self, at: &At<'_>, supported: &[&str]) -> bool {
        let fine = supported.contains(&at.str());
        self.when(!fine, || at.unsupported(supported));
        fine
    }

    /// One of the supported texts, if there is one.
    pub(crate) fn optional_one_of(&mut self, at: &At<'_>, supported: &[&str]) {
        if at.is_set() {
            self.one_of(at, supported);
        }
    }

    /// One of the supported texts, which may not be missing.
    pub(crate) fn required_one_of(&mut self, at: &At<'_>, supported: &[&str]) {
        if !self.required(at) {
            self.one_of(at, supported);
        }
    }

    /// One of the supported texts; a missing one is required, an empty one is just wrong.
    pub(crate) fn given_one_of(&mut self, at: &At<'_>, supported: &[&str]) {
        if at.is_set() {
            self.one_of(at, supported);
        } else {
            self.add(at.required(""));
        }
    }

    /// A number that is not negative.
    pub(crate) fn non_negative(&mut self, at: &At<'_>) {
        self.when(at.int() < 0, || at.invalid_int(NEGATIVE));
    }

    /// Several numbers below that are not negative.
    pub(crate) fn all_non_negative(&mut self, at: &At<'_>, keys: &[&str]) {
        for key in keys {
            self.non_negative(&at.get(key));
        }
    }

    /// A number above zero.
    pub(crate) fn positive(&mut self, at: &At<'_>) {
        self.when(at.int() <= 0, || at.invalid_int("must be greater than zero"));
    }

    /// A port number.
    pub(crate) fn port(&mut self, at: &At<'_>) {
        self.each_int(at, names::port_number(at.int()));
    }

    /// A port number or a port name.
    pub(crate) fn port_or_name(&mut self, at: &At<'_>) {
        if at.value.is_string() {
            self.each(at, names::port_name(at.str()));
        } else {
            self.port(at);
        }
    }

    /// A map of labels.
    pub(crate) fn labels(&mut self, at: &At<'_>) {
        self.extend(labels::labels(&at.path, at.value));
    }

    /// A map of annotations.
    pub(crate) fn annotations(&mut self, at: &At<'_>) {
        self.extend(labels::annotations(&at.path, at.value));
    }

    /// A label selector.
    pub(crate) fn selector(&mut self, at: &At<'_>, options: SelectorOptions) {
        self.extend(labels::selector(&at.path, at.value, options));
    }

    /// An IP address.
    pub(crate) fn ip(&mut self, at: &At<'_>, accepted_before: &[&str]) {
        self.extend(ip::address(&at.path, at.str(), accepted_before));
    }

    /// A network.
    pub(crate) fn cidr(&mut self, at: &At<'_>, accepted_before: &[&str]) {
        self.extend(ip::cidr(&at.path, at.str(), accepted_before));
    }

    /// A field that may not change; its value is quoted as JSON.
    pub(crate) fn immutable(&mut self, new: &At<'_>, old: &At<'_>) {
        self.when(!same(new.value, old.value), || new.invalid(IMMUTABLE));
    }

    /// A text that may not change.
    pub(crate) fn immutable_str(&mut self, new: &At<'_>, old: &At<'_>) {
        self.when(new.str() != old.str(), || new.invalid_str(IMMUTABLE));
    }

    /// A structure that may not change.
    pub(crate) fn immutable_as(&mut self, kind: &'static str, new: &At<'_>, old: &At<'_>) {
        self.when(!same(new.value, old.value), || new.invalid_as(kind, IMMUTABLE));
    }

    /// A whole number or a percentage, not negative.
    pub(crate) fn count_or_percent(&mut self, at: &At<'_>) {
        if at.value.is_string() {
            self.each(at, names::percent(at.str()));
        } else {
            self.non_negative(at);
        }
    }

    /// A percentage of at most 100.
    pub(crate) fn at_most_100_percent(&mut self, at: &At<'_>) {
        let above = percent(at).is_some_and(|value| value > 100);
        self.when(above, || at.invalid("must not be greater than 100%"));
    }

    /// A path such as `example.com/foo`.
    pub(crate) fn domain_prefixed_path(&mut self, at: &At<'_>) {
        let text = at.str();
        if self.required(at) {
            return;
        }
        match text.split_once('/') {
            Some((host, path)) if !host.is_empty() && !path.is_empty() => {
                for wrong in names::dns1123_subdomain(host) {
                    self.add(at.invalid_with(go_quote(host), wrong));
                }
                if !names::is_http_path(path) {
                    let words = names::pattern("Invalid path", names::HTTP_PATH_FMT, &[]);
                    self.add(at.invalid_with(go_quote(path), words));
                }
            }
            _ => self.add(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")),
        }
    }

    /// A path below the current directory.
    pub(crate) fn descending_path(&mut self, at: &At<'_>) {
        self.when(at.str().starts_with('/'), || at.invalid("must be a relative path"));
        self.no_backsteps(at);
    }

    /// A path below the current directory that does not begin with dots.
    pub(crate) fn unreserved_path(&mut self, at: &At<'_>) {
        self.descending_path(at);
        let text = at.str();
        self.when(text.starts_with("..") && !text.starts_with("../"), || {
            at.invalid("must not start with '..'")
        });
    }

    /// A path without `..`.
    pub(crate) fn no_backsteps(&mut self, at: &At<'_>) {
        self.when(at.str().split('/').any(|part| part == ".."), || at.invalid("must not contain '..'"));
    }
}

/// The number of a percentage.
pub(crate) fn percent(at: &At<'_>) -> Option<i64> {
    let digits = at.value.as_str()?.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(i64::MAX))
}

/// The number, or the number of the percentage.
pub(crate) fn count_or_percent(at: &At<'_>) -> i64 {
    percent(at).unwrap_or_else(|| at.number().or_else(|| at.str().parse().ok()).unwrap_or(0))
}

/// Maps that are the same empty or missing.
const MAPS: [&str; 14] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "limits",
    "requests",
    "selector",
    "parameters",
    "data",
    "binaryData",
    "stringData",
    "hard",
    "capacity",
    "resources",
];

/// Whether two values are the same to the API server: a missing list or map is an empty one.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Array(list), Value::Null) | (Value::Null, Value::Array(list)) => list.is_empty(),
        (Value::Object(a), Value::Object(b)) => {
            let within = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
                a.iter().all(|(key, value)| {
                    let other = b.get(key).unwrap_or(&Value::Null);
                    let empty =
                        |v: &Value| v.is_null() || v.as_object().is_some_and(serde_json::Map::is_empty);
                    same(value, other) || (MAPS.contains(&key.as_str()) && empty(value) && empty(other))
                })
            };
            within(a, b) && within(b, a)
        }
        _ => a == b,
    }
}

/// The error Go's JSON decoder has for text that should be an object; none when it is one, or `null`.
pub(crate) fn go_json_object_error(bytes: &[u8]) -> Option<String> {
    let kind = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(Value::String(_)) => "string",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Ok(Value::Array(_)) => "array",
        Err(error) => return Some(go_syntax_error(bytes, &error)),
    };
    Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
}

fn go_syntax_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let start: usize =
        bytes.split(|b| *b == b'\n').take(error.line().saturating_sub(1)).map(|l| l.len() + 1).sum();
    let at = (start + error.column().saturating_sub(1)).min(bytes.len().saturating_sub(1));
    let c = bytes.get(at).copied().map_or(' ', char::from);
    let c = if c == '\'' { "'\\''".to_owned() } else { format!("'{c}'") };
    if error.to_string().starts_with("trailing characters") {
        return format!("invalid character {c} after top-level value");
    }
    let before = bytes[..at].trim_ascii_end();
    let words = match before.last() {
        Some(b'{') => "looking for beginning of object key string",
        Some(b',') if before.contains(&b'{') => "looking for beginning of object key string",
        Some(b'"') if !before.contains(&b':') && before.contains(&b'{') => "after object key",
        Some(b'}' | b']') => "after top-level value",
        Some(b'"' | b'0'..=b'9') if before.contains(&b'{') => "after object key:value pair",
        Some(b'a'..=b'z') => return literal_error(before, &c),
        _ => "looking for beginning of value",
    };
    format!("invalid character {c} {words}")
}

fn literal_error(before: &[u8], c: &str) -> String {
    let word = before.rsplit(|b| !b.is_ascii_lowercase()).next().unwrap_or(&[]);
    for literal in ["true", "false", "null"] {
        if literal.as_bytes().starts_with(word)
            && let Some(next) = literal.get(word.len()..=word.len())
        {
            return format!("invalid character {c} in literal {literal} (expecting '{next}')");
        }
    }
    format!("invalid character {c} looking for beginning of value")
}
