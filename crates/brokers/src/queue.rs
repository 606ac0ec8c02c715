//! What waits for one subscription, bounded by number and bytes, and who hears one channel.
//!
//! Whoever hears the broker runs on another thread than whoever reads, so both meet here. What happens to the connection
//! stands in the queue, too, in its place between events.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_nats::jetstream::{AckKind, message::Acker};
use bytes::Bytes;
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
};

use crate::settings::QueueLimits;

/// One event, shared by all that hear it.
pub(crate) struct Message {
    payload: Bytes,
    value: OnceLock<Option<Value>>,
    /// Somebody has handed it on.
    is_handed_on: AtomicBool,
    /// In how many queues it was, and in how many of them nobody wanted it.
    queued: AtomicUsize,
    unwanted: AtomicUsize,
    delivery: Option<Delivery>,
}

/// How the broker learns what became of an event.
pub(crate) struct Delivery {
    pub(crate) acker: Acker,
    pub(crate) runtime: Handle,
}

impl Message {
    pub(crate) fn new(payload: Bytes, delivery: Option<Delivery>) -> Message {
        Message {
            payload,
            value: OnceLock::new(),
            is_handed_on: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            unwanted: AtomicUsize::new(0),
            delivery,
        }
    }
    pub(crate) fn len(&self) -> usize {
        self.payload.len()
    }
    /// What it says, if it is JSON.
    pub(crate) fn value(&self) -> Option<&Value> {
        let read = || serde_json::from_slice(&self.payload).ok();
        self.value.get_or_init(read).as_ref()
    }
    /// It was handed on.
    pub(crate) fn hand_on(&self) {
        self.is_handed_on.store(true, Ordering::Relaxed);
    }
    /// The reader of one queue does not want it; that says nothing of the others.
    pub(crate) fn pass_over(&self) {
        self.unwanted.fetch_add(1, Ordering::Relaxed);
    }
    /// Whether it need not come again: somebody has it, or nobody who heard of it wants it.
    fn is_done(&self) -> bool {
        let queued = self.queued.load(Ordering::Relaxed);
        self.is_handed_on.load(Ordering::Relaxed)
            || (queued > 0 && queued == self.unwanted.load(Ordering::Relaxed))
    }
    /// Tells the broker that it is still looked at, so that it does not come again meanwhile.
    pub(crate) async fn is_looked_at(&self) {
        if let Some(Delivery { acker, .. }) = &self.delivery
            && let Err(error) = acker.ack_with(AckKind::Progress).await
        {
            tracing::debug!(%error, "an event that waits may come again");
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        let Some(Delivery { acker, runtime }) = self.delivery.take() else {
            return;
        };
        let is_done = self.is_done();
        runtime.spawn(async move {
            let kind = if is_done {
                AckKind::Ack
            } else {
                AckKind::Nak(None)
            };
            if let Err(error) = acker.ack_with(kind).await {
                tracing::debug!(%error, "an event was not acknowledged: it comes again");
            }
        });
    }
}

/// What comes out of a queue.
pub(crate) enum Item {
    /// An event.
    Event(Arc<Message>),
    /// The connection is lost; why.
    Lost(String),
    /// It is there again.
    Back,
    /// The last item.
    End(End),
}

/// How a subscription ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It has not taken its events.
    Overflow,
    /// The broker refuses it; why.
    Refused(String),
}

/// A queue.
pub(crate) struct Feed {
    limits: QueueLimits,
    state: Mutex<FeedState>,
    room: Notify,
}

#[derive(Default)]
struct FeedState {
    items: VecDeque<Item>,
    events: usize,
    bytes: usize,
    end: Option<End>,
    reader: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    pub(crate) fn new(limits: QueueLimits) -> Feed {
        Feed {
            limits,
            state: Mutex::default(),
            room: Notify::new(),
        }
    }
    fn has_room(&self, state: &FeedState, bytes: usize) -> bool {
        let fits = state.bytes.saturating_add(bytes) <= self.limits.bytes;
        state.events < self.limits.events && (state.events == 0 || fits)
    }
    /// Adds an event, if there is room for it.
    fn try_push(&self, message: &Arc<Message>) -> bool {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return true;
        }
        if !self.has_room(&state, message.len()) {
            return false;
        }
        message.queued.fetch_add(1, Ordering::Relaxed);
        state.events += 1;
        state.bytes += message.len();
        state.items.push_back(Item::Event(Arc::clone(message)));
        wake(state);
        true
    }
    fn end(&self, end: End) {
        let mut state = lock(&self.state);
        state.end.get_or_insert(end);
        wake(state);
    }
    fn tell(&self, item: Item) {
        let mut state = lock(&self.state);
        // Connections that come and go fill nothing.
        if state.items.len() < self.limits.events.saturating_mul(2).saturating_add(16) {
            state.items.push_back(item);
        }
        wake(state);
    }
    /// What comes next.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Item> {
        let mut state = lock(&self.state);
        match state.items.pop_front() {
            Some(item) => {
                if let Item::Event(message) = &item {
                    state.events -= 1;
                    state.bytes -= message.len();
                    drop(state);
                    self.room.notify_one();
                }
                Poll::Ready(item)
            }
            None => match &state.end {
                Some(end) => Poll::Ready(Item::End(end.clone())),
                None => {
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            },
        }
    }
}

fn wake(mut state: MutexGuard<'_, FeedState>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Whether a channel is heard.
#[derive(Clone, Debug)]
pub(crate) enum ChannelState {
    /// Not yet.
    Opening,
    /// The broker has accepted.
    Heard,
    /// The broker refuses; why.
    Refused(String),
}

/// Everybody who hears one channel.
pub(crate) struct Channel {
    feeds: Mutex<Feeds>,
    left: Notify,
    hearing: watch::Sender<ChannelState>,
}

#[derive(Default)]
struct Feeds {
    list: Vec<Arc<Feed>>,
    is_closed: bool,
}

impl Channel {
    pub(crate) fn new() -> Channel {
        Channel {
            feeds: Mutex::default(),
            left: Notify::new(),
            hearing: watch::Sender::new(ChannelState::Opening),
        }
    }
    /// Lets somebody hear; false if nobody can come any more.
    pub(crate) fn enter(&self, feed: &Arc<Feed>) -> bool {
        let mut feeds = lock(&self.feeds);
        if !feeds.is_closed {
            feeds.list.push(Arc::clone(feed));
        }
        !feeds.is_closed
    }
    pub(crate) fn leave(&self, feed: &Arc<Feed>) {
        let mut feeds = lock(&self.feeds);
        feeds.list.retain(|known| !Arc::ptr_eq(known, feed));
        let is_last = feeds.list.is_empty();
        drop(feeds);
        // Whoever waits for room waits for somebody who is gone.
        feed.room.notify_one();
        if is_last {
            self.left.notify_waiters();
        }
    }
    /// Waits until nobody hears any more, and lets nobody come then.
    pub(crate) async fn left(&self) {
        loop {
            let left = self.left.notified();
            if self.close_if_left() {
                return;
            }
            left.await;
        }
    }
    /// Lets nobody come if nobody is there.
    pub(crate) fn close_if_left(&self) -> bool {
        let mut feeds = lock(&self.feeds);
        feeds.is_closed |= feeds.list.is_empty();
        feeds.is_closed
    }
    fn list(&self) -> Vec<Arc<Feed>> {
        lock(&self.feeds).list.clone()
    }
    /// An event of a broker that waits for nobody: who has no room is ended.
    pub(crate) fn push(&self, message: &Arc<Message>) {
        for feed in self.list() {
            if !feed.try_push(message) {
                feed.end(End::Overflow);
            }
        }
    }
    /// An event of a broker that waits: who has no room for too long is ended.
    pub(crate) async fn push_patiently(&self, message: &Arc<Message>) {
        for feed in self.list() {
            let stall: Duration = feed.limits.stall_timeout;
            let pushing = async {
                loop {
                    let room = feed.room.notified();
                    let is_gone = !self.list().iter().any(|known| Arc::ptr_eq(known, &feed));
                    if is_gone || feed.try_push(message) {
                        return;
                    }
                    room.await;
                }
            };
            if tokio::time::timeout(stall, pushing).await.is_err() {
                feed.end(End::Overflow);
                // What comes after it would be given back to the broker at once, and come again.
                self.leave(&feed);
            }
        }
    }
    /// Ends all for whom events may be missing.
    pub(crate) fn overflow(&self) {
        for feed in self.list() {
            feed.end(End::Overflow);
        }
    }
    /// The connection is lost.
    pub(crate) fn lost(&self, why: &str) {
        self.set_hearing(ChannelState::Opening);
        if matches!(*self.hearing.borrow(), ChannelState::Refused(_)) {
            return;
        }
        for feed in self.list() {
            feed.tell(Item::Lost(why.to_owned()));
        }
    }
    /// Says whether it is another state than before. What was refused stays so: whoever comes later is refused, too.
    fn set_hearing(&self, now: ChannelState) -> bool {
        self.hearing.send_if_modified(|hearing| {
            let is_other = match hearing {
                ChannelState::Opening => matches!(now, ChannelState::Heard),
                ChannelState::Heard => matches!(now, ChannelState::Opening),
                ChannelState::Refused(_) => false,
            };
            if is_other {
                *hearing = now;
            }
            is_other
        })
    }
    /// The broker has accepted, for the first time or again.
    pub(crate) fn heard(&self) {
        if !self.set_hearing(ChannelState::Heard) {
            return;
        }
        for feed in self.list() {
            feed.tell(Item::Back);
        }
    }
    /// The broker refuses.
    pub(crate) fn refuse(&self, why: &str) {
        self.hearing
            .send_replace(ChannelState::Refused(why.to_owned()));
        for feed in self.list() {
            feed.end(End::Refused(why.to_owned()));
        }
    }
    /// Waits until the broker has said what it thinks of it.
    pub(crate) async fn accepted(&self) -> Result<(), String> {
        let mut hearing = self.hearing.subscribe();
        let known = hearing
            .wait_for(|hearing| !matches!(hearing, ChannelState::Opening))
            .await;
        match known.as_deref() {
            Ok(ChannelState::Refused(why)) => Err(why.clone()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(events: usize, bytes: usize) -> Arc<Feed> {
        Arc::new(Feed::new(QueueLimits {
            events,
            bytes,
            stall_timeout: Duration::from_secs(5),
        }))
    }
    fn message(text: &str) -> Arc<Message> {
        Arc::new(Message::new(Bytes::copy_from_slice(text.as_bytes()), None))
    }
    fn next(feed: &Feed) -> Option<String> {
        match feed.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Item::Event(message)) => {
                Some(String::from_utf8(message.payload.to_vec()).unwrap())
            }
            Poll::Ready(Item::End(end)) => Some(format!("{end:?}")),
            Poll::Ready(Item::Lost(why)) => Some(why),
            Poll::Ready(Item::Back) => Some("back".to_owned()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_does_not_read_is_ended_behind_what_waited_and_harms_nobody() {
        let channel = Channel::new();
        let (slow, quick) = (feed(2, 100), feed(2, 100));
        assert!(channel.enter(&slow) && channel.enter(&quick));
        for text in ["1", "2", "3"] {
            channel.push(&message(text));
            assert_eq!(next(&quick).as_deref(), Some(text));
        }
        let found: Vec<Option<String>> = (0..4).map(|_| next(&slow)).collect();
        let expected = ["1", "2", "Overflow", "Overflow"];
        assert_eq!(found, expected.map(|text| Some(text.to_owned())));
    }

    #[test]
    fn bytes_are_bounded_and_a_large_event_waits_alone() {
        let channel = Channel::new();
        let feed = feed(10, 4);
        channel.enter(&feed);
        channel.push(&message("large one"));
        assert_eq!(next(&feed).as_deref(), Some("large one"));
        channel.push(&message("123"));
        channel.push(&message("456"));
        assert_eq!(next(&feed).as_deref(), Some("123"));
        assert_eq!(next(&feed).as_deref(), Some("Overflow"));
    }

    #[test]
    fn what_one_does_not_want_comes_again_if_another_has_not_taken_it() {
        let (channel, wanted) = (Channel::new(), message("1"));
        let feeds = [feed(2, 100), feed(2, 100)];
        assert!(!wanted.is_done(), "nobody has heard of it");
        assert!(feeds.iter().all(|feed| channel.enter(feed)));
        channel.push(&wanted);
        wanted.pass_over();
        assert!(!wanted.is_done());
        wanted.pass_over();
        assert!(wanted.is_done(), "nobody wants it");
        let other = message("2");
        channel.push(&other);
        other.pass_over();
        other.hand_on();
        assert!(other.is_done());
    }

    #[test]
    fn who_was_refused_is_not_heard_later() {
        let (channel, feed) = (Channel::new(), feed(2, 100));
        channel.enter(&feed);
        channel.refuse("rights");
        channel.heard();
        channel.lost("the connection");
        assert!(matches!(
            *channel.hearing.borrow(),
            ChannelState::Refused(_)
        ));
        assert_eq!(next(&feed).as_deref(), Some("Refused(\"rights\")"));
    }

    #[test]
    fn nobody_comes_to_a_channel_that_everybody_has_left() {
        let channel = Channel::new();
        let feed = feed(1, 1);
        channel.enter(&feed);
        assert!(!channel.close_if_left());
        channel.leave(&feed);
        assert!(channel.close_if_left());
        assert!(!channel.enter(&feed));
    }
}
