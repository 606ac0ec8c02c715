//! YAML text to a tree of nodes with spans, on top of `saphyr-parser`'s events.
//!
//! What a configuration does not need is refused instead of half supported: several documents, anchors and aliases, tags,
//! keys that are no plain words. Files of other gateways may have aliases; what they stand for counts as if it were written
//! out, so nothing expands without bound. Nesting and node count are bounded while reading.

use std::collections::BTreeMap;

use ogive_base::Span;
use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::{
    codes,
    decode::Errors,
    tree::{Key, Node, Value},
};

/// Largest text.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of mappings and lists.
const DEPTH_MAX: usize = 32;
/// Most scalars, mappings and lists.
const NODES_MAX: usize = 20_000;

/// Reads one document. `None` if an error was reported; an empty text is null.
pub fn parse(text: &str, errors: &mut Errors) -> Option<Node> {
    read(text, TreeBuilder::default(), errors)
}

/// Reads one document that may have anchors and aliases.
pub fn parse_with_aliases(text: &str, errors: &mut Errors) -> Option<Node> {
    let tree = TreeBuilder {
        anchored: Some(BTreeMap::new()),
        ..TreeBuilder::default()
    };
    read(text, tree, errors)
}

fn read(text: &str, mut tree: TreeBuilder, errors: &mut Errors) -> Option<Node> {
    if text.len() > TEXT_BYTES_MAX {
        let message = "a configuration has at most 1 MiB of text".into();
        errors.push(codes::LIMIT, Span::default(), message, None);
        return None;
    }
    let offsets = Offsets::new(text);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                let start = offsets.byte(span.start.index());
                let end = offsets.byte(span.end.index());
                tree.event(event, Span::new(start, end), errors)?;
            }
            Err(error) => {
                let at = offsets.byte(error.marker().index());
                let message = format!("this is not valid YAML: {}", error.info());
                errors.push(codes::SYNTAX, Span::new(at, at), message, None);
                return None;
            }
        }
    }
    Some(tree.root.unwrap_or_else(|| Node::null(Span::default())))
}

/// A collection that is still open.
enum Open {
    List(Start, Vec<Node>),
    Map(Start, Vec<(Key, Node)>, Option<Key>),
}

/// Where a collection begins.
struct Start {
    span: Span,
    /// Its anchor; 0 if it has none.
    anchor: usize,
}

/// The tree so far.
#[derive(Default)]
struct TreeBuilder {
    open: Vec<Open>,
    /// What aliases stand for, by anchor, each with how many nodes it has; `None` if there may be no anchors.
    anchored: Option<BTreeMap<usize, (Node, usize)>>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
}

impl TreeBuilder {
    /// Takes the next event. `None` if an error was reported.
    fn event(&mut self, event: Event<'_>, span: Span, errors: &mut Errors) -> Option<()> {
        self.check(&event, span, errors)?;
        let (done, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = Value::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                };
                (Node { span, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                self.open
                    .push(Open::List(Start { span, anchor }, Vec::new()));
                return Some(());
            }
            Event::MappingStart(anchor, _) => {
                let start = Start { span, anchor };
                self.open.push(Open::Map(start, Vec::new(), None));
                return Some(());
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (start, value) = match self.open.pop() {
                    Some(Open::List(start, items)) => (start, Value::List(items)),
                    Some(Open::Map(start, entries, _)) => (start, Value::Map(entries)),
                    None => return Some(()),
                };
                let span = start.span.to(span);
                (Node { span, value }, start.anchor)
            }
            Event::Alias(anchor) => (self.alias(anchor, span, errors)?, 0),
            _ => return Some(()),
        };
        if let Some(anchored) = self.anchored.as_mut().filter(|_| anchor != 0) {
            let count = count(&done);
            self.nodes += count;
            anchored.insert(anchor, (done.clone(), count));
        }
        match self.open.last_mut() {
            None => self.root = Some(done),
            Some(Open::List(_, items)) => items.push(done),
            Some(Open::Map(_, entries, key)) => match key.take() {
                Some(key) => entries.push((key, done)),
                None => *key = Some(read_key(done, entries, errors)?),
            },
        }
        Some(())
    }
    /// What an alias stands for, at the place of the alias.
    fn alias(&mut self, anchor: usize, span: Span, errors: &mut Errors) -> Option<Node> {
        let found = self.anchored.as_ref().and_then(|all| all.get(&anchor));
        let Some((node, count)) = found else {
            let message = "this alias stands for a value that contains it".into();
            errors.push(codes::SYNTAX, span, message, None);
            return None;
        };
        self.nodes += count;
        Some(Node {
            span,
            ..node.clone()
        })
    }
    /// Refuses what a configuration does not need.
    fn check(&mut self, event: &Event<'_>, span: Span, errors: &mut Errors) -> Option<()> {
        let may_be_anchored = self.anchored.is_some();
        let is_refused = match event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => {
                (*anchor != 0 && !may_be_anchored) || tag.is_some()
            }
            Event::Alias(_) => !may_be_anchored,
            _ => false,
        };
        if is_refused {
            let message =
                "anchors (`&`), aliases (`*`) and tags (`!`) are not supported here".into();
            let help = "write the value out, or quote it if it starts with one of these signs";
            errors.push(codes::SYNTAX, span, message, Some(help.into()));
            return None;
        }
        self.nodes += 1;
        if self.nodes > NODES_MAX || self.open.len() > DEPTH_MAX {
            let message =
                format!("a configuration has at most {NODES_MAX} values nested {DEPTH_MAX} deep");
            errors.push(codes::LIMIT, span, message, None);
            return None;
        }
        self.documents += usize::from(matches!(event, Event::DocumentStart(_)));
        if self.documents > 1 {
            let message = "a configuration is one YAML document; a second one starts here".into();
            errors.push(codes::SYNTAX, span, message, None);
            return None;
        }
        Some(())
    }
}

/// How many nodes a tree has. Its depth is bounded.
fn count(node: &Node) -> usize {
    let mut open = vec![node];
    let mut count = 0;
    while let Some(node) = open.pop() {
        count += 1;
        match &node.value {
            Value::List(items) => open.extend(items),
            Value::Map(entries) => open.extend(entries.iter().map(|(_, node)| node)),
            Value::Scalar { .. } => {}
        }
    }
    count
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
