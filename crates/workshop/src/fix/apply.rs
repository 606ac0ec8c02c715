//! Edits to texts, and texts to a unified diff.

use std::ops::Range;

use similar::TextDiff;

use super::Repair;
use crate::load::Loaded;

/// A replacement in one subgraph.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    /// Which subgraph.
    pub(super) subgraph: usize,
    /// What is replaced; empty to insert.
    pub(super) range: Range<usize>,
    /// By what.
    pub(super) text: String,
    /// Whether it takes a field away.
    pub(super) takes_field: bool,
    /// Edits of one group are made together or not at all.
    pub(super) group: usize,
    /// Why.
    pub(super) repair: Repair,
}

/// Makes the edits that do not touch each other; the others have their turn in the next round. Returns what was done.
pub(super) fn apply(loaded: &mut [Loaded], edits: Vec<Edit>) -> Vec<Repair> {
    let mut made: Vec<Edit> = Vec::new();
    let touches = |a: &Edit, b: &Edit| {
        let same = a.range == b.range && a.text == b.text;
        a.subgraph == b.subgraph
            && !same
            && (a.range.start < b.range.end && b.range.start < a.range.end
                || a.range.start == b.range.start)
    };
    let mut at = 0;
    while at < edits.len() {
        let end = at
            + edits[at..]
                .iter()
                .take_while(|e| e.group == edits[at].group)
                .count();
        let group = &edits[at..end];
        at = end;
        if group.iter().any(|e| made.iter().any(|m| touches(e, m))) {
            continue;
        }
        for edit in group {
            let again = made.iter().any(|m| {
                m.subgraph == edit.subgraph && m.range == edit.range && m.text == edit.text
            });
            if !again {
                made.push(edit.clone());
            }
        }
    }
    let mut done: Vec<Repair> = Vec::new();
    for edit in &made {
        if !done.contains(&edit.repair) {
            done.push(edit.repair.clone());
        }
    }
    // From the end, so that places before stay where they are.
    made.sort_by_key(|e| std::cmp::Reverse((e.subgraph, e.range.start)));
    for edit in made {
        let mut text = loaded[edit.subgraph].sdl.to_string();
        text.replace_range(edit.range, &edit.text);
        loaded[edit.subgraph].sdl = text.into();
    }
    done
}

/// The change of one text as a unified diff; empty if there is none.
pub fn unified(called: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(2)
        .header(called, called)
        .to_string()
}
