//! The whole state as YAML, out and in.

use crate::kind::{Kind, Registry};
use crate::object;
use crate::server::Inner;
use crate::yaml;
use orlop_store::{Change, Expect};
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
        "document {number}: no kind `{kind}` in `{api_version}`; a dump must hold the CustomResourceDefinition too"
    )]
    UnknownKind {
        /// Counted from 1.
        number: usize,
        /// The kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
}

pub(crate) fn dump(server: &Inner) -> String {
    let custom = server.custom_kinds();
    let mut out = String::new();
    let kinds = Registry::built_in().iter().chain(custom.iter());
    for kind in kinds.filter(|kind| kind.is_stored() && kind.storage == kind.api_version()) {
        let snapshot = server.store.snapshot(&kind.table);
        for stored in snapshot.iter() {
            out.push_str("---\n");
            out.push_str(&yaml::to_string(&object::decode(&stored.body)));
        }
    }
    out
}

pub(crate) fn load(server: &Inner, text: &str) -> Result<(), LoadError> {
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
    let before = server.store.backup();
    server.store.restore(&before.emptied());
    server.rebuild();
    // Definitions first: they say what the rest is.
    objects
        .sort_by_key(|(number, value)| (object::text(value, "kind") != "CustomResourceDefinition", *number));
    for (number, value) in objects {
        let (kind, version) =
            (object::text(&value, "kind").to_owned(), object::text(&value, "apiVersion").to_owned());
        let Some(found) = find(server, &kind, &version) else {
            server.store.restore(&before);
            server.rebuild();
            return Err(LoadError::UnknownKind { number, kind, api_version: version });
        };
        insert(server, &found, value);
        if kind == "CustomResourceDefinition" {
            server.rebuild();
        }
    }
    server.rebuild();
    Ok(())
}

fn find(server: &Inner, kind: &str, api_version: &str) -> Option<Arc<Kind>> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let built_in = Registry::built_in().by_kind(group, version, kind).cloned();
    built_in.or_else(|| server.custom_kinds().by_kind(group, version, kind).cloned())
}

fn insert(server: &Inner, kind: &Kind, mut value: Value) {
    let key = kind.key(object::meta_str(&value, "namespace"), object::meta_str(&value, "name"));
    let expect =
        server.store.get(&kind.table, &key).map_or(Expect::Absent, |entry| Expect::At(entry.revision));
    // Nobody else writes between the look and the commit that matters here: the last document wins either way.
    let _ = server.store.commit(&kind.table, &key, expect, server.now_ms(), |revision| {
        object::set_revision(&mut value, revision);
        let (body, header) = object::encode(&kind.to_storage(&value), kind.schema_state());
        Change::Put { body, header }
    });
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
