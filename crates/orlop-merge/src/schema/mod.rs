//! What merging must know of a type: which lists have keys, which containers are one value.
//!
//! Types are read from OpenAPI definitions, one at a time and when first needed ([`Schema::new`]), or from the
//! structural schema of a custom resource ([`Schema::custom_resource`]). Validation has no place here.

mod convert;
mod custom_resource;
mod empty;

pub use custom_resource::UnknownFields;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map as JsonMap, Value};

/// OpenAPI definitions by name, as in `components.schemas` of OpenAPI v3.
///
/// OpenAPI v2 works as well, but only v3 has the `default`s from which list keys and empty objects are known.
pub trait Definitions: Send + Sync {
    /// The names of all definitions.
    fn names(&self) -> Vec<String>;

    /// The definition with this name.
    fn definition(&self, name: &str) -> Option<Value>;
}

impl Definitions for BTreeMap<String, Value> {
    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn definition(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

impl Definitions for JsonMap<String, Value> {
    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn definition(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

/// A family of types that refer to each other by name; each is converted when first used.
pub struct Schema {
    names: Vec<String>,
    definitions: Box<dyn Definitions>,
    types: Box<[OnceLock<Option<Type>>]>,
}

/// A type to merge objects of: a schema and the type of the whole object.
#[derive(Clone)]
pub struct ObjectType {
    schema: Arc<Schema>,
    root: TypeRef,
}

/// What a value of a type may be; several at once for types that accept anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Type {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<Box<List>>,
    pub(crate) map: Option<Box<Map>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) element: TypeRef,
    pub(crate) associative: bool,
    /// The fields that tell items apart; empty for sets.
    pub(crate) keys: Vec<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) fields: BTreeMap<Arc<str>, Field>,
    /// The type of keys that are not declared; none are allowed without it.
    pub(crate) element: Option<TypeRef>,
    pub(crate) atomic: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) ty: TypeRef,
    pub(crate) default: Option<Value>,
    pub(crate) required: bool,
    pub(crate) patch: Patch,
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patch {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    pub(crate) merge_key: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeRef {
    /// A definition, by its position.
    Named(usize),
    /// A definition, but atomic or granular as the field says.
    NamedAs { index: usize, atomic: bool },
    /// A type without a name.
    Inline(Box<Type>),
    /// Anything, one value.
    Untyped,
    /// Anything, maps merged by key.
    Deduced,
    /// A name without a definition.
    Missing(Arc<str>),
}

/// A resolved type: what a value may be here, with the overrides of the reference applied.
#[derive(Clone, Copy)]
pub(crate) struct Atom<'s> {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<ListAtom<'s>>,
    pub(crate) map: Option<MapAtom<'s>>,
}

#[derive(Clone, Copy)]
pub(crate) struct ListAtom<'s> {
    pub(crate) list: &'s List,
    pub(crate) associative: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct MapAtom<'s> {
    pub(crate) map: &'s Map,
    pub(crate) atomic: bool,
}

impl Schema {
    /// A schema over OpenAPI definitions; nothing is converted yet.
    pub fn new(definitions: impl Definitions + 'static) -> Arc<Self> {
        let mut names = definitions.names();
        names.sort_unstable();
        let types = names.iter().map(|_| OnceLock::new()).collect();
        Arc::new(Self { names, definitions: Box::new(definitions), types })
    }

    /// The object type of a definition; none if there is no such definition.
    pub fn object_type(self: &Arc<Self>, name: &str) -> Option<ObjectType> {
        let root = TypeRef::Named(self.index_of(name)?);
        Some(ObjectType { schema: Arc::clone(self), root })
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|candidate| candidate.as_str().cmp(name)).ok()
    }

    pub(crate) fn name_of<'s>(&'s self, ty: &'s TypeRef) -> Option<&'s str> {
        match ty {
            TypeRef::Named(index) | TypeRef::NamedAs { index, .. } => {
                self.names.get(*index).map(String::as_str)
            }
            TypeRef::Untyped => Some(UNTYPED_NAME),
            TypeRef::Deduced => Some(DEDUCED_NAME),
            TypeRef::Missing(name) => Some(name),
            TypeRef::Inline(_) => None,
        }
    }

    /// What a value of this type may be; none if the type has no definition.
    pub(crate) fn resolve<'s>(&'s self, ty: &'s TypeRef) -> Option<Atom<'s>> {
        match ty {
            TypeRef::Named(index) => self.named(*index).map(Type::atom),
            TypeRef::NamedAs { index, atomic } => {
                let mut atom = self.named(*index)?.atom();
                if let Some(map) = &mut atom.map {
                    map.atomic = *atomic;
                } else if let Some(list) = &mut atom.list {
                    list.associative = false;
                } else {
                    return None;
                }
                Some(atom)
            }
            TypeRef::Inline(ty) => Some(ty.atom()),
            TypeRef::Untyped => Some(untyped().atom()),
            TypeRef::Deduced => Some(deduced().atom()),
            TypeRef::Missing(_) => None,
        }
    }

    fn named(&self, index: usize) -> Option<&Type> {
        let name = self.names.get(index)?;
        self.types
            .get(index)?
            .get_or_init(|| {
                let definition = self.definitions.definition(name)?;
                convert::definition(self, name, &definition)
            })
            .as_ref()
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("definitions", &self.names.len()).finish_non_exhaustive()
    }
}

impl ObjectType {
    /// The type of objects of which nothing is known: maps merge by key, lists are one value.
    pub fn deduced() -> Self {
        static EMPTY: OnceLock<Arc<Schema>> = OnceLock::new();
        let schema = EMPTY.get_or_init(|| Schema::new(BTreeMap::new()));
        Self { schema: Arc::clone(schema), root: TypeRef::Deduced }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn root(&self) -> &TypeRef {
        &self.root
    }
}

impl std::fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ObjectType").field(&self.schema.name_of(&self.root).unwrap_or("inline")).finish()
    }
}

impl Type {
    fn atom(&self) -> Atom<'_> {
        Atom {
            scalar: self.scalar,
            list: self.list.as_deref().map(|list| ListAtom { list, associative: list.associative }),
            map: self.map.as_deref().map(|map| MapAtom { map, atomic: map.atomic }),
        }
    }
}

impl<'s> Atom<'s> {
    /// The one kind that fits the value; all of them for null or when none fits.
    pub(crate) fn deduce(self, value: &Value) -> Self {
        let none = Atom { scalar: None, list: None, map: None };
        match value {
            Value::Number(_) | Value::String(_) | Value::Bool(_) if self.scalar.is_some() => {
                Atom { scalar: self.scalar, ..none }
            }
            Value::Array(_) if self.list.is_some() => Atom { list: self.list, ..none },
            Value::Object(_) if self.map.is_some() => Atom { map: self.map, ..none },
            _ => self,
        }
    }

    /// Whether both deduced from the same type to the same kinds.
    pub(crate) fn same_kinds(self, other: Self) -> bool {
        self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
            && self.map.is_some() == other.map.is_some()
    }

    /// The kind that counts when a value may be several.
    pub(crate) fn kind(self) -> Kind<'s> {
        match self {
            Atom { map: Some(map), .. } => Kind::Map(map),
            Atom { scalar: Some(scalar), .. } => Kind::Scalar(scalar),
            Atom { list: Some(list), .. } => Kind::List(list),
            _ => Kind::Invalid,
        }
    }
}

/// One kind of an [`Atom`].
#[derive(Clone, Copy)]
pub(crate) enum Kind<'s> {
    Map(MapAtom<'s>),
    Scalar(Scalar),
    List(ListAtom<'s>),
    Invalid,
}

impl Map {
    /// The type of a key: its field's, else the one of undeclared keys.
    pub(crate) fn type_of(&self, key: &str) -> Option<&TypeRef> {
        self.fields.get(key).map(|field| &field.ty).or(self.element.as_ref())
    }

    /// Whether nothing is known of the keys.
    pub(crate) fn is_deduced(&self) -> bool {
        self.fields.is_empty()
            && match &self.element {
                Some(TypeRef::Deduced) => true,
                Some(TypeRef::Inline(ty)) => ty.scalar == Some(Scalar::Untyped),
                _ => false,
            }
    }
}

pub(crate) const UNTYPED_NAME: &str = "__untyped_atomic_";
pub(crate) const DEDUCED_NAME: &str = "__untyped_deduced_";

fn untyped() -> &'static Type {
    static UNTYPED: OnceLock<Type> = OnceLock::new();
    UNTYPED.get_or_init(|| any(TypeRef::Untyped, true))
}

fn deduced() -> &'static Type {
    static DEDUCED: OnceLock<Type> = OnceLock::new();
    DEDUCED.get_or_init(|| any(TypeRef::Deduced, false))
}

fn any(element: TypeRef, atomic: bool) -> Type {
    Type {
        scalar: Some(Scalar::Untyped),
        list: Some(Box::new(List { element: TypeRef::Untyped, associative: false, keys: Vec::new() })),
        map: Some(Box::new(Map { fields: BTreeMap::new(), element: Some(element), atomic })),
    }
}

#[cfg(test)]
mod tests;
