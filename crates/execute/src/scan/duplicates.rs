//! Objects that an answer repeats word for word are read once.
//!
//! Where entities meet again and again, in the reviews of a product and in those of their authors, an answer says the
//! same of them each time, with the same bytes. So the fast lane remembers where objects were read and into which
//! records; an object of the same shape that has the same bytes gets copies of these records, whose values are the
//! ranges of the first one. What is copied is known as a *duplicate* of what it was copied from ([`crate::store::Store::duplicate`]), which saves
//! more later: duplicates have the same representation and mostly the same text in the response.
//!
//! Invariants: only objects that were read in the lane from their first byte to their last, without an error, are
//! copied; equality of all bytes decides. Shapes whose objects do not repeat are soon left alone.

use ogive_base::id::Id;
use ogive_plan::ShapeId;

use crate::store::Extent;

/// So many bits of a hash say where an object is remembered...
const SLOT_BITS: u32 = 6;
/// ... and so many objects are at a time.
const ENTRIES: usize = 1 << SLOT_BITS;
/// How often in a row objects of a shape may be new before it is no longer looked whether they are.
const MISSES_MAX: u8 = 32;
/// Shapes share this many counts.
const COUNTS: usize = 64;
/// In shorter answers nothing is looked for.
const TEXT_BYTES_MIN: usize = 512;
/// Where in an object its values are expected to begin, and with a name of a type before them.
const VALUES_AT: usize = 4;
const VALUES_AT_NAMED: usize = 20;

/// Where an object was read before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) shape: ShapeId,
    /// Open objects and lists around it.
    pub(crate) depth: u32,
    pub(crate) start: u32,
    /// Number of bytes; zero as long as it is not complete.
    pub(crate) len: u32,
    /// What there was before and after.
    pub(crate) from: Extent,
    pub(crate) to: Extent,
    /// What must not have changed in between: errors, and steps taken outside of the lane.
    pub(crate) untouched: (usize, u32),
}

/// What is known of the object that begins somewhere.
pub(crate) enum DuplicateMatch {
    /// It was read before.
    Same(Entry),
    /// It may be remembered here.
    New(u8),
    /// It is not worth it.
    Off,
}

/// Says of a frame that its object is not remembered.
pub(crate) const NOWHERE: u8 = u8::MAX;

/// The objects that were read last.
#[derive(Default)]
pub(crate) struct Duplicates {
    /// Each with the generation it is of; empty until something is looked for.
    entries: Vec<(u32, Entry)>,
    /// Those of earlier generations may be changed since.
    generation: u32,
    misses: Vec<u8>,
    off: bool,
}

impl Duplicates {
    /// From now on nothing is remembered: what was read may be changed.
    pub(crate) fn stop(&mut self) {
        self.off = true;
    }
    /// What is read from now on is remembered again; what was read before is not known any more if it was stopped.
    pub(crate) fn restart(&mut self) {
        if std::mem::take(&mut self.off) {
            self.forget();
        }
    }
    /// Nothing of what was read is known any more.
    pub(crate) fn forget(&mut self) {
        self.generation += 1;
    }
    /// Looks for the object of a shape that begins at `at`.
    #[inline]
    pub(crate) fn look(
        &mut self,
        text: &[u8],
        at: usize,
        (shape, depth): (ShapeId, u32),
        is_named: bool,
    ) -> DuplicateMatch {
        if self.off || text.len() < TEXT_BYTES_MIN {
            return DuplicateMatch::Off;
        }
        if self.entries.is_empty() {
            let nothing = Entry {
                shape,
                depth,
                start: 0,
                len: 0,
                from: Extent::default(),
                to: Extent::default(),
                untouched: (0, 0),
            };
            self.entries.resize(ENTRIES, (self.generation, nothing));
            self.misses.resize(COUNTS, 0);
        }
        let misses = &mut self.misses[shape.index() % COUNTS];
        if *misses >= MISSES_MAX {
            return DuplicateMatch::Off;
        }
        let values = at + if is_named { VALUES_AT_NAMED } else { VALUES_AT };
        let Some(bytes) = text.get(values..).and_then(|rest| rest.first_chunk::<16>()) else {
            return DuplicateMatch::Off;
        };
        let bytes = u128::from_le_bytes(*bytes);
        let (low, high) = (bytes as u64, (bytes >> 64) as u64);
        let hash = low.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ high.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ (shape.index() as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let slot = (hash >> (u64::BITS - SLOT_BITS)) as usize;
        let (generation, entry) = &self.entries[slot];
        if *generation == self.generation
            && entry.len > 0
            && entry.shape == shape
            && entry.depth == depth
        {
            let (start, len) = (entry.start as usize, entry.len as usize);
            let before = text.get(start..start + len);
            if before.is_some_and(|before| text[at..].starts_with(before)) {
                *misses = 0;
                return DuplicateMatch::Same(*entry);
            }
        }
        *misses += 1;
        DuplicateMatch::New(slot as u8)
    }
    /// Notes that an object begins.
    pub(crate) fn begin(&mut self, slot: u8, entry: Entry) {
        self.entries[usize::from(slot)] = (self.generation, entry);
    }
    /// Notes that the object that was read into record number `record` is complete.
    pub(crate) fn complete(
        &mut self,
        slot: u8,
        record: u32,
        end: usize,
        (to, untouched): (Extent, (usize, u32)),
    ) {
        let (_, entry) = &mut self.entries[usize::from(slot)];
        if entry.from.records == record && entry.untouched == untouched {
            entry.len = end as u32 - entry.start;
            entry.to = to;
        }
    }
}
