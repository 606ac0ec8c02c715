//! What a configuration is before it is read into types: values with their places in the text.

use ogive_base::Span;

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
