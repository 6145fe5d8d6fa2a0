//! A record of what identities do: the raw material of least-privilege roles.

use super::User;

/// One thing that a user asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who.
    pub user: User,
    /// What: `get`, `list`, `create`, …
    pub verb: String,
    /// The API group; empty for the core group and for plain paths.
    pub group: String,
    /// The plural resource name; empty for plain paths.
    pub resource: String,
    /// The subresource, if any.
    pub subresource: String,
    /// The namespace, if any.
    pub namespace: String,
    /// The object's name, if any.
    pub name: String,
    /// The path.
    pub path: String,
}

/// Hears of every request that comes to the authoriser, allowed or not, and of the rights by which somebody was let
/// be somebody else; not of health checks, which anyone may get.
pub trait Recorder: Send + Sync {
    /// Takes note of one request. Must not block.
    fn record(&self, access: &Access);
}

impl<F: Fn(&Access) + Send + Sync> Recorder for F {
    fn record(&self, access: &Access) {
        self(access);
    }
}
