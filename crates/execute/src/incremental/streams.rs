//! Lists that are answered item by item (`@stream`), for one set of variables.
//!
//! The first items of such a list are written with what is around it, the others later. So that the first ones need not wait for
//! look-ups of the others, fetches run in several *passes*: the first asks for what the initial items need, each later one for a
//! window of further items, twice as many as the window before; the last one for all that are left. An object inside of several
//! streamed lists belongs to the latest pass of them. A fetch of a pass starts when those that it depends on are done in this
//! pass and in all before it.
//!
//! A list has windows only if nothing else reads its items: no appearance that is not streamed, and no representation.

use ogive_base::{FastMap, FastSet};
use ogive_plan::{Deferral, Fetch, LayoutId, Member, OutSource, Plan, SlotIndex, StreamOutput};

use crate::{
    run::Run,
    store::{RecordId, RecordList, Store},
};

/// Passes of fetches with windows; few, since each of them asks subgraphs again.
const PASSES_MAX: u32 = 6;

/// A streamed list.
pub(crate) struct Row<'p> {
    pub(crate) layout: LayoutId,
    pub(crate) entry: usize,
    /// How many items are written with what is around it; nothing if the client said less than none.
    pub(crate) initial: Option<u32>,
    pub(crate) label: Option<&'p str>,
    /// Where it is, if it is a list of objects.
    slot: Option<SlotIndex>,
}

/// A slot of the objects of a place.
type Edge = (LayoutId, SlotIndex);

/// See the module documentation.
pub(crate) struct Streams<'p> {
    plan: &'p Plan,
    /// Sorted by layout and entry.
    rows: Vec<Row<'p>>,
    /// Slots with windows: with how many items of the first pass.
    windows: FastMap<Edge, u32>,
    /// Items of the first window after the initial items.
    window: u32,
}

impl<'p> Streams<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        deferral: &'p Deferral,
        variables: &[Option<Box<str>>],
        window: u32,
    ) -> Self {
        let value = |variable: Option<u32>| variables.get(variable? as usize)?.as_deref();
        let rows = in_effect(deferral, variables).map(|stream| {
            // Null where none may be is an error, and not the default.
            let count = value(stream.initial_variable).map_or_else(
                || Some(stream.initial_count.into()),
                |text| text.parse::<i64>().ok(),
            );
            let layout = plan.layouts.get(stream.layout);
            let entry = layout.and_then(|layout| layout.output.get(stream.entry as usize));
            Row {
                layout: stream.layout,
                entry: stream.entry as usize,
                initial: count.and_then(|count| u32::try_from(count).ok()),
                label: stream.label.as_deref(),
                slot: match entry.map(|entry| &entry.source) {
                    Some(OutSource::Object(slot)) => Some(*slot),
                    _ => None,
                },
            }
        });
        let mut streams = Streams {
            plan,
            rows: rows.collect(),
            windows: FastMap::default(),
            window: window.max(1),
        };
        streams.windows = streams.find_windows();
        streams
    }

    fn find_windows(&self) -> FastMap<Edge, u32> {
        let mut most: FastMap<Edge, u32> = FastMap::default();
        for row in &self.rows {
            if let (Some(slot), Some(initial)) = (row.slot, row.initial) {
                let known = most.entry((row.layout, slot)).or_default();
                *known = initial.max(*known);
            }
        }
        if most.is_empty() {
            return most;
        }
        for rows in self.rows.chunk_by(|a, b| a.layout == b.layout) {
            let layout = rows[0].layout;
            for (at, entry) in self.plan.layouts[layout].output.iter().enumerate() {
                if let OutSource::Object(slot) = entry.source
                    && self.get(layout, at).is_none()
                {
                    most.remove(&(layout, slot));
                }
            }
        }
        let (looked_up, read) = self.used_by_fetches();
        most.retain(|edge, _| looked_up.contains(edge) && !read.contains(edge));
        most
    }

    /// Slots below which fetches look objects up, and those that representations and values from above go through.
    fn used_by_fetches(&self) -> (FastSet<Edge>, FastSet<Edge>) {
        let (mut looked_up, mut read) = (FastSet::default(), FastSet::default());
        let fetches = self.plan.fetches.as_slice().iter();
        let lookups = fetches.flat_map(|fetch| &fetch.lookups);
        for target in lookups.flat_map(|lookup| &lookup.targets) {
            let mut at = target.layout;
            while let Some(edge) = self.plan.layouts[at].parent {
                if !looked_up.insert(edge) {
                    break;
                }
                at = edge.0;
            }
            for one in &target.representations {
                descend(self.plan, &one.members, target.layout, &mut read);
            }
            for one in &target.contexts {
                descend(self.plan, &one.members, one.layout, &mut read);
            }
        }
        (looked_up, read)
    }
    /// Whether any edge above a place is such.
    fn is_in(&self, layout: LayoutId, is_it: impl Fn(Edge) -> bool) -> bool {
        let mut at = layout;
        while let Some(edge) = self.plan.layouts[at].parent {
            if is_it(edge) {
                return true;
            }
            at = edge.0;
        }
        false
    }

    /// From now on nothing is streamed. Passes stay.
    pub(crate) fn stream_nothing(&mut self) {
        self.rows.clear();
    }
    pub(crate) fn row(&self, at: usize) -> &Row<'p> {
        &self.rows[at]
    }
    /// The streamed list that an entry of a place's output is.
    pub(crate) fn get(&self, layout: LayoutId, entry: usize) -> Option<usize> {
        let key = |row: &Row<'_>| (row.layout, row.entry);
        self.rows.binary_search_by_key(&(layout, entry), key).ok()
    }

    /// How often every fetch is run.
    pub(crate) fn passes(&self) -> u32 {
        if self.windows.is_empty() {
            1
        } else {
            PASSES_MAX
        }
    }
    /// The pass that asks for an item so far behind the initial ones.
    fn window_of(&self, behind: u32) -> u32 {
        (behind / self.window + 1)
            .ilog2()
            .saturating_add(1)
            .min(PASSES_MAX - 1)
    }
    /// The pass that asks for what an item of a list in a slot of an object needs.
    pub(crate) fn pass_of_item(
        &self,
        store: &Store<'_>,
        (parent, slot): (RecordId, SlotIndex),
        index: u32,
    ) -> u32 {
        let own = self.window_in(store, parent, slot, index);
        own.max(self.pass_of(store, parent))
    }
    fn window_in(&self, store: &Store<'_>, parent: RecordId, slot: SlotIndex, index: u32) -> u32 {
        let layout = store.layout(parent);
        let initial = self.windows.get(&(layout, slot));
        let behind = initial.and_then(|initial| index.checked_sub(*initial));
        behind.map_or(0, |behind| self.window_of(behind))
    }
    /// The pass that asks for what an object needs.
    pub(crate) fn pass_of(&self, store: &Store<'_>, record: RecordId) -> u32 {
        let mut pass = 0;
        if self.windows.is_empty() {
            return pass;
        }
        let mut at = record;
        while let Some((parent, slot, index)) = store.place(at) {
            if let Some(index) = index {
                pass = pass.max(self.window_in(store, parent, slot, index));
            }
            at = parent;
        }
        pass
    }

    /// What a fetch looks up in a pass: places with those of their objects that it is about; nothing of a place that is
    /// looked up as a whole. `None`: there is nothing to look up.
    pub(crate) fn narrowed(
        &self,
        store: &Store<'_>,
        fetch: &Fetch,
        pass: u32,
    ) -> Option<Vec<(LayoutId, RecordList)>> {
        let mut out: Vec<(LayoutId, RecordList)> = Vec::new();
        let mut known: FastSet<LayoutId> = FastSet::default();
        let mut is_empty = pass > 0;
        for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
            let layout = target.layout;
            if !known.insert(layout) {
                continue;
            }
            if self.is_in(layout, |edge| self.windows.contains_key(&edge)) {
                let all = store.of_layout(layout).iter().copied();
                let own: RecordList = all.filter(|r| self.pass_of(store, *r) == pass).collect();
                is_empty &= own.is_empty();
                out.push((layout, own));
            } else if pass > 0 {
                out.push((layout, RecordList::default()));
            }
        }
        (!is_empty).then_some(out)
    }

    /// Whether an object is an item of a streamed list, behind the initial ones.
    pub(crate) fn is_behind(&self, run: &Run<'_>, record: RecordId) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let store = run.store();
        let Some((parent, slot, Some(index))) = store.place(record) else {
            return false;
        };
        let layout = store.layout(parent);
        let outputs = &store.plan().layouts[layout].output;
        let from = self.rows.partition_point(|row| row.layout < layout);
        let mut rows = self.rows[from..]
            .iter()
            .take_while(|row| row.layout == layout);
        rows.any(|row| {
            row.slot == Some(slot)
                && row.initial.is_some_and(|initial| index >= initial)
                && outputs
                    .get(row.entry)
                    .is_some_and(|entry| run.applies(parent, entry))
        })
    }
}

/// Whether any list is streamed for these variables.
pub(super) fn streams_any(deferral: &Deferral, variables: &[Option<Box<str>>]) -> bool {
    in_effect(deferral, variables).next().is_some()
}
fn in_effect<'p>(
    deferral: &'p Deferral,
    variables: &[Option<Box<str>>],
) -> impl Iterator<Item = &'p StreamOutput> {
    deferral.streams.iter().filter(|stream| {
        let value = stream
            .variable
            .and_then(|at| variables.get(at as usize)?.as_deref());
        value != Some("false")
    })
}

/// Notes the slots that members of an object go through. They are nested no deeper than the schema says.
fn descend(plan: &Plan, members: &[Member], layout: LayoutId, through: &mut FastSet<Edge>) {
    for member in members {
        let Some(slot) = member.slot else { continue };
        through.insert((layout, slot));
        let slots = &plan.layouts[layout].slots;
        if let Some(child) = slots.get(usize::from(slot)).and_then(|slot| slot.child) {
            descend(plan, &member.members, child, through);
        }
    }
}
