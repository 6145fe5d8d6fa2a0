//! What the API server warns about although it accepts it.

mod pod;

use super::Kind;
use super::view::{At, same};
use orlop_schema::field::{Path, go_quote};
use orlop_schema::{ip, names};
use pod::pod_template;
use serde_json::Value;

/// The warnings so far.
type Out = Vec<String>;

/// Warnings for a create or, with the old object, an update.
pub(super) fn warnings(kind: &Kind<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let (new, old) = (At::root(new), old.map(At::root));
    let created = old.is_none();
    // Templates are looked at again only when they changed, which the generation tells.
    let respecified = old
        .as_ref()
        .is_none_or(|o| o.down("metadata.generation").int() != new.down("metadata.generation").int());
    match (kind.group, kind.kind) {
        ("", "Pod") if created => {
            name_is_host(&mut out, &new, "the Pod's hostname");
            let pod = At { value: new.value, path: Path::root() };
            pod_template(&mut out, &pod, false);
        }
        ("apps", "Deployment" | "ReplicaSet") | ("", "ReplicationController") => {
            if created {
                name_is_host(&mut out, &new, POD_NAMES);
            }
            if respecified {
                pod_template(&mut out, &new.down("spec.template"), true);
            }
        }
        ("apps", "DaemonSet") if respecified => pod_template(&mut out, &new.down("spec.template"), true),
        ("apps", "StatefulSet") => {
            if respecified {
                pod_template(&mut out, &new.down("spec.template"), true);
            }
            stateful_set(&mut out, &new, created);
        }
        ("", "PodTemplate") if respecified => pod_template(&mut out, &new.get("template"), true),
        ("batch", "Job") => {
            if created {
                name_is_host(&mut out, &new, POD_NAMES);
            }
            if respecified {
                job(&mut out, &new.get("spec"));
            }
        }
        ("batch", "CronJob") => {
            if created {
                name_is_host(&mut out, &new, POD_NAMES);
            }
            if respecified {
                job(&mut out, &new.down("spec.jobTemplate.spec"));
            }
            if !created && new.down("spec.schedule").str().contains("TZ") {
                out.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
            }
        }
        ("", "Service") => service(&mut out, &new),
        ("", "Secret") => secret(&mut out, &new),
        ("", "ServiceAccount") => service_account(&mut out, &new, old.as_ref()),
        ("", "PersistentVolumeClaim") => {
            annotation(
                &mut out,
                &new,
                BETA_CLASS,
                "deprecated since v1.8; use \"storageClassName\" attribute instead",
            );
            claim_spec(&mut out, &new.get("spec"));
        }
        ("", "PersistentVolume") => volume(&mut out, &new),
        ("", "Node") => node(&mut out, &new),
        ("", "Endpoints") => endpoints(&mut out, &new),
        ("", "ResourceQuota") if created => quota(&mut out, &new.down("spec.hard")),
        ("networking.k8s.io", "Ingress") if created => ingress(&mut out, &new),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(&mut out, &new.get("spec")),
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(&mut out, &new, created),
        ("storage.k8s.io", "StorageClass") => storage_class(&mut out, &new),
        ("storage.k8s.io", "CSIStorageCapacity") => node_labels(&mut out, &new.get("nodeTopology")),
        ("storage.k8s.io", "CSIDriver") => csi_driver(&mut out, &new, old.as_ref()),
        ("node.k8s.io", "RuntimeClass") => {
            for (key, _) in new.down("scheduling.nodeSelector").entries() {
                if let Some(words) = deprecated_label(key) {
                    out.push(format!("scheduling.nodeSelector: {words}"));
                }
            }
        }
        _ => {}
    }
    out
}

const POD_NAMES: &str = "Pod names and hostnames";
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn name_is_host(out: &mut Out, object: &At<'_>, used_in: &str) {
    let wrong = names::dns1123_label(object.down("metadata.name").str());
    if !wrong.is_empty() {
        out.push(format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

fn annotation(out: &mut Out, object: &At<'_>, key: &str, words: &str) {
    let at = object.down("metadata.annotations").key(key);
    if at.is_set() {
        out.push(format!("{}: {words}", at.path));
    }
}

fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

fn node_selector_term(out: &mut Out, term: &At<'_>, with_values: bool) {
    for rule in term.get("matchExpressions").items() {
        let key = rule.get("key");
        if let Some(words) = deprecated_label(key.str()) {
            out.push(format!("{}: {} is {words}", key.path, key.str()));
        }
        if with_values {
            for value in rule.get("values").items() {
                for wrong in names::label_value(value.str()) {
                    out.push(format!("{}: {} is invalid, {wrong}", value.path, value.str()));
                }
            }
        }
    }
}

fn node_labels(out: &mut Out, selector: &At<'_>) {
    node_selector_term(out, selector, false);
    let labels = selector.get("matchLabels");
    for (key, _) in labels.entries() {
        if let Some(words) = deprecated_label(key) {
            out.push(format!("{}: {words}", labels.path.child(key)));
        }
    }
}

fn addresses(out: &mut Out, list: &[At<'_>]) {
    out.extend(list.iter().filter_map(|at| ip::address_warning(&at.path, at.str())));
}

fn networks(out: &mut Out, list: &[At<'_>]) {
    out.extend(list.iter().flat_map(|at| ip::cidr_warnings(&at.path, at.str())));
}

fn fraction(out: &mut Out, at: &At<'_>) {
    if let Some(q) = at.quantity()
        && q.milli_value() % 1000 != 0
    {
        out.push(format!(
            "{}: fractional byte value {} is invalid, must be an integer",
            at.path,
            go_quote(&q.to_string())
        ));
    }
}

fn claim_spec(out: &mut Out, spec: &At<'_>) {
    for key in ["requests", "limits"] {
        fraction(out, &spec.get("resources").get(key).key("storage"));
    }
}

fn stateful_set(out: &mut Out, object: &At<'_>, created: bool) {
    for claim in object.down("spec.volumeClaimTemplates").items() {
        let path = if created { claim.path.clone() } else { claim.path.child("Spec") };
        claim_spec(out, &claim.get("spec").named(path));
    }
    if object.down("spec.revisionHistoryLimit").int() < 0 {
        out.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_owned(),
        );
    }
}

fn job(out: &mut Out, spec: &At<'_>) {
    let indexed = spec.get("completionMode").str() == "Indexed";
    if indexed && spec.get("completions").int() > 100_000 && spec.get("parallelism").int() > 10_000 {
        out.push(format!("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", spec.path));
    }
    pod_template(out, &spec.get("template"), true);
}

fn service(out: &mut Out, object: &At<'_>) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = object.get("spec");
    if object.down("metadata.annotations").key(HINTS).is_set() {
        out.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let (kind, first) = (spec.get("type").str(), spec.get("clusterIP").str());
    if !["", "None"].contains(&first) {
        addresses(out, &spec.get("clusterIPs").items());
    }
    let headless = kind == "ClusterIP" && first == "None";
    let external = spec.get("externalIPs");
    let balancer = spec.get("loadBalancerIP");
    if headless {
        for (ignored, key) in [
            (!balancer.is_empty(), "loadBalancerIP"),
            (!external.is_empty(), "externalIPs"),
            (spec.get("sessionAffinity").str() != "None", "SessionAffinity"),
        ] {
            if ignored {
                out.push(format!("spec.{key} is ignored for headless services"));
            }
        }
    }
    addresses(out, &external.items());
    let named = kind == "ExternalName";
    if !external.is_empty() && !headless && !named {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    if !balancer.is_empty() {
        addresses(out, &[balancer]);
    }
    networks(out, &spec.get("loadBalancerSourceRanges").items());
    if named && !external.is_empty() {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !named && !spec.get("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.get("trafficDistribution").str() == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
}

/// The kinds of the PEM blocks in base64 data.
fn pem_kinds(at: &At<'_>) -> Vec<String> {
    let bytes = crate::codec::base64::decode(at.str()).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----").map(str::to_owned))
        .collect()
}

fn secret(out: &mut Out, object: &At<'_>) {
    if object.get("type").str() != "kubernetes.io/tls" {
        return;
    }
    let data = object.get("data");
    let certificates = pem_kinds(&data.key("tls.crt"));
    let keys = pem_kinds(&data.key("tls.key"));
    let is_key = |kind: &String| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY");
    if certificates.is_empty() {
        out.push("tls: failed to find any PEM data in certificate input".to_owned());
    } else if !certificates.iter().any(|kind| kind == "CERTIFICATE") {
        let only = match certificates.as_slice() {
            [kind] if is_key(kind) => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
            }
            kinds => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
                kinds.join(" ")
            ),
        };
        out.push(only);
    } else if keys.is_empty() {
        out.push("tls: failed to find any PEM data in key input".to_owned());
    } else if !keys.iter().any(is_key) {
        out.push(match keys.as_slice() {
            [kind] if kind == "CERTIFICATE" => {
                "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            kinds => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                kinds.join(" ")
            ),
        });
    }
}

fn service_account(out: &mut Out, new: &At<'_>, old: Option<&At<'_>>) {
    const KEY: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |at: &At<'_>| at.down("metadata.annotations").key(KEY).is_set();
    if has(new) && !old.is_some_and(has) {
        out.push(format!("metadata.annotations[{KEY}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"));
    }
}

fn volume(out: &mut Out, object: &At<'_>) {
    annotation(out, object, BETA_CLASS, "deprecated since v1.8; use \"storageClassName\" attribute instead");
    annotation(
        out,
        object,
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    );
    let spec = object.get("spec");
    if spec.get("persistentVolumeReclaimPolicy").str() == "Recycle" {
        out.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    for term in spec.down("nodeAffinity.required.nodeSelectorTerms").items() {
        node_selector_term(out, &term, false);
    }
    for (key, shown, words) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if spec.get(key).is_set() {
            out.push(format!("spec.{shown}: {words}"));
        }
    }
}

fn node(out: &mut Out, object: &At<'_>) {
    if object.down("spec.configSource").is_set() {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !object.down("spec.externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    networks(out, &object.down("spec.podCIDRs").items());
}

fn endpoints(out: &mut Out, object: &At<'_>) {
    let manager = object.down("metadata.labels").key("endpoints.kubernetes.io/managed-by");
    if manager.str() == "endpoint-controller" {
        return;
    }
    for subset in object.get("subsets").items() {
        for key in ["addresses", "notReadyAddresses"] {
            let list: Vec<At<'_>> = subset.get(key).items().iter().map(|a| a.get("ip")).collect();
            addresses(out, &list);
        }
    }
}

fn quota(out: &mut Out, hard: &At<'_>) {
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut asked = format!("requests.{name}");
        if !hard.key(&asked).is_set() && ["cpu", "memory"].contains(&name) {
            name.clone_into(&mut asked);
        }
        let limited = format!("limits.{name}");
        if let (Some(request), Some(limit)) = (hard.key(&asked).quantity(), hard.key(&limited).quantity())
            && request > limit
        {
            out.push(format!("ResourceQuota {asked} ({request}) should be less than {limited} ({limit})"));
        }
    }
}

fn ingress(out: &mut Out, object: &At<'_>) {
    let annotation = object.down("metadata.annotations").key("kubernetes.io/ingress.class");
    if annotation.is_set() && !object.down("spec.ingressClassName").is_set() {
        out.push("annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead".to_owned());
    }
}

fn network_policy(out: &mut Out, spec: &At<'_>) {
    for (rules, side) in [("ingress", "from"), ("egress", "to")] {
        for peer in spec.get(rules).items().iter().flat_map(|rule| rule.get(side).items()) {
            let block = peer.get("ipBlock");
            if block.is_set() {
                networks(out, &[block.get("cidr")]);
                networks(out, &block.get("except").items());
            }
        }
    }
}

fn endpoint_slice(out: &mut Out, object: &At<'_>, created: bool) {
    let kind = object.get("addressType").str();
    if created && kind == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = object.down("metadata.labels").key("endpointslice.kubernetes.io/managed-by").str();
    let ours = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if !ours.contains(&manager) {
        for endpoint in object.get("endpoints").items() {
            addresses(out, &endpoint.get("addresses").items());
        }
    }
}

fn storage_class(out: &mut Out, object: &At<'_>) {
    for term in object.get("allowedTopologies").items() {
        for rule in term.get("matchLabelExpressions").items() {
            let key = rule.get("key");
            if let Some(words) = deprecated_label(key.str()) {
                out.push(format!("{}: {words}", key.path));
            }
        }
    }
}

fn csi_driver(out: &mut Out, new: &At<'_>, old: Option<&At<'_>>) {
    let requests = new.down("spec.tokenRequests");
    let changed = old.is_none_or(|o| !same(requests.value, o.down("spec.tokenRequests").value));
    if changed && !requests.is_empty() && !new.down("spec.serviceAccountTokenInSecrets").is_set() {
        out.push(TOKENS_IN_SECRETS.to_owned());
    }
}

const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
