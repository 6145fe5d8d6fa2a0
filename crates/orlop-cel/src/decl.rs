//! What a structural schema declares to CEL: types of fields, and the size limits that costs are estimated from.

use std::collections::{BTreeMap, BTreeSet};

use orlop_schema::structural::Schema;

use crate::check::Structs;
use crate::types::Type;

/// The largest request, in bytes, that sizes are estimated from.
pub(crate) const REQUEST_MAX: i64 = 3 * 1024 * 1024;

/// Fields that every resource has at its root, whatever its schema says.
pub(crate) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A schema node as CEL sees it.
#[derive(Debug, Clone)]
pub(crate) struct Decl {
    pub(crate) shape: Shape,
    /// Most elements or characters a value can have.
    pub(crate) elements_max: i64,
    /// Fewest bytes a value takes in JSON.
    pub(crate) bytes_min: i64,
}

/// What kind of value a schema node holds.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Scalar(Type),
    List(Box<Decl>),
    Map(Box<Decl>),
    /// Fields by escaped name.
    Object(BTreeMap<String, Decl>),
}

/// Whether a node is the root of a resource, where type and metadata are always visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// The root of a custom or embedded resource.
    ResourceRoot,
    /// Anything below.
    Inner,
}

impl Node {
    pub(crate) fn of(schema: &Schema) -> Self {
        if schema.embedded { Node::ResourceRoot } else { Node::Inner }
    }
}

/// Words that CEL keeps for itself, though it does nothing with them yet.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word cannot be an identifier of CEL, because it means something or is reserved.
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || RESERVED.contains(&word)
}

/// A field name as an identifier of CEL, if it can be one.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/')) {
        return None;
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}

impl Decl {
    /// The declaration of a schema, or none if CEL does not see it.
    pub(crate) fn of(schema: &Schema, node: Node) -> Option<Self> {
        if schema.int_or_string {
            let elements_max = schema.max_length.map_or(REQUEST_MAX - 2, quadruple);
            return Some(Self { shape: Shape::Scalar(Type::Dyn), elements_max, bytes_min: 1 });
        }
        match schema.ty.as_str() {
            "array" => {
                let items = schema.item()?;
                let item = Self::of(items, Node::of(items))?;
                let elements_max =
                    schema.max_items.map_or((REQUEST_MAX - 2) / (item.bytes_min + 1), |n| n.max(0));
                Some(Self { shape: Shape::List(Box::new(item)), elements_max, bytes_min: 2 })
            }
            "object" => match schema.additional.schema() {
                Some(values) => {
                    let value = Self::of(values, Node::of(values))?;
                    let elements_max =
                        schema.max_properties.map_or((REQUEST_MAX - 2) / (value.bytes_min + 6), |n| n.max(0));
                    Some(Self { shape: Shape::Map(Box::new(value)), elements_max, bytes_min: 2 })
                }
                None => Some(Self::object(schema, node)),
            },
            "string" => Some(Self::string(schema)),
            "boolean" => Some(Self::scalar(Type::Bool, 0, 4)),
            "number" => Some(Self::scalar(Type::Double, 0, 1)),
            "integer" => Some(Self::scalar(Type::Int, 0, 1)),
            _ => None,
        }
    }

    fn scalar(ty: Type, elements_max: i64, bytes_min: i64) -> Self {
        Self { shape: Shape::Scalar(ty), elements_max, bytes_min }
    }

    fn object(schema: &Schema, node: Node) -> Self {
        let mut fields = BTreeMap::new();
        let mut bytes_min = 2;
        let names = schema.properties.keys().map(String::as_str);
        let meta = META.iter().copied().filter(|_| node == Node::ResourceRoot);
        let names: BTreeSet<&str> = names.chain(meta).collect();
        for name in names {
            let name = &name.to_owned();
            let property = schema.properties.get(name);
            let declared = match property {
                _ if node == Node::ResourceRoot && META.contains(&name.as_str()) => Some(Self::meta(name)),
                Some(property) => Self::of(property, Node::of(property)),
                None => None,
            };
            let (Some(field), default) = (declared, property.and_then(|p| p.default.as_ref())) else {
                continue;
            };
            if schema.required.contains(name) && default.is_none() {
                bytes_min += name.len() as i64 + field.bytes_min + 4;
            }
            if let Some(escaped) = escape(name) {
                fields.insert(escaped, field);
            }
        }
        Self { shape: Shape::Object(fields), elements_max: 0, bytes_min }
    }

    /// What every resource has at its root.
    fn meta(name: &str) -> Self {
        let string = Self::scalar(Type::String, REQUEST_MAX - 2, 2);
        if name != "metadata" {
            return string;
        }
        let names = [("name".to_owned(), string.clone()), ("generateName".to_owned(), string)];
        Self { shape: Shape::Object(names.into()), elements_max: 0, bytes_min: 2 }
    }

    fn string(schema: &Schema) -> Self {
        match schema.format.as_str() {
            "byte" => Self::scalar(Type::Bytes, schema.max_length.map_or(REQUEST_MAX - 2, |n| n.max(0)), 2),
            "duration" => Self::scalar(Type::Duration, 32, 3),
            "date" => Self::scalar(Type::Timestamp, 12, 12),
            "date-time" => Self::scalar(Type::Timestamp, 32, 21),
            _ => {
                let longest = schema
                    .allowed
                    .iter()
                    .filter_map(|v| v.as_str())
                    .map(|s| s.len() as i64)
                    .max()
                    .unwrap_or(0);
                let elements_max = match schema.max_length {
                    Some(length) => quadruple(length),
                    None if !schema.allowed.is_empty() => longest,
                    None => REQUEST_MAX - 2,
                };
                Self::scalar(Type::String, elements_max, 2)
            }
        }
    }

    /// The type, with object types named below `name` and entered into `structs`.
    pub(crate) fn declare(&self, name: &str, structs: &mut Structs) -> Type {
        match &self.shape {
            Shape::Scalar(ty) => ty.clone(),
            Shape::List(item) => Type::list(item.declare(&format!("{name}.@idx"), structs)),
            Shape::Map(value) => Type::map(Type::String, value.declare(&format!("{name}.@elem"), structs)),
            Shape::Object(fields) => {
                let declared: BTreeMap<String, Type> = fields
                    .iter()
                    .map(|(field, decl)| (field.clone(), decl.declare(&format!("{name}.{field}"), structs)))
                    .collect();
                structs.insert(name.into(), declared);
                Type::Struct(name.into())
            }
        }
    }
}

/// A character takes up to four bytes.
fn quadruple(length: i64) -> i64 {
    length.max(0).saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let table = [
            ("a", Some("a")),
            ("namespace", Some("__namespace__")),
            ("a-b", Some("a__dash__b")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("1a", None),
            ("a b", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(escape(name).as_deref(), expected, "{name}");
        }
    }
}
