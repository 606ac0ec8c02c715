//! The symbolic replay: who writes which slot for which types, and whether everything read is written before.
//!
//! Conditions are ignored: a plan must be complete with all of them true. Types are tracked per slot, not along paths
//! (whether an object exists at all depends on its parent's type too), so a gap that shows only for a combination of
//! parent and child type can go unnoticed here; differential execution finds those.

use ogive_base::{BitSet, id::Id};

use crate::{deferral::Deferral, describe, ids::*, ir::*, representation::Member};

/// A fetch that writes a slot, for some types.
struct Write {
    fetch: FetchId,
    types: BitSet,
}

struct Flow<'p> {
    plan: &'p Plan,
    /// By layout and slot.
    writes: Vec<Vec<Vec<Write>>>,
    /// By layout: fetches that learn the concrete types of its objects.
    typed: Vec<Vec<FetchId>>,
    /// By fetch: all fetches that are complete before it starts.
    before: Vec<BitSet>,
    problems: Vec<String>,
}

/// Says what is read without having been written.
pub(super) fn replay(plan: &Plan) -> Vec<String> {
    let layouts = plan.layouts.iter();
    let mut flow = Flow {
        plan,
        writes: layouts
            .map(|(_, layout)| layout.slots.iter().map(|_| Vec::new()).collect())
            .collect(),
        typed: plan.layouts.iter().map(|_| Vec::new()).collect(),
        before: Vec::new(),
        problems: Vec::new(),
    };
    for (id, fetch) in plan.fetches.iter() {
        // Fetches are in order of wave and waves grow along edges, so dependencies are done.
        let mut before = BitSet::new();
        for dependency in &fetch.dependencies {
            before.insert(dependency.0);
            before.union_with(&flow.before[dependency.index()]);
        }
        flow.before.push(before);
        flow.collect_writes(id, fetch);
    }
    for (id, fetch) in plan.fetches.iter() {
        for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
            flow.target(id, target);
        }
    }
    for id in plan.layouts.ids() {
        flow.output(id);
    }
    flow.mutations();
    flow.subscription();
    flow.problems
}

impl Flow<'_> {
    fn collect_writes(&mut self, id: FetchId, fetch: &Fetch) {
        let plan = self.plan;
        let mut open: Vec<(ShapeId, BitSet)> = Vec::new();
        if let Some(root) = &fetch.root {
            open.push((root.shape, plan.layouts[Plan::ROOT].types.clone()));
        }
        for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
            let all = &plan.layouts[target.layout].types;
            open.push((target.shape, target.types.as_ref().unwrap_or(all).clone()));
        }
        // Shapes below a shape belong to deeper layouts, so this ends.
        while let Some((shape, reached)) = open.pop() {
            let shape = &plan.shapes[shape];
            if shape.typename_key.is_some() {
                self.typed[shape.layout.index()].push(id);
            }
            for field in &shape.fields {
                let types = match &field.types {
                    Some(types) => types.intersection(&reached),
                    None => reached.clone(),
                };
                self.writes[shape.layout.index()][usize::from(field.slot)]
                    .push(Write { fetch: id, types });
                if let Some(child) = field.shape {
                    let below = &plan.layouts[plan.shapes[child].layout].types;
                    open.push((child, below.clone()));
                }
            }
        }
    }

    /// Whether a value of the response may come from a fetch: not from one of a part that comes later.
    fn in_time(&self, fetch: FetchId, part: u32) -> bool {
        let deferral = self.plan.deferral.as_ref();
        deferral.is_none_or(|d| d.follows(part, d.of_fetch(fetch.index())))
    }

    fn is_before(&self, earlier: FetchId, later: FetchId) -> bool {
        self.before[later.index()].contains(earlier.0)
    }

    /// `reader` reads a slot of objects of `types`: some must be written before it. A leaf may be written by nobody at
    /// the same time, or the answer would depend on timing; objects merge, and their leaves are read on their own.
    fn read(&mut self, reader: FetchId, layout: LayoutId, slot: SlotIndex, types: &BitSet) {
        let mut written = BitSet::new();
        let mut rivals = Vec::new();
        let is_leaf = self.plan.layouts[layout].slots[usize::from(slot)]
            .child
            .is_none();
        for write in &self.writes[layout.index()][usize::from(slot)] {
            if self.is_before(write.fetch, reader) {
                written.union_with(&write.types);
            } else if is_leaf
                && write.fetch != reader
                && !self.is_before(reader, write.fetch)
                && write.types.intersects(types)
            {
                rivals.push(write.fetch.0);
            }
        }
        let plan = self.plan;
        let place = || describe::slot_path(plan, layout, slot);
        if !written.intersects(types) {
            self.problems.push(format!(
                "fetch {} reads {}, which no fetch before it writes",
                reader.0,
                place()
            ));
        }
        for rival in rivals {
            self.problems.push(format!(
                "fetch {} reads {} but does not wait for fetch {rival}, which writes it",
                reader.0,
                place()
            ));
        }
    }

    fn target(&mut self, id: FetchId, target: &Target) {
        let plan = self.plan;
        // The objects themselves are values of the slots above them; whoever writes those first makes the objects.
        let mut at = target.layout;
        while let Some((parent, slot)) = plan.layouts[at].parent {
            let mut writes = self.writes[parent.index()][usize::from(slot)].iter();
            if !writes.any(|write| self.is_before(write.fetch, id)) {
                self.problems.push(format!(
                    "fetch {} looks up {}, which no fetch before it brings",
                    id.0,
                    describe::layout_path(plan, at),
                ));
            }
            at = parent;
        }
        let all = &plan.layouts[target.layout].types;
        let wanted = target.types.as_ref().unwrap_or(all);
        let by_type = target.types.as_ref().is_some_and(|types| types != all) && !target.untyped
            || target.representations.iter().any(|r| r.typename.is_none());
        if by_type {
            self.type_is_known(id, target.layout);
        }
        for context in &target.contexts {
            let all = plan.layouts[context.layout].types.clone();
            let members = context.members.iter();
            let mut open: Vec<(LayoutId, &Member, BitSet)> =
                members.map(|m| (context.layout, m, all.clone())).collect();
            while let Some((layout, member, mut types)) = open.pop() {
                if let Some(only) = &member.types {
                    types.intersect_with(only);
                    self.type_is_known(id, layout);
                }
                let Some(slot) = member.slot.filter(|_| !types.is_empty()) else {
                    continue;
                };
                self.read(id, layout, slot, &types);
                if let Some(child) = plan.layouts[layout].slots[usize::from(slot)].child {
                    let below = &plan.layouts[child].types;
                    let members = member.members.iter();
                    open.extend(members.map(|member| (child, member, below.clone())));
                }
            }
        }
        let mut covered = BitSet::new();
        for representation in &target.representations {
            covered.union_with(&self.covered(id, target.layout, &representation.members));
            let members = representation.members.iter();
            let mut open: Vec<(LayoutId, &Member, BitSet)> = members
                .map(|member| (target.layout, member, wanted.clone()))
                .collect();
            while let Some((layout, member, mut types)) = open.pop() {
                if let Some(only) = &member.types {
                    types.intersect_with(only);
                }
                if types.is_empty() {
                    continue;
                }
                if member.types.is_some() {
                    self.type_is_known(id, layout);
                }
                let Some(slot) = member.slot else {
                    self.type_is_known(id, layout);
                    continue;
                };
                self.read(id, layout, slot, &types);
                if let Some(child) = plan.layouts[layout].slots[usize::from(slot)].child {
                    let below = &plan.layouts[child].types;
                    let members = member.members.iter();
                    open.extend(members.map(|member| (child, member, below.clone())));
                }
            }
        }
        if !wanted.is_subset(&covered) {
            self.problems.push(format!(
                "fetch {} has no representation of {} at {}",
                id.0,
                describe::type_names(plan, &wanted.difference(&covered)),
                describe::layout_path(plan, target.layout),
            ));
        }
    }

    /// The types for which all key members are written before `id`.
    fn covered(&self, id: FetchId, layout: LayoutId, members: &[Member]) -> BitSet {
        let mut covered = self.plan.layouts[layout].types.clone();
        for member in members.iter().filter(|member| member.key) {
            let Some(slot) = member.slot else { continue };
            let mut written = BitSet::new();
            for write in &self.writes[layout.index()][usize::from(slot)] {
                if self.is_before(write.fetch, id) {
                    written.union_with(&write.types);
                }
            }
            if let Some(only) = &member.types {
                // Types without the member need not have it.
                written.union_with(&self.plan.layouts[layout].types.difference(only));
            }
            covered.intersect_with(&written);
        }
        covered
    }

    fn type_is_known(&mut self, reader: FetchId, layout: LayoutId) {
        let types = &self.plan.layouts[layout].types;
        let known = types.len() <= 1
            || self.typed[layout.index()]
                .iter()
                .any(|fetch| self.is_before(*fetch, reader));
        if !known {
            self.problems.push(format!(
                "fetch {} needs the concrete type at {}, which no fetch before it asks for",
                reader.0,
                describe::layout_path(self.plan, layout),
            ));
        }
    }

    fn output(&mut self, id: LayoutId) {
        let plan = self.plan;
        let layout = &plan.layouts[id];
        for (entry, field) in layout.output.iter().enumerate() {
            let part = plan.deferral.as_ref().map_or(0, |d| d.of_output(id, entry));
            let by_type = field.source == OutSource::Typename
                || field.types.as_ref().is_some_and(|t| *t != layout.types);
            let mut typed = self.typed[id.index()].iter();
            let is_typed = typed.any(|fetch| self.in_time(*fetch, part));
            if by_type && layout.types.len() > 1 && !is_typed {
                self.problems.push(format!(
                    "the response needs the concrete type at {}, which no fetch asks for",
                    describe::layout_path(plan, id),
                ));
            }
            let slot = match field.source {
                OutSource::Leaf(slot, _) | OutSource::Object(slot) => slot,
                OutSource::Typename | OutSource::Local(_) | OutSource::Null => continue,
            };
            let wanted = field.types.as_ref().unwrap_or(&layout.types);
            let mut written = BitSet::new();
            for write in &self.writes[id.index()][usize::from(slot)] {
                if self.in_time(write.fetch, part) {
                    written.union_with(&write.types);
                }
            }
            if !wanted.is_subset(&written) {
                self.problems.push(format!(
                    "no fetch writes {} of {}",
                    describe::slot_path(plan, id, slot),
                    describe::type_names(plan, &wanted.difference(&written)),
                ));
            }
        }
    }

    /// One request is the source of events, and everything else follows from it, event by event (planner rule 53).
    fn subscription(&mut self) {
        let fetches = &self.plan.fetches;
        if self.plan.kind != OperationKind::Subscription {
            return;
        }
        let is_source = |id: &FetchId| fetches[*id].kind == OperationKind::Subscription;
        let sources: Vec<FetchId> = fetches.ids().filter(is_source).collect();
        let [source] = sources.as_slice() else {
            let n = sources.len();
            if n > 1 || !fetches.is_empty() {
                self.problems
                    .push(format!("a subscription with {n} sources of events"));
            }
            return;
        };
        if !fetches[*source].lookups.is_empty() {
            let problem = format!("fetch {} is a source of events and looks up", source.0);
            self.problems.push(problem);
        }
        for id in fetches.ids().filter(|id| id != source) {
            if !self.is_before(*source, id) {
                self.problems.push(format!(
                    "fetch {} does not follow from the events of fetch {}",
                    id.0, source.0
                ));
            }
        }
    }

    /// Mutation root fields run one after another, each with everything that follows from it.
    fn mutations(&mut self) {
        let fetches = &self.plan.fetches;
        if self.plan.kind != OperationKind::Mutation {
            return;
        }
        let roots: Vec<FetchId> = fetches
            .ids()
            .filter(|id| fetches[*id].kind == OperationKind::Mutation)
            .collect();
        for pair in roots.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if !self.is_before(first, second) {
                self.problems.push(format!(
                    "mutation fetch {} does not wait for {}",
                    second.0, first.0
                ));
                continue;
            }
            // What is deferred holds nobody up.
            for id in fetches.ids() {
                if !self.in_time(id, Deferral::PRIMARY) {
                    continue;
                }
                let follows =
                    self.is_before(first, id) && id != second && !self.is_before(second, id);
                if follows && !self.is_before(id, second) {
                    self.problems.push(format!(
                        "mutation fetch {} does not wait for {}, which follows from {}",
                        second.0, id.0, first.0
                    ));
                }
            }
        }
    }
}
