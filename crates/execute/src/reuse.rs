//! Reuse inside one operation: a representation that an identical look-up has sent to the same subgraph is not sent
//! again, whichever place of the response it serves.
//!
//! Identical means: same subgraph, same selection with the same arguments under the same conditions (the planner
//! numbers them, [`ogive_plan::Target::selection`]), and the same bytes of the representation. Such a look-up could not
//! be told from the first one by the subgraph, so it has the same answer as far as queries go. This is what a data
//! loader does, one level up. Mutations never reuse anything.
//!
//! [`crate::Reuse::All`] goes one step further: what the same subgraph has said of an entity in another place, by a root field
//! or deep in an answer, counts as well, if it is all leaves.
//!
//! Nothing is reused of an answer that came with any error, nor an entity that was null: it is asked for again. A fetch
//! of which all representations are on their way waits for them; one of which only some are sends those too, because
//! waiting could cost more than asking.
//!
//! What is remembered is bounded ([`ExecuteLimits::reuse_bytes_max`]); what does not fit is asked again.
//!
//! Invariants: the keyed hash only finds candidates, equality of all bytes decides; which answers are reused may depend
//! on the order in which they come, what the client gets does not (as long as subgraphs answer alike questions alike).

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use ogive_plan::FetchId;

use crate::{
    inline_list::InlineList,
    limits::ExecuteLimits,
    store::{RawRange, RecordId, Source},
};

/// What became of a representation that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReuseState {
    /// Nobody sent it, or the answer is no good.
    No,
    /// The fetch is under way.
    UnderWay(FetchId),
    /// The entity that was answered.
    Answered(Source, RawRange),
    /// An object of another place holds what the answer would be.
    Held(RecordId),
}

/// All representations of one operation that may be reused.
#[derive(Debug)]
pub(crate) struct Entities {
    /// Bytes that `bytes` and `rows` may have.
    bytes_max: usize,
    hasher: RandomState,
    /// Indexes into `rows`.
    table: HashTable<u32>,
    rows: Vec<Row>,
    /// The representations' bytes.
    bytes: Vec<u8>,
    /// Fetches, or parts of them, that were answered without errors.
    clean: Vec<FetchId>,
    /// Fetches a part of which was prefetched, as what.
    split: InlineList<(FetchId, FetchId), 4>,
}

/// What a row is counted as, with its place in the table.
const ROW_BYTES: usize = size_of::<Row>() + 8;

#[derive(Debug)]
struct Row {
    subgraph: u32,
    selection: u32,
    start: u32,
    len: u32,
    known: ReuseState,
}

/// What a representation is known by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) subgraph: u32,
    pub(crate) selection: u32,
    pub(crate) representation: &'a [u8],
}

impl Entities {
    pub(crate) fn new(limits: &ExecuteLimits) -> Self {
        Entities {
            bytes_max: limits.reuse_bytes_max.min(u32::MAX as usize),
            hasher: RandomState::default(),
            table: HashTable::new(),
            rows: Vec::new(),
            bytes: Vec::new(),
            clean: Vec::new(),
            split: InlineList::Empty,
        }
    }

    fn find(&self, key: Key<'_>) -> (u64, Option<u32>) {
        let hash = self
            .hasher
            .hash_one((key.subgraph, key.selection, key.representation));
        let same = |at: &u32| {
            let row = &self.rows[*at as usize];
            row.subgraph == key.subgraph
                && row.selection == key.selection
                && self.bytes_of(row) == key.representation
        };
        (hash, self.table.find(hash, same).copied())
    }
    fn bytes_of(&self, row: &Row) -> &[u8] {
        &self.bytes[row.start as usize..(row.start + row.len) as usize]
    }

    /// What became of a representation.
    pub(crate) fn get(&self, key: Key<'_>) -> ReuseState {
        let (_, row) = self.find(key);
        row.map_or(ReuseState::No, |at| self.rows[at as usize].known)
    }

    /// Notes that a part of a fetch is sent by itself, as `part`.
    pub(crate) fn prefetched(&mut self, fetch: FetchId, part: FetchId) {
        self.split.push((fetch, part));
    }
    /// Notes that a fetch, or what is known as one, was answered without errors.
    pub(crate) fn answered_well(&mut self, fetch: FetchId) {
        self.clean.push(fetch);
    }
    /// Whether it was, and the part that was prefetched as well.
    pub(crate) fn is_clean(&self, fetch: FetchId) -> bool {
        let mut parts = self.split.iter().filter(|(whole, _)| *whole == fetch);
        self.clean.contains(&fetch) && parts.all(|(_, part)| self.clean.contains(part))
    }

    /// Notes that an object holds what look-ups of a representation would be answered, unless more is known of it.
    pub(crate) fn hold(&mut self, key: Key<'_>, record: RecordId) {
        match self.find(key) {
            (_, Some(at)) => {
                let row = &mut self.rows[at as usize];
                if row.known == ReuseState::No {
                    row.known = ReuseState::Held(record);
                }
            }
            (hash, None) => {
                self.insert(hash, key, ReuseState::Held(record));
            }
        }
    }

    /// Notes that a representation is about to be sent; gives a ticket to say later what became of it. None if
    /// another fetch is about to answer it, or the table is full.
    pub(crate) fn send(&mut self, key: Key<'_>, fetch: FetchId) -> Option<u32> {
        let (hash, found) = self.find(key);
        if let Some(at) = found {
            let row = &mut self.rows[at as usize];
            let free = row.known == ReuseState::No;
            if free {
                row.known = ReuseState::UnderWay(fetch);
            }
            return free.then_some(at);
        }
        self.insert(hash, key, ReuseState::UnderWay(fetch))
    }

    /// A new row; None if the table is full.
    fn insert(&mut self, hash: u64, key: Key<'_>, known: ReuseState) -> Option<u32> {
        let (start, len) = (self.bytes.len(), key.representation.len());
        if start + len + (self.rows.len() + 1) * ROW_BYTES > self.bytes_max {
            return None;
        }
        let at = self.rows.len() as u32;
        self.bytes.extend_from_slice(key.representation);
        self.rows.push(Row {
            subgraph: key.subgraph,
            selection: key.selection,
            start: start as u32,
            len: len as u32,
            known,
        });
        let Entities {
            hasher,
            table,
            rows,
            bytes,
            ..
        } = self;
        table.insert_unique(hash, at, |at| {
            let row = &rows[*at as usize];
            let bytes = &bytes[row.start as usize..(row.start + row.len) as usize];
            hasher.hash_one((row.subgraph, row.selection, bytes))
        });
        Some(at)
    }

    /// Says that nobody will answer a representation any more, unless somebody has.
    pub(crate) fn give_up(&mut self, ticket: u32) {
        if let Some(row) = self.rows.get_mut(ticket as usize)
            && let ReuseState::UnderWay(_) = row.known
        {
            row.known = ReuseState::No;
        }
    }

    /// Says what became of a representation that was sent.
    pub(crate) fn settle(&mut self, ticket: u32, known: ReuseState) {
        if let Some(row) = self.rows.get_mut(ticket as usize) {
            row.known = known;
        }
    }
}
