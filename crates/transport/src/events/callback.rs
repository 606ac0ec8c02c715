//! Events that come by requests of the subgraph (`callback/1.0`, [`ogive_stream::callback`]).
//!
//! Whoever serves the requests finds the subscription by its id ([`Callbacks::get`]) on whatever thread it is, and hands in
//! what came. An event is accepted when there is room for it in the queue, so the subgraph feels how fast events are taken;
//! who takes nothing for too long is ended. Nothing that comes is asked for at any address: ids and secrets are random, and
//! a request that does not know both changes nothing.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_execute::SubgraphResponse;
use ogive_failure::Failure;
use ogive_stream::callback::{
    CallbackMessage, CallbackRefusal, CallbackRequest, is_answer, random, read,
};
use tokio::{
    sync::Notify,
    time::{Instant, Sleep, sleep, timeout},
};

use super::{
    driven::response,
    failures::{lost, malformed, overflow, too_late},
    over_http::{self, HttpAnswer},
    queue::{Feed, Queue, queue},
    source::CallbackSource,
    subscribe_request::SubscribeRequest,
};
use crate::{address::Address, endpoint::Endpoint};

/// So many heartbeats may be missing before a subscription is lost.
const HEARTBEATS_MISSED_MAX: u32 = 3;

/// The subscriptions of the process whose events come by requests.
#[derive(Debug, Default)]
pub struct Callbacks(Mutex<FastMap<Box<str>, Arc<CallbackSubscription>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callbacks {
    /// The subscription of an id, if there is one.
    pub fn get(&self, id: &str) -> Option<Arc<CallbackSubscription>> {
        lock(&self.0).get(id).cloned()
    }
    /// How many there are.
    pub fn open(&self) -> usize {
        lock(&self.0).len()
    }
}

/// What a request of a subgraph is answered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallbackAnswer {
    /// The subscription is wanted.
    Wanted,
    /// The event, or the end, was accepted.
    Accepted,
    /// The request is not understood.
    Malformed,
    /// The subscription is over.
    Over,
}

/// How a subscription ended.
#[derive(Clone, Debug)]
enum Ended {
    Complete,
    Overflow,
    Malformed(&'static str),
}

/// One subscription whose events come by requests.
pub struct CallbackSubscription {
    id: Box<str>,
    verifier: Box<str>,
    bytes_max: usize,
    stall_timeout: Duration,
    /// `None` when nothing comes any more. Events wait here in their order.
    feed: tokio::sync::Mutex<Option<Feed>>,
    ended: Mutex<Option<Ended>>,
    is_checked: AtomicBool,
    checked: Notify,
    heard: Mutex<Instant>,
}

impl std::fmt::Debug for CallbackSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallbackSubscription")
            .finish_non_exhaustive()
    }
}

impl CallbackSubscription {
    /// Largest request that is read.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }
    /// Takes what a subgraph has sent. Waits until there is room for an event.
    pub async fn receive(&self, body: Bytes) -> CallbackAnswer {
        let message = match read(&body, &self.id, &self.verifier) {
            Ok(message) => message,
            Err(CallbackRefusal::Foreign) => return CallbackAnswer::Malformed,
            Err(CallbackRefusal::Malformed(what)) => return self.violated(what).await,
        };
        *lock(&self.heard) = Instant::now();
        if message == CallbackMessage::Check {
            self.is_checked.store(true, Ordering::Release);
            self.checked.notify_one();
            return CallbackAnswer::Wanted;
        }
        if !self.is_checked.load(Ordering::Acquire) {
            return self.violated("an event before a `check`").await;
        }
        match message {
            CallbackMessage::Next(payload) => {
                self.put(body.slice_ref(payload.as_bytes()), None).await
            }
            CallbackMessage::Complete(Some(errors)) => {
                self.put(response(errors), Some(Ended::Complete)).await
            }
            CallbackMessage::Complete(None) | CallbackMessage::Check => {
                let mut feed = self.feed.lock().await;
                self.end(&mut feed, Ended::Complete)
            }
        }
    }
    /// Nobody needs to speak to it once it is over.
    fn end(&self, feed: &mut Option<Feed>, ended: Ended) -> CallbackAnswer {
        if feed.is_none() {
            return CallbackAnswer::Over;
        }
        lock(&self.ended).get_or_insert(ended);
        // Nobody need wait for a `check` any more.
        self.checked.notify_one();
        // Whoever reads sees that nothing comes any more, and why.
        *feed = None;
        CallbackAnswer::Accepted
    }
    async fn violated(&self, what: &'static str) -> CallbackAnswer {
        let mut feed = self.feed.lock().await;
        self.end(&mut feed, Ended::Malformed(what));
        CallbackAnswer::Malformed
    }
    async fn put(&self, mut event: Bytes, last: Option<Ended>) -> CallbackAnswer {
        // One after the other, as they came.
        let mut feed = self.feed.lock().await;
        let Some(open) = &*feed else {
            return CallbackAnswer::Over;
        };
        let putting = async {
            while let Err(back) = open.put(event) {
                open.has_room(&back).await;
                event = back;
            }
        };
        let is_put = timeout(self.stall_timeout, putting).await.is_ok();
        match (is_put, last) {
            (false, _) => {
                self.end(&mut feed, Ended::Overflow);
                CallbackAnswer::Over
            }
            (true, Some(ended)) => self.end(&mut feed, ended),
            (true, None) => CallbackAnswer::Accepted,
        }
    }
    fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Acquire)
    }
    async fn checked(&self) {
        while !self.is_checked() && lock(&self.ended).is_none() {
            self.checked.notified().await;
        }
    }
}

/// The events of one subscription. Dropping it ends the subscription: the next request of its subgraph is told so.
pub(crate) struct CallbackEvents {
    callbacks: Arc<Callbacks>,
    subscription: Arc<CallbackSubscription>,
    queue: Queue,
    /// How long nothing may be heard, and when it is looked again.
    patience: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl Drop for CallbackEvents {
    fn drop(&mut self) {
        lock(&self.callbacks.0).remove(&self.subscription.id);
    }
}

/// What a subgraph answered.
pub(crate) enum CallbackOutcome {
    /// Its events come.
    Events(CallbackEvents),
    /// One response, and that is all.
    Whole(SubgraphResponse),
}

/// Asks for events.
pub(crate) async fn open(
    opening: &SubscribeRequest<'_>,
    address: &Address,
    callbacks: &Arc<Callbacks>,
) -> Result<CallbackOutcome, Failure> {
    let (endpoint, source) = (opening.endpoint, opening.source);
    let called = source.callback.as_ref();
    let called = called.ok_or_else(|| lost(endpoint, "there is no URL for callbacks"))?;
    let (id, verifier) = random()
        .zip(random())
        .ok_or_else(|| lost(endpoint, "the system has no random numbers"))?;
    let events = begin(opening, called, callbacks, (&id, &verifier));
    let heartbeat = called.heartbeat_interval.unwrap_or_default();
    let asked = CallbackRequest {
        url: &called.url,
        id: &id,
        verifier: &verifier,
        heartbeat_ms: u64::try_from(heartbeat.as_millis()).unwrap_or(u64::MAX),
    };
    let body = std::str::from_utf8(&opening.body).ok();
    let body = body.and_then(|body| asked.add_to(body));
    let body = body.ok_or_else(|| malformed(endpoint, "the request is no object"))?;
    match over_http::open(opening, address, body.into()).await? {
        HttpAnswer::Neither(error) => return Err(error),
        HttpAnswer::Events(_) => {
            let detail = "a stream, where requests to our URL were asked for";
            return Err(malformed(endpoint, detail));
        }
        HttpAnswer::Whole(response) if is_refused(&response) => {
            return Ok(CallbackOutcome::Whole(response));
        }
        HttpAnswer::Whole(_) => {}
    }
    let within = source.acknowledge_timeout;
    // Most have asked before they answer.
    match timeout(within, events.subscription.checked()).await {
        Ok(()) => Ok(CallbackOutcome::Events(events)),
        Err(_) => Err(too_late(
            endpoint,
            "the subgraph took too long to ask whether the subscription is wanted",
            format!("no `check` within {within:?}"),
        )),
    }
}

fn begin(
    opening: &SubscribeRequest<'_>,
    called: &CallbackSource,
    callbacks: &Arc<Callbacks>,
    (id, verifier): (&str, &str),
) -> CallbackEvents {
    let source = opening.source;
    let (feed, queue) = queue(source.queue_events, source.queue_bytes);
    let subscription = Arc::new(CallbackSubscription {
        id: id.into(),
        verifier: verifier.into(),
        bytes_max: opening.endpoint.traffic.response_bytes_refused(),
        stall_timeout: source.stall_timeout,
        feed: tokio::sync::Mutex::new(Some(feed)),
        ended: Mutex::new(None),
        is_checked: AtomicBool::new(false),
        checked: Notify::new(),
        heard: Mutex::new(Instant::now()),
    });
    lock(&callbacks.0).insert(id.into(), Arc::clone(&subscription));
    let heartbeat = called.heartbeat_interval;
    CallbackEvents {
        callbacks: Arc::clone(callbacks),
        subscription,
        queue,
        patience: heartbeat.map(|every| {
            let patience = every.saturating_mul(HEARTBEATS_MISSED_MAX);
            (patience, Box::pin(sleep(patience)))
        }),
    }
}

/// Whether an answer says that there is no subscription.
fn is_refused(response: &SubgraphResponse) -> bool {
    !(200..300).contains(&response.status) || !is_answer(&response.body)
}

impl CallbackEvents {
    /// The next event; `None` when the subscription is over.
    pub(crate) fn poll_next(
        &mut self,
        endpoint: &Endpoint,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        let subscription = &self.subscription;
        match self.queue.poll_next(cx) {
            Poll::Ready(Ok(event)) => return Poll::Ready(Some(Ok(event))),
            Poll::Ready(Err(_)) => {
                return Poll::Ready(match lock(&subscription.ended).clone() {
                    Some(Ended::Complete) => None,
                    Some(Ended::Overflow) => Some(Err(overflow(endpoint))),
                    Some(Ended::Malformed(what)) => Some(Err(malformed(endpoint, what))),
                    None => Some(Err(lost(endpoint, "nobody says how it ended"))),
                });
            }
            Poll::Pending => {}
        }
        let Some((patience, timer)) = &mut self.patience else {
            return Poll::Pending;
        };
        while timer.as_mut().poll(cx).is_ready() {
            let due = *lock(&subscription.heard) + *patience;
            if due <= Instant::now() {
                let detail = format!("nothing was heard for {patience:?}");
                return Poll::Ready(Some(Err(lost(endpoint, detail))));
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
