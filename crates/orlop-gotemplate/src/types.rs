//! The types of Go that values and parameters have, as `%T` and the error texts name them.

use std::fmt;
use std::rc::Rc;

use crate::value::{Str, Value};

/// The width of a signed integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Int {
    /// `int`, 64 bits wide
    Int,
    /// `int8`
    I8,
    /// `int16`
    I16,
    /// `int32`, a rune
    I32,
    /// `int64`
    I64,
}

/// The width of an unsigned integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uint {
    /// `uint`, 64 bits wide
    Uint,
    /// `uint8`, a byte
    U8,
    /// `uint16`
    U16,
    /// `uint32`
    U32,
    /// `uint64`
    U64,
}

/// A type as Go sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// `interface {}`
    Any,
    /// `bool`
    Bool,
    /// A signed integer
    Int(Int),
    /// An unsigned integer
    Uint(Uint),
    /// `float32`
    Float32,
    /// `float64`
    Float,
    /// `complex128`
    Complex,
    /// `string`
    Str,
    /// `[]T`
    List(Rc<Type>),
    /// `map[string]T`
    Map(Rc<Type>),
    /// A function, by its printed type
    Func(Rc<str>),
    /// A named type or pointer of the host, by its printed type
    Named(Rc<str>),
    /// `reflect.Value`: whatever comes, even nothing
    Reflect,
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int => "int",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
        })
    }
}

impl fmt::Display for Uint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uint => "uint",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("interface {}"),
            Self::Bool => f.write_str("bool"),
            Self::Int(int) => int.fmt(f),
            Self::Uint(uint) => uint.fmt(f),
            Self::Float32 => f.write_str("float32"),
            Self::Float => f.write_str("float64"),
            Self::Complex => f.write_str("complex128"),
            Self::Str => f.write_str("string"),
            Self::List(elem) => write!(f, "[]{elem}"),
            Self::Map(elem) => write!(f, "map[string]{elem}"),
            Self::Func(name) | Self::Named(name) => f.write_str(name),
            Self::Reflect => f.write_str("reflect.Value"),
        }
    }
}

impl Type {
    /// `[]T`
    pub fn list(elem: Type) -> Self {
        Self::List(Rc::new(elem))
    }

    /// `map[string]T`
    pub fn map(elem: Type) -> Self {
        Self::Map(Rc::new(elem))
    }

    /// Whether `nil` is a value of the type.
    pub fn can_be_nil(&self) -> bool {
        match self {
            Self::Any | Self::List(_) | Self::Map(_) | Self::Func(_) | Self::Reflect => true,
            Self::Named(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// The value that a variable of the type has before anything is assigned.
    pub fn zero(&self) -> Value {
        match self {
            Self::Any | Self::Reflect => Value::Nil,
            Self::Bool => Value::Bool(false),
            Self::Int(int) => Value::Int(*int, 0),
            Self::Uint(uint) => Value::Uint(*uint, 0),
            Self::Float32 => Value::Float32(0.0),
            Self::Float => Value::Float(0.0),
            Self::Complex => Value::Complex(0.0, 0.0),
            Self::Str => Value::Str(Str::from("")),
            Self::List(_) | Self::Map(_) | Self::Func(_) | Self::Named(_) => {
                Value::TypedNil(Rc::new(self.clone()))
            }
        }
    }

    /// The value as a value of this type, where Go could assign it.
    pub fn assign(&self, value: &Value) -> Option<Value> {
        let fits = match (self, value) {
            (Self::Any | Self::Reflect, _) => true,
            (Self::Bool, Value::Bool(_))
            | (Self::Float, Value::Float(_))
            | (Self::Float32, Value::Float32(_))
            | (Self::Complex, Value::Complex(..))
            | (Self::Str, Value::Str(_)) => true,
            (Self::Int(want), Value::Int(have, _)) => want == have,
            (Self::Uint(want), Value::Uint(have, _)) => want == have,
            (Self::List(want), Value::List(list)) => *want == *list.elem_rc(),
            (Self::List(want), Value::Bytes(_)) => **want == Self::Uint(Uint::U8),
            (Self::Map(want), Value::Map(map)) => *want == *map.elem_rc(),
            (Self::Func(want), Value::Func(func)) => **want == *func.type_name(),
            (Self::Named(want), Value::Object(object)) => **want == *object.type_name(),
            (_, Value::TypedNil(have)) => **have == *self,
            _ => false,
        };
        if fits {
            return Some(value.clone());
        }
        // A named map or slice may stand where the plain type is asked for; named basic types may not.
        match (self, value) {
            (Self::Map(_) | Self::List(_), Value::Object(object)) => {
                object.underlying().and_then(|inner| self.assign(&inner))
            }
            _ => None,
        }
    }
}
