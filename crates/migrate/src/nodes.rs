//! Nodes of the foreign tree and of ours: found, read, made and written.

use std::borrow::Cow;

use ogive_base::Span;
use ogive_yaml::{Key, Node, Value};

/// Whether a switch that protects something is on: there, and not plainly off.
pub(crate) fn is_on(switch: &Node) -> bool {
    !switch.is_null() && scalar(switch) != Some("false")
}

/// The node at a path whose parts may be indexes of lists.
pub(crate) fn found<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, part| match &node.value {
        Value::Map(entries) => entries
            .iter()
            .find(|(k, _)| k.text == *part)
            .map(|(_, n)| n),
        Value::List(items) => items.get(part.parse::<usize>().ok()?),
        Value::Scalar { .. } => None,
    })
}

/// A path as one text: dots part its keys. A key with a dot of its own is quoted, as in `subgraphs."a.b".timeout`.
pub(crate) fn dotted(path: &[impl AsRef<str>]) -> String {
    let keys: Vec<Cow<'_, str>> = path.iter().map(|key| quoted(key.as_ref())).collect();
    keys.join(".")
}

/// A key as it stands in a path.
pub(crate) fn quoted(key: &str) -> Cow<'_, str> {
    if !key.contains(['.', '"']) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(format!(
        "\"{}\"",
        key.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

/// The keys of a path.
pub(crate) fn keys(path: &str) -> Vec<String> {
    let (mut keys, mut key) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in path.chars() {
        match c {
            _ if std::mem::take(&mut is_escaped) => key.push(c),
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => keys.push(std::mem::take(&mut key)),
            _ => key.push(c),
        }
    }
    keys.push(key);
    keys
}

/// The node at a path.
pub(crate) fn at<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    keys(path).iter().try_fold(root, |node, part| {
        let Value::Map(entries) = &node.value else {
            return None;
        };
        let found = entries.iter().find(|(key, _)| key.text == *part);
        found.map(|(_, node)| node)
    })
}

/// A scalar's text.
pub(crate) fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => Some(text),
        _ => None,
    }
}

/// An empty mapping.
pub(crate) fn map() -> Node {
    node(Value::Map(Vec::new()))
}
/// A list of one.
pub(crate) fn one(node: Node) -> Node {
    list(vec![node])
}
/// A list.
pub(crate) fn list(items: Vec<Node>) -> Node {
    node(Value::List(items))
}
/// A number, a switch or another word that needs no quotes.
pub(crate) fn plain(text: impl Into<String>) -> Node {
    node(Value::Scalar {
        text: text.into(),
        plain: true,
    })
}
/// A text.
pub(crate) fn text(text: impl Into<String>) -> Node {
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
pub(crate) fn set(root: &mut Node, path: &str, value: Node) {
    set_path(root, keys(path).iter().map(String::as_str), value);
}

/// Writes a value at a path, making the mappings on the way.
pub(crate) fn set_path<'p>(root: &mut Node, path: impl IntoIterator<Item = &'p str>, value: Node) {
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

/// Writes a value under one key, which may hold dots.
pub(crate) fn set_key(root: &mut Node, key: &str, value: Node) {
    set_path(root, [key], value);
}

/// The node at a path, to be written.
pub(crate) fn get_mut<'t>(root: &'t mut Node, path: &str) -> Option<&'t mut Node> {
    let mut place = root;
    for part in keys(path) {
        let Value::Map(entries) = &mut place.value else {
            return None;
        };
        let found = entries.iter_mut().find(|(key, _)| key.text == part);
        place = found.map(|(_, node)| node)?;
    }
    Some(place)
}

/// Takes an entry away from a path, and gives it.
pub(crate) fn take(root: &mut Node, path: &str) -> Option<(Key, Node)> {
    let mut above = keys(path);
    let last = above.pop()?;
    let section = match above.as_slice() {
        [] => root,
        above => get_mut(root, &dotted(above))?,
    };
    let Value::Map(entries) = &mut section.value else {
        return None;
    };
    let place = entries.iter().position(|(key, _)| key.text == last)?;
    Some(entries.remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for path in [
            &["a", "b"][..],
            &["x"],
            &["a.b", "", "x"],
            &["\"", "a\\", "a\\.\"b"],
            &["${env.A}"],
        ] {
            assert_eq!(keys(&dotted(path)), path);
            let mut root = map();
            set(&mut root, &dotted(path), text("value"));
            set(&mut root, "other.x", text("other"));
            assert_eq!(at(&root, &dotted(path)).and_then(scalar), Some("value"));
            assert!(take(&mut root, &dotted(path)).is_some());
            assert!(get_mut(&mut root, &dotted(path)).is_none());
        }
        assert_eq!(dotted(&["subgraphs", "a.b"]), "subgraphs.\"a.b\"");
    }
}
