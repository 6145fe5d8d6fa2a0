#![doc = include_str!("../README.md")]

mod log;
mod store;
mod watch;

pub use log::{Event, EventKind};
pub use store::{
    Backup, Change, Compacted, Conflict, Expect, Journal, Limits, ReadAtError, Refused, Snapshot, Store,
};
pub use watch::Watch;

use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// The store's logical time: every committed write has its own, and they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a table: all objects of one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table(Arc<str>);

impl Table {
    /// The table called `name`.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of an object in its table: `namespace/name`, or `name` where there are no namespaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of `name` in `namespace`; an empty namespace is none.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(format!("{namespace}/{name}").into()) }
    }

    /// A key as it was printed before.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An object as it was at one revision.
#[derive(Debug)]
pub struct Entry<H> {
    /// Where it is.
    pub key: Key,
    /// The write that made it so.
    pub revision: Revision,
    /// The serialised object, ready to be sent.
    pub body: Bytes,
    /// What must be known of the object without parsing it.
    pub header: H,
}
