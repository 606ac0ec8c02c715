//! Names that a gateway's earlier or later versions have for keys that are known by another one: the foreign tree is
//! brought to the known names before it is walked, and the report says the names of the file.

use ogive_yaml::{Key, Node, Value};

use super::{
    Lost, ReportRow, Verdict,
    nodes::{dotted, get_mut, keys, map, quoted, set, take},
};

/// Where a section stands in the file, and where the rules look for it.
pub(crate) type SectionPlace = (&'static str, &'static str);

/// What was moved: the path that the rules know, and that of the file.
pub(crate) struct Placement(Vec<(String, String)>);

/// Brings sections to where the rules look for them. What stands there already stays, and so does its double.
pub(crate) fn apply(root: &mut Node, places: &[SectionPlace]) -> Placement {
    let mut moved = Vec::new();
    for (from, to) in places {
        let Some(Value::Map(entries)) = get_mut(root, from).map(|node| &mut node.value) else {
            if let Some(entry) = take(root, from) {
                moved.extend(put(root, from, to, entry));
            }
            continue;
        };
        if entries.is_empty() {
            continue;
        }
        for (key, node) in std::mem::take(entries) {
            let path = |section: &str| format!("{section}.{}", quoted(&key.text));
            let (from, to) = (path(from), path(to));
            moved.extend(put(root, &from, &to, (key, node)));
        }
        // An empty section would be reported as an unknown key.
        let left = get_mut(root, from).map(|node| &node.value);
        if matches!(left, Some(Value::Map(entries)) if entries.is_empty()) {
            take(root, from);
        }
    }
    Placement(moved)
}

/// Puts an entry where the rules look for it, or back where it was.
fn put(
    root: &mut Node,
    from: &str,
    to: &str,
    (key, node): (Key, Node),
) -> Option<(String, String)> {
    let is_free = get_mut(root, to).is_none() && can_hold(root, to);
    let place = if is_free { to } else { from };
    let (above, name) = split(place);
    // A section without a value becomes a mapping.
    if !above.is_empty() && get_mut(root, &above).is_none_or(|node| node.is_null()) {
        set(root, &above, map());
    }
    let section = match above.as_str() {
        "" => Some(root),
        above => get_mut(root, above),
    };
    if let Some(Value::Map(entries)) = section.map(|node| &mut node.value) {
        entries.push((Key { text: name, ..key }, node));
    }
    is_free.then(|| (to.to_owned(), from.to_owned()))
}

/// The path of the section that an entry is in, empty for the root; and the entry's key.
fn split(path: &str) -> (String, String) {
    let mut above = keys(path);
    let last = above.pop().unwrap_or_default();
    (dotted(&above), last)
}

/// Whether the section of an entry is one, or may become one.
fn can_hold(root: &mut Node, path: &str) -> bool {
    let (above, _) = split(path);
    let section = match above.as_str() {
        "" => return true,
        above => get_mut(root, above),
    };
    section.is_none_or(|node| node.is_null() || matches!(node.value, Value::Map(_)))
}

impl Placement {
    /// The path in the file.
    fn written(&self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        let mut is_moved = false;
        // What was moved twice is found last first.
        for (to, from) in self.0.iter().rev() {
            let rest = path.strip_prefix(to.as_str());
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('.')) {
                path = format!("{from}{rest}");
                is_moved = true;
            }
        }
        is_moved.then_some(path)
    }

    /// Says the names of the file.
    pub(crate) fn name(&self, report: &mut [ReportRow], lost: &mut [Lost]) {
        for row in report {
            if let Some(written) = self.written(&row.from) {
                row.from = written;
                if row.verdict == Verdict::Kept {
                    row.verdict = Verdict::Renamed;
                }
            }
        }
        for lost in lost {
            if let Some(written) = self.written(&lost.path) {
                lost.path = written;
            }
        }
    }
}
