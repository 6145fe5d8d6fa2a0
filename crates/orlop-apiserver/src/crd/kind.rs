//! A custom kind: one version of a definition, with its schema ready to be used.

use crate::kind::{Kind, Source, Subresource, table_name};
use crate::object;
use crate::route::api_version;
use crate::selector::fields::Selectable;
use orlop_kinds::validate::{Scope, object_meta_create, object_meta_update};
use orlop_merge::{ObjectType, Schema, UnknownFields};
use orlop_schema::field::{FieldError, Path};
use orlop_schema::names::NameRule;
use orlop_store::Table;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a definition says about one version of its kind.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// The definition's name.
    pub(crate) definition: String,
    /// Changes whenever the definition's spec does.
    state: u64,
    version: Value,
    types: Arc<BTreeMap<String, ObjectType>>,
}

impl CustomKind {
    /// All served versions of an established definition, as kinds.
    pub(crate) fn load(definition: &Value) -> Vec<Kind> {
        let spec = &definition["spec"];
        let group = object::text(spec, "group");
        let names = &definition["status"]["acceptedNames"];
        let versions = spec["versions"].as_array().cloned().unwrap_or_default();
        let types: BTreeMap<String, ObjectType> = versions
            .iter()
            .map(|version| {
                let schema = version["schema"].get("openAPIV3Schema");
                let unknown = if spec["preserveUnknownFields"] == true {
                    UnknownFields::Preserved
                } else {
                    UnknownFields::Refused
                };
                (api_version(group, object::text(version, "name")), Schema::custom_resource(schema, unknown))
            })
            .collect();
        let types = Arc::new(types);
        let storage = versions.iter().find(|version| version["storage"] == true);
        let storage =
            storage.map(|version| api_version(group, object::text(version, "name"))).unwrap_or_default();
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        let plural = object::text(names, "plural");
        versions
            .iter()
            .filter(|version| version["served"] == true)
            .map(|version| {
                let mut subresources = BTreeMap::new();
                let verbs = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
                let name = object::text(version, "name");
                if version["subresources"].get("status").is_some() {
                    let status = Subresource {
                        group: group.to_owned(),
                        version: name.to_owned(),
                        kind: object::text(names, "kind").to_owned(),
                        verbs: verbs(&["get", "patch", "update"]),
                    };
                    subresources.insert("status".to_owned(), status);
                }
                if version["subresources"].get("scale").is_some_and(Value::is_object) {
                    let scale = Subresource {
                        group: "autoscaling".to_owned(),
                        version: "v1".to_owned(),
                        kind: "Scale".to_owned(),
                        verbs: verbs(&["get", "patch", "update"]),
                    };
                    subresources.insert("scale".to_owned(), scale);
                }
                let selectable = version["selectableFields"].as_array().into_iter().flatten();
                let selectable =
                    selectable.map(|f| object::text(f, "jsonPath").trim_start_matches('.').to_owned());
                let custom = Self {
                    definition: object::meta_str(definition, "name").to_owned(),
                    state: object::meta_i64(definition, "generation").unwrap_or(0) as u64,
                    version: version.clone(),
                    types: types.clone(),
                };
                Kind {
                    group: group.to_owned(),
                    version: name.to_owned(),
                    kind: object::text(names, "kind").to_owned(),
                    list_kind: object::text(names, "listKind").to_owned(),
                    plural: plural.to_owned(),
                    singular: object::text(names, "singular").to_owned(),
                    short_names: list(&names["shortNames"]),
                    categories: list(&names["categories"]),
                    namespaced: spec["scope"] == "Namespaced",
                    verbs: verbs(&[
                        "delete",
                        "deletecollection",
                        "get",
                        "list",
                        "patch",
                        "create",
                        "update",
                        "watch",
                    ]),
                    storage_version_hash: String::new(),
                    table: Table::new(&table_name(group, plural)),
                    storage: storage.clone(),
                    subresources,
                    selectable: Selectable::custom(selectable),
                    source: Source::Custom(Arc::new(custom)),
                }
            })
            .collect()
    }

    /// A number that changes with the schema.
    pub(crate) fn state(&self) -> u64 {
        self.state
    }

    /// Whether an object written under this state needs nothing done when it is read.
    pub(crate) fn is_current(&self, state: u64) -> bool {
        self.state == state
    }

    /// The scale subresource of this version.
    pub(crate) fn scale(&self) -> Value {
        self.version["subresources"]["scale"].clone()
    }

    /// Merge types of all versions.
    pub(crate) fn object_types(&self) -> &BTreeMap<String, ObjectType> {
        &self.types
    }

    /// A stored object in a version.
    pub(crate) fn read(&self, mut object: Value, api_version: &str, state: u64) -> Value {
        object["apiVersion"] = api_version.into();
        if !self.is_current(state) {
            self.default(&mut object);
        }
        object
    }

    /// Checks the structure of an object.
    #[expect(clippy::unused_self, reason = "the schema will be asked here")]
    pub(crate) fn decode(&self, value: Value) -> Result<(Value, Vec<String>), String> {
        Ok((value, Vec::new()))
    }

    /// Sets defaults.
    #[expect(clippy::unused_self, reason = "the schema will be asked here")]
    pub(crate) fn default(&self, _object: &mut Value) {}

    fn has_status(&self) -> bool {
        self.version["subresources"].get("status").is_some()
    }

    /// What becomes of a new object.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        if self.has_status()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        object::set_meta(object, "generation", 1);
    }

    /// What becomes of a changed object.
    pub(crate) fn prepare_update(&self, subresource: &str, object: &mut Value, old: &Value) {
        if subresource == "status" {
            let status = object.get("status").cloned();
            let managed = object["metadata"].get("managedFields").cloned().unwrap_or_default();
            let version = object["metadata"].get("resourceVersion").cloned().unwrap_or_default();
            *object = old.clone();
            match (object.as_object_mut(), status) {
                (Some(fields), Some(status)) => {
                    fields.insert("status".to_owned(), status);
                }
                (Some(fields), None) => {
                    fields.remove("status");
                }
                _ => {}
            }
            object::set_meta(object, "managedFields", managed);
            object::set_meta(object, "resourceVersion", version);
            return;
        }
        if self.has_status() {
            object::copy_field(object, old, "status");
        }
        let without = |value: &Value| {
            let mut copy = value.clone();
            if let Some(fields) = copy.as_object_mut() {
                fields.remove("metadata");
                if self.has_status() {
                    fields.remove("status");
                }
            }
            copy
        };
        if without(object) != without(old) {
            let generation = object::meta_i64(old, "generation").unwrap_or(0);
            object::set_meta(object, "generation", generation + 1);
        }
    }

    fn scope(kind: &Kind) -> Scope {
        if kind.namespaced { Scope::Namespaced } else { Scope::Cluster }
    }

    /// What is wrong with a new object.
    #[expect(clippy::unused_self, reason = "the schema will be asked here")]
    pub(crate) fn validate_create(&self, kind: &Kind, object: &Value) -> Vec<FieldError> {
        let empty = json!({});
        let meta = object.get("metadata").unwrap_or(&empty);
        object_meta_create(meta, Self::scope(kind), NameRule::Subdomain, &Path::new("metadata"))
    }

    /// What is wrong with a changed object.
    #[expect(clippy::unused_self, reason = "the schema will be asked here")]
    pub(crate) fn validate_update(
        &self,
        _kind: &Kind,
        _subresource: &str,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        let empty = json!({});
        let meta = |object: &Value| object.get("metadata").cloned().unwrap_or_else(|| empty.clone());
        object_meta_update(&meta(object), &meta(old), &Path::new("metadata"))
    }

    /// What the writer should know.
    #[expect(clippy::unused_self, reason = "the schema will be asked here")]
    pub(crate) fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// The warning that every use of a deprecated version gets.
    pub(crate) fn deprecation(&self, kind: &Kind) -> Option<String> {
        if self.version["deprecated"] != true {
            return None;
        }
        let own = object::text(&self.version, "deprecationWarning");
        Some(if own.is_empty() {
            format!("{} {} is deprecated", kind.api_version(), kind.kind)
        } else {
            own.to_owned()
        })
    }
}
