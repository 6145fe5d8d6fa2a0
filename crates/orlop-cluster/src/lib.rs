#![doc = include_str!("../README.md")]

mod builder;
mod cluster;
mod serving;

pub use builder::Builder;
pub use cluster::Cluster;
pub use orlop_apiserver::{Access, ApiServer, Recorder, ServeError, Snapshot, User};
pub use orlop_clock::{Clock, ManualClock, Rng};
pub use serving::Serving;
