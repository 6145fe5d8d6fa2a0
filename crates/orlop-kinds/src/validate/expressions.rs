//! The expressions of admission objects: each must compile.

use super::view::{At, Report};
use orlop_cel::CompileError;
use orlop_cel::admission::{Compiler, Declared, Returns};
use orlop_schema::field::{Fault, FieldError, go_quote};

/// Compiles the expressions of one policy or webhook.
pub(super) struct Expressions {
    compiler: Compiler,
    params: bool,
}

impl Expressions {
    /// For match conditions, and for policies that have no variables.
    pub(super) fn plain(params: bool) -> Self {
        Self { compiler: Compiler::plain(), params }
    }

    /// For policies with variables.
    pub(super) fn composed(params: bool) -> Self {
        Self { compiler: Compiler::composed(), params }
    }

    /// A condition or a validation.
    pub(super) fn check(&self, r: &mut Report, at: &At<'_>, source: &str, returns: Returns) {
        let declared = Declared { params: self.params, authorizer: true, patches: false };
        report(r, at, source, self.compiler.compile(source, declared, returns).map(|_| ()));
    }

    /// The value of an audit annotation, which is shown with the blanks around it.
    pub(super) fn check_annotation(&self, r: &mut Report, at: &At<'_>) {
        let declared = Declared { params: self.params, authorizer: true, patches: false };
        let compiled = self.compiler.compile(at.str().trim(), declared, Returns::StringOrNull);
        report(r, at, at.str(), compiled.map(|_| ()));
    }

    /// A message, which cannot ask the authorizer.
    pub(super) fn check_message(&self, r: &mut Report, at: &At<'_>, source: &str) {
        let declared = Declared { params: self.params, ..Declared::default() };
        report(r, at, source, self.compiler.compile(source, declared, Returns::String).map(|_| ()));
    }

    /// A patch.
    pub(super) fn check_patch(&self, r: &mut Report, at: &At<'_>, source: &str, returns: Returns) {
        let declared = Declared { params: self.params, authorizer: true, patches: true };
        report(r, at, source, self.compiler.compile(source, declared, returns).map(|_| ()));
    }

    /// A variable, which later expressions may use.
    pub(super) fn declare(&mut self, r: &mut Report, at: &At<'_>, name: &str) {
        let declared = Declared { params: self.params, authorizer: true, patches: false };
        report(r, at, at.str(), self.compiler.declare(name, at.str(), declared));
    }
}

/// The selector of a device.
pub(super) fn device_selector(r: &mut Report, at: &At<'_>) {
    report(r, at, at.str(), orlop_cel::check_selector(at.str()));
}

fn report(r: &mut Report, at: &At<'_>, source: &str, result: Result<(), CompileError>) {
    match result {
        Ok(()) => {}
        Err(error @ CompileError::Instantiation(_)) => {
            r.add(FieldError::with_value(Fault::Internal, &at.path, None, error.to_string()));
        }
        Err(error) => r.add(at.invalid_with(go_quote(source), error.to_string())),
    }
}
