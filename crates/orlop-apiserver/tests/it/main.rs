//! The server as its callers see it: one module per noun, each test named as the guarantee it checks.

mod auth;
mod bodies;
mod client;
mod conversions;
mod deletion;
mod discovery;
mod embedding;
#[cfg(feature = "persistence")]
mod kept;
mod lifecycle;
mod lists;
mod objects;
mod openapi;
mod paths;
mod policies;
mod properties;
mod protobuf;
mod quotas;
mod races;
mod security;
mod subresources;
mod tables;
mod watches;
mod webhooks;
