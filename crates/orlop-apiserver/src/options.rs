//! The options of a request (`CreateOptions`, `PatchOptions`, `ListOptions`, …), read from query or body and
//! checked as Kubernetes checks them.

use crate::route::Query;
use crate::status::ApiError;
use orlop_merge::Force;
use orlop_schema::field::{Fault, FieldError, Path};
use serde_json::{Value, json};

/// The longest field manager.
const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// What happens to fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped with a warning.
    Warn,
    /// They are an error.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// Whether the write is only tried.
    pub dry_run: bool,
    /// Who owns the fields; empty means that the user agent says so.
    pub field_manager: String,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    /// For apply.
    pub force: Force,
    /// The fields as they came, for reviews.
    given: Value,
}

/// The verb whose options are read; errors name its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    /// `CreateOptions`.
    Create,
    /// `UpdateOptions`.
    Update,
    /// `PatchOptions` of a patch that is not an apply.
    Patch,
    /// `PatchOptions` of an apply.
    Apply,
}

impl WriteOptions {
    /// Reads and checks the options of a write.
    pub(crate) fn parse(query: &Query, verb: WriteVerb) -> Result<Self, ApiError> {
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let field_manager = query.get("fieldManager").unwrap_or_default();
        let validation = query.get("fieldValidation").unwrap_or_default();
        let force = query.get("force");
        let mut errors = Vec::new();
        let manager_path = Path::new("fieldManager");
        match (verb, force) {
            (WriteVerb::Apply, _) if field_manager.is_empty() => {
                errors.push(FieldError::required(&manager_path, "is required for apply patch"));
            }
            (WriteVerb::Patch, Some(_)) => {
                let detail = "may not be specified for non-apply patch";
                errors.push(FieldError::forbidden(&Path::new("force"), detail));
            }
            _ => {}
        }
        if field_manager.len() > FIELD_MANAGER_BYTES_MAX {
            errors.push(FieldError::too_long(&manager_path, FIELD_MANAGER_BYTES_MAX));
        }
        for (at, c) in field_manager.char_indices().filter(|(_, c)| c.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            errors.push(FieldError::invalid(&manager_path, &json!(field_manager), detail));
        }
        errors.extend(check_dry_run(&dry_run));
        let field_validation = match validation {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&Path::new("fieldValidation"), &json!(other), &known));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            let kind = match verb {
                WriteVerb::Create => "CreateOptions",
                WriteVerb::Update => "UpdateOptions",
                WriteVerb::Patch | WriteVerb::Apply => "PatchOptions",
            };
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_manager: field_manager.to_owned(),
            field_validation,
            force: if query.is_true("force") { Force::Yes } else { Force::No },
            given: given_fields(&dry_run, field_manager, validation),
        })
    }

    /// The options as admission sees them; those of a patch are shown as those of what it does.
    pub(crate) fn reviewed(&self, kind: &str) -> Value {
        reviewed(self.given.clone(), kind)
    }
}

fn given_fields(dry_run: &[&str], field_manager: &str, validation: &str) -> Value {
    let mut given = json!({});
    if !dry_run.is_empty() {
        given["dryRun"] = json!(dry_run);
    }
    for (name, value) in [("fieldManager", field_manager), ("fieldValidation", validation)] {
        if !value.is_empty() {
            given[name] = value.into();
        }
    }
    given
}

fn reviewed(mut given: Value, kind: &str) -> Value {
    given["kind"] = kind.into();
    given["apiVersion"] = "meta.k8s.io/v1".into();
    given
}

fn check_dry_run(values: &[&str]) -> Option<FieldError> {
    values.iter().any(|value| *value != "All").then(|| {
        let quoted = json!(values).to_string();
        let detail = "supported values: \"All\"";
        FieldError::with_value(Fault::NotSupported, &Path::new("dryRun"), Some(quoted), detail)
    })
}

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They are left alone.
    Orphan,
}

/// `DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// Whether the deletion is only tried.
    pub dry_run: bool,
    /// How long the object may take to end.
    pub grace_seconds: Option<i64>,
    /// The old spelling of orphaning.
    pub orphan_dependents: Option<bool>,
    /// What becomes of dependents.
    pub propagation: Option<Propagation>,
    /// The uid the object must have.
    pub uid: Option<String>,
    /// The resourceVersion the object must have.
    pub resource_version: Option<String>,
    /// The policy as it came.
    policy: Option<String>,
    /// Whether the API server should not delete what it cannot read.
    ignore_read_error: Option<bool>,
}

impl DeleteOptions {
    /// Reads options from a body that has been decoded as `DeleteOptions`.
    pub(crate) fn from_body(body: &Value) -> Result<Self, ApiError> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let dry_run: Vec<&str> = body
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let preconditions = body.get("preconditions");
        let mut options = Self {
            grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            orphan_dependents: body.get("orphanDependents").and_then(Value::as_bool),
            uid: text(preconditions.and_then(|p| p.get("uid"))),
            resource_version: text(preconditions.and_then(|p| p.get("resourceVersion"))),
            ignore_read_error: body
                .get("ignoreStoreReadErrorWithClusterBreakingPotential")
                .and_then(Value::as_bool),
            ..Self::default()
        };
        options.check(body.get("propagationPolicy").and_then(Value::as_str), &dry_run)?;
        Ok(options)
    }

    /// Reads options from a query.
    pub(crate) fn from_query(query: &Query) -> Result<Self, ApiError> {
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let grace_seconds = match query.get("gracePeriodSeconds").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(text.parse::<i64>().map_err(|_| {
                let why = format!("strconv.ParseInt: parsing \"{text}\": invalid syntax");
                ApiError::bad_request(why)
            })?),
        };
        let orphan_dependents = query.get("orphanDependents").map(|_| query.is_true("orphanDependents"));
        let mut options = Self { grace_seconds, orphan_dependents, ..Self::default() };
        options.check(query.get("propagationPolicy"), &dry_run)?;
        Ok(options)
    }

    /// The options as admission sees them.
    pub(crate) fn reviewed(&self) -> Value {
        let mut given = json!({});
        if self.dry_run {
            given["dryRun"] = json!(["All"]);
        }
        if let Some(seconds) = self.grace_seconds {
            given["gracePeriodSeconds"] = seconds.into();
        }
        for (name, flag) in [
            ("orphanDependents", self.orphan_dependents),
            ("ignoreStoreReadErrorWithClusterBreakingPotential", self.ignore_read_error),
        ] {
            if let Some(flag) = flag {
                given[name] = flag.into();
            }
        }
        if let Some(policy) = &self.policy {
            given["propagationPolicy"] = policy.as_str().into();
        }
        if self.uid.is_some() || self.resource_version.is_some() {
            given["preconditions"] = json!({});
        }
        for (name, text) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(text) = text {
                given["preconditions"][name] = text.as_str().into();
            }
        }
        reviewed(given, "DeleteOptions")
    }

    fn check(&mut self, policy: Option<&str>, dry_run: &[&str]) -> Result<(), ApiError> {
        self.policy = policy.map(str::to_owned);
        let path = Path::new("propagationPolicy");
        let mut errors = Vec::new();
        if let (Some(_), Some(policy)) = (self.orphan_dependents, policy) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, &json!(policy), detail));
        }
        self.propagation = match policy {
            None => None,
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, &json!(other), &known));
                None
            }
        };
        errors.extend(check_dry_run(dry_run));
        self.dry_run = !dry_run.is_empty();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
        }
    }
}

/// What list options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListVerb {
    /// A list, or a deletion of what a list would show.
    List,
    /// A watch.
    Watch,
}

/// `ListOptions` of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// The label selector, not parsed yet.
    pub label_selector: String,
    /// The field selector, not parsed yet.
    pub field_selector: String,
    /// The revision asked for; empty means the newest.
    pub resource_version: String,
    /// `Exact` or `NotOlderThan`.
    pub resource_version_match: String,
    /// At most this many objects; 0 means all.
    pub limit: usize,
    /// Where to go on.
    pub continue_token: String,
    /// When a watch ends.
    pub timeout_seconds: Option<u64>,
    /// Whether a watch wants bookmarks.
    pub bookmarks: bool,
    /// Whether a watch begins with what exists.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and checks the options of a list or a watch.
    pub(crate) fn parse(query: &Query, verb: ListVerb) -> Result<Self, ApiError> {
        let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
        let number = |name: &str| match query.get(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => text.parse::<i64>().map(Some).map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
            }),
        };
        let options = Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            resource_version: text("resourceVersion"),
            resource_version_match: text("resourceVersionMatch"),
            limit: number("limit")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            continue_token: text("continue"),
            timeout_seconds: number("timeoutSeconds")?.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0),
            bookmarks: query.is_true("allowWatchBookmarks"),
            send_initial_events: query.get("sendInitialEvents").map(|_| query.is_true("sendInitialEvents")),
        };
        let errors = match verb {
            ListVerb::List => options.check_list(),
            ListVerb::Watch => options.check_watch(),
        };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors))
        }
    }

    fn check_list(&self) -> Vec<FieldError> {
        let path = Path::new("resourceVersionMatch");
        let forbidden = |detail: &str| FieldError::forbidden(&path, format!("resourceVersionMatch {detail}"));
        let mut errors = Vec::new();
        if !self.resource_version_match.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(forbidden("is forbidden unless resourceVersion is provided"));
            }
            if !self.continue_token.is_empty() {
                errors.push(forbidden("is forbidden when continue is provided"));
            }
            if !matches!(self.resource_version_match.as_str(), "Exact" | "NotOlderThan") {
                let known = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(&path, &json!(self.resource_version_match), &known));
            }
            if self.resource_version_match == "Exact" && self.resource_version == "0" {
                errors.push(forbidden("\"exact\" is forbidden for resourceVersion \"0\""));
            }
        }
        if self.send_initial_events.is_some() {
            let path = Path::new("sendInitialEvents");
            errors.push(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        errors
    }

    fn check_watch(&self) -> Vec<FieldError> {
        let path = Path::new("resourceVersionMatch");
        let wanted = self.resource_version_match.as_str();
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() && wanted != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !wanted.is_empty() {
            if self.send_initial_events.is_none() {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(&path, detail));
            }
            if wanted != "NotOlderThan" {
                errors.push(FieldError::not_supported(&path, &json!(wanted), &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_write_options_are_refused() {
        for (query, verb, message) in [
            (
                "dryRun=all",
                WriteVerb::Create,
                r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["all"]: supported values: "All""#,
            ),
            (
                "force=true",
                WriteVerb::Patch,
                r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#,
            ),
            (
                "",
                WriteVerb::Apply,
                r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch"#,
            ),
        ] {
            let error = WriteOptions::parse(&Query::parse(query), verb).expect_err(query);
            assert_eq!(error.message(), message);
            assert_eq!(error.code(), 422);
        }
    }
}
