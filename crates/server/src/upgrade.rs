//! Connections that become something else: after status 101 the bytes of an HTTP/1.1 connection belong to whoever answered
//! the request (RFC 9110, section 7.8).
//!
//! The connection keeps its place, its write time-out and its end: the deadline of draining cuts it off like any other.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What goes on with the bytes of an upgraded connection. When it ends, the connection is closed.
pub struct Upgrade(Box<dyn FnOnce(Upgraded) -> LocalFuture>);

impl Upgrade {
    /// Goes on with this.
    pub fn new<F: Future<Output = ()> + 'static>(
        go_on: impl FnOnce(Upgraded) -> F + 'static,
    ) -> Self {
        Upgrade(Box::new(|upgraded| Box::pin(go_on(upgraded))))
    }
    /// Goes on.
    pub(crate) fn go_on(self, upgraded: Upgraded) -> LocalFuture {
        self.0(upgraded)
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

/// What reads and writes.
trait Bytes: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Bytes for T {}

/// The bytes of an upgraded connection.
pub struct Upgraded {
    /// What the client sent behind its request.
    read: bytes::Bytes,
    bytes: Box<dyn Bytes>,
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgraded")
    }
}

impl Upgraded {
    /// `read`: what was read of it already.
    pub fn new(read: bytes::Bytes, bytes: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Self {
        let bytes = Box::new(bytes);
        Upgraded { read, bytes }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.bytes).poll_read(cx, buffer);
        }
        let most = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read.split_to(most));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(cx, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write_vectored(cx, pieces)
    }
    fn is_write_vectored(&self) -> bool {
        self.bytes.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(cx)
    }
}
