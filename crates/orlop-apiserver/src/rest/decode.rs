//! From the bytes of a body to an object in the request's version, checked as strictly as asked for.

use super::Call;
use crate::kind::{Kind, Source};
use crate::negotiate::{self, BUILT_IN, CUSTOM};
use crate::object;
use crate::options::FieldValidation;
use crate::route::api_version;
use crate::status::ApiError;
use crate::yaml;
use orlop_kinds::catalog::{TypeId, catalog};
use orlop_kinds::{codec, json, protobuf};
use serde_json::{Value, json};

/// What a body is supposed to be.
#[derive(Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) rules: Rules<'a>,
}

/// Who knows the structure of a body.
#[derive(Clone, Copy)]
pub(super) enum Rules<'a> {
    Type(TypeId),
    Custom(&'a Kind),
}

impl<'a> Expected<'a> {
    pub(super) fn of(kind: &'a Kind) -> Self {
        let rules = match &kind.source {
            Source::BuiltIn(id) => Rules::Type(*id),
            Source::Custom(_) => Rules::Custom(kind),
        };
        Self { group: &kind.group, version: &kind.version, kind: &kind.kind, rules }
    }

    /// A built-in kind that is not the request's own, such as a `Scale`.
    pub(super) fn built_in(group: &'a str, version: &'a str, kind: &'a str) -> Result<Self, ApiError> {
        let id = catalog().type_of(group, version, kind).ok_or_else(|| {
            ApiError::internal(&format!("no type for {kind} in {}", api_version(group, version)))
        })?;
        Ok(Self { group, version, kind, rules: Rules::Type(id) })
    }

    fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

impl Call {
    /// The body as an object of the request's kind.
    pub(super) fn decode_body(&mut self, validation: FieldValidation) -> Result<Value, ApiError> {
        let kind = self.kind.clone();
        self.decode_as(Expected::of(&kind), validation)
    }

    /// The body as an object of some kind.
    pub(super) fn decode_as(
        &mut self,
        expected: Expected<'_>,
        validation: FieldValidation,
    ) -> Result<Value, ApiError> {
        let body = self.body.clone();
        let content_type = negotiate::content_type(self.content_type.as_deref()).to_owned();
        let (mut value, duplicates) = match content_type.as_str() {
            "application/json" => {
                let parsed =
                    json::parse(&body).map_err(|why| unrecognized(&expected, &why.to_string(), &body))?;
                let duplicates = parsed.strict_errors();
                (parsed.value, duplicates)
            }
            "application/yaml" => match yaml::parse(&body) {
                Ok(parsed) => parsed,
                Err(why) => return Err(unrecognized_with(&expected, &why, &hex_summary(&body))),
            },
            "application/vnd.kubernetes.protobuf" if matches!(expected.rules, Rules::Type(_)) => {
                match from_protobuf(&body) {
                    Ok(value) => (value, Vec::new()),
                    Err(why) => return Err(unrecognized_plain(&expected, &why, &body)),
                }
            }
            _ => {
                let accepted: &[&str] =
                    if matches!(expected.rules, Rules::Type(_)) { &BUILT_IN } else { &CUSTOM };
                return Err(ApiError::unsupported_media_type(accepted));
            }
        };
        if value.is_null() {
            value = json!({});
        }
        if !value.is_object() {
            return Err(unrecognized(&expected, &not_an_object(&value), &body));
        }
        let (object, unknown) = Self::decode_value(value, expected)?;
        let mut strict: Vec<String> = duplicates.into_iter().chain(unknown).collect();
        if let (true, Rules::Type(id), "application/json") =
            (strict.len() > 1, expected.rules, content_type.as_str())
        {
            // Several errors are reported in the order of the text.
            strict = codec::decode_json(id, &body).map_or(strict, |decoded| decoded.strict);
        }
        self.report_strict(strict, validation, &expected)?;
        Ok(object)
    }

    /// A value as an object of some kind, with the names of fields that do not belong.
    pub(super) fn decode_value(
        mut value: Value,
        expected: Expected<'_>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        if !value.is_object() && !value.is_null() {
            let why = not_an_object(&value);
            return Err(ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}")));
        }
        let (kind, version) =
            (object::text(&value, "kind").to_owned(), object::text(&value, "apiVersion").to_owned());
        match expected.rules {
            Rules::Type(id) => {
                check_built_in(&kind, &version, &expected)?;
                value["kind"] = expected.kind.into();
                value["apiVersion"] = expected.api_version().into();
                // An empty list means something here, though Go would not write it back.
                let resets_owners = value.pointer("/metadata/managedFields") == Some(&json!([]));
                let mut decoded =
                    codec::decode(id, value).map_err(|why| unusable(&expected, &why.to_string()))?;
                if resets_owners {
                    object::set_meta(&mut decoded.value, "managedFields", json!([]));
                }
                Ok((decoded.value, decoded.strict))
            }
            Rules::Custom(custom) => {
                if kind.is_empty() {
                    let why = format!("Object 'Kind' is missing in '{value}'");
                    return Err(unrecognized_plain(&expected, &why, value.to_string().as_bytes()));
                }
                if version != expected.api_version() {
                    return Err(ApiError::bad_request(format!(
                        "the API version in the data ({version}) does not match the expected API version ({})",
                        expected.api_version()
                    )));
                }
                custom.decode_custom(value).map_err(|why| unusable(&expected, &why))
            }
        }
    }

    /// Turns strict errors into a refusal, warnings, or nothing.
    pub(super) fn report_strict(
        &mut self,
        errors: Vec<String>,
        validation: FieldValidation,
        expected: &Expected<'_>,
    ) -> Result<(), ApiError> {
        match validation {
            FieldValidation::Strict if !errors.is_empty() => {
                Err(unusable(expected, &format!("strict decoding error: {}", errors.join(", "))))
            }
            FieldValidation::Warn => {
                for error in errors {
                    self.warn(error);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Reads a protobuf body into the JSON it stands for.
pub(super) fn from_protobuf(body: &[u8]) -> Result<Value, String> {
    let envelope = protobuf::open(body).map_err(|why| why.to_string())?;
    let (group, version) = envelope.api_version.rsplit_once('/').unwrap_or(("", &envelope.api_version));
    let id = catalog().type_of(group, version, &envelope.kind).ok_or_else(|| {
        format!("no kind \"{}\" is registered for version \"{}\"", envelope.kind, envelope.api_version)
    })?;
    protobuf::decode(id, &envelope).map_err(|why| why.to_string())
}

fn check_built_in(kind: &str, version: &str, expected: &Expected<'_>) -> Result<(), ApiError> {
    let wanted = expected.api_version();
    let (given_kind, given_version) = (
        if kind.is_empty() { expected.kind } else { kind },
        if version.is_empty() { &wanted } else { version },
    );
    if given_kind == expected.kind && given_version == wanted {
        return Ok(());
    }
    let (group, bare_version) = given_version.rsplit_once('/').unwrap_or(("", given_version));
    let why = if catalog().type_of(group, bare_version, given_kind).is_none() {
        format!(
            "no kind \"{given_kind}\" is registered for version \"{given_version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        )
    } else if given_kind == expected.kind {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({wanted})"
        )));
    } else {
        let internal = if expected.group.is_empty() {
            "core"
        } else {
            expected.group.split('.').next().unwrap_or_default()
        };
        format!(
            "converting ({bare_version}.{given_kind}) to ({internal}.{}): unknown conversion",
            expected.kind
        )
    };
    Err(ApiError::bad_request(format!(
        "{given_kind} in version \"{bare_version}\" cannot be handled as a {}: {why}",
        expected.kind
    )))
}

fn unusable(expected: &Expected<'_>, why: &str) -> ApiError {
    let (kind, version) = (expected.kind, expected.version);
    ApiError::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

fn unrecognized(expected: &Expected<'_>, why: &str, body: &[u8]) -> ApiError {
    let why = format!("couldn't get version/kind; json parse error: {why}");
    unrecognized_with(expected, &why, &hex_summary(body))
}

fn unrecognized_plain(expected: &Expected<'_>, why: &str, body: &[u8]) -> ApiError {
    let text = String::from_utf8_lossy(body);
    let summary = if body.is_empty() { "<empty>".to_owned() } else { text.chars().take(30).collect() };
    unrecognized_with(expected, why, &summary)
}

fn unrecognized_with(expected: &Expected<'_>, why: &str, summary: &str) -> ApiError {
    let kind = expected.kind;
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

fn hex_summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let hex: String = body.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    if body.len() > SHOWN { format!("{hex} ...") } else { hex }
}

fn not_an_object(value: &Value) -> String {
    let what = match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        _ => "value",
    };
    format!(
        "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}
