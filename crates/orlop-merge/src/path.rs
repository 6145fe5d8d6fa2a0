//! Path elements and paths: how one step into an object is named, ordered and printed.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::{go, value};

/// One step from a container to one of its items.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or a key of a map.
    Field(Arc<str>),
    /// The item of a list whose key fields have these values; sorted by name.
    Key(Arc<[(Arc<str>, Value)]>),
    /// The item of a set with this value.
    Value(Arc<Value>),
    /// The item of a list at this position.
    Index(i64),
}

impl PathElement {
    /// The element of a field or map key.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The element of a list item by its key fields, in any order.
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let fields = fields.into_iter().map(|(name, value)| (Arc::from(name), value)).collect();
        Self::from_key_fields(fields)
    }

    pub(crate) fn from_key_fields(mut fields: Vec<(Arc<str>, Value)>) -> Self {
        fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self::Key(fields.into())
    }

    /// The element of a set item.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                for ((name, left), (other, right)) in left.iter().zip(right.iter()) {
                    match name.cmp(other).then_with(|| value::compare(left, right)) {
                        Ordering::Equal => {}
                        unequal => return unequal,
                    }
                }
                left.len().cmp(&right.len())
            }
            (Self::Value(left), Self::Value(right)) => value::compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", key_value(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", key_value(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path from the root of an object: `.spec.containers[name="c"].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of plain field names.
    pub fn fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| PathElement::field(name)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

fn key_value(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => go::float(number),
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(key_value).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(name, value)| format!("{name}={}", key_value(value))).collect();
            entries.concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_are_ordered_by_kind_then_content() {
        let sorted = [
            PathElement::field("a"),
            PathElement::field("b"),
            PathElement::key([("a", json!(1))]),
            PathElement::key([("a", json!(1)), ("b", json!("x"))]),
            PathElement::key([("b", json!("x"))]),
            PathElement::value(json!(1)),
            PathElement::value(json!(2.5)),
            PathElement::value(json!("a")),
            PathElement::value(json!(false)),
            PathElement::Index(0),
            PathElement::Index(3),
        ];
        assert!(sorted.is_sorted());
        assert_eq!(PathElement::value(json!(1)), PathElement::value(json!(1.0)));
    }

    #[test]
    fn paths_print_for_messages() {
        let path = Path(vec![
            PathElement::field("spec"),
            PathElement::key([("protocol", json!("TCP")), ("containerPort", json!(80))]),
            PathElement::value(json!("x\"y")),
            PathElement::Index(2),
        ]);
        assert_eq!(path.to_string(), ".spec[containerPort=80,protocol=\"TCP\"][=\"x\\\"y\"][2]");
    }
}
