//! Persistent volumes, claims, and the kinds of `storage.k8s.io`.

mod claim;
mod classes;
mod volume;

pub(super) use claim::claim_spec;

use super::Rules;
use super::meta::Scope::{Cluster, Namespaced};

pub(super) const RULES: &[Rules] = &[
    Rules::new(
        "",
        "PersistentVolume",
        Cluster,
        volume::create_volume,
        volume::update,
        &[("status", volume::status)],
    ),
    Rules::new(
        "",
        "PersistentVolumeClaim",
        Namespaced,
        claim::create,
        claim::update,
        &[("status", claim::status)],
    ),
    Rules::new("storage.k8s.io", "StorageClass", Cluster, classes::class, classes::class_update, &[]),
    Rules::new(
        "storage.k8s.io",
        "VolumeAttributesClass",
        Cluster,
        classes::attributes_class,
        classes::attributes_class_update,
        &[],
    ),
    Rules::new("storage.k8s.io", "CSIDriver", Cluster, classes::driver, classes::driver_update, &[]),
    Rules::new("storage.k8s.io", "CSINode", Cluster, classes::node, classes::node_update, &[]),
    Rules::new(
        "storage.k8s.io",
        "CSIStorageCapacity",
        Namespaced,
        classes::capacity,
        classes::capacity_update,
        &[],
    ),
    Rules::new(
        "storage.k8s.io",
        "VolumeAttachment",
        Cluster,
        classes::attachment,
        classes::attachment_update,
        &[("status", classes::attachment_update)],
    ),
];

/// The ways a volume can be mounted.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// A list of access modes.
fn access_modes(r: &mut super::view::Report, list: &super::view::At<'_>) {
    let (mut alone, mut others) = (false, false);
    for mode in list.items() {
        let known = r.one_of(&mode.named(list.path.clone()), &ACCESS_MODES);
        alone |= mode.str() == "ReadWriteOncePod";
        others |= known && mode.str() != "ReadWriteOncePod";
    }
    r.when(alone && others, || list.forbidden("may not use ReadWriteOncePod with other access modes"));
}
