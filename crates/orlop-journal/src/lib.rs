#![doc = include_str!("../README.md")]

mod disk;
mod frame;
mod load;

pub use disk::{Broken, Disk};
pub use load::OpenError;

use bytes::Bytes;

/// Headers that can be made again from what is kept: the serialised object and one number.
pub trait Keep: Send + Sync + Sized + 'static {
    /// What must be kept besides the serialised object.
    fn mark(&self) -> u64;

    /// The header of a serialised object, or nothing if it is not one.
    fn restore(body: &Bytes, mark: u64) -> Option<Self>;
}
