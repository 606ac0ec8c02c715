//! Where the text of a mapping comes from, so that messages point into the schema document.
//!
//! A mapping is the value of a string of a document. Escapes and the indentation of block strings make its offsets
//! differ from those of the document; an [`Origin`] is the table that turns one into the other.

use ogive_base::{SourceId, Span};
use ogive_syntax::escape_at;

/// A run of text that stands in the document as it does in the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Where it begins in the mapping.
    value: u32,
    /// Where it begins in the document.
    document: u32,
}

/// Where a mapping stands in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    source: SourceId,
    /// In order; the first one begins at 0.
    runs: Vec<Run>,
}

/// The value of a string of a document, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The value.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl Origin {
    /// A mapping that is a text of its own.
    pub fn whole(source: SourceId) -> Self {
        Self::behind(source, 0)
    }
    /// A mapping that stands in a document as it is, from `start` on.
    pub fn behind(source: SourceId, start: u32) -> Self {
        let run = Run {
            value: 0,
            document: start,
        };
        Origin {
            source,
            runs: vec![run],
        }
    }

    /// The document.
    pub fn source(&self) -> SourceId {
        self.source
    }
    /// Where a span of the mapping stands in the document.
    pub fn span(&self, span: Span) -> Span {
        let start = self.offset(span.start);
        if span.end <= span.start {
            return Span::new(start, start);
        }
        // The last byte of the span may be in another run than the byte behind it.
        Span::new(start, self.offset(span.end - 1) + 1)
    }
    fn offset(&self, value: u32) -> u32 {
        let behind = self.runs.partition_point(|run| run.value <= value);
        let run = self.runs[behind.saturating_sub(1)];
        run.document.saturating_add(value.saturating_sub(run.value))
    }
    /// The origin of the part of a mapping from `start` on.
    #[must_use]
    pub fn part(&self, start: u32) -> Origin {
        let mut runs = vec![Run {
            value: 0,
            document: self.offset(start),
        }];
        let later = self.runs.iter().filter(|run| run.value > start);
        runs.extend(later.map(|run| Run {
            value: run.value - start,
            document: run.document,
        }));
        Origin {
            source: self.source,
            runs,
        }
    }
}

/// The value of the string token that stands at `start` of a document (GraphQL specification 2.9.4), quotes included in
/// `token`. The token must be one that the parser of documents accepted.
pub fn locate_string(source: SourceId, token: &str, start: u32) -> Located {
    let mut out = Collector {
        text: String::with_capacity(token.len()),
        runs: Vec::new(),
        start,
    };
    let block = token
        .strip_prefix("\"\"\"")
        .map(|inner| inner.strip_suffix("\"\"\"").unwrap_or(inner));
    match block {
        Some(inner) => out.block(inner, 3),
        None => {
            let inner = token.strip_prefix('"').unwrap_or(token);
            out.quoted(inner.strip_suffix('"').unwrap_or(inner), 1);
        }
    }
    if out.runs.is_empty() {
        out.begin_run(1);
    }
    Located {
        text: out.text,
        origin: Origin {
            source,
            runs: out.runs,
        },
    }
}

struct Collector {
    text: String,
    runs: Vec<Run>,
    /// Where the token begins.
    start: u32,
}

impl Collector {
    /// What is pushed next stands at `at` of the token.
    fn begin_run(&mut self, at: usize) {
        let run = Run {
            value: self.text.len() as u32,
            document: self.start + at as u32,
        };
        match self.runs.last_mut() {
            Some(last) if last.value == run.value => *last = run,
            _ => self.runs.push(run),
        }
    }

    fn quoted(&mut self, inner: &str, at: usize) {
        self.begin_run(at);
        let mut from = 0;
        while let Some(ahead) = inner[from..].find('\\') {
            let slash = from + ahead;
            self.text.push_str(&inner[from..slash]);
            let escape = escape_at(inner, slash);
            let (letter, end) = escape.unwrap_or_else(|end| ('\u{fffd}', end));
            self.begin_run(at + slash);
            self.text.push(letter);
            from = end;
            self.begin_run(at + from);
        }
        self.text.push_str(&inner[from..]);
    }

    fn block(&mut self, inner: &str, at: usize) {
        let lines: Vec<Line<'_>> = lines(inner).collect();
        let blank = |line: &Line<'_>| line.indent() == line.text.len();
        let indents = lines.iter().skip(1).filter(|line| !blank(line));
        let common = indents.map(Line::indent).min().unwrap_or(0);
        let first = lines.iter().position(|line| !blank(line));
        let last = lines.iter().rposition(|line| !blank(line));
        let (Some(first), Some(last)) = (first, last) else {
            return;
        };
        for (index, line) in lines.iter().enumerate().take(last + 1).skip(first) {
            if index > first {
                self.begin_run(at + line.at - 1);
                self.text.push('\n');
            }
            let cut = if index == 0 {
                0
            } else {
                common.min(line.text.len())
            };
            self.block_line(&line.text[cut..], at + line.at + cut);
        }
    }
    fn block_line(&mut self, line: &str, at: usize) {
        self.begin_run(at);
        let mut from = 0;
        while let Some(ahead) = line[from..].find("\\\"\"\"") {
            self.text.push_str(&line[from..from + ahead]);
            from += ahead + 1;
            self.begin_run(at + from);
            self.text.push_str("\"\"\"");
            from += 3;
        }
        self.text.push_str(&line[from..]);
    }
}

/// One line of a block string.
struct Line<'t> {
    text: &'t str,
    /// Where it begins.
    at: usize,
}

impl Line<'_> {
    fn indent(&self) -> usize {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        self.text.bytes().take_while(|byte| blank(byte)).count()
    }
}

/// The lines of a text, ended by LF, CR LF or CR.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let rest = &text[at..];
        let Some(end) = rest.find(['\n', '\r']) else {
            next = None;
            return Some(Line { text: rest, at });
        };
        let crlf = rest[end..].starts_with("\r\n");
        next = Some(at + end + if crlf { 2 } else { 1 });
        Some(Line {
            text: &rest[..end],
            at,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `needle` of the value stands in the document.
    fn found<'d>(document: &'d str, token: &str, needle: &str) -> &'d str {
        let start = document.find(token).unwrap();
        let located = locate_string(SourceId(0), token, start as u32);
        let at = located.text.find(needle).unwrap() as u32;
        let span = located.origin.span(Span::new(at, at + needle.len() as u32));
        &document[span.range()]
    }

    #[test]
    fn spans_stand_where_they_are_written() {
        let document = "a: \"\"\"\n    id\n      name: full\r\n    \\\"\"\"x\\\"\"\" y\n    \"\"\"";
        let token = &document[3..];
        assert_eq!(found(document, token, "id"), "id");
        assert_eq!(found(document, token, "full"), "full");
        assert_eq!(found(document, token, "y"), "y");
        assert_eq!(found(document, token, "x"), "x");
    }

    #[test]
    fn escapes_shift_what_follows() {
        let document = r#"(selection: "a\n\u00e9 \"b\" c")"#;
        let token = &document[12..document.len() - 1];
        assert_eq!(found(document, token, "c"), "c");
        assert_eq!(found(document, token, "b"), "b");
        assert_eq!(found(document, token, "é").chars().next(), Some('\\'));
    }

    #[test]
    fn a_part_has_an_origin_of_its_own() {
        let document = "\"\"\"\n  one\n  two\n\"\"\"";
        let located = locate_string(SourceId(0), document, 0);
        assert_eq!(located.text, "one\ntwo");
        let part = located.origin.part(4);
        assert_eq!(&document[part.span(Span::new(0, 3)).range()], "two");
        let part = located.origin.part(1);
        assert_eq!(&document[part.span(Span::new(3, 6)).range()], "two");
    }
}
