//! The groups, versions and resources that a server with default settings offers.

use serde_json::Value;

/// An API group; the legacy group has an empty name.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name, such as `apps`.
    pub name: String,
    /// The served versions, the preferred one first.
    pub versions: Vec<Version>,
}

/// A served version of a group.
#[derive(Clone, Debug)]
pub struct Version {
    /// The name, such as `v1`.
    pub name: String,
    /// Resources and subresources in the order discovery lists them.
    pub resources: Vec<Resource>,
}

/// A resource or subresource, as in `APIResource`.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The plural name, such as `pods` or `pods/status`.
    pub name: String,
    /// The singular name; empty for subresources.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The group of the kind, when it is not that of the resource.
    pub group: String,
    /// The version of the kind, when it is not that of the resource.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The verbs, sorted.
    pub verbs: Vec<String>,
    /// Short names for command lines.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// A hash of the version objects are stored in; empty for subresources.
    pub storage_version_hash: String,
}

impl Resource {
    /// The part after the slash.
    pub fn subresource(&self) -> Option<&str> {
        self.name.split_once('/').map(|(_, sub)| sub)
    }

    /// Group and version of the kind, for a resource of the given group-version.
    pub fn kind_group_version<'a>(&'a self, group: &'a str, version: &'a str) -> (&'a str, &'a str) {
        if self.version.is_empty() { (group, version) } else { (&self.group, &self.version) }
    }

    /// Whether the verb is offered.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

pub(super) fn parse(text: &str) -> Vec<Group> {
    let data: Value = serde_json::from_str(text).unwrap_or_default();
    items(&data)
        .map(|group| Group {
            name: string(group, "name"),
            versions: items(&group["versions"])
                .map(|version| Version {
                    name: string(version, "name"),
                    resources: items(&version["resources"]).map(resource).collect(),
                })
                .collect(),
        })
        .collect()
}

fn resource(data: &Value) -> Resource {
    let strings = |key: &str| items(&data[key]).filter_map(Value::as_str).map(str::to_owned).collect();
    Resource {
        name: string(data, "name"),
        singular: string(data, "singularName"),
        namespaced: data["namespaced"].as_bool().unwrap_or_default(),
        group: string(data, "group"),
        version: string(data, "version"),
        kind: string(data, "kind"),
        verbs: strings("verbs"),
        short_names: strings("shortNames"),
        categories: strings("categories"),
        storage_version_hash: string(data, "storageVersionHash"),
    }
}

fn items(data: &Value) -> impl Iterator<Item = &Value> {
    data.as_array().into_iter().flatten()
}

fn string(data: &Value, key: &str) -> String {
    data[key].as_str().unwrap_or_default().to_owned()
}
