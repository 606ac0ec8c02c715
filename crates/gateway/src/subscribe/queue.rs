//! What waits for one subscriber: events, in their order, bounded by number and bytes, and the end.
//!
//! Whoever makes events may be on another thread than whoever takes them. Events are shared by all equal subscribers, and
//! written once for each protocol.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use ogive_edge::{error::RequestError, error_rules::ErrorRewrites, media::StreamMedia};
use ogive_server::events::{PartFraming, chunk};
use ogive_stream::{Protocol, SharedFrame, multipart, server_message::ServerMessage, sse};
use ogive_telemetry::codes;

use crate::{respond::expose::add_extensions, subscribe::options::QueueLimits};

/// A response to one event.
#[derive(Debug)]
pub(crate) struct Event {
    /// When it came.
    arrived: Instant,
    json: Bytes,
    /// By medium and framing.
    parts: [OnceLock<Bytes>; 4],
    message: OnceLock<Message>,
}

/// An event as a message of a WebSocket, which has the client's name for the operation in it.
#[derive(Debug)]
struct Message {
    protocol: Protocol,
    id: Box<str>,
    frame: SharedFrame,
}

impl Event {
    pub(crate) fn new(json: Bytes) -> Self {
        Event {
            arrived: Instant::now(),
            json,
            parts: Default::default(),
            message: OnceLock::new(),
        }
    }
    /// The same event, with another response.
    pub(crate) fn with(&self, json: Bytes) -> Self {
        Event {
            arrived: self.arrived,
            ..Event::new(json)
        }
    }
    /// How long ago it came.
    pub(crate) fn waited(&self) -> Duration {
        self.arrived.elapsed()
    }
    /// The response.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }
    /// The same as a part of a body, written once for all who read it so.
    pub(crate) fn part(&self, media: StreamMedia, framing: PartFraming) -> &Bytes {
        let at = 2 * usize::from(media == StreamMedia::Multipart)
            + usize::from(framing == PartFraming::Chunked);
        self.parts[at].get_or_init(|| {
            let mut out = Vec::with_capacity(self.json.len() + 96);
            match media {
                StreamMedia::EventStream => sse::write_next(&mut out, &self.json),
                StreamMedia::Multipart => multipart::write_payload(&mut out, &self.json),
            }
            framed(out, framing)
        })
    }
    /// The same as a message of a WebSocket, written once for all who call the operation the same.
    pub(crate) fn message(&self, protocol: Protocol, id: &str) -> SharedFrame {
        let write = || message(protocol, id, &self.json);
        let known = self.message.get_or_init(|| Message {
            protocol,
            id: id.into(),
            frame: write(),
        });
        if known.protocol == protocol && *known.id == *id {
            known.frame.clone()
        } else {
            write()
        }
    }
}

/// A part as it is written.
pub(crate) fn framed(part: Vec<u8>, framing: PartFraming) -> Bytes {
    match framing {
        PartFraming::Plain => part.into(),
        PartFraming::Chunked => chunk(&part),
    }
}

fn message(protocol: Protocol, id: &str, json: &[u8]) -> SharedFrame {
    let text = std::str::from_utf8(json).map(Cow::Borrowed);
    let payload = &*text.unwrap_or_else(|_| String::from_utf8_lossy(json));
    SharedFrame::of(|out| {
        out.reserve(json.len() + id.len() + 48);
        let id = id.into();
        ServerMessage::Next { id, payload }.write(protocol, out);
    })
}

/// How a subscription ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StreamEnd {
    /// There are no more events.
    Complete,
    /// Something went wrong; the response says what.
    Failed(Bytes),
    /// The client has not taken its events.
    Overflow,
    /// The token has expired.
    Expired,
    /// The same, and no response says it yet.
    Refused(Arc<RequestError>),
    /// The credential was withdrawn, and is refused like this now.
    Revoked(Arc<RequestError>),
    /// Another schema or configuration is served.
    Reload,
    /// The process stops.
    Drain,
}

impl StreamEnd {
    /// The errors that an end is told by, under rules for what clients are told: a JSON response; `None` if it went well.
    pub(crate) fn told(&self, rules: Option<&ErrorRewrites>) -> Option<Bytes> {
        let (code, message) = match self {
            StreamEnd::Complete => return None,
            StreamEnd::Failed(response) => return Some(response.clone()),
            StreamEnd::Refused(error) | StreamEnd::Revoked(error) => {
                return Some(error.to_json_by(rules).into());
            }
            StreamEnd::Overflow => (
                codes::SUBSCRIPTION_OVERFLOW,
                "the events of this subscription were not taken in time, and it has ended: subscribe again",
            ),
            StreamEnd::Expired => (codes::TOKEN_EXPIRED, "the token has expired: get a new one"),
            StreamEnd::Reload => (
                codes::SUBSCRIPTION_SCHEMA_RELOAD,
                "another schema or configuration is served: subscribe again",
            ),
            StreamEnd::Drain => (
                codes::SUBSCRIPTION_SHUTDOWN,
                "this process stops, and another one serves: subscribe again",
            ),
        };
        let error = RequestError::graphql(code, message);
        Some(error.to_json_by(rules).into())
    }
}

/// What comes out of a queue.
#[derive(Debug)]
pub(crate) enum StreamStep {
    /// The next event.
    Event(Arc<Event>),
    /// The end; nothing comes behind it.
    End(StreamEnd),
}

/// What became of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueOutcome {
    /// It waits.
    Queued,
    /// It waits, and so many others were dropped.
    Dropped(u64),
    /// There is no room for it, and the subscription ends.
    Overflow,
    /// The subscription has ended.
    Over,
}

/// A queue.
#[derive(Debug)]
pub(crate) struct EventQueue {
    limits: QueueLimits,
    state: Mutex<QueueState>,
    /// How many events went past it ([`direct`](crate::subscribe::direct)).
    passed: AtomicU64,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Dropped since the last one was taken.
    dropped: u64,
    end: Option<StreamEnd>,
    /// Whether it ends without what waits.
    is_cut: bool,
    /// Whether events are looked at between here and their client.
    is_hooked: bool,
    /// When nothing goes past it any more.
    expiry: Option<Instant>,
    reader: Option<Waker>,
}

impl QueueState {
    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.bytes -= event.json.len();
        Some(event)
    }
}

impl EventQueue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        EventQueue {
            limits,
            state: Mutex::default(),
            passed: AtomicU64::new(0),
        }
    }
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether an event may go past it: nothing waits in it, and nothing has ended it.
    pub(crate) fn lets_past(&self, event: &Event) -> bool {
        let state = self.lock();
        state.events.is_empty()
            && state.end.is_none()
            && !state.is_hooked
            && state.expiry.is_none_or(|at| event.arrived < at)
    }
    /// From now on no event goes past it, because all are looked at before they are sent.
    pub(crate) fn hook(&self) {
        self.lock().is_hooked = true;
    }
    /// An event went past it.
    pub(crate) fn pass(&self) {
        self.passed.fetch_add(1, Ordering::Relaxed);
    }
    /// How many events went past it.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
    /// Nothing goes past it from then on.
    pub(crate) fn expire(&self, at: Option<Instant>) {
        self.lock().expiry = at;
    }
    /// Adds an event.
    pub(crate) fn push(&self, event: &Arc<Event>) -> QueueOutcome {
        let mut state = self.lock();
        if state.end.is_some() {
            return QueueOutcome::Over;
        }
        let bytes = event.json.len();
        let is_full = |state: &QueueState| {
            !state.events.is_empty()
                && (state.events.len() >= self.limits.events_max
                    || state.bytes.saturating_add(bytes) > self.limits.bytes_max)
        };
        let mut outcome = QueueOutcome::Queued;
        if is_full(&state) && !self.limits.drops {
            state.end = Some(StreamEnd::Overflow);
            outcome = QueueOutcome::Overflow;
        } else {
            let mut dropped = 0;
            while is_full(&state) && state.pop().is_some() {
                dropped += 1;
            }
            if dropped > 0 {
                state.dropped += dropped;
                outcome = QueueOutcome::Dropped(dropped);
            }
            state.bytes += bytes;
            state.events.push_back(Arc::clone(event));
        }
        wake(state);
        outcome
    }
    /// Nothing comes behind what waits. What was said first counts.
    pub(crate) fn end(&self, end: StreamEnd) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        wake(state);
    }
    /// Ends without what waits.
    pub(crate) fn cut(&self, end: StreamEnd) {
        let mut state = self.lock();
        if !state.events.is_empty() || state.is_hooked {
            state.events.clear();
            (state.bytes, state.dropped) = (0, 0);
            state.end = None;
        }
        state.is_cut |= state.end.is_none();
        state.end.get_or_insert(end);
        wake(state);
    }
    /// How it ends without what waits, and without what was taken and is not sent.
    pub(crate) fn cut_end(&self) -> Option<StreamEnd> {
        let state = self.lock();
        state.end.clone().filter(|_| state.is_cut)
    }
    /// Waits until it ends so.
    pub(crate) fn poll_cut(&self, cx: &mut Context<'_>) -> Poll<StreamEnd> {
        let mut state = self.lock();
        match &state.end {
            Some(end) if state.is_cut => return Poll::Ready(end.clone()),
            _ => {}
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
    /// What comes next.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<StreamStep> {
        let mut state = self.lock();
        if let Some(event) = state.pop() {
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            let event = match dropped {
                0 => event,
                dropped => Arc::new(Event::new(tell_dropped(event.json(), dropped))),
            };
            return Poll::Ready(StreamStep::Event(event));
        }
        if let Some(end) = &state.end {
            return Poll::Ready(StreamStep::End(end.clone()));
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// Wakes the reader without the lock.
fn wake(mut state: MutexGuard<'_, QueueState>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Says in a response how many were dropped before it.
fn tell_dropped(json: &[u8], dropped: u64) -> Bytes {
    let dropped = dropped.to_string().into_bytes();
    add_extensions(json, &[("droppedEvents", dropped)]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Arc<Event> {
        Arc::new(Event::new(text.to_owned().into()))
    }
    fn queue(events_max: usize, bytes_max: usize, drops: bool) -> EventQueue {
        EventQueue::new(QueueLimits {
            events_max,
            bytes_max,
            drops,
        })
    }
    /// What is there, and the end if it is known.
    fn all(queue: &EventQueue) -> (Vec<String>, Option<StreamEnd>) {
        let mut found = Vec::new();
        loop {
            match queue.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return (found, None),
                Poll::Ready(StreamStep::End(end)) => return (found, Some(end)),
                Poll::Ready(StreamStep::Event(event)) => {
                    found.push(String::from_utf8(event.json().to_vec()).unwrap());
                }
            }
        }
    }

    #[test]
    fn a_message_is_written_once_for_all_who_call_the_operation_the_same() {
        let event = event("{}");
        let texts = [
            ("1", Protocol::TransportWs),
            ("1", Protocol::TransportWs),
            ("2", Protocol::TransportWs),
            ("1", Protocol::LegacyWs),
        ]
        .map(|(id, protocol)| event.message(protocol, id));
        let same = |frame: &SharedFrame, text: &str| frame.bytes().ends_with(text.as_bytes());
        assert!(same(&texts[0], r#"{"id":"1","type":"next","payload":{}}"#));
        assert_eq!(texts[0].bytes().as_ptr(), texts[1].bytes().as_ptr());
        assert!(same(&texts[2], r#"{"id":"2","type":"next","payload":{}}"#));
        assert!(same(&texts[3], r#"{"id":"1","type":"data","payload":{}}"#));
    }

    #[test]
    fn a_part_is_written_once_for_all_who_read_it_so() {
        let event = event("{}");
        let part = |media, framing| event.part(media, framing).clone();
        let plain = part(StreamMedia::EventStream, PartFraming::Plain);
        assert_eq!(plain, "event: next\ndata: {}\n\n");
        let chunked = part(StreamMedia::EventStream, PartFraming::Chunked);
        assert_eq!(chunked, "16\r\nevent: next\ndata: {}\n\n\r\n");
        let again = part(StreamMedia::EventStream, PartFraming::Chunked);
        assert_eq!(chunked.as_ptr(), again.as_ptr());
        let multipart = part(StreamMedia::Multipart, PartFraming::Plain);
        assert!(multipart.windows(14).any(|w| w == b"{\"payload\":{}}"));
    }

    #[test]
    fn what_waits_is_taken_before_the_end_and_in_order() {
        let queue = queue(9, 99, false);
        assert_eq!(queue.push(&event("a")), QueueOutcome::Queued);
        assert_eq!(queue.push(&event("b")), QueueOutcome::Queued);
        queue.end(StreamEnd::Reload);
        queue.end(StreamEnd::Complete);
        assert_eq!(queue.push(&event("c")), QueueOutcome::Over);
        let wanted = (vec!["a".into(), "b".into()], Some(StreamEnd::Reload));
        assert_eq!(all(&queue), wanted);
    }

    #[test]
    fn nothing_that_waits_is_taken_behind_a_cut() {
        let queue = queue(9, 99, false);
        queue.push(&event("a"));
        queue.end(StreamEnd::Complete);
        queue.cut(StreamEnd::Expired);
        assert_eq!(all(&queue), (vec![], Some(StreamEnd::Expired)));
    }

    /// What was taken to be looked at counts as what waits: whoever is cut off gets none of it.
    #[test]
    fn a_cut_is_known_to_whoever_has_taken_an_event_to_look_at_it() {
        let queue = queue(9, 99, false);
        queue.hook();
        assert!(
            !queue.lets_past(&event("a")),
            "nothing passes whoever looks"
        );
        queue.push(&event("a"));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(
            queue.poll(&mut cx),
            Poll::Ready(StreamStep::Event(_))
        ));
        queue.end(StreamEnd::Complete);
        assert_eq!(queue.cut_end(), None);
        assert!(queue.poll_cut(&mut cx).is_pending());
        queue.cut(StreamEnd::Expired);
        assert_eq!(queue.cut_end(), Some(StreamEnd::Expired));
        assert!(queue.poll_cut(&mut cx).is_ready());
    }

    #[test]
    fn beyond_a_limit_the_subscription_ends_and_says_so() {
        for (events, bytes) in [(2, 99), (9, 2)] {
            let queue = queue(events, bytes, false);
            assert_eq!(queue.push(&event("a")), QueueOutcome::Queued);
            assert_eq!(queue.push(&event("b")), QueueOutcome::Queued);
            assert_eq!(queue.push(&event("c")), QueueOutcome::Overflow);
            let wanted = (vec!["a".into(), "b".into()], Some(StreamEnd::Overflow));
            assert_eq!(all(&queue), wanted);
        }
    }

    #[test]
    fn what_is_dropped_is_told_with_the_next_event() {
        let queue = queue(2, 99, true);
        for text in [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#, r#"{"a":4}"#] {
            queue.push(&event(text));
        }
        let told = r#"{"a":3,"extensions":{"droppedEvents":2}}"#;
        assert_eq!(all(&queue).0, [told, r#"{"a":4}"#]);
    }

    #[test]
    fn an_event_larger_than_the_limit_waits_alone() {
        let queue = queue(9, 2, false);
        assert_eq!(queue.push(&event("large")), QueueOutcome::Queued);
        assert_eq!(all(&queue).0, ["large"]);
    }
}
