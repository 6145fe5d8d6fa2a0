#![doc = include_str!("../README.md")]

pub mod driver;
mod mutate;
mod server;
mod shape;
pub mod targets;
