//! Where diagnostics of a build are collected: bounded in number, handed out in document order.

use ogive_base::{Diagnostic, SourceId, Span};

/// A place in one of the documents of a build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Index of the document; [`Place::BUILT_IN`]'s for rows no document defines.
    pub(crate) doc: u32,
    pub(crate) span: Span,
}

impl Place {
    /// Not in any document.
    pub(crate) const BUILT_IN: Place = Place {
        doc: u32::MAX,
        span: Span::new(0, 0),
    };
}

/// The diagnostics found so far.
#[derive(Debug)]
pub(crate) struct Report {
    sources: Vec<SourceId>,
    errors: Vec<(u32, u32, Diagnostic)>,
    errors_max: usize,
}

impl Report {
    pub(crate) fn new(sources: Vec<SourceId>, errors_max: u32) -> Self {
        Report {
            sources,
            errors: Vec::new(),
            errors_max: errors_max.max(1) as usize,
        }
    }
    /// Whether so much is wrong that looking further is pointless.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= self.errors_max
    }
    pub(crate) fn error(&mut self, code: &'static str, message: String, at: Place) {
        self.error_with(code, message, at, &[]);
    }
    /// An error with further labelled places.
    pub(crate) fn error_with(
        &mut self,
        code: &'static str,
        message: String,
        at: Place,
        others: &[(Place, &str)],
    ) {
        if self.is_full() {
            return;
        }
        let mut diagnostic = Diagnostic::error(code, message);
        for (place, text) in std::iter::once(&(at, "")).chain(others) {
            if let Some(source) = self.sources.get(place.doc as usize) {
                diagnostic = diagnostic.label(*source, place.span, *text);
            }
        }
        self.errors.push((at.doc, at.span.start, diagnostic));
    }
    /// Everything, in document order; what has no place comes last.
    pub(crate) fn into_errors(mut self) -> Vec<Diagnostic> {
        self.errors.sort_by_key(|(doc, start, _)| (*doc, *start));
        self.errors.into_iter().map(|(_, _, d)| d).collect()
    }
}
