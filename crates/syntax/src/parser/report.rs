//! The errors of one parse: what is reported, what is held back, and when to give up.
//!
//! Invariants: errors are in source order; at most one error per place, so that recovery at a token that
//! was already complained about stays silent; after a limit nothing more is reported.

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_failure::codes;

/// Which family of error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// The text does not conform to the grammar.
    Syntax,
    /// More text than allowed.
    SourceBytesMax,
    /// More tokens than allowed.
    TokensMax,
    /// Nested deeper than allowed.
    DepthMax,
}

impl Code {
    fn as_str(self) -> &'static str {
        let code = match self {
            Code::Syntax => codes::GRAPHQL_PARSE_FAILED,
            Code::SourceBytesMax => codes::MAX_SOURCE_BYTES,
            Code::TokensMax => codes::MAX_TOKENS_LIMIT,
            Code::DepthMax => codes::MAX_PARSE_DEPTH,
        };
        code.as_str()
    }
}

/// Errors so far.
pub(crate) struct Report {
    source: SourceId,
    errors: Vec<Diagnostic>,
    errors_max: usize,
    /// Errors that start before this offset were already told.
    floor: usize,
    closed: bool,
    /// The next grammar error probably follows from the last broken token.
    forgiving: bool,
}

impl Report {
    pub(crate) fn new(source: SourceId, errors_max: u32) -> Self {
        Report {
            source,
            errors: Vec::new(),
            // Zero would mean "refuse without saying why".
            errors_max: (errors_max as usize).max(1),
            floor: 0,
            closed: false,
            forgiving: false,
        }
    }

    /// A report that hears nothing, for looking ahead.
    pub(crate) fn silent() -> Self {
        let mut report = Report::new(SourceId(0), 1);
        report.closed = true;
        report
    }

    /// Reports `message` at `place`, labelled.
    pub(crate) fn push(
        &mut self,
        code: Code,
        place: (usize, usize),
        message: String,
        label: impl Into<String>,
    ) {
        self.push_with(code, place, message, label, |diagnostic, _| diagnostic);
    }

    /// Like [`push`](Self::push), with `more` adding labels or help.
    #[cold]
    pub(crate) fn push_with(
        &mut self,
        code: Code,
        (start, end): (usize, usize),
        message: String,
        label: impl Into<String>,
        more: impl FnOnce(Diagnostic, SourceId) -> Diagnostic,
    ) {
        if self.closed || start < self.floor {
            return;
        }
        self.floor = end.max(start + 1);
        let span = Span::new(start as u32, end as u32);
        // Known to clients of every GraphQL server in this form.
        let message = match code {
            Code::Syntax | Code::TokensMax => format!("Syntax Error: {message}"),
            _ => message,
        };
        let diagnostic = Diagnostic::error(code.as_str(), message).label(self.source, span, label);
        let mut diagnostic = more(diagnostic, self.source);
        if self.errors.len() + 1 == self.errors_max && code == Code::Syntax && self.errors_max > 1 {
            diagnostic = diagnostic.note("too many errors: the rest of the text was not read");
        }
        self.errors.push(diagnostic);
        self.closed |= self.is_full();
    }

    /// Adds a second place to the last error, once.
    pub(crate) fn explain_last(&mut self, span: Span, label: &str) {
        if let Some(last) = self.errors.last_mut()
            && last.labels.len() == 1
            && last.code == Code::Syntax.as_str()
        {
            last.labels.push(ogive_base::Label {
                source: self.source,
                span,
                message: label.to_owned(),
            });
        }
    }

    /// The next grammar error of this definition is a consequence of an error already told.
    pub(crate) fn forgive_next(&mut self) {
        self.forgiving = true;
    }

    /// Whether the grammar error about to be reported is such a consequence.
    pub(crate) fn forgive(&mut self) -> bool {
        std::mem::take(&mut self.forgiving)
    }

    /// Reports nothing from here on.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there are so many errors that reading on is no use.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= self.errors_max
    }

    pub(crate) fn into_errors(self) -> Vec<Diagnostic> {
        self.errors
    }
}
