//! The Go types of the API: which fields a struct has, how they print, and their protobuf numbers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

/// The number of a type in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(u32);

impl TypeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A Go type.
#[derive(Debug)]
pub struct Type {
    /// How Go prints the type, such as `v1.PodSpec` or `[]string`.
    pub go: &'static str,
    /// The OpenAPI name, such as `io.k8s.api.core.v1.PodSpec`; empty for types without one.
    pub model: &'static str,
    /// What it looks like.
    pub shape: Shape,
    /// How the zero value prints; filled by the codec on first use.
    pub(crate) zero: OnceLock<Value>,
}

/// What a value of a type looks like in JSON.
#[derive(Debug)]
pub enum Shape {
    /// A struct.
    Struct(Struct),
    /// A pointer: the value or nothing.
    Pointer(TypeId),
    /// A slice.
    List(TypeId),
    /// A map with string keys.
    Map(TypeId),
    /// A string.
    String,
    /// A boolean.
    Bool,
    /// An integer between two bounds.
    Int(i64, i64),
    /// A 64-bit float.
    Float,
    /// Bytes, in base64.
    Bytes,
    /// `metav1.Time`: seconds.
    Time,
    /// `metav1.MicroTime`: microseconds.
    MicroTime,
    /// `metav1.Duration`: text such as `1h0m0s`.
    Duration,
    /// A quantity.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// Any object of any kind, kept as it is.
    Raw,
    /// The field set of a managed-fields entry.
    Fields,
    /// Any JSON.
    Json,
    /// A schema or a boolean.
    SchemaOrBool(TypeId),
    /// A schema or a list of schemas.
    SchemaOrList(TypeId),
    /// A schema or a list of strings.
    SchemaOrStrings(TypeId),
    /// A Go interface, which JSON cannot fill.
    Any,
}

/// The fields of a struct.
#[derive(Debug, Default)]
pub struct Struct {
    /// The fields as JSON has them: embedded structs are spread; sorted by name.
    pub fields: Vec<Field>,
    /// The fields as declared, for protobuf: embedded structs are fields of their own.
    pub declared: Vec<Declared>,
}

impl Struct {
    /// The field with a JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.cmp(name)).ok().map(|i| &self.fields[i])
    }
}

/// A field as JSON has it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The JSON name.
    pub name: &'static str,
    /// The names of embedded structs the field was found in, outermost first.
    pub within: Vec<&'static str>,
    /// Whether empty values are left out.
    pub omit_empty: bool,
    /// Whether the zero value is left out.
    pub omit_zero: bool,
    /// The type.
    pub ty: TypeId,
}

/// A field as Go declares it.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The JSON name, or the Go name of an embedded struct.
    pub name: &'static str,
    /// Whether this is an embedded struct whose fields are spread in JSON.
    pub inline: bool,
    /// Whether empty values are left out.
    pub omit_empty: bool,
    /// Whether the zero value is left out.
    pub omit_zero: bool,
    /// The type.
    pub ty: TypeId,
    /// The protobuf field number; 0 for fields without one.
    pub number: u32,
    /// The protobuf wire type: `v` varint, `b` bytes, `f` fixed; empty without a number.
    pub wire: &'static str,
}

/// All types, by number, kind and OpenAPI name.
pub(super) struct Table {
    types: Vec<Type>,
    kinds: BTreeMap<(&'static str, &'static str, &'static str), TypeId>,
    models: BTreeMap<&'static str, TypeId>,
}

impl Table {
    /// Reads lines `T id code go model [type]`, each struct followed by its `F name flags type protobuf`
    /// lines, and `K group version kind type`, all separated by tabs.
    pub(super) fn parse(text: &'static str) -> Self {
        let mut table = Self { types: Vec::new(), kinds: BTreeMap::new(), models: BTreeMap::new() };
        for line in text.lines() {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap_or_default();
            match next() {
                "T" => {
                    let (id, code, go, model) = (next(), next(), next(), next());
                    let id = number(id);
                    if !model.is_empty() {
                        table.models.insert(model, id);
                    }
                    let shape = shape(code, number(next()));
                    table.types.push(Type { go, model, shape, zero: OnceLock::new() });
                }
                "F" => {
                    let (name, flags, ty, tag) = (next(), next(), number(next()), next());
                    let (digits, wire) = tag.split_at(tag.len().saturating_sub(1));
                    if let Some(Type { shape: Shape::Struct(owner), .. }) = table.types.last_mut() {
                        owner.declared.push(Declared {
                            name,
                            inline: flags.contains('i'),
                            omit_empty: flags.contains('o'),
                            omit_zero: flags.contains('z'),
                            ty,
                            number: digits.parse().unwrap_or_default(),
                            wire,
                        });
                    }
                }
                "K" => {
                    let (group, version, kind) = (next(), next(), next());
                    table.kinds.insert((group, version, kind), number(next()));
                }
                _ => {}
            }
        }
        for index in 0..table.types.len() {
            let mut fields = Vec::new();
            table.spread(TypeId(index as u32), &[], &mut fields);
            fields.sort_by_key(|field| field.name);
            if let Shape::Struct(owner) = &mut table.types[index].shape {
                owner.fields = fields;
            }
        }
        table
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.types.iter().enumerate().map(|(i, ty)| (TypeId(i as u32), ty))
    }

    pub(super) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(group, version, kind)).copied()
    }

    pub(super) fn of_model(&self, model: &str) -> Option<TypeId> {
        self.models.get(model).copied()
    }

    fn spread(&self, id: TypeId, within: &[&'static str], into: &mut Vec<Field>) {
        let Shape::Struct(owner) = &self.get(id).shape else { return };
        for field in &owner.declared {
            if field.inline {
                let within = [within, &[field.name]].concat();
                self.spread(field.ty, &within, into);
            } else {
                into.push(Field {
                    name: field.name,
                    within: within.to_vec(),
                    omit_empty: field.omit_empty,
                    omit_zero: field.omit_zero,
                    ty: field.ty,
                });
            }
        }
    }
}

fn number(text: &str) -> TypeId {
    TypeId(text.parse().unwrap_or_default())
}

fn shape(code: &str, inner: TypeId) -> Shape {
    match code {
        "struct" => Shape::Struct(Struct::default()),
        "ptr" => Shape::Pointer(inner),
        "list" => Shape::List(inner),
        "map" => Shape::Map(inner),
        "string" => Shape::String,
        "bool" => Shape::Bool,
        "int32" => Shape::Int(i32::MIN.into(), i32::MAX.into()),
        "int64" => Shape::Int(i64::MIN, i64::MAX),
        "uint8" => Shape::Int(0, u8::MAX.into()),
        "uint16" => Shape::Int(0, u16::MAX.into()),
        "uint32" => Shape::Int(0, u32::MAX.into()),
        "float64" => Shape::Float,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "duration" => Shape::Duration,
        "quantity" => Shape::Quantity,
        "intorstring" => Shape::IntOrString,
        "raw" => Shape::Raw,
        "fields" => Shape::Fields,
        "json" => Shape::Json,
        "propsorbool" => Shape::SchemaOrBool(inner),
        "propsorarray" => Shape::SchemaOrList(inner),
        "propsorstrings" => Shape::SchemaOrStrings(inner),
        _ => Shape::Any,
    }
}
