//! YAML text to a tree of nodes with spans, on top of `saphyr-parser`'s events.
//!
//! What a configuration does not need is refused instead of half supported: several documents, anchors and aliases
//! (no exponential expansion), tags, keys that are no plain words. Nesting and node count are bounded while reading.

use ogive_base::Span;
use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::{codes, decode::Errors};

/// Largest text.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of mappings and lists.
const DEPTH_MAX: usize = 32;
/// Most scalars, mappings and lists.
const NODES_MAX: usize = 20_000;

/// One value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// What it is.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A scalar's text; `plain` if it was written without quotes, so that `null` and `~` mean nothing.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in order; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A mapping's key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) span: Span,
    pub(crate) text: String,
}

impl Node {
    pub(crate) fn null(span: Span) -> Node {
        Node {
            span,
            value: Value::Scalar {
                text: String::new(),
                plain: true,
            },
        }
    }
    /// Whether it is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }
    /// Written as nothing, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// A collection that is still open.
enum Open {
    List(Span, Vec<Node>),
    Map(Span, Vec<(Key, Node)>, Option<Key>),
}

/// Reads one document. `None` if an error was reported; an empty text is null.
pub(crate) fn parse(text: &str, errors: &mut Errors) -> Option<Node> {
    if text.len() > TEXT_BYTES_MAX {
        errors.push(
            codes::LIMIT,
            Span::default(),
            "a configuration has at most 1 MiB of text".into(),
            None,
        );
        return None;
    }
    let offsets = Offsets::new(text);
    let mut open: Vec<Open> = Vec::new();
    let mut root: Option<Node> = None;
    let mut nodes = 0;
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let at = offsets.byte(error.marker().index());
                errors.push(
                    codes::SYNTAX,
                    Span::new(at, at),
                    format!("this is not valid YAML: {}", error.info()),
                    None,
                );
                return None;
            }
        };
        let span = Span::new(
            offsets.byte(span.start.index()),
            offsets.byte(span.end.index()),
        );
        let anchored = match &event {
            Event::Scalar(_, _, anchor, tag) => *anchor != 0 || tag.is_some(),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                *anchor != 0 || tag.is_some()
            }
            Event::Alias(_) => true,
            _ => false,
        };
        if anchored {
            errors.push(
                codes::SYNTAX,
                span,
                "anchors (`&`), aliases (`*`) and tags (`!`) are not supported here".into(),
                Some(
                    "write the value out, or quote it if it starts with one of these signs".into(),
                ),
            );
            return None;
        }
        nodes += 1;
        if nodes > NODES_MAX || open.len() > DEPTH_MAX {
            errors.push(
                codes::LIMIT,
                span,
                format!("a configuration has at most {NODES_MAX} values nested {DEPTH_MAX} deep"),
                None,
            );
            return None;
        }
        let done = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    errors.push(
                        codes::SYNTAX,
                        span,
                        "a configuration is one YAML document; a second one starts here".into(),
                        None,
                    );
                    return None;
                }
                None
            }
            Event::Scalar(text, style, ..) => Some(Node {
                span,
                value: Value::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                },
            }),
            Event::SequenceStart(..) => {
                open.push(Open::List(span, Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(span, Vec::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(start, items)) => Some(Node {
                    span: start.to(span),
                    value: Value::List(items),
                }),
                Some(Open::Map(start, entries, _)) => Some(Node {
                    span: start.to(span),
                    value: Value::Map(entries),
                }),
                None => None,
            },
            _ => None,
        };
        if let Some(node) = done {
            match open.last_mut() {
                None => root = Some(node),
                Some(Open::List(_, items)) => items.push(node),
                Some(Open::Map(_, entries, key)) => match key.take() {
                    Some(key) => entries.push((key, node)),
                    None => *key = Some(read_key(node, entries, errors)?),
                },
            }
        }
    }
    Some(root.unwrap_or_else(|| Node::null(Span::default())))
}

fn read_key(node: Node, entries: &[(Key, Node)], errors: &mut Errors) -> Option<Key> {
    let Value::Scalar { text, .. } = node.value else {
        errors.push(
            codes::SYNTAX,
            node.span,
            "a key must be a single word".into(),
            None,
        );
        return None;
    };
    if let Some((first, _)) = entries.iter().find(|(k, _)| k.text == text) {
        errors.push_with(
            codes::DUPLICATE_KEY,
            node.span,
            format!("`{text}` is set twice"),
            (first.span, "first set here".into()),
        );
    }
    Some(Key {
        span: node.span,
        text,
    })
}

/// Character indexes to byte offsets: the parser counts characters.
struct Offsets {
    len: usize,
    /// Byte offset of every character; `None` for ASCII, where both agree.
    table: Option<Vec<u32>>,
}

impl Offsets {
    fn new(text: &str) -> Self {
        let table = || text.char_indices().map(|(at, _)| at as u32).collect();
        Offsets {
            len: text.len(),
            table: (!text.is_ascii()).then(table),
        }
    }
    fn byte(&self, index: usize) -> u32 {
        let known = match &self.table {
            Some(table) => table.get(index).copied(),
            None => Some(index as u32),
        };
        known.unwrap_or(u32::MAX).min(self.len as u32)
    }
}
