//! Whether a value fits its type, with the messages of the original.

use serde_json::{Map as JsonMap, Value};

use super::item;
use crate::go::{self, Numbers};
use crate::path::PathElement;
use crate::schema::{Kind, ListAtom, Map, Scalar, Schema, TypeRef};
use crate::value;

/// Whether an associative list may have several items with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// A typing error, as in an applied configuration.
    Refused,
    /// Tolerated, as in stored objects.
    Allowed,
}

/// Why a value does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct TypingError {
    problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// Innermost element first.
    path: Vec<PathElement>,
    message: String,
}

impl TypingError {
    fn message(&self) -> String {
        match self.problems.as_slice() {
            [only] => only.to_string(),
            all => {
                let lines: Vec<String> = all.iter().map(|problem| format!("  {problem}")).collect();
                format!("errors:\n{}", lines.join("\n"))
            }
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        self.path.iter().rev().try_for_each(|element| element.fmt(f))?;
        write!(f, ": {}", self.message)
    }
}

pub(super) fn validate(
    schema: &Schema,
    root: &TypeRef,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), TypingError> {
    let mut walk = Walk { schema, duplicates, problems: Vec::new() };
    if value::too_deep(value) {
        walk.report("exceeded max depth".into());
    } else {
        walk.value(root, value);
    }
    if walk.problems.is_empty() { Ok(()) } else { Err(TypingError { problems: walk.problems }) }
}

struct Walk<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
    problems: Vec<Problem>,
}

impl<'s> Walk<'s> {
    fn value(&mut self, ty: &'s TypeRef, value: &Value) {
        let Some(atom) = self.schema.resolve(ty) else {
            let name = self.schema.name_of(ty).unwrap_or("inlined type");
            return self.report(format!("schema error: no type found matching: {name}"));
        };
        match (atom.deduce(value).kind(), value) {
            (Kind::Map(map), Value::Object(entries)) => self.map(map.map, entries),
            (Kind::List(list), Value::Array(items)) => self.list(list, items),
            (Kind::Map(_) | Kind::List(_), Value::Null) => {}
            (Kind::Map(_), _) => self.report(format!("expected map, got {}", quoted(value))),
            (Kind::List(_), _) => self.report(format!("expected list, got {}", quoted(value))),
            (Kind::Scalar(scalar), _) => {
                if let Some(message) = scalar_problem(scalar, value) {
                    self.report(message);
                }
            }
            (Kind::Invalid, _) => {
                let name =
                    self.schema.name_of(ty).map_or("inlined".into(), |name| format!("named type: {name}"));
                self.report(format!("schema error: invalid atom: {name}"));
            }
        }
    }

    fn map(&mut self, map: &'s Map, entries: &JsonMap<String, Value>) {
        for (key, value) in entries {
            let before = self.problems.len();
            let declared = map.type_of(key);
            match declared {
                Some(ty) => self.value(ty, value),
                None => self.report("field not declared in schema".into()),
            }
            if self.problems.len() > before {
                self.prefix(before, &PathElement::field(key));
            }
            if declared.is_none() {
                return;
            }
        }
    }

    fn list(&mut self, list: ListAtom<'s>, items: &[Value]) {
        let mut seen: Vec<PathElement> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut element = PathElement::Index(index as i64);
            if list.associative {
                element = match item::element(self.schema, list, item) {
                    Ok(element) => element,
                    Err(why) => return self.report(format!("element {index}: {why}")),
                };
                if self.duplicates == Duplicates::Refused {
                    match seen.binary_search(&element) {
                        Ok(_) => self.report(format!("duplicate entries for key {element}")),
                        Err(position) => seen.insert(position, element.clone()),
                    }
                }
            }
            let before = self.problems.len();
            self.value(&list.list.element, item);
            self.prefix(before, &element);
        }
    }

    fn report(&mut self, message: String) {
        self.problems.push(Problem { path: Vec::new(), message });
    }

    fn prefix(&mut self, from: usize, element: &PathElement) {
        for problem in &mut self.problems[from..] {
            problem.path.push(element.clone());
        }
    }
}

fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, _) => {
            Some(format!("expected numeric (int or float), got {}", go::type_name(value)))
        }
        (Scalar::String, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(value)))
        }
        (Scalar::Boolean, _) => Some(format!("expected boolean, got {}", quoted(value))),
        (Scalar::Untyped, _) => Some(format!("expected any scalar, got {}", quoted(value))),
    }
}

fn quoted(value: &Value) -> String {
    format!("&{{{}}}", go::plain(value, Numbers::Floats))
}
