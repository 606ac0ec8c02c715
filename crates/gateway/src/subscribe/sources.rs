//! The sources of events that are open, and who is subscribed to each.
//!
//! Equal subscriptions, whichever worker their clients came to, have one source: one stream of a subgraph, one execution
//! and one encoding for each event. The source runs on the worker of whoever came first; all others have a queue.

use std::{
    cell::Cell,
    ops::Range,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderMap;
use ogive_base::FastMap;
use ogive_edge::{
    client_shares::{ClientShare, ClientShares},
    error::{RequestError, internal},
    error_rules::ErrorRewrites,
};
use ogive_identity::Caller;
use ogive_plan::Granted;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, Sleep, sleep_until},
};

use crate::identify::{
    credential::Credential,
    revocation::{Revocable, RevocationGuard, Revoked},
};
pub use crate::subscribe::counts::SubscriptionCounts;
use crate::subscribe::{
    counts::{CountsBySubgraph, SubgraphCounts},
    direct::{self, DirectOutcome},
    end::EndLog,
    hooked::{EventHook, HookedEvents},
    options::QueueLimits,
    owner::{Opener, expires_after},
    queue::{Event, EventQueue, QueueOutcome, StreamEnd, StreamStep},
};

/// What subscriptions are equal by.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct SourceKey {
    /// The address of the schema's state, which the source keeps alive.
    pub(crate) state: usize,
    /// The canonical form of the operation: two workers that plan it at once have two plans, and so may two documents.
    pub(crate) form: Arc<[u8]>,
    pub(crate) variables: Vec<Option<Box<str>>>,
    /// What the caller may see.
    pub(crate) granted: Granted,
    pub(crate) locals: Vec<Bytes>,
    /// What subgraphs are told of the operation's name.
    pub(crate) name: Option<Box<str>>,
    /// What each subgraph would be sent besides bodies.
    pub(crate) identities: Vec<Box<[u8]>>,
    /// What the rates of subgraphs see of the client.
    pub(crate) rates: Vec<u8>,
}

/// Why sources end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EndState {
    /// How often schema or configuration have changed.
    pub(crate) reloads: u64,
    /// The process stops.
    pub(crate) drains: bool,
}

/// All sources of the process.
#[derive(Debug)]
pub(crate) struct Sources {
    shared: Mutex<FastMap<Arc<SourceKey>, Arc<EventSource>>>,
    /// Those that are open, by client.
    pub(crate) places: Arc<ClientShares>,
    counts: CountsBySubgraph,
    next: AtomicU64,
    ending: watch::Sender<EndState>,
    /// What clients are told of errors, as it is served now.
    error_rules: ArcSwapOption<ErrorRewrites>,
}

impl Default for Sources {
    fn default() -> Self {
        Sources {
            shared: Mutex::default(),
            places: Arc::default(),
            counts: CountsBySubgraph::default(),
            next: AtomicU64::new(0),
            ending: watch::Sender::new(EndState::default()),
            error_rules: ArcSwapOption::empty(),
        }
    }
}

/// One source of events.
#[derive(Debug)]
pub(crate) struct EventSource {
    /// What it is found by; changed only with the table of sources locked.
    key: Mutex<Option<Arc<SourceKey>>>,
    /// The number of whoever opened it.
    opener: u64,
    /// Of its subgraph.
    counts: Arc<SubgraphCounts>,
    subscribers: Mutex<Subscribers>,
    /// By whose credential it goes on.
    renewed: Mutex<Option<Opener>>,
    /// Told when the last subscriber has left.
    left: Notify,
}

/// The queue of a subscriber.
type Numbered = (u64, Arc<EventQueue>);

#[derive(Debug, Default)]
struct Subscribers {
    /// By number, which is the order in which they came.
    queues: Vec<Numbered>,
    /// Nobody can come any more.
    is_closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sources {
    /// What is counted.
    pub(crate) fn counts(&self) -> SubscriptionCounts {
        self.counts.sum()
    }
    /// The same by subgraph.
    pub(crate) fn counts_by_subgraph(&self) -> Vec<(Box<str>, SubscriptionCounts)> {
        self.counts.read()
    }
    /// A number for something that ends with the process.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
    /// Learns of reloads and of the end of the process.
    pub(crate) fn ending(&self) -> watch::Receiver<EndState> {
        self.ending.subscribe()
    }
    /// Ends are told by these rules from now on.
    pub(crate) fn tell_by(&self, error_rules: Option<&Arc<ErrorRewrites>>) {
        self.error_rules.store(error_rules.cloned());
    }
    /// The errors that clients hear of an end; `None` if it went well.
    pub(crate) fn told(&self, end: &StreamEnd) -> Option<Bytes> {
        end.told(self.error_rules.load().as_deref())
    }
    /// What a client hears of an error beside its operations.
    pub(crate) fn told_error(&self, error: &RequestError) -> Vec<u8> {
        error.to_json_by(self.error_rules.load().as_deref())
    }
    /// Another schema or configuration is served.
    pub(crate) fn reload(&self) {
        self.ending.send_modify(|ending| ending.reloads += 1);
    }
    /// The process stops.
    pub(crate) fn drain(&self) {
        self.ending.send_modify(|ending| ending.drains = true);
    }
    /// Subscribes to the source of this key, or to a new one, which the caller has to run. A new one that is dropped instead takes nobody with it: whoever found it meanwhile hears that.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: Option<SourceKey>,
        subgraph: &str,
        limits: QueueLimits,
        place: ClientShare,
    ) -> (Subscriber, Option<RunningSource>) {
        let counts = self.counts.of(subgraph);
        counts.open.fetch_add(1, Ordering::Relaxed);
        let number = self.number();
        let queue = Arc::new(EventQueue::new(limits));
        let key = key.map(Arc::new);
        let mut shared = lock(&self.shared);
        let known = key.as_ref().and_then(|key| shared.get(key));
        let known = known.filter(|source| source.enter(number, &queue));
        let (source, is_new) = match known {
            Some(source) => (Arc::clone(source), false),
            None => {
                let source = Arc::new(EventSource {
                    key: Mutex::new(key.clone()),
                    opener: number,
                    counts,
                    subscribers: Mutex::default(),
                    renewed: Mutex::default(),
                    left: Notify::new(),
                });
                source.enter(number, &queue);
                if let Some(key) = key {
                    shared.insert(key, Arc::clone(&source));
                }
                (source, true)
            }
        };
        drop(shared);
        let subscriber = Subscriber {
            sources: Arc::clone(self),
            source: Arc::clone(&source),
            number,
            queue,
            expiry: None,
            timer: None,
            end_log: None,
            watch: None,
            hooked: None,
            _place: place,
        };
        (subscriber, is_new.then(|| self.run(source)))
    }
    /// A source runs until this is dropped; then whoever is still subscribed hears its end.
    fn run(self: &Arc<Self>, source: Arc<EventSource>) -> RunningSource {
        source.counts.sources.fetch_add(1, Ordering::Relaxed);
        RunningSource {
            sources: Arc::clone(self),
            source,
            // Told if nobody says how it ended: in a panic, say.
            end: StreamEnd::Refused(internal().into()),
            turn: Cell::default(),
        }
    }
    /// Nobody finds the source any more.
    fn close(&self, source: &Arc<EventSource>) -> Vec<Numbered> {
        let mut shared = lock(&self.shared);
        source.forget(&mut shared);
        let mut subscribers = lock(&source.subscribers);
        subscribers.is_closed = true;
        std::mem::take(&mut subscribers.queues)
    }
}

impl EventSource {
    /// Nobody finds it any more.
    fn forget(self: &Arc<Self>, shared: &mut FastMap<Arc<SourceKey>, Arc<EventSource>>) {
        if let Some(key) = lock(&self.key).take()
            && shared
                .get(&key)
                .is_some_and(|known| Arc::ptr_eq(known, self))
        {
            shared.remove(&key);
        }
    }
    fn enter(&self, number: u64, queue: &Arc<EventQueue>) -> bool {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.is_closed {
            return false;
        }
        let queues = &mut subscribers.queues;
        let at = queues.partition_point(|(other, _)| *other < number);
        queues.insert(at, (number, Arc::clone(queue)));
        true
    }
    /// Waits until nobody is subscribed any more, and lets nobody come then.
    pub(crate) async fn left(&self) {
        loop {
            let left = self.left.notified();
            if self.close_if_left() {
                return;
            }
            left.await;
        }
    }
    /// Keeps some subscribers. The others have been told the end, and leave at once: a client that takes nothing keeps no
    /// source open.
    fn keep(&self, mut is_kept: impl FnMut(u64, &EventQueue) -> bool) {
        let mut subscribers = lock(&self.subscribers);
        let queues = &mut subscribers.queues;
        queues.retain(|(number, queue)| is_kept(*number, queue));
        let is_left = queues.is_empty();
        drop(subscribers);
        if is_left {
            self.left.notify_one();
        }
    }
    /// Some of those of these numbers, to whom an event is sent next; the number of whoever comes behind them.
    fn some(&self, numbers: Range<u64>, event: &Event, some: &mut Vec<Numbered>) -> Option<u64> {
        let most = BYTES_AT_A_TIME / event.json().len().max(1);
        let subscribers = lock(&self.subscribers);
        let queues = &subscribers.queues;
        let start = queues.partition_point(|(number, _)| *number < numbers.start);
        let mut of_these = queues[start..]
            .iter()
            .take_while(|(number, _)| *number < numbers.end);
        let turn = of_these.by_ref().take(most.clamp(1, AT_A_TIME));
        some.extend(turn.cloned());
        of_these.next().map(|(number, _)| *number)
    }
    fn close_if_left(&self) -> bool {
        let mut subscribers = lock(&self.subscribers);
        subscribers.is_closed |= subscribers.queues.is_empty();
        subscribers.is_closed
    }
}

/// A source while it runs, from the moment at which others can find it.
pub(crate) struct RunningSource {
    sources: Arc<Sources>,
    source: Arc<EventSource>,
    end: StreamEnd,
    /// Room for those to whom an event is sent next.
    turn: Cell<Vec<Numbered>>,
}

impl RunningSource {
    /// Waits until nobody is subscribed any more, and lets nobody come then.
    pub(crate) async fn left(&self) {
        self.source.left().await;
    }
    /// Whether others find it.
    pub(crate) fn is_shared(&self) -> bool {
        lock(&self.source.key).is_some()
    }
    /// By whose credential it goes on from now on, if that is another one.
    pub(crate) fn renewed(&self) -> Option<Opener> {
        lock(&self.source.renewed).take()
    }
    /// Is found by another key from now on. `for_opener`: only if there is nobody but whoever opened it. Says whether it
    /// was done.
    pub(crate) fn go_on_as(&self, key: Option<SourceKey>, for_opener: bool) -> bool {
        let mut shared = lock(&self.sources.shared);
        let subscribers = lock(&self.source.subscribers);
        let mut numbers = subscribers.queues.iter().map(|(number, _)| number);
        if for_opener && !numbers.all(|number| *number == self.source.opener) {
            return false;
        }
        self.source.forget(&mut shared);
        let key = key.map(Arc::new);
        // Somebody may have come before, and has a source of the same kind.
        if let Some(key) = key.filter(|key| !shared.contains_key(key)) {
            shared.insert(Arc::clone(&key), Arc::clone(&self.source));
            *lock(&self.source.key) = Some(key);
        }
        true
    }
    /// How it ends.
    pub(crate) fn set_end(&mut self, end: StreamEnd) {
        self.end = end;
    }
    /// Sends an event to all subscribers. Others have their turn between some of them and the next.
    pub(crate) async fn push(&self, json: Bytes) {
        let event = Arc::new(Event::new(json));
        // Whoever comes meanwhile comes behind this event.
        let end = self.sources.next.load(Ordering::Relaxed);
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.push_to_some(&event, from..end);
            if next.is_some() {
                tokio::task::yield_now().await;
            }
        }
        // Last, with release: whoever sees the event counted sees what became of it.
        self.source.counts.events.fetch_add(1, Ordering::Release);
    }
    /// Sends it to some of those of these numbers; gives the number of the next one. Nobody waits for that meanwhile.
    fn push_to_some(&self, event: &Arc<Event>, numbers: Range<u64>) -> Option<u64> {
        let counts = &self.source.counts;
        let (mut at_once, mut delivered, mut dropped, mut overflows) = (0, 0, 0, 0);
        let mut turn = self.turn.take();
        let next = self.source.some(numbers, event, &mut turn);
        let mut gone = Vec::new();
        for (number, queue) in turn.drain(..) {
            match direct::send(&queue, event) {
                DirectOutcome::Sent => {
                    at_once += 1;
                    continue;
                }
                // Its session is about to end.
                DirectOutcome::Broken => continue,
                DirectOutcome::Elsewhere => {}
            }
            match queue.push(event) {
                QueueOutcome::Queued => delivered += 1,
                QueueOutcome::Dropped(n) => (delivered, dropped) = (delivered + 1, dropped + n),
                QueueOutcome::Overflow => {
                    overflows += 1;
                    gone.push(number);
                }
                QueueOutcome::Over => gone.push(number),
            }
        }
        self.turn.set(turn);
        if !gone.is_empty() {
            self.source.keep(|number, _| !gone.contains(&number));
        }
        counts.taken_at_once(at_once);
        counts
            .deliveries
            .fetch_add(at_once + delivered, Ordering::Relaxed);
        counts.dropped.fetch_add(dropped, Ordering::Relaxed);
        counts.overflows.fetch_add(overflows, Ordering::Relaxed);
        next
    }
    /// Ends the subscriptions whose turn is, of those that end within a window of which so much has passed; says when the
    /// next look is due. They are spread over it evenly, whatever their number is.
    pub(crate) fn end_some(&self, passed: Duration, window: Duration, end: &StreamEnd) -> Duration {
        self.source.keep(|number, queue| {
            let ends = window.mul_f64(share(number)) <= passed;
            if ends {
                queue.end(end.clone());
            }
            !ends
        });
        window / LOOKS
    }
}

/// To how many an event is sent before others have their turn, and how many bytes that may be.
const AT_A_TIME: usize = 32;
const BYTES_AT_A_TIME: usize = 256 << 10;

/// How often it is looked who ends, within a window.
const LOOKS: u32 = 20;

/// Where in a window a number has its turn: multiples of the golden ratio lie evenly, however many there are.
pub(crate) fn share(number: u64) -> f64 {
    (number as f64 * 0.618_033_988_749_895).fract()
}

impl Drop for RunningSource {
    fn drop(&mut self) {
        let counts = &self.source.counts;
        counts.sources.fetch_sub(1, Ordering::Relaxed);
        if self.sources.ending.borrow().drains {
            // A worker that has nothing more to serve ends, and its sources with it.
            self.end = StreamEnd::Drain;
        }
        for (_, queue) in self.sources.close(&self.source) {
            queue.end(self.end.clone());
        }
    }
}

impl Revocable for EventQueue {
    fn revoke(&self, how: Revoked) {
        self.cut(match how {
            Revoked::Credential(error) => StreamEnd::Revoked(error.into()),
            Revoked::Authorization(error) => StreamEnd::Refused(error.into()),
        });
    }
}

/// One subscription of one client. Dropping it leaves.
#[derive(Debug)]
pub(crate) struct Subscriber {
    sources: Arc<Sources>,
    source: Arc<EventSource>,
    number: u64,
    queue: Arc<EventQueue>,
    /// When the credential expires.
    expiry: Option<Instant>,
    /// Made where it is waited for, which may be another thread.
    timer: Option<Pin<Box<Sleep>>>,
    /// What logs its end, if anybody wants that.
    end_log: Option<Box<EndLog>>,
    /// Ends it when its credential is withdrawn.
    watch: Option<RevocationGuard>,
    /// Who looks at its events before its client, if anybody does.
    hooked: Option<Box<HookedEvents>>,
    /// Among those of its client.
    _place: ClientShare,
}

impl Subscriber {
    /// Lets somebody look at its events before its client gets them.
    pub(crate) fn hook(&mut self) -> EventHook {
        let (hooked, hook) = HookedEvents::new(&self.queue);
        self.hooked = Some(Box::new(hooked));
        hook
    }
    /// Ends it then.
    pub(crate) fn expire(&mut self, after: Option<Duration>) {
        // Later than any clock can tell is never.
        self.expiry = after.and_then(|after| Instant::now().checked_add(after));
        self.queue.expire(self.expiry.map(Instant::into_std));
        self.timer = None;
    }
    /// Goes on by a fresh credential of the same caller, and so does the source, if that is by whose credential it was opened:
    /// nobody else's is shown to subgraphs for those who share it.
    pub(crate) fn renew(
        &mut self,
        headers: &HeaderMap,
        caller: Option<&Arc<Caller>>,
        credential: &Option<Arc<Credential>>,
    ) {
        if let Some(watch) = &self.watch {
            watch.renew(credential.clone());
        }
        self.expire(caller.and_then(|caller| expires_after(caller)));
        if self.number != self.source.opener {
            return;
        }
        *lock(&self.source.renewed) = Some(Opener {
            headers: headers.clone(),
            caller: caller.cloned(),
            // That of the opener: who shares a source is of the same address where that is told.
            client: None,
        });
    }
    /// Ends it when its credential is withdrawn.
    pub(crate) fn watch(
        &mut self,
        with: impl FnOnce(Weak<dyn Revocable>) -> Option<RevocationGuard>,
    ) {
        let queue: Weak<EventQueue> = Arc::downgrade(&self.queue);
        self.watch = with(queue);
    }
    /// Where its events wait.
    pub(crate) fn queue(&self) -> &Arc<EventQueue> {
        &self.queue
    }
    /// What comes next.
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<StreamStep> {
        if let Some(at) = self.expiry {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if at <= Instant::now() || timer.as_mut().poll(cx).is_ready() {
                (self.expiry, self.timer) = (None, None);
                self.queue.cut(StreamEnd::Expired);
            }
        }
        let step = match &mut self.hooked {
            None => self.queue.poll(cx),
            Some(hooked) => hooked.poll(&self.queue, cx),
        };
        if let Poll::Ready(StreamStep::Event(event)) = &step {
            self.source.counts.taken(event.waited());
        }
        if let (Some(logger), Poll::Ready(step)) = (&mut self.end_log, &step) {
            logger.note(step);
        }
        step
    }
    /// The errors that its client hears of an end; `None` if it went well.
    pub(crate) fn told(&self, end: &StreamEnd) -> Option<Bytes> {
        self.sources.told(end)
    }
    /// Logs its end.
    pub(crate) fn log_end(&mut self, logger: Option<EndLog>) {
        self.end_log = logger.map(Box::new);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if let Some(logger) = &mut self.end_log {
            logger.sent(self.queue.passed());
        }
        let counts = &self.source.counts;
        counts.open.fetch_sub(1, Ordering::Relaxed);
        let mut subscribers = lock(&self.source.subscribers);
        let at = subscribers
            .queues
            .binary_search_by_key(&self.number, |(number, _)| *number);
        if let Ok(at) = at {
            subscribers.queues.remove(at);
        }
        let is_last = subscribers.queues.is_empty();
        drop(subscribers);
        if is_last {
            self.source.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn join(sources: &Arc<Sources>) -> (Subscriber, Option<RunningSource>) {
        let key = SourceKey {
            state: 0,
            form: Arc::from(&b""[..]),
            variables: Vec::new(),
            granted: Granted::default(),
            locals: Vec::new(),
            name: None,
            identities: Vec::new(),
            rates: Vec::new(),
        };
        let limits = QueueLimits {
            events_max: 1,
            bytes_max: 1,
            drops: false,
        };
        let place = ClientShare::of(&sources.places, None);
        sources.join(Some(key), "a", limits, place)
    }

    #[tokio::test]
    async fn a_source_that_nobody_came_to_run_ends_for_those_who_found_it() {
        let sources = Arc::<Sources>::default();
        let (opener, source) = join(&sources);
        let (mut second, found) = join(&sources);
        assert!(found.is_none());
        drop(opener);
        drop(source);
        let step = poll_fn(|cx| second.poll_step(cx)).await;
        assert!(matches!(step, StreamStep::End(StreamEnd::Refused(_))));
        assert_eq!(sources.counts().sources, 0);
        let (_, source) = join(&sources);
        assert!(source.is_some());
    }

    /// Others who share it would be shown to subgraphs as somebody else.
    #[test]
    fn a_source_goes_on_by_the_credential_of_its_opener_only() {
        let sources = Arc::<Sources>::default();
        let (mut opener, source) = join(&sources);
        let source = source.unwrap();
        let (mut second, _) = join(&sources);
        second.renew(&HeaderMap::new(), None, &None);
        assert!(source.renewed().is_none());
        opener.renew(&HeaderMap::new(), None, &None);
        assert!(source.renewed().is_some());
    }

    #[test]
    fn no_end_is_too_far_away() {
        let sources = Arc::<Sources>::default();
        let (mut subscriber, _source) = join(&sources);
        subscriber.expire(Some(Duration::MAX));
        assert_eq!(subscriber.expiry, None);
    }
}
