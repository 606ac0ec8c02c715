//! The fetch graph in words, shared by the pictures ([`mod@crate::dot`], [`mod@crate::mermaid`], [`mod@crate::svg`]):
//! a box per request with what it is asked, and an arrow per dependency with what it carries.
//!
//! Lines are grouped by object: `topProducts[]: upc name`. Every list has a named limit, because a picture of a huge
//! plan must still be a picture.

use ogive_base::{FastSet, id::Id};

use crate::{
    describe::{condition, layout_path, subgraph_name, type_names},
    ids::*,
    ir::*,
};

/// Most lines in one box; the rest is counted.
pub const BOX_LINES_MAX: usize = 8;
/// Most lines on one arrow; the rest is counted.
pub const ARROW_LINES_MAX: usize = 4;
/// Most characters of a line; longer ones end in `…`.
pub const LINE_CHARS_MAX: usize = 60;

/// The fetch graph of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// One box per fetch, by [`FetchId`].
    pub boxes: Vec<RequestBox>,
    /// One arrow per dependency, in order of the fetch that waits.
    pub arrows: Vec<Arrow>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBox {
    /// The fetch.
    pub fetch: FetchId,
    /// Whom it asks.
    pub subgraph: String,
    /// In which wave.
    pub wave: u32,
    /// What it asks, one object per line.
    pub lines: Vec<String>,
}

/// One dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The fetch that must be complete first.
    pub from: FetchId,
    /// The fetch that waits.
    pub to: FetchId,
    /// What the second takes from the first, one object per line; empty if only order matters.
    pub lines: Vec<String>,
}

/// The fetch graph of a plan.
pub fn graph(plan: &Plan) -> Graph {
    let writes: Vec<FastSet<(LayoutId, SlotIndex)>> = plan
        .fetches
        .iter()
        .map(|(_, fetch)| written(plan, fetch))
        .collect();
    let mut boxes = Vec::new();
    let mut arrows = Vec::new();
    for (id, fetch) in plan.fetches.iter() {
        boxes.push(RequestBox {
            fetch: id,
            subgraph: subgraph_name(plan, fetch.subgraph).to_owned(),
            wave: fetch.wave,
            lines: asked(plan, fetch),
        });
        let reads = read(plan, fetch);
        for from in &fetch.dependencies {
            let carried = reads
                .iter()
                .filter(|slot| writes.get(from.index()).is_some_and(|w| w.contains(*slot)));
            arrows.push(Arrow {
                from: *from,
                to: id,
                lines: limited(grouped(plan, carried), ARROW_LINES_MAX),
            });
        }
    }
    Graph { boxes, arrows }
}

/// The shapes a fetch fills, each with the condition and types of its target.
fn parts(fetch: &Fetch) -> impl Iterator<Item = (ShapeId, Cond, Option<&ogive_base::BitSet>)> {
    let root = fetch.root.iter().map(|root| (root.shape, root.cond, None));
    let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
    root.chain(targets.map(|t| (t.shape, t.cond, t.types.as_ref())))
}

/// Every object a shape fills, parents first. Shapes below a shape belong to deeper layouts, so this ends.
fn objects(plan: &Plan, shape: ShapeId) -> Vec<&ObjectShape> {
    let mut out = Vec::new();
    let mut open = vec![shape];
    while let Some(id) = open.pop() {
        let Some(shape) = plan.shapes.get(id) else {
            continue;
        };
        out.push(shape);
        let below = shape.fields.iter().rev().filter_map(|field| field.shape);
        open.extend(below.filter(|child| {
            let child = plan.shapes.get(*child);
            child.is_some_and(|child| child.layout > shape.layout)
        }));
    }
    out
}

fn written(plan: &Plan, fetch: &Fetch) -> FastSet<(LayoutId, SlotIndex)> {
    parts(fetch)
        .flat_map(|(shape, ..)| objects(plan, shape))
        .flat_map(|shape| shape.fields.iter().map(|f| (shape.layout, f.slot)))
        .collect()
}

/// Slots that representations of a fetch are made from, in order.
fn read(plan: &Plan, fetch: &Fetch) -> Vec<(LayoutId, SlotIndex)> {
    let mut out = Vec::new();
    for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
        let keys = target.representations.iter();
        let keys = keys.map(|r| (target.layout, &r.members));
        let above = target.contexts.iter().map(|c| (c.layout, &c.members));
        for (layout, members) in keys.chain(above) {
            let mut open = vec![(layout, members.iter())];
            while let Some((layout, members)) = open.last_mut() {
                let Some(member) = members.next() else {
                    open.pop();
                    continue;
                };
                let Some(slot) = member.slot else { continue };
                let at = (*layout, slot);
                let child = plan.layouts.get(at.0).and_then(|layout| {
                    let slot = layout.slots.get(usize::from(slot))?;
                    slot.child
                });
                match child.filter(|_| !member.members.is_empty()) {
                    Some(child) => open.push((child, member.members.iter())),
                    None if !out.contains(&at) => out.push(at),
                    None => {}
                }
            }
        }
    }
    out
}

/// Slots as lines: `place: name name`, one line per place, in order of first mention.
fn grouped<'a>(
    plan: &Plan,
    slots: impl Iterator<Item = &'a (LayoutId, SlotIndex)>,
) -> Vec<(String, String)> {
    let mut lines: Vec<(LayoutId, String)> = Vec::new();
    for (layout, slot) in slots {
        let name = plan
            .layouts
            .get(*layout)
            .and_then(|layout| layout.slots.get(usize::from(*slot)))
            .map_or("?", |slot| &slot.name);
        match lines.iter_mut().find(|(known, _)| known == layout) {
            Some((_, names)) => {
                names.push(' ');
                names.push_str(name);
            }
            None => lines.push((*layout, name.to_owned())),
        }
    }
    lines
        .into_iter()
        .map(|(layout, names)| (layout_path(plan, layout), names))
        .collect()
}

/// What a fetch asks: for every object, its leaves.
fn asked(plan: &Plan, fetch: &Fetch) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (shape, cond, types) in parts(fetch) {
        for (at, shape) in objects(plan, shape).into_iter().enumerate() {
            let layout = plan.layouts.get(shape.layout);
            let name = |field: &ShapeField| {
                let slots = layout.map_or(&[][..], |layout| &layout.slots);
                let slot = slots.get(usize::from(field.slot));
                slot.map_or("?", |slot| slot.client_key.as_deref().unwrap_or(&slot.name))
                    .to_owned()
            };
            let leaves = shape.fields.iter().filter(|field| field.shape.is_none());
            let mut names: Vec<String> = Vec::new();
            for leaf in leaves.map(name) {
                if !names.contains(&leaf) {
                    names.push(leaf);
                }
            }
            if names.is_empty() {
                if !shape.fields.is_empty() {
                    continue;
                }
                names.push("__typename".to_owned());
            }
            let mut place = layout_path(plan, shape.layout);
            if let (0, Some(types)) = (at, types) {
                place = format!("{place} ({})", type_names(plan, types));
            }
            let mut names = names.join(" ");
            let cond = condition(plan, cond);
            if at == 0 && !cond.is_empty() {
                names = format!("{names} if {cond}");
            }
            lines.push((place, names));
        }
    }
    limited(lines, BOX_LINES_MAX)
}

fn limited(lines: Vec<(String, String)>, most: usize) -> Vec<String> {
    let total = lines.len();
    let shown = if total > most { most - 1 } else { total };
    let mut out: Vec<String> = lines
        .into_iter()
        .take(shown)
        .map(|(place, names)| match place.as_str() {
            "" => short(&names),
            place => short(&format!("{place}: {names}")),
        })
        .collect();
    if total > shown {
        out.push(format!("… and {} more", total - shown));
    }
    out
}

/// A line of at most [`LINE_CHARS_MAX`] characters.
fn short(line: &str) -> String {
    if line.chars().count() <= LINE_CHARS_MAX {
        return line.to_owned();
    }
    let kept: String = line.chars().take(LINE_CHARS_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}
