//! Diagnostics of one text, up to a limit.

use ogive_base::{Diagnostic, Severity};

/// Diagnostics of one text. Errors and warnings have a limit each, so that warnings cannot displace the error that
/// rejects the text.
pub(crate) struct DiagnosticList {
    all: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    /// Most errors, and most warnings.
    max: usize,
}

impl DiagnosticList {
    pub(crate) fn new(max: usize) -> Self {
        DiagnosticList {
            all: Vec::new(),
            errors: 0,
            warnings: 0,
            // Without any error a text would count as correct.
            max: max.max(1),
        }
    }
    /// Adds a diagnostic, unless there are as many of its severity as the limit allows.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning | Severity::Hint => &mut self.warnings,
        };
        if *count < self.max {
            *count += 1;
            self.all.push(diagnostic);
        }
    }
    /// Whether no further error would be added.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= self.max
    }
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }
    /// All diagnostics, in the order in which they were added.
    pub(crate) fn into_vec(self) -> Vec<Diagnostic> {
        self.all
    }
}
