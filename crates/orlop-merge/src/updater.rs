//! Who owns what after an update or an apply, over all managers and versions of an object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::fieldset::FieldSet;
use crate::filter::Filter;
use crate::path::Path;
use crate::schema::ObjectType;
use crate::typed::{Comparison, Typed};

/// The versions of one kind: their types, and conversion between them.
pub trait Versions {
    /// The type of a version; none for versions that are not served any more.
    fn object_type(&self, api_version: &str) -> Option<&ObjectType>;

    /// The object as one of another version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// The object the server starts from when it creates one; `apiVersion` and `kind` are added to it.
    fn empty(&self, api_version: &str) -> Value {
        let _ = api_version;
        Value::Object(serde_json::Map::new())
    }
}

/// Why an object cannot be had in another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The version does not exist (any more); what was owned in it is forgotten.
    #[error("no such version")]
    MissingVersion,
    /// Conversion was tried and failed.
    #[error("{0}")]
    Failed(String),
}

/// A kind with one version, or with versions of which only one is ever used.
#[derive(Clone, Debug)]
pub struct OneVersion {
    api_version: String,
    object_type: ObjectType,
    empty: Value,
}

impl OneVersion {
    /// A built-in kind: a new object starts from the zero struct.
    pub fn built_in(api_version: &str, object_type: ObjectType) -> Self {
        let empty = Value::Object(object_type.empty());
        Self { api_version: api_version.into(), object_type, empty }
    }

    /// A kind of which the object that a new one starts from is known.
    pub fn with_empty(api_version: &str, object_type: ObjectType, empty: Value) -> Self {
        Self { api_version: api_version.into(), object_type, empty }
    }

    /// A custom resource: a new object starts from nothing.
    pub fn custom(api_version: &str, object_type: ObjectType) -> Self {
        Self { api_version: api_version.into(), object_type, empty: Value::Object(serde_json::Map::new()) }
    }
}

impl Versions for OneVersion {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == self.api_version).then_some(&self.object_type)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if api_version == self.api_version { Ok(object.clone()) } else { Err(ConvertError::MissingVersion) }
    }

    fn empty(&self, _: &str) -> Value {
        self.empty.clone()
    }
}

/// What one manager owns, in the version in which it last wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) set: FieldSet,
    pub(crate) api_version: String,
    /// The position of the stored entry that says exactly this set, which need not be written anew.
    pub(crate) origin: Option<usize>,
}

impl Ownership {
    pub(crate) fn new(set: FieldSet, api_version: &str) -> Self {
        Self { set, api_version: api_version.to_owned(), origin: None }
    }

    fn replace(&mut self, set: FieldSet) {
        if set != self.set {
            *self = Self { set, origin: None, api_version: std::mem::take(&mut self.api_version) };
        }
    }
}

/// What an apply did.
pub(crate) struct Applied {
    /// The new object; none if it is equal to the live one.
    pub(crate) object: Option<Value>,
    /// What the manager owned before.
    pub(crate) last: Option<Ownership>,
}

/// All managers of an object by identity.
pub(crate) type Managers<K> = BTreeMap<K, Ownership>;

/// An object in the version named by its own `apiVersion`.
#[derive(Clone, Copy)]
pub(crate) struct Updater<'a> {
    pub(crate) versions: &'a dyn Versions,
    /// The version of the request.
    pub(crate) api_version: &'a str,
    pub(crate) reset: &'a Filter,
}

/// Paths that other managers own and an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict<K> {
    pub(crate) manager: K,
    pub(crate) path: Path,
}

/// Why an apply did not happen.
#[derive(Clone, Debug)]
pub(crate) enum Refusal<K> {
    Conflicts(Vec<Conflict<K>>),
    Failed(String),
}

impl<'a> Updater<'a> {
    /// Takes from all managers what changed between `live` and `new`, and returns it as owned by the request.
    pub(crate) fn update<K: Ord + Clone>(
        self,
        live: &Value,
        new: &Value,
        managers: &mut Managers<K>,
    ) -> Result<FieldSet, String> {
        self.reconcile(live, managers)?;
        let comparison = self.disown(live, new, managers, None).map_err(|refusal| match refusal {
            Refusal::Failed(why) => why,
            Refusal::Conflicts(_) => String::new(),
        })?;
        let Comparison { modified, added, .. } = comparison;
        let changed = if modified.is_empty() { added } else { modified.union(&added) };
        Ok(self.reset.apply(changed))
    }

    /// Lays `config` over `live`.
    pub(crate) fn apply<K: Ord + Clone>(
        self,
        live: &Value,
        config: &Value,
        managers: &mut Managers<K>,
        manager: &K,
        force: Force,
    ) -> Result<Applied, Refusal<K>> {
        let ty = self.typed(self.api_version).map_err(|error| Refusal::Failed(error.to_string()))?;
        self.reconcile(live, managers).map_err(Refusal::Failed)?;
        let set = self.reset.apply(ty.field_set(config));
        let merged = ty.merge(live, config);
        let last = managers.insert(manager.clone(), Ownership::new(set, self.api_version));
        let new = match &last {
            Some(last) => self
                .prune(merged, managers, manager, last)
                .map_err(|why| Refusal::Failed(format!("failed to prune fields: {why}")))?,
            None => merged,
        };
        self.disown(live, &new, managers, Some((manager, force)))?;
        let object = (!crate::value::equal(live, &new)).then_some(new);
        Ok(Applied { object, last })
    }

    /// Takes what changed from every manager but the applying one, whose conflicts refuse the change unless forced.
    fn disown<K: Ord + Clone>(
        self,
        live: &Value,
        new: &Value,
        managers: &mut Managers<K>,
        applying: Option<(&K, Force)>,
    ) -> Result<Comparison, Refusal<K>> {
        let failed = |what: &str, error: &ConvertError| Refusal::Failed(format!("failed to {what}: {error}"));
        let ty = self.typed(self.api_version).map_err(|error| failed("compare objects", &error))?;
        let mut by_version = BTreeMap::new();
        by_version.insert(self.api_version.to_owned(), ty.compare(live, new).filtered(self.reset));

        let others: Vec<(K, String)> = managers
            .iter()
            .filter(|(manager, _)| applying.is_none_or(|(applying, _)| applying != *manager))
            .map(|(manager, ownership)| (manager.clone(), ownership.api_version.clone()))
            .collect();
        let mut conflicts = Vec::new();
        let mut taken = Vec::new();
        for (manager, api_version) in others {
            if !by_version.contains_key(&api_version) {
                let converted = |object: &Value, what: &str| match self.convert(object, &api_version) {
                    Ok(object) => Ok(Some(object.into_owned())),
                    Err(ConvertError::MissingVersion) => Ok(None),
                    Err(error) => Err(failed(what, &error)),
                };
                let old = converted(live, "convert old object")?;
                let new = if old.is_some() { converted(new, "convert new object")? } else { None };
                let (Some(old), Some(new)) = (old, new) else {
                    managers.remove(&manager);
                    continue;
                };
                let ty = self.typed(&api_version).map_err(|error| failed("compare objects", &error))?;
                by_version.insert(api_version.clone(), ty.compare(&old, &new).filtered(self.reset));
            }
            let (Some(comparison), Some(ownership)) = (by_version.get(&api_version), managers.get(&manager))
            else {
                continue;
            };
            if comparison.is_same() {
                continue;
            }
            let conflict = ownership.set.intersection(&comparison.modified.union(&comparison.added));
            if applying.is_some_and(|(_, force)| force == Force::No) {
                let paths = conflict.paths().into_iter();
                conflicts.extend(paths.map(|path| Conflict { manager: manager.clone(), path }));
            }
            taken.push((manager, conflict.union(&comparison.removed)));
        }
        if !conflicts.is_empty() {
            return Err(Refusal::Conflicts(conflicts));
        }
        for (manager, taken) in taken {
            if let Some(ownership) = managers.get_mut(&manager) {
                ownership.replace(ownership.set.difference(&taken));
            }
        }
        managers.retain(|_, ownership| !ownership.set.is_empty());
        Ok(by_version.remove(self.api_version).unwrap_or_default())
    }

    /// Removes from `merged` what the manager applied last and neither it nor anyone else owns now.
    fn prune<K: Ord>(
        self,
        merged: Value,
        managers: &Managers<K>,
        manager: &K,
        last: &Ownership,
    ) -> Result<Value, String> {
        let Some(present) = managers.get(manager) else { return Ok(merged) };
        // What was applied last is applied again: nothing can be left over.
        if last.set.is_empty()
            || (last.api_version == present.api_version && last.set.is_subset(&present.set))
        {
            return Ok(merged);
        }
        if self.versions.object_type(&last.api_version).is_none() {
            return Ok(merged);
        }
        let at_last = match self.convert(&merged, &last.api_version) {
            Ok(Cow::Borrowed(_)) => merged,
            Ok(Cow::Owned(object)) => object,
            Err(ConvertError::MissingVersion) => return Ok(merged),
            Err(error) => {
                return Err(format!("failed to convert merged object to last applied version: {error}"));
            }
        };
        let ty = self.typed(&last.api_version).map_err(|error| error.to_string())?;
        let last_set = ty.with_named_fields(&last.set);
        let merged_set = ty.with_named_fields(&ty.field_set(&at_last));
        let pruned = ty.remove_items(at_last.clone(), &last_set);
        let pruned = self
            .add_back_owned(&at_last, &merged_set, pruned, &last.api_version, managers)
            .map_err(|why| format!("failed add back owned items: {why}"))?;
        let pruned = self
            .add_back_dangling(at_last, &merged_set, pruned, &last.api_version, ty, &last_set)
            .map_err(|why| format!("failed add back dangling items: {why}"))?;
        self.converted(pruned, self.api_version).map_err(|error| error.to_string())
    }

    /// Adds back what any manager owns, in the pruned version first, since conversion may need it.
    fn add_back_owned<K: Ord>(
        self,
        merged: &Value,
        merged_set: &FieldSet,
        pruned: Value,
        pruned_version: &str,
        managers: &Managers<K>,
    ) -> Result<Value, String> {
        let mut by_version: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for ownership in managers.values() {
            let set = by_version.entry(&ownership.api_version).or_default();
            *set = set.union(&ownership.set);
        }
        let first = by_version.remove_entry(pruned_version);
        let (mut merged, mut pruned) = (Cow::Borrowed(merged), pruned);
        for (version, owned) in first.into_iter().chain(by_version) {
            let Ok(ty) = self.typed(version) else { continue };
            if !is_of_version(&merged, version) {
                merged = match self.versions.convert(&merged, version) {
                    Ok(object) => Cow::Owned(object),
                    Err(ConvertError::MissingVersion) => continue,
                    Err(error) => {
                        return Err(format!("failed to convert merged object at version {version}: {error}"));
                    }
                };
            }
            if !is_of_version(&pruned, version) {
                pruned = match self.versions.convert(&pruned, version) {
                    Ok(object) => object,
                    Err(ConvertError::MissingVersion) => continue,
                    Err(error) => {
                        return Err(format!("failed to convert pruned object at version {version}: {error}"));
                    }
                };
            }
            let merged_set = if version == pruned_version {
                Cow::Borrowed(merged_set)
            } else {
                Cow::Owned(ty.with_named_fields(&ty.field_set(&merged)))
            };
            let gone = merged_set
                .difference(&ty.with_named_fields(&ty.field_set(&pruned)))
                .difference(&ty.with_named_fields(&owned));
            pruned = ty.remove_items(merged.clone().into_owned(), &gone);
        }
        Ok(pruned)
    }

    /// Adds back what went with its parents but was never applied by the manager.
    fn add_back_dangling(
        self,
        merged: Value,
        merged_set: &FieldSet,
        pruned: Value,
        last_version: &str,
        ty: Typed<'a>,
        last_set: &FieldSet,
    ) -> Result<Value, String> {
        let pruned = match self.converted(pruned, last_version) {
            Ok(object) => object,
            Err(ConvertError::MissingVersion) => return Ok(merged),
            Err(error) => {
                return Err(format!("failed to convert pruned object to last applied version: {error}"));
            }
        };
        let pruned_set = ty.with_named_fields(&ty.field_set(&pruned));
        let gone = merged_set.intersection(last_set).difference(&pruned_set);
        Ok(ty.remove_items(merged, &gone))
    }

    /// Brings ownership in line with types that became atomic; ownership in unknown versions is dropped.
    fn reconcile<K: Ord + Clone>(self, live: &Value, managers: &mut Managers<K>) -> Result<(), String> {
        let mut failure = None;
        managers.retain(|_, ownership| {
            match self.convert(live, &ownership.api_version) {
                Ok(_) => {}
                Err(ConvertError::MissingVersion) => return false,
                Err(error) => {
                    failure.get_or_insert_with(|| error.to_string());
                    return true;
                }
            }
            if let Ok(ty) = self.typed(&ownership.api_version)
                && let Some(reconciled) = ty.reconcile(&ownership.set)
            {
                ownership.replace(reconciled);
            }
            true
        });
        failure.map_or(Ok(()), Err)
    }

    fn typed(self, api_version: &str) -> Result<Typed<'a>, ConvertError> {
        self.versions.object_type(api_version).map(Typed::new).ok_or(ConvertError::MissingVersion)
    }

    /// The object in a version; itself if it is of that version.
    fn convert<'v>(self, object: &'v Value, api_version: &str) -> Result<Cow<'v, Value>, ConvertError> {
        if self.versions.object_type(api_version).is_none() {
            return Err(ConvertError::MissingVersion);
        }
        if is_of_version(object, api_version) {
            return Ok(Cow::Borrowed(object));
        }
        self.versions.convert(object, api_version).map(Cow::Owned)
    }

    /// As [`convert`](Self::convert), of an object that is not needed any more.
    fn converted(self, object: Value, api_version: &str) -> Result<Value, ConvertError> {
        match self.convert(&object, api_version)? {
            Cow::Borrowed(_) => Ok(object),
            Cow::Owned(converted) => Ok(converted),
        }
    }
}

pub(crate) fn is_of_version(object: &Value, api_version: &str) -> bool {
    object.get("apiVersion").and_then(Value::as_str) == Some(api_version)
}

/// Whether an apply takes fields from managers it conflicts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Conflicts refuse the apply.
    No,
    /// Conflicting fields change hands.
    Yes,
}
