//! Containers, init containers and ephemeral containers.

use super::super::view::{At, Report};
use super::env::{env, env_from};
use super::resources::requirements;
use super::security::container_context;
use super::volume::Volumes;
use super::{PodOptions, probe};
use orlop_schema::field::{FieldError, Path, go_quote};
use orlop_schema::names;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
pub(crate) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What a container can refer to in its pod.
pub(crate) struct Surroundings<'a> {
    pub(crate) spec: At<'a>,
    pub(crate) volumes: Volumes<'a>,
    pub(crate) claims: BTreeSet<&'a str>,
    pub(crate) options: &'a PodOptions,
}

impl Surroundings<'_> {
    fn host_users(&self) -> bool {
        self.spec.get("hostUsers").value != &Value::Bool(false)
    }

    fn grace_seconds(&self) -> Option<i64> {
        self.spec.get("terminationGracePeriodSeconds").number()
    }

    fn os(&self) -> Option<&str> {
        self.spec.get("os").value.get("name").and_then(Value::as_str)
    }
}

/// The containers that do the work.
pub(crate) fn containers(r: &mut Report, list: &At<'_>, pod: &Surroundings<'_>) {
    if r.required(list) {
        return;
    }
    let mut seen = BTreeSet::new();
    for container in list.items() {
        common(r, &container, pod);
        let name = container.get("name");
        r.when(!seen.insert(name.str()), || name.duplicate_str());
        lifecycle_and_probes(r, &container, pod);
        restart_policy(r, &container);
    }
    host_ports(r, &list.items(), &list.path);
}

fn lifecycle_and_probes(r: &mut Report, container: &At<'_>, pod: &Surroundings<'_>) {
    let grace = pod.grace_seconds();
    let lifecycle = container.get("lifecycle");
    if lifecycle.is_set() {
        probe::lifecycle(r, &lifecycle, grace, pod.os());
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe::probe(r, &container.get(kind), grace, kind == "readinessProbe");
    }
}

fn restart_policy(r: &mut Report, container: &At<'_>) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if policy.is_set() {
        r.one_of(&policy, &["Always", "Never", "OnFailure"]);
    } else if rules.is_empty() {
        return;
    } else {
        r.add(policy.required("must specify restartPolicy when restart rules are used"));
    }
    r.when(rules.len() > 20, || rules.too_many(20));
    for rule in rules.items() {
        r.one_of(&rule.get("action"), &["Restart", "RestartAllContainers"]);
        let codes = rule.get("exitCodes");
        if codes.is_set() {
            r.one_of(&codes.get("operator"), &["In", "NotIn"]);
            let values = codes.get("values");
            r.when(values.len() > 255, || values.too_many(255));
        } else {
            r.add(codes.required("must be specified"));
        }
    }
}

/// The containers that run before.
pub(crate) fn init_containers(r: &mut Report, list: &At<'_>, pod: &Surroundings<'_>) {
    const WORDS: &str = "may not be set for init containers without restartPolicy=Always";
    let regular = pod.spec.get("containers").items();
    let mut seen: BTreeSet<&str> = regular.iter().map(|c| c.get("name").str()).collect();
    for container in list.items() {
        common(r, &container, pod);
        let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
        if policy.is_set() {
            restart_policy(r, &container);
        } else {
            r.when(!rules.is_empty(), || {
                policy.required("must specify restartPolicy when restart rules are used")
            });
        }
        let name = container.get("name");
        let twice = seen.contains(name.str());
        r.when(twice, || name.duplicate_str());
        if !name.is_empty() {
            seen.insert(name.str());
        }
        host_ports(r, std::slice::from_ref(&container), &list.path);
        let sidecar = policy.str() == "Always";
        if sidecar {
            lifecycle_and_probes(r, &container, pod);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                let at = container.get(key);
                r.when(at.is_set(), || at.forbidden(WORDS));
            }
            for item in container.get("resizePolicy").items() {
                let policy = item.get("restartPolicy");
                r.when(policy.str() == "RestartContainer" && !pod.options.any_init_resize, || {
                    policy.invalid("must not be set to 'RestartContainer' for non-sidecar initContainers")
                });
            }
        }
    }
}

/// The containers that were added to debug.
pub(crate) fn ephemeral_containers(r: &mut Report, list: &At<'_>, pod: &Surroundings<'_>) {
    const WORDS: &str = "cannot be set for an Ephemeral Container";
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|key| pod.spec.get(key).items())
        .map(|c| c.get("name").str())
        .collect();
    let mut seen = others.clone();
    for container in list.items() {
        common(r, &container, pod);
        image_has_no_blanks(r, &container);
        let (name, target) = (container.get("name"), container.get("targetContainerName"));
        r.when(!seen.insert(name.str()), || name.duplicate_str());
        r.when(!target.is_empty() && !others.contains(target.str()), || target.not_found());
        for key in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            let at = container.get(key);
            let given = if at.value.is_array() || key == "resources" { !at.is_empty() } else { at.is_set() };
            r.when(given, || at.forbidden(WORDS));
        }
        for mount in container.get("volumeMounts").items() {
            for key in ["subPath", "subPathExpr"] {
                let at = mount.get(key);
                r.when(!at.is_empty(), || at.forbidden(WORDS));
            }
        }
    }
}

/// A rule that holds for pods but not for templates.
pub(crate) fn image_has_no_blanks(r: &mut Report, container: &At<'_>) {
    let image = container.get("image");
    r.when(image.str().trim() != image.str(), || {
        image.invalid("must not have leading or trailing whitespace")
    });
}

fn common(r: &mut Report, at: &At<'_>, pod: &Surroundings<'_>) {
    r.required_label(&at.get("name"));
    r.required(&at.get("image"));
    r.required_one_of(&at.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(r, &at.get("ports"));
    env(r, &at.get("env"));
    env_from(r, &at.get("envFrom"));
    volume_mounts(r, at, pod);
    volume_devices(r, at, pod);
    r.required_one_of(&at.get("imagePullPolicy"), &PULL_POLICIES);
    requirements(r, &at.get("resources"), &pod.claims, pod.options);
    resize_policy(r, &at.get("resizePolicy"), pod.spec.get("restartPolicy").str());
    container_context(r, &at.get("securityContext"), pod.host_users());
}

fn ports(r: &mut Report, list: &At<'_>) {
    let mut seen = BTreeSet::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let wrong = names::port_name(name.str());
            if wrong.is_empty() {
                r.when(!seen.insert(name.str()), || name.duplicate());
            } else {
                r.each(&name, wrong);
            }
        }
        let number = port.get("containerPort");
        if number.int() == 0 {
            r.add(number.required(""));
        } else {
            r.port(&number);
        }
        let host = port.get("hostPort");
        if host.int() != 0 {
            r.port(&host);
        }
        r.required_one_of(&port.get("protocol"), &PROTOCOLS);
    }
}

/// Ports of the host may be taken only once; paths count containers from the start of `list`.
fn host_ports(r: &mut Report, containers: &[At<'_>], list: &Path) {
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (number, port) in container.get("ports").items().iter().enumerate() {
            let host = port.get("hostPort").int();
            if host == 0 {
                continue;
            }
            let key = format!("{}/{}/{host}", port.get("protocol").str(), port.get("hostIP").str());
            let path = list.index(index).child("ports").index(number).child("hostPort");
            if !seen.insert(key.clone()) {
                r.add(FieldError::duplicate(&path, &Value::String(key)));
            }
        }
    }
}

fn by_name<'a>(list: &At<'a>, path: &str) -> BTreeMap<&'a str, &'a str> {
    list.items().iter().map(|item| (item.get("name").str(), item.get(path).str())).collect()
}

fn volume_mounts(r: &mut Report, container: &At<'_>, pod: &Surroundings<'_>) {
    let list = container.get("volumeMounts");
    let devices = by_name(&container.get("volumeDevices"), "devicePath");
    let mut seen = BTreeSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        r.required(&name);
        r.when(!pod.volumes.contains_key(name.str()), || name.not_found());
        r.required(&path);
        r.when(!seen.insert(path.str()), || path.invalid_str("must be unique"));
        r.when(devices.contains_key(name.str()), || {
            name.invalid_str("must not already exist in volumeDevices")
        });
        r.when(devices.values().any(|d| *d == path.str()), || {
            path.invalid_str("must not already exist as a path in volumeDevices")
        });
        // These paths leave out the index.
        let outside = mount.named(list.path.clone());
        let (sub, expression) = (outside.get("subPath"), outside.get("subPathExpr"));
        if !sub.is_empty() {
            r.descending_path(&sub);
        }
        if !expression.is_empty() {
            r.when(!sub.is_empty(), || {
                mount.get("subPathExpr").invalid("subPathExpr and subPath are mutually exclusive")
            });
            r.descending_path(&expression);
        }
        let propagation = outside.get("mountPropagation");
        if propagation.is_set() {
            r.one_of(&propagation, &["Bidirectional", "HostToContainer", "None"]);
            let privileged = container.down("securityContext.privileged").is_true();
            r.when(propagation.str() == "Bidirectional" && !privileged, || {
                propagation
                    .forbidden("Bidirectional mount propagation is available only to privileged containers")
            });
        }
        recursive_read_only(r, &mount, &outside.get("recursiveReadOnly"));
    }
}

fn recursive_read_only(r: &mut Report, mount: &At<'_>, at: &At<'_>) {
    match at.value.as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            r.when(!mount.get("readOnly").is_true(), || {
                at.forbidden("may only be specified when readOnly is true")
            });
            let propagation = mount.get("mountPropagation");
            r.when(propagation.is_set() && propagation.str() != "None", || {
                at.forbidden("may only be specified when mountPropagation is None or not specified")
            });
        }
        Some(_) => r.add(at.unsupported(&["Disabled", "Enabled", "IfPossible"])),
    }
}

fn volume_devices(r: &mut Report, container: &At<'_>, pod: &Surroundings<'_>) {
    let mounts = by_name(&container.get("volumeMounts"), "mountPath");
    let (mut seen_names, mut seen_paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        r.required(&name);
        r.when(seen_names.contains(name.str()), || name.invalid_str("must be unique"));
        match pod.volumes.get(name.str()) {
            None => r.add(name.not_found()),
            Some(volume) => {
                let block = volume.get("persistentVolumeClaim").is_set() || volume.get("ephemeral").is_set();
                r.when(!block, || {
                    name.invalid(
                        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                    )
                });
            }
        }
        r.required(&path);
        r.when(seen_paths.contains(path.str()), || path.invalid_str("must be unique"));
        if path.str().split('/').any(|part| part == "..") {
            r.add(path.invalid("can not contain backsteps ('..')"));
        } else {
            seen_paths.insert(path.str());
        }
        r.when(mounts.contains_key(name.str()), || {
            name.invalid_str("must not already exist in volumeMounts")
        });
        r.when(mounts.values().any(|m| *m == path.str()), || {
            path.invalid_str("must not already exist as a path in volumeMounts")
        });
        if !name.is_empty() {
            seen_names.insert(name.str());
        }
    }
}

fn resize_policy(r: &mut Report, list: &At<'_>, pod_restart: &str) {
    let mut seen = BTreeSet::new();
    for policy in list.items() {
        let resource = policy.get("resourceName");
        r.when(!seen.insert(resource.str()), || resource.named(policy.path.clone()).duplicate_str());
        r.required_one_of(&resource.named(list.path.clone()), &["cpu", "memory"]);
        let restart = policy.get("restartPolicy").named(list.path.clone());
        r.required_one_of(&restart, &["NotRequired", "RestartContainer"]);
        r.when(pod_restart == "Never" && restart.str() != "NotRequired", || {
            restart.invalid_with(
                go_quote(restart.str()),
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            )
        });
    }
}
