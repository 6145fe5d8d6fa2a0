//! All output: data to stdout, talk to stderr, failures with their causes and a hint.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a command that failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code of a command that could not reach what it talks to.
pub(crate) const EXIT_UNREACHABLE: u8 = 4;

/// Where output goes.
pub(crate) struct Shell {
    out: io::Stdout,
    talk: io::Stderr,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), talk: io::stderr() }
    }

    /// Prints a line of data.
    pub(crate) fn data(&self, line: impl fmt::Display) {
        // A reader that has gone away is no failure of ours.
        let _ = writeln!(self.out.lock(), "{line}");
    }

    /// Prints a line of talk.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        let _ = writeln!(self.talk.lock(), "{line}");
    }

    /// Prints a failure and gives its exit code.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        self.say(format_args!("error: {}", failure.what));
        let mut cause = failure.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            self.say(format_args!("cause: {error}"));
            cause = error.source();
        }
        for hint in &failure.hints {
            self.say(format_args!("hint: {hint}"));
        }
        ExitCode::from(failure.code)
    }
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
    code: u8,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None, hints: Vec::new(), code: EXIT_FAILED }
    }

    pub(crate) fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }
}
