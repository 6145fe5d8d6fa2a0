//! Laws that hold for all objects, sets and patches.

mod laws;
