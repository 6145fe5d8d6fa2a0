//! Pods and pod templates.

mod container;
mod env;
mod probe;
pub(super) mod resources;
pub(super) mod scheduling;
mod security;
mod status;
mod update;
pub(super) mod volume;

pub(super) use container::PROTOCOLS;

use super::Rules;
use super::meta::{self, Scope};
use super::view::{At, Report};
use container::Surroundings;
use orlop_schema::labels::{self, SelectorOptions};
use orlop_schema::names::{self, NameRule, inclusive_range};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rules] = &[
    Rules::new(
        "",
        "Pod",
        Scope::Namespaced,
        create,
        update::update,
        &[
            ("status", status::update),
            ("ephemeralcontainers", update::ephemeral_containers),
            ("resize", update::resize),
        ],
    ),
    Rules::new("", "PodTemplate", Scope::Namespaced, pod_template, pod_template_update, &[]),
];

/// What is let through because an older object has it already.
#[derive(Clone, Debug, Default)]
pub(super) struct PodOptions {
    /// The object is a pod, not a template.
    pub(super) is_pod: bool,
    pub(super) any_selector_value: bool,
    pub(super) any_node_label_value: bool,
    pub(super) any_spread_selector: bool,
    pub(super) any_huge_pages: bool,
    pub(super) any_token_path: bool,
    pub(super) any_host_sysctl: bool,
    pub(super) any_selinux_policy: bool,
    pub(super) any_init_resize: bool,
    pub(super) any_volume_devices: bool,
    pub(super) any_deletion_cost: bool,
}

impl PodOptions {
    /// What an update of a pod or template may keep.
    pub(super) fn for_update(spec: &At<'_>, meta: &At<'_>) -> Self {
        let refused = |at: &At<'_>, check: &dyn Fn(&mut Report, &At<'_>)| {
            let mut report = Report::default();
            check(&mut report, at);
            !report.0.is_empty()
        };
        let strict = Self::default();
        let sloppy = Self { any_selector_value: true, ..Self::default() };
        let affinity = spec.get("affinity");
        let affinity_refused = refused(&affinity, &|r, at| scheduling::affinity(r, at, &strict));
        let huge = |at: &At<'_>| {
            all_containers(at).iter().any(|c| {
                refused(&c.get("resources"), &|r, at| {
                    resources::requirements(r, at, &BTreeSet::new(), &strict);
                })
            })
        };
        Self {
            is_pod: false,
            any_selector_value: affinity_refused
                && !refused(&affinity, &|r, at| scheduling::affinity(r, at, &sloppy)),
            any_node_label_value: affinity_refused,
            any_spread_selector: scheduling::has_bad_spread_selector(spec),
            any_huge_pages: huge(spec),
            any_token_path: refused(&spec.get("volumes"), &|r, at| {
                for source in at.items().iter().flat_map(|v| v.down("projected.sources").items()) {
                    r.unreserved_path(&source.down("serviceAccountToken.path"));
                }
            }),
            any_host_sysctl: security::has_host_sysctl(spec),
            any_selinux_policy: spec.down("securityContext.seLinuxChangePolicy").is_set(),
            any_init_resize: spec.get("initContainers").items().iter().any(|c| {
                c.get("restartPolicy").str() != "Always"
                    && c.get("resizePolicy")
                        .items()
                        .iter()
                        .any(|p| p.get("restartPolicy").str() == "RestartContainer")
            }),
            any_volume_devices: spec.get("hostUsers").value == &Value::Bool(false)
                && all_containers(spec).iter().any(|c| !c.get("volumeDevices").is_empty()),
            any_deletion_cost: bad_deletion_cost(&meta.get("annotations")),
        }
    }
}

/// All containers of a pod, in the order rules visit them.
pub(super) fn all_containers<'a>(spec: &At<'a>) -> Vec<At<'a>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|key| spec.get(key).items())
        .collect()
}

fn create(r: &mut Report, pod: &At<'_>) {
    metadata_and_spec(r, pod, &PodOptions { is_pod: true, ..PodOptions::default() });
    let spec = pod.get("spec");
    let ephemeral = spec.get("ephemeralContainers");
    r.when(!ephemeral.is_empty(), || ephemeral.forbidden("cannot be set on create"));
    let node = spec.get("nodeName");
    r.when(!node.is_empty() && !spec.get("schedulingGates").is_empty(), || {
        node.forbidden("cannot be set until all schedulingGates have been cleared")
    });
    profiles_match(r, &pod.down("metadata.annotations"), &spec);
}

fn metadata_and_spec(r: &mut Report, pod: &At<'_>, options: &PodOptions) {
    meta::create(r, pod, Scope::Namespaced, NameRule::Subdomain);
    let spec = pod.get("spec");
    annotations(r, &pod.down("metadata.annotations"), &spec, options);
    pod_spec(r, &spec, Some(pod.get("metadata")), options);
    if spec.get("serviceAccountName").is_empty() {
        for volume in spec.get("volumes").items() {
            for source in volume.down("projected.sources").items() {
                let token = source.get("serviceAccountToken");
                r.when(token.is_set(), || {
                    token.forbidden("must not be specified when serviceAccountName is not set")
                });
            }
        }
    }
    for key in ["containers", "initContainers"] {
        for container in spec.get(key).items() {
            container::image_has_no_blanks(r, &container);
        }
    }
}

fn bad_deletion_cost(annotations: &At<'_>) -> bool {
    let cost = annotations.key("controller.kubernetes.io/pod-deletion-cost");
    let text = cost.str();
    let canonical = text.parse::<i32>().is_ok_and(|_| !text.starts_with('+') && !leading_zero(text));
    cost.is_set() && !canonical
}

fn leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0')
}

/// Annotations that mean something to pods.
fn annotations(r: &mut Report, at: &At<'_>, spec: &At<'_>, options: &PodOptions) {
    const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let mirror = at.key("kubernetes.io/config.mirror");
    r.when(mirror.is_set() && spec.get("nodeName").is_empty(), || {
        mirror.invalid("must set spec.nodeName if mirror pod annotation is set")
    });
    r.when(!options.any_deletion_cost && bad_deletion_cost(at), || {
        at.key("controller.kubernetes.io/pod-deletion-cost").invalid("must be a 32bit integer")
    });
    if at.key(SECCOMP_POD).is_set() {
        seccomp_annotation(r, &at.get(SECCOMP_POD));
    }
    for (key, _) in at.entries() {
        if key.starts_with(SECCOMP_CONTAINER) {
            seccomp_annotation(r, &at.get(key));
        }
    }
    for (key, value) in at.entries() {
        let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
        let known = all_containers(spec).iter().any(|c| c.get("name").str() == name);
        r.when(!known, || value.invalid_with(orlop_schema::field::go_quote(name), "container not found"));
        let profile = value.str();
        let fine =
            ["", "runtime/default", "unconfined"].contains(&profile) || profile.starts_with("localhost/");
        r.when(!fine, || {
            let quoted = orlop_schema::field::go_quote(profile);
            value.invalid(format!("invalid AppArmor profile name: {quoted}"))
        });
    }
}

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn seccomp_annotation(r: &mut Report, at: &At<'_>) {
    let profile = at.str();
    if ["runtime/default", "docker/default", "unconfined"].contains(&profile) {
        return;
    }
    if let Some(path) = profile.strip_prefix("localhost/") {
        let path = Value::String(path.to_owned());
        r.descending_path(&At { value: &path, path: at.path.clone() });
        return;
    }
    r.add(at.invalid_str("must be a valid seccomp profile"));
}

/// Profiles that are given both as annotation and as field must say the same.
fn profiles_match(r: &mut Report, annotations: &At<'_>, spec: &At<'_>) {
    let pod = spec.down("securityContext.seccompProfile");
    let key = "seccomp.security.alpha.kubernetes.io/pod";
    profile_matches(r, &annotations.key(key), &pod, &pod, "seccomp");
    for container in all_containers(spec) {
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{}", container.get("name").str());
        let own = container.down("securityContext.seccompProfile");
        profile_matches(r, &annotations.key(&key), &own, &own, "seccomp");
    }
    if spec.down("os.name").str() == "windows" {
        return;
    }
    let pod = spec.down("securityContext.appArmorProfile");
    for container in all_containers(spec) {
        let own = container.down("securityContext.appArmorProfile");
        let key = format!("{APP_ARMOR}{}", container.get("name").str());
        let effective = if own.is_set() { &own } else { &pod };
        profile_matches(r, &annotations.key(&key), effective, &own, "apparmor");
    }
}

fn profile_matches(r: &mut Report, annotation: &At<'_>, profile: &At<'_>, at: &At<'_>, what: &str) {
    if !annotation.is_set() || !profile.is_set() {
        return;
    }
    let text = annotation.str();
    let (kind_fits, path_fits) = match profile.get("type").str() {
        "Unconfined" => (text == "unconfined", true),
        "RuntimeDefault" => {
            (text == "runtime/default" || (what == "seccomp" && text == "docker/default"), true)
        }
        "Localhost" => match text.strip_prefix("localhost/") {
            Some(path) => (true, profile.get("localhostProfile").value.as_str() == Some(path)),
            None => (false, true),
        },
        _ => (true, true),
    };
    if !kind_fits {
        r.add(at.get("type").forbidden(format!("{what} type in annotation and field must match")));
    } else if !path_fits {
        let words = format!("{what} profile in annotation and field must match");
        r.add(at.get("localhostProfile").forbidden(words));
    }
}

/// A template of pods, below `at`.
pub(super) fn template(r: &mut Report, at: &At<'_>, options: &PodOptions) {
    // Labels and annotations are reported beside the metadata they belong to.
    let meta = at.get("metadata").named(at.path.clone());
    r.labels(&meta.get("labels"));
    r.annotations(&meta.get("annotations"));
    let spec = at.get("spec");
    annotations(r, &meta.get("annotations"), &spec, options);
    pod_spec(r, &spec, None, options);
    profiles_match(r, &meta.get("annotations"), &spec);
    let ephemeral = spec.get("ephemeralContainers");
    r.when(!ephemeral.is_empty(), || ephemeral.forbidden("ephemeral containers not allowed in pod template"));
}

/// The labels and annotations of a template again, as StatefulSets report them twice.
pub(super) fn template_metadata(r: &mut Report, at: &At<'_>, options: &PodOptions) {
    let meta = at.get("metadata").named(at.path.clone());
    r.labels(&meta.get("labels"));
    r.annotations(&meta.get("annotations"));
    annotations(r, &meta.get("annotations"), &at.get("spec"), options);
}

fn pod_template(r: &mut Report, object: &At<'_>) {
    meta::create(r, object, Scope::Namespaced, NameRule::Subdomain);
    template(r, &object.get("template"), &PodOptions::default());
}

fn pod_template_update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    let before = old.get("template");
    let options = PodOptions::for_update(&before.get("spec"), &before.get("metadata"));
    template(r, &new.get("template"), &options);
}

/// The spec of a pod; `meta` is its metadata when it is a pod and not a template.
pub(super) fn pod_spec(r: &mut Report, spec: &At<'_>, meta: Option<At<'_>>, options: &PodOptions) {
    let grace = spec.get("terminationGracePeriodSeconds");
    r.when(!grace.is_set(), || grace.required(""));
    let pod_name = meta.as_ref().map(|m| m.get("name").str());
    let volumes = volume::volumes(r, &spec.get("volumes"), pod_name, options);
    let claims = spec.get("resourceClaims");
    let claim_names: BTreeSet<&str> =
        claims.items().iter().map(|c| c.get("name").str()).filter(|n| !n.is_empty()).collect();
    let mirror = meta.is_some_and(|m| m.get("annotations").key("kubernetes.io/config.mirror").is_set());
    resource_claims(r, &claims, mirror);
    let pod = Surroundings { spec: spec.clone(), volumes, claims: claim_names, options };
    container::containers(r, &spec.get("containers"), &pod);
    container::init_containers(r, &spec.get("initContainers"), &pod);
    container::ephemeral_containers(r, &spec.get("ephemeralContainers"), &pod);
    resources::pod_requirements(r, spec, &pod.claims, options);
    host_network_ports(r, spec, options);
    r.required_one_of(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    r.required_one_of(
        &spec.get("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    r.labels(&spec.get("nodeSelector"));
    security::pod_context(r, spec, options);
    scheduling::affinity(r, &spec.get("affinity"), options);
    dns_config(r, &spec.get("dnsConfig"), spec.get("dnsPolicy").str());
    for gate in spec.get("readinessGates").items() {
        r.qualified(&gate.get("conditionType"));
    }
    let mut seen = BTreeSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name").named(gate.path.clone());
        r.qualified(&name);
        r.when(!seen.insert(name.str()), || name.duplicate_str());
    }
    scheduling::topology_spread(r, &spec.get("topologySpreadConstraints"), options);
    security::windows_host_process(r, spec);
    host_users(r, spec, options);
    hostname_override(r, spec);
    for key in ["serviceAccountName", "nodeName"] {
        let at = spec.get(key);
        if !at.is_empty() {
            r.subdomain(&at);
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    let longest = i64::from(i32::MAX);
    r.when(deadline.is_set() && !(1..=longest).contains(&deadline.int()), || {
        deadline.invalid(inclusive_range(1, longest))
    });
    for key in ["hostname", "subdomain"] {
        let at = spec.get(key);
        if !at.is_empty() {
            r.label(&at);
        }
    }
    scheduling::tolerations(r, &spec.get("tolerations"));
    for alias in spec.get("hostAliases").items() {
        r.ip(&alias.get("ip"), &[]);
        for host in alias.get("hostnames").items() {
            r.subdomain(&host);
        }
    }
    let priority = spec.get("priorityClassName");
    if !priority.is_empty() {
        r.subdomain(&priority);
    }
    let runtime = spec.get("runtimeClassName");
    if runtime.is_set() {
        r.subdomain(&runtime);
    }
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() {
        r.required_one_of(&preemption, &["PreemptLowerPriority", "Never"]);
    }
    let overhead = spec.get("overhead");
    if overhead.is_set() {
        let wrapped = serde_json::json!({"limits": overhead.value});
        resources::requirements(
            r,
            &At { value: &wrapped, path: overhead.path.clone() },
            &BTreeSet::new(),
            options,
        );
    }
    security::operating_system(r, spec);
    let group = spec.get("schedulingGroup");
    if group.is_set() {
        let name = group.get("podGroupName");
        if name.is_set() {
            r.subdomain(&name);
        } else {
            r.add(name.invalid("must specify one of: `podGroupName`"));
        }
    }
    file_key_volumes(r, spec);
}

fn resource_claims(r: &mut Report, list: &At<'_>, mirror: bool) {
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        if mirror {
            let nowhere = claim.named(orlop_schema::field::Path::root().key(""));
            r.add(nowhere.forbidden("static pods do not support resource claims"));
            continue;
        }
        let name = claim.get("name");
        if !r.required(&name) {
            if seen.contains(name.str()) {
                r.add(name.duplicate());
            } else {
                r.label(&name);
                seen.insert(name.str());
            }
        }
        let (direct, by_template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        r.when(direct.is_set() && by_template.is_set(), || {
            claim.invalid_as(
                "core.PodResourceClaim",
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            )
        });
        r.when(!direct.is_set() && !by_template.is_set(), || {
            claim.invalid_as(
                "core.PodResourceClaim",
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            )
        });
        for at in [direct, by_template] {
            if at.is_set() {
                r.subdomain(&at);
            }
        }
    }
}

fn host_network_ports(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for port in spec.get("containers").items().iter().flat_map(|c| c.get("ports").items()) {
        let host = port.get("hostPort");
        let differs = host.int() != port.get("containerPort").int();
        r.when((options.is_pod || host.int() != 0) && differs, || {
            host.invalid_int("must match `containerPort` when `hostNetwork` is true")
        });
    }
}

fn dns_config(r: &mut Report, at: &At<'_>, policy: &str) {
    let servers = at.get("nameservers");
    if policy == "None" {
        if !at.is_set() {
            return r.add(at.required("must provide `dnsConfig` when `dnsPolicy` is None"));
        }
        if servers.is_empty() {
            return r
                .add(servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None"));
        }
    }
    r.when(servers.len() > 3, || servers.invalid("must not have more than 3 nameservers"));
    for server in servers.items() {
        r.ip(&server, &[]);
    }
    let searches = at.get("searches");
    r.when(searches.len() > 32, || searches.invalid("must not have more than 32 search paths"));
    r.when(searches.strings().join(" ").len() > 2048, || {
        searches.invalid("must not have more than 2048 characters (including spaces) in the search list")
    });
    for search in searches.items() {
        if search.str() != "." {
            let text = search.str().strip_suffix('.').unwrap_or(search.str());
            for wrong in names::dns1123_subdomain_with_underscore(text) {
                r.add(search.invalid_with(orlop_schema::field::go_quote(text), wrong));
            }
        }
    }
    for option in at.get("options").items() {
        r.when(option.get("name").is_empty(), || option.required("must not be empty"));
    }
}

fn host_users(r: &mut Report, spec: &At<'_>, options: &PodOptions) {
    const WORDS: &str = "when `hostUsers` is false";
    if spec.get("hostUsers").value != &Value::Bool(false) {
        return;
    }
    for (key, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        let at = spec.get(key).named(spec.path.child(shown));
        r.when(at.is_true(), || at.forbidden(WORDS));
    }
    if !options.any_volume_devices {
        for container in all_containers(spec) {
            let devices = container.get("volumeDevices");
            r.when(!devices.is_empty(), || devices.forbidden(WORDS));
        }
    }
}

fn hostname_override(r: &mut Report, spec: &At<'_>) {
    let at = spec.get("hostnameOverride");
    if !at.is_set() {
        return;
    }
    r.when(spec.get("setHostnameAsFQDN").is_true(), || {
        at.forbidden("may not be specified when setHostnameAsFQDN is true")
    });
    r.when(spec.get("hostNetwork").is_true(), || {
        at.forbidden("may not be specified when hostNetwork is true")
    });
    r.when(at.len() > 64, || at.too_long(64));
    r.subdomain(&at);
}

fn file_key_volumes(r: &mut Report, spec: &At<'_>) {
    let volumes = spec.get("volumes").items();
    for container in all_containers(spec) {
        for variable in container.get("env").items() {
            let reference = variable.down("valueFrom.fileKeyRef");
            if !reference.is_set() {
                continue;
            }
            let name = reference.get("volumeName");
            match volumes.iter().rev().find(|v| v.get("name").str() == name.str()) {
                None => r.add(name.not_found()),
                Some(volume) => r.when(!volume.get("emptyDir").is_set(), || {
                    name.invalid_str("referenced volume must be of type emptyDir")
                }),
            }
        }
    }
}

/// The labels of a template must be selected; a missing selector selects nothing, an empty one is not asked.
pub(super) fn template_is_selected(r: &mut Report, selector: &At<'_>, template: &At<'_>) {
    let found = template.down("metadata.labels");
    let unselected = if selector.is_set() {
        !labels::selector_is_empty(selector.value) && !labels::selector_matches(selector.value, found.value)
    } else {
        true
    };
    r.when(unselected, || found.invalid("`selector` does not match template `labels`"));
}

/// The options with which selectors of workloads are checked.
pub(super) fn lenient(options: &PodOptions) -> SelectorOptions {
    SelectorOptions { any_value: options.any_selector_value, any_operator: false }
}
