//! The reader, on top of `saphyr-parser`'s events.
//!
//! What an alias stands for counts as if it were written out, so nothing expands without bound. Nesting and node count are
//! bounded while reading.

use std::{collections::BTreeMap, fmt};

use ogive_base::{FastMap, Span};
use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::tree::{Key, Node, Value};

/// What a text may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What the text is, for messages: `a configuration`.
    pub subject: &'static str,
    /// Most bytes of text.
    pub text_bytes: usize,
    /// Deepest nesting of mappings and lists. The tree is as deep.
    pub depth: usize,
    /// Most scalars, mappings and lists, aliases written out.
    pub nodes: usize,
    /// Whether there may be anchors and aliases.
    pub aliases: bool,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct YamlError {
    /// Of which kind it is.
    pub kind: ErrorKind,
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<&'static str>,
}

/// Kinds of what is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The text is not YAML, or YAML that is not supported.
    Syntax,
    /// A key is there twice, for the first time here. Reading goes on behind it.
    DuplicateKey(Span),
    /// The text is larger or deeper than its [`Limits`].
    Limit,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for YamlError {}

/// Where mistakes go.
type Report<'r> = &'r mut dyn FnMut(YamlError);

/// Reads one document; an empty text is null. `None` if reading had to end early. Every mistake is reported.
pub fn parse(text: &str, limits: Limits, report: Report<'_>) -> Option<Node> {
    if text.len() > limits.text_bytes {
        let (subject, mib) = (limits.subject, limits.text_bytes >> 20);
        let message = format!("{subject} has at most {mib} MiB of text");
        report(error(ErrorKind::Limit, Span::default(), message));
        return None;
    }
    let mut tree = TreeBuilder::new(limits);
    let offsets = Offsets::new(text);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                let start = offsets.byte(span.start.index());
                let end = offsets.byte(span.end.index());
                tree.add(event, Span::new(start, end), report)?;
            }
            Err(found) => {
                let at = offsets.byte(found.marker().index());
                let message = format!("this is not valid YAML: {}", found.info());
                report(error(ErrorKind::Syntax, Span::new(at, at), message));
                return None;
            }
        }
    }
    Some(tree.root.unwrap_or_else(|| Node::null(Span::default())))
}

fn error(kind: ErrorKind, span: Span, message: impl Into<String>) -> YamlError {
    YamlError {
        kind,
        span,
        message: message.into(),
        help: None,
    }
}

/// A collection that is still open.
enum Open {
    List(Start, Vec<Node>),
    Map(Start, OpenMap),
}

/// A mapping that is still open.
#[derive(Default)]
struct OpenMap {
    entries: Vec<(Key, Node)>,
    /// Where its keys are, to find one that is there twice in a mapping of any size.
    keys: FastMap<String, Span>,
    /// The key whose value comes next.
    key: Option<Key>,
}

/// Where a collection begins.
struct Start {
    span: Span,
    /// Its anchor; 0 if it has none.
    anchor: usize,
}

/// What an alias stands for.
struct Anchored {
    node: Node,
    extent: Extent,
}

/// How large a tree is.
#[derive(Clone, Copy)]
struct Extent {
    nodes: usize,
    /// Mappings and lists within one another.
    depth: usize,
}

/// The tree so far.
struct TreeBuilder {
    limits: Limits,
    open: Vec<Open>,
    anchored: BTreeMap<usize, Anchored>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
}

impl TreeBuilder {
    fn new(limits: Limits) -> Self {
        TreeBuilder {
            limits,
            open: Vec::new(),
            anchored: BTreeMap::new(),
            root: None,
            nodes: 0,
            documents: 0,
        }
    }
    /// Takes the next event. `None` if an error was reported.
    fn add(&mut self, event: Event<'_>, span: Span, report: Report<'_>) -> Option<()> {
        self.check(&event, span, report)?;
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
                self.open.push(Open::Map(start, OpenMap::default()));
                return Some(());
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (start, value) = match self.open.pop() {
                    Some(Open::List(start, items)) => (start, Value::List(items)),
                    Some(Open::Map(start, map)) => (start, Value::Map(map.entries)),
                    None => return Some(()),
                };
                let span = start.span.to(span);
                (Node { span, value }, start.anchor)
            }
            Event::Alias(anchor) => (self.alias(anchor, span, report)?, 0),
            _ => return Some(()),
        };
        if anchor != 0 {
            let (node, extent) = (done.clone(), Extent::of(&done));
            self.nodes += extent.nodes;
            self.anchored.insert(anchor, Anchored { node, extent });
        }
        match self.open.last_mut() {
            None => self.root = Some(done),
            Some(Open::List(_, items)) => items.push(done),
            Some(Open::Map(_, map)) => map.add(done, report)?,
        }
        Some(())
    }
    /// What an alias stands for, at the place of the alias.
    fn alias(&mut self, anchor: usize, span: Span, report: Report<'_>) -> Option<Node> {
        let Some(Anchored { node, extent }) = self.anchored.get(&anchor) else {
            let message = "this alias stands for a value that contains it";
            report(error(ErrorKind::Syntax, span, message));
            return None;
        };
        self.nodes += extent.nodes;
        let depth = self.open.len() + extent.depth;
        if self.nodes > self.limits.nodes || depth > self.limits.depth {
            report(self.limits.error(span));
            return None;
        }
        Some(Node {
            span,
            ..node.clone()
        })
    }
    /// Refuses what no file needs, and what is beyond the limits.
    fn check(&mut self, event: &Event<'_>, span: Span, report: Report<'_>) -> Option<()> {
        let Limits {
            subject,
            depth,
            nodes,
            aliases,
            ..
        } = self.limits;
        let is_refused = match event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor != 0 && !aliases) || tag.is_some(),
            Event::Alias(_) => !aliases,
            _ => false,
        };
        if is_refused {
            let message = if aliases {
                "tags (`!`) are not supported here"
            } else {
                "anchors (`&`), aliases (`*`) and tags (`!`) are not supported here"
            };
            report(YamlError {
                help: Some("write the value out, or quote it if it starts with one of these signs"),
                ..error(ErrorKind::Syntax, span, message)
            });
            return None;
        }
        self.nodes += 1;
        if self.nodes > nodes || self.open.len() > depth {
            report(self.limits.error(span));
            return None;
        }
        self.documents += usize::from(matches!(event, Event::DocumentStart(_)));
        if self.documents > 1 {
            let message = format!("{subject} is one YAML document; a second one starts here");
            report(error(ErrorKind::Syntax, span, message));
            return None;
        }
        Some(())
    }
}

impl Extent {
    /// The extent of a tree, whose depth is bounded.
    fn of(node: &Node) -> Self {
        let mut extent = Extent { nodes: 0, depth: 0 };
        let mut open = vec![(node, 0)];
        while let Some((node, depth)) = open.pop() {
            extent.nodes += 1;
            extent.depth = extent.depth.max(depth);
            match &node.value {
                Value::List(items) => open.extend(items.iter().map(|node| (node, depth + 1))),
                Value::Map(entries) => {
                    open.extend(entries.iter().map(|(_, node)| (node, depth + 1)));
                }
                Value::Scalar { .. } => {}
            }
        }
        extent
    }
}

impl Limits {
    fn error(&self, span: Span) -> YamlError {
        let Limits {
            subject,
            depth,
            nodes,
            ..
        } = self;
        let message = format!("{subject} has at most {nodes} values nested {depth} deep");
        error(ErrorKind::Limit, span, message)
    }
}

impl OpenMap {
    /// Takes a key or its value.
    fn add(&mut self, node: Node, report: Report<'_>) -> Option<()> {
        if let Some(key) = self.key.take() {
            self.entries.push((key, node));
            return Some(());
        }
        let Value::Scalar { text, .. } = node.value else {
            let message = "a key must be a single word";
            report(error(ErrorKind::Syntax, node.span, message));
            return None;
        };
        match self.keys.get(&text) {
            Some(first) => {
                let kind = ErrorKind::DuplicateKey(*first);
                report(error(kind, node.span, format!("`{text}` is set twice")));
            }
            None => {
                self.keys.insert(text.clone(), node.span);
            }
        }
        self.key = Some(Key {
            span: node.span,
            text,
        });
        Some(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        subject: "a file",
        text_bytes: 1 << 20,
        depth: 8,
        nodes: 1_000,
        aliases: true,
    };

    fn messages(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let tree = parse(text, LIMITS, &mut |error| found.push(error.message));
        assert!(tree.is_some() || !found.is_empty(), "{text}");
        found
    }

    #[test]
    fn what_aliases_stand_for_counts_as_if_it_were_written_out() {
        const BEYOND: &str = "a file has at most 1000 values nested 8 deep";
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        let mut tower = String::from("a0: &a0 [x]\n");
        for level in 1..12 {
            let below = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
            tower.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert_eq!(messages(&bomb), [BEYOND]);
        assert_eq!(messages(&tower), [BEYOND]);
        assert!(messages("a: &a [x]\nb: [*a, *a]\n").is_empty());
        let within = messages("a: &a [*a]\n");
        assert_eq!(within, ["this alias stands for a value that contains it"]);
    }

    #[test]
    fn a_key_that_is_there_twice_is_reported_with_its_first_place() {
        let mut found = Vec::new();
        let tree = parse("a: 1\nb: 2\na: 3\nb: 4\n", LIMITS, &mut |error| {
            found.push(error.kind)
        });
        assert!(tree.is_some());
        let first = |start| ErrorKind::DuplicateKey(Span::new(start, start + 1));
        assert_eq!(found, [first(0), first(5)]);
    }
}
