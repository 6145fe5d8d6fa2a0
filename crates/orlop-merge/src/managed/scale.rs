//! Ownership of the replica count, seen through the scale subresource.

use serde_json::Value;

use super::entries::{Managed, Stored};
use crate::fieldset::FieldSet;
use crate::path::Path;
use crate::updater::Ownership;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Translates managed fields between a resource and its scale subresource.
#[derive(Clone, Debug)]
pub struct ScaleFields<'a> {
    /// The managed fields of the resource.
    pub parent: &'a [Value],
    /// The version in which the resource is written.
    pub api_version: &'a str,
    /// Where the replica count is, for each version of the resource.
    pub replicas: &'a [(&'a str, Replicas)],
}

/// Where a version has its replica count.
#[derive(Clone, Debug)]
pub enum Replicas {
    /// At this path.
    At(Path),
    /// Nowhere: the version has no scale subresource.
    Absent,
}

impl ScaleFields<'_> {
    /// The managed fields of the scale object.
    pub fn to_scale(&self) -> Result<Vec<Value>, String> {
        let parent = Managed::decode(self.parent)?;
        let mut scale = Managed::default();
        for (identity, ownership) in &parent.fields {
            let Some(Replicas::At(path)) = self.replicas(&ownership.api_version) else { continue };
            if ownership.set.contains(&path.0) {
                let set = replicas_in_scale();
                scale.fields.insert(identity.clone(), Ownership::new(set, SCALE_VERSION));
                if let Some(time) = parent.times.get(identity) {
                    scale.times.insert(identity.clone(), time.clone());
                }
            }
        }
        Ok(entries(&scale))
    }

    /// The managed fields of the resource after a write to the scale object left it with `scale`.
    pub fn to_parent(&self, scale: &[Value]) -> Result<Vec<Value>, String> {
        let parent = Managed::decode(self.parent)?;
        let mut scale = Managed::decode(scale)?;
        // Times of the scale object are not carried over: managers that are new to the resource have none.
        let mut out = Managed { times: parent.times, ..Managed::default() };
        for (identity, mut ownership) in parent.fields {
            let Some(replicas) = self.replicas(&ownership.api_version) else { continue };
            if let Replicas::At(path) = replicas
                && ownership.set.contains(&path.0)
                && scale.fields.remove(&identity).is_none()
            {
                // Another manager has it now.
                let set = ownership.set.difference(&[path.clone()].into_iter().collect());
                if set.is_empty() {
                    continue;
                }
                ownership = Ownership::new(set, &ownership.api_version);
            }
            out.fields.insert(identity, ownership);
        }
        let Some(Replicas::At(path)) = self.replicas(self.api_version) else { return Ok(entries(&out)) };
        for (identity, ownership) in scale.fields {
            if ownership.set.contains(&replicas_path().0) {
                let set = [path.clone()].into_iter().collect();
                out.fields.insert(identity, Ownership::new(set, self.api_version));
            }
        }
        Ok(entries(&out))
    }

    fn replicas(&self, api_version: &str) -> Option<&Replicas> {
        self.replicas.iter().find(|(version, _)| *version == api_version).map(|(_, replicas)| replicas)
    }
}

fn replicas_path() -> Path {
    Path::fields(&["spec", "replicas"])
}

fn replicas_in_scale() -> FieldSet {
    [replicas_path()].into_iter().collect()
}

fn entries(managed: &Managed) -> Vec<Value> {
    managed.encode(Stored::default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_change_hands_through_scale() {
        let entry =
            |manager: &str, version: &str, subresource: Option<&str>, time: Option<&str>, fields: Value| {
                let mut entry = json!({"manager": manager, "operation": "Apply", "apiVersion": version,
                                   "fieldsType": "FieldsV1", "fieldsV1": fields});
                for (key, value) in [("subresource", subresource), ("time", time)] {
                    if let Some(value) = value {
                        entry[key] = value.into();
                    }
                }
                entry
            };
        let (replicas, both) =
            (json!({"f:spec": {"f:replicas": {}}}), json!({"f:spec": {"f:replicas": {}, "f:x": {}}}));
        let t = Some("2026-01-01T00:00:00Z");
        let parent = [entry("a", "apps/v1", None, t, both), entry("b", "apps/v1", None, t, replicas.clone())];
        let paths = [("apps/v1", Replicas::At(Path::fields(&["spec", "replicas"])))];
        let fields = ScaleFields { parent: &parent, api_version: "apps/v1", replicas: &paths };
        let scale = [
            entry("a", "autoscaling/v1", None, t, replicas.clone()),
            entry("b", "autoscaling/v1", None, t, replicas.clone()),
        ];
        assert_eq!(fields.to_scale().unwrap(), scale);
        assert_eq!(fields.to_parent(&scale).unwrap(), parent);
        let scaler = [entry("c", "autoscaling/v1", Some("scale"), t, replicas.clone())];
        assert_eq!(
            fields.to_parent(&scaler).unwrap(),
            [
                entry("c", "apps/v1", Some("scale"), None, replicas),
                entry("a", "apps/v1", None, t, json!({"f:spec": {"f:x": {}}})),
            ]
        );
    }
}
