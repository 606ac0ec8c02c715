//! Messages for people: a stable code, a severity, one primary sentence, labelled source excerpts, notes
//! and a remedy. Every front end (syntax, schema, federation, config) returns a value *and* a list of these.

use std::{fmt, ops::Range, sync::Arc};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{IdVec, define_id, url::with_stars};

/// A half-open range of byte offsets in one source text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span `start..end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }
    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
    /// As a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

define_id! {
    /// One source text of a [`Sources`] table.
    pub struct SourceId;
}

/// The texts that diagnostics point into.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: IdVec<SourceId, Source>,
}

/// One named source text.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name, URL or a word such as `request`.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

impl Sources {
    /// No sources yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a text under a name.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceId {
        self.files.push(Source {
            name: name.into(),
            text: text.into(),
        })
    }
    /// The source with this id, if known.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.files.get(id)
    }
}

/// One-based line and column (in Unicode scalar values) of a byte offset. O(offset).
pub fn line_column(text: &str, offset: u32) -> (u32, u32) {
    let mut end = (offset as usize).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (mut line, mut line_start) = (1, 0);
    let bytes = text.as_bytes();
    for (i, byte) in bytes[..end].iter().enumerate() {
        // A line ends at LF, CR LF or a lone CR (GraphQL specification 2.1.2).
        if *byte == b'\n' || (*byte == b'\r' && bytes.get(i + 1) != Some(&b'\n')) {
            line += 1;
            line_start = i + 1;
        }
    }
    (line, text[line_start..end].chars().count() as u32 + 1)
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// Accepted, but probably not what was meant.
    Warning,
    /// Worth knowing.
    Hint,
}

/// A labelled place in a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Which text.
    pub source: SourceId,
    /// Where in it.
    pub span: Span,
    /// What to see there; may be empty.
    pub message: String,
}

/// One message. The first label is the primary one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Stable code, in the field's own words where it has one (`GRAPHQL_VALIDATION_FAILED`, ...).
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without source context.
    pub message: String,
    /// Schema coordinate of what it is about (`Type.field(arg:)`), if it is about one element.
    pub coordinate: Option<Box<str>>,
    /// Places, primary first.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do next.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with a code and a message.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            coordinate: None,
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }
    /// Says which element of a schema it is about.
    #[must_use]
    pub fn about(mut self, coordinate: impl Into<Box<str>>) -> Self {
        self.coordinate = Some(coordinate.into());
        self
    }
    /// Adds a labelled place.
    #[must_use]
    pub fn label(mut self, source: SourceId, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label {
            source,
            span,
            message: message.into(),
        });
        self
    }
    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Says what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Renders with source excerpts for a terminal (`colour`) or plain text.
    pub fn render(&self, sources: &Sources, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Hint => Level::NOTE,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code));
        let mut seen: Vec<SourceId> = Vec::new();
        for label in &self.labels {
            if seen.contains(&label.source) {
                continue;
            }
            seen.push(label.source);
            let Some(source) = sources.get(label.source) else {
                continue;
            };
            let snippet = Snippet::source(with_stars(&source.text))
                .path(source.name.as_ref())
                .fold(true)
                .annotations(
                    self.labels
                        .iter()
                        .enumerate()
                        .filter(|(_, l)| l.source == label.source)
                        .map(|(i, l)| {
                            let kind = if i == 0 {
                                AnnotationKind::Primary
                            } else {
                                AnnotationKind::Context
                            };
                            let annotation = kind.span(clamp(l.span, &source.text));
                            if l.message.is_empty() {
                                annotation
                            } else {
                                annotation.label(l.message.as_str())
                            }
                        }),
                );
            group = group.element(snippet);
        }
        for note in &self.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

/// Spans must lie on character boundaries inside the text, whatever the caller computed.
fn clamp(span: Span, text: &str) -> Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_excerpt_note_and_help() {
        let mut sources = Sources::new();
        let id = sources.add("a.graphql", "type Query {\n  me: Usr\n}\n");
        let text = Diagnostic::error("UNKNOWN_TYPE", "type `Usr` is not defined")
            .label(id, Span::new(19, 22), "used here")
            .note("types are looked up in the whole document")
            .help("did you mean `User`?")
            .render(&sources, false);
        assert!(
            text.contains("error[UNKNOWN_TYPE]: type `Usr` is not defined"),
            "{text}"
        );
        assert!(text.contains("a.graphql:2:7"), "{text}");
        assert!(text.contains("did you mean `User`?"), "{text}");
    }

    #[test]
    fn an_excerpt_does_not_show_the_password_of_a_url() {
        let mut sources = Sources::new();
        let id = sources.add("a.yaml", "url: http://u:S3CR3T@a/ # S\n");
        let text = Diagnostic::error("X", "it has a password")
            .label(id, Span::new(5, 23), "")
            .render(&sources, false);
        assert!(!text.contains("S3CR3T"), "{text}");
        assert!(text.contains("url: http://********@a/ # S"), "{text}");
    }

    #[test]
    fn spans_outside_the_text_do_not_panic() {
        let mut sources = Sources::new();
        let id = sources.add("a", "é");
        let _ = Diagnostic::error("X", "x")
            .label(id, Span::new(1, 99), "")
            .render(&sources, false);
    }

    #[test]
    fn lines_end_at_every_kind_of_terminator() {
        let text = "a\r\nb\rc\nd";
        assert_eq!(line_column(text, 0), (1, 1));
        assert_eq!(line_column(text, 3), (2, 1));
        assert_eq!(line_column(text, 5), (3, 1));
        assert_eq!(line_column(text, 7), (4, 1));
    }
}
