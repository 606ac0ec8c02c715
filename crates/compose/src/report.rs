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

/// Why a field set or a selection is rejected: the part of a message behind the name of what is rejected.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) String);

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Errors in order of discovery.
    pub errors: Vec<Diagnostic>,
    /// Hints in order of discovery.
    pub hints: Vec<Diagnostic>,
    /// From which hint on which stage and item is at work.
    marks: Vec<(usize, Stage, u32)>,
}

/// Who gives hints, in order of work; those with an item of their own can be asked again about a single one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// Everything before the merge, and names.
    Before,
    /// What only some subgraphs say of a type.
    Uneven,
    /// Overrides.
    Overrides,
    /// Linked specifications.
    Features,
    /// Fields of a type.
    Composite,
    /// Input fields of a type.
    Input,
    /// Values of an enum.
    Enum,
    /// Directives and description of a type.
    Directives,
    /// Everything after.
    After,
}

impl Stage {
    /// Whether its hints are about one type, and change only if a subgraph with that type does.
    pub(crate) fn is_per_type(self) -> bool {
        matches!(
            self,
            Stage::Uneven | Stage::Composite | Stage::Input | Stage::Enum | Stage::Directives
        )
    }
}

/// A hint with who gave it about which item.
pub(crate) type Given = (Stage, u32, Diagnostic);

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
    /// Says what is at work from here on.
    pub(crate) fn mark(&mut self, stage: Stage, item: u32) {
        let at = self.hints.len();
        match self.marks.last_mut() {
            Some(last) if last.0 == at => *last = (at, stage, item),
            _ => self.marks.push((at, stage, item)),
        }
    }
    /// The hints with who gave them.
    pub(crate) fn given(&self) -> Vec<Given> {
        let mut marks = self.marks.iter().peekable();
        let (mut stage, mut item) = (Stage::Before, 0);
        let mut out = Vec::with_capacity(self.hints.len());
        for (i, hint) in self.hints.iter().enumerate() {
            while let Some(mark) = marks.next_if(|m| m.0 <= i) {
                (stage, item) = (mark.1, mark.2);
            }
            out.push((stage, item, hint.clone()));
        }
        out
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
