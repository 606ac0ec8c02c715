//! Where reading stands among the entities of an answer, and the way from one to the next as long as all is as expected.

use std::ops::Range;

use ogive_base::FastSet;
use ogive_json::{Cursor, lanes::Lanes};
use ogive_plan::{Lookup, LookupFacts};

use super::Reader;
use crate::{
    errors::ErrorMark,
    gather::{GatheredLookup, Instance},
    store::Mark,
};

/// Where the lane is.
pub(crate) struct FastPathState<'h, 't, L> {
    pub(crate) cursor: &'h mut Cursor<'t, L>,
    /// Open objects and lists.
    pub(crate) depth: &'h mut u32,
    pub(crate) depth_max: u32,
}

/// What became of a look-up's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Read into the records that waited.
    Read,
    /// Null, or not there.
    Null,
    NoList,
    WrongLength,
}

/// What is found out while `data` is read.
pub(crate) struct Data {
    /// By look-up.
    pub(crate) outcomes: Vec<Outcome>,
    /// (look-up, representation) of items that are null.
    pub(crate) nulls: FastSet<(usize, u32)>,
    /// Entities that others can reuse, by ticket.
    pub(crate) entities: Vec<(u32, Range<usize>)>,
}

impl Data {
    /// Nothing yet, of so many look-ups.
    #[inline(always)]
    pub(crate) fn new(n_lookups: usize) -> Self {
        Data {
            outcomes: vec![Outcome::Null; n_lookups],
            nulls: FastSet::default(),
            entities: Vec::new(),
        }
    }
}

/// What a subgraph was asked.
#[derive(Clone, Copy)]
pub(crate) struct SentLookups<'a> {
    pub(crate) lookups: &'a [Lookup],
    pub(crate) facts: &'a [LookupFacts],
    pub(crate) gathered: &'a [GatheredLookup],
}

/// Where reading stands among the look-ups of an answer.
pub(crate) struct Lookups<'a> {
    pub(super) asked: SentLookups<'a>,
    pub(super) data: &'a mut Data,
    /// By look-up: whether its value was met.
    pub(super) seen: Vec<bool>,
    /// The look-up that is likely to come next.
    pub(super) expected: usize,
    /// Whether the value of a look-up has just been read, up to its end.
    pub(super) is_behind: bool,
    /// The list that is open.
    pub(super) list: Option<List>,
}

/// A list of entities that is being read.
pub(super) struct List {
    /// Index of the look-up.
    pub(super) at: usize,
    /// Index of the item that is being read, or comes next.
    pub(super) item: u32,
    /// The first of those who wait for it, or for a later one.
    pub(super) waiting: usize,
    /// Where the item begins.
    pub(super) start: usize,
    /// What there was before the list.
    pub(super) before: ListMark,
}

/// What there was before a list: to be gone back to.
#[derive(Clone, Copy)]
pub(super) struct ListMark {
    pub(super) store: Mark,
    pub(super) errors: ErrorMark,
    pub(super) entities: usize,
}

impl<'a> Lookups<'a> {
    pub(crate) fn new(asked: SentLookups<'a>, data: &'a mut Data) -> Self {
        Lookups {
            asked,
            data,
            seen: vec![false; asked.lookups.len()],
            expected: 0,
            is_behind: false,
            list: None,
        }
    }

    /// Makes ready to read the list of a look-up.
    #[inline(always)]
    pub(super) fn open(&mut self, reader: &mut Reader<'_, '_>, at: usize) -> List {
        reader.duplicates.restart();
        reader.is_single = self.asked.gathered[at].n_representations == 1;
        List {
            at,
            item: 0,
            waiting: 0,
            start: 0,
            before: ListMark {
                store: reader.store.mark(),
                errors: reader.errors.mark(),
                entities: self.data.entities.len(),
            },
        }
    }

    /// Goes on in the lane where an entity is complete, or where the key of a look-up begins: up to the first member of
    /// the next entity, if there is one and all in between is as expected. Otherwise up to the end of what is.
    #[inline(always)]
    pub(crate) fn enter_next<L: Lanes>(
        &mut self,
        reader: &mut Reader<'_, '_>,
        here: &mut FastPathState<'_, '_, L>,
    ) -> bool {
        if self.list.is_some() {
            self.complete_item(here.cursor.at);
        }
        if let Some(list) = &mut self.list {
            match here.cursor.text.get(here.cursor.at) {
                Some(b',') => {
                    let place = (list.at, list.item, list.waiting);
                    list.start = here.cursor.at + 1;
                    return enter_item(&self.asked, reader, here, place, list.start);
                }
                Some(b']') if list.item == self.asked.gathered[list.at].n_representations => {
                    here.cursor.at += 1;
                    *here.depth -= 1;
                    self.data.outcomes[list.at] = Outcome::Read;
                    self.list = None;
                    self.is_behind = true;
                }
                _ => return false,
            }
        }
        let end = here.cursor.at;
        let entered = self.enter_lookup(reader, here);
        if !entered {
            here.cursor.at = end;
        }
        entered
    }
    /// The same where the value of a look-up is complete, or a key begins; leaves the position anywhere if there is none.
    #[inline(always)]
    fn enter_lookup<L: Lanes>(
        &mut self,
        reader: &mut Reader<'_, '_>,
        here: &mut FastPathState<'_, '_, L>,
    ) -> bool {
        let text = here.cursor.text;
        if self.is_behind {
            if text.get(here.cursor.at) != Some(&b',') {
                return false;
            }
            here.cursor.at += 1;
        }
        // Mostly answers come in the order of the questions.
        let gathered = self.asked.gathered;
        let was_asked = |at: &usize| gathered[*at].n_representations > 0;
        let Some(at) = (self.expected..gathered.len()).find(was_asked) else {
            return false;
        };
        let key = self
            .asked
            .facts
            .get(at)
            .and_then(|facts| facts.key.as_ref());
        if self.seen[at]
            || !key.is_some_and(|key| here.cursor.key(key))
            || text.get(here.cursor.at) != Some(&b'[')
            || *here.depth >= here.depth_max
        {
            return false;
        }
        let mut list = self.open(reader, at);
        list.start = here.cursor.at + 1;
        *here.depth += 1;
        if !enter_item(&self.asked, reader, here, (at, 0, 0), list.start) {
            *here.depth -= 1;
            return false;
        }
        self.list = Some(list);
        self.seen[at] = true;
        self.expected = at + 1;
        true
    }
    /// Notes that an entity for which one record waited is read; it ends before `end`.
    #[inline(always)]
    pub(super) fn complete_item(&mut self, end: usize) {
        let Some(list) = &mut self.list else { return };
        let tickets = &self.asked.gathered[list.at].tickets;
        if let Some(Some(ticket)) = tickets.get(list.item as usize) {
            self.data.entities.push((*ticket, list.start..end));
        }
        list.item += 1;
        list.waiting += 1;
    }
}

/// Opens the entity that begins at `start`, if it is an item that exactly one record waits for, whose type needs no second
/// look. Otherwise does nothing.
#[inline(always)]
fn enter_item<L: Lanes>(
    asked: &SentLookups<'_>,
    reader: &mut Reader<'_, '_>,
    here: &mut FastPathState<'_, '_, L>,
    (at, item, waiting): (usize, u32, usize),
    start: usize,
) -> bool {
    let instances = &*asked.gathered[at].instances;
    let is_mine = |instance: &&Instance| instance.representation == item;
    let Some(instance) = instances.get(waiting).filter(is_mine) else {
        return false;
    };
    if instances.get(waiting + 1).filter(is_mine).is_some() {
        return false;
    }
    let shape = asked.lookups[at].targets[usize::from(instance.target)].shape;
    let known = reader.derived.reads[shape].known_type;
    let begins = here.cursor.text.get(start..start + 2) == Some(b"{\"");
    if !begins
        || known.is_none()
        || reader.store.known_type(instance.record) != known
        || *here.depth >= here.depth_max
    {
        return false;
    }
    here.cursor.at = start + 1;
    *here.depth += 1;
    let slots = reader.store.slots(instance.record);
    reader.open_at(shape, instance.record, slots);
    true
}
