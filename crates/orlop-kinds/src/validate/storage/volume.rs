//! PersistentVolumes.

use super::super::view::{At, IMMUTABLE, Report, same};
use super::super::{golang, meta};
use super::claim::not_negative;
use super::{VOLUME_MODES, access_modes};
use crate::validate::meta::Scope;
use crate::validate::pod::scheduling::node_selector;
use crate::validate::pod::volume as source;
use orlop_schema::field::{Path, go_quote};
use orlop_schema::names::NameRule;
use serde_json::Value;

type Check = fn(&mut Report, &At<'_>);

/// The types of volumes: the field, its name when there is more than one, its name in other mistakes.
const SOURCES: [(&str, &str, &str, Check); 21] = [
    ("hostPath", "hostPath", "hostPath", source::host_path),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk", source::gce_disk),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", source::aws_disk),
    ("glusterfs", "glusterfs", "glusterfs", glusterfs),
    ("flocker", "flocker", "flocker", source::flocker),
    ("nfs", "nfs", "nfs", source::nfs),
    ("rbd", "rbd", "rbd", source::rbd),
    ("quobyte", "quobyte", "quobyte", source::quobyte),
    ("cephfs", "cephFS", "cephfs", source::cephfs),
    ("iscsi", "iscsi", "iscsi", nothing),
    ("cinder", "cinder", "cinder", source::cinder_persistent),
    ("fc", "fc", "fc", source::fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", source::flex),
    ("azureFile", "azureFile", "azureFile", source::azure_file_persistent),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume", source::vsphere),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", source::photon),
    ("portworxVolume", "portworxVolume", "portworxVolume", source::portworx),
    ("azureDisk", "azureDisk", "azureDisk", source::azure_disk),
    ("scaleIO", "scaleIO", "scaleIO", scale_io),
    ("local", "local", "local", local),
    ("storageos", "storageos", "storageos", source::storage_os_persistent),
];

fn nothing(_: &mut Report, _: &At<'_>) {}

fn glusterfs(r: &mut Report, at: &At<'_>) {
    source::glusterfs(r, at);
    let namespace = at.get("endpointsNamespace");
    if namespace.is_set() {
        if namespace.is_empty() {
            r.add(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
        } else {
            r.label(&namespace);
        }
    }
}

fn scale_io(r: &mut Report, at: &At<'_>) {
    r.all_required(at, &["gateway", "system", "volumeName"]);
}

fn local(r: &mut Report, at: &At<'_>) {
    if !r.required(&at.get("path")) {
        r.no_backsteps(&at.get("path"));
    }
}

fn csi(r: &mut Report, at: &At<'_>) {
    source::csi_driver_name(r, &at.get("driver"));
    r.required(&at.get("volumeHandle"));
    for key in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = at.get(key);
        if secret.is_set() {
            r.required_subdomain(&secret.get("name"));
            r.required_label(&secret.get("namespace"));
        }
    }
}

fn create(r: &mut Report, volume: &At<'_>) {
    meta::create(r, volume, Scope::Cluster, NameRule::Subdomain);
    spec(r, &volume.get("spec"), volume.down("metadata.name").str(), Place::Volume);
}

pub(super) fn create_volume(r: &mut Report, volume: &At<'_>) {
    create(r, volume);
    mount_options(r, volume);
}

/// Mount options in the old annotation, which only some types of volumes understand.
fn mount_options(r: &mut Report, volume: &At<'_>) {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
    let able = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ];
    let annotation = volume.down("metadata.annotations").get(ANNOTATION);
    let understood = able.iter().any(|key| volume.get("spec").get(key).is_set());
    r.when(annotation.is_set() && !understood, || {
        annotation.forbidden("may not specify mount options for this volume type")
    });
}

/// Where the spec of a volume stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a PersistentVolume.
    Volume,
    /// Inline, in a VolumeAttachment.
    Inline,
}

/// The spec of a volume.
pub(super) fn spec(r: &mut Report, spec: &At<'_>, name: &str, place: Place) {
    const CONTEXT: &str = "in the context of inline volumes";
    let inline = place == Place::Inline;
    if inline {
        for key in ["claimRef", "capacity"] {
            let at = spec.get(key);
            let given = if key == "claimRef" { at.is_set() } else { !at.is_empty() };
            r.when(given, || at.forbidden(format!("may not be specified {CONTEXT}")));
        }
        let csi = spec.get("csi");
        r.when(!csi.is_set(), || csi.required(format!("has to be specified {CONTEXT}")));
    }
    let modes = spec.get("accessModes");
    r.required(&modes);
    access_modes(r, &modes);
    if !inline {
        capacity(r, &spec.get("capacity"));
    }
    let reclaim = spec.get("persistentVolumeReclaimPolicy");
    if !reclaim.is_empty() {
        if inline {
            r.when(reclaim.str() != "Retain", || reclaim.forbidden(format!("may only be Retain {CONTEXT}")));
        } else {
            r.one_of(&reclaim, &["Delete", "Recycle", "Retain"]);
        }
    }
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.get("required");
        if inline {
            r.add(affinity.forbidden(format!("may not be specified {CONTEXT}")));
        } else if required.is_set() {
            node_selector(r, &required, false);
        } else {
            r.add(required.required("must specify required node constraints"));
        }
    }
    sources(r, spec, name, affinity.is_set() && !inline);
    r.when(["/", "//"].contains(&spec.down("hostPath.path").str()) && reclaim.str() == "Recycle", || {
        reclaim.forbidden("may not be 'recycle' for a hostPath mount of '/'")
    });
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        if inline {
            r.add(class.forbidden(format!("may not be specified {CONTEXT}")));
        } else {
            r.subdomain(&class);
        }
    }
    let mode = spec.get("volumeMode");
    if inline {
        r.when(mode.is_set() && mode.str() != "Filesystem", || {
            mode.forbidden(format!("may not specify volumeMode other than Filesystem {CONTEXT}"))
        });
        return;
    }
    r.optional_one_of(&mode, &VOLUME_MODES);
    let attributes = spec.get("volumeAttributesClassName");
    if attributes.is_set() {
        if attributes.is_empty() {
            r.add(attributes.required("an empty string is disallowed"));
        } else {
            r.subdomain(&attributes);
        }
        let csi = spec.get("csi");
        r.when(!csi.is_set(), || csi.required("has to be specified when using volumeAttributesClassName"));
    }
}

fn capacity(r: &mut Report, at: &At<'_>) {
    r.required(at);
    r.when(!at.key("storage").is_set() || at.len() > 1, || {
        let mut error = at.unsupported(&["storage"]);
        error.value = Some(at.value.to_string());
        error
    });
    for (_, quantity) in at.entries() {
        not_negative(r, &quantity);
        if let Some(q) = quantity.quantity()
            && q.sign() <= 0
        {
            r.add(quantity.invalid_with(go_quote(&q.to_string()), "must be greater than zero"));
        }
    }
}

fn sources(r: &mut Report, spec: &At<'_>, name: &str, has_affinity: bool) {
    let mut types = 0;
    for (field, several, named, check) in SOURCES {
        let at = spec.get(field);
        if !at.is_set() {
            continue;
        }
        if types > 0 && field != "flexVolume" {
            r.add(at.named(spec.path.child(several)).forbidden(source::TOO_MANY_TYPES));
            continue;
        }
        types += 1;
        let at = at.named(spec.path.child(named));
        check(r, &at);
        match field {
            "iscsi" => source::iscsi_persistent(r, &at, name),
            "local" => r.when(!has_affinity, || {
                spec.get("nodeAffinity").required("Local volume requires node affinity")
            }),
            _ => {}
        }
    }
    let at = spec.get("csi");
    if at.is_set() {
        if types > 0 {
            r.add(at.forbidden(source::TOO_MANY_TYPES));
        } else {
            types += 1;
            csi(r, &at);
        }
    }
    r.when(types == 0, || spec.required("must specify a volume type"));
}

pub(super) fn update(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    create_volume(r, new);
    create(r, new);
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let keep = |at: &At<'_>| {
        let mut map = serde_json::Map::new();
        for key in SOURCES.iter().map(|s| s.0).chain(["csi"]) {
            if at.get(key).is_set() {
                map.insert(key.to_owned(), at.get(key).value.clone());
            }
        }
        map
    };
    let (mut now, then) = (keep(&spec), keep(&before));
    let expand = "controllerExpandSecretRef";
    if before.get("csi").is_set()
        && !before.get("csi").get(expand).is_set()
        && let Some(csi) = now.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(expand);
    }
    let (now, then) = (Value::Object(now), Value::Object(then));
    if !same(&now, &then) {
        let difference = golang::difference("core.PersistentVolumeSource", &then, &now);
        let at = spec.named(spec.path.child("persistentvolumesource"));
        r.add(at.forbidden(format!("spec.persistentvolumesource is immutable after creation\n{difference}")));
    }
    let mode = spec.get("volumeMode").named(Path::new("volumeMode"));
    r.when(mode.value != before.get("volumeMode").value, || mode.invalid(IMMUTABLE));
    let affinity = spec.get("nodeAffinity").named(Path::new("nodeAffinity"));
    let was = before.get("nodeAffinity");
    r.when(was.is_set() && !same(affinity.value, was.value), || {
        affinity.invalid_as(
            "*core.VolumeNodeAffinity",
            "field is immutable, except for updating from beta label to GA",
        )
    });
    let class = spec.get("volumeAttributesClassName");
    r.when(before.get("volumeAttributesClassName").is_set() && !class.is_set(), || {
        class.forbidden("update from non-nil value to nil is forbidden")
    });
}

pub(super) fn status(r: &mut Report, new: &At<'_>, old: &At<'_>) {
    meta::update(r, new, old);
    r.required(&new.down("metadata.resourceVersion").named(Path::new("resourceVersion")));
}
