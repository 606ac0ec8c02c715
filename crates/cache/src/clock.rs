//! The clock and the list of invalidations.
//!
//! An invalidation takes the next number of a logical clock and writes that number beside each of its tags. A request reads
//! the clock before it is sent, and the entry made of its answer carries the number that was read ([`ClockStamp`]). An entry is
//! valid as long as none of its tags has a later number. So invalidating costs a step per tag, no index of entries
//! is needed, an answer may bring its tags, and a slow writer stores an entry that is invalid already.
//!
//! The list is bounded. It drops the oldest invalidation when it is full, or when no entry can be that old; from then on all
//! entries with lower numbers are invalid ([`State::floor`]). So a dropped invalidation invalidates more, never less.
//!
//! Processes that share a clock apply each other's invalidations ([`InvalidationList::apply`]). Messages may be lost: a
//! process knows which numbers it has seen without a gap, stamps entries with the last of these, and reports when it is
//! [behind](InvalidationList::is_behind). A clock that has lost its state, or that continues from an older state after a
//! failover, gets a new [epoch](Position::epoch): no entry of another epoch is valid. After a failover two different
//! invalidations can have one number. Each number therefore has a random [nonce](Position::nonce): where numbers are equal
//! and nonces differ, the clock has another history.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use ogive_base::FastMap;

use crate::{Tag, Timestamp};

/// Most tags that a list remembers, by default.
pub const TAGS_MAX: usize = 100_000;

/// The position of a clock: how many invalidations it has counted, in which history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Position {
    /// The history to which the number belongs.
    pub epoch: u64,
    /// How many invalidations there were.
    pub number: u64,
    /// Chosen at random for the invalidation that took this number.
    pub nonce: u64,
}

/// The position of the clock before the request of an entry was sent, without the nonce.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ClockStamp {
    /// See [`Position::epoch`].
    pub epoch: u64,
    /// See [`Position::number`].
    pub number: u64,
}

/// One invalidation, as one process announces it to others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidation {
    /// The position of the clock after it.
    pub position: Position,
    /// The tags whose entries are invalid.
    pub tags: Vec<Tag>,
}

/// How the position that a process knows compares with that of the shared clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockState {
    /// The process knows all invalidations.
    Current,
    /// The process has missed some.
    Behind,
    /// The clock has another history: its state was lost, or an older state was restored.
    Replaced,
}

/// The invalidations that a process knows. All threads share one list.
#[derive(Debug)]
pub struct InvalidationList {
    state: RwLock<State>,
    tags_max: usize,
    /// Longest time that an entry is kept.
    kept_max: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// All invalidations up to this position are known.
    position: Position,
    /// The highest number that the shared clock or a message has named.
    announced: u64,
    /// Whether a message came from a history that this process does not know.
    is_doubtful: bool,
    /// Entries with lower numbers are invalid.
    floor: u64,
    /// The last invalidation of each tag.
    numbers: FastMap<Tag, u64>,
    /// The marks of all `numbers`, with the time of each.
    order: BTreeMap<Mark, Timestamp>,
}

/// The last invalidation of a tag; earlier ones come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Mark {
    number: u64,
    tag: Tag,
}

impl InvalidationList {
    /// An empty list for entries that last for `kept_max` at most.
    pub fn new(tags_max: usize, kept_max: Duration) -> Self {
        InvalidationList {
            state: RwLock::default(),
            tags_max: tags_max.max(1),
            kept_max,
        }
    }

    /// The stamp of an entry whose request is sent now.
    pub fn stamp(&self) -> ClockStamp {
        let Position { epoch, number, .. } = self.read().position;
        ClockStamp { epoch, number }
    }

    /// The position up to which all invalidations are known.
    pub fn position(&self) -> Position {
        self.read().position
    }

    /// Whether invalidations are missing in this list. While they are, no entry may be used.
    pub fn is_behind(&self) -> bool {
        let state = self.read();
        state.is_doubtful || state.announced > state.position.number
    }

    /// Whether an entry with this stamp and these tags is still valid.
    pub fn is_valid(&self, stamp: ClockStamp, tags: &[Tag]) -> bool {
        let state = self.read();
        let is_later = |tag| {
            let number = state.numbers.get(tag);
            number.is_some_and(|number| *number > stamp.number)
        };
        stamp.epoch == state.position.epoch
            && stamp.number >= state.floor
            && !tags.iter().any(is_later)
    }

    /// Invalidates all entries with one of these tags, in a process that has a clock of its own.
    pub fn invalidate(&self, tags: &[Tag], now: Timestamp) -> Position {
        let mut state = self.write();
        state.position.number += 1;
        let number = state.position.number;
        state.mark(number, tags, now);
        self.forget(&mut state, now);
        state.position
    }

    /// Compares the known position with that of the shared clock, and notes how far the shared clock is.
    pub fn observe(&self, shared: Position) -> ClockState {
        let (comparison, is_doubtful) = {
            let state = self.read();
            (state.compare(shared), state.is_doubtful)
        };
        match comparison {
            ClockState::Current if is_doubtful => self.write().is_doubtful = false,
            ClockState::Behind => {
                let mut state = self.write();
                state.announced = state.announced.max(shared.number);
            }
            ClockState::Current | ClockState::Replaced => {}
        }
        comparison
    }

    /// Applies an invalidation of the shared clock. Its tags are invalid at once, even if earlier invalidations are missing.
    /// If it belongs to another history, the process is [behind](InvalidationList::is_behind) until it has
    /// [observed](InvalidationList::observe) the position of the shared clock.
    pub fn apply(&self, invalidation: &Invalidation, now: Timestamp) -> ClockState {
        let mut state = self.write();
        let shared = invalidation.position;
        let known = state.position;
        if shared.epoch == known.epoch && shared.number < known.number {
            // A late message.
            return ClockState::Current;
        }
        let comparison = state.compare(shared);
        if comparison != ClockState::Behind {
            state.is_doubtful |= comparison == ClockState::Replaced;
            return comparison;
        }
        state.announced = state.announced.max(shared.number);
        state.mark(shared.number, &invalidation.tags, now);
        self.forget(&mut state, now);
        if shared.number != state.position.number + 1 {
            return ClockState::Behind;
        }
        state.position = shared;
        if state.announced > shared.number {
            ClockState::Behind
        } else {
            ClockState::Current
        }
    }

    /// Adopts another history of the shared clock: no entry stored before is valid.
    pub fn begin_epoch(&self, shared: Position) {
        *self.write() = State {
            position: shared,
            announced: shared.number,
            floor: shared.number,
            ..State::default()
        };
    }

    /// Forgets invalidations that are older than any entry, and the oldest ones where there are too many.
    fn forget(&self, state: &mut State, now: Timestamp) {
        while let Some(oldest) = state.order.first_entry() {
            let is_over = now.since(*oldest.get()) > self.kept_max;
            if !is_over && state.numbers.len() <= self.tags_max {
                return;
            }
            let (Mark { number, tag }, _) = oldest.remove_entry();
            state.floor = state.floor.max(number);
            state.numbers.remove(&tag);
        }
    }

    // Every change is complete when the lock is released, so a poisoned lock is usable.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn compare(&self, shared: Position) -> ClockState {
        let known = self.position;
        if shared.epoch != known.epoch || shared.number < known.number {
            ClockState::Replaced
        } else if shared.number > known.number {
            ClockState::Behind
        } else if shared.nonce != known.nonce {
            ClockState::Replaced
        } else {
            ClockState::Current
        }
    }

    /// Notes an invalidation of tags. A tag has one mark, however often it is invalidated: otherwise invalidations of one
    /// tag would make the list forget all others.
    fn mark(&mut self, number: u64, tags: &[Tag], at: Timestamp) {
        for tag in tags.iter().copied() {
            let previous = self.numbers.get(&tag).copied();
            if previous.is_some_and(|previous| previous >= number) {
                continue;
            }
            if let Some(number) = previous {
                self.order.remove(&Mark { number, tag });
            }
            self.numbers.insert(tag, number);
            self.order.insert(Mark { number, tag }, at);
        }
    }
}
