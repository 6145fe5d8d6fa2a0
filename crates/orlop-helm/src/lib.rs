//! Helm's engine: what templates of charts call, and the texts they produce. Pure: no files, no network, no clock.

pub mod engine;
pub mod json;
pub mod semver;
pub mod sprig;
pub mod yaml;
