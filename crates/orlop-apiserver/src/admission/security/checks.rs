//! What each level forbids, in the order and words of the original.

use super::{Level, Standard};
use crate::object;
use serde_json::Value;
use std::collections::BTreeSet;

/// A pod or the template of one.
#[derive(Clone, Copy)]
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

/// Something that a level forbids.
pub(super) struct Finding {
    pub(super) reason: String,
    pub(super) detail: String,
}

/// One rule of a level.
struct Check {
    level: Level,
    /// The first minor version that has it.
    since: u32,
    /// The check of the level below that this one replaces.
    replaces: &'static str,
    id: &'static str,
    run: fn(Pod<'_>, u32) -> Option<Finding>,
}

const fn check(
    level: Level,
    since: u32,
    id: &'static str,
    replaces: &'static str,
    run: fn(Pod<'_>, u32) -> Option<Finding>,
) -> Check {
    Check { level, since, replaces, id, run }
}

/// All rules: those of the baseline first, each level by name.
const CHECKS: [Check; 19] = [
    check(Level::Baseline, 0, "appArmorProfile", "", app_armor),
    check(Level::Baseline, 0, "capabilities_baseline", "", baseline_capabilities),
    check(Level::Baseline, 0, "hostNamespaces", "", host_namespaces),
    check(Level::Baseline, 0, "hostPathVolumes", "", host_paths),
    check(Level::Baseline, 0, "hostPorts", "", host_ports),
    check(Level::Baseline, 34, "hostProbesAndHostLifecycle", "", probe_hosts),
    check(Level::Baseline, 0, "privileged", "", privileged),
    check(Level::Baseline, 0, "procMount", "", |pod, minor| {
        if minor >= 35 && has_own_users(pod) { None } else { proc_mount(pod, minor) }
    }),
    check(Level::Baseline, 0, "seLinuxOptions", "", selinux),
    check(Level::Baseline, 19, "seccompProfile_baseline", "", |pod, _| bad_seccomp(pod)),
    check(Level::Baseline, 0, "sysctls", "", sysctls),
    check(Level::Baseline, 0, "windowsHostProcess", "", host_process),
    check(Level::Restricted, 8, "allowPrivilegeEscalation", "", escalation),
    check(Level::Restricted, 22, "capabilities_restricted", "capabilities_baseline", restricted_capabilities),
    check(Level::Restricted, 35, "procMount_restricted", "procMount", proc_mount),
    check(Level::Restricted, 0, "restrictedVolumes", "hostPathVolumes", volumes),
    check(Level::Restricted, 0, "runAsNonRoot", "", non_root),
    check(Level::Restricted, 23, "runAsUser", "", user_zero),
    check(Level::Restricted, 19, "seccompProfile_restricted", "seccompProfile_baseline", seccomp),
];

/// All that a standard forbids in a pod.
pub(super) fn find(standard: Standard, pod: Pod<'_>) -> Vec<Finding> {
    let minor = standard.minor.unwrap_or(u32::MAX);
    let active: Vec<&Check> =
        CHECKS.iter().filter(|check| check.level <= standard.level && check.since <= minor).collect();
    let replaced = |id: &str| active.iter().any(|check| check.replaces == id);
    if standard.level == Level::Privileged {
        return Vec::new();
    }
    active.iter().filter(|check| !replaced(check.id)).filter_map(|check| (check.run)(pod, minor)).collect()
}

fn finding(reason: &str, detail: String) -> Finding {
    Finding { reason: reason.to_owned(), detail }
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn named(containers: &[&str]) -> String {
    format!("{} {}", plural("container", containers.len()), quoted(containers))
}

impl<'a> Pod<'a> {
    fn containers(self) -> impl Iterator<Item = &'a Value> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |field| list(self.spec, field))
    }

    /// Names of the containers for which something holds.
    fn containers_with(self, mut holds: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|c| holds(c)).map(|c| object::text(c, "name")).collect()
    }

    /// Who sets something wrongly: the pod, its containers, or both.
    fn setters(self, mut wrong: impl FnMut(&'a Value) -> bool) -> Vec<String> {
        let mut setters = Vec::new();
        if wrong(&self.spec["securityContext"]) {
            setters.push("pod".to_owned());
        }
        let containers = self.containers_with(|container| wrong(&container["securityContext"]));
        if !containers.is_empty() {
            setters.push(named(&containers));
        }
        setters
    }
}

fn has_own_users(pod: Pod<'_>) -> bool {
    pod.spec["hostUsers"] == false
}

fn is_windows(pod: Pod<'_>) -> bool {
    pod.spec["os"]["name"] == "windows"
}

fn app_armor(pod: Pod<'_>, _: u32) -> Option<Finding> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = BTreeSet::new();
    let mut setters = pod.setters(|context| {
        let profile = &context["appArmorProfile"];
        let kind = object::text(profile, "type");
        let wrong = profile.is_object() && !matches!(kind, "RuntimeDefault" | "Localhost");
        if wrong {
            values.insert(kind.to_owned());
        }
        wrong
    });
    let mut values: Vec<String> = values.into_iter().collect();
    let annotations = pod.metadata["annotations"].as_object().into_iter().flatten();
    let forbidden: Vec<String> = annotations
        .filter(|(key, _)| key.starts_with(PREFIX))
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(_, value)| {
            !value.is_empty() && *value != "runtime/default" && !value.starts_with("localhost/")
        })
        .map(|(key, value)| format!("{key}={}", orlop_schema::field::go_quote(value)))
        .collect();
    if !forbidden.is_empty() {
        setters.push(plural("annotation", forbidden.len()));
        values.extend(forbidden);
    }
    if setters.is_empty() {
        return None;
    }
    let detail =
        format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(&values));
    Some(finding(&plural("forbidden AppArmor profile", values.len()), detail))
}

fn baseline_capabilities(pod: Pod<'_>, _: u32) -> Option<Finding> {
    const ALLOWED: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (containers, added) = adding(pod, &ALLOWED);
    if containers.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        named(&containers),
        quoted(added)
    );
    Some(finding("non-default capabilities", detail))
}

/// Containers that add other capabilities than these, and which.
fn adding<'a>(pod: Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut added = BTreeSet::new();
    let containers = pod.containers_with(|container| {
        let all = list(&container["securityContext"]["capabilities"], "add").iter().filter_map(Value::as_str);
        let wrong: Vec<&str> = all.filter(|capability| !allowed.contains(capability)).collect();
        added.extend(&wrong);
        !wrong.is_empty()
    });
    (containers, added)
}

fn restricted_capabilities(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 25 && is_windows(pod) {
        return None;
    }
    let keeping = pod.containers_with(|container| {
        !list(&container["securityContext"]["capabilities"], "drop").contains(&"ALL".into())
    });
    let (containers, added) = adding(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeping)));
    }
    if !containers.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&containers),
            quoted(added)
        ));
    }
    if details.is_empty() { None } else { Some(finding("unrestricted capabilities", details.join("; "))) }
}

fn host_namespaces(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[*field] == true);
    let set: Vec<String> = fields.map(|field| format!("{field}=true")).collect();
    if set.is_empty() { None } else { Some(finding("host namespaces", set.join(", "))) }
}

fn host_paths(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let volumes = list(pod.spec, "volumes").iter().filter(|volume| volume["hostPath"].is_object());
    let names: Vec<&str> = volumes.map(|volume| object::text(volume, "name")).collect();
    if names.is_empty() {
        return None;
    }
    Some(finding("hostPath volumes", format!("{} {}", plural("volume", names.len()), quoted(&names))))
}

fn host_ports(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let mut ports = BTreeSet::new();
    let containers = pod.containers_with(|container| {
        let used = list(container, "ports").iter().filter_map(|port| port["hostPort"].as_i64());
        let used: Vec<String> = used.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        let wrong = !used.is_empty();
        ports.extend(used);
        wrong
    });
    if containers.is_empty() {
        return None;
    }
    let verb = if containers.len() == 1 { "uses" } else { "use" };
    let ports_named = plural("hostPort", ports.len());
    let ports = Vec::from_iter(ports).join(", ");
    Some(finding("hostPort", format!("{} {verb} {ports_named} {ports}", named(&containers))))
}

fn probe_hosts(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let mut hosts = BTreeSet::new();
    let containers = pod.containers_with(|container| {
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &container["lifecycle"]["postStart"],
            &container["lifecycle"]["preStop"],
        ];
        let all = handlers.into_iter().flat_map(|handler| [&handler["httpGet"], &handler["tcpSocket"]]);
        let set: Vec<&str> =
            all.map(|action| object::text(action, "host")).filter(|host| !host.is_empty()).collect();
        hosts.extend(set.iter().map(|host| (*host).to_owned()));
        !set.is_empty()
    });
    let containers: Vec<&str> = BTreeSet::from_iter(containers).into_iter().collect();
    if containers.is_empty() {
        return None;
    }
    let verb = if containers.len() == 1 { "uses" } else { "use" };
    let what = plural("probe or lifecycle host", hosts.len());
    Some(finding(
        "probe or lifecycle host",
        format!("{} {verb} {what} {}", named(&containers), quoted(hosts)),
    ))
}

fn privileged(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let containers = pod.containers_with(|container| container["securityContext"]["privileged"] == true);
    if containers.is_empty() {
        return None;
    }
    Some(finding(
        "privileged",
        format!("{} must not set securityContext.privileged=true", named(&containers)),
    ))
}

fn proc_mount(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let mut kinds = BTreeSet::new();
    let containers = pod.containers_with(|container| {
        let kind = container["securityContext"]["procMount"].as_str().filter(|kind| *kind != "Default");
        kinds.extend(kind);
        kind.is_some()
    });
    if containers.is_empty() {
        return None;
    }
    let detail =
        format!("{} must not set securityContext.procMount to {}", named(&containers), quoted(kinds));
    Some(finding("procMount", detail))
}

fn selinux(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let setters = pod.setters(|context| {
        let options = &context["seLinuxOptions"];
        if !options.is_object() {
            return false;
        }
        let kind = object::text(options, "type");
        let known = matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || minor >= 31 && kind == "container_engine_t";
        if !known {
            types.insert(kind.to_owned());
        }
        let (sets_user, sets_role) =
            (!object::text(options, "user").is_empty(), !object::text(options, "role").is_empty());
        user |= sets_user;
        role |= sets_role;
        !known || sets_user || sets_role
    });
    if setters.is_empty() {
        return None;
    }
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!("{} {}", plural("type", types.len()), quoted(types)));
    }
    if user {
        data.push("user may not be set".to_owned());
    }
    if role {
        data.push("role may not be set".to_owned());
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters.join(" and "),
        data.join("; ")
    );
    Some(finding("seLinuxOptions", detail))
}

fn is_safe_seccomp(context: &Value) -> bool {
    matches!(object::text(&context["seccompProfile"], "type"), "RuntimeDefault" | "Localhost")
}

fn bad_seccomp(pod: Pod<'_>) -> Option<Finding> {
    let mut values = BTreeSet::new();
    let setters = pod.setters(|context| {
        let wrong = context["seccompProfile"].is_object() && !is_safe_seccomp(context);
        if wrong {
            values.insert(object::text(&context["seccompProfile"], "type").to_owned());
        }
        wrong
    });
    if setters.is_empty() {
        return None;
    }
    let setters = setters.join(" and ");
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(finding("seccompProfile", detail))
}

fn seccomp(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 25 && is_windows(pod) {
        return None;
    }
    if let Some(found) = bad_seccomp(pod) {
        return Some(found);
    }
    if is_safe_seccomp(&pod.spec["securityContext"]) {
        return None;
    }
    let silent = pod.containers_with(|container| !container["securityContext"]["seccompProfile"].is_object());
    if silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        named(&silent)
    );
    Some(finding("seccompProfile", detail))
}

fn sysctls(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    const ALLOWED: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let names =
        list(&pod.spec["securityContext"], "sysctls").iter().map(|sysctl| object::text(sysctl, "name"));
    let allowed = |name: &str| ALLOWED.iter().any(|(known, since)| *known == name && *since <= minor);
    let forbidden: Vec<&str> = names.filter(|name| !allowed(name)).collect();
    if forbidden.is_empty() { None } else { Some(finding("forbidden sysctls", forbidden.join(", "))) }
}

fn host_process(pod: Pod<'_>, _: u32) -> Option<Finding> {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true);
    if setters.is_empty() {
        return None;
    }
    let setters = setters.join(" and ");
    Some(finding(
        "hostProcess",
        format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"),
    ))
}

fn escalation(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 25 && is_windows(pod) {
        return None;
    }
    let containers =
        pod.containers_with(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    if containers.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&containers));
    Some(finding("allowPrivilegeEscalation != false", detail))
}

fn volumes(pod: Pod<'_>, _: u32) -> Option<Finding> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in list(pod.spec, "volumes") {
        if ALLOWED.iter().any(|kind| volume[*kind].is_object()) {
            continue;
        }
        names.push(object::text(volume, "name"));
        let mut sources = volume.as_object().into_iter().flatten().filter(|(_, source)| source.is_object());
        kinds.insert(sources.next().map_or("unknown", |(kind, _)| kind.as_str()));
    }
    if names.is_empty() {
        return None;
    }
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let detail = format!(
        "{} {} {verb} {} {}",
        plural("volume", names.len()),
        quoted(&names),
        plural("restricted volume type", kinds.len()),
        quoted(kinds)
    );
    Some(finding("restricted volume types", detail))
}

fn non_root(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 35 && has_own_users(pod) {
        return None;
    }
    let setters = pod.setters(|context| context["runAsNonRoot"] == false);
    if !setters.is_empty() {
        let setters = setters.join(" and ");
        return Some(finding(
            "runAsNonRoot != true",
            format!("{setters} must not set securityContext.runAsNonRoot=false"),
        ));
    }
    if pod.spec["securityContext"]["runAsNonRoot"] == true {
        return None;
    }
    let silent = pod.containers_with(|container| container["securityContext"]["runAsNonRoot"].is_null());
    if silent.is_empty() {
        return None;
    }
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", named(&silent));
    Some(finding("runAsNonRoot != true", detail))
}

fn user_zero(pod: Pod<'_>, minor: u32) -> Option<Finding> {
    if minor >= 35 && has_own_users(pod) {
        return None;
    }
    let setters = pod.setters(|context| context["runAsUser"] == 0);
    if setters.is_empty() {
        return None;
    }
    Some(finding("runAsUser=0", format!("{} must not set runAsUser=0", setters.join(" and "))))
}
