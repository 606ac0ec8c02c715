//! What is to be written to a connection, where most of it is the same for many.

use std::{
    io::{self, ErrorKind, IoSlice},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// Bytes that are written together, about.
const TOGETHER: usize = 4 << 10;

/// Bytes to be written. Those that others are sent, too, are not copied as long as nothing else is to be written before
/// them, and when all is written nothing is kept.
#[derive(Debug, Default)]
pub struct Output {
    shared: Bytes,
    /// Behind them.
    own: Vec<u8>,
}

impl Output {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.shared.len() + self.own.len()
    }
    /// Whether so much is to be written that nothing should be put behind it.
    pub fn is_full(&self) -> bool {
        self.len() >= TOGETHER
    }
    /// Adds bytes that others may be sent, too.
    pub fn share(&mut self, bytes: &Bytes) {
        if self.is_empty() {
            self.shared = bytes.clone();
        } else {
            self.own.extend_from_slice(bytes);
        }
    }
    /// Where other bytes are added.
    pub fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }
    /// Writes until there is nothing left.
    pub fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let stream = Pin::new(&mut *stream);
            let written = if self.own.is_empty() {
                stream.poll_write(cx, &self.shared)
            } else if self.shared.is_empty() {
                stream.poll_write(cx, &self.own)
            } else {
                let both = [IoSlice::new(&self.shared), IoSlice::new(&self.own)];
                stream.poll_write_vectored(cx, &both)
            };
            let count = ready!(written)?;
            if count == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            let of_shared = count.min(self.shared.len());
            self.shared.advance(of_shared);
            if self.shared.is_empty() {
                // Lets go of what others may hold, and does not move what is left however often some of it is taken.
                self.shared = mem::take(&mut self.own).into();
                self.shared.advance(count - of_shared);
            }
            if self.is_empty() {
                self.shared = Bytes::new();
            }
        }
        Pin::new(stream).poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes a few bytes at a time.
    struct Narrow(Vec<u8>, usize);

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn bytes_are_written_in_order_however_few_are_taken_and_then_nothing_is_kept() {
        let shared = Bytes::from_static(b"for all");
        for at_a_time in 1..20 {
            let (mut output, mut stream) = (Output::default(), Narrow(Vec::new(), at_a_time));
            let mut cx = Context::from_waker(Waker::noop());
            output.share(&shared);
            assert_eq!(output.shared.as_ptr(), shared.as_ptr());
            output.own().extend_from_slice(b", for one");
            output.share(&shared);
            assert!(output.poll_write(&mut stream, &mut cx).is_ready());
            assert_eq!(stream.0, b"for all, for onefor all");
            assert!(output.is_empty() && output.own.capacity() == 0);
            stream.1 = 0;
            output.share(&shared);
            let written = output.poll_write(&mut stream, &mut cx);
            assert!(matches!(written, Poll::Ready(Err(_))));
        }
    }
}
