//! Patching: four ways to compute the next state from the current one.

use super::Call;
use super::decode::Expected;
use super::render::Answer;
use super::write::{IfAbsent, Next, Ownership};
use crate::kind::{Kind, Source};
use crate::object;
use crate::options::{FieldValidation, WriteOptions, WriteVerb};
use crate::status::ApiError;
use crate::{negotiate, yaml};
use orlop_kinds::codec::{Touched, go_text};
use orlop_kinds::json as strict_json;
use orlop_merge::{json_merge, json_patch, strategic};
use orlop_schema::field::{Fault, FieldError, Path};
use serde_json::Value;

/// A patch as it came, parsed.
#[derive(Clone, Debug)]
pub(super) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Call {
    /// PATCH of an object or of a subresource that is written as a whole object.
    pub(super) async fn patch(&mut self, subresource: &str) -> Result<Answer, ApiError> {
        let (patch, options) = self.read_patch()?;
        let if_absent = if matches!(patch, Patch::Apply(_)) && subresource.is_empty() {
            IfAbsent::Create
        } else {
            IfAbsent::Refuse
        };
        let subresource_owned = subresource.to_owned();
        let retry_options = options.clone();
        let (object, created) = self
            .update_object(subresource, &options, if_absent, move |call, live| {
                call.patched(&patch, live, &subresource_owned, &retry_options)
            })
            .await?;
        Ok(Answer::Value(if created { 201 } else { 200 }, object))
    }

    /// Reads the patch and its options.
    pub(super) fn read_patch(&mut self) -> Result<(Patch, WriteOptions), ApiError> {
        let content_type = negotiate::content_type(self.content_type.as_deref()).to_owned();
        let is_apply = content_type == "application/apply-patch+yaml";
        let known = match content_type.as_str() {
            "application/json-patch+json" | "application/merge-patch+json" => true,
            "application/strategic-merge-patch+json" => self.kind.custom().is_none(),
            _ => is_apply,
        };
        if !known {
            if content_type == "application/strategic-merge-patch+json" {
                let accepted = [
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ];
                return Err(ApiError::unsupported_media_type(&accepted));
            }
            let error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            return Err(error.with_details(serde_json::json!({})));
        }
        let verb = if is_apply { WriteVerb::Apply } else { WriteVerb::Patch };
        let options = WriteOptions::parse(&self.query, verb)?;
        let patch = if is_apply {
            Patch::Apply(self.read_apply()?)
        } else {
            let parsed = strict_json::parse(&self.body).map_err(|why| {
                let message = if content_type == "application/json-patch+json" {
                    format!("error decoding patch: {why}")
                } else {
                    why.to_string()
                };
                ApiError::bad_request(message)
            })?;
            let (duplicates, value) = (parsed.strict_errors(), parsed.value);
            if !duplicates.is_empty() && content_type != "application/json-patch+json" {
                let kind = self.kind.clone();
                self.report_strict_patch(duplicates, &options, &kind.kind)?;
            }
            match content_type.as_str() {
                "application/json-patch+json" => Patch::Json(value),
                "application/merge-patch+json" => Patch::Merge(value),
                _ => Patch::Strategic(value),
            }
        };
        Ok((patch, options))
    }

    fn read_apply(&mut self) -> Result<Value, ApiError> {
        let (value, duplicates) = yaml::parse(&self.body).map_err(|why| {
            ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
        })?;
        self.strict = duplicates;
        match value {
            Value::Null => Ok(serde_json::json!({})),
            Value::Object(_) => Ok(value),
            other => {
                let what = match other {
                    Value::Array(_) => "array",
                    Value::String(_) => "string",
                    Value::Bool(_) => "bool",
                    _ => "number",
                };
                Err(ApiError::bad_request(format!(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} \
                     into Go value of type map[string]interface {{}}"
                )))
            }
        }
    }

    /// The next state: the patch on the current state, in the request's version, decoded and defaulted.
    pub(super) fn patched(
        &mut self,
        patch: &Patch,
        live: Option<&Value>,
        subresource: &str,
        options: &WriteOptions,
    ) -> Result<Next, ApiError> {
        let kind = self.kind.clone();
        let patched = match (patch, live) {
            (Patch::Apply(patch), live) => return self.applied(patch, live, subresource, options),
            (_, None) => return Err(self.not_found(&self.route.name)),
            (Patch::Json(patch), Some(live)) => {
                json_patch::apply(live.clone(), patch).map_err(json_patch_error)?
            }
            (Patch::Merge(patch), Some(live)) => {
                if !patch.is_object() {
                    return Err(ApiError::bad_request(format!(
                        "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                        json_type(patch)
                    )));
                }
                json_merge::apply(live.clone(), patch)
                    .map_err(|why| ApiError::bad_request(why.to_string()))?
            }
            (Patch::Strategic(patch), Some(live)) => strategic_patch(&kind, live, patch)?,
        };
        let mut object = self.decode_patched(patched, patch, options)?;
        self.check_name(&object)?;
        self.check_namespace(&mut object)?;
        kind.default(&mut object);
        Ok(Next { object, ownership: Ownership::Due, shown: None })
    }

    /// Decodes the result of a patch; what is wrong with it is the patch's fault.
    fn decode_patched(
        &mut self,
        patched: Value,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let kind = self.kind.clone();
        let expected = Expected::of(&kind);
        let quoted = patched.clone();
        let refuse = |why: &str| patch_refused(&kind, &quoted, patch, why);
        let (object, unknown) = Self::decode_value(patched, expected).map_err(|error| {
            let prefix = format!(
                "{} in version \"{}\" cannot be handled as a {}: ",
                kind.kind, kind.version, kind.kind
            );
            refuse(error.message().strip_prefix(&prefix).unwrap_or(error.message()))
        })?;
        if options.field_validation == FieldValidation::Strict && !unknown.is_empty() {
            return Err(refuse(&format!("strict decoding error: {}", unknown.join(", "))));
        }
        self.report_strict(unknown, options.field_validation, &expected)?;
        Ok(object)
    }

    fn report_strict_patch(
        &mut self,
        errors: Vec<String>,
        options: &WriteOptions,
        kind: &str,
    ) -> Result<(), ApiError> {
        match options.field_validation {
            FieldValidation::Strict => {
                let why = format!("strict decoding error: {}", errors.join(", "));
                let path = Path::new("patch");
                let body = String::from_utf8_lossy(&self.body).into_owned();
                let error = FieldError::with_value(
                    Fault::Invalid,
                    &path,
                    Some(orlop_schema::field::go_quote(&body)),
                    why,
                );
                Err(ApiError::invalid(&self.kind.group, kind, &self.route.name, &[error]))
            }
            FieldValidation::Warn => {
                for error in errors {
                    self.warn(error);
                }
                Ok(())
            }
            FieldValidation::Ignore => Ok(()),
        }
    }

    /// Server-side apply.
    fn applied(
        &mut self,
        patch: &Value,
        live: Option<&Value>,
        subresource: &str,
        options: &WriteOptions,
    ) -> Result<Next, ApiError> {
        let kind = self.kind.clone();
        let (given_kind, given_version) = (object::text(patch, "kind"), object::text(patch, "apiVersion"));
        if given_kind.is_empty() && given_version.is_empty() {
            return Err(ApiError::bad_request("invalid object type: /, Kind="));
        }
        if given_kind != kind.kind || given_version != kind.api_version() {
            let (group, version) = given_version.rsplit_once('/').unwrap_or(("", given_version));
            return Err(ApiError::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={given_kind}"
            )));
        }
        if live.is_none() && !object::meta_str(patch, "uid").is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object::meta_str(patch, "uid")
            );
            return Err(ApiError::conflict(&kind.group, &kind.plural, &self.route.name, &why));
        }
        let now = self.server.now();
        let manager = &options.field_manager;
        let mut object =
            kind.apply(&self.conversions, live, patch, options.force, manager, subresource, &now)?;
        if self.conversions.is_incomplete() {
            // This will be computed again.
            return Ok(Next { object, ownership: Ownership::Computed, shown: None });
        }
        match (options.field_validation, std::mem::take(&mut self.strict)) {
            (FieldValidation::Strict, errors) if !errors.is_empty() => {
                let why = format!(
                    "error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                    errors.join("\n  ")
                );
                return Err(ApiError::bad_request(format!("error strict decoding YAML: {why}")));
            }
            (FieldValidation::Warn, errors) => errors.into_iter().for_each(|error| self.warn(error)),
            _ => {}
        }
        if live.is_none() && object::meta_str(&object, "name").is_empty() {
            object::set_meta(&mut object, "name", self.route.name.as_str());
        }
        let (mut object, unknown) = Self::decode_value(object, Expected::of(&kind))?;
        self.report_strict(unknown, options.field_validation, &Expected::of(&kind))?;
        self.check_name(&object)?;
        self.check_namespace(&mut object)?;
        kind.default(&mut object);
        Ok(Next { object, ownership: Ownership::Computed, shown: None })
    }
}

fn strategic_patch(kind: &crate::kind::Kind, live: &Value, patch: &Value) -> Result<Value, ApiError> {
    if !patch.is_object() {
        return Err(ApiError::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(patch)
        )));
    }
    let ty = kind.strategic_type().ok_or_else(|| ApiError::internal("no schema for this kind"))?;
    strategic::apply(&ty, live.clone(), patch.clone()).map_err(strategic_error)
}

pub(super) fn strategic_error(error: strategic::StrategicError) -> ApiError {
    match error {
        strategic::StrategicError::BadRequest(why) => ApiError::bad_request(why),
        strategic::StrategicError::Unprocessable(why) => ApiError::new(422, "Invalid", why),
        other => ApiError::internal_plain(other.to_string()),
    }
}

pub(super) fn json_patch_error(error: json_patch::JsonPatchError) -> ApiError {
    match error {
        json_patch::JsonPatchError::TooManyOperations(_) => {
            ApiError::new(413, "RequestEntityTooLarge", error.to_string())
        }
        json_patch::JsonPatchError::Decode(_) => ApiError::bad_request(error.to_string()),
        _ => {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message).with_details(serde_json::json!({}))
        }
    }
}

/// 422 with the whole patched object in its text, as the real server gives it: no kind, no name.
fn patch_refused(kind: &Kind, patched: &Value, patch: &Patch, why: &str) -> ApiError {
    let pointers;
    let touched = match patch {
        Patch::Merge(patch) => Touched::Like(patch),
        Patch::Json(operations) => {
            pointers = touched_by(operations);
            Touched::Like(&pointers)
        }
        Patch::Strategic(_) | Patch::Apply(_) => Touched::Everything,
    };
    let text = match &kind.source {
        Source::BuiltIn(id) => go_text(*id, patched, touched),
        Source::Custom(_) => patched.to_string(),
    };
    let quoted = orlop_schema::field::go_quote(&text);
    let error = FieldError::with_value(Fault::Invalid, &Path::new("patch"), Some(quoted), why);
    ApiError::invalid("", "", "", &[error])
}

/// The shape of what JSON patch operations went through.
fn touched_by(operations: &Value) -> Value {
    let mut shape = serde_json::json!({});
    for operation in operations.as_array().into_iter().flatten() {
        for pointer in ["path", "from"].into_iter().filter_map(|name| operation.get(name)?.as_str()) {
            let mut here = &mut shape;
            let parts: Vec<&str> = pointer.split('/').skip(1).collect();
            for part in &parts[..parts.len().saturating_sub(1)] {
                let name = part.replace("~1", "/").replace("~0", "~");
                here = here
                    .as_object_mut()
                    .expect("only objects are made here")
                    .entry(name)
                    .or_insert_with(|| serde_json::json!({}));
            }
        }
    }
    shape
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        _ => "null",
    }
}
