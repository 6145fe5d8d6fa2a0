#![doc = include_str!("../README.md")]

mod clock;
mod rng;

pub use clock::{Clock, ManualClock};
pub use jiff::{SignedDuration, Timestamp};
pub use rng::Rng;
