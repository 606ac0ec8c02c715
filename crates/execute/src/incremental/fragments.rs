//! Which units and fragments there are: found while what is around them is written.

use ogive_plan::LayoutId;

use crate::{
    incremental::{
        IncrementalForm,
        delivery::Delivery,
        errors::Piece,
        groups::FIRST,
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
        let mut keys: Vec<u32> = Vec::new();
        let is_distinct = self.groups.form() == IncrementalForm::Distinct;
        for record in written.iter().copied() {
            // All of the object itself came to light when it was written first.
            if is_distinct && top == Some(record) {
                continue;
            }
            let layout = run.store().layout(record);
            let row = &run.store().plan().layouts[layout];
            keys.clear();
            for (entry, other) in row.output.iter().zip(self.groups.keys(layout)) {
                if *other != FIRST
                    && !self.groups.shows(piece.shown, *other)
                    && !keys.contains(other)
                    && run.applies(record, entry)
                {
                    keys.push(*other);
                }
            }
            for other in &keys {
                match self.groups.form() {
                    IncrementalForm::Distinct => self.add_unit(run, *other, record),
                    IncrementalForm::Repeated => {
                        let group = *other - 1;
                        let begins_here = self.groups.begins_at(group, layout);
                        let outer = around.map(|(group, _)| group);
                        if begins_here && self.is_inside(group, outer, layout, &keys) {
                            let parent = around.and_then(|(_, fragment)| fragment);
                            self.add_repeated(group, record, parent);
                        }
                    }
                }
            }
        }
    }

    /// Whether a group that begins at a place is the next one inside of what is written there. Groups between them that
    /// have nothing of their own do not count.
    fn is_inside(&self, group: u32, around: Option<u32>, layout: LayoutId, keys: &[u32]) -> bool {
        let mut at = self.groups.parent(group);
        while at != around {
            let Some(between) = at else { return false };
            let has_own = keys.contains(&(between + 1));
            if has_own || !self.groups.begins_at(between, layout) {
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
        for group in self.groups.of_key(key) {
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
