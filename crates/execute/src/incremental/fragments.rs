//! Which units and fragments there are: found while what is around them is written.

use ogive_base::FastSet;
use ogive_plan::LayoutId;

use crate::{
    incremental::{
        IncrementalForm,
        delivery::Delivery,
        errors::Piece,
        part::{Fragment, Outcome, Part, Unit},
    },
    run::Run,
    store::RecordId,
};

impl Delivery<'_> {
    /// Finds the units of objects that were written. `top` is the object of a unit; `around` the group that was written, if
    /// it was not the initial response, and its fragment, unless it was an item of a list.
    pub(super) fn discover(
        &mut self,
        run: &mut Run<'_>,
        (piece, top): (Piece, Option<RecordId>),
        around: Option<(u32, Option<usize>)>,
        written: &[RecordId],
    ) {
        let is_distinct = self.groups.form() == IncrementalForm::Distinct;
        for record in written.iter().copied() {
            self.steps += 1;
            if is_distinct {
                // All of the object itself came to light when it was written first.
                if top != Some(record) {
                    for key in self.further_keys(run, piece, record) {
                        self.add_unit(run, key, record);
                    }
                }
                continue;
            }
            let groups = match around {
                Some((outer, _)) if top == Some(record) => self.inside(run, outer, record),
                _ => self.next_inside(run, piece, record, around.map(|(group, _)| group)),
            };
            let parent = around.and_then(|(_, fragment)| fragment);
            for group in groups {
                self.add_repeated(group, record, parent);
            }
        }
    }

    /// Keys of which an object has more than is written with a piece, in the order of their first entries.
    fn further_keys(&mut self, run: &Run<'_>, piece: Piece, record: RecordId) -> Vec<u32> {
        let layout = run.store().layout(record);
        let groups = &self.groups;
        let mut keys: Vec<(u32, u32)> = Vec::new();
        for of_key in groups.entries_by_key(layout) {
            self.steps += 1;
            let key = of_key[0].0;
            if !groups.shows(piece.shown, key)
                && let Some(first) = first_of(run, record, of_key)
            {
                keys.push((first, key));
            }
        }
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// The groups that begin at an object and are the next ones inside of what is written of it as part of a group. Groups
    /// between them that have nothing of their own do not count.
    fn inside(&mut self, run: &Run<'_>, outer: u32, record: RecordId) -> Vec<u32> {
        let layout = run.store().layout(record);
        let mut found: Vec<(u32, u32)> = Vec::new();
        let mut open: Vec<u32> = self.groups.children_at(outer, layout).to_vec();
        while let Some(group) = open.pop() {
            self.steps += 1;
            match first_of(run, record, self.groups.entries(layout, group + 1)) {
                Some(first) => found.push((first, group)),
                None => open.extend(self.groups.children_at(group, layout)),
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// The same for an object inside of what is written.
    fn next_inside(
        &mut self,
        run: &Run<'_>,
        piece: Piece,
        record: RecordId,
        outer: Option<u32>,
    ) -> Vec<u32> {
        let layout = run.store().layout(record);
        let mut groups = self.further_keys(run, piece, record);
        groups.iter_mut().for_each(|key| *key -= 1);
        let own: FastSet<u32> = groups.iter().copied().collect();
        groups.retain(|group| {
            self.groups.begins_at(*group, layout) && self.is_inside(*group, outer, layout, &own)
        });
        groups
    }
    fn is_inside(
        &self,
        group: u32,
        around: Option<u32>,
        layout: LayoutId,
        own: &FastSet<u32>,
    ) -> bool {
        let mut at = self.groups.parent(group);
        while at != around {
            let Some(between) = at else { return false };
            if own.contains(&between) || !self.groups.begins_at(between, layout) {
                return false;
            }
            at = self.groups.parent(between);
        }
        true
    }

    /// Adds a unit to the fragments of its groups.
    fn add_unit(&mut self, run: &mut Run<'_>, key: u32, record: RecordId) {
        let unit = self.units.len();
        let mut fragments = Vec::new();
        for group in self.groups.of_key(key).to_vec() {
            self.steps += 1;
            let fragment = self.fragment(run, group, record);
            fragments.extend(fragment);
        }
        for fragment in &fragments {
            self.fragments[*fragment].units.push(unit);
        }
        self.units.push(Unit {
            piece: Piece::of(key, record),
            fragments,
            streams: Vec::new(),
            outcome: Outcome::Waiting,
        });
    }
    /// The fragment of a group that an object is in, with those around it. None of a group around a list that is streamed:
    /// items have all that such a group asks for.
    fn fragment(&mut self, run: &mut Run<'_>, group: u32, inner: RecordId) -> Option<usize> {
        let record = self.beginning(run, group, inner)?;
        if let Some(known) = self.known.get(&(group, record)) {
            return Some(*known);
        }
        // Nested no deeper than the operation is.
        let around = self.groups.parent(group);
        let around = around.filter(|around| self.beginning(run, *around, record).is_some());
        let parent = match around {
            Some(parent) => Some(self.fragment(run, parent, record)?),
            None => None,
        };
        self.add_fragment(group, record, parent)
    }
    /// The object that a group begins at, unless a streamed list is between.
    fn beginning(&self, run: &Run<'_>, group: u32, inner: RecordId) -> Option<RecordId> {
        let store = run.store();
        let mut record = inner;
        while !self.groups.begins_at(group, store.layout(record)) {
            if self.streams.is_behind(run, record) {
                return None;
            }
            record = store.parent(record)?;
        }
        Some(record)
    }
    fn add_fragment(
        &mut self,
        group: u32,
        record: RecordId,
        parent: Option<usize>,
    ) -> Option<usize> {
        if self.fragments.len() + self.open.len() >= self.groups_max {
            self.is_full = true;
            return None;
        }
        let fragment = self.fragments.len();
        self.fragments.push(Fragment {
            group,
            record,
            units: Vec::new(),
            children: Vec::new(),
            id: None,
            written: 0,
            sent: 0,
        });
        self.known.insert((group, record), fragment);
        match parent {
            Some(parent) => self.fragments[parent].children.push(fragment),
            None => self.candidates.push(Part::Fragment(fragment)),
        }
        Some(fragment)
    }
    /// Adds a fragment that is written with all that it asks for.
    fn add_repeated(&mut self, group: u32, record: RecordId, parent: Option<usize>) {
        if let Some(fragment) = self.add_fragment(group, record, parent) {
            self.fragments[fragment].units.push(self.units.len());
            self.units.push(Unit {
                piece: Piece::of(group + 1, record),
                fragments: vec![fragment],
                streams: Vec::new(),
                outcome: Outcome::Waiting,
            });
        }
    }
}

/// The first of a key's entries that an object has.
fn first_of(run: &Run<'_>, record: RecordId, of_key: &[(u32, u32)]) -> Option<u32> {
    let store = run.store();
    let output = &store.plan().layouts[store.layout(record)].output;
    let mut entries = of_key.iter().map(|(_, entry)| *entry);
    entries.find(|at| {
        output
            .get(*at as usize)
            .is_some_and(|entry| run.applies(record, entry))
    })
}
