//! Operations on values of a known type: validate, own, compare, merge, remove.
//!
//! All walks go over the value and its type at once. Only [`validate`](Typed::validate) can fail; the others expect
//! values that were validated, and treat what does not fit as absent, so that they never fail half-way.

mod atomics;
mod compare;
mod field_set;
mod item;
mod merge;
mod reconcile;
mod remove;
mod validate;

use serde_json::Value;

pub use compare::Comparison;
pub use validate::{Duplicates, TypingError};

use crate::fieldset::{FieldSet, Node};
use crate::path::PathElement;
use crate::schema::{ObjectType, Schema, TypeRef};

/// A type in which to look at values.
#[derive(Clone, Copy)]
pub struct Typed<'s> {
    schema: &'s Schema,
    root: &'s TypeRef,
}

impl<'s> Typed<'s> {
    /// The operations of an object type.
    pub fn new(ty: &'s ObjectType) -> Self {
        Self { schema: ty.schema(), root: ty.root() }
    }

    /// Whether a value fits the type.
    pub fn validate(self, value: &Value, duplicates: Duplicates) -> Result<(), TypingError> {
        validate::validate(self.schema, self.root, value, duplicates)
    }

    /// The paths an object owns that says exactly this.
    pub fn field_set(self, value: &Value) -> FieldSet {
        field_set::field_set(self.schema, self.root, value)
    }

    /// The paths at which two values differ.
    pub fn compare(self, old: &Value, new: &Value) -> Comparison {
        compare::compare(self.schema, self.root, old, new)
    }

    /// `live` with all that `config` says; items of `live` stay in their order where `config` does not say another.
    pub fn merge(self, live: &Value, config: &Value) -> Value {
        merge::merge(self.schema, self.root, Some(live), Some(config)).unwrap_or(Value::Null)
    }

    /// Paths of the lists, maps and structs in a value that a merge would replace as a whole.
    pub fn atomics(self, value: &Value) -> Vec<String> {
        atomics::atomics(self.schema, self.root, value)
    }

    /// The value without the items in the set.
    pub fn remove_items(self, value: Value, items: &FieldSet) -> Value {
        remove::remove(self.schema, self.root, value, items)
    }

    /// Only the items in the set.
    pub fn extract_items(self, value: &Value, items: &FieldSet) -> Value {
        remove::extract(self.schema, self.root, value, items)
    }

    /// The set adapted to a type in which containers became atomic; none if nothing changes.
    pub fn reconcile(self, set: &FieldSet) -> Option<FieldSet> {
        reconcile::reconcile(self.schema, self.root, set)
    }

    /// The set with the struct fields that lead to its paths added.
    #[must_use]
    pub fn with_named_fields(self, set: &FieldSet) -> FieldSet {
        with_named_fields(self.schema, Some(self.root), set)
    }
}

fn with_named_fields(schema: &Schema, ty: Option<&TypeRef>, set: &FieldSet) -> FieldSet {
    let atom = ty.and_then(|ty| schema.resolve(ty));
    let nodes = set.nodes.iter().map(|node| {
        if node.children.is_empty() {
            return node.clone();
        }
        let (mut member, mut inner) = (node.member, None);
        match (&node.element, atom) {
            (PathElement::Field(name), Some(atom)) => {
                if let Some(map) = atom.map {
                    member |= map.map.fields.contains_key(name);
                    inner = map.map.type_of(name);
                }
            }
            (PathElement::Key(_), Some(atom)) => inner = atom.list.map(|list| &list.list.element),
            _ => {}
        }
        Node {
            element: node.element.clone(),
            member,
            children: with_named_fields(schema, inner, &node.children),
        }
    });
    FieldSet { nodes: nodes.collect() }
}

#[cfg(test)]
mod tests;
