//! Structural schemas: what a CustomResourceDefinition says about its objects.
//!
//! A [`Schema`] is read once from `openAPIV3Schema`; the other modules are what can be done with it. Two look at
//! the schema itself ([`shape`] and [`lint`] refuse schemas, [`default_check`] refuses defaults), the others at
//! objects: [`prune`] drops what is not declared, [`default`](mod@default) fills in, [`embedded`] knows objects
//! within objects, [`validate`] and [`lists`] find what is wrong. Nothing here knows of requests or storage.

pub mod default;
pub mod default_check;
pub mod embedded;
pub mod field_path;
pub mod formats;
pub mod lint;
pub mod lists;
pub mod prune;
mod schema;
pub mod shape;
pub mod validate;

#[cfg(test)]
mod properties;

pub use schema::{Additional, Items, Pattern, Rule, Schema};
