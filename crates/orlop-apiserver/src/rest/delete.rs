//! Deleting: at once, gracefully, or when the last finalizer is gone.

use super::render::Answer;
use super::{Call, OVERTAKEN_MAX};
use crate::admission::Operation;
use crate::negotiate;
use crate::object::{self, Stored};
use crate::options::{DeleteOptions, ListOptions, ListVerb, Propagation};
use crate::status::ApiError;
use crate::yaml;
use orlop_clock::SignedDuration;
use orlop_kinds::catalog::catalog;
use orlop_kinds::{codec, json as strict_json};
use orlop_store::Expect;
use serde_json::{Value, json};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What became of an object.
pub(super) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Value),
    /// It will go; this is its state now.
    Going(Value),
}

/// Whether admission is still to be asked about a deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Due,
    /// It has let the eviction pass, of which the deletion is a part.
    Done,
}

impl Call {
    /// DELETE of an object.
    pub(super) async fn delete(&mut self) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        if self.kind.orphans_by_default()
            && self.kind.plural == "jobs"
            && options.propagation.is_none()
            && options.orphan_dependents.is_none()
        {
            self.warn(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                 them or set propagationPolicy=Orphan to suppress this warning",
            );
        }
        let name = self.route.name.clone();
        let stored = self.stored(&name)?;
        let deleted = self.delete_stored(stored, &options, Admission::Due).await?;
        let kind = self.kind.clone();
        Ok(match deleted {
            Deleted::Gone(last) if kind.returns_deleted() => Answer::Value(200, last),
            Deleted::Gone(last) => {
                let mut details =
                    json!({"name": name, "kind": kind.plural, "uid": object::meta_str(&last, "uid")});
                if !kind.group.is_empty() {
                    details["group"] = kind.group.as_str().into();
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
                Answer::Value(200, status)
            }
            Deleted::Going(object) => {
                let status = if options.orphan_dependents == Some(false) { 202 } else { 200 };
                Answer::Value(status, object)
            }
        })
    }

    /// DELETE of a collection: the answer lists what was there.
    pub(super) async fn delete_collection(&mut self) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        let listing = ListOptions::parse(&self.query, ListVerb::List)?;
        let selection = self.selection(&listing)?;
        let chunk = self.chunk(&listing, &selection).await?;
        for stored in &chunk.items {
            match self.delete_stored(stored.clone(), &options, Admission::Due).await {
                Err(error) if error.reason() != "NotFound" => return Err(error),
                _ => {}
            }
        }
        self.list_answer(&chunk).await
    }

    fn delete_options(&mut self) -> Result<DeleteOptions, ApiError> {
        if self.body.is_empty() {
            return DeleteOptions::from_query(&self.query);
        }
        let content_type = negotiate::content_type(self.content_type.as_deref());
        let value = match content_type {
            "application/json" => {
                let parsed = strict_json::parse(&self.body);
                parsed
                    .map_err(|why| {
                        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
                    })?
                    .value
            }
            "application/yaml" => yaml::parse(&self.body).map_err(ApiError::bad_request)?.0,
            "application/vnd.kubernetes.protobuf" => {
                super::decode::from_protobuf(&self.body).map_err(ApiError::bad_request)?
            }
            _ => return Err(ApiError::unsupported_media_type(&negotiate::BUILT_IN)),
        };
        let kind = object::text(&value, "kind");
        let version = object::text(&value, "apiVersion");
        if !matches!(kind, "" | "DeleteOptions") {
            let version = if version.is_empty() { "v1" } else { version };
            return Err(ApiError::bad_request(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/apis/meta/internalversion/scheme/register.go:31\""
            )));
        }
        let options = match catalog().type_of("", "v1", "DeleteOptions") {
            Some(id) => codec::decode(id, value).map_err(|why| ApiError::bad_request(why.to_string()))?.value,
            None => value,
        };
        DeleteOptions::from_body(&options)
    }

    pub(super) async fn delete_stored(
        &mut self,
        mut stored: Stored,
        options: &DeleteOptions,
        admission: Admission,
    ) -> Result<Deleted, ApiError> {
        let kind = self.kind.clone();
        let name = stored.key.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        for _ in 0..OVERTAKEN_MAX {
            stored = kind.translate_one(&self.server, stored).await?;
            let live = kind.read(&stored);
            self.check_preconditions(&live, options)?;
            let live = self.admit_deletion(live, options, admission).await?;
            let next = self.deletion_step(&live, options);
            let done = match next {
                Some(next) if next == live => return Ok(Deleted::Going(live)),
                Some(next) if options.dry_run => return Ok(Deleted::Going(next)),
                None if options.dry_run => return Ok(Deleted::Gone(self.marked(live))),
                Some(next) => {
                    let result = self.commit(Expect::At(stored.revision), next).await?.ok();
                    if let Some(next) = &result {
                        self.server.committed(&kind, Some(&live), Some(next));
                    }
                    result.map(Deleted::Going)
                }
                None => self.remove_now(stored.clone(), live, options, admission).await?,
            };
            if let Some(done) = done {
                return Ok(done);
            }
            // Another writer was faster: look again.
            stored = self.server.store.get(&kind.table, &stored.key).ok_or_else(|| self.not_found(&name))?;
        }
        Err(ApiError::modified(&kind.group, &kind.plural, &name))
    }

    /// Asks admission about the deletion of an object, if that is due.
    async fn admit_deletion(
        &mut self,
        live: Value,
        options: &DeleteOptions,
        admission: Admission,
    ) -> Result<Value, ApiError> {
        let kind = self.kind.clone();
        let is_ending = object::is_deleting(&live)
            && object::meta_i64(&live, "deletionGracePeriodSeconds").unwrap_or(0) > 0
            && options.grace_seconds.is_none();
        if admission == Admission::Done || is_ending {
            return Ok(live);
        }
        let mut attributes = self.attributes(Operation::Delete, options.reviewed(), options.dry_run);
        if let Some(seconds) = kind.grace_seconds(&live, options.grace_seconds)
            && self.route.verb == "delete"
        {
            attributes.options["gracePeriodSeconds"] = seconds.into();
        }
        if super::is_namespaces(&kind) || crate::crd::is_definition(&kind) {
            // The storage of these insists on the very object.
            let uid = object::meta_str(&live, "uid").to_owned();
            let preconditions = &mut attributes.options["preconditions"];
            if preconditions.get("uid").is_none() {
                object::set_at(preconditions, "uid", uid.into());
            }
        }
        attributes.old = live;
        self.admit(&kind, &mut attributes).await?;
        self.check_admitted(&kind, &mut attributes).await?;
        Ok(attributes.old.take())
    }

    /// An object that could end gracefully, marked as one that ends now.
    fn marked(&self, mut live: Value) -> Value {
        let ends_gracefully = object::meta_i64(&live, "deletionGracePeriodSeconds").unwrap_or(0) > 0;
        if self.kind.grace_seconds(&live, Some(0)).is_some()
            && (!object::is_deleting(&live) || ends_gracefully)
        {
            object::set_meta(&mut live, "deletionTimestamp", self.server.now());
            object::set_meta(&mut live, "deletionGracePeriodSeconds", 0);
            if !ends_gracefully {
                bump_generation(&mut live);
            }
        }
        live
    }

    /// Removes an object; one that could have ended gracefully is marked first, as watchers expect.
    async fn remove_now(
        &mut self,
        mut stored: Stored,
        mut live: Value,
        options: &DeleteOptions,
        admission: Admission,
    ) -> Result<Option<Deleted>, ApiError> {
        let kind = self.kind.clone();
        let marked = self.marked(live.clone());
        if marked != live {
            let Ok(marked) = self.commit(Expect::At(stored.revision), marked).await? else { return Ok(None) };
            live = marked;
            let Some(found) = self.server.store.get(&kind.table, &stored.key) else { return Ok(None) };
            stored = found;
            if stored.revision.to_string() != object::meta_str(&live, "resourceVersion") {
                // Somebody wrote in between: look again.
                return Ok(None);
            }
            // What is removed is another state than the one that was marked: it is judged too.
            live = self.admit_deletion(live, options, admission).await?;
        }
        let Ok(gone) = self.remove(&stored, live.clone()) else { return Ok(None) };
        object::set_revision(&mut live, gone.revision);
        Ok(Some(Deleted::Gone(live)))
    }

    /// The object on its way out, or `None` if it can go at once.
    fn deletion_step(&self, live: &Value, options: &DeleteOptions) -> Option<Value> {
        let kind = &self.kind;
        let now = self.server.clock.now();
        let mut next = live.clone();
        let finalizers = kind.deletion_finalizers(live, options);
        let deleting = object::is_deleting(live);
        if crate::crd::is_definition(kind) && !deleting {
            return Some(crate::crd::begin_deletion(live, &self.server.now()));
        }
        if let Some(phase) = kind.namespace_deletion(live) {
            // A namespace ends when its content has ended; someone else sees to that.
            if !phase {
                return None;
            }
            if !deleting {
                object::set_meta(&mut next, "deletionTimestamp", self.server.now());
                object::set_at(&mut next, "status.phase", "Terminating".into());
            }
            return Some(next);
        }
        let requested = options.grace_seconds.map(|grace| if grace < 0 { 1 } else { grace });
        let grace = kind.grace_seconds(live, requested);
        let current_grace = object::meta_i64(live, "deletionGracePeriodSeconds").unwrap_or(0);
        if deleting && current_grace > 0 {
            // It is ending gracefully; a shorter period shortens it, nothing else changes it.
            match requested {
                Some(shorter) if shorter < current_grace => {
                    let began = object::meta_str(live, "deletionTimestamp").parse::<orlop_clock::Timestamp>();
                    let change = SignedDuration::from_secs(shorter - current_grace);
                    let end = began.ok().and_then(|began| began.checked_add(change).ok()).unwrap_or(now);
                    let period = if end < now && shorter != 0 { 1 } else { shorter };
                    object::set_meta(&mut next, "deletionTimestamp", crate::server::rfc3339(end.max(now)));
                    object::set_meta(&mut next, "deletionGracePeriodSeconds", period);
                    if period > 0 || !finalizers.is_empty() {
                        return Some(next);
                    }
                    return None;
                }
                _ => return Some(live.clone()),
            }
        }
        if let (false, Some(grace)) = (deleting, grace.filter(|grace| *grace > 0)) {
            let end = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
            object::set_meta(&mut next, "deletionTimestamp", crate::server::rfc3339(end));
            object::set_meta(&mut next, "deletionGracePeriodSeconds", grace);
            bump_generation(&mut next);
            set_finalizers(&mut next, &finalizers);
            return Some(next);
        }
        if finalizers.is_empty() {
            return None;
        }
        set_finalizers(&mut next, &finalizers);
        if !deleting {
            bump_generation(&mut next);
            object::set_meta(&mut next, "deletionTimestamp", self.server.now());
        }
        object::set_meta(&mut next, "deletionGracePeriodSeconds", 0);
        Some(next)
    }

    pub(super) fn check_preconditions(&self, live: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
        let name = object::meta_str(live, "name");
        let conflict = |why: String| Err(ApiError::conflict(&self.kind.group, &self.kind.kind, name, &why));
        let (uid, version) = (object::meta_str(live, "uid"), object::meta_str(live, "resourceVersion"));
        match (&options.uid, &options.resource_version) {
            (Some(wanted), _) if wanted != uid => conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            )),
            (_, Some(wanted)) if wanted != version => conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            )),
            _ => Ok(()),
        }
    }
}

impl crate::kind::Kind {
    /// The finalizers an object has once its deletion has been asked for.
    fn deletion_finalizers(&self, live: &Value, options: &DeleteOptions) -> Vec<String> {
        let present = object::finalizers(live);
        if !self.is_collected() {
            return present.into_iter().map(str::to_owned).collect();
        }
        let has = |name: &str| present.contains(&name);
        let orphan = match (options.orphan_dependents, options.propagation) {
            (Some(orphan), _) => orphan,
            (None, Some(policy)) => policy == Propagation::Orphan,
            (None, None) => has(ORPHAN) || (self.orphans_by_default() && !has(FOREGROUND)),
        };
        let foreground = match (options.orphan_dependents, options.propagation) {
            (Some(_), _) => false,
            (None, Some(policy)) => policy == Propagation::Foreground,
            (None, None) => has(FOREGROUND) && !has(ORPHAN),
        };
        let mut finalizers: Vec<String> = present
            .iter()
            .filter(|name| !matches!(**name, ORPHAN | FOREGROUND))
            .map(|s| (*s).to_owned())
            .collect();
        if orphan {
            finalizers.push(ORPHAN.to_owned());
        }
        if foreground {
            finalizers.push(FOREGROUND.to_owned());
        }
        finalizers
    }
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    object::set_meta(object, "finalizers", value);
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object::meta_i64(object, "generation").filter(|n| *n > 0) {
        object::set_meta(object, "generation", generation + 1);
    }
}
