//! What a subgraph is asked for: the representations of one fetch.
//!
//! All of them are gathered before the request is written, because they decide which pieces of its text are sent. Equal
//! representations of one look-up are sent once, in the order in which they first occur; an index table remembers which
//! records wait for which.
//!
//! Three ways lead there, each for what the others are slower at:
//! `leaves` writes the representations of a few records and compares what it wrote, and tells those of many records apart
//! by their values (`distinct`) before it writes any; `general` is for objects inside of representations and for values
//! from above.

mod composite;
mod distinct;
mod failed;
mod gathered;
mod representation;
mod reuse;
mod scalars;

use bytes::Bytes;
use ogive_base::{FastSet, id::Id};
use ogive_plan::{Fetch, FetchId, Lookup, Prefetch, SlotIndex, Target};

pub(crate) use self::gathered::{Gathered, GatheredLookup, Instance};
use self::{
    composite::gather_composite,
    representation::is_wanted,
    scalars::{Scratch, gather_scalars},
};
use crate::{
    condition::Conditions,
    limits::Reuse,
    reuse::{Entities, Key},
    stop::LimitReached,
    store::{RecordId, Source, Store},
};

/// What of a fetch a request asks for.
#[derive(Clone, Copy)]
pub(crate) enum FetchPart<'p> {
    /// All of it.
    Whole,
    /// What can be asked before all that the fetch waits for is there.
    Prefetch(&'p Prefetch),
    /// What that has left.
    Rest(&'p Prefetch),
}

impl FetchPart<'_> {
    fn is_whole(self) -> bool {
        matches!(self, FetchPart::Whole)
    }
    /// Whether a target of a look-up is asked.
    fn has(self, lookup: usize, target: usize) -> bool {
        match self {
            FetchPart::Whole => true,
            FetchPart::Prefetch(part) => part.targets[lookup][target],
            FetchPart::Rest(part) => !part.targets[lookup][target],
        }
    }
}

/// What is gathered from, and with.
pub(crate) struct Gather<'a, 'p> {
    pub(crate) store: &'a Store<'p>,
    pub(crate) conditions: &'a Conditions,
    /// The fetch of the plan.
    pub(crate) id: FetchId,
    pub(crate) fetch: &'p Fetch,
    /// What the request is known by: the fetch, or a part of it.
    pub(crate) sent_as: FetchId,
    /// What of the fetch is asked.
    pub(crate) part: FetchPart<'p>,
    /// What may be reused.
    pub(crate) reuse: Reuse,
    /// What was sent before, unless nothing may be reused.
    pub(crate) entities: Option<&'a mut Entities>,
    /// Once something failed: the slots that are null because of an error of a subgraph.
    pub(crate) null_by_error: Option<&'a FastSet<(RecordId, SlotIndex)>>,
}

/// What one fetch, or one of its look-ups, may still use.
struct Limits {
    /// Bytes of representations that are written for a look-up and not sent as they were written...
    unsent: u64,
    /// ... and of those that objects of other places offer.
    offered: u64,
    /// Groups of values from above, each of which is a request.
    contexts: usize,
}

impl Limits {
    /// Counts bytes of a representation. Values that many objects share are written for each of them.
    fn count_unsent(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let left = self.unsent.checked_sub(bytes as u64);
        self.unsent = left.ok_or(LimitReached("rescanned_bytes_max"))?;
        Ok(())
    }
}

/// Where the representations of a look-up go.
struct Output<'g> {
    gathered: &'g mut GatheredLookup,
    /// The text of all look-ups of the fetch.
    out: &'g mut Vec<u8>,
    /// Whether anything is asked that nobody is asking.
    fresh: &'g mut bool,
    left: &'g mut Limits,
}

/// Gathers the representations of all look-ups of a fetch. None if all of them are under way already in other fetches:
/// then it is better to wait.
pub(crate) fn gather(from: &mut Gather<'_, '_>) -> Result<Option<Gathered>, LimitReached> {
    let (store, fetch) = (from.store, from.fetch);
    let root = fetch.root.as_ref();
    let root = root.is_some_and(|root| from.conditions.hold(root.cond));
    let mut fresh = root;
    let n_lookups = fetch.lookups.len();
    let mut lookups = Vec::with_capacity(n_lookups);
    lookups.resize_with(n_lookups, GatheredLookup::default);
    let mut text = Vec::new();
    let mut scratch: Option<Scratch<'_>> = None;
    let mut left = Limits {
        unsent: 0,
        offered: 0,
        contexts: Source::CONTEXTS_MAX,
    };
    for (at, gathered) in lookups.iter_mut().enumerate() {
        let written_max = store.limits().rescanned_bytes_max;
        (left.unsent, left.offered) = (written_max, written_max);
        gathered.text = text.len()..text.len();
        let facts = &store.plan().derived().lookups[from.id][at];
        let into = Output {
            gathered,
            out: &mut text,
            fresh: &mut fresh,
            left: &mut left,
        };
        match &facts.programs {
            Some(programs) => gather_scalars(from, at, programs, into, &mut scratch)?,
            None => gather_composite(from, at, into)?,
        }
        gathered.text.end = text.len();
    }
    let mut gathered = Gathered {
        root,
        lookups,
        text,
        context: Bytes::new(),
        is_retry: false,
        unasked: Vec::new(),
    };
    if !fresh && gathered.n_representations() > 0 {
        return Ok(None);
    }
    if let Some(null_by_error) = from.null_by_error {
        gathered.unasked = failed::unasked(from, &gathered, null_by_error);
    }
    if let Some(entities) = from.entities.as_deref_mut() {
        let asked_twice = &store.plan().derived().asked_twice;
        let text = &gathered.text;
        for (at, lookup) in gathered.lookups.iter_mut().enumerate() {
            let targets = &fetch.lookups[at].targets;
            lookup.announce(
                text,
                entities,
                (from.sent_as, fetch.subgraph),
                targets,
                |target| !from.part.is_whole() || asked_twice[from.id.index()][at][target],
            );
        }
    }
    Ok(Some(gathered))
}

/// All objects that the look-ups of a fetch are for, without representations: what is null if they cannot be asked.
pub(crate) fn everything(from: &Gather<'_, '_>) -> Vec<GatheredLookup> {
    let lookups = from.fetch.lookups.iter().enumerate();
    let of_lookup = |(at, lookup): (usize, &Lookup)| {
        let targets = lookup.targets.iter().enumerate();
        let asked = targets.filter(|(target_index, target)| {
            from.conditions.hold(target.cond) && from.part.has(at, *target_index)
        });
        let instances = asked.flat_map(|(target_index, target)| {
            let records = from.store.of_layout(target.layout).iter();
            let wanted = records.filter(|record| is_wanted(from.store, target, **record));
            wanted.map(move |record| Instance::new(target_index, *record))
        });
        GatheredLookup {
            instances: instances.collect(),
            ..GatheredLookup::default()
        }
    };
    lookups.map(of_lookup).collect()
}

impl GatheredLookup {
    /// Tells the others what is about to be sent.
    #[inline(always)]
    fn announce(
        &mut self,
        text: &[u8],
        entities: &mut Entities,
        (id, subgraph): (FetchId, u32),
        targets: &[Target],
        asked_twice: impl Fn(usize) -> bool,
    ) {
        if !(0..targets.len()).any(&asked_twice) {
            return;
        }
        self.tickets.resize(self.ranges.len(), None);
        for instance in self.instances.iter() {
            let target = usize::from(instance.target);
            let at = instance.representation as usize;
            if self.tickets[at].is_none() && asked_twice(target) {
                let (start, end) = self.ranges[at];
                let key = Key {
                    subgraph,
                    selection: targets[target].selection,
                    representation: &text[start..end],
                };
                self.tickets[at] = entities.send(key, id);
            }
        }
    }
}
