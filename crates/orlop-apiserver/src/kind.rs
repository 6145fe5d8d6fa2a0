//! Kinds as descriptors: names, scope, verbs, subresources, and where the rules come from. A built-in kind and
//! one from a CustomResourceDefinition take the same path through the server; what differs is behind
//! [`Source`].

use crate::crd::CustomKind;
use crate::route::api_version;
use crate::selector::fields::Selectable;
use orlop_kinds::catalog::{TypeId, catalog};
use orlop_store::{Key, Table};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A kind in one served version.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The served version.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// The plural name in paths.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// Short names for the command line.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with objects.
    pub verbs: Vec<String>,
    /// As discovery shows it.
    pub storage_version_hash: String,
    /// Where objects are stored.
    pub table: Table,
    /// The `apiVersion` in which objects are stored.
    pub storage: String,
    /// Subresources by name.
    pub subresources: BTreeMap<String, Subresource>,
    /// The fields that a field selector may name.
    pub selectable: Selectable,
    /// Where structure and rules come from.
    pub source: Source,
}

/// A subresource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subresource {
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// Where a kind's structure and rules come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The catalog of built-in kinds.
    BuiltIn(TypeId),
    /// A CustomResourceDefinition.
    Custom(Arc<CustomKind>),
}

impl Kind {
    /// The `apiVersion` of objects in this version.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Whether a verb is served.
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// The key of an object.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(if self.namespaced { namespace } else { "" }, name)
    }

    /// The custom part, if this is a custom kind.
    pub(crate) fn custom(&self) -> Option<&CustomKind> {
        match &self.source {
            Source::Custom(custom) => Some(custom),
            Source::BuiltIn(_) => None,
        }
    }

    /// The identity that rules are looked up by.
    pub(crate) fn id(&self) -> orlop_kinds::validate::Kind<'_> {
        orlop_kinds::validate::Kind { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// Whether objects are kept; reviews and the like are only answered.
    pub(crate) fn is_stored(&self) -> bool {
        self.allows("get")
    }
}

/// Kinds by group, version and plural name.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    kinds: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Registry {
    /// The kinds that are compiled in.
    pub(crate) fn built_in() -> &'static Registry {
        static BUILT_IN: OnceLock<Registry> = OnceLock::new();
        BUILT_IN.get_or_init(load_built_in)
    }

    /// Adds a kind.
    pub(crate) fn insert(&mut self, kind: Kind) {
        let key = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
        self.kinds.insert(key, Arc::new(kind));
    }

    /// Adds a kind of another registry.
    pub(crate) fn insert_shared(&mut self, kind: Arc<Kind>) {
        let key = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
        self.kinds.insert(key, kind);
    }

    /// A kind by its place in a path.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// A kind by its name in objects.
    pub(crate) fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let mut candidates =
            self.iter().filter(|k| k.group == group && k.kind == kind && k.version == version);
        candidates.find(|k| k.is_stored())
    }

    /// All kinds, ordered by group, version and plural name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }
}

fn load_built_in() -> Registry {
    let mut registry = Registry::default();
    for group in catalog().groups() {
        for version in &group.versions {
            for resource in version.resources.iter().filter(|r| r.subresource().is_none()) {
                let prefix = format!("{}/", resource.name);
                let subresources = version
                    .resources
                    .iter()
                    .filter_map(|r| {
                        let name = r.name.strip_prefix(&prefix)?;
                        let (group, version) = r.kind_group_version(&group.name, &version.name);
                        let sub = Subresource {
                            group: group.to_owned(),
                            version: version.to_owned(),
                            kind: r.kind.clone(),
                            verbs: r.verbs.clone(),
                        };
                        Some((name.to_owned(), sub))
                    })
                    .collect();
                let Some(type_id) = catalog().type_of(&group.name, &version.name, &resource.kind) else {
                    continue;
                };
                let (store_group, store_version) = storage_of(&group.name, &version.name, &resource.name);
                registry.insert(Kind {
                    group: group.name.clone(),
                    version: version.name.clone(),
                    kind: resource.kind.clone(),
                    list_kind: format!("{}List", resource.kind),
                    plural: resource.name.clone(),
                    singular: resource.singular.clone(),
                    short_names: resource.short_names.clone(),
                    categories: resource.categories.clone(),
                    namespaced: resource.namespaced,
                    verbs: resource.verbs.clone(),
                    storage_version_hash: resource.storage_version_hash.clone(),
                    table: Table::new(&table_name(store_group, &resource.name)),
                    storage: api_version(store_group, store_version),
                    subresources,
                    selectable: Selectable::built_in(&group.name, &resource.kind),
                    source: Source::BuiltIn(type_id),
                });
            }
        }
    }
    registry
}

/// Where objects of a resource are kept: the core group's are `pods`, others `deployments.apps`.
pub(crate) fn table_name(group: &str, plural: &str) -> String {
    crate::status::qualified(plural, group)
}

/// The group and version a resource is stored in: its own, unless another one is its home.
fn storage_of<'a>(group: &'a str, version: &'a str, plural: &str) -> (&'a str, &'a str) {
    match (group, plural) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("autoscaling", "horizontalpodautoscalers") => ("autoscaling", "v2"),
        (group, _) => {
            let preferred =
                catalog().group(group).and_then(|g| g.versions.first()).map_or(version, |v| &v.name);
            let served = catalog().resource(group, preferred, plural).is_some();
            (group, if served { preferred } else { version })
        }
    }
}
