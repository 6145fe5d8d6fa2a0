#![doc = include_str!("../README.md")]

mod fields_v1;
mod fieldset;
mod filter;
mod go;
pub mod json_merge;
pub mod json_patch;
pub mod managed;
mod path;
mod schema;
pub mod strategic;
pub mod typed;
mod updater;
mod value;

pub use fields_v1::FieldsError;
pub use fieldset::FieldSet;
pub use filter::{Filter, Pattern, Step};
pub use path::{Path, PathElement};
pub use schema::{Definitions, ObjectType, Schema, UnknownFields};
pub use updater::{ConvertError, Force, OneVersion, Versions};
pub use value::DEPTH_MAX;
