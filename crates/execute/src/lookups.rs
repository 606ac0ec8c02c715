//! The values of look-ups in an answer: which entity is whose, and what is out of the ordinary with their lists.
//!
//! Mostly nothing is. So entities that one record waits for are read by the [lane](crate::lane) one after another, with
//! the keys and brackets between them, up to the end of the answer ([`Lookups::enter_next`]). Where something else stands
//! the look-up is read on from there by the scanner (`read_rest`, [`Lookups::read_one`]), by the same rules.
//!
//! Look here for: [`Lookups::read`] (entry), [`read_entity`] (an entity that several records wait for).

use std::ops::Range;

use ogive_base::FastSet;
use ogive_json::{
    Kind, Scanner,
    lanes::{self, Lanes},
};
use ogive_plan::{Lookup, LookupFacts, Target};

use crate::{
    envelope::lookup_of,
    errors::ErrorMark,
    lane::{Here, Lane, Left},
    request::{GatheredLookup, Instance},
    scan::{Reader, Stop, fail_fields},
    store::{Mark, Value},
};

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
pub(crate) struct Asked<'a> {
    pub(crate) lookups: &'a [Lookup],
    pub(crate) facts: &'a [LookupFacts],
    pub(crate) gathered: &'a [GatheredLookup],
}

/// Where reading stands among the look-ups of an answer.
pub(crate) struct Lookups<'a> {
    asked: Asked<'a>,
    data: &'a mut Data,
    /// By look-up: whether its value was met.
    seen: Vec<bool>,
    /// The look-up that is likely to come next.
    expected: usize,
    /// Whether the value of a look-up has just been read, up to its end.
    is_behind: bool,
    /// The list that is open.
    list: Option<List>,
}

/// A list of entities that is being read.
struct List {
    /// Index of the look-up.
    at: usize,
    /// Index of the item that is being read, or comes next.
    item: u32,
    /// The first of those who wait for it, or for a later one.
    waiting: usize,
    /// Where the item begins.
    start: usize,
    /// What there was before the list.
    before: Before,
}

/// What there was before a list: to be gone back to.
#[derive(Clone, Copy)]
struct Before {
    store: Mark,
    errors: ErrorMark,
    entities: usize,
}

impl<'a> Lookups<'a> {
    pub(crate) fn new(asked: Asked<'a>, data: &'a mut Data) -> Self {
        Lookups {
            asked,
            data,
            seen: vec![false; asked.lookups.len()],
            expected: 0,
            is_behind: false,
            list: None,
        }
    }

    /// Reads a `data` that has nothing but look-ups. One reader serves all of them.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_, '_>,
        scanner: &mut Scanner<'_>,
    ) -> Result<(), Stop> {
        let mut more = scanner.begin_object()?;
        while more {
            self.is_behind = false;
            let left = lanes::run(Lane::of_lookups(reader, scanner, self))?;
            if !matches!(left, Left::Nothing) {
                reader.walk_on(scanner, left)?;
                self.complete_item(scanner.position());
            }
            if let Some(list) = self.list.take() {
                let more = scanner.next_item()?;
                self.read_rest(reader, scanner, list, more)?;
                self.is_behind = true;
            }
            if !self.is_behind {
                match lookup_of(self.asked.lookups, scanner.key()?, self.expected) {
                    // Of duplicate members the first counts.
                    Some(at) if !self.seen[at] => self.read_one(reader, scanner, at)?,
                    _ => {
                        reader.in_vain.count(self.asked.lookups.len())?;
                        scanner.skip_value()?;
                    }
                }
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }

    /// Reads the value of a look-up, whatever it is.
    pub(crate) fn read_one(
        &mut self,
        reader: &mut Reader<'_, '_>,
        scanner: &mut Scanner<'_>,
        at: usize,
    ) -> Result<(), Stop> {
        let n_items = self.asked.gathered[at].n_representations;
        self.seen[at] = true;
        self.expected = at + 1;
        let kind = scanner.peek()?;
        if n_items == 0 || kind != Kind::Array {
            scanner.skip_value()?;
            if kind != Kind::Null {
                self.data.outcomes[at] = Outcome::NoList;
            }
            return Ok(());
        }
        let list = self.open(reader, at);
        let more = scanner.begin_array()?;
        self.read_rest(reader, scanner, list, more)
    }

    /// Makes ready to read the list of a look-up.
    #[inline(always)]
    fn open(&mut self, reader: &mut Reader<'_, '_>, at: usize) -> List {
        reader.twins.restart();
        reader.is_single = self.asked.gathered[at].n_representations == 1;
        List {
            at,
            item: 0,
            waiting: 0,
            start: 0,
            before: Before {
                store: reader.store.mark(),
                errors: reader.errors.mark(),
                entities: self.data.entities.len(),
            },
        }
    }

    /// Reads the items that are still to come, if there are more, whatever they are.
    fn read_rest(
        &mut self,
        reader: &mut Reader<'_, '_>,
        scanner: &mut Scanner<'_>,
        list: List,
        mut more: bool,
    ) -> Result<(), Stop> {
        let List { at, before, .. } = list;
        let gathered = &self.asked.gathered[at];
        let n_items = gathered.n_representations;
        let mut nulls = Vec::new();
        let mut n = list.item;
        let mut waiting = gathered.instances.get(list.waiting..).unwrap_or_default();
        while more {
            let n_mine = waiting.partition_point(|instance| instance.representation <= n);
            let (mine, others) = waiting.split_at(n_mine);
            waiting = others;
            if n >= n_items {
                // Nothing of it stays, however many there are.
                scanner.skip_value()?;
            } else if scanner.peek()? == Kind::Null {
                scanner.skip_value()?;
                nulls.push((at, n));
            } else {
                let targets = &self.asked.lookups[at].targets;
                let start = scanner.position();
                read_entity(reader, scanner, targets, mine)?;
                if let Some(Some(ticket)) = gathered.tickets.get(n as usize) {
                    let entity = (*ticket, start..scanner.position());
                    self.data.entities.push(entity);
                }
            }
            n += 1;
            more = scanner.next_item()?;
        }
        if n == n_items {
            self.data.outcomes[at] = Outcome::Read;
            if !nulls.is_empty() {
                self.data.nulls.extend(nulls);
            }
        } else {
            reader.store.roll_back(before.store);
            reader.errors.roll_back(before.errors);
            reader.forget();
            self.data.entities.truncate(before.entities);
            self.data.outcomes[at] = Outcome::WrongLength;
        }
        Ok(())
    }

    /// Goes on in the lane where an entity is complete, or where the key of a look-up begins: up to the first member of
    /// the next entity, if there is one and all in between is as expected. Otherwise up to the end of what is.
    #[inline(always)]
    pub(crate) fn enter_next<L: Lanes>(
        &mut self,
        reader: &mut Reader<'_, '_>,
        here: &mut Here<'_, '_, L>,
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
        here: &mut Here<'_, '_, L>,
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
    fn complete_item(&mut self, end: usize) {
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
    asked: &Asked<'_>,
    reader: &mut Reader<'_, '_>,
    here: &mut Here<'_, '_, L>,
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

/// Reads the answer to one representation, which begins right here, into all records that wait for it. The text is read
/// once for all whose shapes are alike, and their values share its bytes.
pub(crate) fn read_entity(
    reader: &mut Reader<'_, '_>,
    scanner: &mut Scanner<'_>,
    targets: &[Target],
    waiting: &[Instance],
) -> Result<(), Stop> {
    let shape_of = |instance: &Instance| targets[usize::from(instance.target)].shape;
    let Some((first, others)) = waiting.split_first() else {
        scanner.skip_value()?;
        return Ok(());
    };
    if others.is_empty() {
        let shape = shape_of(first);
        if !reader.read_into(scanner, shape, first.record)? {
            scanner.skip_value()?;
            fail_fields(reader.store, shape, first.record);
        }
        return Ok(());
    }
    let entity = scanner.clone();
    let n_errors = reader.errors.mark();
    let shape = shape_of(first);
    reader.tape.clear();
    reader.taping = true;
    let accepted = reader.read_into(scanner, shape, first.record)?;
    reader.taping = false;
    if !accepted {
        scanner.skip_value()?;
        fail_fields(reader.store, shape, first.record);
    }
    let len = (scanner.position() - entity.position()) as u64;
    let plan = reader.store.plan();
    let facts = &plan.derived().shapes[shape];
    let own_records =
        |(_, value): &(usize, Value)| matches!(value, Value::Record(_) | Value::List(_));
    let shared = accepted
        && facts.untyped
        && n_errors == reader.errors.mark()
        && !reader.tape.iter().any(own_records);
    for instance in others {
        let shape = shape_of(instance);
        let other = &plan.derived().shapes[shape];
        let accepted = if shared && other.untyped && other.class == facts.class {
            let accepted = reader.agree_on_type(&entity, shape, instance.record)?;
            let slots = reader.store.slots(instance.record);
            let fields = &plan.shapes[shape].fields;
            for (field, value) in reader.tape.iter().filter(|_| accepted) {
                reader.store.put(slots, fields[*field].slot, *value);
            }
            accepted
        } else {
            // The first reading was paid for with the bytes of the answer.
            reader.store.rescan(len)?;
            reader.read_into(&mut entity.clone(), shape, instance.record)?
        };
        if !accepted {
            fail_fields(reader.store, shape, instance.record);
        }
    }
    Ok(())
}
