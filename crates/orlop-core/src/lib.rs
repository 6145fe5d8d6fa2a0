#![doc = include_str!("../README.md")]

pub mod condition;
pub mod names;
pub mod owner;
pub mod queue;
pub mod rbac;
