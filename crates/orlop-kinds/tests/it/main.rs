//! Tests against recorded answers of the real API server.

mod updates;
mod validation;
