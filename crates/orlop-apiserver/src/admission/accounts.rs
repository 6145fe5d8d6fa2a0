//! `ServiceAccount`: every pod runs as one, gets its token and its pull secrets, and may be held to its secrets.

use super::resources::containers;
use super::{Attributes, Operation, refusal};
use crate::kind::Kind;
use crate::object;
use crate::server::Inner;
use crate::status::ApiError;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where containers find their token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Seconds after which a mounted token is renewed.
const TOKEN_SECONDS: i64 = 3607;
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Makes a new pod run as its account.
pub(super) fn mutate(server: &Inner, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
    if !attributes.is(kind, Operation::Create, "", "pods") || is_mirror(&attributes.object) {
        return validate(server, kind, attributes);
    }
    let named = object::text(&attributes.object["spec"], "serviceAccountName");
    let name = if named.is_empty() { "default" } else { named }.to_owned();
    let account = find(server, kind, attributes, &name)?;
    let pod = &mut attributes.object;
    object::set_at(pod, "spec.serviceAccountName", name.as_str().into());
    object::set_at(pod, "spec.serviceAccount", name.into());
    let wish = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if wish(&pod["spec"]).or_else(|| wish(&account)).unwrap_or(true) {
        mount_token(server, pod);
    }
    let has_pull_secrets = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|all| !all.is_empty());
    if let (false, Some(secrets)) = (has_pull_secrets, account["imagePullSecrets"].as_array()) {
        let names: Vec<Value> = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
        if !names.is_empty() {
            object::set_at(pod, "spec.imagePullSecrets", Value::Array(names));
        }
    }
    validate(server, kind, attributes)
}

/// Refuses pods whose account does not exist or does not allow what they refer to.
pub(super) fn validate(server: &Inner, kind: &Kind, attributes: &Attributes) -> Result<(), ApiError> {
    let pod = &attributes.object;
    let debugs = attributes.operation == Operation::Update && attributes.subresource == "ephemeralcontainers";
    if kind.plural != "pods" || !kind.group.is_empty() {
        return Ok(());
    }
    if !debugs && !attributes.is(kind, Operation::Create, "", "pods") {
        return Ok(());
    }
    let forbidden = |why: &str| refusal::forbidden(kind, attributes, why);
    let name = object::text(&pod["spec"], "serviceAccountName");
    if !debugs && is_mirror(pod) {
        return check_mirror(pod).map_err(forbidden);
    }
    if name.is_empty() {
        let pod_name = object::meta_str(pod, "name");
        let why = format!("no service account specified for pod {}/{pod_name}", attributes.namespace);
        return Err(forbidden(&why));
    }
    let account = find(server, kind, attributes, name)?;
    let enforced = account["metadata"]["annotations"].get(ENFORCE).and_then(Value::as_str);
    if !matches!(enforced, Some("1" | "t" | "T" | "true" | "TRUE" | "True")) {
        return Ok(());
    }
    check_secrets(pod, &account, debugs).map_err(|why| forbidden(&why))
}

fn is_mirror(pod: &Value) -> bool {
    object::at(pod, "metadata.annotations").is_some_and(|all| all.get(MIRROR).is_some())
}

fn find(server: &Inner, kind: &Kind, attributes: &Attributes, name: &str) -> Result<Value, ApiError> {
    let accounts = Inner::built_in("", "v1", "serviceaccounts");
    let namespace = &attributes.namespace;
    server.find(&accounts, namespace, name).ok_or_else(|| {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        refusal::forbidden(kind, attributes, &why)
    })
}

/// Mounts the token into every container that has nothing at its place.
fn mount_token(server: &Inner, pod: &mut Value) {
    let volumes = pod["spec"]["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = volumes.iter().map(|volume| object::text(volume, "name"));
    let known = names.into_iter().find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let exists = known.is_some();
    let volume = known.unwrap_or_else(|| format!("{VOLUME_PREFIX}{}", server.rng.name_suffix(5)));
    let mut mounted = false;
    for field in ["initContainers", "containers"] {
        for container in pod["spec"].get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
            object::set_at(container, "volumeMounts", Value::Array(mounts));
            mounted = true;
        }
    }
    if mounted && !exists {
        let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        volumes.push(json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ]}}));
        object::set_at(pod, "spec.volumes", Value::Array(volumes));
    }
}

/// Pods that a node shows of its own may refer to nothing that needs the server.
fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    if !object::text(&pod["spec"], "serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let volumes = list(&pod["spec"]["volumes"]);
    let in_volume = |volume: &Value| {
        let sources = volume.as_object().into_iter().flatten().map(|(_, source)| source);
        sources.into_iter().any(|source| {
            let direct =
                ["secretRef", "secretName", "nodePublishSecretRef"].iter().any(|f| !source[*f].is_null());
            direct || list(&source["sources"]).iter().any(|projected| projected["secret"].is_object())
        })
    };
    let in_container = |container: &Value| {
        list(&container["env"]).iter().any(|env| env["valueFrom"]["secretKeyRef"].is_object())
            || list(&container["envFrom"]).iter().any(|from| from["secretRef"].is_object())
    };
    let mut all = ["containers", "initContainers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|field| containers(pod, field));
    let pulls = !list(&pod["spec"]["imagePullSecrets"]).is_empty();
    if pulls || volumes.iter().any(in_volume) || all.any(in_container) {
        return Err("a mirror pod may not reference secrets");
    }
    let projects_token = |volume: &Value| {
        list(&volume["projected"]["sources"]).iter().any(|source| source["serviceAccountToken"].is_object())
    };
    if volumes.iter().any(projects_token) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Only secrets that the account names may be referred to.
fn check_secrets(pod: &Value, account: &Value, debugs: bool) -> Result<(), String> {
    let names = |field: &str| -> BTreeSet<String> {
        let list = account[field].as_array().into_iter().flatten();
        list.map(|item| object::text(item, "name").to_owned()).collect()
    };
    let (mountable, owner) = (names("secrets"), object::meta_str(account, "name"));
    let refused = format!("is not allowed because service account {owner} does not reference that secret");
    let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
    if !debugs {
        for volume in list(&pod["spec"], "volumes") {
            let secret = object::text(&volume["secret"], "secretName");
            if volume["secret"].is_object() && !mountable.contains(secret) {
                return Err(format!("volume with secret.secretName=\"{secret}\" {refused}"));
            }
        }
    }
    let kinds: &[(&str, &str)] = if debugs {
        &[("ephemeralContainers", "ephemeral container")]
    } else {
        &[("initContainers", "init container"), ("containers", "container")]
    };
    for (field, what) in kinds {
        for container in containers(pod, field) {
            let name = object::text(container, "name");
            for env in list(container, "env") {
                let reference = &env["valueFrom"]["secretKeyRef"];
                let (secret, variable) = (object::text(reference, "name"), object::text(&env, "name"));
                if reference.is_object() && !mountable.contains(secret) {
                    return Err(format!(
                        "{what} {name} with envVar {variable} referencing secret.secretName=\"{secret}\" {refused}"
                    ));
                }
            }
            for from in list(container, "envFrom") {
                let secret = object::text(&from["secretRef"], "name");
                if from["secretRef"].is_object() && !mountable.contains(secret) {
                    return Err(format!(
                        "{what} {name} with envFrom referencing secret.secretName=\"{secret}\" {refused}"
                    ));
                }
            }
        }
    }
    let pullable = names("imagePullSecrets");
    for (index, secret) in list(&pod["spec"], "imagePullSecrets").iter().enumerate().filter(|_| !debugs) {
        let name = object::text(secret, "name");
        if !pullable.contains(name) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{name}\" is not allowed because service account {owner} does not \
                 reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}
