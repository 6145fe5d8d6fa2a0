//! Real kubectl and helm as clients of the embedded server.

mod kubectl;
mod program;
mod session;
mod sessions;
mod streams;
