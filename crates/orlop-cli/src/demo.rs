//! `orlop demo`: a short tour that ends by itself.

use crate::shell::{Failure, Shell};

/// Starts a server, defines a kind, creates an object, watches a change.
pub(crate) fn run(shell: &Shell) -> Result<(), Failure> {
    shell.say("nothing to show yet");
    Ok(())
}
