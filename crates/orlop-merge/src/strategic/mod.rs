//! Strategic merge patch: a merge patch that knows the types, so that lists can be merged by key.
//!
//! Directives: `$patch` (`replace`, `delete`), `$retainKeys`, `$setElementOrder/<list>` and
//! `$deleteFromPrimitiveList/<list>`. Nulls delete; where there is nothing to delete, they are dropped.

mod list;
mod lookup;

use serde_json::{Map, Value};

use crate::go::{self, Numbers};
use crate::schema::ObjectType;
use crate::value;
use lookup::Lookup;

/// Why a patch is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// The patch or a directive has the wrong form (400).
    #[error("{0}")]
    BadRequest(String),
    /// The patch asks for something that is not supported (422).
    #[error("{0}")]
    Unprocessable(String),
    /// Anything else that does not fit (500).
    #[error("{0}")]
    Internal(String),
}

/// The object with the patch merged into it.
pub fn apply(ty: &ObjectType, object: Value, patch: Value) -> Result<Value, StrategicError> {
    if value::too_deep(&object) || value::too_deep(&patch) {
        return Err(StrategicError::BadRequest("exceeded max depth".into()));
    }
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Ok(object),
        other => {
            let kind = go::json_kind(&other);
            return Err(StrategicError::BadRequest(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let object = match object {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    merge_map(object, patch, Lookup::new(ty)).map(Value::Object)
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

type Result<T, E = StrategicError> = std::result::Result<T, E>;

fn merge_map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Lookup<'_>,
) -> Result<Map<String, Value>> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(bad_patch_type(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_order(&mut original, &mut patch, schema)?;
    for (key, value) in patch {
        merge_entry(&mut original, key, value, schema)?;
    }
    Ok(original)
}

fn merge_entry(
    original: &mut Map<String, Value>,
    key: String,
    patch: Value,
    schema: Lookup<'_>,
) -> Result<()> {
    let deletes_items = key.starts_with(DELETE_FROM_PRIMITIVE_LIST);
    let key = if deletes_items { list_of(&key, DELETE_FROM_PRIMITIVE_LIST)?.to_owned() } else { key };
    if patch.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let merged = match (original.get_mut(&key), patch) {
        (Some(Value::Object(present)), Value::Object(patch)) => {
            let (inner, field) = schema.field(&key)?;
            if field.replace && !field.merge {
                Some(Value::Object(patch))
            } else {
                Some(Value::Object(merge_map(std::mem::take(present), patch, inner)?))
            }
        }
        (Some(Value::Array(present)), Value::Array(patch)) => {
            let (item, field) = schema.list(&key)?;
            let merged = if deletes_items {
                list::delete(std::mem::take(present), &patch)?
            } else if field.merge {
                list::merge(std::mem::take(present), patch, item, field.merge_key.as_deref())?
            } else {
                patch
            };
            Some(Value::Array(merged))
        }
        (_, _) if deletes_items => return Ok(()),
        (Some(present), patch) if same_type(present, &patch) => without_directives(patch),
        (_, mut patch) => {
            drop_nulls(&mut patch);
            without_directives(patch)
        }
    };
    match merged {
        Some(merged) => original.insert(key, merged),
        None => original.remove(&key),
    };
    Ok(())
}

/// Drops all keys of the original that the directive does not name.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || StrategicError::BadRequest("invalid patch format of retainKeys".into());
    let Value::Array(keys) = keys else { return Err(bad()) };
    let named = |key: &str| keys.iter().any(|named| named.as_str() == Some(key));
    let directive =
        |key: &str| key.starts_with(DELETE_FROM_PRIMITIVE_LIST) || key.starts_with(SET_ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !named(key)) {
        return Err(bad());
    }
    original.retain(|key, _| named(key));
    Ok(())
}

/// Merges the lists whose order the patch gives, and takes them out of the patch.
fn set_element_order(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Lookup<'_>,
) -> Result<()> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type("[]interface {}", &other.unwrap_or_default())),
        };
        let key = list_of(&directive, SET_ELEMENT_ORDER)?;
        let present = as_list(original.get(key))?;
        let patched = as_list(patch.get(key))?;
        let (item, field) = schema.list(key)?;
        let merge_key = field.merge_key.as_deref();
        list::check_order(patched.map(Vec::as_slice).unwrap_or_default(), &order, merge_key)?;
        let merged = match (present, patched) {
            (None, None) => continue,
            (Some(present), None) => present.clone(),
            (None, Some(patched)) => match without_directives(Value::Array(patched.clone())) {
                Some(Value::Array(merged)) => merged,
                _ => continue,
            },
            (Some(present), Some(patched)) if field.merge => {
                list::merge(present.clone(), patched.clone(), item, merge_key)?
            }
            (Some(_), Some(patched)) => patched.clone(),
        };
        let present = present.map(Vec::as_slice).unwrap_or_default();
        let ordered =
            list::order(merged, &order, present, patched.map(Vec::as_slice).unwrap_or_default(), merge_key)?;
        original.insert(key.to_owned(), Value::Array(ordered));
        patch.remove(key);
    }
    Ok(())
}

fn as_list(value: Option<&Value>) -> Result<Option<&Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(bad_type("[]interface {}", other)),
    }
}

/// The list a parallel directive is about.
fn list_of<'k>(key: &'k str, prefix: &str) -> Result<&'k str> {
    match key.split_once('/') {
        Some((directive, list)) if directive == prefix => Ok(list),
        _ => Err(StrategicError::BadRequest(match prefix {
            DELETE_FROM_PRIMITIVE_LIST => "invalid patch format of primitive list".into(),
            _ => "invalid patch format of setElementOrder list".into(),
        })),
    }
}

/// The value without directives and the maps that carry them; none if it is such a map itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?))).collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn same_type(left: &Value, right: &Value) -> bool {
    go::type_name(left) == go::type_name(right)
}

fn bad_type(expected: &str, actual: &Value) -> StrategicError {
    StrategicError::Internal(format!("expected a {expected}, but received a {}", go::type_name(actual)))
}

fn bad_patch_type(directive: &Value, map: &Map<String, Value>) -> StrategicError {
    StrategicError::Internal(format!(
        "unknown patch type: {} in map: {}",
        go::verb_s(directive),
        go::plain(&Value::Object(map.clone()), Numbers::Integers)
    ))
}

fn no_merge_key(map: &Map<String, Value>, key: &str) -> StrategicError {
    StrategicError::Internal(format!(
        "map: {} does not contain declared merge key: {key}",
        go::plain(&Value::Object(map.clone()), Numbers::Integers)
    ))
}

#[cfg(test)]
mod tests;
