//! A byte stream of either side: TCP or a unix socket, with or without TLS.
//!
//! Bytes that were looked at before anybody knew what
//! they are come first when it is read, and whoever does not take what is written to it within a time is given up.
//!
//! A socket may have megabytes for whoever reads it, and room for as many, and what reads and writes here goes on until
//! it has to wait. So it has to wait after some bytes, until others on the thread have had their turn.

use std::{
    fmt,
    future::{Future, poll_fn},
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use rustix::{
    io::Errno,
    net::{RecvFlags, sockopt},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    task::coop::unconstrained,
    time::Sleep,
};
use tokio_rustls::TlsStream;

/// Bytes that are read or written before others have their turn; most in one go.
const TURN: usize = 256 << 10;

/// Pieces that are written in one go, at most, where they are too much for a turn.
const PIECES_MAX: usize = 64;

/// How often TCP asks whether the other side is there before it gives up.
const KEEP_ALIVE_PROBES: u32 = 3;

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
    turn: usize,
    /// Bytes that were read and written since others had their turn.
    moved: usize,
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
            turn: TURN,
            moved: 0,
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
    /// Lets others have their turn after so many bytes, instead of 256 KiB; for what takes long to look at.
    pub fn set_turn(&mut self, bytes: usize) {
        self.turn = bytes;
    }
    /// Waits until others had their turn, if it is theirs.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.moved < self.turn {
            return Poll::Ready(());
        }
        self.moved = 0;
        // Wakes this task behind all others, and behind what the network has brought meanwhile.
        pin!(tokio::task::yield_now()).poll(cx)
    }
    /// Whether both sides agreed on HTTP/2 during the TLS handshake.
    pub fn agreed_on_http2(&self) -> bool {
        match &self.kind {
            Kind::Plain(_) => false,
            Kind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    /// The certificate that the other side has shown during the TLS handshake, as DER.
    pub fn peer_certificate(&self) -> Option<Bytes> {
        let Kind::Tls(stream) = &self.kind else {
            return None;
        };
        let shown = stream.get_ref().1.peer_certificates()?;
        shown.first().map(|first| Bytes::copy_from_slice(first))
    }

    /// Whether the other side has said nothing, as far as the reactor knows: no system call, unless something came. An
    /// idle connection of which this is not true must not be used.
    pub fn is_quiet(&mut self) -> bool {
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
    pub fn is_silent(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::net::recv(self.as_fd(), &mut [0; 1], flags)
            .is_err_and(|error| error == Errno::AGAIN || error == Errno::WOULDBLOCK)
    }

    /// The same socket once more, for whoever only watches it.
    pub fn watched(&self) -> io::Result<Socket> {
        let socket = match &self.kind {
            Kind::Plain(socket) => socket,
            Kind::Tls(stream) => stream.get_ref().0,
        };
        let copy = self.as_fd().try_clone_to_owned()?;
        match socket {
            Socket::Tcp(_) => TcpStream::from_std(copy.into()).map(Socket::Tcp),
            Socket::Unix(_) => UnixStream::from_std(copy.into()).map(Socket::Unix),
        }
    }

    /// Lets TCP ask whether the other side is there when nothing was said for so long, for connections on which nothing
    /// may be said for long.
    pub fn keep_alive(&self, interval: Duration) {
        let socket = match &self.kind {
            Kind::Plain(socket) => socket,
            Kind::Tls(stream) => stream.get_ref().0,
        };
        if let Socket::Tcp(stream) = socket {
            // Whole seconds, at least one.
            let interval = interval.max(Duration::from_secs(1));
            let set = sockopt::set_socket_keepalive(stream, true)
                .and_then(|()| sockopt::set_tcp_keepidle(stream, interval))
                .and_then(|()| sockopt::set_tcp_keepintvl(stream, interval))
                .and_then(|()| sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_PROBES));
            if let Err(error) = set {
                tracing::debug!(%error, "TCP keeps no watch over a connection");
            }
        }
    }

    /// Whether it is TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.kind, Kind::Tls(_))
    }

    /// Says that nothing will be written any more, as far as there is a word for it besides closing, and as far as that
    /// does not have to be waited for. (RFC 8446, section 6.1: without it nobody knows whether that was the end.)
    pub fn end(&mut self) {
        if let Kind::Tls(stream) = &mut self.kind {
            let mut context = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut **stream).poll_shutdown(&mut context);
        }
    }

    fn moved_by(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.moved += count,
            Poll::Ready(Err(_)) => {}
            // Others have their turn now.
            Poll::Pending => self.moved = 0,
        }
        written
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

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let socket = match &self.kind {
            Kind::Plain(socket) => socket,
            Kind::Tls(stream) => stream.get_ref().0,
        };
        match socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
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
        ready!(this.poll_turn(cx));
        let (before, most) = (buffer.filled().len(), this.turn as u64);
        let read = match &mut this.kind {
            Kind::Plain(Socket::Tcp(stream)) => {
                Pin::new(&mut stream.take(most)).poll_read(cx, buffer)
            }
            Kind::Plain(Socket::Unix(stream)) => {
                Pin::new(&mut stream.take(most)).poll_read(cx, buffer)
            }
            Kind::Tls(stream) => Pin::new(&mut stream.take(most)).poll_read(cx, buffer),
        };
        if read.is_pending() {
            this.moved = 0
        } else {
            this.moved += buffer.filled().len() - before
        }
        read
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_turn(cx));
        let bytes = &bytes[..bytes.len().min(this.turn)];
        let written = this.writing(cx, |stream, cx| stream.poll_write(cx, bytes));
        this.moved_by(written)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_turn(cx));
        let mut left = this.turn;
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() <= left {
            let written = this.writing(cx, |stream, cx| stream.poll_write_vectored(cx, pieces));
            return this.moved_by(written);
        }
        let mut within = [io::IoSlice::new(&[]); PIECES_MAX];
        for (place, piece) in within.iter_mut().zip(pieces) {
            *place = io::IoSlice::new(&piece[..piece.len().min(left)]);
            left -= place.len();
        }
        let within = &within[..pieces.len().min(PIECES_MAX)];
        let written = this.writing(cx, |stream, cx| stream.poll_write_vectored(cx, within));
        this.moved_by(written)
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    const SMALL: usize = 1_000;
    const ALL: usize = 10 * SMALL;

    /// What a future gives, and how often it had to wait.
    async fn waiting<F: Future>(future: F) -> (F::Output, usize) {
        let mut future = pin!(future);
        let mut waited = 0;
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            waited += usize::from(polled.is_pending());
            polled.map(|output| (output, waited))
        })
        .await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn others_have_their_turn_after_some_bytes() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut stream = Stream::plain(Socket::Unix(one));
        stream.set_turn(SMALL);
        let bytes = vec![b'x'; ALL];
        let halves = bytes.split_at(SMALL / 2);
        for written in [0, SMALL, 2 * SMALL] {
            let (count, waited) = match written {
                0 => waiting(stream.write(&bytes)).await,
                SMALL => {
                    let pieces = [io::IoSlice::new(halves.0), io::IoSlice::new(halves.1)];
                    waiting(stream.write_vectored(&pieces)).await
                }
                _ => waiting(stream.write_vectored(&[io::IoSlice::new(&bytes)])).await,
            };
            assert_eq!(count.unwrap(), SMALL);
            assert_eq!(waited, usize::from(written > 0), "{written}");
        }
        let mut room = vec![0; ALL];
        other.read_exact(&mut room[..3 * SMALL]).await.unwrap();
        // All of it is there at once.
        other.write_all(&bytes).await.unwrap();
        let (mut read, mut waits) = (0, 0);
        while read < ALL {
            let (count, waited) = waiting(stream.read(&mut room)).await;
            let count = count.unwrap();
            assert_eq!(count, SMALL);
            read += count;
            waits += waited;
        }
        assert!(waits >= 9, "{waits}");
    }
}
