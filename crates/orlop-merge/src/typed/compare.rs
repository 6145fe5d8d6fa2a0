//! At which paths two values of one type differ.

use serde_json::{Map as JsonMap, Value};

use super::item;
use crate::fieldset::{FieldSet, Node};
use crate::filter::Filter;
use crate::path::PathElement;
use crate::schema::{Atom, Kind, ListAtom, MapAtom, Schema, TypeRef};
use crate::value;

/// The paths that were removed, modified and added between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Paths of the old value that the new one lacks.
    pub removed: FieldSet,
    /// Paths whose value changed.
    pub modified: FieldSet,
    /// Paths that only the new value has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    pub(crate) fn filtered(self, filter: &Filter) -> Self {
        Self {
            removed: filter.apply(self.removed),
            modified: filter.apply(self.modified),
            added: filter.apply(self.added),
        }
    }

    /// Takes over what was found below `element`, which is only built when something was.
    fn absorb(&mut self, found: Found, element: impl Fn() -> PathElement) {
        let Found { marks, below } = found;
        let add = |set: &mut FieldSet, member: bool, children: FieldSet| {
            if member || !children.is_empty() {
                set.add(Node { element: element(), member, children });
            }
        };
        add(&mut self.removed, marks.removed, below.removed);
        add(&mut self.modified, marks.modified, below.modified);
        add(&mut self.added, marks.added, below.added);
    }
}

pub(super) fn compare(schema: &Schema, root: &TypeRef, old: &Value, new: &Value) -> Comparison {
    if old == new {
        return Comparison::default();
    }
    Walk { schema }.value(root, Some(old), Some(new)).below
}

/// What was found at a value: marks on its own path, and differences below it.
#[derive(Default)]
struct Found {
    marks: Marks,
    below: Comparison,
}

#[derive(Clone, Copy, Default)]
struct Marks {
    removed: bool,
    modified: bool,
    added: bool,
}

#[derive(Clone, Copy)]
struct Walk<'s> {
    schema: &'s Schema,
}

impl<'s> Walk<'s> {
    fn value(self, ty: &'s TypeRef, old: Option<&Value>, new: Option<&Value>) -> Found {
        let mut found = Found::default();
        let Some(atom) = self.schema.resolve(ty) else { return found };
        let leaf = match (old, new) {
            (None, None) => return found,
            (Some(old_value), None) => self.kind(atom.deduce(old_value), old, new, &mut found),
            (None, Some(new_value)) => self.kind(atom.deduce(new_value), old, new, &mut found),
            (Some(old_value), Some(new_value)) => {
                let (old_atom, new_atom) = (atom.deduce(old_value), atom.deduce(new_value));
                if !old_atom.same_kinds(new_atom) {
                    self.kind(old_atom, old, new, &mut found);
                }
                self.kind(new_atom, old, new, &mut found)
            }
        };
        if !leaf {
            found.marks.added |= old.is_none();
            found.marks.removed |= new.is_none();
        }
        found
    }

    /// Whether the value was compared as a whole.
    fn kind(self, atom: Atom<'s>, old: Option<&Value>, new: Option<&Value>, found: &mut Found) -> bool {
        match atom.kind() {
            Kind::Scalar(_) => leaf(old, new, found),
            Kind::Map(map) => {
                let (old_map, new_map) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                if map.atomic || (is_empty_map(old_map) && is_empty_map(new_map)) {
                    return leaf(old, new, found);
                }
                self.entries(map, old_map, new_map, &mut found.below);
                false
            }
            Kind::List(list) => {
                let (old_list, new_list) = (items(old), items(new));
                if !list.associative || (old_list.is_empty() && new_list.is_empty()) {
                    return leaf(old, new, found);
                }
                if old_list != new_list {
                    self.items(list, old_list, new_list, &mut found.below);
                }
                false
            }
            Kind::Invalid => false,
        }
    }

    fn entries(
        self,
        map: MapAtom<'s>,
        old: Option<&JsonMap<String, Value>>,
        new: Option<&JsonMap<String, Value>>,
        out: &mut Comparison,
    ) {
        let mut visit = |key: &str, old: Option<&Value>, new: Option<&Value>| {
            let Some(ty) = map.map.type_of(key) else { return };
            let found = self.value(ty, old, new);
            out.absorb(found, || match map.map.fields.get_key_value(key) {
                Some((name, _)) => PathElement::Field(name.clone()),
                None => PathElement::field(key),
            });
        };
        super::merge::zip(old, new, |key, old, new| visit(key, old, new));
    }

    fn items(self, list: ListAtom<'s>, old: &[Value], new: &[Value], out: &mut Comparison) {
        let (old, new) = (self.grouped(list, old), self.grouped(list, new));
        let mut elements: Vec<&PathElement> = old.iter().chain(&new).map(|(element, _)| element).collect();
        elements.sort_unstable();
        elements.dedup();
        for element in elements {
            let (old, new) = (group(&old, element), group(&new, element));
            let ty = &list.list.element;
            let mut found = match (old, new) {
                ([] | [_], [] | [_]) => self.value(ty, old.first().copied(), new.first().copied()),
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len()
                        && old.iter().zip(new).all(|(old, new)| value::equal(old, new));
                    Found { marks: Marks { modified: !same, ..Marks::default() }, ..Found::default() }
                }
                ([_, _, ..], _) => self.value(ty, None, new.first().copied()),
                (_, _) => self.value(ty, old.first().copied(), None),
            };
            found.marks.removed |= old.len() > 1 && new.len() < 2;
            found.marks.added |= new.len() > 1 && old.len() < 2;
            out.absorb(found, || element.clone());
        }
    }

    /// The items by element, in the order of the elements; those of one element in the order of the list.
    fn grouped<'v>(self, list: ListAtom<'s>, items: &'v [Value]) -> Vec<(PathElement, Vec<&'v Value>)> {
        let mut groups: Vec<(PathElement, Vec<&Value>)> = Vec::with_capacity(items.len());
        for item in items {
            let Ok(element) = item::element(self.schema, list, item) else { continue };
            match groups.binary_search_by(|(candidate, _)| candidate.cmp(&element)) {
                Ok(index) => groups[index].1.push(item),
                Err(index) => groups.insert(index, (element, vec![item])),
            }
        }
        groups
    }
}

fn group<'a, 'v>(groups: &'a [(PathElement, Vec<&'v Value>)], element: &PathElement) -> &'a [&'v Value] {
    match groups.binary_search_by(|(candidate, _)| candidate.cmp(element)) {
        Ok(index) => &groups[index].1,
        Err(_) => &[],
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>, found: &mut Found) -> bool {
    match (old, new) {
        (None, _) => found.marks.added = true,
        (_, None) => found.marks.removed = true,
        (Some(old), Some(new)) => found.marks.modified |= !value::equal(old, new),
    }
    true
}

fn is_empty_map(map: Option<&JsonMap<String, Value>>) -> bool {
    map.is_none_or(JsonMap::is_empty)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
