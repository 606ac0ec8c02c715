//! A byte stream of either side: TCP or a unix socket, with or without TLS.
//!
//! Used towards subgraphs here and towards clients by the gateway. Bytes that were looked at before anybody knew what
//! they are come first when it is read, and whoever does not take what is written to it within a time is given up.

use std::{
    fmt,
    future::{Future, poll_fn},
    io::{self, ErrorKind},
    os::fd::AsFd,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Buf, Bytes};
use rustix::{io::Errno, net::RecvFlags};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    task::coop::unconstrained,
    time::Sleep,
};
use tokio_rustls::TlsStream;

/// A connection without TLS.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
}

enum Kind {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

/// A connection.
pub struct Stream {
    kind: Kind,
    /// What was read already.
    before: Bytes,
    write_timeout: Option<Duration>,
    /// Runs while the other side takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    /// Without TLS.
    pub fn plain(socket: Socket) -> Self {
        Self::of(Kind::Plain(socket))
    }
    /// With TLS.
    pub fn tls(stream: impl Into<TlsStream<Socket>>) -> Self {
        Self::of(Kind::Tls(Box::new(stream.into())))
    }
    fn of(kind: Kind) -> Self {
        Stream {
            kind,
            before: Bytes::new(),
            write_timeout: None,
            stalled: None,
        }
    }
    /// Gives these bytes back: they are read again, first.
    pub fn unread(&mut self, bytes: Bytes) {
        self.before = bytes;
    }
    /// Fails writing when the other side has taken nothing for so long; default never.
    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.write_timeout = Some(timeout);
    }
    /// Whether both sides agreed on HTTP/2 during the TLS handshake.
    pub fn agreed_on_http2(&self) -> bool {
        match &self.kind {
            Kind::Plain(_) => false,
            Kind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    /// Whether the other side has said nothing, as far as the reactor knows: no system call, unless something came. An
    /// idle connection of which this is not true must not be used.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let blocked = |read: io::Result<usize>| {
            read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        match &mut self.kind {
            _ if !self.before.is_empty() => false,
            Kind::Plain(Socket::Tcp(stream)) => blocked(stream.try_read(&mut byte)),
            Kind::Plain(Socket::Unix(stream)) => blocked(stream.try_read(&mut byte)),
            // What is no data, such as new keys, is taken in.
            Kind::Tls(stream) => {
                let mut buffer = ReadBuf::new(&mut byte);
                let read = poll_fn(|cx| Pin::new(&mut **stream).poll_read(cx, &mut buffer));
                // A task that has had its turn would be told that nothing came, whatever came.
                let read = pin!(unconstrained(read));
                read.poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
            }
        }
    }

    /// Whether nothing at all came, not even the end of the connection: asks the operating system, which may know more
    /// than the reactor. With TLS `false` may only mean that it was not data.
    pub(crate) fn is_silent(&self) -> bool {
        let socket = match &self.kind {
            Kind::Plain(socket) => socket,
            Kind::Tls(stream) => stream.get_ref().0,
        };
        let socket = match socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::net::recv(socket, &mut [0; 1], flags)
            .is_err_and(|error| error == Errno::AGAIN || error == Errno::WOULDBLOCK)
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.kind, Kind::Tls(_))
    }

    /// Says that nothing will be written any more, as far as there is a word for it besides closing, and as far as that
    /// does not have to be waited for. (RFC 8446, section 6.1: without it nobody knows whether that was the end.)
    pub(crate) fn end(&mut self) {
        if let Kind::Tls(stream) = &mut self.kind {
            let mut context = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut **stream).poll_shutdown(&mut context);
        }
    }

    fn writing<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut (dyn AsyncWrite + Unpin)>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = match &mut self.kind {
            Kind::Plain(Socket::Tcp(stream)) => write(Pin::new(stream), cx),
            Kind::Plain(Socket::Unix(stream)) => write(Pin::new(stream), cx),
            Kind::Tls(stream) => write(Pin::new(&mut **stream), cx),
        };
        let Some(timeout) = self.write_timeout else {
            return written;
        };
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                ErrorKind::TimedOut,
                "the other side takes nothing any more",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Plain(Socket::Tcp(_)) => "Stream(TCP)",
            Kind::Plain(Socket::Unix(_)) => "Stream(unix)",
            Kind::Tls(_) => "Stream(TLS)",
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Socket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.before.is_empty() {
            let size = this.before.len().min(buffer.remaining());
            buffer.put_slice(&this.before[..size]);
            this.before.advance(size);
            return Poll::Ready(Ok(()));
        }
        match &mut this.kind {
            Kind::Plain(Socket::Tcp(stream)) => Pin::new(stream).poll_read(cx, buffer),
            Kind::Plain(Socket::Unix(stream)) => Pin::new(stream).poll_read(cx, buffer),
            Kind::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .writing(cx, |stream, cx| stream.poll_write(cx, bytes))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .writing(cx, |stream, cx| stream.poll_write_vectored(cx, pieces))
    }
    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            Kind::Plain(socket) => socket.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut()
            .writing(cx, |stream, cx| stream.poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut()
            .writing(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
