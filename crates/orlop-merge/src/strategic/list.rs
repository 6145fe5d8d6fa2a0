//! Lists in strategic merge patches: merged by key, as sets, and put in order.

use serde_json::{Map, Value};

use super::lookup::Lookup;
use super::{
    PATCH, Result, SET_ELEMENT_ORDER, StrategicError, bad_patch_type, bad_type, merge_map, no_merge_key,
};
use crate::go::{self, Numbers};

/// Merges a patch into a list with patch strategy `merge`.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    item: Lookup<'_>,
    merge_key: Option<&str>,
) -> Result<Vec<Value>> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if element_kind(&[&original, &patch])? == Element::Scalar {
        return arrange(distinct(&original, &patch), &patch, &original, None);
    }
    let Some(merge_key) = merge_key else {
        return Err(StrategicError::Internal(format!(
            "cannot merge lists without merge key for {}",
            item.kind()
        )));
    };
    let (original, patch) = special_items(original, patch, merge_key)?;
    let merged = merge_items(original.clone(), &patch, item, merge_key)?;
    arrange(merged, &patch, &original, Some(merge_key))
}

/// The list without the scalars of `unwanted`.
pub(super) fn delete(original: Vec<Value>, unwanted: &[Value]) -> Result<Vec<Value>> {
    if original.is_empty() && unwanted.is_empty() {
        return Ok(original);
    }
    if element_kind(&[&original, unwanted])? == Element::Map {
        return Err(StrategicError::Internal("cannot merge lists without merge key for struct".into()));
    }
    Ok(original.into_iter().filter(|value| !unwanted.contains(value)).collect())
}

/// Puts a merged list in the order the patch asks for; items it does not name keep their places.
pub(super) fn order(
    merged: Vec<Value>,
    order: &[Value],
    original: &[Value],
    patch: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>> {
    let key = merge_key.filter(|_| element_kind(&[original, patch]).is_ok_and(|kind| kind == Element::Map));
    element_kind(&[original, patch])?;
    arrange(merged, order, original, key)
}

/// Whether the items of the patch come in the order that the patch itself asks for.
pub(super) fn check_order(patch: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut items: Vec<&Value> = Vec::new();
    for item in patch {
        if merge_key.is_some() && !item.is_object() {
            return Err(bad_type("map[string]interface {}", item));
        }
        if merge_key.is_none() || item.get(PATCH).and_then(Value::as_str) != Some("delete") {
            items.push(item);
        }
    }
    let mut items = items.into_iter().filter(|item| item.get(PATCH).is_none()).peekable();
    for place in order {
        let Some(item) = items.peek() else { return Ok(()) };
        let same = match merge_key {
            None => *item == place,
            Some(key) => key_of(item, key)? == key_of(place, key)?,
        };
        if same {
            items.next();
        }
    }
    if items.peek().is_none() {
        return Ok(());
    }
    let print = |list: &[Value]| go::plain(&Value::Array(list.to_vec()), Numbers::Integers);
    Err(StrategicError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
        print(patch),
        print(order)
    )))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Map,
    Scalar,
}

fn element_kind(lists: &[&[Value]]) -> Result<Element> {
    let mut kind: Option<&Value> = None;
    for value in lists.iter().copied().flatten() {
        match kind {
            None if value.is_array() => {
                return Err(StrategicError::Unprocessable("lists of lists are not supported".into()));
            }
            None if value.is_null() => {
                return Err(StrategicError::Internal(
                    "runtime error: invalid memory address or nil pointer dereference".into(),
                ));
            }
            None => kind = Some(value),
            Some(first) if go::type_name(first) != go::type_name(value) => {
                let lists = Value::Array(lists.iter().map(|list| Value::Array(list.to_vec())).collect());
                return Err(StrategicError::Internal(format!(
                    "list element types are not identical: {}",
                    go::plain(&lists, Numbers::Integers)
                )));
            }
            Some(_) => {}
        }
    }
    match kind {
        None => Err(StrategicError::Internal("no elements in any of the given slices".into())),
        Some(Value::Object(_)) => Ok(Element::Map),
        Some(_) => Ok(Element::Scalar),
    }
}

/// Carries out the items that are directives; what is left are the lists to merge.
fn special_items(
    original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut original = original;
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else { continue };
        let Some(directive) = map.get(PATCH) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let wanted = map.get(merge_key).ok_or_else(|| no_merge_key(map, merge_key))?;
                original.retain(|item| item.get(merge_key) != Some(wanted));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(StrategicError::Internal(
                    "merging lists cannot yet be specified in the patch".into(),
                ));
            }
            _ => return Err(bad_patch_type(directive, map)),
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

fn merge_items(
    mut original: Vec<Value>,
    patch: &[Value],
    item: Lookup<'_>,
    merge_key: &str,
) -> Result<Vec<Value>> {
    for patched in patch {
        let Value::Object(patched) = patched else { continue };
        let wanted = patched.get(merge_key).ok_or_else(|| no_merge_key(patched, merge_key))?;
        let place = original.iter_mut().find(|candidate| candidate.get(merge_key) == Some(wanted));
        match place {
            Some(Value::Object(place)) => {
                *place = merge_map(std::mem::take(place), patched.clone(), item)?;
            }
            _ => original.push(Value::Object(patched.clone())),
        }
    }
    Ok(original)
}

/// Items named in `named` in the order there, the others in the order of `original`, and the two mixed so that items
/// of `original` do not change sides without need.
fn arrange(
    merged: Vec<Value>,
    named: &[Value],
    original: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>> {
    let mut patched = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        if let Some(key) = merge_key {
            key_of(&item, key)?;
            if let Some(odd) = named.iter().position(|item| !item.is_object()) {
                return Err(StrategicError::Internal(format!("value for key {odd} is not a map")));
            }
        }
        if position(named, &item, merge_key).is_some() { patched.push(item) } else { others.push(item) }
    }
    let patched = sorted(patched, named, merge_key)?;
    let others = sorted(others, original, merge_key)?;

    let place = |item: &Value| position(original, item, merge_key);
    let mut out = Vec::with_capacity(patched.len() + others.len());
    let (mut others, mut patched) = (others.into_iter().peekable(), patched.into_iter().peekable());
    while let (Some(other), Some(patch)) = (others.peek(), patched.peek()) {
        let other_first = place(other).zip(place(patch)).is_some_and(|(other, patch)| other < patch);
        out.extend(if other_first { others.next() } else { patched.next() });
    }
    out.extend(others);
    out.extend(patched);
    Ok(out)
}

fn sorted(items: Vec<Value>, order: &[Value], merge_key: Option<&str>) -> Result<Vec<Value>> {
    if let Some(key) = merge_key {
        for item in items.iter().chain(order) {
            key_of(item, key)?;
        }
    }
    let is_delete =
        |item: &Value| merge_key.is_some() && item.get(PATCH).and_then(Value::as_str) == Some("delete");
    let (deletes, items): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_delete);
    let mut placed: Vec<(Option<usize>, Value)> =
        items.into_iter().map(|item| (position(order, &item, merge_key), item)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else {
        // The original compares as "less" whenever one of two items has no place, in an insertion sort.
        for end in 1..placed.len() {
            for index in (1..=end).rev() {
                let less = match (placed[index].0, placed[index - 1].0) {
                    (Some(left), Some(right)) => left < right,
                    _ => true,
                };
                if !less {
                    break;
                }
                placed.swap(index, index - 1);
            }
        }
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deletes).collect())
}

fn position(list: &[Value], item: &Value, merge_key: Option<&str>) -> Option<usize> {
    match merge_key {
        None => list.iter().position(|candidate| candidate == item),
        Some(key) => {
            let wanted = item.get(key);
            list.iter().position(|candidate| candidate.get(key) == wanted)
        }
    }
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value> {
    let map: &Map<String, Value> =
        item.as_object().ok_or_else(|| bad_type("map[string]interface {}", item))?;
    map.get(key).ok_or_else(|| no_merge_key(map, key))
}

/// The values of both lists, each once.
fn distinct(left: &[Value], right: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(left.len() + right.len());
    for value in left.iter().chain(right) {
        if !out.contains(value) {
            out.push(value.clone());
        }
    }
    out
}
