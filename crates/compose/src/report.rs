//! Collecting errors and hints with labels into the subgraphs' sources.

use ogive_base::{Diagnostic, Severity, SourceId, Span};

use crate::codes::{HintCode, Level};

/// Most errors of one composition; further ones are dropped.
pub const ERRORS_MAX: usize = 10_000;
/// Most hints of one composition; further ones are dropped.
pub const HINTS_MAX: usize = 100_000;
/// Most labels of one diagnostic: enough to show the sides of a conflict, not a list of two hundred subgraphs.
pub const LABELS_MAX: usize = 12;

/// A place in a subgraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which subgraph, by its position in the order of names.
    pub source: SourceId,
    /// Where in it.
    pub span: Span,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Errors in order of discovery.
    pub errors: Vec<Diagnostic>,
    /// Hints in order of discovery.
    pub hints: Vec<Diagnostic>,
}

impl Report {
    /// Adds an error about one element.
    pub fn error(
        &mut self,
        code: &'static str,
        about: &str,
        message: String,
        at: &[(Place, String)],
    ) {
        let diagnostic = labelled(Diagnostic::error(code, message).about(about), at);
        self.push(diagnostic);
    }
    /// Adds an error with a remedy.
    pub fn error_help(
        &mut self,
        code: &'static str,
        about: &str,
        message: String,
        help: String,
        at: &[(Place, String)],
    ) {
        let diagnostic = labelled(Diagnostic::error(code, message).about(about).help(help), at);
        self.push(diagnostic);
    }
    /// Adds a finished error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(diagnostic);
        }
    }
    /// Adds a hint about one element.
    pub fn hint(&mut self, code: HintCode, about: &str, message: String, at: &[(Place, String)]) {
        if self.hints.len() >= HINTS_MAX {
            return;
        }
        let mut diagnostic = labelled(Diagnostic::error(code.code, message).about(about), at);
        diagnostic.severity = match code.level {
            Level::Warn => Severity::Warning,
            Level::Info | Level::Debug => Severity::Hint,
        };
        self.hints.push(diagnostic);
    }
    /// Whether an error was found.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }
}

fn labelled(mut diagnostic: Diagnostic, at: &[(Place, String)]) -> Diagnostic {
    for (place, text) in at.iter().take(LABELS_MAX) {
        diagnostic = diagnostic.label(place.source, place.span, text.as_str());
    }
    if at.len() > LABELS_MAX {
        diagnostic = diagnostic.note(format!("and {} more places", at.len() - LABELS_MAX));
    }
    diagnostic
}

/// `a`, `b` and `c`, each in backquotes; long lists are cut.
pub fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = names
        .into_iter()
        .map(|n| format!("`{}`", n.as_ref()))
        .collect();
    match names.len() {
        0 => String::new(),
        1 => names[0].clone(),
        n if n > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
        n => format!("{} and {}", names[..n - 1].join(", "), names[n - 1]),
    }
}
