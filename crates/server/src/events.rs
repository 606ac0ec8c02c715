//! Streams of events over HTTP/1.1, which are no business of its parser any more once their head is written.
//!
//! The parser keeps two buffers of 8 KiB for a connection, and each part of a body passes it on its way to the socket. So
//! it is let go when it has written the head, as for an upgrade, and the connection ends with the stream: there is no
//! other request on it. What a thousand connections are sent is written once, chunk and all, and goes from there to each
//! socket.
//!
//! The connection keeps its place, its write time-out and its end, as an upgraded one does.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use ogive_net::{Output, Rest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are thrown away at a time.
const DISCARDED: usize = 512;
/// The last chunk of a body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How the parts of a body are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFraming {
    /// Not at all.
    Plain,
    /// Each as a chunk ([`chunk`]).
    Chunked,
}

/// Events as parts of a body.
pub trait Events {
    /// The next part, framed like that; `None` at the end. Dropped before that, the client has left.
    fn poll_part(&mut self, cx: &mut Context<'_>, framing: PartFraming) -> Poll<Option<Bytes>>;
}

/// A part as a chunk (RFC 9112, section 7.1). An empty one would be the last, and is nothing.
pub fn chunk(part: &[u8]) -> Bytes {
    if part.is_empty() {
        return Bytes::new();
    }
    let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
    chunk.reserve_exact(part.len() + 2);
    chunk.extend_from_slice(part);
    chunk.extend_from_slice(b"\r\n");
    chunk.into()
}

/// Events that nobody has asked for yet.
pub(crate) struct EventParts(pub(crate) Box<dyn Events>);

impl fmt::Debug for EventParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventParts")
    }
}

/// Writes events behind their head until they end, or the client has left.
pub(crate) async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    events: EventParts,
    framing: PartFraming,
) -> io::Result<()> {
    let mut writer = EventWriter {
        stream: &mut stream,
        events: Some(events.0),
        framing,
        output: Output::default(),
        rest: Rest::default(),
    };
    poll_fn(|cx| writer.poll(cx)).await?;
    poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await
}

struct EventWriter<'s, S> {
    stream: &'s mut S,
    /// `None` when they are over.
    events: Option<Box<dyn Events>>,
    framing: PartFraming,
    output: Output,
    /// Whether the client is there.
    rest: Rest,
}

impl<S: AsyncRead + AsyncWrite + Unpin> EventWriter<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_due(cx) && self.poll_left().is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.output.is_full() || self.events.is_none() {
                ready!(self.output.poll_write(&mut self.stream, cx))?;
            }
            let Some(events) = &mut self.events else {
                return Poll::Ready(Ok(()));
            };
            match events.poll_part(cx, self.framing) {
                Poll::Ready(Some(part)) => self.output.share(&part),
                Poll::Ready(None) => {
                    self.events = None;
                    if self.framing == PartFraming::Chunked {
                        self.output.share(&Bytes::from_static(LAST_CHUNK));
                    }
                }
                Poll::Pending if self.output.is_empty() => return Poll::Pending,
                Poll::Pending => {
                    ready!(self.output.poll_write(&mut self.stream, cx))?;
                    return Poll::Pending;
                }
            }
        }
    }
    /// Throws away what comes, as it was told that the connection ends with this answer; ready at its end.
    fn poll_left(&mut self) -> Poll<()> {
        let waker = self.rest.waker().clone();
        let mut cx = Context::from_waker(&waker);
        loop {
            let mut room = [0; DISCARDED];
            let mut buffer = ReadBuf::new(&mut room);
            let read = Pin::new(&mut *self.stream).poll_read(&mut cx, &mut buffer);
            if ready!(read).is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}
