//! The command line as a user sees it, and the invariants of the workspace.

mod commands;
mod tidy;
