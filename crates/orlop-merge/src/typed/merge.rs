//! An applied configuration laid over a live object.

use std::cmp::Ordering;

use serde_json::{Map as JsonMap, Value};

use super::item;
use crate::path::PathElement;
use crate::schema::{Kind, ListAtom, MapAtom, Schema, TypeRef};

pub(super) fn merge(
    schema: &Schema,
    ty: &TypeRef,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    let (Some(live), Some(config)) = (live, config) else { return config.or(live).cloned() };
    let Some(atom) = schema.resolve(ty) else { return Some(config.clone()) };
    match atom.deduce(config).kind() {
        Kind::Map(map) if !map.atomic => {
            let (live_map, config_map) = (live.as_object(), config.as_object());
            if live_map.is_none_or(JsonMap::is_empty) {
                return Some(config.clone());
            }
            Some(Value::Object(merge_entries(schema, map, live_map, config_map)))
        }
        Kind::List(list) if list.associative => {
            let (live_items, config_items) = (live.as_array(), config.as_array());
            if live_items.is_none_or(Vec::is_empty) || live == config {
                return Some(config.clone());
            }
            Some(Value::Array(merge_items(
                schema,
                list,
                live_items.map(Vec::as_slice).unwrap_or_default(),
                config_items.map(Vec::as_slice).unwrap_or_default(),
            )))
        }
        _ => Some(config.clone()),
    }
}

/// Visits the keys of both maps in order.
pub(super) fn zip<'v>(
    left: Option<&'v JsonMap<String, Value>>,
    right: Option<&'v JsonMap<String, Value>>,
    mut visit: impl FnMut(&'v String, Option<&'v Value>, Option<&'v Value>),
) {
    let mut left = left.into_iter().flatten().peekable();
    let mut right = right.into_iter().flatten().peekable();
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let left = if order == Ordering::Greater { None } else { left.next() };
        let right = if order == Ordering::Less { None } else { right.next() };
        if let Some((key, _)) = left.or(right) {
            visit(key, left.map(|(_, value)| value), right.map(|(_, value)| value));
        }
    }
}

fn merge_entries(
    schema: &Schema,
    map: MapAtom<'_>,
    live: Option<&JsonMap<String, Value>>,
    config: Option<&JsonMap<String, Value>>,
) -> JsonMap<String, Value> {
    let mut out = JsonMap::new();
    zip(live, config, |key, live, config| {
        let value = match map.map.type_of(key) {
            Some(ty) => merge(schema, ty, live, config),
            None => config.or(live).cloned(),
        };
        if let Some(value) = value {
            out.insert(key.clone(), value);
        }
    });
    out
}

/// An item with the element that tells it apart.
struct Item<'v> {
    element: PathElement,
    value: &'v Value,
}

/// Live items that the configuration does not name keep their places; those it names come in its order, each at the
/// place of the live item if that does not contradict the order, else before it.
fn merge_items(schema: &Schema, list: ListAtom<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let (live, config) = (elements(schema, list, live), elements(schema, list, config));
    let (live_index, config_index) = (Index::new(&live), Index::new(&config));
    let merged = |live: Option<&Value>, config: &Item<'_>| {
        merge(schema, &list.list.element, live, Some(config.value)).unwrap_or(Value::Null)
    };

    let mut shared =
        config.iter().map(|item| &item.element).filter(|element| live_index.has(element)).peekable();
    let mut done = vec![false; config.len()];
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut r) = (0, 0);
    while l < live.len() || r < config.len() {
        if let (Some(left), Some(right)) = (live.get(l), config.get(r)) {
            if left.element == right.element {
                out.push(merged(live_index.only(&left.element), right));
                done[r] = true;
                l += 1;
                r += 1;
                shared.next();
                continue;
            }
            // Named, but another one is due first: it will come at its turn.
            if config_index.has(&left.element) && shared.peek().is_some_and(|next| **next != left.element) {
                l += 1;
                continue;
            }
        }
        if let Some(left) = live.get(l) {
            match config_index.position(&left.element) {
                None => {
                    out.push(left.value.clone());
                    l += 1;
                    continue;
                }
                Some(position) if done[position] => l += 1,
                Some(_) => {}
            }
        }
        if let Some(right) = config.get(r) {
            out.push(merged(live_index.only(&right.element), right));
            done[r] = true;
            r += 1;
            if shared.peek().is_some_and(|next| **next == right.element) {
                shared.next();
            }
        }
    }
    out
}

fn elements<'v>(schema: &Schema, list: ListAtom<'_>, items: &'v [Value]) -> Vec<Item<'v>> {
    items
        .iter()
        .filter_map(|value| item::element(schema, list, value).ok().map(|element| Item { element, value }))
        .collect()
}

/// Items by element.
struct Index<'a, 'v> {
    sorted: Vec<(usize, &'a Item<'v>)>,
}

impl<'a, 'v> Index<'a, 'v> {
    fn new(items: &'a [Item<'v>]) -> Self {
        let mut sorted: Vec<_> = items.iter().enumerate().collect();
        sorted.sort_by(|(_, left), (_, right)| left.element.cmp(&right.element));
        Self { sorted }
    }

    fn matching(&self, element: &PathElement) -> &[(usize, &'a Item<'v>)] {
        let start = self.sorted.partition_point(|(_, item)| item.element < *element);
        let len = self.sorted[start..].partition_point(|(_, item)| item.element == *element);
        &self.sorted[start..start + len]
    }

    fn has(&self, element: &PathElement) -> bool {
        !self.matching(element).is_empty()
    }

    fn position(&self, element: &PathElement) -> Option<usize> {
        self.matching(element).first().map(|(position, _)| *position)
    }

    /// The item if there is exactly one: duplicates are replaced, not merged into.
    fn only(&self, element: &PathElement) -> Option<&'v Value> {
        match self.matching(element) {
            [(_, item)] => Some(item.value),
            _ => None,
        }
    }
}
