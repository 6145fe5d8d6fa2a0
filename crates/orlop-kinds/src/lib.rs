#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod codec;
pub mod conversion;
pub mod defaults;
pub mod json;
pub mod protobuf;
pub mod strategy;
pub mod table;
pub mod validate;
