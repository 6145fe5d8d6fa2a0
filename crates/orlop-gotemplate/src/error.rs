//! What can go wrong, with Go's texts.

use std::fmt;

/// An error of parsing or executing a template; its text is the one Go gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Details>);

/// What an error is made of; on the heap, because results carry it everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) text: String,
    pub(crate) stage: Stage,
    pub(crate) template: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: Option<usize>,
    pub(crate) context: String,
    pub(crate) message: String,
    pub(crate) cause: Option<Error>,
}

impl From<Details> for Error {
    fn from(details: Details) -> Self {
        Self(Box::new(details))
    }
}

/// When an error happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The text is no template.
    Parse,
    /// The template failed on its data.
    Execute,
    /// The named template does not exist.
    Lookup,
}

impl Error {
    /// Whether the text or its execution failed.
    pub fn stage(&self) -> Stage {
        self.0.stage
    }

    /// The name of the template that was executing; the file's when parsing.
    pub fn template(&self) -> &str {
        &self.0.template
    }

    /// The name under which the text was parsed.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The line, from 1; 0 where there is none.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column in bytes, from 0 as Go counts; parse errors have none.
    pub fn column(&self) -> Option<usize> {
        self.0.column
    }

    /// The node that failed, as Go prints it; empty when parsing.
    pub fn context(&self) -> &str {
        &self.0.context
    }

    /// The last part of the text, without template, place and node.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The error of a template that a function executed.
    pub fn cause(&self) -> Option<&Error> {
        self.0.cause.as_ref()
    }

    /// The same error with the error that led to it.
    pub(crate) fn caused_by(mut self, cause: Option<Error>) -> Self {
        self.0.cause = cause;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Error {}

/// What a function of the host answers when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuncError {
    pub(crate) text: String,
    pub(crate) cause: Option<Error>,
}

impl FuncError {
    /// An error with that text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), cause: None }
    }

    /// The error's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same error under another text, its cause kept.
    #[must_use]
    pub fn reworded(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// The error of a template that the function executed.
    pub fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }
}

impl From<Error> for FuncError {
    fn from(error: Error) -> Self {
        Self { text: error.0.text.clone(), cause: Some(error) }
    }
}

impl From<String> for FuncError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for FuncError {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for FuncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FuncError {}
