#![doc = include_str!("../README.md")]

pub mod field;
pub mod quantity;
