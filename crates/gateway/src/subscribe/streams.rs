//! Streams of server-sent events that carry the answers of many operations: who has one, which operations it has, and its
//! body. How clients ask for all of it is [`super::stream_requests`].
//!
//! A stream is read by one worker; its operations come by requests of their own, to any worker. What is known of the stream
//! is therefore shared, under one lock that nobody holds while waiting.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use ogive_base::FastMap;
use ogive_stream::sse;
use tokio::time::{Instant, Sleep, sleep};

use crate::subscribe::{
    format::told,
    owner::Owner,
    queue::{StreamEnd, StreamStep},
    sources::Subscriber,
};

/// All streams of the process, by their tokens.
#[derive(Debug, Default)]
pub(crate) struct EventStreams(Mutex<FastMap<Box<str>, Arc<EventStream>>>);

/// One stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    owner: Owner,
    is_open: AtomicBool,
    state: Mutex<StreamState>,
}

#[derive(Debug, Default)]
struct StreamState {
    operations: Vec<StreamOperation>,
    /// The operation that is looked at first, so that each has its turn.
    first: usize,
    reader: Option<Waker>,
    /// Nothing is answered any more.
    is_over: bool,
}

#[derive(Debug)]
struct StreamOperation {
    id: Box<str>,
    answer: StreamAnswer,
}

/// What is known of an operation's answer.
#[derive(Debug)]
pub(crate) enum StreamAnswer {
    /// Nothing yet.
    Awaited,
    /// All of it.
    Whole(Bytes),
    /// It comes in events.
    Events(Box<Subscriber>),
}

/// Why an operation has no place in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlaceRefusal {
    /// There is one of this name.
    Duplicate,
    /// There are as many as there may be.
    TooMany,
    /// The stream is over.
    Over,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EventStreams {
    /// Reserves a stream; says whether there was room.
    pub(crate) fn reserve(&self, token: &str, owner: Owner, streams_max: usize) -> bool {
        let mut streams = lock(&self.0);
        let has_room = streams.len() < streams_max;
        if has_room {
            let stream = EventStream {
                owner,
                is_open: AtomicBool::new(false),
                state: Mutex::default(),
            };
            streams.insert(token.into(), Arc::new(stream));
        }
        has_room
    }
    /// The stream of a token.
    pub(crate) fn get(&self, token: &str) -> Option<Arc<EventStream>> {
        lock(&self.0).get(token).map(Arc::clone)
    }
    /// Forgets a stream that nobody has opened.
    pub(crate) fn expire(&self, token: &str) {
        let mut streams = lock(&self.0);
        if streams
            .get(token)
            .is_some_and(|stream| !stream.is_open.load(Ordering::Acquire))
        {
            let stream = streams.remove(token);
            drop(streams);
            if let Some(stream) = stream {
                stream.end();
            }
        }
    }
    /// Forgets a stream.
    fn close(&self, token: &str) {
        let stream = lock(&self.0).remove(token);
        if let Some(stream) = stream {
            stream.end();
        }
    }
    /// Opens a stream; `None` if it is open already. Only under the lock of all: it may be expiring.
    pub(crate) fn open(&self, token: &str) -> Option<Arc<EventStream>> {
        let streams = lock(&self.0);
        let stream = streams.get(token)?;
        (!stream.is_open.swap(true, Ordering::AcqRel)).then(|| Arc::clone(stream))
    }
}

impl EventStream {
    /// Whether it belongs to a caller.
    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        self.owner == *owner
    }
    /// Whose it is.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }
    /// Reserves a place for an operation.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &str,
        operations_max: usize,
    ) -> Result<OperationPlace, PlaceRefusal> {
        let mut state = lock(&self.state);
        if state.is_over {
            return Err(PlaceRefusal::Over);
        }
        if state
            .operations
            .iter()
            .any(|operation| *operation.id == *id)
        {
            return Err(PlaceRefusal::Duplicate);
        }
        if state.operations.len() >= operations_max {
            return Err(PlaceRefusal::TooMany);
        }
        state.operations.push(StreamOperation {
            id: id.into(),
            answer: StreamAnswer::Awaited,
        });
        Ok(OperationPlace {
            stream: Arc::downgrade(self),
            id: id.into(),
            is_awaited: true,
        })
    }
    /// Stops an operation, without a word.
    pub(crate) fn stop(&self, id: &str) {
        let mut state = lock(&self.state);
        let at = state
            .operations
            .iter()
            .position(|operation| *operation.id == *id);
        let stopped = at.map(|at| state.operations.remove(at));
        drop(state);
        drop(stopped);
    }
    fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let operations = std::mem::take(&mut state.operations);
        drop(state);
        drop(operations);
    }
}

/// The place of an operation whose answer is awaited. Dropping it gives the place back.
pub(crate) struct OperationPlace {
    stream: Weak<EventStream>,
    id: Box<str>,
    is_awaited: bool,
}

impl OperationPlace {
    /// Says what the answer is. If the operation was stopped meanwhile, nobody wants it.
    pub(crate) fn answer(mut self, answer: StreamAnswer) {
        self.is_awaited = false;
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        let mut state = lock(&stream.state);
        let mut operations = state.operations.iter_mut();
        let awaited = operations.find(|operation| {
            operation.id == self.id && matches!(operation.answer, StreamAnswer::Awaited)
        });
        if let Some(operation) = awaited {
            operation.answer = answer;
            let reader = state.reader.take();
            drop(state);
            if let Some(reader) = reader {
                reader.wake();
            }
        }
    }
}

impl Drop for OperationPlace {
    fn drop(&mut self) {
        if self.is_awaited
            && let Some(stream) = self.stream.upgrade()
        {
            stream.stop(&self.id);
        }
    }
}

/// The body of a stream.
pub(crate) struct StreamBody {
    stream: Arc<EventStream>,
    token: Box<str>,
    streams: Arc<EventStreams>,
    heartbeat: Option<(Duration, Pin<Box<Sleep>>)>,
    /// The process stops, and it is this stream's turn to end.
    leaving: Pin<Box<dyn Future<Output = ()>>>,
    is_begun: bool,
    is_over: bool,
}

impl StreamBody {
    pub(crate) fn new(
        stream: Arc<EventStream>,
        token: &str,
        streams: Arc<EventStreams>,
        heartbeat: Option<Duration>,
        leaving: impl Future<Output = ()> + 'static,
    ) -> Self {
        StreamBody {
            stream,
            token: token.into(),
            streams,
            heartbeat: heartbeat.map(|every| (every, Box::pin(sleep(every)))),
            leaving: Box::pin(leaving),
            is_begun: false,
            is_over: false,
        }
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        self.streams.close(&self.token);
    }
}

/// What comes next in a stream.
enum NextStep {
    Send(Vec<u8>),
    /// The stream ends without a word, so that the client comes back.
    End,
}

impl StreamState {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<NextStep> {
        let n = self.operations.len();
        for nth in 0..n {
            let at = (self.first + nth) % n;
            let operation = &mut self.operations[at];
            let mut out = Vec::new();
            let id = Some(&*operation.id);
            let is_last = match &mut operation.answer {
                StreamAnswer::Awaited => continue,
                StreamAnswer::Whole(response) => {
                    sse::write(&mut out, "next", id, response);
                    true
                }
                StreamAnswer::Events(subscriber) => match subscriber.poll_step(cx) {
                    Poll::Pending => continue,
                    Poll::Ready(StreamStep::Event(event)) => {
                        sse::write(&mut out, "next", id, event.json());
                        false
                    }
                    Poll::Ready(StreamStep::End(StreamEnd::Reload | StreamEnd::Drain)) => {
                        return Poll::Ready(NextStep::End);
                    }
                    Poll::Ready(StreamStep::End(end)) => {
                        if let Some(response) = told(&end) {
                            sse::write(&mut out, "next", id, &response);
                        }
                        true
                    }
                },
            };
            self.first = at + 1;
            if is_last {
                sse::write(&mut out, "complete", id, b"");
                self.operations.remove(at);
            }
            return Poll::Ready(NextStep::Send(out));
        }
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Stream for StreamBody {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut this.is_begun, true) {
            // So that the client has the head at once.
            return Poll::Ready(Some(Ok(Bytes::from_static(sse::HEARTBEAT))));
        }
        let next = lock(&this.stream.state).poll(cx);
        match next {
            Poll::Ready(NextStep::Send(bytes)) => {
                if let Some((every, due)) = &mut this.heartbeat {
                    due.as_mut().reset(Instant::now() + *every);
                }
                return Poll::Ready(Some(Ok(bytes.into())));
            }
            Poll::Ready(NextStep::End) => {
                this.is_over = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        if this.leaving.as_mut().poll(cx).is_ready() {
            this.is_over = true;
            return Poll::Ready(None);
        }
        if let Some((every, due)) = &mut this.heartbeat
            && due.as_mut().poll(cx).is_ready()
        {
            due.as_mut().reset(Instant::now() + *every);
            cx.waker().wake_by_ref();
            return Poll::Ready(Some(Ok(Bytes::from_static(sse::HEARTBEAT))));
        }
        Poll::Pending
    }
}
