//! What is gathered for one request: representations, and who waits for the answer to which.

use std::ops::Range;

use bytes::Bytes;
use ogive_plan::{Gate, ShapeId};

use crate::{
    inline_list::InlineList,
    store::{RawRange, RecordId, Source},
};

/// The representations of one fetch, by look-up.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Whether the fetch's root fields are asked.
    pub(crate) root: bool,
    pub(crate) lookups: Vec<GatheredLookup>,
    /// The representations of all look-ups: of each, JSON objects separated by commas.
    pub(crate) text: Vec<u8>,
    /// Variables whose values come from objects above those that are looked up, as JSON members each behind a comma.
    /// Shared by all parts of a request.
    pub(crate) context: Bytes,
    /// Whether it is what is left of a request that failed as a whole.
    pub(crate) is_retry: bool,
    /// Records that are not asked for because something failed that they are looked up by, and what each was to get.
    pub(crate) unasked: Vec<(ShapeId, RecordId)>,
}

/// The representations of one look-up.
#[derive(Debug, Default)]
pub(crate) struct GatheredLookup {
    /// Where its representations stand in [`Gathered::text`]...
    pub(crate) text: Range<usize>,
    /// ... and each of them.
    pub(crate) ranges: InlineList<(usize, usize), 4>,
    /// Number of them.
    pub(crate) n_representations: u32,
    /// Who waits for which answer, sorted by representation.
    pub(crate) instances: InlineList<Instance, 4>,
    /// By representation, the ticket by which others can reuse its answer; empty if nobody could.
    pub(crate) tickets: Vec<Option<u32>>,
    /// By representation, the group of values from above it goes with, if it goes with any; empty if the look-up needs
    /// none.
    pub(crate) groups: Vec<Option<u32>>,
    /// The groups: variables as JSON members each behind a comma.
    pub(crate) contexts: Vec<Bytes>,
    /// Who gets an entity that an earlier fetch was answered.
    pub(crate) reused: Vec<(Source, RawRange, Instance)>,
    /// Who gets the values of an object of another place.
    pub(crate) held: Vec<(RecordId, Instance)>,
}

impl GatheredLookup {
    /// Who gets something that is known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Instance> {
        let reused = self.reused.iter().map(|(_, _, instance)| instance);
        reused.chain(self.held.iter().map(|(_, instance)| instance))
    }
    /// The records that wait for the answer to one representation.
    pub(crate) fn waiting_for(&self, representation: u32) -> &[Instance] {
        let all = &self.instances;
        let start = all.partition_point(|i| i.representation < representation);
        let len = all[start..].partition_point(|i| i.representation == representation);
        &all[start..start + len]
    }
}

/// A record that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Index of its representation.
    pub(crate) representation: u32,
    /// Index into the targets of its look-up.
    pub(crate) target: u16,
    pub(crate) record: RecordId,
}

impl Instance {
    pub(super) fn new(target: usize, record: RecordId) -> Self {
        Instance {
            representation: 0,
            target: target as u16,
            record,
        }
    }
}

impl Gathered {
    /// Whether look-up `lookup` has something to send, or the root fields are asked ([`Gate::ROOT`]).
    pub(crate) fn is_live(&self, lookup: u16) -> bool {
        if lookup == Gate::ROOT {
            return self.root;
        }
        self.lookups
            .get(usize::from(lookup))
            .is_some_and(|lookup| lookup.n_representations > 0)
    }
    /// Whether an earlier answer has something for this fetch.
    pub(crate) fn has_reused(&self) -> bool {
        let has = |l: &GatheredLookup| !l.reused.is_empty() || !l.held.is_empty();
        self.lookups.iter().any(has)
    }
    /// How many objects get something of an earlier answer.
    pub(crate) fn n_reused(&self) -> u64 {
        let n = |l: &GatheredLookup| (l.reused.len() + l.held.len()) as u64;
        self.lookups.iter().map(n).sum()
    }
    /// After they got it.
    pub(crate) fn forget_reused(&mut self) {
        for lookup in &mut self.lookups {
            lookup.reused = Vec::new();
            lookup.held = Vec::new();
        }
    }
    /// Number of representations to send.
    pub(crate) fn n_representations(&self) -> u64 {
        let counts = self.lookups.iter().map(|l| u64::from(l.n_representations));
        counts.sum()
    }
}
