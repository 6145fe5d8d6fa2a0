//! All output: data to stdout, talk to stderr, failures with their causes and a hint.

use std::cell::OnceCell;
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
    /// Why data could not be printed, the first time it could not.
    lost: OnceCell<io::Error>,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), talk: io::stderr(), lost: OnceCell::new() }
    }

    /// Prints a line of data.
    pub(crate) fn data(&self, line: impl fmt::Display) {
        match writeln!(self.out.lock(), "{line}") {
            // A reader that has gone away is no failure of ours.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = self.lost.set(error);
            }
            _ => {}
        }
    }

    /// Fails if data could not be printed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.lost.into_inner() {
            Some(error) => Err(Failure::new("cannot write the output").because(error)),
            None => Ok(()),
        }
    }

    /// Prints a line of talk.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        let _ = writeln!(self.talk.lock(), "{line}");
    }

    /// Prints a failure and gives its exit code.
    pub(crate) fn fail(failure: &Failure) -> ExitCode {
        let shell = Self::new();
        shell.say(format_args!("error: {}", failure.what));
        let mut cause = failure.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            shell.say(format_args!("cause: {error}"));
            cause = error.source();
        }
        for hint in &failure.hints {
            shell.say(format_args!("hint: {hint}"));
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
