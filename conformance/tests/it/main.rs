//! Real kubectl as a client of the embedded server.

mod kubectl;
mod session;
mod sessions;
mod streams;
