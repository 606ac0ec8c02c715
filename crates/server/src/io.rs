//! The bytes of a connection, and what is known of them beside the protocol's implementation, which owns them.
//!
//! The implementation of HTTP/1.1 notices that a client has left only while it reads, and it does not read as long as it
//! has something that was not asked for yet: one byte after the body of a request is enough. So it is noted here whether
//! it waits for bytes, and whoever serves the connection watches the socket while it does not ([`Bytes::left`]).
//!
//! It also forgets `content-length` where there is `transfer-encoding`, as it may (RFC 9112, section 6.1). Whoever is in
//! front may have believed the other one, so both together are refused, and what is read is looked through for it
//! ([`Framing`]).

use std::{
    cell::{Cell, RefCell},
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use ogive_base::{OutOfMemory, Reservation};
use ogive_net::{Socket, Stream};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::{framing::Framing, shared::CountsMemory};

/// Heads of requests up to so many bytes are not counted: they are what a connection has room for.
pub(crate) const HEAD_FREE: usize = 8 << 10;

/// Most bytes that the parser of HTTP/1.1 is given at a time: one less than its first buffer has, because a read that fills
/// a buffer makes it double the next one, up to 400 KiB. So a connection whose client sends as fast as it can has a few
/// buffers of 8 KiB.
const PARSER_READ_MAX: usize = (8 << 10) - 1;

thread_local! {
    /// Where bytes for the parser are read to, by all connections of a thread.
    static ROOM: RefCell<[u8; PARSER_READ_MAX]> = const { RefCell::new([0; PARSER_READ_MAX]) };
}

/// A connection's bytes; all copies are of the same connection.
#[derive(Clone)]
pub(crate) struct Bytes(Rc<Inner>);

/// The same bytes as the parser of HTTP/1.1 takes them: a few at a time.
pub(crate) struct ParserBytes(pub(crate) Bytes);

struct Inner {
    stream: RefCell<Stream>,
    /// Whether somebody waits for bytes to come.
    reads: Cell<bool>,
    /// Whether somebody waits for bytes to be taken.
    writes: Cell<bool>,
    /// Whether nothing was written since all of it was flushed.
    is_flushed: Cell<bool>,
    framing: RefCell<Framing>,
    /// Whose memory heads are counted in; over HTTP/1.1.
    memory: Option<Rc<dyn CountsMemory>>,
    /// Counts a large head that is not over.
    head: RefCell<Option<Reservation>>,
}

impl Bytes {
    /// `memory`: where requests are those of HTTP/1.1, which are looked through.
    pub(crate) fn new(stream: Stream, memory: Option<Rc<dyn CountsMemory>>) -> Self {
        Bytes(Rc::new(Inner {
            stream: RefCell::new(stream),
            reads: Cell::new(true),
            writes: Cell::new(false),
            is_flushed: Cell::new(false),
            framing: RefCell::new(match &memory {
                Some(_) => Framing::begin(),
                None => Framing::off(),
            }),
            memory,
            head: RefCell::new(None),
        }))
    }
    /// What comes from now on is no request.
    pub(crate) fn is_no_http_any_more(&self) {
        *self.0.framing.borrow_mut() = Framing::off();
        *self.0.head.borrow_mut() = None;
    }
    /// Whether a head may have been so large that it counts.
    pub(crate) fn has_large_heads(&self) -> bool {
        self.0.memory.is_none() || self.0.framing.borrow().largest() > HEAD_FREE
    }
    /// Bytes of the largest head so far, about: not fewer. One that is not over counts.
    pub(crate) fn largest_head(&self) -> usize {
        let framing = self.0.framing.borrow();
        framing.largest().max(framing.unfinished())
    }
    /// Whether the next head, which the parser has read, has both `content-length` and `transfer-encoding`; to be asked once
    /// for each.
    pub(crate) fn next_has_both(&self) -> bool {
        self.0.framing.borrow_mut().next_has_both()
    }
    /// Whether the end of the connection would be noticed.
    pub(crate) fn is_reading(&self) -> bool {
        self.0.reads.get()
    }
    /// Whether there is something that the client has not taken yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.0.writes.get()
    }
    /// Whether whoever writes has written all it has.
    pub(crate) fn is_flushed(&self) -> bool {
        self.0.is_flushed.get()
    }
    /// Something is to be written behind what was flushed.
    pub(crate) fn will_write(&self) {
        self.0.is_flushed.set(false);
    }
    /// Waits until the client has left, whatever it has sent before. Costs a file, so it is for those who have to.
    pub(crate) fn left(&self) -> io::Result<Pin<Box<dyn Future<Output = ()>>>> {
        let socket = self.0.stream.borrow().watched()?;
        Ok(Box::pin(closed(socket)))
    }
}

/// Waits for the end of what can be read; bytes that wait to be read are no end.
#[cfg(any(target_os = "linux", target_os = "android"))]
async fn closed(socket: Socket) {
    // Ready for it is what has urgent bytes, which nobody sends, or none any more.
    let _ = match &socket {
        Socket::Tcp(socket) => socket.ready(Interest::PRIORITY).await,
        Socket::Unix(socket) => socket.ready(Interest::PRIORITY).await,
    };
}

/// Other systems do not tell: the protocol's implementation notices it later.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
async fn closed(_: Socket) {
    std::future::pending().await
}

impl AsyncRead for Bytes {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (inner, before) = (&*self.0, buffer.filled().len());
        let read = Pin::new(&mut *inner.stream.borrow_mut()).poll_read(cx, buffer);
        inner.reads.set(read.is_pending());
        let mut framing = inner.framing.borrow_mut();
        framing.read(&buffer.filled()[before..]);
        let unfinished = framing.unfinished();
        if (unfinished > HEAD_FREE || inner.head.borrow().is_some())
            && inner.count(unfinished).is_err()
        {
            let message = "there is no memory for the head of a request";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::OutOfMemory, message)));
        }
        read
    }
}

impl hyper::rt::Read for ParserBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        ROOM.with_borrow_mut(|room| {
            let most = room.len().min(buffer.remaining());
            let mut read = ReadBuf::new(&mut room[..most]);
            ready!(Pin::new(&mut self.0).poll_read(cx, &mut read))?;
            buffer.put_slice(read.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl hyper::rt::Write for ParserBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, pieces)
    }
    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Inner {
    /// Counts what there is of a head.
    #[cold]
    fn count(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let mut head = self.head.borrow_mut();
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > HEAD_FREE) else {
            *head = None;
            return Ok(());
        };
        head.get_or_insert_with(|| memory.reserve()).set(bytes)
    }
    fn wrote<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.writes.set(written.is_pending());
        written
    }
}

impl AsyncWrite for Bytes {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.is_flushed.set(false);
        let stream = &mut *self.0.stream.borrow_mut();
        self.0.wrote(Pin::new(stream).poll_write(cx, bytes))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.is_flushed.set(false);
        let stream = &mut *self.0.stream.borrow_mut();
        self.0
            .wrote(Pin::new(stream).poll_write_vectored(cx, pieces))
    }
    fn is_write_vectored(&self) -> bool {
        self.0.stream.borrow().is_write_vectored()
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = &mut *self.0.stream.borrow_mut();
        let flushed = self.0.wrote(Pin::new(stream).poll_flush(cx));
        self.0
            .is_flushed
            .set(matches!(flushed, Poll::Ready(Ok(()))));
        flushed
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = &mut *self.0.stream.borrow_mut();
        self.0.wrote(Pin::new(stream).poll_shutdown(cx))
    }
}
