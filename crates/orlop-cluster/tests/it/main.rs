//! The embedded cluster through typed and dynamic kube clients: no socket, no sleep.

mod access;
mod crud;
mod custom;
mod patches;
mod state;
mod support;
mod watches;
