//! Reading large answers while they arrive.
//!
//! Nothing of an answer goes to the response store before all of it is there. But what takes the time, finding that a big
//! value is exactly what the client may see, depends on nothing but its bytes. So that is begun as soon as there is
//! enough of it ([`Arriving::look`]), with a store of its own that is thrown away, and goes on with every piece that
//! comes ([`ogive_json::Unfinished`]). When the answer is whole it is read as always; a value about which something is
//! known already is not compared from its beginning ([`HeadStart`]).
//!
//! Invariants: what is known holds for one buffer only, and is found by that buffer, which is held until then, so no
//! other can be in its place; what is read, and into what, does not depend on whether anything was known; of what arrives
//! no more than one byte in [`SHARE`] is read in vain. Tests: `tests/it/arriving.rs`.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use ogive_json::{
    Conditions, Kind, PatternValue, Scanner,
    unfinished::{Advance, Unfinished},
};
use ogive_plan::{FetchId, Plan, ShapeId};

use crate::{
    envelope::{Envelope, Part},
    errors::Errors,
    limits::ExecuteLimits,
    scan::{Reader, Stop},
    store::{Source, Store},
};

/// So many bytes more are worth another look.
const STEP: usize = 64 << 10;
/// How far from the end of what came a look ends, at an item of a list.
const MARGIN: usize = 8 << 10;
/// A value that does not go on although so much of it has come is left until all is there: it is something else than
/// expected, or has no items to stop at.
const STUCK_MAX: usize = 1 << 20;
/// Smaller values are not remembered.
const VALUE_MIN: usize = 4 << 10;
/// One byte in so many may be read in search of a big value.
const SHARE: usize = 32;
/// Fewer bytes are not worth a search.
const SEARCH_MIN: usize = 4 << 10;

/// Lends an execution's knowledge of what it expects to whoever reads an answer. A transport that makes no use of it
/// loses nothing but time.
#[derive(Clone, Copy)]
pub struct ReadAhead<'a> {
    of: &'a (dyn Ahead + Sync),
    shape: ShapeId,
    eager: bool,
}

/// An answer of which some has come.
pub struct Arriving<'a>(Box<dyn Look + Send + 'a>);

/// What there is for all answers of an execution.
trait Ahead {
    fn begin<'a>(&'a self, shape: ShapeId, eager: bool) -> Box<dyn Look + Send + 'a>;
}
trait Look {
    fn look(&mut self, so_far: &[u8]);
    fn whole(self: Box<Self>, body: &Bytes);
}

impl<'a> ReadAhead<'a> {
    /// Smaller answers are read when they are whole; in bytes.
    pub const BYTES_MIN: usize = 256 << 10;

    /// Looks at whatever has come, however little, instead of waiting until it is worth it: for tests of all cuts.
    #[must_use]
    pub fn eagerly(self) -> Self {
        let eager = true;
        ReadAhead { eager, ..self }
    }
    /// The body of a successful answer begins to arrive. Dropping what this gives forgets all that was found out.
    pub fn begin(self) -> Arriving<'a> {
        Arriving(self.of.begin(self.shape, self.eager))
    }
}

impl Arriving<'_> {
    /// Looks at the bytes that have come so far, from the first on. Each time they begin with those of the time before.
    pub fn look(&mut self, so_far: &[u8]) {
        self.0.look(so_far);
    }
    /// The body is whole. It must begin with what was looked at, and be the buffer that becomes the response.
    pub fn whole(self, body: &Bytes) {
        self.0.whole(body);
    }
}

/// What was found out about a buffer. Most answers have none of it, so it has no room of its own where they are read.
type Found<'p> = (Bytes, Box<HeadStart<'p>>);

/// What was found out about answers of one execution.
pub(crate) struct Aheads<'p> {
    plan: &'p Plan,
    conditions: &'p Conditions,
    limits: &'p ExecuteLimits,
    /// Of those that are whole and were not read yet.
    found: Mutex<Vec<Found<'p>>>,
    /// Whether there ever was one: small answers are not looked for.
    is_any: AtomicBool,
}

impl<'p> Aheads<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        conditions: &'p Conditions,
        limits: &'p ExecuteLimits,
    ) -> Aheads<'p> {
        Aheads {
            plan,
            conditions,
            limits,
            found: Mutex::new(Vec::new()),
            is_any: AtomicBool::new(false),
        }
    }
    /// For the answer to a request of nothing but root fields.
    pub(crate) fn of(&self, shape: ShapeId) -> ReadAhead<'_> {
        ReadAhead {
            of: self,
            shape,
            eager: false,
        }
    }
    /// Only one thread executes, so nobody waits here. What asks may still be a future that moves between threads.
    fn found(&self) -> MutexGuard<'_, Vec<Found<'p>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What is known of an answer.
    #[inline]
    pub(crate) fn take(&self, body: &Bytes) -> Option<Box<HeadStart<'p>>> {
        match self.is_any.load(Ordering::Acquire) {
            true => self.take_found(body),
            false => None,
        }
    }
    #[inline(never)]
    fn take_found(&self, body: &Bytes) -> Option<Box<HeadStart<'p>>> {
        let mut found = self.found();
        let is = |held: &Bytes| held.as_ptr() == body.as_ptr() && held.len() == body.len();
        let at = found.iter().position(|(held, _)| is(held))?;
        Some(found.swap_remove(at).1)
    }
}

impl<'p> Ahead for Aheads<'p> {
    fn begin<'a>(&'a self, shape: ShapeId, eager: bool) -> Box<dyn Look + Send + 'a> {
        Box::new(Looking {
            of: self,
            shape,
            eager,
            head: HeadStart::default(),
            stuck: 0,
            spent: 0,
            searched: 0,
            given_up: false,
        })
    }
}

/// A value of an answer, and what it should look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) start: usize,
    pub(crate) value: PatternValue,
    /// Containers open around it, and how many may be.
    pub(crate) depth: (u32, u32),
}

/// What is known of an answer before it is read.
#[derive(Default)]
pub(crate) struct HeadStart<'p> {
    /// Values that are as expected, with their ends, in order.
    complete: Vec<(Expected, usize)>,
    /// The one behind them.
    unfinished: Option<(Expected, Unfinished<'p>)>,
}

impl<'p> HeadStart<'p> {
    /// The end of a value, if it is as expected.
    pub(crate) fn end_of(
        &mut self,
        expected: Expected,
        text: &[u8],
        plan: &'p Plan,
        conditions: &Conditions,
    ) -> Option<usize> {
        if let Some(end) = self.known_end(expected) {
            return Some(end);
        }
        match &mut self.unfinished {
            Some((this, unfinished)) if *this == expected => {
                match unfinished.go_on(text, usize::MAX, conditions) {
                    Advance::End(end) => Some(end),
                    Advance::Paused | Advance::Stuck => None,
                }
            }
            _ => {
                let Expected {
                    start,
                    value,
                    depth,
                } = expected;
                let pattern = &plan.derived().pattern;
                pattern.matches(text, start, value, conditions, depth)
            }
        }
    }
    /// Bytes of which something is known.
    pub(crate) fn bytes(&self) -> usize {
        let complete = self.complete.iter().map(|(at, end)| end - at.start);
        let unfinished = self.unfinished.iter();
        let unfinished = unfinished.map(|(at, unfinished)| unfinished.position() - at.start);
        complete.chain(unfinished).sum()
    }
    fn known_end(&self, expected: Expected) -> Option<usize> {
        let (start, list) = (expected.start, &self.complete);
        let at = list.binary_search_by_key(&start, |(known, _)| known.start);
        let (known, end) = list.get(at.ok()?)?;
        (*known == expected).then_some(*end)
    }
}

/// What a reader knows before it reads.
pub(crate) struct Known<'s, 'p> {
    pub(crate) head: &'s mut HeadStart<'p>,
    /// All that has come, if that is not all there will be.
    pub(crate) so_far: Option<SoFar<'s>>,
}

/// A text that goes on.
#[derive(Clone, Copy)]
pub(crate) struct SoFar<'s> {
    text: &'s [u8],
    eager: bool,
}

impl SoFar<'_> {
    /// Where a look stops.
    fn until(self) -> usize {
        let margin = if self.eager { 8 } else { MARGIN };
        self.text.len().saturating_sub(margin)
    }
}

/// What comes of a value that may be known.
pub(crate) enum Passing {
    /// It is as expected, and ends here.
    End(usize),
    /// It is not.
    No,
    /// It is, as far as there is text.
    Arriving,
}

impl<'p> Known<'_, 'p> {
    /// Looks at a value.
    pub(crate) fn pass(
        &mut self,
        expected: Expected,
        text: &[u8],
        plan: &'p Plan,
        conditions: &Conditions,
    ) -> Passing {
        let Some(so_far) = self.so_far else {
            return match self.head.end_of(expected, text, plan, conditions) {
                Some(end) => Passing::End(end),
                None => Passing::No,
            };
        };
        if let Some(end) = self.head.known_end(expected) {
            return Passing::End(end);
        }
        let pattern = &plan.derived().pattern;
        let Expected {
            start,
            value,
            depth,
        } = expected;
        let mut unfinished = Unfinished::new(pattern, start, value, depth);
        match unfinished.go_on(so_far.text, so_far.until(), conditions) {
            Advance::End(end) => {
                if so_far.eager || end - start >= VALUE_MIN {
                    self.head.add(expected, end);
                }
                Passing::End(end)
            }
            Advance::Paused => {
                self.head.unfinished = Some((expected, unfinished));
                Passing::Arriving
            }
            Advance::Stuck => Passing::No,
        }
    }
}

impl HeadStart<'_> {
    /// Remembers a value behind all others. One inside of another that is known need not be.
    fn add(&mut self, expected: Expected, end: usize) {
        let is_behind = |(_, before): &(Expected, usize)| *before <= expected.start;
        if self.complete.last().is_none_or(is_behind) {
            self.complete.push((expected, end));
        }
    }
    /// Where the last known value ends, and how many bytes before are of no known value.
    fn reach(&self) -> (usize, usize) {
        let reach = self.complete.last().map_or(0, |(_, end)| *end);
        let known = self.complete.iter().map(|(at, end)| end - at.start);
        (reach, reach - known.sum::<usize>())
    }
}

/// An answer that arrives.
struct Looking<'a, 'p> {
    of: &'a Aheads<'p>,
    shape: ShapeId,
    eager: bool,
    head: HeadStart<'p>,
    /// How much was unread when the unfinished value did not go on; none if it does.
    stuck: usize,
    /// Bytes that were read in search of values.
    spent: usize,
    /// Bytes behind the last known value that were read in vain.
    searched: usize,
    /// Nothing more is looked at.
    given_up: bool,
}

impl Look for Looking<'_, '_> {
    fn look(&mut self, so_far: &[u8]) {
        if self.given_up {
            return;
        }
        let (conditions, eager) = (self.of.conditions, self.eager);
        let so_far = SoFar {
            text: so_far,
            eager,
        };
        if let Some((expected, unfinished)) = &mut self.head.unfinished {
            // What is tried in vain is tried again when there is twice as much.
            let unread = so_far.text.len().saturating_sub(unfinished.position());
            let is_early = unread < STEP.max(2 * self.stuck) || self.stuck >= STUCK_MAX;
            if is_early && !eager {
                return;
            }
            match unfinished.go_on(so_far.text, so_far.until(), conditions) {
                Advance::Stuck => return self.stuck = unread,
                Advance::Paused => return self.stuck = 0,
                Advance::End(end) => {
                    let expected = *expected;
                    self.head.unfinished = None;
                    self.head.add(expected, end);
                    (self.stuck, self.searched) = (0, 0);
                }
            }
        }
        self.search(so_far);
    }

    fn whole(self: Box<Self>, body: &Bytes) {
        let head = self.head;
        if !self.given_up && (!head.complete.is_empty() || head.unfinished.is_some()) {
            self.of.found().push((body.clone(), Box::new(head)));
            self.of.is_any.store(true, Ordering::Release);
        }
    }
}

impl Looking<'_, '_> {
    /// Reads from the beginning, past all that is known, in search of a value that can be known.
    fn search(&mut self, so_far: SoFar<'_>) {
        let (reach, unknown) = self.head.reach();
        let budget = match self.eager {
            true => usize::MAX,
            false => (so_far.text.len() / SHARE).saturating_sub(self.spent),
        };
        let window = budget.saturating_sub(unknown);
        if !self.eager && window < SEARCH_MIN.max(2 * self.searched) {
            return;
        }
        // White space will be taken out of it, so nothing will be where it is.
        if ogive_json::is_spaced(so_far.text) {
            self.given_up = true;
            return;
        }
        let end = reach.saturating_add(window).min(so_far.text.len());
        self.read(so_far, end);
        let (reached, _) = self.head.reach();
        let start = |(expected, _): &(Expected, Unfinished<'_>)| expected.start;
        let stopped = self.head.unfinished.as_ref().map_or(end, start);
        self.spent += unknown + stopped.saturating_sub(reached);
        self.searched = match reached > reach {
            true => 0,
            false => window,
        };
    }

    /// Reads up to `end` of what has come. That fails, at the latest there; what matters is what was found on the way.
    fn read(&mut self, so_far: SoFar<'_>, end: usize) {
        let (of, limits) = (self.of, self.of.limits);
        let mut store = Store::new(of.plan, *limits);
        let mut errors = Errors::new(limits);
        let source = Source::new(FetchId(0), 0);
        let mut reader = Reader::new(&mut store, &mut errors, source, None, of.conditions);
        reader.is_single = true;
        reader.known = Some(Known {
            head: &mut self.head,
            so_far: Some(so_far),
        });
        let shape = self.shape;
        let read_data = |scanner: &mut Scanner<'_>| -> Result<Part, Stop> {
            let kind = scanner.peek()?;
            let start = scanner.position();
            if kind != Kind::Object {
                return Ok(Part::read(scanner)?);
            }
            reader.read_into(scanner, shape, Store::ROOT)?;
            let range = start..scanner.position();
            Ok(Part { kind, range })
        };
        let text = so_far.text.get(..end).unwrap_or(so_far.text);
        let _ = Envelope::read_with(text, limits, read_data);
    }
}
