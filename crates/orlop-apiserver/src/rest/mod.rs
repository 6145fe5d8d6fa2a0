//! The one path that requests for resources take, whatever their kind.
//!
//! `read` and `watch` copy stored bytes where they can; `write` takes an object from bytes to a revision
//! (decode, default, own, admit, prepare, validate, commit); `patch` and `delete` are writes whose new state is
//! computed from the old one. Kinds differ in their descriptor, never in their handler.

mod decode;
mod delete;
mod list;
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

use crate::auth::User;
use crate::kind::Kind;
use crate::negotiate::Accepted;
use crate::route::{Query, Route};
use crate::server::Inner;
use crate::status::ApiError;
use bytes::Bytes;
use std::sync::Arc;

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
}

impl Call {
    /// Does what the request asks for.
    pub(crate) async fn run(&mut self) -> Result<Answer, ApiError> {
        let result = self.dispatch().await.and_then(|answer| self.shaped(answer));
        let is_service = self.kind.plural == "services" && self.kind.group.is_empty();
        let writes = matches!(self.route.verb, "create" | "update" | "patch");
        if is_service && writes && (result.is_err() || self.query.get("dryRun").is_some()) {
            // What was handed out for a write that did not happen is free again.
            self.server.reclaim_addresses();
        }
        result
    }

    async fn dispatch(&mut self) -> Result<Answer, ApiError> {
        match (self.route.subresource.as_str(), self.route.verb) {
            ("", "get") => self.get(),
            ("", "list") => self.list(),
            ("", "watch") => self.watch(),
            ("", "create") if self.kind.plural == "bindings" && self.kind.group.is_empty() => {
                self.special().await
            }
            ("", "create") if !self.kind.is_stored() => self.review(),
            ("", "create") => self.create().await,
            ("", "update") => self.update("").await,
            ("", "patch") => self.patch("").await,
            ("", "delete") => self.delete().await,
            ("", "deletecollection") => self.delete_collection().await,
            ("scale", verb) => match verb {
                "get" => self.get_scale(),
                "update" => self.update_scale().await,
                "patch" => self.patch_scale().await,
                _ => Err(ApiError::method_not_allowed()),
            },
            ("status" | "ephemeralcontainers" | "resize" | "finalize" | "approval", verb) => {
                let subresource = self.route.subresource.clone();
                match verb {
                    "get" => self.get(),
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

    /// Notes a warning for the client, once.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}
