//! Guarantees of the core, each test named as the guarantee it checks.

mod plan;
mod queue;
