//! Ownership recorded under an older schema, brought in line with the present one.

use crate::fieldset::{FieldSet, Node};
use crate::path::PathElement;
use crate::schema::{Kind, Schema, TypeRef};

/// The set with everything below a container that is now atomic replaced by the container; none if nothing changes.
pub(super) fn reconcile(schema: &Schema, root: &TypeRef, set: &FieldSet) -> Option<FieldSet> {
    if !needs_change(schema, root, set) {
        return None;
    }
    Some(changed(schema, root, set))
}

fn needs_change(schema: &Schema, ty: &TypeRef, set: &FieldSet) -> bool {
    set.nodes.iter().any(|node| match inner(schema, ty, &node.element) {
        Some(inner) => collapses(schema, inner, node) || needs_change(schema, inner, &node.children),
        None => false,
    })
}

fn changed(schema: &Schema, ty: &TypeRef, set: &FieldSet) -> FieldSet {
    let nodes = set.nodes.iter().map(|node| match inner(schema, ty, &node.element) {
        Some(inner) if collapses(schema, inner, node) => {
            Node { element: node.element.clone(), member: true, children: FieldSet::new() }
        }
        Some(inner) => Node {
            element: node.element.clone(),
            member: node.member,
            children: changed(schema, inner, &node.children),
        },
        None => node.clone(),
    });
    FieldSet { nodes: nodes.collect() }
}

/// Whether the node has paths below a container that is one value.
fn collapses(schema: &Schema, ty: &TypeRef, node: &Node) -> bool {
    if node.children.is_empty() {
        return false;
    }
    match schema.resolve(ty).map(|atom| atom.kind()) {
        Some(Kind::Map(map)) => map.atomic && !map.map.is_deduced(),
        Some(Kind::List(list)) => !list.associative,
        _ => false,
    }
}

/// The type of an item, if the container's items are looked into.
fn inner<'s>(schema: &'s Schema, ty: &'s TypeRef, element: &PathElement) -> Option<&'s TypeRef> {
    match schema.resolve(ty)?.kind() {
        Kind::Map(map) if map.map.is_deduced() || map.atomic => None,
        Kind::Map(map) => match element {
            PathElement::Field(name) => map.map.type_of(name),
            _ => map.map.element.as_ref(),
        },
        Kind::List(list) if list.associative => Some(&list.list.element),
        _ => None,
    }
}
