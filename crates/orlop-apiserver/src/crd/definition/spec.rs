//! The spec of a definition: names, versions, schemas, subresources, columns and selectable fields.

use super::conversion;
use super::internal::{self, Internal};
use crate::crd::metadata::ServerMetadata;
use crate::object;
use orlop_schema::field::{Fault, FieldError, Path, go_escape};
use orlop_schema::names as name_rules;
use orlop_schema::structural::field_path::{Arrays, resolve};
use orlop_schema::structural::{Schema, default_check, lint, shape};
use serde_json::Value;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_FIELDS_MAX: usize = 8;
const DEPRECATION_BYTES_MAX: usize = 256;

/// What may stand at the root of a schema whose status is validated alone.
const ROOT_KEYWORDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What is wrong with a spec.
pub(super) fn validate(spec: &Value, internal: &Internal<'_>) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut errors = group_and_scope(spec, &path);
    errors.extend(missing_schemas(internal, &path));
    if spec["preserveUnknownFields"] == true && internal.versions.iter().any(has_default) {
        let why = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), &Value::Bool(true), why));
    }
    for (index, version) in internal.versions.iter().enumerate() {
        errors.extend(validate_version(version, internal, &path.child("versions").index(index)));
    }
    errors.extend(validate_versions(internal, &path));
    let names_path = path.child("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        if object::text(&spec["names"], field).is_empty() {
            errors.push(FieldError::required(&names_path.child(field), ""));
        }
    }
    errors.extend(names(&spec["names"], &names_path));
    let has_status = internal.versions.iter().any(|version| version["subresources"].get("status").is_some());
    errors.extend(validation(internal.schema.shared(), has_status, &path.child("validation")));
    errors.extend(subresources(internal.subresources.shared(), &path.child("subresources")));
    errors.extend(columns(internal.columns.shared(), &path.child("additionalPrinterColumns")));
    if let Some(fields) = internal.selectable.shared().filter(|fields| is_filled(fields)) {
        let path = path.child("selectableFields");
        match internal.schema.shared() {
            None => {
                let why = "may only be set when validations.schema is included";
                errors.push(FieldError::invalid(&path, &Value::from(""), why));
            }
            Some(schema) => errors.extend(selectable(fields, schema, &path)),
        }
    }
    errors.extend(conversion::validate(spec, &path.child("conversion")));
    errors
}

fn is_filled(list: &Value) -> bool {
    list.as_array().is_some_and(|list| !list.is_empty())
}

fn has_default(version: &Value) -> bool {
    Schema::parse(&version["schema"]["openAPIV3Schema"]).any(&|schema| schema.default.is_some())
}

fn group_and_scope(spec: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let group = object::text(spec, "group");
    let group_path = path.child("group");
    let faults = name_rules::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&group_path, ""));
    } else if !faults.is_empty() {
        errors.push(FieldError::invalid(&group_path, &group.into(), faults.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&group_path, &group.into(), why));
    }
    errors.extend(one_of(object::text(spec, "scope"), &["Cluster", "Namespaced"], &path.child("scope")));
    errors
}

/// A text that must be one of a few.
pub(super) fn one_of(text: &str, allowed: &[&str], path: &Path) -> Option<FieldError> {
    if text.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    (!allowed.contains(&text)).then(|| FieldError::not_supported(path, &text.into(), allowed))
}

fn missing_schemas(internal: &Internal<'_>, path: &Path) -> Vec<FieldError> {
    let has_schema = |value: &Value| value.get("openAPIV3Schema").is_some_and(Value::is_object);
    if internal.schema.shared().is_some_and(has_schema) {
        return Vec::new();
    }
    let missing = internal.versions.iter().enumerate().filter(|(_, version)| !has_schema(&version["schema"]));
    missing
        .map(|(index, _)| {
            let path = path.child("versions").index(index).child("schema").child("openAPIV3Schema");
            FieldError::required(&path, "")
        })
        .collect()
}

fn validate_versions(internal: &Internal<'_>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = internal.versions;
    let refuse = |why: &str| {
        let shown = Some(go_escape(&internal.versions_text()));
        FieldError::with_value(Fault::Invalid, &path.child("versions"), shown, why)
    };
    let repeated = |(index, version): (usize, &Value)| {
        versions[..index].iter().any(|earlier| earlier["name"] == version["name"])
    };
    if versions.iter().enumerate().any(repeated) {
        errors.push(refuse("must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    if let Some(first) = versions.first().map(|version| object::text(version, "name")) {
        let faults = name_rules::dns1035_label(first);
        if !first.is_empty() && !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child("version"), &first.into(), faults.join(",")));
        }
    }
    errors
}

fn validate_version(version: &Value, internal: &Internal<'_>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::text(version, "name");
    let faults = name_rules::dns1035_label(name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("name"), &name.into(), faults.join(",")));
    }
    errors.extend(deprecation(version, &path.child("deprecationWarning")));
    let has_status = version["subresources"].get("status").is_some();
    let schema = internal.schema.own(version, "schema");
    errors.extend(validation(schema, has_status, &path.child("schema")));
    let own = internal.subresources.own(version, "subresources");
    errors.extend(subresources(own, &path.child("subresources")));
    let own = internal.columns.own(version, "additionalPrinterColumns");
    errors.extend(columns(own, &path.child("additionalPrinterColumns")));
    let own = internal.selectable.own(version, "selectableFields");
    if let Some(fields) = own.filter(|fields| is_filled(fields)) {
        let path = path.child("selectableFields");
        match schema {
            None => {
                let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(FieldError::invalid(&path, &Value::from(""), why));
            }
            Some(schema) => errors.extend(selectable(fields, schema, &path)),
        }
    }
    errors
}

fn deprecation(version: &Value, path: &Path) -> Vec<FieldError> {
    let Some(value) = version.get("deprecationWarning") else { return Vec::new() };
    let warning = value.as_str().unwrap_or_default();
    let mut faults: Vec<String> = Vec::new();
    if version["deprecated"] == true {
        if warning.len() > DEPRECATION_BYTES_MAX {
            faults.push(format!("must be <= {DEPRECATION_BYTES_MAX} characters long"));
        }
        if warning.is_empty() {
            faults.push("must not be an empty string".to_owned());
        }
        let printable = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| !printable(*c)) {
            faults.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    } else {
        faults.push("can only be set for deprecated versions".to_owned());
    }
    faults.into_iter().map(|why| FieldError::invalid(path, value, why)).collect()
}

/// What is wrong with names, wanted or accepted.
pub(super) fn names(names: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |path: Path, name: &str, mixed_case: bool| {
        let faults = if mixed_case {
            name_rules::dns1035_label(&name.to_lowercase())
        } else {
            name_rules::dns1035_label(name)
        };
        if !name.is_empty() && !faults.is_empty() {
            let lead = if mixed_case { "may have mixed case, but should otherwise match: " } else { "" };
            errors.push(FieldError::invalid(&path, &name.into(), format!("{lead}{}", faults.join(","))));
        }
    };
    for (field, mixed_case) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        check(path.child(field), object::text(names, field), mixed_case);
    }
    let mut lists = ["shortNames", "categories"].map(|field| {
        let list = names[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        let checked = list.enumerate().filter_map(|(index, name)| {
            let faults = name_rules::dns1035_label(name);
            let path = path.child(field).index(index);
            (!faults.is_empty()).then(|| FieldError::invalid(&path, &name.into(), faults.join(",")))
        });
        checked.collect::<Vec<_>>()
    });
    errors.append(&mut lists[0]);
    let (kind, list_kind) = (object::text(names, "kind"), object::text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), &list_kind.into(), why));
    }
    errors.append(&mut lists[1]);
    errors
}

/// What is wrong with a schema.
fn validation(validation: Option<&Value>, has_status: bool, path: &Path) -> Vec<FieldError> {
    let Some(value) = validation.and_then(|value| value.get("openAPIV3Schema")).filter(|v| v.is_object())
    else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let schema_path = path.child("openAPIV3Schema");
    if has_status {
        errors.extend(root_keywords(value, &schema_path));
    }
    if value["nullable"] == true {
        let path = schema_path.child("nullable");
        errors.push(FieldError::forbidden(&path, "nullable cannot be true at the root"));
    }
    let schema = Schema::parse(value);
    let mut unsupported = None;
    if let Err(why) = shape::check_supported(&schema) {
        unsupported = Some(why);
    } else {
        let faults = shape::check(&schema, &schema_path);
        if faults.is_empty() {
            errors.extend(default_check::check(&schema, &schema_path, &ServerMetadata));
        }
        errors.extend(faults);
    }
    errors.extend(lint::check(&schema, &schema_path));
    if errors.is_empty() && unsupported.is_none() {
        errors.extend(orlop_cel::rules::check(&schema, &schema_path));
    }
    if let (true, Some(why)) = (errors.is_empty(), unsupported) {
        errors.push(FieldError::invalid(&schema_path, &Value::from(""), why.to_string()));
    }
    errors
}

fn root_keywords(schema: &Value, path: &Path) -> Option<FieldError> {
    let ty = object::text(schema, "type");
    let fault = internal::keywords(schema)
        .find(|name| (*name == "Type" && ty != "object") || !ROOT_KEYWORDS.contains(name))?;
    if fault == "Type" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(FieldError::invalid(&path.child("type"), &ty.into(), why));
    }
    let why = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        ROOT_KEYWORDS.join(" ")
    );
    let shown = Some(go_escape(&internal::schema_text(schema)));
    Some(FieldError::with_value(Fault::Invalid, path, shown, why))
}

fn subresources(subresources: Option<&Value>, path: &Path) -> Vec<FieldError> {
    let Some(scale) = subresources.and_then(|value| value.get("scale")).filter(|v| v.is_object()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (field, roots, required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."], true),
        ("labelSelectorPath", &[".spec.", ".status."], false),
    ] {
        let path = path.child(&format!("scale.{field}"));
        let text = object::text(scale, field);
        if text.is_empty() {
            if required {
                errors.push(FieldError::required(&path, ""));
            }
        } else if let Some(error) = simple_json_path(text, &path) {
            errors.push(error);
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            let root = match roots {
                [root] => root.trim_end_matches('.').to_owned(),
                _ => "either .spec or .status".to_owned(),
            };
            let why = format!("should be a json path under {root}");
            errors.push(FieldError::invalid(&path, &text.into(), why));
        }
    }
    errors
}

fn simple_json_path(text: &str, path: &Path) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!text.starts_with('.')).then(|| FieldError::invalid(path, &text.into(), why))
}

fn columns(columns: Option<&Value>, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, column) in columns.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = path.index(index);
        let text = |field: &str| object::text(column, field);
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let ty = text("type");
        let why = format!("must be one of {}", COLUMN_TYPES.join(","));
        if ty.is_empty() {
            errors.push(FieldError::required(&path.child("type"), why));
        } else if !COLUMN_TYPES.contains(&ty) {
            errors.push(FieldError::invalid(&path.child("type"), &ty.into(), why));
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), &format.into(), why));
        }
        let json_path = text("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path.child("JSONPath"), ""));
        }
        errors.extend(
            Some(json_path)
                .filter(|text| !text.is_empty())
                .and_then(|text| simple_json_path(text, &path.child("JSONPath"))),
        );
    }
    errors
}

fn selectable(fields: &Value, schema: &Value, path: &Path) -> Vec<FieldError> {
    let schema = Schema::parse(&schema["openAPIV3Schema"]);
    let mut errors = Vec::new();
    let mut seen: Vec<Path> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let path = path.index(index).child("jsonPath");
        let text = object::text(field, "jsonPath");
        if text.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let (found, target) = match resolve(text, &schema, Arrays::Refused) {
            Ok(resolved) => resolved,
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(&path, &text.into(), why));
                continue;
            }
        };
        if found.as_str() == "metadata" || found.as_str().starts_with("metadata.") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, &text.into(), why));
        }
        if !target.is_some_and(|target| matches!(target.ty.as_str(), "string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, &text.into(), why));
        }
        if seen.contains(&found) {
            errors.push(FieldError::duplicate(&path, &text.into()));
        } else {
            seen.push(found);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS_MAX));
    }
    errors
}
