//! What the API server does around merging: it keeps `metadata.managedFields` true on every write.
//!
//! [`update`] is for create, replace and patch; [`apply`] for server-side apply. Objects come complete, with
//! `apiVersion` and `kind`, as their encoding on the wire; defaulting, validation and storage are the caller's.

mod cap;
mod conflict;
mod entries;
mod last_applied;
mod scale;
mod times;

use std::borrow::Cow;
use std::sync::OnceLock;

use serde_json::Value;

pub use conflict::{Cause, Conflicts};
pub use scale::{Replicas, ScaleFields};
pub use times::keep_times;

use crate::fieldset::FieldSet;
use crate::filter::Filter;
use crate::typed::{Duplicates, Typed};
use crate::updater::{ConvertError, Force, Ownership, Refusal, Updater, Versions, is_of_version};
use crate::value;
use entries::{Identity, Managed, Operation, Stored};

/// Who writes, what, where and when.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The field manager; `unknown` if empty.
    pub manager: &'a str,
    /// The subresource written to, or empty.
    pub subresource: &'a str,
    /// The version of the request's URL.
    pub api_version: &'a str,
    /// The kind of the request's objects.
    pub kind: &'a str,
    /// The time of the request in RFC 3339, whole seconds.
    pub now: &'a str,
    /// The fields that the resource lets nobody own through this request.
    pub reset: &'a Filter,
}

/// Why an apply is refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields the configuration changes (409).
    #[error(transparent)]
    Conflict(#[from] Conflicts),
    /// The configuration is not one of this resource (400).
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the schema, or something else went wrong (500).
    #[error("{0}")]
    Internal(String),
}

/// Says why entries cannot be managed fields, if they cannot.
pub fn check(entries: &[Value]) -> Result<(), String> {
    Managed::decode(entries).map(|_| ())
}

/// The new object with the ownership that follows from writing it over the live one (none when it is created).
///
/// Never fails: where ownership cannot be told, it is dropped.
pub fn update(versions: &dyn Versions, live: Option<&Value>, new: Value, request: &Request<'_>) -> Value {
    let mut new = new;
    if value::too_deep(&new) || live.is_some_and(value::too_deep) {
        entries::remove_entries(&mut new);
        return new;
    }
    let (mut managed, stored) = managed_of_write(live, entries::remove_entries(&mut new), request);
    let has_uid =
        live.and_then(|live| live.get("metadata")?.get("uid")?.as_str()).is_some_and(|uid| !uid.is_empty());
    if managed.fields.is_empty() && has_uid {
        // Nobody tracks this object.
        return new;
    }
    let live = live.map_or_else(|| Cow::Owned(empty(versions, request)), Cow::Borrowed);
    let identity = request.identity(request.manager, Operation::Update);
    if track_update(versions, &live, &new, &mut managed, identity, request).is_ok() {
        cap::cap(&mut managed);
        managed.write(&mut new, stored);
    }
    new
}

/// The live object (none when it is created) with a configuration applied.
pub fn apply(
    versions: &dyn Versions,
    live: Option<&Value>,
    patch: &Value,
    force: Force,
    request: &Request<'_>,
) -> Result<Value, ApplyError> {
    if value::too_deep(patch) || live.is_some_and(value::too_deep) {
        return Err(ApplyError::BadRequest("exceeded max depth".into()));
    }
    let stored = Stored::Borrowed(live.and_then(entries::entries_of).map(Vec::as_slice).unwrap_or_default());
    let mut managed = Managed::decode(stored.entries())
        .map_err(|why| ApplyError::Internal(format!("failed to decode managed fields: {why}")))?;
    if gvk(patch) != gvk_text(request.api_version, request.kind) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk(patch))));
    }
    // Ownership is at hand in another form, and costs as much to walk as the rest of the object.
    let live = live.map_or_else(|| empty(versions, request), entries::without_entries);
    let object = if request.manager == last_applied::KUBECTL {
        let mut object = apply_kubectl(versions, &live, patch, &mut managed, force, request)?;
        last_applied::refresh(object.get_or_insert_with(|| live.clone()), patch);
        object
    } else {
        apply_once(versions, &live, patch, &mut managed, force, request)?
    };
    let mut object = object.unwrap_or(live);
    managed.write(&mut object, stored);
    Ok(object)
}

impl Request<'_> {
    fn identity(&self, manager: &str, operation: Operation) -> Identity {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Identity::new(manager, operation, self.api_version, self.subresource)
    }

    fn updater<'a>(&'a self, versions: &'a dyn Versions) -> Updater<'a> {
        Updater { versions, api_version: self.api_version, reset: self.reset }
    }
}

enum Refused {
    Conflicts(Vec<crate::updater::Conflict<Identity>>),
    Other(ApplyError),
}

impl From<Refused> for ApplyError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Conflicts(conflicts) => Self::Conflict(Conflicts::new(&conflicts)),
            Refused::Other(error) => error,
        }
    }
}

fn empty(versions: &dyn Versions, request: &Request<'_>) -> Value {
    let mut empty = versions.empty(request.api_version);
    if let Value::Object(empty) = &mut empty {
        empty.insert("apiVersion".into(), request.api_version.into());
        empty.insert("kind".into(), request.kind.into());
    }
    empty
}

/// Whose ownership a write starts from: what the request itself says if it may and does, else the live object's.
fn managed_of_write<'v>(
    live: Option<&'v Value>,
    requested: Option<Value>,
    request: &Request<'_>,
) -> (Managed, Stored<'v>) {
    if let Some(Value::Array(entries)) = requested
        && request.subresource.is_empty()
    {
        let reset = match entries.as_slice() {
            [] => true,
            [Value::Object(only)] => only.is_empty(),
            _ => false,
        };
        if reset {
            return (Managed::default(), Stored::None);
        }
        if let Ok(managed) = Managed::decode(&entries)
            && !managed.fields.is_empty()
        {
            return (managed, Stored::Owned(entries));
        }
    }
    let stored = Stored::Borrowed(live.and_then(entries::entries_of).map(Vec::as_slice).unwrap_or_default());
    (Managed::decode(stored.entries()).unwrap_or_default(), stored)
}

/// Records what changed from `live` to `new` as owned by `identity`.
fn track_update(
    versions: &dyn Versions,
    live: &Value,
    new: &Value,
    managed: &mut Managed,
    identity: Identity,
    request: &Request<'_>,
) -> Result<(), String> {
    let updater = request.updater(versions);
    let new = to_version(versions, new, request)
        .map_err(|why| format!("failed to convert new object ({}) to proper version: {why}", gvknn(new)))?;
    let live = to_version(versions, live, request)
        .map_err(|why| format!("failed to convert live object ({}) to proper version: {why}", gvknn(live)))?;
    let ty = versions.object_type(request.api_version).ok_or("no corresponding type")?;
    for (what, object) in [("new", &new), ("live", &live)] {
        Typed::new(ty).validate(object, Duplicates::Allowed).map_err(|why| {
            format!("failed to convert {what} object ({}) to smd typed: {why}", gvknn(object))
        })?;
    }
    let set = updater
        .update(&live, &new, &mut managed.fields)
        .map_err(|why| format!("failed to update ManagedFields ({}): {why}", gvknn(&new)))?;
    let set = set.difference(stripped());
    if set.is_empty() {
        return Ok(());
    }
    managed.times.insert(identity.clone(), request.now.to_owned());
    let set = match managed.fields.get(&identity) {
        Some(previous) => set.union(&previous.set),
        None => set,
    };
    managed.fields.insert(identity, Ownership::new(set, request.api_version));
    Ok(())
}

/// Applies as kubectl, which takes over what it applied client-side before.
fn apply_kubectl(
    versions: &dyn Versions,
    live: &Value,
    patch: &Value,
    managed: &mut Managed,
    force: Force,
    request: &Request<'_>,
) -> Result<Option<Value>, ApplyError> {
    let before = managed.clone();
    match apply_once(versions, live, patch, managed, force, request) {
        Err(Refused::Conflicts(conflicts)) => {
            let conflicts = last_applied::remaining(versions, live, conflicts, request);
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflict(Conflicts::new(&conflicts)));
            }
            *managed = before;
            Ok(apply_once(versions, live, patch, managed, Force::Yes, request)?)
        }
        result => Ok(result?),
    }
}

/// The object after an apply; none if it does not change.
fn apply_once(
    versions: &dyn Versions,
    live: &Value,
    patch: &Value,
    managed: &mut Managed,
    force: Force,
    request: &Request<'_>,
) -> Result<Option<Value>, Refused> {
    let internal = |message: String| Refused::Other(ApplyError::Internal(message));
    if managed.fields.is_empty() {
        // The first apply to an object nobody tracked: what is there now belongs to who was before.
        let before = request.identity(BEFORE_FIRST_APPLY, Operation::Update);
        track_update(versions, &empty(versions, request), live, managed, before, request)
            .map_err(|why| internal(format!("failed to create manager for existing fields: {why}")))?;
        cap::cap(managed);
    }
    if patch.get("metadata").and_then(|metadata| metadata.get("managedFields")).is_some_and(Value::is_array) {
        return Err(Refused::Other(ApplyError::BadRequest("metadata.managedFields must be nil".into())));
    }
    let live_versioned = to_version(versions, live, request).map_err(|why| {
        internal(format!("failed to convert live object ({}) to proper version: {why}", gvknn(live)))
    })?;
    let ty = versions
        .object_type(request.api_version)
        .ok_or_else(|| internal(format!("no corresponding type for {}", gvk(patch))))?;
    Typed::new(ty)
        .validate(patch, Duplicates::Refused)
        .map_err(|why| internal(format!("failed to create typed patch object ({}): {why}", gvknn(patch))))?;
    Typed::new(ty).validate(&live_versioned, Duplicates::Allowed).map_err(|why| {
        internal(format!("failed to create typed live object ({}): {why}", gvknn(&live_versioned)))
    })?;

    let identity = request.identity(request.manager, Operation::Apply);
    let applied = request
        .updater(versions)
        .apply(&live_versioned, patch, &mut managed.fields, &identity, force)
        .map_err(|refusal| match refusal {
            Refusal::Conflicts(conflicts) => Refused::Conflicts(conflicts),
            Refusal::Failed(why) => internal(why),
        })?;
    if let Some(ownership) = managed.fields.get_mut(&identity) {
        ownership.set = ownership.set.difference(stripped());
        if ownership.set.is_empty() {
            managed.fields.remove(&identity);
        } else if let Some(last) = applied.last.filter(|last| last.set == ownership.set) {
            ownership.origin = last.origin;
        }
    }
    if applied.object.is_some() {
        managed.times.insert(identity, request.now.to_owned());
    }
    Ok(applied.object)
}

fn to_version<'v>(
    versions: &dyn Versions,
    object: &'v Value,
    request: &Request<'_>,
) -> Result<Cow<'v, Value>, ConvertError> {
    if is_of_version(object, request.api_version) {
        return Ok(Cow::Borrowed(object));
    }
    versions.convert(object, request.api_version).map(Cow::Owned)
}

/// Fields that identify an object and belong to nobody.
fn stripped() -> &'static FieldSet {
    static STRIPPED: OnceLock<FieldSet> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        FieldSet::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// `namespace/name; group/version, Kind=kind`.
fn gvknn(object: &Value) -> String {
    let text = |key| object.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
    format!("{}/{}; {}", text("namespace").unwrap_or_default(), text("name").unwrap_or_default(), gvk(object))
}

fn gvk(object: &Value) -> String {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion").matches('/').count() > 1 {
        return gvk_text("", "");
    }
    gvk_text(text("apiVersion"), text("kind"))
}

fn gvk_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

#[cfg(test)]
mod tests;
