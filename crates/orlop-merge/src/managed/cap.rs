//! A bound on how many updaters are remembered one by one.

use std::collections::BTreeMap;

use super::entries::{Identity, Managed, Operation, unix_seconds};
use crate::updater::Ownership;

/// With more updaters than this, the oldest are merged.
const UPDATERS_MAX: usize = 10;

const ANCIENT_CHANGES: &str = "ancient-changes";

/// Merges the oldest updaters of each version into one, until there are few enough.
pub(super) fn cap(managed: &mut Managed) {
    let mut updaters: Vec<Identity> =
        managed.fields.keys().filter(|identity| identity.operation == Operation::Update).cloned().collect();
    let mut count = updaters.len();
    if count <= UPDATERS_MAX {
        return;
    }
    updaters.sort_by_cached_key(|identity| {
        let time = managed.times.get(identity).and_then(|time| unix_seconds(time)).unwrap_or_default();
        (time, identity.text())
    });
    let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
    for updater in updaters {
        if count <= UPDATERS_MAX {
            return;
        }
        let Some(version) = managed.fields.get(&updater).map(|ownership| ownership.api_version.clone())
        else {
            continue;
        };
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, updater);
            continue;
        };
        let bucket = Identity::new(ANCIENT_CHANGES, Operation::Update, &version, "");
        if !managed.fields.contains_key(&bucket)
            && let Some(ownership) = managed.fields.remove(first)
        {
            managed.fields.insert(bucket.clone(), ownership);
        }
        let Some(ownership) = managed.fields.remove(&updater) else { continue };
        let set = match managed.fields.get(&bucket) {
            Some(present) => ownership.set.union(&present.set),
            None => ownership.set,
        };
        managed.fields.insert(bucket.clone(), Ownership::new(set, &version));
        count -= 1;
        match managed.times.get(&updater).cloned() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
}
