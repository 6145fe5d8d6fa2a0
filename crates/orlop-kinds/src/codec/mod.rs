//! What decoding into a Go struct and encoding again does to a JSON value.
//!
//! Unknown fields and nulls go, zero values appear or disappear as the struct tags say, times, quantities and
//! base64 take their canonical form, and values of the wrong type are refused in Go's words. Nothing is
//! defaulted here.

pub mod base64;
mod order;
mod time;
mod unstructured;

pub use order::{Touched, go_text};
pub(crate) use time::{instant, printed};
pub use unstructured::from_unstructured;

use crate::catalog::{Catalog, Field, Shape, Struct, Type, TypeId, catalog};
use crate::json::{self, STRICT_ERRORS_MAX, quoted};
use orlop_schema::quantity::Quantity;
use serde_json::{Map, Number, Value};
use time::Layout;

/// A value in the form of its Go type.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The value.
    pub value: Value,
    /// What strict decoding would refuse, such as `unknown field "spec.foo"`.
    pub strict: Vec<String>,
}

/// A value does not fit its Go type; the text is that of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

/// Gives a value the form of its Go type. Strict errors come in the order of the sorted keys.
pub fn decode(ty: TypeId, value: Value) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder::new(catalog());
    let out = decoder.value(ty, value, None);
    let (errors, unknown) = (decoder.errors, decoder.unknown);
    let chosen = errors.iter().find(|error| error.fatal).or(errors.first());
    match chosen {
        Some(error) => Err(DecodeError(error.text.clone())),
        None => {
            Ok(Decoded { value: out.value, strict: unknown.iter().map(|path| unknown_field(path)).collect() })
        }
    }
}

/// Reads a JSON text into the form of a Go type, with strict errors in the order of the text.
pub fn decode_json(ty: TypeId, text: &[u8]) -> Result<Decoded, DecodeError> {
    let parsed = json::parse(text).map_err(|error| DecodeError(error.to_string()))?;
    let mut decoder = Decoder::new(catalog());
    let out = decoder.value(ty, parsed.value, None);
    let Decoder { mut errors, unknown, opaque, .. } = decoder;
    if errors.len() > 1 {
        let order = json::paths(text);
        errors.sort_by_key(|error| order.iter().position(|path| *path == error.path));
    }
    if let Some(error) = errors.iter().find(|error| error.fatal).or(errors.first()) {
        return Err(DecodeError(error.text.clone()));
    }
    // What Go skips without looking inside has no duplicates for it.
    let skipped = |path: &String| {
        let below = |top: &String| path.strip_prefix(top.as_str()).is_some_and(|r| r.starts_with(['.', '[']));
        unknown.contains(path) || unknown.iter().chain(&opaque).any(below)
    };
    let duplicates = parsed.duplicates.iter().filter(|path| !skipped(path));
    let mut strict: Vec<(&String, String)> = unknown.iter().map(|path| (path, unknown_field(path))).collect();
    strict.extend(duplicates.map(|path| (path, format!("duplicate field {}", quoted(path)))));
    if strict.len() > 1 {
        let order = json::paths(text);
        let place = |(path, error): &(&String, String)| {
            let mut places = order.iter().enumerate().filter(|(_, p)| p == path).map(|(i, _)| i);
            // A duplicate is noticed where the field stands the second time.
            if error.starts_with("dup") { places.nth(1) } else { places.next() }
        };
        strict.sort_by_key(place);
    }
    strict.truncate(STRICT_ERRORS_MAX);
    Ok(Decoded { value: out.value, strict: strict.into_iter().map(|(_, error)| error).collect() })
}

/// What storing a value as protobuf and reading it back does: the difference between empty and absent lists and
/// maps is lost, and absent bytes in a map are empty.
pub fn through_storage(ty: TypeId, value: &mut Value) {
    let catalog = catalog();
    match (&catalog.get(ty).shape, value) {
        (Shape::Pointer(inner), value) if !value.is_null() => through_storage(*inner, value),
        (Shape::Struct(owner), Value::Object(map)) => {
            for (name, child) in map {
                if let Some(field) = owner.field(name) {
                    through_storage(field.ty, child);
                }
            }
        }
        (Shape::List(inner), value) => match value {
            Value::Array(items) if !items.is_empty() => items.iter_mut().for_each(|i| inside(*inner, i)),
            value => *value = Value::Null,
        },
        (Shape::Map(inner), value) => match value {
            Value::Object(map) if !map.is_empty() => map.values_mut().for_each(|i| inside(*inner, i)),
            value => *value = Value::Null,
        },
        _ => {}
    }
}

/// [`through_storage`] for an item of a list or map.
fn inside(ty: TypeId, item: &mut Value) {
    if matches!(catalog().get(ty).shape, Shape::Bytes) && item.is_null() {
        *item = Value::String(String::new());
    } else {
        through_storage(ty, item);
    }
}

/// The zero value of a type as it prints.
pub fn zero(ty: TypeId) -> &'static Value {
    zero_of(catalog(), ty)
}

fn zero_of(catalog: &'static Catalog, ty: TypeId) -> &'static Value {
    let ty = catalog.get(ty);
    // Filled without `get_or_init`, because a struct needs the zero values of its fields first.
    if let Some(zero) = ty.zero.get() {
        return zero;
    }
    let zero = match &ty.shape {
        Shape::Struct(owner) => Value::Object(
            owner
                .fields
                .iter()
                .filter(|field| prints_when_missing(catalog, field))
                .map(|field| (field.name.to_owned(), zero_of(catalog, field.ty).clone()))
                .collect(),
        ),
        Shape::String => Value::String(String::new()),
        Shape::Bool => Value::Bool(false),
        Shape::Int(..) | Shape::Float | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::SchemaOrBool(_) => Value::Bool(false),
        _ => Value::Null,
    };
    ty.zero.get_or_init(|| zero)
}

fn prints_when_missing(catalog: &Catalog, field: &Field) -> bool {
    let empty = matches!(
        catalog.get(field.ty).shape,
        Shape::Pointer(_)
            | Shape::List(_)
            | Shape::Map(_)
            | Shape::String
            | Shape::Bool
            | Shape::Int(..)
            | Shape::Float
            | Shape::Bytes
            | Shape::Any
    );
    !(field.omit_zero || field.omit_empty && empty)
}

fn unknown_field(path: &str) -> String {
    format!("unknown field {}", quoted(path))
}

/// Where the decoder is, as a chain of stack frames; only spelled out when something is wrong there.
#[derive(Clone, Copy)]
struct Crumb<'a> {
    parent: Option<&'a Crumb<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a Type, &'a Field),
    Key(&'a str),
    Index(usize),
    /// Below here is a value with its own JSON form: type errors keep naming the struct around it.
    Apart,
}

/// The path as strict errors spell it: `spec.containers[0].name`.
fn strict_path(crumb: Option<&Crumb<'_>>, into: &mut String) {
    let Some(crumb) = crumb else { return };
    strict_path(crumb.parent, into);
    let name = match crumb.step {
        Step::Field(_, field) => field.name,
        Step::Key(key) => key,
        Step::Index(index) => {
            into.push('[');
            into.push_str(&index.to_string());
            into.push(']');
            return;
        }
        Step::Apart => return,
    };
    if !into.is_empty() {
        into.push('.');
    }
    into.push_str(name);
}

/// The path as type errors spell it, and the struct they name: `spec.containers.name` and `Container`.
fn field_path<'a>(crumb: Option<&Crumb<'a>>, names: &mut Vec<&'a str>) -> Owner<'a> {
    let Some(crumb) = crumb else { return Owner { ty: None, fixed: false } };
    let outer = field_path(crumb.parent, names);
    match crumb.step {
        Step::Field(owner, field) => {
            names.extend(&field.within);
            names.push(field.name);
            if outer.fixed { outer } else { Owner { ty: Some(owner), fixed: false } }
        }
        Step::Apart => Owner { fixed: true, ..outer },
        Step::Key(_) | Step::Index(_) => outer,
    }
}

struct Owner<'a> {
    ty: Option<&'a Type>,
    fixed: bool,
}

struct Problem {
    path: String,
    text: String,
    /// Go stops at once, whatever was wrong before.
    fatal: bool,
}

/// A decoded value: how it prints, and whether `omitempty` or `omitzero` drop it.
struct Out {
    value: Value,
    empty: bool,
    zero: bool,
}

impl Out {
    /// A value that is always printed.
    fn kept(value: Value) -> Self {
        Self { value, empty: false, zero: false }
    }

    /// A scalar, which is dropped by both options when zero.
    fn scalar(value: Value, zero: bool) -> Self {
        Self { value, empty: zero, zero }
    }
}

struct Decoder {
    catalog: &'static Catalog,
    errors: Vec<Problem>,
    unknown: Vec<String>,
    /// The places of values with their own JSON form, which strict decoding does not look into.
    opaque: Vec<String>,
    /// Inside a value with its own JSON form: unknown fields are not reported.
    lenient: bool,
}

impl Decoder {
    fn new(catalog: &'static Catalog) -> Self {
        Self { catalog, errors: Vec::new(), unknown: Vec::new(), opaque: Vec::new(), lenient: false }
    }

    fn value(&mut self, id: TypeId, value: Value, at: Option<&Crumb<'_>>) -> Out {
        let ty = self.catalog.get(id);
        match (&ty.shape, value) {
            (Shape::Pointer(inner), value) => match value {
                Value::Null => Out { value: Value::Null, empty: true, zero: true },
                value => Out::kept(self.value(*inner, value, at).value),
            },
            (Shape::Struct(owner), Value::Object(map)) => self.structure(ty, owner, map, at),
            (Shape::List(inner), Value::Array(items)) => {
                let decoded: Vec<Value> = items
                    .into_iter()
                    .enumerate()
                    .map(|(i, item)| {
                        self.value(*inner, item, Some(&Crumb { parent: at, step: Step::Index(i) })).value
                    })
                    .collect();
                Out { empty: decoded.is_empty(), value: Value::Array(decoded), zero: false }
            }
            (Shape::Map(inner), Value::Object(mut map)) => {
                for (key, value) in &mut map {
                    let here = Crumb { parent: at, step: Step::Key(key) };
                    *value = self.value(*inner, value.take(), Some(&here)).value;
                }
                Out { empty: map.is_empty(), value: Value::Object(map), zero: false }
            }
            (Shape::String, Value::String(text)) => {
                let zero = text.is_empty();
                Out::scalar(Value::String(text), zero)
            }
            (Shape::Bool, Value::Bool(flag)) => Out::scalar(Value::Bool(flag), !flag),
            (Shape::Int(min, max), Value::Number(number)) => match number.as_i64() {
                Some(n) if (*min..=*max).contains(&n) => Out::scalar(Value::Number(number), n == 0),
                _ => self.mismatch(&format!("number {number}"), ty.go, false, id, at),
            },
            (Shape::Float, Value::Number(number)) => {
                let zero = number.as_f64() == Some(0.0);
                let whole = json::integral(&number).map_or(number, Number::from);
                Out::scalar(Value::Number(whole), zero)
            }
            (Shape::Bytes, Value::String(text)) => match base64::decode(&text) {
                Ok(bytes) => {
                    Out { value: Value::String(base64::encode(&bytes)), empty: bytes.is_empty(), zero: false }
                }
                Err(error) => self.problem(error, false, id, at),
            },
            (Shape::Bytes, Value::Array(items)) => self.byte_list(&items, id, at),
            (Shape::Time, value) => self.time(value, Layout::Seconds, id, at),
            (Shape::MicroTime, value) => self.time(value, Layout::Micros, id, at),
            (Shape::Quantity, value) => self.quantity(&value, id, at),
            (Shape::IntOrString, value) => self.int_or_string(value, id, at),
            (Shape::Raw | Shape::Json | Shape::Fields, value) => {
                self.skip(at);
                let zero = value.is_null();
                Out { value, empty: false, zero }
            }
            (Shape::SchemaOrBool(_), value @ Value::Bool(_)) => Out::kept(value),
            (Shape::SchemaOrBool(_), value) if !value.is_object() => {
                self.problem("boolean or JSON schema expected".to_owned(), true, id, at)
            }
            (
                Shape::SchemaOrBool(schema) | Shape::SchemaOrList(schema) | Shape::SchemaOrStrings(schema),
                value @ Value::Object(_),
            ) => Out::kept(self.apart(*schema, value, at)),
            (Shape::SchemaOrList(schema), Value::Array(items)) => {
                let schemas: Vec<_> = items.into_iter().map(|item| self.apart(*schema, item, at)).collect();
                Out::kept(if schemas.is_empty() { Value::Null } else { Value::Array(schemas) })
            }
            (Shape::SchemaOrStrings(_), Value::Array(items)) => {
                if let Some(wrong) = items.iter().find(|item| !item.is_string()) {
                    return self.mismatch(kind_of(wrong), "string", true, id, at);
                }
                Out::kept(if items.is_empty() { Value::Null } else { Value::Array(items) })
            }
            (Shape::SchemaOrList(_) | Shape::SchemaOrStrings(_), _) => Out::kept(Value::Null),
            (_, Value::Null) => self.nothing(id),
            (_, other) => self.mismatch(kind_of(&other), ty.go, false, id, at),
        }
    }

    /// Walks the keys and the fields together: both are sorted by name.
    fn structure(
        &mut self,
        ty: &Type,
        owner: &Struct,
        map: Map<String, Value>,
        at: Option<&Crumb<'_>>,
    ) -> Out {
        let mut out = Map::new();
        let mut zero = true;
        let mut fields = owner.fields.iter().peekable();
        let catalog = self.catalog;
        let fill = |field: &Field, out: &mut Map<String, Value>| {
            if prints_when_missing(catalog, field) {
                out.insert(field.name.to_owned(), zero_of(catalog, field.ty).clone());
            }
        };
        for (key, value) in map {
            while let Some(field) = fields.next_if(|field| field.name < key.as_str()) {
                fill(field, &mut out);
            }
            let Some(field) = fields.next_if(|field| field.name == key) else {
                if !self.lenient && self.unknown.len() < STRICT_ERRORS_MAX {
                    let here = Crumb { parent: at, step: Step::Key(&key) };
                    let mut path = String::new();
                    strict_path(Some(&here), &mut path);
                    self.unknown.push(path);
                }
                continue;
            };
            let here = Crumb { parent: at, step: Step::Field(ty, field) };
            let decoded = self.value(field.ty, value, Some(&here));
            zero &= decoded.zero;
            if !(field.omit_empty && decoded.empty || field.omit_zero && decoded.zero) {
                out.insert(key, decoded.value);
            }
        }
        for field in fields {
            fill(field, &mut out);
        }
        Out { value: Value::Object(out), empty: false, zero }
    }

    /// A schema inside a value with its own JSON form, which is read leniently.
    fn apart(&mut self, schema: TypeId, value: Value, at: Option<&Crumb<'_>>) -> Value {
        self.skip(at);
        let before = self.errors.len();
        let lenient = std::mem::replace(&mut self.lenient, true);
        let out = self.value(schema, value, Some(&Crumb { parent: at, step: Step::Apart }));
        self.lenient = lenient;
        for error in &mut self.errors[before..] {
            error.fatal = true;
        }
        out.value
    }

    fn skip(&mut self, at: Option<&Crumb<'_>>) {
        let mut path = String::new();
        strict_path(at, &mut path);
        self.opaque.push(path);
    }

    /// Bytes given as a list of numbers, which Go reads too.
    fn byte_list(&mut self, items: &[Value], id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        let mut bytes = Vec::with_capacity(items.len());
        for item in items {
            match (item, item.as_u64().and_then(|n| u8::try_from(n).ok())) {
                (_, Some(byte)) => bytes.push(byte),
                (Value::Null, None) => bytes.push(0),
                (Value::Number(number), None) => {
                    return self.mismatch(&format!("number {number}"), "uint8", false, id, at);
                }
                (other, None) => return self.mismatch(kind_of(other), "uint8", false, id, at),
            }
        }
        Out { value: Value::String(base64::encode(&bytes)), empty: bytes.is_empty(), zero: false }
    }

    fn time(&mut self, value: Value, layout: Layout, id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        match value {
            Value::Null => self.nothing(id),
            Value::String(text) => match time::canonical(&text, layout) {
                Ok(Some(text)) => Out::kept(Value::String(text)),
                Ok(None) => self.nothing(id),
                Err(error) => self.problem(error, true, id, at),
            },
            other => self.mismatch(kind_of(&other), "string", true, id, at),
        }
    }

    fn quantity(&mut self, value: &Value, id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        let parsed = match value {
            Value::Null => return self.nothing(id),
            Value::String(text) => Quantity::parse(text.trim()),
            other => Quantity::parse(&other.to_string()),
        };
        match parsed {
            Ok(quantity) => Out::kept(Value::String(quantity.to_string())),
            Err(error) => self.problem(error.to_string(), true, id, at),
        }
    }

    fn int_or_string(&mut self, value: Value, id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        let kind = match &value {
            Value::Null => return self.nothing(id),
            Value::String(_) => return Out::kept(value),
            Value::Number(number) => match number.as_i64() {
                Some(n) if i32::try_from(n).is_ok() => {
                    return Out { value, empty: false, zero: n == 0 };
                }
                _ => format!("number {number}"),
            },
            other => kind_of(other).to_owned(),
        };
        self.mismatch(&kind, "int32", true, id, at)
    }

    fn nothing(&self, id: TypeId) -> Out {
        let value = zero_of(self.catalog, id).clone();
        let empty = !matches!(
            self.catalog.get(id).shape,
            Shape::Struct(_)
                | Shape::Time
                | Shape::MicroTime
                | Shape::Duration
                | Shape::Quantity
                | Shape::IntOrString
        );
        Out { value, empty, zero: true }
    }

    /// A value of one kind stands where Go has another type.
    fn mismatch(&mut self, kind: &str, go: &str, fatal: bool, id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        let mut names = Vec::new();
        let target = match field_path(at, &mut names).ty {
            Some(owner) => {
                let name = owner.go.rsplit_once('.').map_or(owner.go, |(_, name)| name);
                format!("struct field {name}.{}", names.join("."))
            }
            None => "value".to_owned(),
        };
        self.problem(format!("json: cannot unmarshal {kind} into Go {target} of type {go}"), fatal, id, at)
    }

    fn problem(&mut self, text: String, fatal: bool, id: TypeId, at: Option<&Crumb<'_>>) -> Out {
        let mut path = String::new();
        strict_path(at, &mut path);
        self.errors.push(Problem { path, text, fatal });
        self.nothing(id)
    }
}

/// The word for a JSON type in Go's errors.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
