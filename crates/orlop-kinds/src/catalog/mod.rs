//! What the built-in kinds are: Go structure, OpenAPI definitions, discovery and bootstrap RBAC.
//!
//! The data comes from `tools/kindsgen` and is compiled in. It is immutable; whatever a server does not ask
//! for is never unpacked. No rules live here: what happens to objects is decided in the other rooms.

mod discovery;
mod openapi;
mod types;
mod words;

pub use discovery::{Group, Resource, Version};
pub use types::{Declared, Field, Shape, Struct, Type, TypeId};

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read as _;
use std::sync::OnceLock;

/// The built-in kinds of one Kubernetes release.
pub struct Catalog {
    types: types::Table,
    groups: Vec<Group>,
    openapi: openapi::Definitions,
    descriptions: openapi::Definitions,
    policy: OnceLock<Value>,
    versions: OnceLock<Value>,
}

/// The catalog of the release this crate was generated from.
pub fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| Catalog {
        types: types::Table::parse(unpack(include_bytes!("../../data/types.tsv.gz"))),
        groups: discovery::parse(unpack(include_bytes!("../../data/discovery.json.gz"))),
        openapi: openapi::Definitions::new(include_bytes!("../../data/openapi.bin")),
        descriptions: openapi::Definitions::new(include_bytes!("../../data/descriptions.bin")),
        policy: OnceLock::new(),
        versions: OnceLock::new(),
    })
}

impl Catalog {
    /// The groups in the order discovery lists them; the legacy group comes first and has no name.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// A group by name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// A served group-version.
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?.versions.iter().find(|v| v.name == version)
    }

    /// A resource such as `pods`, or a subresource such as `pods/status`.
    pub fn resource(&self, group: &str, version: &str, name: &str) -> Option<&Resource> {
        self.version(group, version)?.resources.iter().find(|resource| resource.name == name)
    }

    /// The resource that stores objects of a kind.
    pub fn resource_of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Resource> {
        let resources = &self.version(group, version)?.resources;
        resources.iter().find(|r| r.kind == kind && r.subresource().is_none())
    }

    /// The Go type of a kind; lists, options and reviews are kinds too.
    pub fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.types.of_kind(group, version, kind)
    }

    /// The Go type with an OpenAPI name such as `io.k8s.api.core.v1.PodSpec`.
    pub fn type_named(&self, model: &str) -> Option<TypeId> {
        self.types.of_model(model)
    }

    /// What a type looks like.
    pub fn get(&self, id: TypeId) -> &Type {
        self.types.get(id)
    }

    /// All types, in the order of their ids.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.types.iter()
    }

    /// The OpenAPI v3 schema of a definition such as `io.k8s.api.core.v1.PodSpec`, without descriptions.
    pub fn definition(&self, name: &str) -> Option<&Value> {
        self.openapi.get(name)
    }

    /// The OpenAPI v3 schema of a definition with the descriptions of it and of its properties.
    pub fn described_definition(&self, name: &str) -> Option<Value> {
        let mut schema = self.definition(name)?.clone();
        for (property, text) in self.descriptions.get(name).and_then(Value::as_object).into_iter().flatten() {
            let owner = match property.as_str() {
                "" => Some(&mut schema),
                property => schema.get_mut("properties").and_then(|all| all.get_mut(property)),
            };
            if let Some(owner) = owner.and_then(Value::as_object_mut) {
                owner.insert("description".to_owned(), text.clone());
            }
        }
        Some(schema)
    }

    /// The name of the definition of a kind.
    pub fn definition_name(&self, group: &str, version: &str, kind: &str) -> Option<&'static str> {
        let model = self.get(self.type_of(group, version, kind)?).model;
        (!model.is_empty()).then_some(model)
    }

    /// The OpenAPI v3 document of a group-version, as `/openapi/v3/apis/<group>/<version>` serves it.
    pub fn openapi_v3(&self, group: &str, version: &str) -> Option<Value> {
        Some(openapi::document(self, group, self.version(group, version)?))
    }

    /// Groups and versions that the Go client knows, served or not.
    pub fn client_versions(&self) -> Vec<(&str, &str)> {
        self.versions("clients")
    }

    /// Groups and versions that the original knows, served or not.
    pub fn known_versions(&self) -> Vec<(&str, &str)> {
        let mut all = [self.versions("clients"), self.versions("server")].concat();
        all.sort_unstable();
        all
    }

    fn versions(&self, part: &str) -> Vec<(&str, &str)> {
        let versions = self.versions.get_or_init(|| {
            serde_json::from_str(include_str!("../../data/versions.json")).unwrap_or_default()
        });
        let versions = versions.get(part).and_then(Value::as_array).into_iter().flatten();
        versions.filter_map(|v| Some((v["Group"].as_str()?, v["Version"].as_str()?))).collect()
    }

    /// Cluster roles of a new cluster, including those of the controllers.
    pub fn bootstrap_cluster_roles(&self) -> &[Value] {
        self.policy("clusterRoles")
    }

    /// Cluster role bindings of a new cluster.
    pub fn bootstrap_cluster_role_bindings(&self) -> &[Value] {
        self.policy("clusterRoleBindings")
    }

    /// Roles of a new cluster; each names its namespace.
    pub fn bootstrap_roles(&self) -> &[Value] {
        self.policy("roles")
    }

    /// Role bindings of a new cluster; each names its namespace.
    pub fn bootstrap_role_bindings(&self) -> &[Value] {
        self.policy("roleBindings")
    }

    fn policy(&self, part: &str) -> &[Value] {
        let policy = self.policy.get_or_init(|| {
            serde_json::from_str(unpack(include_bytes!("../../data/rbac.json.gz"))).unwrap_or_default()
        });
        policy.get(part).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// Decompresses data that stays for the life of the process.
pub(crate) fn unpack(compressed: &[u8]) -> &'static str {
    let mut text = String::new();
    // The data is compiled in and read by the tests below; a failure leaves an empty catalog.
    if GzDecoder::new(compressed).read_to_string(&mut text).is_err() {
        text.clear();
    }
    Box::leak(text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_lists_what_a_default_server_serves() {
        let catalog = catalog();
        assert_eq!(catalog.groups().len(), 21);
        for (group, version, name, kind, namespaced) in [
            ("", "v1", "pods", "Pod", true),
            ("", "v1", "pods/eviction", "Eviction", true),
            ("", "v1", "nodes", "Node", false),
            ("apps", "v1", "deployments/scale", "Scale", true),
            ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
            ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false),
        ] {
            let resource = catalog.resource(group, version, name).expect(name);
            assert_eq!((resource.kind.as_str(), resource.namespaced), (kind, namespaced), "{name}");
            let (group, version) = resource.kind_group_version(group, version);
            assert!(catalog.type_of(group, version, kind).is_some(), "{name}");
        }
        assert!(catalog.version("storagemigration.k8s.io", "v1beta1").is_none());
        assert_eq!(catalog.group("autoscaling").map(|g| g.versions[0].name.as_str()), Some("v2"));
    }

    #[test]
    fn every_kind_has_a_type_and_a_definition() {
        let catalog = catalog();
        for group in catalog.groups() {
            for version in &group.versions {
                for resource in &version.resources {
                    let (g, v) = resource.kind_group_version(&group.name, &version.name);
                    let name = catalog.definition_name(g, v, &resource.kind);
                    let name = name.unwrap_or_else(|| panic!("{g}/{v} {}", resource.kind));
                    if !resource.kind.ends_with("Options") {
                        assert!(catalog.definition(name).is_some(), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn bootstrap_policy_has_roles_and_bindings() {
        let catalog = catalog();
        let named = |list: &[Value], name: &str| list.iter().any(|r| r["metadata"]["name"] == name);
        assert!(named(catalog.bootstrap_cluster_roles(), "cluster-admin"));
        assert!(named(catalog.bootstrap_cluster_roles(), "system:controller:job-controller"));
        assert!(named(catalog.bootstrap_cluster_role_bindings(), "cluster-admin"));
        assert!(named(catalog.bootstrap_roles(), "extension-apiserver-authentication-reader"));
        assert!(!catalog.bootstrap_role_bindings().is_empty());
    }
}
