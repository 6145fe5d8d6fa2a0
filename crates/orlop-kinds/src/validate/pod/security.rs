//! Security contexts of pods and containers.

use super::super::view::{At, Report};
use super::PodOptions;
use orlop_schema::names::{self, user_id};
use std::collections::BTreeSet;

fn ids(r: &mut Report, at: &At<'_>, keys: &[&str]) {
    for key in keys {
        let id = at.get(key);
        if id.is_set() {
            r.each_int(&id, user_id(id.int()));
        }
    }
}

/// The security context of a pod; `spec` is the pod, where the host namespaces are.
pub(crate) fn pod_context(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    let at = spec.get("securityContext");
    ids(r, &at, &["fsGroup", "runAsUser", "runAsGroup"]);
    for group in at.get("supplementalGroups").items() {
        r.each_int(&group, user_id(group.int()));
    }
    let share = spec.get("shareProcessNamespace").named(at.path.child("shareProcessNamespace"));
    r.when(share.is_true() && spec.get("hostPID").is_true(), || {
        share.invalid("ShareProcessNamespace and HostPID cannot both be enabled")
    });
    sysctls(r, spec, &at.get("sysctls"), options);
    r.optional_one_of(&at.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]);
    seccomp(r, &at.get("seccompProfile"));
    windows(r, &at.get("windowsOptions"));
    app_armor(r, &at.get("appArmorProfile"));
    r.optional_one_of(&at.get("supplementalGroupsPolicy"), &["Merge", "Strict"]);
    let policies: &[&str] =
        if options.any_selinux_policy { &["MountOption", "Recursive"] } else { &["Recursive"] };
    r.optional_one_of(&at.get("seLinuxChangePolicy"), policies);
}

fn is_sysctl(name: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().copied().is_some_and(edge)
                && bytes.last().copied().is_some_and(edge)
                && bytes.iter().all(|b| edge(*b) || *b == b'-' || *b == b'_')
        })
}

/// Whether a sysctl belongs to a namespace that the pod shares with its host.
fn host_sysctl(spec: &At<'_>, name: &str) -> Option<&'static str> {
    let name = name.replace('/', ".");
    if spec.get("hostNetwork").is_true() && name.starts_with("net.") {
        return Some("may not be specified when 'hostNetwork' is true");
    }
    let ipc = ["kernel.sem", "kernel.msg", "kernel.shm", "fs.mqueue."];
    if spec.get("hostIPC").is_true() && ipc.iter().any(|p| name.starts_with(p)) {
        return Some("may not be specified when 'hostIPC' is true");
    }
    None
}

/// Whether some sysctl of a pod belongs to its host.
pub(crate) fn has_host_sysctl(spec: &At<'_>) -> bool {
    let list = spec.down("securityContext.sysctls");
    list.items().iter().any(|s| host_sysctl(spec, s.get("name").str()).is_some())
}

fn sysctls(r: &mut Report, spec: &At<'_>, list: &At<'_>, options: &PodOptions) {
    let mut seen = BTreeSet::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        if !r.required(&name) {
            if !is_sysctl(name.str()) {
                r.add(name.invalid(
                    "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                ));
            } else if seen.contains(name.str()) {
                r.add(name.duplicate());
            }
        }
        if !options.any_host_sysctl
            && let Some(words) = host_sysctl(spec, name.str())
        {
            r.add(name.invalid_str(words));
        }
        seen.insert(name.str());
    }
}

fn seccomp(r: &mut Report, at: &At<'_>) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    if kind.is_empty() {
        r.add(kind.required("type is required when seccompProfile is set"));
    } else {
        r.one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    if kind.str() == "Localhost" {
        if profile.is_set() {
            r.descending_path(&profile);
        } else {
            r.add(profile.required("must be set when seccomp type is Localhost"));
        }
    } else if profile.is_set() {
        let whole = at.named(profile.path);
        r.add(whole.invalid_as("core.SeccompProfile", "can only be set when seccomp type is Localhost"));
    }
}

fn app_armor(r: &mut Report, at: &At<'_>) {
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    match kind.str() {
        "Localhost" if !profile.is_set() => r.add(profile.required(MISSING)),
        "Localhost" => {
            if profile.str().trim() != profile.str() {
                r.add(profile.invalid("must not be padded with whitespace"));
            } else if profile.is_empty() {
                r.add(profile.required(MISSING));
            }
            r.when(profile.len() > 4095, || profile.too_long(4095));
        }
        "RuntimeDefault" | "Unconfined" => {
            r.when(profile.is_set(), || profile.invalid("can only be set when AppArmor type is Localhost"));
        }
        "" => r.add(kind.required("type is required when appArmorProfile is set")),
        _ => r.add(kind.unsupported(&["Localhost", "RuntimeDefault", "Unconfined"])),
    }
}

/// The security context of a container.
pub(crate) fn container_context(r: &mut Report, at: &At<'_>, host_users: bool) {
    if !at.is_set() {
        return;
    }
    ids(r, at, &["runAsUser", "runAsGroup"]);
    let proc_mount = at.get("procMount");
    if proc_mount.is_set() {
        r.one_of(&proc_mount, &["Default", "Unmasked"]);
        r.when(host_users && proc_mount.str() == "Unmasked", || {
            proc_mount.invalid("`hostUsers` must be false to use `Unmasked`")
        });
    }
    seccomp(r, &at.get("seccompProfile"));
    if at.get("allowPrivilegeEscalation").value == &serde_json::Value::Bool(false) {
        r.when(at.get("privileged").is_true(), || {
            at.invalid_as(
                "core.SecurityContext",
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            )
        });
        for capability in at.down("capabilities.add").strings() {
            r.when(capability == "CAP_SYS_ADMIN", || {
                at.invalid_as(
                    "core.SecurityContext",
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
                )
            });
        }
    }
    windows(r, &at.get("windowsOptions"));
    app_armor(r, &at.get("appArmorProfile"));
}

fn windows(r: &mut Report, at: &At<'_>) {
    let (name, spec, user) =
        (at.get("gmsaCredentialSpecName"), at.get("gmsaCredentialSpec"), at.get("runAsUserName"));
    if name.is_set() {
        r.subdomain(&name);
    }
    if spec.is_set() {
        if spec.is_empty() {
            r.add(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
        } else if spec.len() > 64 * 1024 {
            r.add(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    if user.is_set() {
        windows_user(r, &user);
    }
}

fn windows_user(r: &mut Report, at: &At<'_>) {
    let text = at.str();
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if text.is_empty() => return r.add(at.invalid("runAsUserName cannot be an empty string")),
        _ if text.chars().any(|c| c.is_ascii_control()) => {
            return r.add(at.invalid("runAsUserName cannot contain control characters"));
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return r.add(at.invalid("runAsUserName cannot contain more than one backslash")),
    };
    if let Some(domain) = domain {
        r.when(domain.len() >= 256, || {
            at.invalid("runAsUserName's Domain length must be under 256 characters")
        });
        let forbidden = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
        let net_bios = (1..=15).contains(&domain.chars().count())
            && !domain.contains(forbidden)
            && !domain.starts_with('.');
        let dns =
            domain.split('.').all(|l| l.len() <= 63 && names::dns1123_label(&l.to_lowercase()).is_empty());
        r.when(!net_bios && !dns, || {
            at.invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
        });
    }
    if user.is_empty() {
        r.add(at.invalid("runAsUserName's User cannot be empty"));
    } else if user.len() > 104 {
        r.add(at.invalid("runAsUserName's User length must not be longer than 104 characters"));
    }
    r.when(!user.is_empty() && user.chars().all(|c| c == '.' || c == ' '), || {
        at.invalid("runAsUserName's User cannot contain only periods or spaces")
    });
    r.when(
        user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']),
        || at.invalid("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
    );
}

/// Windows pods whose containers are processes of the host.
pub(crate) fn windows_host_process(r: &mut Report, spec: &At<'_>) {
    let setting = |at: &At<'_>| at.down("securityContext.windowsOptions.hostProcess").value.as_bool();
    let pod = setting(spec);
    let containers = super::all_containers(spec);
    let mut hosts = 0;
    for container in &containers {
        let own = setting(container);
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let at = container.down("securityContext.windowsOptions.hostProcess");
            r.add(at.invalid(format!(
                "pod hostProcess value must be identical if both are specified, was {pod}"
            )));
        }
        hosts += usize::from(own.or(pod).unwrap_or(false));
    }
    if hosts > 0 {
        r.when(hosts != containers.len(), || {
            spec.invalid_with(
                "\"\"",
                "If pod contains any hostProcess containers then all containers must be HostProcess containers",
            )
        });
        let network = spec.get("hostNetwork");
        r.when(!network.is_true(), || {
            network
                .invalid_with("false", "hostNetwork must be true if pod contains any hostProcess containers")
        });
    }
}

const POD_NOT_WINDOWS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
const CONTAINER_NOT_WINDOWS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// What the operating system of a pod rules out.
pub(crate) fn operating_system(r: &mut Report, spec: &At<'_>) {
    let os = spec.get("os");
    if !os.is_set() {
        return;
    }
    let name = os.get("name");
    if r.required(&name) {
        return;
    }
    match name.str() {
        "linux" => {
            const WORDS: &str = "windows options cannot be set for a linux pod";
            for holder in [vec![spec.clone()], super::all_containers(spec)].concat() {
                let options = holder.down("securityContext.windowsOptions");
                r.when(options.is_set(), || options.forbidden(WORDS));
            }
        }
        "windows" => {
            const WORDS: &str = "cannot be set for a windows pod";
            for key in POD_NOT_WINDOWS {
                let at = spec.down(key);
                let given = match key {
                    "hostPID" | "hostIPC" => at.is_true(),
                    "securityContext.sysctls" => !at.is_empty(),
                    _ => at.is_set(),
                };
                r.when(given, || at.forbidden(WORDS));
            }
            for container in super::all_containers(spec) {
                for key in CONTAINER_NOT_WINDOWS {
                    let at = container.get("securityContext").get(key);
                    r.when(at.is_set(), || at.forbidden(WORDS));
                }
            }
        }
        _ => r.add(name.named(os.path).unsupported(&["linux", "windows"])),
    }
}
