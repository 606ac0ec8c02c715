//! The bytes of a connection, and what is known of them beside the protocol's implementation, which owns them.
//!
//! The implementation of HTTP/1.1 notices that a client has left only while it reads, and it does not read as long as it
//! has something that was not asked for yet: one byte after the body of a request is enough. So it is noted here whether
//! it waits for bytes, and whoever serves the connection watches the socket while it does not ([`Bytes::left`]).
//!
//! It also forgets `content-length` where there is `transfer-encoding`, as it may (RFC 9112, section 6.1). Whoever is in
//! front may have believed the other one, so both together are refused, and what was read is looked through for it.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use ogive_transport::{Socket, Stream};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connection's bytes; all copies are of the same connection.
#[derive(Clone)]
pub(super) struct Bytes(Rc<Inner>);

struct Inner {
    stream: RefCell<Stream>,
    /// Whether somebody waits for bytes to come.
    reads: Cell<bool>,
    /// Whether somebody waits for bytes to be taken.
    writes: Cell<bool>,
    head: Cell<Head>,
}

/// How far the head of the next request has been looked through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Head {
    /// Nothing of it is there but empty lines, which may stand before it.
    Outside,
    /// At the beginning of a line, of which so many bytes are those of [`LENGTH`].
    Line(usize),
    /// Within a line of no interest.
    Within,
    /// It has a length.
    HasLength,
    /// It has none, and is over; or nobody looks.
    Over,
}

const LENGTH: &[u8] = b"content-length";

impl Head {
    /// Looks through what follows.
    fn read(mut self, bytes: &[u8]) -> Head {
        let mut rest = bytes;
        while let Some((byte, more)) = rest.split_first() {
            self = match (self, byte) {
                (Head::HasLength | Head::Over, _) => return self,
                (Head::Within, _) => match memchr::memchr(b'\n', rest) {
                    Some(end) => {
                        rest = &rest[end + 1..];
                        self = Head::Line(0);
                        continue;
                    }
                    None => return self,
                },
                (Head::Outside, b'\r' | b'\n') => self,
                (Head::Line(0), b'\r') => self,
                (Head::Line(0), b'\n') => return Head::Over,
                (Head::Line(0) | Head::Outside, byte) if !byte.eq_ignore_ascii_case(&LENGTH[0]) => {
                    Head::Within
                }
                (Head::Line(at), byte) if byte.eq_ignore_ascii_case(&LENGTH[at]) => {
                    match at + 1 == LENGTH.len() {
                        true => return Head::HasLength,
                        false => Head::Line(at + 1),
                    }
                }
                (Head::Outside, _) => Head::Line(1),
                // The byte may be the end of the line.
                (Head::Line(_), _) => {
                    self = Head::Within;
                    continue;
                }
            };
            rest = more;
        }
        self
    }
}

impl Bytes {
    pub(super) fn new(stream: Stream) -> Self {
        Bytes(Rc::new(Inner {
            stream: RefCell::new(stream),
            reads: Cell::new(true),
            writes: Cell::new(false),
            head: Cell::new(Head::Over),
        }))
    }
    /// Looks through the head that is read next.
    pub(super) fn expect_head(&self) {
        self.0.head.set(Head::Outside);
    }
    /// Whether the head that was read has a length, as far as it was looked through: what comes while a request is being
    /// answered is not.
    pub(super) fn has_length(&self) -> bool {
        self.0.head.get() == Head::HasLength
    }
    /// Whether the end of the connection would be noticed.
    pub(super) fn is_reading(&self) -> bool {
        self.0.reads.get()
    }
    /// Whether there is something that the client has not taken yet.
    pub(super) fn has_unwritten(&self) -> bool {
        self.0.writes.get()
    }
    /// Waits until the client has left, whatever it has sent before. Costs a file, so it is for those who have to.
    pub(super) fn left(&self) -> io::Result<Pin<Box<dyn Future<Output = ()>>>> {
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
        let head = inner.head.get();
        if !matches!(head, Head::HasLength | Head::Over) {
            inner.head.set(head.read(&buffer.filled()[before..]));
        }
        read
    }
}

impl Inner {
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
        let stream = &mut *self.0.stream.borrow_mut();
        self.0.wrote(Pin::new(stream).poll_write(cx, bytes))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = &mut *self.0.stream.borrow_mut();
        self.0
            .wrote(Pin::new(stream).poll_write_vectored(cx, pieces))
    }
    fn is_write_vectored(&self) -> bool {
        self.0.stream.borrow().is_write_vectored()
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = &mut *self.0.stream.borrow_mut();
        self.0.wrote(Pin::new(stream).poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = &mut *self.0.stream.borrow_mut();
        self.0.wrote(Pin::new(stream).poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_seen_wherever_the_head_is_cut() {
        for (text, expected) in [
            (
                "POST / HTTP/1.1\r\nContent-LENGTH: 4\r\n\r\n",
                Head::HasLength,
            ),
            (
                "\r\n\nPOST / HTTP/1.1\ncontent-length:4\n\n",
                Head::HasLength,
            ),
            ("POST / HTTP/1.1\r\nx: y\r\ncontent-length", Head::HasLength),
            ("POST / HTTP/1.1\r\nx: content-length\r\n\r\n", Head::Over),
            (
                "POST / HTTP/1.1\r\nx: y\r\n\r\ncontent-length: 4",
                Head::Over,
            ),
            (
                "POST / HTTP/1.1\r\ncontent\r\ncontent-lengt\r\n\r\n",
                Head::Over,
            ),
            ("CONNECT / HTTP/1.1\r\ncontent-l", Head::Line(9)),
            ("\r\n", Head::Outside),
        ] {
            for cut in 0..text.len() {
                let (one, other) = text.as_bytes().split_at(cut);
                let found = Head::Outside.read(one).read(other);
                assert_eq!(found, expected, "{text:?} at {cut}");
            }
        }
    }
}
