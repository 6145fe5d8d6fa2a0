//! Volumes of pods and the sources they share with persistent volumes.

use super::super::meta;
use super::super::view::{At, Report};
use super::PodOptions;
use super::env::{object_field, resource_field};
use crate::validate::storage::claim_spec;
use orlop_schema::field::go_quote;
use orlop_schema::labels::SelectorOptions;
use orlop_schema::names::{self, NameRule, inclusive_range};
use std::collections::{BTreeMap, BTreeSet};

/// A validator of one type of volume.
pub(crate) type Source = fn(&mut Report, &At<'_>);

/// The types of volumes a pod can have, in the order they are looked at: the field, how the field is called
/// when there is more than one type, and how it is called in other mistakes.
const SOURCES: &[(&str, &str, &str, Source)] = &[
    ("hostPath", "hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", "gitRepo", git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk", gce_disk),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", aws_disk),
    ("secret", "secret", "secret", secret),
    ("nfs", "nfs", "nfs", nfs),
    ("iscsi", "iscsi", "iscsi", iscsi),
    ("glusterfs", "glusterfs", "glusterfs", glusterfs),
    ("flocker", "flocker", "flocker", flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", claim),
    ("rbd", "rbd", "rbd", rbd),
    ("cinder", "cinder", "cinder", cinder),
    ("cephfs", "cephFS", "cephfs", cephfs),
    ("quobyte", "quobyte", "quobyte", quobyte),
    ("downwardAPI", "downwarAPI", "downwardAPI", downward),
    ("fc", "fc", "fc", fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", flex),
    ("configMap", "configMap", "configMap", config_map),
    ("azureFile", "azureFile", "azureFile", azure_file),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume", vsphere),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", photon),
    ("portworxVolume", "portworxVolume", "portworxVolume", portworx),
    ("azureDisk", "azureDisk", "azureDisk", azure_disk),
    ("storageos", "storageos", "storageos", storage_os),
];

/// The words for a second type of volume.
pub(crate) const TOO_MANY_TYPES: &str = "may not specify more than 1 volume type";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// The volumes of a pod that are fine, by name.
pub(crate) type Volumes<'a> = BTreeMap<&'a str, At<'a>>;

/// The volumes of a pod; `pod_name` is the name of the pod, if it is one.
pub(crate) fn volumes<'a>(
    r: &mut Report,
    list: &At<'a>,
    pod_name: Option<&str>,
    options: &PodOptions,
) -> Volumes<'a> {
    let mut fine = Volumes::new();
    let made: BTreeSet<String> = match pod_name {
        Some(pod) if !pod.is_empty() => list
            .items()
            .iter()
            .filter(|v| v.get("ephemeral").is_set())
            .map(|v| format!("{pod}-{}", v.get("name").str()))
            .collect(),
        _ => BTreeSet::new(),
    };
    for volume in list.items() {
        let mut wrong = Report::default();
        source(&mut wrong, &volume, pod_name, options);
        let name = volume.get("name");
        wrong.required_label(&name);
        wrong.when(fine.contains_key(name.str()), || name.duplicate_str());
        let claim = volume.down("persistentVolumeClaim.claimName");
        if wrong.0.is_empty() {
            fine.insert(name.str(), volume);
        } else {
            r.extend(wrong.0);
        }
        r.when(made.contains(claim.str()), || {
            claim.invalid("must not reference a PVC that gets created for an ephemeral volume")
        });
    }
    fine
}

fn source(r: &mut Report, volume: &At<'_>, pod_name: Option<&str>, options: &PodOptions) {
    let mut types = 0;
    let empty_dir = volume.get("emptyDir");
    if empty_dir.is_set() {
        types += 1;
        let size = empty_dir.get("sizeLimit");
        r.when(size.quantity().is_some_and(|q| q.sign() < 0), || {
            size.forbidden("SizeLimit field must be a valid resource quantity")
        });
    }
    let mut next = |r: &mut Report, field: &str, several: &str, named: &str| {
        let at = volume.get(field);
        if !at.is_set() {
            return None;
        }
        if types > 0 {
            r.add(at.named(volume.path.child(several)).forbidden(TOO_MANY_TYPES));
            return None;
        }
        types += 1;
        Some(at.named(volume.path.child(named)))
    };
    for (field, several, named, check) in SOURCES {
        if let Some(at) = next(r, field, several, named) {
            check(r, &at);
        }
        let at = volume.get(field);
        if *field == "iscsi" && at.get("initiatorName").is_set() {
            let name = volume.get("name");
            r.when(name.len() + 1 + at.get("targetPortal").len() > 64, || name.invalid_str(ISCSI_TOO_LONG));
        }
    }
    if let Some(at) = next(r, "projected", "projected", "projected") {
        mode(r, &at.get("defaultMode"));
        projected(r, &at, options);
    }
    if let Some(at) = next(r, "scaleIO", "scaleIO", "scaleIO") {
        r.all_required(&at, &["gateway", "system", "volumeName"]);
    }
    if let Some(at) = next(r, "csi", "csi", "csi") {
        csi(r, &at);
    }
    if let Some(at) = next(r, "ephemeral", "ephemeral", "ephemeral") {
        ephemeral(r, &at);
        let name = volume.get("name");
        if let Some(pod) = pod_name
            && !pod.is_empty()
            && !name.is_empty()
        {
            let claim = format!("{pod}-{}", name.str());
            for wrong in names::dns1123_subdomain(&claim) {
                r.add(name.invalid(format!("PVC name {}: {wrong}", go_quote(&claim))));
            }
        }
    }
    if let Some(at) = next(r, "image", "image", "image") {
        if options.is_pod {
            r.required(&at.get("reference"));
        }
        r.required_one_of(&at.get("pullPolicy"), &super::container::PULL_POLICIES);
    }
    r.when(types == 0, || volume.required("must specify a volume type"));
}

const ISCSI_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

pub(crate) fn mode(r: &mut Report, at: &At<'_>) {
    r.when(!(0..=0o777).contains(&at.int()), || at.invalid_int(FILE_MODE));
}

pub(crate) fn host_path(r: &mut Report, at: &At<'_>) {
    if r.required(&at.get("path")) {
        return;
    }
    r.no_backsteps(&at.get("path"));
    r.optional_one_of(
        &at.get("type"),
        &[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    );
}

fn git_repo(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("repository"));
    r.descending_path(&at.get("directory"));
}

fn partition(r: &mut Report, at: &At<'_>) {
    r.when(!(0..=255).contains(&at.int()), || at.invalid_int(inclusive_range(1, 255)));
}

pub(crate) fn gce_disk(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("pdName"));
    partition(r, &at.get("partition"));
}

pub(crate) fn aws_disk(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("volumeID"));
    partition(r, &at.get("partition"));
}

fn items(r: &mut Report, at: &At<'_>) {
    mode(r, &at.get("defaultMode"));
    for item in at.get("items").items() {
        key_to_path(r, &item);
    }
}

fn key_to_path(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["key", "path"]);
    r.unreserved_path(&at.get("path"));
    mode(r, &at.get("mode"));
}

fn secret(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("secretName"));
    items(r, at);
}

fn config_map(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("name"));
    items(r, at);
}

pub(crate) fn nfs(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["server", "path"]);
    let path = at.get("path");
    r.when(!path.str().starts_with('/'), || path.invalid_str("must be an absolute path"));
}

fn is_initiator(text: &str) -> bool {
    let alnum = |t: &str, n: usize| t.len() == n && t.bytes().all(|b| b.is_ascii_alphanumeric());
    if let Some(rest) = text.strip_prefix("eui") {
        return rest.get(1..).is_some_and(|t| alnum(t, 16));
    }
    if let Some(rest) = text.strip_prefix("naa") {
        return rest.get(1..).is_some_and(|t| alnum(t, 32));
    }
    // iqn.YYYY-MM.authority:name
    let Some(rest) = text.strip_prefix("iqn.") else { return false };
    let (Some(date), Some(rest)) = (rest.get(..7), rest.get(7..)) else { return false };
    let dated = date.bytes().enumerate().all(|(i, b)| if i == 4 { b == b'-' } else { b.is_ascii_digit() });
    let Some((authority, name)) = rest.strip_prefix('.').and_then(|t| t.split_once(':')) else {
        return false;
    };
    dated
        && !authority.is_empty()
        && authority.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
        && !name.is_empty()
        && !name.contains([',', ';', '*', '&', '$', '|'])
        && !name.contains(char::is_whitespace)
}

fn initiator(r: &mut Report, at: &At<'_>, strange: &str) {
    let text = at.str();
    if !["iqn", "eui", "naa"].iter().any(|p| text.starts_with(p)) {
        r.add(at.invalid(strange));
    } else if !is_initiator(text) {
        r.add(at.invalid("must be valid format"));
    }
}

fn iscsi_common(r: &mut Report, at: &At<'_>, strange: &str, persistent: bool) {
    let iqn = at.get("iqn");
    if !r.required(&iqn) {
        initiator(r, &iqn, strange);
    }
    let lun = at.get("lun");
    r.when(!(0..=255).contains(&lun.int()), || lun.invalid_int(inclusive_range(0, 255)));
    let secret = at.get("secretRef");
    let chap = at.get("chapAuthDiscovery").is_true() || at.get("chapAuthSession").is_true();
    r.when(chap && !secret.is_set(), || secret.required(""));
    if persistent && secret.is_set() {
        r.required(&secret.get("name"));
    }
    let name = at.get("initiatorName");
    if name.is_set() {
        initiator(r, &name.named(at.path.child("initiatorname")), strange);
    }
}

fn iscsi(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("targetPortal"));
    iscsi_common(r, at, "must be valid format starting with iqn, eui, or naa", false);
}

pub(crate) fn iscsi_persistent(r: &mut Report, at: &At<'_>, volume: &str) {
    let portal = at.get("targetPortal");
    r.required(&portal);
    r.when(at.get("initiatorName").is_set() && volume.len() + 1 + portal.len() > 64, || {
        portal.named(at.path.child("targetportal")).invalid_str(ISCSI_TOO_LONG)
    });
    iscsi_common(r, at, "must be valid format", true);
}

pub(crate) fn glusterfs(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["endpoints", "path"]);
}

pub(crate) fn flocker(r: &mut Report, at: &At<'_>) {
    let (name, uuid) = (at.get("datasetName"), at.get("datasetUUID"));
    r.when(name.is_empty() && uuid.is_empty(), || {
        at.required("one of datasetName and datasetUUID is required")
    });
    r.when(!name.is_empty() && !uuid.is_empty(), || {
        at.invalid_with("\"resource\"", "datasetName and datasetUUID can not be specified simultaneously")
    });
    r.when(name.str().contains('/'), || name.invalid("must not contain '/'"));
}

fn claim(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("claimName"));
}

pub(crate) fn rbd(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["monitors", "image"]);
}

fn secret_ref(r: &mut Report, at: &At<'_>, keys: &[&str]) {
    let secret = at.get("secretRef");
    if secret.is_set() {
        r.all_required(&secret, keys);
    }
}

fn cinder(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("volumeID"));
    secret_ref(r, at, &["name"]);
}

pub(crate) fn cinder_persistent(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("volumeID"));
    secret_ref(r, at, &["name", "namespace"]);
}

pub(crate) fn cephfs(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("monitors"));
}

pub(crate) fn quobyte(r: &mut Report, at: &At<'_>) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    let tenant = at.get("tenant");
    if registry.is_empty() {
        r.add(registry.required(PAIRS));
    } else if tenant.len() >= 65 {
        r.add(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        for pair in registry.str().split(',') {
            let fine = match pair.rsplit_once(':') {
                Some((host, _)) => !host.contains(':') || (host.starts_with('[') && host.ends_with(']')),
                None => false,
            };
            r.when(!fine, || registry.invalid(PAIRS));
        }
    }
    r.required(&at.get("volume"));
}

fn downward(r: &mut Report, at: &At<'_>) {
    mode(r, &at.get("defaultMode"));
    for file in at.get("items").items() {
        downward_file(r, &file.named(at.path.clone()));
    }
}

fn downward_file(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("path"));
    r.unreserved_path(&at.get("path"));
    let (field, resource) = (at.get("fieldRef"), at.get("resourceFieldRef"));
    if field.is_set() {
        object_field(
            r,
            &field,
            &[
                "metadata.annotations",
                "metadata.labels",
                "metadata.name",
                "metadata.namespace",
                "metadata.uid",
            ],
        );
        r.when(resource.is_set(), || {
            at.invalid_with(
                "\"resource\"",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            )
        });
    } else if resource.is_set() {
        resource_field(r, &resource, true);
    } else {
        r.add(at.required("one of fieldRef and resourceFieldRef is required"));
    }
    mode(r, &at.get("mode"));
}

pub(crate) fn fibre_channel(r: &mut Report, at: &At<'_>) {
    let (targets, wwids, lun) = (at.get("targetWWNs"), at.get("wwids"), at.get("lun"));
    r.when(targets.is_empty() && wwids.is_empty(), || {
        targets.required("must specify either targetWWNs or wwids, but not both")
    });
    r.when(!targets.is_empty() && !wwids.is_empty(), || {
        targets.invalid("targetWWNs and wwids can not be specified simultaneously")
    });
    if !targets.is_empty() {
        if lun.is_set() {
            r.when(!(0..=255).contains(&lun.int()), || lun.invalid_int(inclusive_range(0, 255)));
        } else {
            r.add(lun.required("lun is required if targetWWNs is specified"));
        }
    }
}

pub(crate) fn flex(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("driver"));
    for (key, option) in at.get("options").entries() {
        let domain = format!(".{}", key.split('/').next().unwrap_or(key).to_lowercase());
        r.when(domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io"), || {
            option.invalid_with(go_quote(key), "kubernetes.io and k8s.io namespaces are reserved")
        });
    }
}

fn azure_file(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["secretName", "shareName"]);
}

pub(crate) fn azure_file_persistent(r: &mut Report, at: &At<'_>) {
    azure_file(r, at);
    let namespace = at.get("secretNamespace");
    if namespace.is_set() {
        r.required(&namespace);
    }
}

pub(crate) fn vsphere(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("volumePath"));
}

pub(crate) fn photon(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("pdID"));
}

pub(crate) fn portworx(r: &mut Report, at: &At<'_>) {
    r.required(&at.get("volumeID"));
}

pub(crate) fn azure_disk(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["diskName", "diskURI"]);
    r.optional_one_of(&at.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    let (kind, uri) = (at.get("kind"), at.get("diskURI"));
    r.optional_one_of(&kind, &["Dedicated", "Managed", "Shared"]);
    if kind.is_set() {
        let managed = kind.str() == "Managed";
        r.when(managed && !uri.str().starts_with("/subscriptions/"), || {
            uri.unsupported(&[
                "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
            ])
        });
        r.when(!managed && !uri.str().starts_with("https://"), || {
            uri.unsupported(&[
                "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
            ])
        });
    }
}

fn storage_os_common(r: &mut Report, at: &At<'_>, secret: &[&str]) {
    r.required_label(&at.get("volumeName"));
    let namespace = at.get("volumeNamespace");
    if !namespace.is_empty() {
        r.label(&namespace);
    }
    secret_ref(r, at, secret);
}

fn storage_os(r: &mut Report, at: &At<'_>) {
    storage_os_common(r, at, &["name"]);
}

pub(crate) fn storage_os_persistent(r: &mut Report, at: &At<'_>) {
    storage_os_common(r, at, &["name", "namespace"]);
}

/// The name of a CSI driver.
pub(crate) fn csi_driver_name(r: &mut Report, at: &At<'_>) {
    if r.required(at) {
        return;
    }
    r.when(at.len() > 63, || at.too_long(63));
    r.each(at, names::dns1123_subdomain(&at.str().to_lowercase()));
}

fn csi(r: &mut Report, at: &At<'_>) {
    csi_driver_name(r, &at.get("driver"));
    let secret = at.get("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.get("name");
        if !r.required(&name) {
            r.subdomain(&name.named(at.path.child("name")));
        }
    }
}

fn ephemeral(r: &mut Report, at: &At<'_>) {
    let template = at.get("volumeClaimTemplate");
    if !template.is_set() {
        r.add(template.required(""));
        return;
    }
    meta::template(r, &template.get("metadata"));
    claim_spec(r, &template.get("spec"), false);
}

fn once<'a>(r: &mut Report, seen: &mut BTreeSet<&'a str>, path: &'a str, at: &At<'_>, quoted: &str) {
    if !path.is_empty() && !seen.insert(path) {
        r.add(at.invalid_with(go_quote(quoted), "conflicting duplicate paths"));
    }
}

fn projected(r: &mut Report, volume: &At<'_>, options: &PodOptions) {
    let mut seen = BTreeSet::new();
    for source in volume.get("sources").items() {
        let mut types = 0;
        for kind in ["secret", "configMap"] {
            let at = source.get(kind);
            if at.is_set() {
                types += 1;
                r.required(&at.get("name"));
                for item in at.get("items").items() {
                    key_to_path(r, &item);
                    once(r, &mut seen, item.get("path").str(), volume, at.get("name").str());
                }
            }
        }
        let downward = source.get("downwardAPI");
        if downward.is_set() {
            types += 1;
            for file in downward.get("items").items() {
                downward_file(r, &file.named(downward.path.clone()));
                let path = file.get("path").str();
                once(r, &mut seen, path, volume, path);
            }
        }
        let token = source.get("serviceAccountToken");
        if token.is_set() {
            types += 1;
            token_seconds(r, &token.get("expirationSeconds"));
            let path = token.get("path").named(volume.path.child("path"));
            if !r.required(&path) && !options.any_token_path {
                r.unreserved_path(&path);
            }
        }
        let bundle = source.get("clusterTrustBundle");
        if bundle.is_set() {
            types += 1;
            trust_bundle(r, &bundle);
            let path = bundle.get("path").str();
            if !seen.insert(path) {
                r.add(volume.invalid_with(go_quote(path), "conflicting duplicate paths"));
            }
        }
        let certificate = source.get("podCertificate");
        if certificate.is_set() {
            types += 1;
            pod_certificate(r, &certificate);
            let mut paths = 0;
            for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
                let path = certificate.get(key);
                if !path.is_empty() {
                    paths += 1;
                    r.unreserved_path(&path);
                    once(r, &mut seen, path.str(), volume, path.str());
                }
            }
            r.when(paths == 0, || {
                certificate.required(
                    "specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
                )
            });
        }
        r.when(types > 1, || source.forbidden("may not specify more than 1 volume type per source"));
    }
}

/// How long a service account token may live.
pub(crate) fn token_seconds(r: &mut Report, at: &At<'_>) {
    r.when(at.int() < 600, || at.invalid_int("may not specify a duration less than 10 minutes"));
    r.when(at.int() > 1 << 32, || at.invalid_int("may not specify a duration larger than 2^32 seconds"));
}

fn trust_bundle(r: &mut Report, at: &At<'_>) {
    let (name, signer, selector) = (at.get("name"), at.get("signerName"), at.get("labelSelector"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            r.add(at.invalid_as(
                "core.ClusterTrustBundleProjection",
                "only one of name and signerName may be used",
            ));
        }
        (true, false) => {
            r.when(name.is_empty(), || name.required("must be a valid object name"));
            for wrong in NameRule::PathSegment.name(name.str()) {
                r.add(name.invalid_str(format!("not a valid clustertrustbundlename: {wrong}")));
            }
            r.when(selector.is_set(), || {
                selector.invalid_as("meta.LabelSelector", "labelSelector must be unset if name is specified")
            });
        }
        (false, true) => {
            r.when(signer.is_empty(), || signer.required("must be a valid signer name"));
            signer_name(r, &signer);
            r.selector(&selector, SelectorOptions::default());
        }
        (false, false) => r.add(at.required("either name or signerName must be specified")),
    }
    r.required(&at.get("path"));
    r.unreserved_path(&at.get("path"));
}

/// The name of a certificate signer such as `example.com/signer`.
pub(crate) fn signer_name(r: &mut Report, at: &At<'_>) {
    if r.required(at) {
        return;
    }
    let text = at.str();
    let segments: Vec<&str> = text.split('/').collect();
    let [domain, path] = segments.as_slice() else {
        r.add(at.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"));
        return;
    };
    r.when(domain.len() > 253, || at.too_long(253));
    dotted(r, at, domain, names::dns1123_label);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        r.add(at.invalid_with(go_quote(domain), detail));
    }
    dotted(r, at, path, names::dns1123_subdomain);
    r.when(text.len() > 571, || at.too_long(571));
}

/// Reports the first part of a dotted text that is wrong.
fn dotted(r: &mut Report, at: &At<'_>, segment: &str, check: fn(&str) -> Vec<String>) {
    let first = segment.split('.').map(|part| (part, check(part))).find(|(_, wrong)| !wrong.is_empty());
    let Some((part, wrong)) = first else { return };
    for detail in wrong {
        let detail = format!("validating label {}: {detail}", go_quote(part));
        r.add(at.invalid_with(go_quote(segment), detail));
    }
}

fn pod_certificate(r: &mut Report, at: &At<'_>) {
    signer_name(r, &at.get("signerName"));
    r.one_of(&at.get("keyType"), &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"]);
    let seconds = at.get("maxExpirationSeconds");
    if seconds.is_set() {
        r.when(seconds.int() < 3600, || seconds.invalid("if provided, maxExpirationSeconds must be >= 3600"));
        let kubernetes = at.get("signerName").str().starts_with("kubernetes.io/");
        let max = if kubernetes { 86_400 } else { 91 * 86_400 };
        r.when(seconds.int() > max, || {
            seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {max}"))
        });
    }
}
