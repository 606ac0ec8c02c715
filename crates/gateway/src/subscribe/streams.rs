//! Streams of server-sent events that carry the answers of many operations: who has one, which operations it has, and its
//! body. How clients ask for all of it is [`super::stream_requests`].
//!
//! A stream is read by one worker; its operations come by requests of their own, to any worker. What is known of the stream
//! is therefore shared, under one lock that nobody holds while waiting.

use std::{
    collections::BTreeMap,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use ogive_base::{FastMap, Reservation, ShareLimits, Shortage};
use ogive_edge::{
    client_shares::{ClientShare, ClientShares},
    error::internal,
};
use ogive_stream::{session::ID_BYTES_MAX, sse};
use tokio::{
    sync::{Notify, mpsc::Receiver},
    time::{Instant, Sleep, sleep},
};

use crate::subscribe::{
    owner::Owner,
    queue::{StreamEnd, StreamStep},
    sources::{Sources, Subscriber},
};

/// All streams of the process, by their tokens.
#[derive(Debug, Default)]
pub(crate) struct EventStreams {
    /// How many there are, by client.
    places: Arc<ClientShares>,
    table: Mutex<StreamTable>,
}

#[derive(Debug, Default)]
struct StreamTable {
    streams: FastMap<Box<str>, PlacedStream>,
    /// The tokens of those that nobody has opened, by client, in the order in which they were reserved.
    reserved: BTreeMap<Reserved, Box<str>>,
    /// How many were reserved.
    reservations: u64,
}

/// A stream and its place among those of its client.
#[derive(Debug)]
struct PlacedStream {
    stream: Arc<EventStream>,
    place: ClientShare,
}

/// Who has reserved a stream, and which number that had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Reserved {
    client: Option<IpAddr>,
    number: u64,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    reserved: Reserved,
    owner: Owner,
    /// Told when it is over.
    left: Notify,
    state: Mutex<StreamState>,
}

#[derive(Debug, Default)]
struct StreamState {
    operations: Vec<StreamOperation>,
    /// How many places were reserved.
    places: u64,
    /// The operation that is looked at first, so that each has its turn.
    first: usize,
    reader: Option<Waker>,
    /// Nothing is answered any more.
    is_over: bool,
    /// It ends, so that its client comes back, once what is being answered has its answer.
    is_leaving: bool,
}

#[derive(Debug)]
struct StreamOperation {
    /// Of its place: another operation may have the same id later.
    number: u64,
    id: Box<str>,
    answer: StreamAnswer,
}

/// What is known of an operation's answer.
#[derive(Debug)]
pub(crate) enum StreamAnswer {
    /// Nothing yet.
    Awaited,
    /// All of it.
    Whole(CountedBytes),
    /// It comes in events.
    Events(Box<Subscriber>),
    /// It comes in parts; none is said to be the last.
    Parts(Receiver<Option<std::io::Result<Bytes>>>),
}

/// Bytes that count as memory of the process for as long as they are there.
#[derive(Debug)]
pub(crate) struct CountedBytes {
    bytes: Vec<u8>,
    memory: Reservation,
}

impl CountedBytes {
    /// Of bytes that are there already: when there are too many, nothing new is begun.
    pub(crate) fn new(bytes: Vec<u8>, memory: Reservation) -> Self {
        memory.count(bytes.len());
        CountedBytes { bytes, memory }
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
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
    /// Its name is too long.
    LongId,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EventStreams {
    /// Reserves a stream. If its client has as many as it may, or all have, it takes the place of the one that this client has
    /// reserved first and has not opened: nobody loses one because of others.
    pub(crate) fn reserve(
        &self,
        token: &str,
        owner: Owner,
        client: Option<IpAddr>,
        limits: ShareLimits,
    ) -> Result<Arc<EventStream>, Shortage> {
        let mut table = lock(&self.table);
        let (place, replaced) = match self.places.take(client, 1, limits) {
            Ok(place) => (place, None),
            Err(shortage) => {
                let PlacedStream { stream, place } =
                    table.take_oldest_reserved(client).ok_or(shortage)?;
                (place, Some(stream))
            }
        };
        table.reservations += 1;
        let stream = Arc::new(EventStream {
            reserved: Reserved {
                client,
                number: table.reservations,
            },
            owner,
            left: Notify::new(),
            state: Mutex::default(),
        });
        table.reserved.insert(stream.reserved, token.into());
        let placed = PlacedStream {
            stream: Arc::clone(&stream),
            place,
        };
        table.streams.insert(token.into(), placed);
        drop(table);
        if let Some(replaced) = replaced {
            replaced.end();
        }
        Ok(stream)
    }
    /// The stream of a token.
    pub(crate) fn get(&self, token: &str) -> Option<Arc<EventStream>> {
        let table = lock(&self.table);
        let placed = table.streams.get(token)?;
        Some(Arc::clone(&placed.stream))
    }
    /// Forgets a stream that nobody has opened.
    pub(crate) fn expire(&self, token: &str) {
        let mut table = lock(&self.table);
        let Some(placed) = table.streams.get(token) else {
            return;
        };
        let reserved = placed.stream.reserved;
        if table.reserved.remove(&reserved).is_some() {
            let placed = table.streams.remove(token);
            drop(table);
            if let Some(placed) = placed {
                placed.stream.end();
            }
        }
    }
    /// Forgets a stream that was opened.
    fn close(&self, token: &str) {
        let placed = lock(&self.table).streams.remove(token);
        if let Some(placed) = placed {
            placed.stream.end();
        }
    }
    /// Opens a stream; `None` if it is open already. Only under the lock of all: it may be expiring.
    pub(crate) fn open(&self, token: &str) -> Option<Arc<EventStream>> {
        let mut table = lock(&self.table);
        let stream = Arc::clone(&table.streams.get(token)?.stream);
        table.reserved.remove(&stream.reserved)?;
        Some(stream)
    }
}

impl StreamTable {
    /// Takes out the stream that a client has reserved first of those that it has not opened.
    fn take_oldest_reserved(&mut self, client: Option<IpAddr>) -> Option<PlacedStream> {
        let of_client = |number| Reserved { client, number };
        let mut own = self.reserved.range(of_client(0)..=of_client(u64::MAX));
        let oldest = *own.next()?.0;
        let token = self.reserved.remove(&oldest)?;
        self.streams.remove(&token)
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
        if id.len() > ID_BYTES_MAX {
            return Err(PlaceRefusal::LongId);
        }
        let mut state = lock(&self.state);
        if state.is_over || state.is_leaving {
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
        state.places += 1;
        let number = state.places;
        state.operations.push(StreamOperation {
            number,
            id: id.into(),
            answer: StreamAnswer::Awaited,
        });
        Ok(OperationPlace {
            stream: Arc::downgrade(self),
            number,
            is_awaited: true,
        })
    }
    /// Stops an operation, without a word.
    pub(crate) fn stop(&self, id: &str) {
        self.remove(|operation| *operation.id == *id);
    }
    fn remove(&self, is_it: impl Fn(&StreamOperation) -> bool) {
        let mut state = lock(&self.state);
        let at = state.operations.iter().position(is_it);
        let stopped = at.map(|at| state.operations.remove(at));
        let reader = if state.is_leaving {
            state.reader.take()
        } else {
            None
        };
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        drop(stopped);
    }
    /// Waits until it is over.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }
    fn end(&self) {
        self.left.notify_one();
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
    number: u64,
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
        let awaited = operations.find(|operation| operation.number == self.number);
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
            stream.remove(|operation| operation.number == self.number);
        }
    }
}

/// The body of a stream.
pub(crate) struct StreamBody {
    stream: Arc<EventStream>,
    token: Box<str>,
    streams: Arc<EventStreams>,
    /// Know what clients are told of errors.
    sources: Arc<Sources>,
    heartbeat: Option<(Duration, Pin<Box<Sleep>>)>,
    /// The process stops, and it is this stream's turn to end.
    leaving: Pin<Box<dyn Future<Output = ()>>>,
    is_leaving: bool,
    is_begun: bool,
    is_over: bool,
}

impl StreamBody {
    pub(crate) fn new(
        stream: Arc<EventStream>,
        token: &str,
        (streams, sources): (Arc<EventStreams>, Arc<Sources>),
        heartbeat: Option<Duration>,
        leaving: impl Future<Output = ()> + 'static,
    ) -> Self {
        StreamBody {
            stream,
            token: token.into(),
            streams,
            sources,
            heartbeat: heartbeat.map(|every| (every, Box::pin(sleep(every)))),
            leaving: Box::pin(leaving),
            is_leaving: false,
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
    Send(Bytes),
    /// The stream ends without a word, so that the client comes back.
    End,
}

impl StreamState {
    fn poll(&mut self, sources: &Sources, cx: &mut Context<'_>) -> Poll<NextStep> {
        let n = self.operations.len();
        for nth in 0..n {
            let at = (self.first + nth) % n;
            let operation = &mut self.operations[at];
            let mut out = Vec::new();
            let id = Some(&*operation.id);
            let is_last = match &mut operation.answer {
                StreamAnswer::Awaited => continue,
                StreamAnswer::Whole(response) => {
                    sse::write(&mut out, "next", id, response.as_ref());
                    sse::write(&mut out, "complete", id, b"");
                    // Until it is written.
                    let memory = response.memory.beside();
                    let out = Bytes::from_owner(CountedBytes::new(out, memory));
                    self.first = at + 1;
                    self.operations.remove(at);
                    return Poll::Ready(NextStep::Send(out));
                }
                StreamAnswer::Events(subscriber) => match subscriber.poll_step(cx) {
                    Poll::Pending => continue,
                    Poll::Ready(StreamStep::Event(event)) => {
                        sse::write(&mut out, "next", id, event.json());
                        false
                    }
                    Poll::Ready(StreamStep::End(StreamEnd::Reload | StreamEnd::Drain)) => {
                        self.operations.remove(at);
                        self.is_leaving = true;
                        return self.poll_end(cx);
                    }
                    Poll::Ready(StreamStep::End(end)) => {
                        if let Some(response) = subscriber.told(&end) {
                            sse::write(&mut out, "next", id, &response);
                        }
                        true
                    }
                },
                StreamAnswer::Parts(parts) => match parts.poll_recv(cx) {
                    Poll::Pending => continue,
                    Poll::Ready(Some(Some(Ok(part)))) => {
                        sse::write(&mut out, "next", id, &part);
                        false
                    }
                    // Whoever takes what came for the whole answer would be wrong.
                    Poll::Ready(Some(Some(Err(_)))) => {
                        let told = sources.told_error(&internal());
                        sse::write(&mut out, "next", id, &told);
                        true
                    }
                    Poll::Ready(Some(None)) => true,
                    // Its worker has ended with the process: the client comes back.
                    Poll::Ready(None) => return Poll::Ready(NextStep::End),
                },
            };
            self.first = at + 1;
            if is_last {
                sse::write(&mut out, "complete", id, b"");
                self.operations.remove(at);
            }
            return Poll::Ready(NextStep::Send(out.into()));
        }
        self.poll_end(cx)
    }

    /// Ends if it is leaving and nothing is being answered.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<NextStep> {
        let is_stream = |one: &StreamOperation| matches!(one.answer, StreamAnswer::Events(_));
        if self.is_leaving && self.operations.iter().all(is_stream) {
            return Poll::Ready(NextStep::End);
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
        let next = lock(&this.stream.state).poll(&this.sources, cx);
        match next {
            Poll::Ready(NextStep::Send(bytes)) => {
                if let Some((every, due)) = &mut this.heartbeat {
                    due.as_mut().reset(Instant::now() + *every);
                }
                return Poll::Ready(Some(Ok(bytes)));
            }
            Poll::Ready(NextStep::End) => {
                this.is_over = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        if !this.is_leaving && this.leaving.as_mut().poll(cx).is_ready() {
            this.is_leaving = true;
            let mut state = lock(&this.stream.state);
            state.is_leaving = true;
            if state.poll_end(cx).is_ready() {
                this.is_over = true;
                return Poll::Ready(None);
            }
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

#[cfg(test)]
mod tests {
    use ogive_base::MemoryBudget;
    use tokio::sync::mpsc::channel;

    use super::*;

    fn stream() -> Arc<EventStream> {
        let streams = EventStreams::default();
        let limits = ShareLimits { all: 1, each: 1 };
        let reserved = streams.reserve("t", Owner::default(), None, limits);
        reserved.unwrap_or_else(|shortage| panic!("{shortage:?}"))
    }
    /// What is sent next; `None` if nothing is.
    fn next(stream: &EventStream) -> Option<NextStep> {
        let mut cx = Context::from_waker(Waker::noop());
        match lock(&stream.state).poll(&Sources::default(), &mut cx) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        }
    }
    fn text(stream: &EventStream) -> String {
        match next(stream) {
            Some(NextStep::Send(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            Some(NextStep::End) => "the end".to_owned(),
            None => String::new(),
        }
    }
    fn place(stream: &Arc<EventStream>) -> OperationPlace {
        stream.begin("x", 1).unwrap_or_else(|e| panic!("{e:?}"))
    }

    /// One client that reserves all the time takes nobody else's place, and opens what it has reserved last.
    #[test]
    fn who_reserves_without_end_replaces_its_own_streams_only() {
        let streams = EventStreams::default();
        let limits = ShareLimits { all: 10, each: 6 };
        let reserve = |client: u8, token: &str| {
            let client = Some(IpAddr::from([10, 0, 0, client]));
            let reserved = streams.reserve(token, Owner::default(), client, limits);
            reserved.map(|stream| stream.reserved.number)
        };
        reserve(2, "other").unwrap();
        for number in 0..1_000 {
            reserve(1, &format!("mine{number}")).unwrap();
        }
        assert_eq!(streams.places.taken(), 7);
        assert!(streams.open("other").is_some());
        assert!(streams.open("mine993").is_none());
        for number in 994..1_000 {
            assert!(streams.open(&format!("mine{number}")).is_some());
        }
        assert_eq!(reserve(1, "more"), Err(Shortage::Own));
        for number in 0..3 {
            reserve(3, &number.to_string()).unwrap();
        }
        // All places are taken, and whoever has reserved none there gets none.
        assert_eq!(reserve(4, "late"), Err(Shortage::All));
        reserve(3, "again").unwrap();
        assert!(streams.open("0").is_none() && streams.open("1").is_some());
        streams.close("mine999");
        assert!(reserve(4, "late").is_ok());
    }

    #[test]
    fn an_answer_in_parts_is_complete_only_if_that_is_said() {
        for is_said in [true, false] {
            let stream = stream();
            let (parts, receiver) = channel(2);
            place(&stream).answer(StreamAnswer::Parts(receiver));
            assert_eq!(text(&stream), "");
            parts.try_send(Some(Ok("{}".into()))).unwrap();
            assert!(text(&stream).starts_with("event: next\n"));
            if is_said {
                parts.try_send(None).unwrap();
            }
            drop(parts);
            let last = text(&stream);
            assert_eq!(last.starts_with("event: complete\n"), is_said, "{last}");
            assert_eq!(last == "the end", !is_said, "{last}");
        }
    }

    #[test]
    fn an_answer_that_comes_late_is_not_that_of_another_operation_of_the_same_name() {
        let stream = stream();
        let budget = Arc::new(MemoryBudget::default());
        let whole = |json: &str| {
            let memory = Reservation::new(&budget);
            StreamAnswer::Whole(CountedBytes::new(json.into(), memory))
        };
        let late = place(&stream);
        stream.stop("x");
        let second = place(&stream);
        late.answer(whole("1"));
        assert_eq!(text(&stream), "");
        second.answer(whole("2"));
        assert!(text(&stream).contains("\"payload\":2"));
        let late = place(&stream);
        stream.stop("x");
        let second = place(&stream);
        drop(late);
        second.answer(whole("3"));
        assert!(text(&stream).contains("\"payload\":3"));
    }
}
