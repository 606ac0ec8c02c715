//! Nodes of the foreign tree and of ours: found, read, made and written.

use ogive_base::Span;

use crate::tree::{Key, Node, Value};

/// Whether a switch that protects something is on: there, and not plainly off.
pub(super) fn is_on(switch: &Node) -> bool {
    !switch.is_null() && scalar(switch) != Some("false")
}

/// The node at a path whose parts may be indexes of lists.
pub(super) fn found<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, part| match &node.value {
        Value::Map(entries) => entries
            .iter()
            .find(|(k, _)| k.text == *part)
            .map(|(_, n)| n),
        Value::List(items) => items.get(part.parse::<usize>().ok()?),
        Value::Scalar { .. } => None,
    })
}

/// The node at a path.
pub(super) fn at<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    let mut node = root;
    for part in path.split('.') {
        let Value::Map(entries) = &node.value else {
            return None;
        };
        node = entries
            .iter()
            .find(|(k, _)| k.text == part)
            .map(|(_, n)| n)?;
    }
    Some(node)
}

/// A scalar's text.
pub(super) fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => Some(text),
        _ => None,
    }
}

/// An empty mapping.
pub(super) fn map() -> Node {
    node(Value::Map(Vec::new()))
}
/// A list of one.
pub(super) fn one(node: Node) -> Node {
    list(vec![node])
}
/// A list.
pub(super) fn list(items: Vec<Node>) -> Node {
    node(Value::List(items))
}
/// A number, a switch or another word that needs no quotes.
pub(super) fn plain(text: impl Into<String>) -> Node {
    node(Value::Scalar {
        text: text.into(),
        plain: true,
    })
}
/// A text.
pub(super) fn text(text: impl Into<String>) -> Node {
    node(Value::Scalar {
        text: text.into(),
        plain: false,
    })
}
fn node(value: Value) -> Node {
    Node {
        span: Span::default(),
        value,
    }
}

/// Writes a value at a path, making the mappings on the way.
pub(super) fn set(root: &mut Node, path: &str, value: Node) {
    set_path(root, path.split('.'), value);
}

/// The same by keys that may have dots in them.
pub(super) fn set_path<'p>(root: &mut Node, path: impl IntoIterator<Item = &'p str>, value: Node) {
    let mut place = root;
    for part in path {
        if !matches!(place.value, Value::Map(_)) {
            place.value = Value::Map(Vec::new());
        }
        let Value::Map(entries) = &mut place.value else {
            return;
        };
        let index = entries.iter().position(|(k, _)| k.text == part);
        let index = index.unwrap_or_else(|| {
            let key = Key {
                span: Span::default(),
                text: part.to_owned(),
            };
            entries.push((key, map()));
            entries.len() - 1
        });
        place = &mut entries[index].1;
    }
    *place = value;
}

/// The node at a path, to be written.
pub(super) fn get_mut<'t>(root: &'t mut Node, path: &str) -> Option<&'t mut Node> {
    let mut place = root;
    for part in path.split('.') {
        let Value::Map(entries) = &mut place.value else {
            return None;
        };
        place = entries
            .iter_mut()
            .find(|(k, _)| k.text == part)
            .map(|(_, n)| n)?;
    }
    Some(place)
}
/// Like `set`, for a key that may hold dots.
pub(super) fn set_key(root: &mut Node, key: &str, value: Node) {
    set(root, "x", value);
    if let Value::Map(entries) = &mut root.value
        && let Some((last, _)) = entries.iter_mut().find(|(k, _)| k.text == "x")
    {
        key.clone_into(&mut last.text);
    }
}
