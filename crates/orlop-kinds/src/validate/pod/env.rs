//! Environment variables of containers and where their values come from.

use super::super::view::{At, Report};
use orlop_schema::field::go_quote;
use orlop_schema::names;

/// Fields of a pod that an environment variable can take its value from.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of a pod that can be named at all.
const POD_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The variables of a container.
pub(crate) fn env(r: &mut Report, list: &At<'_>) {
    for variable in list.items() {
        let name = variable.get("name");
        if !r.required(&name) {
            r.each(&name, names::env_var_name(name.str()));
        }
        value_from(r, &variable.get("valueFrom"), &variable.get("value"));
    }
}

fn value_from(r: &mut Report, at: &At<'_>, value: &At<'_>) {
    if !at.is_set() {
        return;
    }
    let mut sources = 0;
    let mut source = |key: &str| {
        let found = at.get(key);
        sources += usize::from(found.is_set());
        found.is_set().then_some(found)
    };
    if let Some(field) = source("fieldRef") {
        object_field(r, &field, &ENV_FIELDS);
    }
    if let Some(resource) = source("resourceFieldRef") {
        resource_field(r, &resource, false);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(selected) = source(kind) {
            r.subdomain(&selected.get("name"));
            let key = selected.get("key");
            if !r.required(&key) {
                r.each(&key, names::config_map_key(key.str()));
            }
        }
    }
    if let Some(file) = source("fileKeyRef") {
        let (key, path) = (file.get("key"), file.get("path"));
        if !r.required(&key) {
            r.each(&key, names::env_var_name(key.str()));
        }
        r.required_label(&file.get("volumeName"));
        if !r.required(&path) {
            r.no_backsteps(&path);
        }
    }
    let detail = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    r.add(at.invalid_with("\"\"", detail));
}

/// Splits `metadata.labels['key']` into the path and the key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// A reference to a field of the pod, which must be one of `allowed` or a single label or annotation.
pub(crate) fn object_field(r: &mut Report, at: &At<'_>, allowed: &[&str]) {
    let (version, field) = (at.get("apiVersion"), at.get("fieldPath"));
    if r.required(&version) || r.required(&field) {
        return;
    }
    let text = field.str();
    let part = subscript(text);
    let wrong = if version.str() != "v1" {
        format!("unsupported pod version: {}", version.str())
    } else if let Some((path, _)) = part
        && !["metadata.annotations", "metadata.labels"].contains(&path)
    {
        format!("field label does not support subscript: {text}")
    } else if part.is_none() && text != "spec.host" && !POD_FIELDS.contains(&text) {
        format!("field label not supported: {text}")
    } else {
        String::new()
    };
    if !wrong.is_empty() {
        r.add(field.invalid(format!("error converting fieldPath: {wrong}")));
        return;
    }
    if let Some((path, key)) = part {
        let key = if path == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
        for detail in names::qualified_name(&key) {
            r.add(at.invalid_with(go_quote(&key), detail));
        }
        return;
    }
    let internal = if text == "spec.host" { "spec.nodeName" } else { text };
    if !allowed.contains(&internal) {
        let mut error = field.unsupported(allowed);
        error.value = Some(go_quote(internal));
        r.add(error);
    }
}

/// A reference to a resource of a container; a volume must say which container.
pub(crate) fn resource_field(r: &mut Report, at: &At<'_>, volume: bool) {
    let (container, resource) = (at.get("containerName"), at.get("resource"));
    let name = resource.str();
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if volume && container.is_empty() {
        r.add(container.required(""));
    } else if !r.required(&resource) && !RESOURCES.contains(&name) && !huge {
        r.add(resource.unsupported(&RESOURCES));
    }
    divisor(r, at, name, huge);
}

fn divisor(r: &mut Report, at: &At<'_>, name: &str, huge: bool) {
    const BYTES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let divisor = at.get("divisor");
    let Some(quantity) = divisor.quantity().filter(|q| !q.is_zero()) else { return };
    let (allowed, what): (&[&str], &str) = match name {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu resource"),
        "limits.memory" | "requests.memory" => (&BYTES, "memory resource"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTES, "local ephemeral storage resource")
        }
        _ if huge => (&BYTES, "hugepages resource"),
        _ => return,
    };
    if !allowed.contains(&quantity.to_string().as_str()) {
        let list = if allowed.len() == 2 { "1m and 1".to_owned() } else { allowed.join(", ") };
        let detail = format!("only divisor's values {list} are supported with the {what}");
        r.add(divisor.invalid_with(go_quote(name), detail));
    }
}

/// Sources that give a container many variables at once.
pub(crate) fn env_from(r: &mut Report, list: &At<'_>) {
    for item in list.items() {
        let prefix = item.get("prefix");
        if !prefix.is_empty() {
            r.each(&prefix, names::env_var_name(prefix.str()));
        }
        let mut sources = 0;
        for kind in ["configMapRef", "secretRef"] {
            let source = item.get(kind);
            if source.is_set() {
                sources += 1;
                let name = source.get("name");
                if !r.required(&name) {
                    r.each(&name, names::NameRule::Subdomain.prefix(name.str()));
                }
            }
        }
        r.when(sources == 0, || {
            list.invalid_with("\"\"", "must specify one of: `configMapRef` or `secretRef`")
        });
        r.when(sources > 1, || {
            list.invalid_with("\"\"", "may not have more than one field specified at a time")
        });
    }
}
