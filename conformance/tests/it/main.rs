//! Real kubectl, helm and client-go as clients of the embedded server.

mod go_client;
mod hooks;
mod kubectl;
mod program;
mod session;
mod sessions;
mod streams;
