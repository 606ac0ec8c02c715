//! Lists that are answered item by item (`@stream`), for one set of variables.
//!
//! The first items of such a list are written with what is around it, the others later. So that the first ones need not wait for
//! look-ups of the others, fetches run in several *passes*: the first asks for what the initial items need, each later one for a
//! window of further items, twice as many as the window before; the last one for all that are left. An object inside of several
//! streamed lists belongs to the latest pass of them. A fetch of a pass starts when those that it depends on are done in this
//! pass and in all before it.
//!
//! A list has windows only if nothing else reads its items: no appearance that is not streamed, and no representation.

use ogive_plan::{Deferral, Fetch, LayoutId, Member, OutSource, Plan, SlotIndex};

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

/// See the module documentation.
pub(crate) struct Streams<'p> {
    plan: &'p Plan,
    /// Sorted by layout and entry.
    rows: Vec<Row<'p>>,
    /// Slots with windows: with how many items of the first pass.
    windows: Vec<(LayoutId, SlotIndex, u32)>,
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
        let in_effect = (deferral.streams.iter()).filter(|s| value(s.variable) != Some("false"));
        let rows = in_effect.map(|stream| {
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
            windows: Vec::new(),
            window: window.max(1),
        };
        streams.windows = streams.find_windows();
        streams
    }

    fn find_windows(&self) -> Vec<(LayoutId, SlotIndex, u32)> {
        let mut windows: Vec<(LayoutId, SlotIndex, u32)> = Vec::new();
        for row in &self.rows {
            let Some(slot) = row.slot else { continue };
            let known = windows.iter().any(|w| (w.0, w.1) == (row.layout, slot));
            let of_slot = self.rows.iter().filter(|other| {
                (other.layout, other.slot) == (row.layout, Some(slot)) && other.initial.is_some()
            });
            let most = of_slot.filter_map(|other| other.initial).max();
            let shown = (self.plan.layouts[row.layout].output.iter()).enumerate();
            let mut shown = shown.filter(|(_, entry)| entry.source == OutSource::Object(slot));
            let is_streamed = shown.all(|(at, _)| self.get(row.layout, at).is_some());
            let Some(most) = most.filter(|_| !known && is_streamed) else {
                continue;
            };
            let fetches = self.plan.fetches.as_slice();
            let is_looked_up = fetches
                .iter()
                .any(|fetch| self.looks_into(fetch, row.layout, slot));
            let is_read = fetches
                .iter()
                .any(|fetch| reads(self.plan, fetch, row.layout, slot));
            if is_looked_up && !is_read {
                windows.push((row.layout, slot, most));
            }
        }
        windows
    }

    /// Whether a fetch looks up what is in a slot.
    fn looks_into(&self, fetch: &Fetch, layout: LayoutId, slot: SlotIndex) -> bool {
        let mut targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
        targets.any(|target| self.is_in(target.layout, |edge| edge == (layout, slot)))
    }
    /// Whether any edge above a place is such.
    fn is_in(&self, layout: LayoutId, is_it: impl Fn((LayoutId, SlotIndex)) -> bool) -> bool {
        let mut at = layout;
        while let Some(edge) = self.plan.layouts[at].parent {
            if is_it(edge) {
                return true;
            }
            at = edge.0;
        }
        false
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
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
        let mut windows = self.windows.iter();
        let window = windows.find(|window| (window.0, window.1) == (layout, slot));
        let behind = window.and_then(|(_, _, initial)| index.checked_sub(*initial));
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
        let mut is_empty = pass > 0;
        for target in fetch.lookups.iter().flat_map(|lookup| &lookup.targets) {
            let layout = target.layout;
            if out.iter().any(|(known, _)| *known == layout) {
                continue;
            }
            let has_window =
                |edge: (LayoutId, SlotIndex)| self.windows.iter().any(|w| (w.0, w.1) == edge);
            if self.is_in(layout, has_window) {
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
        let mut rows = self.rows.iter();
        rows.any(|row| {
            row.layout == layout
                && row.slot == Some(slot)
                && row.initial.is_some_and(|initial| index >= initial)
                && outputs
                    .get(row.entry)
                    .is_some_and(|entry| run.applies(parent, entry))
        })
    }
}

/// Whether a representation, or a value from above, has something of the objects in a slot.
fn reads(plan: &Plan, fetch: &Fetch, layout: LayoutId, slot: SlotIndex) -> bool {
    let targets = fetch.lookups.iter().flat_map(|lookup| &lookup.targets);
    targets.into_iter().any(|target| {
        let mut of_target = target.representations.iter();
        let mut of_contexts = target.contexts.iter();
        of_target.any(|one| descends(plan, &one.members, target.layout, (layout, slot)))
            || of_contexts.any(|one| descends(plan, &one.members, one.layout, (layout, slot)))
    })
}

/// Whether members of an object go through a slot. They are nested no deeper than the schema says.
fn descends(
    plan: &Plan,
    members: &[Member],
    layout: LayoutId,
    through: (LayoutId, SlotIndex),
) -> bool {
    members.iter().any(|member| {
        let Some(slot) = member.slot else {
            return false;
        };
        let child = plan.layouts[layout]
            .slots
            .get(usize::from(slot))
            .and_then(|slot| slot.child);
        (layout, slot) == through
            || child.is_some_and(|child| descends(plan, &member.members, child, through))
    })
}
