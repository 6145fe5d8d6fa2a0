#![doc = include_str!("../README.md")]

pub mod condition;
pub mod desired;
pub mod fields;
pub mod names;
pub mod owner;
pub mod plan;
pub mod queue;
pub mod rbac;
