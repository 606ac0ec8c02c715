//! WebSocket frames over any stream of bytes, by tungstenite: fragments, masks, close frames and text are its affair.
//!
//! What is ours: limits, codes for what a peer does wrong, and that control frames, which cost their sender nothing, are
//! counted. Nothing here waits for anything but the stream, and [`WebSocket::receive`] may be dropped at any time without
//! losing a byte, so a driver can wait for it and for something else at once.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use futures_sink::Sink;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::Close;

/// What a connection may hold and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// Largest message of the peer in bytes; default 2 MiB.
    pub message_bytes_max: usize,
    /// Room for what is read, allocated at once; default 4 KiB.
    pub read_buffer_bytes: usize,
    /// Most control frames that the peer may send within `control_window`; default 100.
    pub control_frames_max: u32,
    /// Default 10 s.
    pub control_window: Duration,
}

impl Default for WebSocketLimits {
    fn default() -> Self {
        WebSocketLimits {
            message_bytes_max: 2 << 20,
            read_buffer_bytes: 4 << 10,
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
    stream: WebSocketStream<S>,
    limits: WebSocketLimits,
    /// When the present window for control frames began, and how many came in it.
    control: (Option<Instant>, u32),
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// The server's end of a connection whose upgrade was answered.
    pub async fn server(stream: S, limits: WebSocketLimits) -> Self {
        Self::new(stream, Vec::new(), Role::Server, limits).await
    }

    /// The client's end of a connection whose upgrade was answered; `read` has come behind the answer already.
    pub async fn client(stream: S, read: Vec<u8>, limits: WebSocketLimits) -> Self {
        Self::new(stream, read, Role::Client, limits).await
    }

    async fn new(stream: S, read: Vec<u8>, role: Role, limits: WebSocketLimits) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(limits.read_buffer_bytes)
            // Messages are written as they come; the driver decides when to flush.
            .write_buffer_size(limits.read_buffer_bytes)
            .max_message_size(Some(limits.message_bytes_max))
            .max_frame_size(Some(limits.message_bytes_max));
        let stream = WebSocketStream::from_partially_read(stream, read, role, Some(config)).await;
        WebSocket {
            stream,
            limits,
            control: (None, 0),
        }
    }

    /// What comes next. Dropping the future loses nothing. Pings are answered from here, so somebody has to keep asking.
    pub async fn receive(&mut self) -> Received {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// The same by polling.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let received = match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
            None => Received::Closed(None),
            Some(Ok(message)) => self.message(message),
            Some(Err(error)) => failed(&error),
        };
        Poll::Ready(received)
    }

    fn message(&mut self, message: Message) -> Received {
        match message {
            Message::Text(text) => Received::Text(text),
            Message::Binary(_) | Message::Frame(_) => Received::Binary,
            Message::Ping(_) | Message::Pong(_) => self.control(),
            Message::Close(frame) => Received::Closed(frame.map(|frame| {
                let reason = frame.reason.as_str().to_owned();
                Close::new(frame.code.into(), reason)
            })),
        }
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
        Received::Violation {
            close: Close::policy("Too many control frames"),
            what: format!("more than {most} control frames within {window:?}"),
        }
    }

    /// Sends a message; ends when the stream has taken it. Dropped before that, it may have been sent or not.
    pub async fn send(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), String> {
        self.feed(text).await?;
        self.flush().await
    }

    /// Puts a message into the buffer, once there is room, for [`flush`](Self::flush).
    pub async fn feed(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), String> {
        poll_fn(|cx| Pin::new(&mut self.stream).poll_ready(cx))
            .await
            .map_err(|error| error.to_string())?;
        Pin::new(&mut self.stream)
            .start_send(Message::Text(text.into()))
            .map_err(|error| error.to_string())
    }

    /// Asks the peer whether it is there, below the messages.
    pub async fn ping(&mut self) -> Result<(), String> {
        let sent = poll_fn(|cx| Pin::new(&mut self.stream).poll_ready(cx)).await;
        let ping = Message::Ping(bytes::Bytes::new());
        sent.and_then(|()| Pin::new(&mut self.stream).start_send(ping))
            .map_err(|error| error.to_string())?;
        self.flush().await
    }

    /// Ends when the stream has taken everything.
    pub async fn flush(&mut self) -> Result<(), String> {
        poll_fn(|cx| Pin::new(&mut self.stream).poll_flush(cx))
            .await
            .map_err(|error| error.to_string())
    }

    /// Says why the connection ends, then waits until the peer has answered, but not longer than `within`, so that the
    /// words arrive before the socket is closed. What the peer says meanwhile is nobody's affair any more.
    pub async fn close(&mut self, close: Close, within: Duration) {
        let frame = CloseFrame {
            code: CloseCode::from(close.code),
            reason: close.reason.as_ref().into(),
        };
        let ended = async {
            if self.stream.close(Some(frame)).await.is_ok() {
                let next = |this: &mut Self, cx: &mut Context<'_>| {
                    Pin::new(&mut this.stream).poll_next(cx)
                };
                while let Some(Ok(_)) = poll_fn(|cx| next(self, cx)).await {}
            }
        };
        let _ = tokio::time::timeout(within, ended).await;
    }

    /// The stream below.
    pub fn stream(&self) -> &S {
        self.stream.get_ref()
    }

    /// The same for good; what was read and not taken is lost.
    pub fn into_stream(self) -> S {
        self.stream.into_inner()
    }
}

/// What an error means.
fn failed(error: &Error) -> Received {
    let what = error.to_string();
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => Received::Closed(None),
        Error::Capacity(_) => Received::Violation {
            close: Close::new(1009, "Message too big"),
            what,
        },
        Error::Utf8(_) => Received::Violation {
            close: Close::new(1007, "Messages are UTF-8"),
            what,
        },
        Error::Protocol(
            tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
        ) => Received::Broken(what),
        Error::Protocol(_) | Error::AttackAttempt => Received::Violation {
            close: Close::new(1002, "Protocol error"),
            what,
        },
        _ => Received::Broken(what),
    }
}
