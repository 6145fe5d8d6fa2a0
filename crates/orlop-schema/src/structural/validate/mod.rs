//! Validation of values against a schema, with the checks, the order and the words of `kube-openapi`.
//!
//! An update may keep what was wrong before: a value that can be matched with its old self and has not changed
//! is not blamed ([`ratchet`]).

mod failure;
mod numbers;
pub mod ratchet;

use self::failure::{Failure, Outcome};
use self::numbers::Num;
use self::ratchet::Old;
use super::formats::Format;
use super::{Additional, Items, Schema};
use crate::field::{FieldError, Path};
use serde_json::{Map, Value};

/// What is wrong with a new value; `prefix` is the path of the value, or none for a whole object.
pub fn validate(value: &Value, schema: &Schema, prefix: Option<&Path>) -> Vec<FieldError> {
    check(schema, value, "", None).into_errors(prefix)
}

/// What is wrong with a changed value, leaving out what was wrong before and has not changed.
pub fn validate_update(
    value: &Value,
    schema: &Schema,
    old: &Value,
    prefix: Option<&Path>,
) -> Vec<FieldError> {
    check(schema, value, "", Some(Old { value: old, schema })).into_errors(prefix)
}

/// Checks a value and forgives it if it is what it was.
fn check(schema: &Schema, value: &Value, place: &str, old: Option<Old<'_>>) -> Outcome {
    let mut outcome = check_node(schema, value, place, old);
    if !outcome.failures.is_empty() && old.is_some_and(|old| ratchet::is_unchanged(value, old)) {
        outcome.failures.clear();
    }
    outcome
}

/// Checks a value; what is below it may be forgiven, the value itself is not.
fn check_node(schema: &Schema, value: &Value, place: &str, old: Option<Old<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    if value.is_null() {
        outcome.merge(check_type(schema, value, place));
        outcome.merge(check_allowed(schema, value, place));
        return outcome;
    }
    let types_apply = !schema.types().is_empty() || schema.checked_format().is_some();
    if types_apply {
        outcome.merge_check(check_type(schema, value, place));
    }
    outcome.merge_check(check_combinations(schema, value, place, old));
    match value {
        Value::String(text) => {
            outcome.merge_check(check_text(schema, text, place));
            if let Some(Format::Text(format)) = schema.checked_format() {
                let mut result = Outcome::default();
                if !format.matches(text) {
                    result.add(Failure::of_type(place, &schema.format, text));
                }
                outcome.merge_check(result);
            }
        }
        Value::Number(number) => outcome.merge_check(numbers::check(schema, Num::of(number), place)),
        Value::Array(items) => outcome.merge_check(check_items(schema, items, place, old)),
        _ => {}
    }
    outcome.merge_check(check_allowed(schema, value, place));
    if let Value::Object(fields) = value {
        outcome.merge_check(check_fields(schema, fields, place, old));
    }
    outcome.matches += 1;
    outcome
}

/// The JSON type of a value and, for numbers, Go's format of it.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) => match Num::of(number) {
            Num::Int(_) => ("integer", "int64"),
            Num::Float(_) => ("number", "float64"),
        },
    }
}

fn check_type(schema: &Schema, value: &Value, place: &str) -> Outcome {
    let types = schema.types();
    let has = |ty: &str| types.contains(&ty);
    if value.is_null() {
        if !types.is_empty() && !has("null") && !schema.nullable {
            return Failure::of_type(place, &types.join(","), "null").into();
        }
        return Outcome::matched();
    }
    let (ty, format) = type_of(value);
    let whole_float =
        matches!(value, Value::Number(n) if matches!(Num::of(n), Num::Float(f) if numbers::is_whole(f)));
    let converts = (whole_float && has("integer")) || (ty == "integer" && has("number"));
    let has_format = schema.checked_format().is_some();
    let is_listlike = matches!(value, Value::String(_) | Value::Array(_));
    if has_format && !is_listlike && !(has(ty) || format == schema.format || converts) {
        return Failure::of_type(place, &schema.format, format).into();
    }
    if has_format && is_listlike && !has("number") && !has("integer") {
        return Outcome::matched();
    }
    if has(ty) || converts {
        Outcome::matched()
    } else {
        Failure::of_type(place, &types.join(","), ty).into()
    }
}

fn check_allowed(schema: &Schema, value: &Value, place: &str) -> Outcome {
    if schema.allowed.is_empty() || schema.allowed.iter().any(|allowed| is_same_enum(value, allowed)) {
        return Outcome::default();
    }
    Failure::not_allowed(place, value, &schema.allowed).into()
}

/// Whether a value is one of an enumeration once Go has converted it to the type of the other.
fn is_same_enum(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match (Num::of(value), Num::of(allowed)) {
            (Num::Float(value), Num::Int(allowed)) => value as i64 == allowed,
            (Num::Int(value), Num::Float(allowed)) => Num::Float(value as f64) == Num::Float(allowed),
            (value, allowed) => value == allowed,
        },
        (Value::Number(value), Value::String(allowed)) => {
            let code = value.as_i64().and_then(|n| u32::try_from(n).ok());
            code.and_then(char::from_u32).is_some_and(|c| allowed.chars().eq([c]))
        }
        _ => value == allowed,
    }
}

fn check_text(schema: &Schema, text: &str, place: &str) -> Outcome {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        return Failure::too_long(place, max).into();
    }
    if let Some(min) = schema.min_length.filter(|min| length < *min) {
        return Failure::invalid(place, Value::from(text), &format!("should be at least {min} chars long"))
            .into();
    }
    if schema.pattern.as_str().is_empty() {
        return Outcome::default();
    }
    let pattern = schema.pattern.as_str();
    let shown = match schema.pattern.compiled() {
        Ok(regex) if regex.is_match(text) => return Outcome::default(),
        Ok(_) => pattern.to_owned(),
        Err(why) => format!("{pattern}, but pattern is invalid: {why}"),
    };
    Failure::invalid(place, Value::from(text), &format!("should match '{shown}'")).into()
}

fn check_items(schema: &Schema, items: &[Value], place: &str, old: Option<Old<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Items::One(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| old.item(items, index));
            outcome.merge(check(item_schema, item, &format!("{place}[{index}]"), old));
        }
    }
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = schema.min_items.filter(|min| count < *min) {
        outcome.add(Failure::invalid(
            place,
            Value::from(count),
            &format!("should have at least {min} items"),
        ));
    }
    if let Some(max) = schema.max_items.filter(|max| count > *max) {
        outcome.add(Failure::too_many(place, count, max, "items"));
    }
    if schema.unique_items && (1..items.len()).any(|index| items[..index].contains(&items[index])) {
        outcome.add(Failure::invalid(place, Value::from(""), "shouldn't contain duplicates"));
    }
    outcome.matches += 1;
    outcome
}

fn check_fields(schema: &Schema, fields: &Map<String, Value>, place: &str, old: Option<Old<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(min) = schema.min_properties.filter(|min| count < *min) {
        let words = format!("should have at least {min} properties");
        outcome.add(Failure::invalid(place, Value::from(count), &words));
    }
    if let Some(max) = schema.max_properties.filter(|max| count > *max) {
        outcome.add(Failure::too_many(place, count, max, "properties"));
    }
    let undeclared = fields.iter().filter(|(name, _)| !schema.properties.contains_key(*name));
    match &schema.additional {
        Additional::Bool(false) => {
            for (name, _) in undeclared {
                outcome.add(Failure::forbidden_field(place, name));
            }
        }
        Additional::Schema(additional) => {
            for (name, value) in undeclared {
                let old = old.and_then(|old| old.field(name));
                outcome.merge(check(additional, value, &format!("{place}.{name}"), old));
            }
        }
        Additional::None | Additional::Bool(true) => {}
    }
    for (name, property) in &schema.properties {
        let Some(value) = fields.get(name) else { continue };
        let here = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        // A change of version is not visible in these two, so they are never what they were.
        let is_type = place.is_empty() && matches!(name.as_str(), "kind" | "apiVersion");
        let old = old.filter(|_| !is_type).and_then(|old| old.field(name));
        outcome.merge(check(property, value, &here, old));
    }
    for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
        outcome.add(Failure::required(&format!("{place}.{name}")));
    }
    outcome
}

fn check_combinations(schema: &Schema, value: &Value, place: &str, old: Option<Old<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    let run = |schema: &Schema| check_node(schema, value, place, old);
    if !schema.any_of.is_empty() {
        let (valid, failed) = first_of(&schema.any_of, run);
        match (valid, failed) {
            (Some(valid), _) => outcome.merge(valid),
            (None, failed) => {
                outcome.add(Failure::whole(format!(
                    "{} must validate at least one schema (anyOf)",
                    crate::field::go_quote(place)
                )));
                outcome.merge(failed.unwrap_or_default());
            }
        }
    }
    if !schema.one_of.is_empty() {
        outcome.merge(check_one_of(&schema.one_of, place, run));
    }
    if !schema.all_of.is_empty() {
        let mut valid = 0;
        for part in &schema.all_of {
            let result = run(part);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid != schema.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(Failure::whole(format!(
                "{} must validate all the schemas (allOf){none}",
                crate::field::go_quote(place)
            )));
        }
    }
    if let Some(not) = &schema.not
        && run(not).is_valid()
    {
        outcome.add(Failure::whole(format!(
            "{} must not validate the schema (not)",
            crate::field::go_quote(place)
        )));
    }
    outcome.matches += 1;
    outcome
}

/// The first schema that holds, or else the failure that came closest.
fn first_of(schemas: &[Schema], run: impl Fn(&Schema) -> Outcome) -> (Option<Outcome>, Option<Outcome>) {
    let mut best: Option<Outcome> = None;
    for schema in schemas {
        let result = run(schema);
        if result.is_valid() {
            return (Some(result), None);
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    (None, best)
}

fn check_one_of(schemas: &[Schema], place: &str, run: impl Fn(&Schema) -> Outcome) -> Outcome {
    let mut best: Option<Outcome> = None;
    let mut first: Option<Outcome> = None;
    let mut valid = 0;
    for schema in schemas {
        let result = run(schema);
        if result.is_valid() {
            valid += 1;
            best = None;
            first.get_or_insert(result);
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if valid == 1 {
        return first.unwrap_or_default();
    }
    let found =
        if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
    let mut outcome = Outcome::default();
    outcome.add(Failure::whole(format!(
        "{} must validate one and only one schema (oneOf). {found}",
        crate::field::go_quote(place)
    )));
    outcome.merge(best.unwrap_or_default());
    outcome
}

#[cfg(test)]
mod tests;
