//! The values of look-ups in an answer: which entity is whose, and what is out of the ordinary with their lists.
//!
//! Mostly nothing is. So entities that one record waits for are read by the [lane](crate::scan::fast_path) one after another, with
//! the keys and brackets between them, up to the end of the answer ([`Lookups::enter_next`]). Where something else stands
//! the look-up is read on from there by the scanner (`read_rest`, [`Lookups::read_one`]), by the same rules.
//!
//! ScanPartial here for: [`Lookups::read`] (entry), [`read_entity`] (an entity that several records wait for).

use ogive_json::{Kind, Scanner, lanes};
use ogive_plan::Target;

use super::{
    FastPathEnd, Reader,
    entities::{List, Lookups, Outcome},
    fail_fields,
    fast_path::FastPath,
};
use crate::{envelope::lookup_of, gather::Instance, stop::Stop, store::Value};

impl<'a> Lookups<'a> {
    /// Reads a `data` that has nothing but look-ups. One reader serves all of them.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_, '_>,
        scanner: &mut Scanner<'_>,
    ) -> Result<(), Stop> {
        let mut more = scanner.begin_object()?;
        while more {
            self.is_behind = false;
            let left = lanes::run(FastPath::of_lookups(reader, scanner, self))?;
            if !matches!(left, FastPathEnd::Nothing) {
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
