//! What an operator wants to exist.

use crate::owner::Scope;
use core::time::Duration;
use serde_json::Value;

/// What becomes of an object that is there already and belongs to nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    /// It stays as it is, and the operator says that the name is taken.
    #[default]
    Refuse,
    /// It becomes the operator's.
    Adopt,
}

/// What is done when a field has to change that cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Immutable {
    /// The refusal is an error.
    #[default]
    Fail,
    /// The object is deleted and made anew.
    Recreate,
}

/// One object that shall exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// What shall be in it: `apiVersion`, `kind`, `metadata.name` and the fields that matter, no others.
    pub object: Value,
    /// Where objects of its kind live.
    pub scope: Scope,
    /// What if there is one that belongs to nobody.
    pub adoption: Adoption,
    /// What if a field cannot be changed.
    pub immutable: Immutable,
    /// What must come first, if it has not come yet. The child counts as desired nevertheless: it is not pruned.
    pub waits_for: Option<String>,
}

impl Child {
    /// A child in the namespace of its parent.
    pub fn new(object: Value) -> Self {
        Self {
            object,
            scope: Scope::Namespaced,
            adoption: Adoption::default(),
            immutable: Immutable::default(),
            waits_for: None,
        }
    }

    /// A child of a kind without namespaces.
    pub fn cluster_scoped(object: Value) -> Self {
        Self { scope: Scope::Cluster, ..Self::new(object) }
    }

    /// Takes over an object of the same name that belongs to nobody.
    #[must_use]
    pub fn adopt(mut self) -> Self {
        self.adoption = Adoption::Adopt;
        self
    }

    /// Deletes and makes the object anew when a field has to change that cannot.
    #[must_use]
    pub fn recreate(mut self) -> Self {
        self.immutable = Immutable::Recreate;
        self
    }

    /// Leaves the object alone until `ready`; `what` says what it waits for.
    #[must_use]
    pub fn after(mut self, ready: bool, what: &str) -> Self {
        self.waits_for = (!ready).then(|| what.to_owned());
        self
    }
}

/// All that shall exist for one parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The children, in the order in which they are written.
    pub children: Vec<Child>,
    /// Whether it is meant that there are none.
    emptiness: Emptiness,
    /// When to look again, though nothing happens.
    pub requeue_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Emptiness {
    #[default]
    Accident,
    Meant,
}

impl Desired {
    /// Nothing yet. If it stays so, nothing is deleted: see [`Desired::none`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing, and that is meant: children that are there go.
    pub fn none() -> Self {
        Self { emptiness: Emptiness::Meant, ..Self::default() }
    }

    /// Adds a child.
    #[must_use]
    pub fn own(mut self, child: impl Into<Child>) -> Self {
        self.children.push(child.into());
        self
    }

    /// Adds a child if `wanted`; if not, it goes.
    #[must_use]
    pub fn own_if(self, wanted: bool, child: impl FnOnce() -> Child) -> Self {
        // Whoever decides to want none has thought of it.
        let emptiness = Emptiness::Meant;
        if wanted { self.own(child()) } else { Self { emptiness, ..self } }
    }

    /// Has the parent looked at again after a time.
    #[must_use]
    pub fn requeue_after(mut self, time: Duration) -> Self {
        self.requeue_after = Some(self.requeue_after.map_or(time, |known| known.min(time)));
        self
    }

    /// Whether there are no children by accident.
    pub(crate) fn is_empty_by_accident(&self) -> bool {
        self.children.is_empty() && self.emptiness == Emptiness::Accident
    }
}

impl From<Value> for Child {
    fn from(object: Value) -> Self {
        Self::new(object)
    }
}
