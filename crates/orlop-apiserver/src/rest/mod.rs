//! The one path that requests for resources take, whatever their kind.
//!
//! `read` and `watch` copy stored bytes where they can; `write` takes an object from bytes to a revision
//! (decode, default, own, admit, prepare, validate, commit); `patch` and `delete` are writes whose new state is
//! computed from the old one. Kinds differ in their descriptor, never in their handler.

mod decode;
mod delete;
mod evict;
mod list;
mod owners;
mod patch;
mod pods;
mod read;
mod render;
mod reviews;
mod scale;
mod shape;
mod special;
mod tokens;
mod watch;
mod write;

pub(crate) use list::Selection;
pub(crate) use render::{Answer, Document};

use crate::admission::{Attributes, Gvk, Operation, Rounds};
use crate::auth::User;
use crate::crd::Conversions;
use crate::kind::Kind;
use crate::negotiate::Accepted;
use crate::object;
use crate::options::WriteOptions;
use crate::route::{Query, Route, api_version};
use crate::server::Inner;
use crate::status::ApiError;
use bytes::Bytes;
use orlop_kinds::catalog::catalog;
use orlop_merge::{Filter, OneVersion, managed};
use serde_json::Value;
use std::sync::Arc;

/// How often a write that needs no version is tried again when other writers are faster.
const OVERTAKEN_MAX: usize = 100;

/// A request for a resource that has been routed, authenticated and authorised.
pub(crate) struct Call {
    pub(crate) server: Arc<Inner>,
    pub(crate) kind: Arc<Kind>,
    pub(crate) route: Route,
    pub(crate) query: Query,
    pub(crate) user: Arc<User>,
    pub(crate) user_agent: String,
    pub(crate) content_type: Option<String>,
    pub(crate) accepted: Accepted,
    pub(crate) body: Bytes,
    pub(crate) warnings: Vec<String>,
    /// What a strict reader would refuse in a patch.
    pub(crate) strict: Vec<String>,
    /// Conversions that an apply needs.
    pub(crate) conversions: Conversions,
}

impl Call {
    /// Does what the request asks for.
    pub(crate) async fn run(&mut self) -> Result<Answer, ApiError> {
        self.dispatch().await.and_then(|answer| self.shaped(answer))
    }

    async fn dispatch(&mut self) -> Result<Answer, ApiError> {
        match (self.route.subresource.as_str(), self.route.verb) {
            ("", "get") => self.get().await,
            ("", "list") => self.list().await,
            ("", "watch") => self.watch().await,
            ("", "create") if self.kind.plural == "bindings" && self.kind.group.is_empty() => {
                self.special().await
            }
            ("", "create") if !self.kind.is_stored() => self.review().await,
            ("", "create") => self.create().await,
            ("", "update") => self.update("").await,
            ("", "patch") => self.patch("").await,
            ("", "delete") => self.delete().await,
            ("", "deletecollection") => self.delete_collection().await,
            ("scale", verb) => match verb {
                "get" => self.get_scale().await,
                "update" => self.update_scale().await,
                "patch" => self.patch_scale().await,
                _ => Err(ApiError::method_not_allowed()),
            },
            ("status" | "ephemeralcontainers" | "resize" | "finalize" | "approval", verb) => {
                let subresource = self.route.subresource.clone();
                match verb {
                    "get" => self.get().await,
                    "update" => self.update(&subresource).await,
                    "patch" => self.patch(&subresource).await,
                    _ => Err(ApiError::method_not_allowed()),
                }
            }
            _ => self.special().await,
        }
    }

    /// The namespace of the request, or none for a kind without namespaces.
    pub(crate) fn namespace(&self) -> &str {
        if self.kind.namespaced { &self.route.namespace } else { "" }
    }

    pub(crate) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.kind.group, &self.kind.plural, name)
    }

    /// What admission is told of this request; the objects are still to come.
    pub(super) fn attributes(&self, operation: Operation, options: Value, dry_run: bool) -> Attributes {
        let part = self.route.subresource.as_str();
        let object_kind = match self.kind.subresources.get(part) {
            Some(part) => Gvk::new(&part.group, &part.version, &part.kind),
            None => Gvk::of(&self.kind),
        };
        let name = self.route.name.clone();
        Attributes {
            operation,
            namespace: if is_namespaces(&self.kind) { name.clone() } else { self.namespace().to_owned() },
            name,
            subresource: part.to_owned(),
            object: Value::Null,
            old: Value::Null,
            object_kind,
            options,
            dry_run,
            user: self.user.clone(),
            warnings: Vec::new(),
            rounds: Rounds::default(),
        }
    }

    /// Notes who wrote an object that is answered and not stored, as for any other write.
    pub(super) fn own_answered(&self, object: Value, options: &WriteOptions) -> Value {
        let kind = self.attributes(Operation::Create, Value::Null, false).object_kind;
        let name = catalog().definition_name(&kind.group, &kind.version, &kind.kind);
        let Some(ty) = name.and_then(|name| crate::fields::schema().object_type(name)) else { return object };
        let version = api_version(&kind.group, &kind.version);
        let (manager, now) = (self.manager(options), self.server.now());
        let owner = managed::Request {
            manager: &manager,
            subresource: &self.route.subresource,
            api_version: &version,
            kind: &kind.kind,
            now: &now,
            reset: &Filter::All,
        };
        managed::update(&OneVersion::built_in(&version, ty), None, object, &owner)
    }

    /// Lets admission change an object that is answered and not stored, or refuse it.
    pub(super) async fn admit_answered(
        &mut self,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let kind = self.kind.clone();
        let mut attributes = self.answered(object, options);
        self.admit(&kind, &mut attributes).await?;
        Ok(attributes.object.take())
    }

    /// Lets admission refuse an object that is about to be answered.
    pub(super) async fn check_answered(
        &mut self,
        object: &Value,
        options: &WriteOptions,
    ) -> Result<(), ApiError> {
        let kind = self.kind.clone();
        let mut attributes = self.answered(object.clone(), options);
        self.check_admitted(&kind, &mut attributes).await
    }

    fn answered(&self, object: Value, options: &WriteOptions) -> Attributes {
        let options_shown = options.reviewed("CreateOptions");
        let mut attributes = self.attributes(Operation::Create, options_shown, options.dry_run);
        if attributes.name.is_empty() {
            object::meta_str(&object, "name").clone_into(&mut attributes.name);
        }
        attributes.object = object;
        attributes
    }

    /// Lets admission change an object or refuse it.
    pub(super) async fn admit(&mut self, kind: &Kind, attributes: &mut Attributes) -> Result<(), ApiError> {
        let result = self.server.admission.mutate(&self.server, kind, attributes).await;
        attributes.warnings.drain(..).for_each(|warning| self.warn(warning));
        result
    }

    /// Lets admission refuse an object as it is to be stored.
    pub(super) async fn check_admitted(
        &mut self,
        kind: &Kind,
        attributes: &mut Attributes,
    ) -> Result<(), ApiError> {
        let result = self.server.admission.validate(&self.server, kind, attributes).await;
        attributes.warnings.drain(..).for_each(|warning| self.warn(warning));
        result
    }

    /// Notes a warning for the client, once.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

/// Namespaces are in themselves, as far as admission is concerned.
fn is_namespaces(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}
