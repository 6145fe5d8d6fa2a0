//! Why a run failed.

use crate::output::say;
use std::error::Error;
use std::fmt::Display;

/// What could not be done, and the causes.
pub(crate) struct Failure {
    what: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None }
    }

    /// Says when it happened.
    pub(crate) fn during(mut self, when: &str) -> Self {
        self.what = format!("{when}: {}", self.what);
        self
    }

    pub(crate) fn print(&self) {
        say(format_args!("error: {}", self.what));
        let mut cause = self.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            say(format_args!("cause: {error}"));
            cause = error.source();
        }
    }
}

/// Says what was being done when an error came.
pub(crate) trait Context<T> {
    /// Turns the error into a failure to do `what`.
    fn context(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Error + Send + Sync + 'static> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure { what: what.to_string(), cause: Some(Box::new(error)) })
    }
}
