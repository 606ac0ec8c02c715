//! No field of the client's takes away what a representation or context goes through (planner rule 71).
//!
//! A subgraph that fails to answer a non-null field answers null for its object. Where the client may see that null in place of
//! the object, and not of more, whoever needs other values of the object has to ask for it once more.

use ogive_base::{BitSet, id::Id};

use crate::{describe, ids::*, ir::*, representation::Member};

struct Own<'p> {
    plan: &'p Plan,
    /// By layout: its shapes.
    shapes: Vec<Vec<ShapeId>>,
    /// Shapes of look-ups, whose objects are there already.
    looked_up: BitSet,
    problems: Vec<String>,
}

/// Says what can be lost by a client's field.
pub(super) fn losses(plan: &Plan) -> Vec<String> {
    let mut own = Own {
        plan,
        shapes: vec![Vec::new(); plan.layouts.len()],
        looked_up: BitSet::new(),
        problems: Vec::new(),
    };
    for (id, shape) in plan.shapes.iter() {
        own.shapes[shape.layout.index()].push(id);
    }
    let lookups = || plan.fetches.iter().flat_map(|(_, fetch)| &fetch.lookups);
    let targets = || lookups().flat_map(|lookup| &lookup.targets);
    own.looked_up = targets().map(|target| target.shape.0).collect();
    for target in targets() {
        for representation in &target.representations {
            own.members(target.layout, &representation.members);
        }
        for context in &target.contexts {
            own.members(context.layout, &context.members);
        }
    }
    own.problems
}

impl Own<'_> {
    /// Recursion is bounded by the depth of field sets.
    fn members(&mut self, layout: LayoutId, members: &[Member]) {
        for member in members.iter().filter(|member| !member.members.is_empty()) {
            let Some(slot) = member.slot else { continue };
            let here = &self.plan.layouts[layout];
            let Some(child) = here.slots[usize::from(slot)].child else {
                continue;
            };
            let mut seen = here.output.iter();
            let stops_null = seen
                .any(|field| field.source == OutSource::Object(slot) && !field.wrapping.is_solid());
            if stops_null && let Some(coordinate) = self.lost_by(child, &member.members) {
                let place = describe::layout_path(self.plan, child);
                self.problems.push(format!(
                    "a representation goes through {place}, which is lost if {coordinate} fails"
                ));
            }
            self.members(child, &member.members);
        }
    }

    /// A client's field whose failure nulls the objects of a layout in an answer that brings something of `members`.
    fn lost_by(&self, layout: LayoutId, members: &[Member]) -> Option<&str> {
        let here = &self.plan.layouts[layout];
        let name = |slot: SlotIndex| &here.slots[usize::from(slot)].name;
        for field in here.output.iter() {
            let (OutSource::Leaf(slot, _) | OutSource::Object(slot)) = field.source else {
                continue;
            };
            let wanted = members.iter().find(|member| member.slot == Some(slot));
            // What both want fails both, wherever it lands.
            let mut slots = members.iter().filter_map(|member| member.slot);
            if wanted.is_none() && slots.any(|other| name(other) == name(slot)) {
                continue;
            }
            let child = here.slots[usize::from(slot)].child;
            let lost = match (wanted, child) {
                (None, _) if self.come_together(layout, slot, members) => {
                    field.wrapping.is_non_null().then_some(&*field.coordinate)
                }
                (Some(member), Some(child)) if field.wrapping.is_solid() => {
                    self.lost_by(child, &member.members)
                }
                _ => None,
            };
            if lost.is_some() {
                return lost;
            }
        }
        None
    }

    /// Whether an answer brings a slot with the object itself, or with something of `members`.
    fn come_together(&self, layout: LayoutId, slot: SlotIndex, members: &[Member]) -> bool {
        self.shapes[layout.index()].iter().any(|id| {
            let fields = &self.plan.shapes[*id].fields;
            let has = |slot: SlotIndex| fields.iter().any(|field| field.slot == slot);
            let mut needed = members.iter().filter_map(|member| member.slot);
            has(slot) && (!self.looked_up.contains(id.0) || needed.any(has))
        })
    }
}
