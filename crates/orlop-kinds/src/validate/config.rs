//! ConfigMaps, Secrets, ServiceAccounts and Namespaces.

use super::meta::{self, Scope};
use super::view::{At, Report, same};
use super::{Rules, view};
use orlop_schema::field::{FieldError, Path};
use orlop_schema::names::{self, NameRule};
use serde_json::Value;

pub(super) const RULES: &[Rules] = &[
    Rules::new("", "ConfigMap", Scope::Namespaced, config_map, config_map_update, &[]),
    Rules::new("", "Secret", Scope::Namespaced, secret, secret_update, &[]),
    Rules::new("", "ServiceAccount", Scope::Namespaced, service_account, service_account_update, &[]),
    Rules::new(
        "",
        "Namespace",
        Scope::Cluster,
        namespace,
        namespace_update,
        &[("status", namespace_status), ("finalize", namespace_finalize)],
    ),
];

/// How many bytes the data of a ConfigMap or Secret may have.
const DATA_BYTES_MAX: usize = 1024 * 1024;

fn config_map(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    let mut bytes = 0;
    for (key, value) in data.entries() {
        keys(r, key, &value);
        r.when(binary.key(key).is_set(), || {
            value.invalid_with(orlop_schema::field::go_quote(key), "duplicate of key present in binaryData")
        });
        bytes += value.str().len();
    }
    for (key, value) in binary.entries() {
        keys(r, key, &value);
        bytes += decoded_len(value.str());
    }
    r.when(bytes > DATA_BYTES_MAX, || FieldError::too_long(&Path::root().key(""), DATA_BYTES_MAX));
}

fn keys(r: &mut Report, key: &str, at: &At<'_>) {
    let name = Value::String(key.to_owned());
    r.each(&At { value: &name, path: at.path.clone() }, names::config_map_key(key));
}

/// The length of base64 text once decoded.
fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn is_frozen(r: &mut Report, new: &At<'_>, old: &At<'_>, fields: &[&str]) {
    const WORDS: &str = "field is immutable when `immutable` is set";
    if !old.get("immutable").is_true() {
        return;
    }
    let immutable = new.get("immutable");
    r.when(!immutable.is_true(), || immutable.forbidden(WORDS));
    for field in fields {
        let (now, before) = (new.get(field), old.get(field));
        r.when(!same(now.value, before.value) && (!now.is_empty() || !before.is_empty()), || {
            now.forbidden(WORDS)
        });
    }
}

fn config_map_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    is_frozen(r, new, old, &["data", "binaryData"]);
    config_map(r, new);
}

fn secret(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    let data = object.get("data");
    let mut bytes = 0;
    for (key, value) in data.entries() {
        keys(r, key, &value);
        bytes += decoded_len(value.str());
    }
    r.when(bytes > DATA_BYTES_MAX, || data.too_long(DATA_BYTES_MAX));
    let needed = |r: &mut Report, key: &str| {
        let at = data.key(key);
        let missing = data.value.get(key).is_none();
        r.when(missing, || at.required(""));
        !missing
    };
    match object.get("type").str() {
        "kubernetes.io/service-account-token" => {
            r.required(&object.down("metadata.annotations").key("kubernetes.io/service-account.name"));
        }
        kind @ ("kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson") => {
            let key = if kind.ends_with("json") { ".dockerconfigjson" } else { ".dockercfg" };
            if needed(r, key)
                && let Some(wrong) = view::go_json_object_error(&decode(data.key(key).str()))
            {
                r.add(data.key(key).invalid_with("\"<secret contents redacted>\"", wrong));
            }
        }
        "kubernetes.io/basic-auth"
            if data.value.get("username").is_none() && data.value.get("password").is_none() =>
        {
            needed(r, "username");
            needed(r, "password");
        }
        "kubernetes.io/ssh-auth" => {
            r.required(&data.key("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            needed(r, "tls.crt");
            needed(r, "tls.key");
        }
        _ => {}
    }
}

fn secret_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.immutable_str(&new.get("type"), &old.get("type"));
    is_frozen(r, new, old, &["data"]);
    secret(r, new);
}

/// The bytes of base64 text; what is not base64 is left out.
fn decode(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for value in text.bytes().filter_map(digit) {
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

fn service_account(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
}

fn service_account_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    service_account(r, new);
}

fn finalizer(r: &mut Report, at: &At<'_>) {
    r.qualified(at);
    meta::known_finalizer(r, at);
}

fn namespace(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Cluster, NameRule::Label);
    let finalizers = object.down("spec.finalizers");
    for item in finalizers.items() {
        finalizer(r, &item.named(finalizers.path.clone()));
    }
}

fn namespace_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    namespace(r, new);
    meta::update(r, new, old);
}

fn namespace_status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let phase = new.down("status.phase").named(Path::new("status").child("Phase"));
    if new.down("metadata.deletionTimestamp").is_set() {
        r.when(phase.str() != "Terminating", || {
            phase.invalid_str("may only be 'Terminating' if `deletionTimestamp` is not empty")
        });
    } else {
        r.when(phase.str() != "Active", || {
            phase.invalid_str("may only be 'Active' if `deletionTimestamp` is empty")
        });
    }
}

fn namespace_finalize(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    for item in new.down("spec.finalizers").items() {
        finalizer(r, &item);
    }
}
