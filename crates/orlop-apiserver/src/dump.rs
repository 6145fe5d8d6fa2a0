//! The whole state as YAML, out and in.

use crate::builder::NotKept;
use crate::crd;
use crate::kind::{Kind, Registry};
use crate::object;
use crate::server::Inner;
use crate::yaml;
use serde_json::Value;
use std::sync::Arc;

/// A dump that cannot be loaded; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A document is not YAML.
    #[error("document {number} is not YAML: {why}")]
    Yaml {
        /// Counted from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
    /// A document is not an object with kind, apiVersion and name.
    #[error("document {number} is not an object with kind, apiVersion and metadata.name")]
    NotAnObject {
        /// Counted from 1.
        number: usize,
    },
    /// No such kind is known, neither built-in nor defined in the dump.
    #[error(
        "document {number}: no kind `{kind}` in `{api_version}`; a dump must hold the CustomResourceDefinition too, with \
         the condition Established in its status"
    )]
    UnknownKind {
        /// Counted from 1.
        number: usize,
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// An object of a kind that lives in namespaces has none.
    #[error("document {number}: {kind} `{name}` needs a metadata.namespace")]
    NoNamespace {
        /// Counted from 1.
        number: usize,
        /// The kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The disk failed.
    #[error(transparent)]
    NotKept(#[from] NotKept),
}

pub(crate) fn dump(server: &Inner) -> String {
    let moment = server.store.backup();
    let mut custom = Registry::default();
    let definitions = Inner::built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    for stored in moment.table(&definitions.table).iter() {
        add_kinds(&mut custom, &definitions.read(stored));
    }
    let mut out = String::new();
    let kinds = Registry::built_in().iter().chain(custom.iter());
    for kind in kinds.filter(|kind| kind.is_stored() && kind.storage == kind.api_version()) {
        for stored in moment.table(&kind.table).iter() {
            out.push_str("---\n");
            out.push_str(&yaml::to_string(&object::decode(&stored.body)));
        }
    }
    out
}

/// Everything that could be refused is looked at before anything is touched.
pub(crate) fn load(server: &Inner, text: &str) -> Result<(), LoadError> {
    let objects = resolve(parse(text)?)?;
    let filled = server.store.refill(objects.into_iter().map(|(kind, mut value)| {
        let key = kind.key(object::meta_str(&value, "namespace"), object::meta_str(&value, "name"));
        let table = kind.table.clone();
        let encode = move |revision| {
            object::set_revision(&mut value, revision);
            object::encode(&kind.to_storage(&value), kind.schema_state())
        };
        (table, key, encode)
    }));
    filled.map_err(|_| NotKept)?;
    server.rebuild();
    Ok(())
}

/// The objects of a stream, each with the number of its document.
fn parse(text: &str) -> Result<Vec<(usize, Value)>, LoadError> {
    let mut objects = Vec::new();
    for (n, document) in split(text).into_iter().enumerate() {
        let number = n + 1;
        let (value, _) = yaml::parse(document.as_bytes()).map_err(|why| LoadError::Yaml { number, why })?;
        if value.is_null() {
            continue;
        }
        let named = [
            object::text(&value, "kind"),
            object::text(&value, "apiVersion"),
            object::meta_str(&value, "name"),
        ];
        if named.iter().any(|text| text.is_empty()) {
            return Err(LoadError::NotAnObject { number });
        }
        objects.push((number, value));
    }
    Ok(objects)
}

/// Finds the kind of each object: built-in, or defined by another object of the same stream.
fn resolve(objects: Vec<(usize, Value)>) -> Result<Vec<(Arc<Kind>, Value)>, LoadError> {
    let mut custom = Registry::default();
    for (_, value) in &objects {
        if value["kind"] == "CustomResourceDefinition" && value["apiVersion"] == "apiextensions.k8s.io/v1" {
            add_kinds(&mut custom, value);
        }
    }
    let find = |(number, value): (usize, Value)| {
        let (kind, api_version) = (object::text(&value, "kind"), object::text(&value, "apiVersion"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let built_in = Registry::built_in().by_kind(group, version, kind);
        match built_in.or_else(|| custom.by_kind(group, version, kind)).cloned() {
            Some(found) if found.namespaced && object::meta_str(&value, "namespace").is_empty() => {
                let (kind, name) = (kind.to_owned(), object::meta_str(&value, "name").to_owned());
                Err(LoadError::NoNamespace { number, kind, name })
            }
            Some(found) => Ok((found, value)),
            None => Err(LoadError::UnknownKind {
                number,
                kind: kind.to_owned(),
                api_version: api_version.to_owned(),
            }),
        }
    };
    objects.into_iter().map(find).collect()
}

/// Adds the kinds of a definition in all its versions, also those that are not served: objects may be stored
/// in one of them.
fn add_kinds(registry: &mut Registry, definition: &Value) {
    for kind in crd::all_versions(definition) {
        registry.insert(kind);
    }
}

/// Splits a stream at lines that are `---`.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
            continue;
        }
        let last = documents.last_mut().expect("there is always a document");
        last.push_str(line);
        last.push('\n');
    }
    documents.retain(|document| !document.trim().is_empty());
    documents
}
