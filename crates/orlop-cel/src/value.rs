//! Values while an expression runs, their equality and order, and the way from JSON to them by schema.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use orlop_schema::ip::Cidr;
use orlop_schema::quantity::Quantity;
use orlop_schema::structural::Schema;
use serde_json::Value as Json;

use crate::authorizer::{Check, Decision};
use crate::base64;
use crate::decl::{META, Node, escape};
use crate::formats::NamedFormat;
use crate::semver::Semver;
use crate::time::{self, Timestamp};
use crate::url::Url;

/// A value of CEL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// A float.
    Double(f64),
    /// Text.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(Arc<List>),
    /// A map, or an object with escaped field names.
    Map(Arc<BTreeMap<Key, Value>>),
    /// A type, by name.
    Type(Arc<str>),
    /// An optional.
    Optional(Option<Arc<Value>>),
    /// A quantity.
    Quantity(Arc<Quantity>),
    /// An IP address.
    Ip(IpAddr),
    /// A network.
    Cidr(Cidr),
    /// A URL.
    Url(Arc<Url>),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named format.
    Format(&'static NamedFormat),
    /// An `Object{…}` or `JSONPatch{…}`.
    Object(Arc<Object>),
    /// A question to the authorizer, as far as it has been put.
    Check(Arc<Check>),
    /// What the authorizer answered.
    Decision(Arc<Decision>),
    /// Data that does not fit its schema; reading it is an error.
    Invalid(Arc<str>),
}

/// A key of a map; unsigned keys are kept as integers where they fit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An unsigned integer beyond the signed ones.
    Uint(u64),
    /// Text.
    String(Arc<str>),
}

/// A constructed object: what a patch is made of.
#[derive(Debug, Clone)]
pub struct Object {
    /// The type, such as `Object.spec`.
    pub name: Arc<str>,
    /// Fields by name.
    pub fields: BTreeMap<Arc<str>, Value>,
}

/// A list and how its schema wants it compared.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// The elements.
    pub items: Vec<Value>,
    pub(crate) topology: Topology,
}

/// How the elements of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Topology {
    #[default]
    Atomic,
    Set,
    /// By these fields, escaped.
    Map(Arc<[Key]>),
}

impl Value {
    pub(crate) fn string(text: impl Into<Arc<str>>) -> Self {
        Value::String(text.into())
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Value::List(Arc::new(List { items, topology: Topology::Atomic }))
    }

    pub(crate) fn some(value: Value) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The value as a map key.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Value::Bool(b) => Key::Bool(*b),
            Value::Int(i) => Key::Int(*i),
            Value::Uint(u) => i64::try_from(*u).map_or(Key::Uint(*u), Key::Int),
            Value::Double(d) if d.fract() == 0.0 && d.abs() < 9e15 => Key::Int(*d as i64),
            Value::String(s) => Key::String(s.clone()),
            _ => return None,
        })
    }

    /// Name of the value's type.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Url(_) => "kubernetes.URL",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Object(object) => &object.name,
            Value::Check(check) => check.type_name(),
            Value::Decision(_) => "kubernetes.authorization.Decision",
            Value::Invalid(_) => "error",
        }
    }

    /// What `size` gives, or one for what has no size.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Value::String(s) => s.chars().count() as u64,
            Value::Bytes(b) => b.len() as u64,
            Value::List(l) => l.items.len() as u64,
            Value::Map(m) => m.len() as u64,
            Value::Optional(Some(v)) => v.size(),
            Value::Ip(ip) => {
                if ip.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Value::Cidr(c) => u64::from(c.prefix.div_ceil(8)),
            _ => 1,
        }
    }

    /// Equality; numbers of all types are compared by value, other types differ.
    pub(crate) fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.equals(b),
            (Value::Map(a), Value::Map(b)) => {
                a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| v.equals(w)))
            }
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Value::Quantity(a), Value::Quantity(b)) => a.minus(b).is_zero(),
            (Value::Ip(a), Value::Ip(b)) => a == b,
            (Value::Cidr(a), Value::Cidr(b)) => a == b,
            (Value::Url(a), Value::Url(b)) => a == b,
            (Value::Semver(a), Value::Semver(b)) => a.compare(b) == Ordering::Equal,
            (Value::Format(a), Value::Format(b)) => a.name == b.name,
            (Value::Object(a), Value::Object(b)) => {
                a.name == b.name
                    && a.fields.len() == b.fields.len()
                    && a.fields.iter().all(|(k, v)| b.fields.get(k).is_some_and(|w| v.equals(w)))
            }
            (Value::Check(a), Value::Check(b)) => a == b,
            (Value::Decision(a), Value::Decision(b)) => a == b,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// Order of values that have one.
    pub(crate) fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Value::Double(a), b) => compare_double(*a, b.integer()?),
            (a, Value::Double(b)) => compare_double(*b, a.integer()?).map(Ordering::reverse),
            (a, b) => Some(a.integer()?.cmp(&b.integer()?)),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Value::Int(i) => Some(i128::from(*i)),
            Value::Uint(u) => Some(i128::from(*u)),
            _ => None,
        }
    }
}

fn compare_double(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() > 1e30 {
        return Some(if double > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    let floor = double.floor();
    Some((floor as i128).cmp(&whole).then(if double > floor { Ordering::Greater } else { Ordering::Equal }))
}

impl List {
    fn identity(&self, value: &Value) -> Vec<Option<Value>> {
        let Topology::Map(keys) = &self.topology else { return Vec::new() };
        match value {
            Value::Map(map) => keys.iter().map(|key| map.get(key).cloned()).collect(),
            _ => Vec::new(),
        }
    }

    fn same_identity(&self, left: &Value, right: &Value) -> bool {
        let (left, right) = (self.identity(left), self.identity(right));
        left.len() == right.len()
            && left.iter().zip(&right).all(|pair| match pair {
                (Some(a), Some(b)) => a.equals(b),
                (a, b) => a.is_none() && b.is_none(),
            })
    }

    fn equals(&self, other: &List) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        match &self.topology {
            Topology::Atomic => self.items.iter().zip(&other.items).all(|(a, b)| a.equals(b)),
            Topology::Set => self.items.iter().all(|a| other.items.iter().any(|b| a.equals(b))),
            Topology::Map(_) => {
                self.items.iter().all(|a| other.items.iter().any(|b| self.same_identity(a, b) && a.equals(b)))
            }
        }
    }

    /// Concatenation: sets stay sets, and keyed lists merge by key.
    pub(crate) fn concat(&self, other: &List) -> List {
        let mut items = self.items.clone();
        for item in &other.items {
            match &self.topology {
                Topology::Atomic => items.push(item.clone()),
                Topology::Set if items.iter().any(|found| found.equals(item)) => {}
                Topology::Set => items.push(item.clone()),
                Topology::Map(_) => match items.iter().position(|found| self.same_identity(found, item)) {
                    Some(at) => items[at] = item.clone(),
                    None => items.push(item.clone()),
                },
            }
        }
        List { items, topology: self.topology.clone() }
    }
}

/// A JSON value seen through its schema.
pub(crate) fn from_json(json: &Json, schema: &Schema, node: Node) -> Value {
    let invalid = |why: &str| Value::Invalid(format!("invalid data, {why}").into());
    if json.is_null() {
        return if schema.nullable {
            Value::Null
        } else {
            invalid("got null for schema with nullable=false")
        };
    }
    if schema.int_or_string {
        return match json {
            Json::String(text) => Value::string(text.as_str()),
            Json::Number(number) if number.is_i64() => Value::Int(number.as_i64().unwrap_or_default()),
            _ => invalid("expected XIntOrString value to be either a string or integer"),
        };
    }
    match (schema.ty.as_str(), json) {
        ("object", Json::Object(fields)) => object(fields, schema, node),
        ("object", _) => invalid("expected a map for the provided schema with type=object"),
        ("array", Json::Array(items)) => {
            let Some(item) = schema.item() else {
                return Value::Invalid("invalid array type, expected Items with a non-empty Schema".into());
            };
            let topology = match schema.list_type.as_deref() {
                Some("set") => Topology::Set,
                Some("map") => {
                    let keys = schema.list_map_keys.iter().filter_map(|key| escape(key));
                    Topology::Map(keys.map(|key| Key::String(key.into())).collect())
                }
                _ => Topology::Atomic,
            };
            let items = items.iter().map(|json| from_json(json, item, Node::of(item))).collect();
            Value::List(Arc::new(List { items, topology }))
        }
        ("array", _) => invalid("expected an array for the provided schema with type=array"),
        ("string", Json::String(text)) => string(text, schema),
        ("string", _) => invalid(&format!("got {} for schema with type=string", go_type(json))),
        ("number", Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
        ("integer", Json::Number(number)) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Int(number.as_f64().unwrap_or_default() as i64),
        },
        ("boolean", Json::Bool(value)) => Value::Bool(*value),
        (ty, _) => invalid(&format!("expected {ty}")),
    }
}

fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(n) if n.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn object(fields: &serde_json::Map<String, Json>, schema: &Schema, node: Node) -> Value {
    let mut map = BTreeMap::new();
    let named = node == Node::ResourceRoot || !schema.properties.is_empty();
    for (name, json) in fields {
        if node == Node::ResourceRoot && META.contains(&name.as_str()) {
            let string = Schema { ty: "string".to_owned(), ..Schema::default() };
            let value = match json {
                Json::Object(meta) => {
                    let seen = meta
                        .iter()
                        .filter(|(k, v)| matches!(k.as_str(), "name" | "generateName") && !v.is_null());
                    let seen = seen
                        .map(|(k, v)| (Key::String(k.as_str().into()), from_json(v, &string, Node::Inner)));
                    Value::Map(Arc::new(seen.collect()))
                }
                _ => from_json(json, &string, Node::Inner),
            };
            map.insert(Key::String(name.as_str().into()), value);
        } else if named {
            // null in a nullable field reads as an absent field
            if let (Some(property), Some(escaped), false) =
                (schema.properties.get(name), escape(name), json.is_null())
            {
                map.insert(Key::String(escaped.into()), from_json(json, property, Node::of(property)));
            }
        } else if let Some(values) = schema.additional.schema() {
            map.insert(Key::String(name.as_str().into()), from_json(json, values, Node::of(values)));
        }
    }
    Value::Map(Arc::new(map))
}

fn string(text: &str, schema: &Schema) -> Value {
    let read = match schema.format.as_str() {
        "duration" => time::parse_duration(text).map(Value::Duration),
        "date" => time::parse_date(text).map(Value::Timestamp),
        "date-time" => time::parse_timestamp(text).map(Value::Timestamp),
        "byte" => base64::decode(text).map(|bytes| Value::Bytes(bytes.into())),
        _ => return Value::string(text),
    };
    read.unwrap_or_else(|| Value::Invalid(format!("Invalid {} format: {text}", schema.format).into()))
}
