//! What a text becomes: values with their places in it.

use ogive_base::Span;

/// One value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands in the text.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What it is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A scalar's text; `plain` if it was written without quotes, so that `null` and `~` mean nothing.
    Scalar {
        /// Its text, without quotes.
        text: String,
        /// Whether it was written without quotes.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in order; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A mapping's key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Where it stands in the text.
    pub span: Span,
    /// Its text.
    pub text: String,
}

impl Node {
    /// A node that says nothing.
    pub fn null(span: Span) -> Node {
        Node {
            span,
            value: Value::Scalar {
                text: String::new(),
                plain: true,
            },
        }
    }
    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }
    /// Written as nothing, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
    /// Whether nothing is written after the key.
    pub fn is_blank(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if text.is_empty())
    }
    /// For messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// The items of a list; none of anything else.
pub fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => &[],
    }
}

/// The values at a path; `*` stands for any key.
pub fn nodes<'n>(root: &'n Node, path: &[&str]) -> Vec<&'n Node> {
    let mut found = vec![root];
    for step in path {
        let entries = found.into_iter().flat_map(|node| match &node.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        });
        let entries = entries.filter(|(key, _)| *step == "*" || key.text == *step);
        found = entries.map(|(_, node)| node).collect();
    }
    found
}

/// Where a value stands that must be there.
pub fn span(root: &Node, path: &[&str]) -> Span {
    nodes(root, path)
        .first()
        .map_or(root.span, |node| node.span)
}
