//! Value literals as messages show them, and as field merging compares them.

use std::fmt::Write as _;

use ogive_base::{FastMap, Span};
use ogive_syntax::{
    Document,
    ast::{Value, ValueKind},
};

/// Names seen so far in one object literal.
#[derive(Default)]
pub(super) struct Seen<'a> {
    names: FastMap<&'a str, Span>,
}

impl<'a> Seen<'a> {
    /// Where `name` was first seen, if it was; remembers it otherwise.
    pub(super) fn insert(&mut self, name: &'a str, span: Span) -> Option<Span> {
        match self.names.get(name) {
            Some(first) => Some(*first),
            None => {
                self.names.insert(name, span);
                None
            }
        }
    }
}

/// A literal on one line, except for block strings.
pub(crate) fn print(doc: &Document, value: &Value) -> String {
    let mut out = String::new();
    write(doc, value, false, &mut out);
    out
}

/// A text that is equal for equal literals, whatever the order of their object fields.
pub(super) fn write_canonical(doc: &Document, value: &Value, out: &mut String) {
    write(doc, value, true, out);
}

fn write(doc: &Document, value: &Value, sorted: bool, out: &mut String) {
    match value.kind {
        ValueKind::List(items) => {
            out.push('[');
            for (i, item) in doc[items].iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write(doc, item, sorted, out);
            }
            out.push(']');
        }
        ValueKind::Object(fields) => {
            let mut fields: Vec<_> = doc[fields].iter().collect();
            if sorted {
                fields.sort_by_key(|f| doc.name(f.name));
            }
            out.push('{');
            for (i, field) in fields.into_iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(doc.name(field.name));
                out.push_str(": ");
                write(doc, &field.value, sorted, out);
            }
            out.push('}');
        }
        ValueKind::String { block } => {
            let text = value.as_string().map(|s| doc.string_value(s));
            let text = text.as_deref().unwrap_or_default();
            if block {
                write_block_string(text, out);
            } else {
                write_string(text, out);
            }
        }
        ValueKind::Variable(_)
        | ValueKind::Int
        | ValueKind::Float
        | ValueKind::Boolean(_)
        | ValueKind::Null
        | ValueKind::Enum => out.push_str(doc.text(value.span)),
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Longest block string that stays on one line, in UTF-16 units.
const BLOCK_LINE_MAX: usize = 70;

fn write_block_string(text: &str, out: &mut String) {
    let escaped = text.replace("\"\"\"", "\\\"\"\"");
    let mut rest = escaped.split('\n');
    let first = rest.next().unwrap_or_default();
    let one_line = rest.clone().next().is_none();
    let blank_start = |line: &str| line.starts_with([' ', '\t']);
    let lead = !one_line && rest.all(|line| line.is_empty() || blank_start(line));
    let triple = escaped.ends_with("\\\"\"\"");
    let trail = (text.ends_with('"') && !triple) || text.ends_with('\\');
    let many = !one_line || text.encode_utf16().count() > BLOCK_LINE_MAX || trail || lead || triple;
    out.push_str("\"\"\"");
    if (many && !(one_line && blank_start(first))) || lead {
        out.push('\n');
    }
    out.push_str(&escaped);
    if many {
        out.push('\n');
    }
    out.push_str("\"\"\"");
}
