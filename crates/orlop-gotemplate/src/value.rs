//! Values: Go's kinds, with maps that are shared and can be changed, and strings of any bytes.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use crate::error::FuncError;
use crate::func::Func;
use crate::types::{Int, Type, Uint};

/// An immutable, shared byte string; Go's strings need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(Rc<[u8]>);

/// What templates compute with. Cloning is cheap: containers are shared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Value {
    /// The untyped nil: nothing there
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// A signed integer
    Int(Int, i64),
    /// An unsigned integer
    Uint(Uint, u64),
    /// `float32`
    Float32(f32),
    /// `float64`
    Float(f64),
    /// `complex128`
    Complex(f64, f64),
    /// `string`
    Str(Str),
    /// `[]byte`
    Bytes(Str),
    /// A slice
    List(Rc<List>),
    /// A map with string keys
    Map(Rc<Map>),
    /// A struct, a pointer or a named type of the host
    Object(Rc<dyn Object>),
    /// A function
    Func(Rc<Func>),
    /// The nil of a map, slice, pointer or function type
    TypedNil(Rc<Type>),
}

/// A slice: a window on shared elements.
pub struct List {
    elem: Rc<Type>,
    items: Rc<[Value]>,
    start: usize,
    end: usize,
    cap_end: usize,
}

/// A map from strings, shared by everyone who holds it.
pub struct Map {
    elem: Rc<Type>,
    entries: RefCell<BTreeMap<Str, Value>>,
}

/// A struct, pointer, iterator or named type that the host lends to templates.
pub trait Object {
    /// The type as `%T` prints it, such as `*common.Capabilities`.
    fn type_name(&self) -> Rc<str>;

    /// The value behind a named basic, map or slice type, which then behaves as that value.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// A method bound to this object.
    fn method(&self, name: &[u8]) -> Option<Rc<Func>> {
        let _ = name;
        None
    }

    /// An exported field and its static type.
    fn field(&self, name: &[u8]) -> Option<Value> {
        let _ = name;
        None
    }

    /// All fields in order, for printing.
    fn fields(&self) -> Vec<(Str, Value)> {
        Vec::new()
    }

    /// What `String()` or `Error()` answers, where the type has it.
    fn string(&self) -> Option<Str> {
        None
    }

    /// The steps of an iterator function, where the object is one.
    fn iterate(&self) -> Option<Iterate<'_>> {
        None
    }
}

/// What an iterator function yields.
pub enum Iterate<'a> {
    /// `iter.Seq`
    Seq(Box<dyn Iterator<Item = Value> + 'a>),
    /// `iter.Seq2`
    Seq2(Box<dyn Iterator<Item = (Value, Value)> + 'a>),
}

impl Str {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, with what is no UTF-8 replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Deref for Str {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(Rc::from(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(Rc::from(text.into_bytes()))
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self(Rc::from(bytes))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Rc::from(bytes))
    }
}

impl List {
    /// `[]interface {}` with these elements.
    pub fn new(items: Vec<Value>) -> Self {
        Self::typed(Type::Any, items)
    }

    /// `[]T` with these elements; each must be a `T`.
    pub fn typed(elem: Type, items: Vec<Value>) -> Self {
        let end = items.len();
        Self { elem: Rc::new(elem), items: Rc::from(items), start: 0, end, cap_end: end }
    }

    /// The elements.
    pub fn items(&self) -> &[Value] {
        &self.items[self.start..self.end]
    }

    /// The type of the elements.
    pub fn elem(&self) -> &Type {
        &self.elem
    }

    pub(crate) fn elem_rc(&self) -> &Rc<Type> {
        &self.elem
    }

    /// How far the slice can be grown by slicing.
    pub(crate) fn capacity(&self) -> usize {
        self.cap_end - self.start
    }

    /// `list[from:to:cap]` on the same elements; the caller has checked the bounds.
    pub(crate) fn window(&self, from: usize, to: usize, cap: usize) -> Self {
        Self {
            elem: Rc::clone(&self.elem),
            items: Rc::clone(&self.items),
            start: self.start + from,
            end: self.start + to,
            cap_end: self.start + cap,
        }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", Type::List(Rc::clone(&self.elem)), self.items().len())
    }
}

impl Map {
    /// `map[string]interface {}` with these entries.
    pub fn new(entries: BTreeMap<Str, Value>) -> Self {
        Self::typed(Type::Any, entries)
    }

    /// `map[string]T` with these entries; each must be a `T`.
    pub fn typed(elem: Type, entries: BTreeMap<Str, Value>) -> Self {
        Self { elem: Rc::new(elem), entries: RefCell::new(entries) }
    }

    /// The type of the values.
    pub fn elem(&self) -> &Type {
        &self.elem
    }

    pub(crate) fn elem_rc(&self) -> &Rc<Type> {
        &self.elem
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    /// Sets a key for everyone who holds this map.
    pub fn set(&self, key: impl Into<Str>, value: Value) -> Option<Value> {
        self.entries.borrow_mut().insert(key.into(), value)
    }

    /// Removes a key for everyone who holds this map.
    pub fn remove(&self, key: &[u8]) -> Option<Value> {
        self.entries.borrow_mut().remove(key)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }

    /// The entries as they are now, in the order of their keys.
    pub fn entries(&self) -> Vec<(Str, Value)> {
        self.entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Calls `visit` for each entry in the order of the keys; it must not change this map.
    pub fn for_each(&self, mut visit: impl FnMut(&Str, &Value)) {
        self.entries.borrow().iter().for_each(|(key, value)| visit(key, value));
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Maps can contain themselves; their keys are enough to look at.
        f.debug_set().entries(self.entries.borrow().keys()).finish()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let mut inside = Vec::new();
        self.take_containers(&mut inside);
        dismantle(inside);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let mut inside = Vec::new();
        self.take_containers(&mut inside);
        dismantle(inside);
    }
}

impl List {
    /// Moves out the containers that nobody else holds.
    fn take_containers(&mut self, out: &mut Vec<Value>) {
        if let Some(items) = Rc::get_mut(&mut self.items) {
            out.extend(items.iter_mut().filter(|item| item.is_last_of_container()).map(std::mem::take));
        }
    }
}

impl Map {
    /// Moves out the containers that nobody else holds.
    fn take_containers(&mut self, out: &mut Vec<Value>) {
        let entries = self.entries.get_mut().values_mut();
        out.extend(entries.filter(|item| item.is_last_of_container()).map(std::mem::take));
    }
}

/// Frees containers one by one: values may be nested deeper than the stack allows.
fn dismantle(mut inside: Vec<Value>) {
    while let Some(value) = inside.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    list.take_containers(&mut inside);
                }
            }
            Value::Map(map) => {
                if let Some(mut map) = Rc::into_inner(map) {
                    map.take_containers(&mut inside);
                }
            }
            _ => {}
        }
    }
}

impl fmt::Debug for dyn Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name())
    }
}

impl Value {
    /// An `int`.
    pub fn int(value: i64) -> Self {
        Self::Int(Int::Int, value)
    }

    /// An `int64`.
    pub fn int64(value: i64) -> Self {
        Self::Int(Int::I64, value)
    }

    /// A `string`.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List::new(items)))
    }

    /// A `map[string]interface {}`.
    pub fn map<K: Into<Str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(Rc::new(Map::new(entries.into_iter().map(|(k, v)| (k.into(), v)).collect())))
    }

    /// The dynamic type; the untyped nil has none.
    pub fn type_of(&self) -> Option<Type> {
        Some(match self {
            Self::Nil => return None,
            Self::Bool(_) => Type::Bool,
            Self::Int(int, _) => Type::Int(*int),
            Self::Uint(uint, _) => Type::Uint(*uint),
            Self::Float32(_) => Type::Float32,
            Self::Float(_) => Type::Float,
            Self::Complex(..) => Type::Complex,
            Self::Str(_) => Type::Str,
            Self::Bytes(_) => Type::list(Type::Uint(Uint::U8)),
            Self::List(list) => Type::List(Rc::clone(&list.elem)),
            Self::Map(map) => Type::Map(Rc::clone(&map.elem)),
            Self::Object(object) => Type::Named(object.type_name()),
            Self::Func(func) => Type::Func(func.type_name()),
            Self::TypedNil(of) => (**of).clone(),
        })
    }

    /// The type as `%T` prints it.
    pub fn type_name(&self) -> String {
        self.type_of().map_or_else(|| "<nil>".to_owned(), |of| of.to_string())
    }

    /// Whether `if` takes it for true: not nil, not zero, not empty.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil | Self::TypedNil(_) => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float32(value) => *value != 0.0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Self::Str(text) | Self::Bytes(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.underlying().is_none_or(|inner| inner.truth()),
            Self::Func(_) => true,
        }
    }

    fn is_last_of_container(&self) -> bool {
        match self {
            Self::List(list) => Rc::strong_count(list) == 1,
            Self::Map(map) => Rc::strong_count(map) == 1,
            _ => false,
        }
    }

    /// The value itself, or what is behind a named type.
    pub(crate) fn plain(&self) -> Self {
        match self {
            Self::Object(object) => object.underlying().unwrap_or_else(|| self.clone()),
            other => other.clone(),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::string(bytes)
    }
}

/// What a call gives back.
pub type CallResult = Result<Value, FuncError>;
