//! The server as its callers see it: one module per noun, each test named as the guarantee it checks.

mod auth;
mod bodies;
mod client;
mod deletion;
mod discovery;
mod embedding;
mod lifecycle;
mod lists;
mod objects;
mod paths;
mod policies;
mod properties;
mod quotas;
mod subresources;
mod watches;
