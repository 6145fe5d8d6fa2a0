//! How objects of one version become objects of another.

use super::spec::one_of;
use crate::object;
use orlop_schema::field::{FieldError, Path};
use orlop_schema::names;
use serde_json::{Value, json};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What is wrong with the conversion of a spec.
pub(super) fn validate(spec: &Value, path: &Path) -> Vec<FieldError> {
    let conversion = &spec["conversion"];
    if !conversion.is_object() {
        return Vec::new();
    }
    let strategy = object::text(conversion, "strategy");
    let mut errors = Vec::new();
    if strategy != "None" && spec["preserveUnknownFields"] == true {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), &strategy.into(), why));
    }
    errors.extend(one_of(strategy, &["None", "Webhook"], &path.child("strategy")));
    let webhook = &conversion["webhook"];
    let client = webhook.get("clientConfig").filter(|client| client.is_object());
    let versions: Vec<&str> = webhook["conversionReviewVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (client_path, versions_path) =
        (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(&client_path, why));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, why));
        }
        return errors;
    }
    match client {
        None => {
            errors.push(FieldError::required(&client_path, "required when strategy is set to Webhook"));
        }
        Some(client) => errors.extend(client_config(client, &client_path)),
    }
    errors.extend(review_versions(&versions, &versions_path));
    errors
}

fn client_config(client: &Value, path: &Path) -> Vec<FieldError> {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|service| service.is_object());
    match (url, service) {
        (Some(url), None) => webhook_url(url, &path.child("url")),
        (None, Some(service)) => webhook_service(service, &path.child("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn webhook_url(url: &str, path: &Path) -> Vec<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut errors = Vec::new();
    let (before_fragment, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (address, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
    let (scheme, rest) = address.split_once(':').unwrap_or(("", address));
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, &scheme.into(), why));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(path, &host.into(), format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        let why = "user information is not permitted in the URL";
        errors.push(FieldError::invalid(path, &user.into(), why));
    }
    for (part, what) in [(fragment, "fragments"), (query, "query parameters")] {
        if !part.is_empty() {
            let why = format!("{what} are not permitted in the URL");
            errors.push(FieldError::invalid(path, &part.into(), why));
        }
    }
    errors
}

fn webhook_service(service: &Value, path: &Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // The original hands name and namespace over in the wrong order.
    for (shown, field) in [("name", "namespace"), ("namespace", "name")] {
        if object::text(service, field).is_empty() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let faults = names::port_number(port);
    if !faults.is_empty() {
        let why = format!("port is not valid: {}", faults.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), &json!(port), why));
    }
    let Some(url_path) = service.get("path").and_then(Value::as_str) else { return errors };
    let path = path.child("path");
    let mut refuse = |why: String| errors.push(FieldError::invalid(&path, &url_path.into(), why));
    match url_path {
        "" | "/" => return errors,
        "//" => refuse("segment[0] may not be empty".to_owned()),
        _ => {
            if !url_path.starts_with('/') {
                refuse("must start with a '/'".to_owned());
            }
            let rest: String = url_path.chars().skip(1).collect();
            for (index, step) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
                if step.is_empty() {
                    refuse(format!("segment[{index}] may not be empty"));
                    continue;
                }
                for fault in names::dns1123_subdomain(step) {
                    refuse(format!("segment[{index}]: {fault}"));
                }
            }
        }
    }
    errors
}

fn review_versions(versions: &[&str], path: &Path) -> Vec<FieldError> {
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(&path, &(*version).into(), "duplicate version"));
            continue;
        }
        let faults = names::dns1035_label(version);
        errors.extend(faults.into_iter().map(|why| FieldError::invalid(&path, &(*version).into(), why)));
    }
    if !versions.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let why = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, &json!(versions), why));
    }
    errors
}
