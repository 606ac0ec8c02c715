//! WebSocket connections over any stream of bytes: fragments, masks, control frames and how they end; the frames
//! themselves are in [`crate::frame`].
//!
//! A connection on which nothing is said holds next to nothing: what comes is read into room that all connections of a
//! thread share, and kept only until it is taken; what goes is let go when it is written. A message that many are sent is
//! written once ([`SharedFrame`]), and goes from there to each socket. (tungstenite keeps two buffers
//! for each connection, and copies each message into one of them.)
//!
//! Control frames, which cost their sender nothing, are counted. Nothing here waits for anything but the stream, and
//! [`WebSocket::receive`] may be dropped at any time without losing a byte, so a driver can wait for it and for something
//! else at once.

use std::{
    cell::Cell,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use ogive_base::OutOfMemory;
use ogive_net::Output;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use crate::{
    Close, Utf8Bytes,
    assembly::Assembly,
    frame::{self, Head, Opcode, Role, SharedFrame, mask},
};

/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// How long a peer that was told of its mistake may say nothing before it is left.
const QUIET: Duration = Duration::from_millis(50);

thread_local! {
    /// Where bytes are read to before they are kept.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What a connection may hold and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// Largest message of the peer in bytes; default 2 MiB.
    pub message_bytes_max: usize,
    /// Most control frames, and fragments without content, that the peer may send within `control_window`; default 100.
    pub control_frames_max: u32,
    /// Default 10 s.
    pub control_window: Duration,
}

impl Default for WebSocketLimits {
    fn default() -> Self {
        WebSocketLimits {
            message_bytes_max: 2 << 20,
            control_frames_max: 100,
            control_window: Duration::from_secs(10),
        }
    }
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Text(Utf8Bytes),
    /// A message that is not text.
    Binary,
    /// A ping, which has been answered, or a pong: somebody is there.
    Control,
    /// The peer has closed the connection, with these words if any.
    Closed(Option<Close>),
    /// The connection broke without a word.
    Broken(String),
    /// The peer does not keep to the protocol; the connection has to be closed like that.
    Violation {
        /// How to close it.
        close: Close,
        /// What the peer did.
        what: String,
    },
}

/// A WebSocket connection.
#[derive(Debug)]
pub struct WebSocket<S> {
    stream: S,
    role: Role,
    limits: WebSocketLimits,
    /// What was read and is not taken.
    input: BytesMut,
    /// What there is of a message that is not whole.
    begun: Option<Assembly>,
    /// Bytes to come that nobody takes: of a message that came after we have said that the connection ends.
    unwanted: usize,
    /// What is to be written.
    output: Output,
    /// What the last ping is to be answered with.
    pong: Option<Bytes>,
    /// Whether an answer to a ping is not written yet.
    answers: bool,
    /// Whether we have said that the connection ends, and whether the peer has.
    closed: (bool, bool),
    /// When the present window for control frames began, and how many came in it.
    control: (Option<Instant>, u32),
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// The server's end of a connection whose upgrade was answered.
    pub fn server(stream: S, limits: WebSocketLimits) -> Self {
        Self::new(stream, &[], Role::Server, limits)
    }

    /// The client's end of a connection whose upgrade was answered; `read` has come behind the answer already.
    pub fn client(stream: S, read: &[u8], limits: WebSocketLimits) -> Self {
        Self::new(stream, read, Role::Client, limits)
    }

    fn new(stream: S, read: &[u8], role: Role, limits: WebSocketLimits) -> Self {
        WebSocket {
            stream,
            role,
            limits,
            input: read.into(),
            begun: None,
            unwanted: 0,
            output: Output::default(),
            pong: None,
            answers: false,
            closed: (false, false),
            control: (None, 0),
        }
    }

    /// What comes next. Dropping the future loses nothing. Pings are answered from here, so somebody has to keep asking.
    pub async fn receive(&mut self) -> Received {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// The same by polling.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        self.poll_receive_within(cx, |_| Ok(()))
            .map(|received| received.unwrap_or(Received::Closed(None)))
    }

    /// The same where what is held is counted: `count` is told with all that is read how many bytes that are. If there is no
    /// memory for them, no more is read.
    pub fn poll_receive_within(
        &mut self,
        cx: &mut Context<'_>,
        mut count: impl FnMut(usize) -> Result<(), OutOfMemory>,
    ) -> Poll<Result<Received, OutOfMemory>> {
        if self.answers
            && let Poll::Ready(Err(why)) = self.poll_flush(cx)
        {
            return Poll::Ready(Ok(Received::Broken(why)));
        }
        loop {
            if let Some(received) = self.take_received() {
                return Poll::Ready(Ok(received));
            }
            count(self.held_bytes())?;
            let ended = match ready!(self.poll_read(cx)) {
                Ok(0) if self.closed.0 => Received::Closed(None),
                Ok(0) => Received::Broken("the connection was cut off".to_owned()),
                Ok(_) => continue,
                Err(error) => Received::Broken(error.to_string()),
            };
            return Poll::Ready(Ok(ended));
        }
    }

    /// What has come already, if all of it has.
    pub fn take_received(&mut self) -> Option<Received> {
        loop {
            if self.closed.1 {
                return Some(Received::Closed(None));
            }
            let taken = match self.take_next() {
                Ok(Some(taken)) => taken,
                Ok(None) => break,
                Err(violation) => return Some(violation),
            };
            let received = match taken {
                Taken::Frame(head, payload) => self.frame(head, payload),
                Taken::FrameEnd { is_last } => self.fragment(is_last),
            };
            if received.is_some() {
                return received;
            }
        }
        if self.input.is_empty() {
            // Nothing waits: no room is kept for it.
            self.input = BytesMut::new();
        } else if self.input.capacity() > READ_BYTES / 2 {
            // The begin of a frame must not keep what was read before it.
            self.input = BytesMut::from(&*self.input);
        }
        None
    }

    /// Reads some bytes; says how many, none at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        let mut room = ROOM.take();
        room.resize(READ_BYTES, 0);
        let mut buffer = ReadBuf::new(&mut room);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        let came = buffer.filled();
        let count = came.len();
        self.input.extend_from_slice(came);
        ROOM.set(room);
        read.map_ok(|()| count)
    }

    /// The next frame, if all of it is there; of one that brings a message, what is there goes to that.
    fn take_next(&mut self) -> Result<Option<Taken>, Received> {
        let violation = |what: &str| violated(Close::new(1002, "Protocol error"), what);
        loop {
            let unwanted = self.unwanted.min(self.input.len());
            self.input.advance(unwanted);
            self.unwanted -= unwanted;
            if let Some(begun) = &mut self.begun
                && let Some(rest) = begun.frame_rest()
            {
                let came = self.input.split_to(rest.min(self.input.len()));
                let ended = begun.push(&came);
                return Ok(ended.map(|is_last| Taken::FrameEnd { is_last }));
            }
            let Some(head) = Head::read(&self.input, self.role).map_err(violation)? else {
                return Ok(None);
            };
            let held = self.begun.as_ref().map_or(0, Assembly::len);
            let most = self.limits.message_bytes_max.saturating_sub(held);
            let payload = usize::try_from(head.payload).unwrap_or(usize::MAX);
            if !head.opcode.is_control() && payload > most {
                let most = self.limits.message_bytes_max;
                let what = format!("a message of more than {most} bytes");
                return Err(violated(Close::new(1009, "Message too big"), &what));
            }
            let is_whole = self.input.len() - head.head >= payload;
            if !is_whole && head.opcode.is_control() {
                return Ok(None);
            }
            self.input.advance(head.head);
            if self.closed.0 && !head.opcode.is_control() {
                self.unwanted = payload;
                continue;
            }
            if !is_whole {
                self.message_of(head.opcode)?.begin_frame(head, payload);
                continue;
            }
            let mut bytes = self.input.split_to(payload);
            if let Some(key) = head.mask {
                mask(&mut bytes, key);
            }
            return Ok(Some(Taken::Frame(head, bytes)));
        }
    }

    /// The message that a frame of this kind begins or goes on with.
    fn message_of(&mut self, opcode: Opcode) -> Result<&mut Assembly, Received> {
        let violation = |what: &str| Err(violated(Close::new(1002, "Protocol error"), what));
        match (opcode, &mut self.begun) {
            (Opcode::Continuation, Some(_)) => {}
            (Opcode::Continuation, None) => return violation("a fragment of nothing"),
            (_, Some(_)) => return violation("a message within another one"),
            (_, begun) => *begun = Some(Assembly::new(opcode == Opcode::Text)),
        }
        self.begun.as_mut().ok_or_else(not_text)
    }

    /// What a frame means; `None` if there is more to come.
    fn frame(&mut self, head: Head, payload: BytesMut) -> Option<Received> {
        match head.opcode {
            Opcode::Ping => {
                self.pong = Some(payload.freeze());
                self.answers = true;
                Some(self.control())
            }
            Opcode::Pong => Some(self.control()),
            Opcode::Close => Some(self.peer_closes(&payload)),
            // Mostly all of a message is in one frame, and nothing is copied.
            opcode @ (Opcode::Text | Opcode::Binary) if head.is_last && self.begun.is_none() => {
                Some(message(opcode == Opcode::Text, payload.freeze()))
            }
            opcode => {
                match self.message_of(opcode) {
                    Ok(begun) => begun.push_whole(&payload),
                    Err(violation) => return Some(violation),
                }
                if opcode == Opcode::Continuation && !head.is_last && payload.is_empty() {
                    // Like a ping it brings nothing, and no size bounds how many there are.
                    let counted = self.control();
                    return (counted != Received::Control).then_some(counted);
                }
                self.fragment(head.is_last)
            }
        }
    }

    /// What a message is to which a fragment has come; `None` if there is more to come.
    fn fragment(&mut self, is_last: bool) -> Option<Received> {
        if is_last {
            let begun = self.begun.take()?;
            return Some(message(begun.is_text, begun.whole()));
        }
        let begun = self.begun.as_mut()?;
        begun.is_no_text().then(not_text)
    }

    /// The peer closes the connection, or answers that we do.
    fn peer_closes(&mut self, payload: &[u8]) -> Received {
        let close = match payload {
            [] => None,
            [high, low, reason @ ..] => {
                let code = u16::from_be_bytes([*high, *low]);
                if !may_be_sent(code) {
                    let what = format!("a close with the code {code}");
                    return violated(Close::new(1002, "Protocol error"), &what);
                }
                let Ok(reason) = std::str::from_utf8(reason) else {
                    return not_text();
                };
                Some(Close::new(code, reason.to_owned()))
            }
            _ => return violated(Close::new(1002, "Protocol error"), "half a code of a close"),
        };
        if !self.closed.0 {
            // The answer is what was said (RFC 6455, section 5.5.1).
            self.closed.0 = self.put(Opcode::Close, payload).is_ok();
        }
        self.closed.1 = true;
        Received::Closed(close)
    }

    fn control(&mut self) -> Received {
        let now = Instant::now();
        let (since, count) = &mut self.control;
        if since.is_none_or(|since| now.duration_since(since) >= self.limits.control_window) {
            (*since, *count) = (Some(now), 0);
        }
        *count += 1;
        if *count <= self.limits.control_frames_max {
            return Received::Control;
        }
        let (most, window) = (self.limits.control_frames_max, self.limits.control_window);
        let what = format!("more than {most} control frames within {window:?}");
        violated(Close::policy("Too many control frames"), &what)
    }

    /// Puts a frame behind what is to be written.
    fn put(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), String> {
        frame::write(self.output.own(), opcode, payload, self.role)
    }

    /// Whether so much is to be written that nothing should be put behind it.
    pub fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Puts a message of a server behind what is to be written, for [`poll_flush`](Self::poll_flush). As others may be sent
    /// the same, it is not copied unless something else is to be written before it.
    pub fn share(&mut self, frame: &SharedFrame) {
        self.output.share(&frame.0);
    }

    /// Sends a message; ends when the stream has taken it. Dropped before that, it may have been sent or not.
    pub async fn send(&mut self, text: impl AsRef<str>) -> Result<(), String> {
        self.feed(text).await?;
        self.flush().await
    }

    /// Puts a message behind what is to be written, once there is room, for [`flush`](Self::flush).
    pub async fn feed(&mut self, text: impl AsRef<str>) -> Result<(), String> {
        if self.is_full() {
            self.flush().await?;
        }
        self.put_text(text.as_ref())
    }

    /// The same however much is to be written before it.
    pub fn put_text(&mut self, text: &str) -> Result<(), String> {
        if self.closed.0 {
            return Err("the connection is closed".to_owned());
        }
        self.put(Opcode::Text, text.as_bytes())
    }

    /// Asks the peer whether it is there, below the messages.
    pub async fn ping(&mut self) -> Result<(), String> {
        self.put(Opcode::Ping, b"")?;
        self.flush().await
    }

    /// Ends when the stream has taken everything.
    pub async fn flush(&mut self) -> Result<(), String> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// The same by polling.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        // Of a peer that takes nothing only the last question waits for its answer.
        if !self.output.is_full()
            && let Some(pong) = self.pong.take()
        {
            self.put(Opcode::Pong, &pong)?;
        }
        let written = ready!(self.output.poll_write(&mut self.stream, cx));
        self.answers = self.pong.is_some();
        Poll::Ready(written.map_err(|error| error.to_string()))
    }

    /// Says why the connection ends, then waits until the peer has answered, but not longer than `within`, so that the
    /// words arrive before the socket is closed. What the peer says meanwhile is nobody's affair any more.
    pub async fn close(&mut self, close: Close, within: Duration) {
        // Of what has begun nobody takes the rest.
        if let Some(begun) = self.begun.take() {
            self.unwanted = begun.frame_rest().unwrap_or(0);
        }
        let ended = async {
            if !self.closed.0 {
                let mut payload = close.code.to_be_bytes().to_vec();
                payload.extend_from_slice(close.reason.as_bytes());
                self.closed.0 = self.put(Opcode::Close, &payload).is_ok();
            }
            if self.flush().await.is_err() {
                return;
            }
            // Servers close the socket first (RFC 6455, section 7.1.1).
            while !self.closed.1 {
                let received = self.receive().await;
                match received {
                    Received::Broken(_) => return,
                    Received::Violation { .. } => return self.discard().await,
                    _ => {}
                }
            }
            while self.role == Role::Client
                && poll_fn(|cx| self.poll_read(cx)).await.is_ok_and(|n| n > 0)
            {
                self.input = BytesMut::new();
            }
        };
        let _ = tokio::time::timeout(within, ended).await;
    }

    /// Throws away what comes until nothing does for a moment. A socket that is closed with something unread tells its peer
    /// nothing but that.
    async fn discard(&mut self) {
        let mut read = true;
        while read {
            self.input = BytesMut::new();
            let reading = poll_fn(|cx| self.poll_read(cx));
            let came = tokio::time::timeout(QUIET, reading).await;
            read = came.is_ok_and(|came| came.is_ok_and(|count| count > 0));
        }
    }

    /// Bytes that are held: read and not taken, or not written.
    pub fn held_bytes(&self) -> usize {
        let begun = self.begun.as_ref().map_or(0, Assembly::room);
        self.input.len() + begun + self.output.len()
    }

    /// The stream below; what was read and not taken is lost.
    pub fn into_stream(self) -> S {
        self.stream
    }
}

/// What was taken of what came.
enum Taken {
    /// All of a frame, its payload without a mask.
    Frame(Head, BytesMut),
    /// The rest of a frame that has gone to its message.
    FrameEnd { is_last: bool },
}

/// A whole message.
fn message(is_text: bool, payload: Bytes) -> Received {
    if !is_text {
        return Received::Binary;
    }
    Utf8Bytes::checked(payload).map_or_else(not_text, Received::Text)
}

/// Whether a code may stand in a close (RFC 6455, section 7.4).
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

fn not_text() -> Received {
    violated(Close::new(1007, "Messages are UTF-8"), "what is no UTF-8")
}

fn violated(close: Close, what: &str) -> Received {
    Received::Violation {
        close,
        what: what.to_owned(),
    }
}
