//! An HTTP/1.1 connection to a subgraph, written to and read by whoever asks.
//!
//! No task and no channel: a request is written with one system call, an answer that came in one piece is read with one,
//! and a connection nobody uses is a socket and a few words. Dropping the future of an exchange drops the connection.
//!
//! - [`framing`] says where answers begin and end, without reading anything.
//! - [`request`] writes heads of requests.
//! - [`Connection`] moves the bytes, and keeps reading while it writes: a subgraph may answer a request that it does not
//!   want to read to its end.
//!
//! Every thread has some memory in which heads are written, and into which what comes first of an answer is read, so an
//! answer's buffer is exactly as large as what came, and idle connections hold none. Later bytes of a larger answer are
//! read into the buffer that becomes its body.

pub(crate) mod framing;
pub(crate) mod request;

use std::{
    cell::RefCell,
    fmt,
    future::poll_fn,
    io::{self, ErrorKind, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::{Stream, age::Age, growth};
use framing::{Body, Framing, HEAD_MAX, Head, HeadReader, HeaderScope, Malformed};

/// Request bodies up to this many bytes are copied behind their heads; larger ones are written beside them.
const COALESCED_MAX: usize = 8 << 10;
/// Most bytes of an answer that are read at once at first.
const FIRST_READ: usize = 64 << 10;
/// Bytes that later reads have room for if more may come, and most.
const READ: (usize, usize) = (8 << 10, 256 << 10);
/// The announced length of an answer is only a hint from outside: never reserve more than this ahead of the bytes
/// themselves.
const RESERVE_MAX: usize = 16 << 20;
/// Room for heads of requests that is kept.
const HEAD_KEPT: usize = 16 << 10;

thread_local! {
    /// Where heads of requests are written. Like the other it is used for a moment, within one poll.
    static HEAD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What answers are read into at first.
    static READ_FIRST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection that carries one exchange after the other.
pub(crate) struct Connection {
    stream: Stream,
    /// What came of the answer.
    buffer: BytesMut,
    /// What could not be written at once.
    rest: Option<Box<Rest>>,
    /// Why the rest cannot be written.
    unwritable: Option<io::Error>,
    body: Option<Body>,
    /// Why a body that is taken as it comes does not go on.
    malformed: Option<Malformed>,
    /// Whether nothing was said so far that forbids another request.
    keep_alive: bool,
    pub(crate) age: Age,
}

/// What is still to be written, and flushed.
struct Rest {
    head: Bytes,
    body: Bytes,
}

/// A request.
pub(crate) struct OutgoingRequest<'a> {
    /// Writes its head.
    pub(crate) head: &'a (dyn Fn(&mut Vec<u8>) + Sync),
    pub(crate) body: &'a Bytes,
    /// Whether it is `HEAD`.
    pub(crate) is_head: bool,
    /// Headers of the answer.
    pub(crate) wanted: HeaderScope,
}

/// Why there is no head of an answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The connection ended before the first byte of an answer. `unsent`: nothing of the request was written.
    Closed { unsent: bool, why: String },
    /// It ended within the head.
    Cut(String),
    /// Something else happened to it.
    Broken(io::Error),
    /// The answer is not HTTP.
    Malformed(Malformed),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Closed { why, .. } | Unanswered::Cut(why) => f.write_str(why),
            Unanswered::Broken(error) => error.fmt(f),
            Unanswered::Malformed(why) => why.fmt(f),
        }
    }
}

/// Why a body ended too early, for operators.
pub(crate) type Cut = String;

const ENDED: &str = "the subgraph closed the connection";

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Connection {
            stream,
            buffer: BytesMut::new(),
            rest: None,
            unwritable: None,
            body: None,
            malformed: None,
            keep_alive: true,
            age: Age::new(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn ask(&mut self, asked: OutgoingRequest<'_>) -> Result<Head, Unanswered> {
        if let Err(error) =
            poll_fn(|cx| Poll::Ready(HEAD.with_borrow_mut(|head| self.begin(cx, head, &asked))))
                .await
        {
            return Err(if is_closed(&error) {
                Unanswered::Closed {
                    // TLS may have written a part of what it was given.
                    unsent: !self.stream.is_tls(),
                    why: error.to_string(),
                }
            } else {
                Unanswered::Broken(error)
            });
        }
        let mut reader = HeadReader::new(asked.wanted, asked.is_head);
        let mut any = false;
        loop {
            let came = self.fill(READ.0, HEAD_MAX).await;
            let why = match came {
                Ok(0) => ENDED.to_owned(),
                Ok(_) => {
                    any = true;
                    match reader.read(&mut self.buffer) {
                        Ok(None) => continue,
                        Ok(Some(head)) => {
                            self.keep_alive = head.keep_alive;
                            self.body = Some(Body::new(head.framing));
                            return Ok(head);
                        }
                        Err(malformed) => return Err(Unanswered::Malformed(malformed)),
                    }
                }
                Err(error) if is_closed(&error) => error.to_string(),
                Err(error) => return Err(Unanswered::Broken(error)),
            };
            let why = match self.unwritable.take() {
                Some(error) => format!("{why}; writing: {error}"),
                None => why,
            };
            return Err(if any {
                Unanswered::Cut(format!("{why} in the middle of a head"))
            } else {
                Unanswered::Closed { unsent: false, why }
            });
        }
    }

    /// Looks at what came of the body; says whether it is whole.
    pub(crate) fn look(&mut self) -> Result<bool, Cut> {
        let body = self.body.get_or_insert_with(none);
        body.read(&mut self.buffer).map_err(|why| why.to_string())
    }
    /// Waits for more of the body, of which nobody wants more than `most` bytes; says whether there may be more still.
    pub(crate) async fn more(&mut self, most: usize) -> Result<bool, Cut> {
        let body = self.body.get_or_insert_with(none);
        let may_end = body.may_end();
        let left = body.announced().saturating_sub(body.len() as u64);
        // One byte more than is missing: a read that does not fill its room need not be tried again.
        let beyond = if body.is_sized() { 1 } else { READ.0 };
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        // Unless it said its length it may have all that is wanted, and what shows that it has more.
        let most = if body.is_sized() {
            body.len().saturating_add(left).saturating_add(1)
        } else {
            most.saturating_add(READ.1)
        };
        match self.fill(left.saturating_add(beyond), most).await {
            Ok(0) if may_end => Ok(false),
            Ok(0) => Err(ENDED.to_owned()),
            Ok(_) => Ok(true),
            Err(error) => Err(error.to_string()),
        }
    }
    /// The next bytes of the body, for whoever takes them as they come; `None` at its end.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Cut>> {
        loop {
            if let Some(why) = &self.malformed {
                return Poll::Ready(Err(why.to_string()));
            }
            let body = self.body.get_or_insert_with(none);
            let whole = match body.read(&mut self.buffer) {
                Ok(whole) => whole,
                Err(why) => {
                    // What came before it is good.
                    self.malformed = Some(why);
                    false
                }
            };
            let (passed, may_end) = (body.pass(), body.may_end());
            if passed > 0 {
                let piece = self.buffer.split_to(passed).freeze();
                if self.buffer.is_empty() {
                    // No room is kept while nothing comes.
                    self.buffer = BytesMut::new();
                }
                return Poll::Ready(Ok(Some(piece)));
            }
            if whole {
                return Poll::Ready(Ok(None));
            }
            if self.malformed.is_some() {
                continue;
            }
            match ready!(self.poll_fill(cx, READ.0, READ.1)) {
                Ok(0) if may_end => return Poll::Ready(Ok(None)),
                Ok(0) => return Poll::Ready(Err(ENDED.to_owned())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(error.to_string())),
            }
        }
    }
    /// Bytes of the body so far.
    pub(crate) fn came(&self) -> usize {
        self.body.as_ref().map_or(0, Body::len)
    }
    /// Those bytes; at any time the first of the body.
    pub(crate) fn so_far(&self) -> &[u8] {
        self.buffer.get(..self.came()).unwrap_or_default()
    }
    /// How many it will have at least.
    pub(crate) fn announced(&self) -> u64 {
        self.body.as_ref().map_or(0, Body::announced)
    }
    /// The whole body; ends the exchange.
    pub(crate) fn take(&mut self) -> Bytes {
        let (body, clean) = self.body.take().unwrap_or_else(none).take(&mut self.buffer);
        self.keep_alive &= clean;
        body
    }

    /// Whether another request may be sent when an exchange has ended: the request was written to its end, so was the
    /// answer, nobody wants to close, and nothing followed.
    pub(crate) fn is_reusable(&self) -> bool {
        let written = self.rest.is_none() && self.unwritable.is_none();
        self.keep_alive && written && self.body.is_none() && self.buffer.is_empty()
    }
    /// Whether the other side has not closed it, as far as the reactor knows, nor said anything.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.stream.is_quiet()
    }
    /// The same as far as anybody knows; for requests that are sent once.
    pub(crate) async fn is_open(&mut self) -> bool {
        if self.stream.is_silent() {
            return true;
        }
        if !self.stream.is_tls() {
            return false;
        }
        // Perhaps only new keys: let the reactor hear of them, and TLS take them in.
        tokio::task::yield_now().await;
        self.stream.is_quiet() && self.stream.is_silent()
    }

    /// Writes what can be written at once, and keeps the rest.
    fn begin(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Vec<u8>,
        asked: &OutgoingRequest<'_>,
    ) -> io::Result<()> {
        head.clear();
        head.shrink_to(HEAD_KEPT);
        (asked.head)(head);
        let mut beside: &[u8] = asked.body;
        if beside.len() <= COALESCED_MAX {
            head.extend_from_slice(beside);
            beside = &[];
        }
        let written = write(&mut self.stream, cx, head, beside);
        let count = match written {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        let rest = Rest {
            head: Bytes::copy_from_slice(&head[count.min(head.len())..]),
            body: if beside.is_empty() {
                Bytes::new()
            } else {
                asked.body.slice(count.saturating_sub(head.len())..)
            },
        };
        // A plain socket has nothing to flush.
        if !rest.is_empty() || self.stream.is_tls() {
            self.rest = Some(Box::new(rest));
        }
        Ok(())
    }

    /// Writes more of the rest. What fails here is no end yet: the answer may have come before.
    fn poll_rest(&mut self, cx: &mut Context<'_>) {
        let Some(rest) = &mut self.rest else { return };
        match rest.poll_write(&mut self.stream, cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.rest = None,
            Poll::Ready(Err(error)) => {
                self.rest = None;
                self.unwritable = Some(error);
            }
        }
    }

    /// Reads into the buffer, while what is left of the request is written. There should be room for so many bytes;
    /// altogether no more than `most` are expected.
    async fn fill(&mut self, room: usize, most: usize) -> io::Result<usize> {
        poll_fn(|cx| self.poll_fill(cx, room, most)).await
    }
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_rest(cx);
        if self.buffer.is_empty() && room <= FIRST_READ {
            READ_FIRST.with_borrow_mut(|room| self.poll_first(cx, room))
        } else {
            self.poll_next(cx, room, most)
        }
    }
    fn poll_first(&mut self, cx: &mut Context<'_>, room: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if room.is_empty() {
            // Pages that no answer has reached yet take no memory.
            *room = vec![0; FIRST_READ];
        }
        let mut read = ReadBuf::new(room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.buffer = BytesMut::from(read.filled());
        Poll::Ready(Ok(self.buffer.len()))
    }
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let free = self.buffer.capacity() - self.buffer.len();
        if free < room.min(READ.0) {
            let room = growth::room(self.buffer.len(), room.min(RESERVE_MAX), most);
            self.buffer.reserve(room);
        }
        let mut room = (&mut self.buffer).limit(READ.1);
        pin!(self.stream.read_buf(&mut room)).poll(cx)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stream.end();
    }
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.body.is_empty()
    }
    fn poll_write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let count = ready!(write(stream, cx, &self.head, &self.body))?;
            let of_head = count.min(self.head.len());
            self.head.advance(of_head);
            self.body.advance(count - of_head);
        }
        Pin::new(stream).poll_flush(cx)
    }
}

/// Writes some of two pieces.
fn write(
    stream: &mut Stream,
    cx: &mut Context<'_>,
    first: &[u8],
    second: &[u8],
) -> Poll<io::Result<usize>> {
    let stream = Pin::new(stream);
    let written = match (first.is_empty(), second.is_empty()) {
        (_, true) => stream.poll_write(cx, first),
        (true, false) => stream.poll_write(cx, second),
        (false, false) => {
            stream.poll_write_vectored(cx, &[IoSlice::new(first), IoSlice::new(second)])
        }
    };
    match ready!(written)? {
        0 => Poll::Ready(Err(ErrorKind::WriteZero.into())),
        count => Poll::Ready(Ok(count)),
    }
}

/// The body of an answer that was never asked for.
fn none() -> Body {
    Body::new(Framing::Length(0))
}

/// Whether the other side has ended the connection.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            // TLS without its own end.
            | ErrorKind::UnexpectedEof
    )
}
