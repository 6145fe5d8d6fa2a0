#![doc = include_str!("../README.md")]

pub mod field;
pub mod go_regex;
pub mod ip;
pub mod labels;
pub mod names;
pub mod quantity;
pub mod structural;
