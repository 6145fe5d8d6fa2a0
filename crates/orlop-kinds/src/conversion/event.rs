//! Events of the core group and of `events.k8s.io` are one object with other field names.

use super::Object;

/// The name in the core group, and in `events.k8s.io`.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("message", "note"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

pub(super) fn rename(event: &mut Object, to_group: &str) {
    for (core, events) in NAMES {
        let (from, to) = if to_group.is_empty() { (events, core) } else { (core, events) };
        if let Some(value) = event.remove(*from) {
            event.insert((*to).to_owned(), value);
        }
    }
}
