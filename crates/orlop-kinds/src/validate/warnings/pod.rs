//! Warnings about pods and templates of pods.

use super::super::pod::all_containers;
use super::super::view::At;
use super::{Out, addresses, claim_spec, deprecated_label, fraction, node_selector_term};
use orlop_schema::field::{Path, go_quote};
use std::collections::{BTreeMap, BTreeSet};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// A pod or a template of pods: both have `metadata` and `spec`.
pub(super) fn pod_template(out: &mut Out, pod: &At<'_>, is_template: bool) {
    let (meta, spec) = (pod.get("metadata"), pod.get("spec"));
    for (key, at) in spec.get("nodeSelector").entries() {
        if let Some(words) = deprecated_label(key) {
            out.push(format!("{}: {words}", at.path));
        }
    }
    let node = spec.down("affinity.nodeAffinity");
    for term in node.get(REQUIRED).get("nodeSelectorTerms").items() {
        node_selector_term(out, &term, false);
    }
    for term in node.get(PREFERRED).items() {
        node_selector_term(out, &term.get("preference"), true);
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let (key, selector) = (constraint.get("topologyKey"), constraint.get("labelSelector"));
        if let Some(words) = deprecated_label(key.str()) {
            out.push(format!("{}: {} is {words}", key.path, key.str()));
        }
        if !selector.is_set() {
            out.push(format!("{}: {NO_SELECTOR}", selector.path));
        }
    }
    let annotations = meta.get("annotations");
    for (key, words) in [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
    ] {
        let at = annotations.key(key);
        if at.is_set() {
            out.push(format!("{}: {words}", at.path));
        }
    }
    old_volumes(out, &spec.get("volumes"));
    overlapping_paths(out, &spec.get("volumes"));
    repeated(out, &spec.get("hostAliases"), "ip");
    repeated(out, &spec.get("imagePullSecrets"), "name");
    for secret in spec.get("imagePullSecrets").items() {
        let name = secret.get("name");
        if name.is_empty() {
            out.push(format!("{}: invalid empty name \"\"", name.path));
        }
    }
    for key in ["memory", "ephemeral-storage"] {
        fraction(out, &spec.get("overhead").key(key));
    }
    let seccomp = annotations.key("seccomp.security.alpha.kubernetes.io/pod");
    if seccomp.is_set() && !spec.down("securityContext.seccompProfile").is_set() {
        out.push(format!("{}: {SECCOMP}", seccomp.path));
    }
    for container in all_containers(&spec) {
        container_warnings(out, &container, &annotations, &spec, is_template);
    }
    ports(out, &spec);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        out.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            grace.path
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.get("affinity").get(kind);
        let terms = affinity.get(REQUIRED).items();
        let weighted = affinity.get(PREFERRED).items();
        let selectors = terms
            .iter()
            .map(|t| t.get("labelSelector"))
            .chain(weighted.iter().map(|t| t.down("podAffinityTerm.labelSelector")));
        out.extend(selectors.filter(|s| !s.is_set()).map(|s| format!("{}: {NO_SELECTOR}", s.path)));
    }
    addresses(out, &spec.down("dnsConfig.nameservers").items());
    let aliases: Vec<At<'_>> = spec.get("hostAliases").items().iter().map(|a| a.get("ip")).collect();
    addresses(out, &aliases);
}

const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

fn repeated(out: &mut Out, list: &At<'_>, key: &str) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let at = item.get(key);
        if !seen.insert(at.str()) {
            out.push(format!("{}: duplicate {key} {}", at.path, go_quote(at.str())));
        }
    }
}

fn old_volumes(out: &mut Out, volumes: &At<'_>) {
    for volume in volumes.items() {
        for (key, shown, words) in [
            ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
            ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
            ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
            ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
            ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
            ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
            ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
            ("ephemeral", "", ""),
            ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
            ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
        ] {
            let at = volume.get(key);
            if key == "ephemeral" {
                claim_spec(out, &at.down("volumeClaimTemplate.spec"));
            } else if at.is_set() {
                out.push(format!("{}: {words}", volume.path.child(shown)));
            }
        }
    }
}

/// A path in a volume and where it comes from.
#[derive(Clone, PartialEq)]
struct Mapped {
    path: String,
    source: String,
}

impl Mapped {
    fn shown(&self) -> String {
        let path = go_quote(&self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    fn collides(&self, other: &Self) -> bool {
        let below = |a: &str, b: &str| format!("{a}/").starts_with(&format!("{b}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (below(&self.path, &other.path) || below(&other.path, &self.path))
    }
}

fn mapped(items: &At<'_>, source: &str) -> Vec<Mapped> {
    let path = |item: &At<'_>| item.get("path").str().trim_end_matches('/').to_owned();
    items.items().iter().map(|item| Mapped { path: path(item), source: source.to_owned() }).collect()
}

fn overlaps(out: &mut Out, paths: Vec<Mapped>, volume: &str, what: &str) {
    let mut before: Vec<Mapped> = Vec::new();
    for path in paths {
        for other in before.iter().filter(|other| path.collides(other)) {
            out.push(format!(
                "volume {} ({what}): overlapping paths: {} with {}",
                go_quote(volume),
                path.shown(),
                other.shown()
            ));
        }
        before.push(path);
    }
}

fn overlapping_paths(out: &mut Out, volumes: &At<'_>) {
    for volume in volumes.items() {
        let name = volume.get("name").str();
        let quoted = |at: &At<'_>, key: &str| go_quote(at.get(key).str());
        let (config, secret) = (volume.get("configMap"), volume.get("secret"));
        overlaps(
            out,
            mapped(&config.get("items"), ""),
            name,
            &format!("ConfigMap {}", quoted(&config, "name")),
        );
        overlaps(
            out,
            mapped(&secret.get("items"), ""),
            name,
            &format!("Secret {}", quoted(&secret, "secretName")),
        );
        overlaps(out, mapped(&volume.down("downwardAPI.items"), ""), name, "DownwardAPI");
        let mut all = Vec::new();
        for source in volume.down("projected.sources").items() {
            let one = |path: At<'_>, source: String| {
                vec![Mapped { path: path.str().trim_end_matches('/').to_owned(), source }]
            };
            let (config, secret) = (source.get("configMap"), source.get("secret"));
            let (token, bundle) = (source.get("serviceAccountToken"), source.get("clusterTrustBundle"));
            let downward = source.get("downwardAPI");
            if source.is_empty() {
                out.push(format!("volume {} (Projected) has no sources provided", go_quote(name)));
            } else if config.get("items").is_set() {
                all.extend(mapped(&config.get("items"), &format!("ConfigMap {}", quoted(&config, "name"))));
            } else if secret.get("items").is_set() {
                all.extend(mapped(&secret.get("items"), &format!("Secret {}", quoted(&secret, "name"))));
            } else if downward.get("items").is_set() {
                all.extend(mapped(&downward.get("items"), "DownwardAPI"));
            } else if token.is_set() {
                all.extend(one(token.get("path"), "ServiceAccountToken".to_owned()));
            } else if bundle.is_set() {
                let key = if bundle.get("name").is_set() { "name" } else { "signerName" };
                let source = format!("ClusterTrustBundle {}", quoted(&bundle, key));
                all.extend(one(bundle.get("path"), source));
            }
        }
        overlaps(out, all, name, "Projected");
    }
}

fn container_warnings(
    out: &mut Out,
    container: &At<'_>,
    annotations: &At<'_>,
    spec: &At<'_>,
    is_template: bool,
) {
    let name = container.get("name").str();
    let context = container.get("securityContext");
    let seccomp = annotations.key(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"));
    if seccomp.is_set() && !context.get("seccompProfile").is_set() {
        out.push(format!("{}: {SECCOMP}", seccomp.path));
    }
    let armor = annotations.key(&format!("container.apparmor.security.beta.kubernetes.io/{name}"));
    if is_template && armor.is_set() && !context.get("appArmorProfile").is_set() {
        let pod = spec.down("securityContext.appArmorProfile");
        let agrees = match armor.str() {
            "runtime/default" => pod.get("type").str() == "RuntimeDefault",
            "unconfined" => pod.get("type").str() == "Unconfined",
            text => {
                text.strip_prefix("localhost/").is_some_and(|path| pod.get("localhostProfile").str() == path)
            }
        };
        if !agrees {
            out.push(format!(
                "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
                armor.path
            ));
        }
    }
    let resources = container.get("resources");
    for key in ["memory", "ephemeral-storage"] {
        fraction(out, &resources.get("limits").key(key));
        fraction(out, &resources.get("requests").key(key));
    }
    let mut seen = BTreeSet::new();
    for variable in container.get("env").items() {
        let (name, value) = (variable.get("name").str(), variable.get("value").str());
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if variable.get("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            out.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                variable.path,
                go_quote(name)
            ));
        }
    }
}

fn ports(out: &mut Out, spec: &At<'_>) {
    let all: Vec<At<'_>> = all_containers(spec).iter().flat_map(|c| c.get("ports").items()).collect();
    let mut seen: BTreeMap<(i64, &str), Vec<&At<'_>>> = BTreeMap::new();
    for port in &all {
        let (host_ip, host) = (port.get("hostIP").str(), port.get("hostPort").int());
        let (number, protocol) = (port.get("containerPort").int(), port.get("protocol").str());
        if !host_ip.is_empty() && host == 0 {
            let name = port.get("name").str();
            out.push(format!(
                "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{host_ip}}}",
                port.path
            ));
        }
        let others = seen.entry((number, protocol)).or_default();
        for other in others.iter() {
            let (other_ip, other_host) = (other.get("hostIP").str(), other.get("hostPort").int());
            let how = if host_ip == other_ip && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && host_ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            out.push(format!("{}: {how} port definition with {}", port.path, other.path));
        }
        others.push(port);
    }
    let mut named: BTreeMap<&str, &Path> = BTreeMap::new();
    for port in &all {
        let name = port.get("name").str();
        if name.is_empty() {
            continue;
        }
        match named.get(name) {
            Some(other) => out.push(format!(
                "{}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                port.path,
                go_quote(name)
            )),
            None => {
                named.insert(name, &port.path);
            }
        }
    }
}
