//! Reading large answers while they arrive.
//!
//! Nothing of an answer goes to the response store before all of it is there. But what takes the time, finding that a big
//! value is exactly what the client may see, depends on nothing but its bytes. So that is begun as soon as there is
//! enough of it ([`PartialAnswer::look`]), with a store of its own that is thrown away, and goes on with every piece that
//! comes ([`ogive_json::Unfinished`]). When the answer is whole it is read as always; a value about which something is
//! known already is not compared from its beginning ([`PartialMatch`]).
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
    Conditions, Kind, Scanner,
    unfinished::{Advance, Unfinished},
};
use ogive_plan::{FetchId, Plan, ShapeId};

use crate::{
    envelope::{Envelope, Part},
    errors::Errors,
    limits::ExecuteLimits,
    scan::{
        Reader,
        partial::{Expected, Hints, PartialMatch, ReaderHints, ReceivedText},
    },
    stop::Stop,
    store::{Source, Store},
};

/// So many bytes more are worth another look.
const STEP: usize = 64 << 10;
/// A value that does not go on although so much of it has come is left until all is there: it is something else than
/// expected, or has no items to stop at.
const STUCK_MAX: usize = 1 << 20;
/// One byte in so many may be read in search of a big value.
const SHARE: usize = 32;
/// Fewer bytes are not worth a search.
const SEARCH_MIN: usize = 4 << 10;

/// Lends an execution's knowledge of what it expects to whoever reads an answer. A transport that makes no use of it
/// loses nothing but time.
#[derive(Clone, Copy)]
pub struct StreamScan<'a> {
    of: &'a (dyn StreamScanner + Sync),
    shape: ShapeId,
    eager: bool,
}

/// An answer of which some has come.
pub struct PartialAnswer<'a>(Box<dyn ScanPartial + Send + 'a>);

/// What there is for all answers of an execution.
trait StreamScanner {
    fn begin<'a>(&'a self, shape: ShapeId, eager: bool) -> Box<dyn ScanPartial + Send + 'a>;
}
trait ScanPartial {
    fn look(&mut self, received: &[u8]);
    fn whole(self: Box<Self>, body: &Bytes);
}

impl<'a> StreamScan<'a> {
    /// Smaller answers are read when they are whole; in bytes.
    pub const BYTES_MIN: usize = 256 << 10;

    /// Looks at whatever has come, however little, instead of waiting until it is worth it: for tests of all cuts.
    #[must_use]
    pub fn eagerly(self) -> Self {
        let eager = true;
        StreamScan { eager, ..self }
    }
    /// The body of a successful answer begins to arrive. Dropping what this gives forgets all that was found out.
    pub fn begin(self) -> PartialAnswer<'a> {
        PartialAnswer(self.of.begin(self.shape, self.eager))
    }
}

impl PartialAnswer<'_> {
    /// Looks at the bytes that have come so far, from the first on. Each time they begin with those of the time before.
    pub fn look(&mut self, received: &[u8]) {
        self.0.look(received);
    }
    /// The body is whole. It must begin with what was looked at, and be the buffer that becomes the response.
    pub fn whole(self, body: &Bytes) {
        self.0.whole(body);
    }
}

/// What was found out about a buffer. Most answers have none of it, so it has no room of its own where they are read.
type Found<'p> = (Bytes, Box<PartialMatch<'p>>);

/// What was found out about answers of one execution.
pub(crate) struct StreamScans<'p> {
    plan: &'p Plan,
    conditions: &'p Conditions,
    limits: &'p ExecuteLimits,
    /// Of those that are whole and were not read yet.
    found: Mutex<Vec<Found<'p>>>,
    /// Whether there ever was one: small answers are not looked for.
    is_any: AtomicBool,
}

impl<'p> StreamScans<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        conditions: &'p Conditions,
        limits: &'p ExecuteLimits,
    ) -> StreamScans<'p> {
        StreamScans {
            plan,
            conditions,
            limits,
            found: Mutex::new(Vec::new()),
            is_any: AtomicBool::new(false),
        }
    }
    /// For the answer to a request of nothing but root fields.
    pub(crate) fn of(&self, shape: ShapeId) -> StreamScan<'_> {
        StreamScan {
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
    pub(crate) fn take(&self, body: &Bytes) -> Option<Box<PartialMatch<'p>>> {
        if self.is_any.load(Ordering::Acquire) {
            self.take_found(body)
        } else {
            None
        }
    }
    #[inline(never)]
    fn take_found(&self, body: &Bytes) -> Option<Box<PartialMatch<'p>>> {
        let mut found = self.found();
        let is = |held: &Bytes| held.as_ptr() == body.as_ptr() && held.len() == body.len();
        let at = found.iter().position(|(held, _)| is(held))?;
        Some(found.swap_remove(at).1)
    }
}

impl<'p> StreamScanner for StreamScans<'p> {
    fn begin<'a>(&'a self, shape: ShapeId, eager: bool) -> Box<dyn ScanPartial + Send + 'a> {
        Box::new(PartialScan {
            of: self,
            shape,
            eager,
            head: PartialMatch::default(),
            stuck: 0,
            spent: 0,
            searched: 0,
            given_up: false,
        })
    }
}

/// An answer that arrives.
struct PartialScan<'a, 'p> {
    of: &'a StreamScans<'p>,
    shape: ShapeId,
    eager: bool,
    head: PartialMatch<'p>,
    /// How much was unread when the unfinished value did not go on; none if it does.
    stuck: usize,
    /// Bytes that were read in search of values.
    spent: usize,
    /// Bytes behind the last known value that were read in vain.
    searched: usize,
    /// Nothing more is looked at.
    given_up: bool,
}

impl ScanPartial for PartialScan<'_, '_> {
    fn look(&mut self, received: &[u8]) {
        if self.given_up {
            return;
        }
        let (conditions, eager) = (self.of.conditions, self.eager);
        let received = ReceivedText {
            text: received,
            eager,
        };
        if let Some((expected, unfinished)) = &mut self.head.unfinished {
            // What is tried in vain is tried again when there is twice as much.
            let unread = received.text.len().saturating_sub(unfinished.position());
            let is_early = unread < STEP.max(2 * self.stuck) || self.stuck >= STUCK_MAX;
            if is_early && !eager {
                return;
            }
            match unfinished.go_on(received.text, received.until(), conditions) {
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
        self.search(received);
    }

    fn whole(self: Box<Self>, body: &Bytes) {
        let head = self.head;
        if !self.given_up && (!head.complete.is_empty() || head.unfinished.is_some()) {
            self.of.found().push((body.clone(), Box::new(head)));
            self.of.is_any.store(true, Ordering::Release);
        }
    }
}

impl PartialScan<'_, '_> {
    /// Reads from the beginning, past all that is known, in search of a value that can be known.
    fn search(&mut self, received: ReceivedText<'_>) {
        let (reach, unknown) = self.head.reach();
        let budget = if self.eager {
            usize::MAX
        } else {
            (received.text.len() / SHARE).saturating_sub(self.spent)
        };
        let window = budget.saturating_sub(unknown);
        if !self.eager && window < SEARCH_MIN.max(2 * self.searched) {
            return;
        }
        // White space will be taken out of it, so nothing will be where it is.
        if ogive_json::is_spaced(received.text) {
            self.given_up = true;
            return;
        }
        let end = reach.saturating_add(window).min(received.text.len());
        self.read(received, end);
        let (reached, _) = self.head.reach();
        let start = |(expected, _): &(Expected, Unfinished<'_>)| expected.start;
        let stopped = self.head.unfinished.as_ref().map_or(end, start);
        self.spent += unknown + stopped.saturating_sub(reached);
        self.searched = if reached > reach { 0 } else { window };
    }

    /// Reads up to `end` of what has come. That fails, at the latest there; what matters is what was found on the way.
    fn read(&mut self, received: ReceivedText<'_>, end: usize) {
        let (of, limits) = (self.of, self.of.limits);
        let mut store = Store::new(of.plan, limits);
        let mut errors = Errors::new(limits);
        let source = Source::new(FetchId(0), 0);
        let mut reader = Reader::new(&mut store, &mut errors, source, None, of.conditions);
        reader.is_single = true;
        reader.known = Hints::Known(ReaderHints {
            head: &mut self.head,
            received: Some(received),
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
        let text = received.text.get(..end).unwrap_or(received.text);
        let _ = Envelope::read_with(text, limits, read_data);
    }
}
