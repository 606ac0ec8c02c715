//! Bodies that come in parts: what sends them, and what a connection takes them from.
//!
//! A connection asks for the next part when it has room for it, and each part is written as soon as it is there. Whoever
//! makes the parts has two ways: a stream that the connection polls itself, or a channel, by which parts may be made ahead
//! of the client up to a number of bytes. Either way the end of the client is felt: the stream is dropped, and the
//! channel's sender learns of it.
//!
//! Parts are not encoded: an encoder for each of ten thousand open streams would be gigabytes.

use std::{
    cell::RefCell,
    collections::VecDeque,
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_core::Stream;

/// Parts as they come. Its end is the end of the body, and an error cuts the body off where it is, which clients notice.
pub type PartStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>>>>;

/// Parts that a connection takes.
pub(crate) struct Parts(pub(crate) PartStream);

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

/// A channel for the parts of one body on the thread of its connection. So many bytes may wait in it; a part that is larger
/// waits alone.
pub fn channel(bytes_max: usize) -> (PartSender, PartReceiver) {
    let queue = Rc::new(RefCell::new(Queue::default()));
    let sender = PartSender {
        queue: Rc::clone(&queue),
        bytes_max,
    };
    (sender, PartReceiver { queue })
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<io::Result<Bytes>>,
    /// Bytes in them.
    bytes: usize,
    /// There is no sender any more.
    is_complete: bool,
    /// There is nobody who takes them any more.
    is_closed: bool,
    /// Who waits for a part.
    reader: Option<Waker>,
    /// Who waits for room, or for the end of the client.
    writer: Option<Waker>,
}

/// The client has left; nobody takes what comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// Sends the parts of one body. Dropping it is the end of the body.
pub struct PartSender {
    queue: Rc<RefCell<Queue>>,
    bytes_max: usize,
}

impl PartSender {
    /// Sends the next part as soon as there is room for it.
    pub async fn send(&mut self, part: Bytes) -> Result<(), Closed> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        self.push(Ok(part));
        Ok(())
    }
    /// Waits for room.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let mut queue = self.queue.borrow_mut();
        if queue.is_closed {
            return Poll::Ready(Err(Closed));
        }
        if queue.bytes < self.bytes_max || queue.parts.is_empty() {
            return Poll::Ready(Ok(()));
        }
        queue.writer = Some(cx.waker().clone());
        Poll::Pending
    }
    /// Waits until the client has left.
    pub async fn closed(&mut self) {
        poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            if queue.is_closed {
                return Poll::Ready(());
            }
            queue.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
    /// Cuts the body off, so that the client does not take it for a whole one.
    pub fn abort(self, error: io::Error) {
        self.push(Err(error));
    }
    fn push(&self, part: io::Result<Bytes>) {
        let mut queue = self.queue.borrow_mut();
        if part.as_ref().is_ok_and(Bytes::is_empty) {
            return;
        }
        queue.bytes += part.as_ref().map_or(0, Bytes::len);
        queue.parts.push_back(part);
        wake(&mut queue.reader);
    }
}

impl Drop for PartSender {
    fn drop(&mut self) {
        let mut queue = self.queue.borrow_mut();
        queue.is_complete = true;
        wake(&mut queue.reader);
    }
}

/// The stream of what a [`PartSender`] sends.
pub struct PartReceiver {
    queue: Rc<RefCell<Queue>>,
}

impl Stream for PartReceiver {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut queue = self.queue.borrow_mut();
        if let Some(part) = queue.parts.pop_front() {
            queue.bytes -= part.as_ref().map_or(0, Bytes::len);
            wake(&mut queue.writer);
            return Poll::Ready(Some(part));
        }
        if queue.is_complete {
            return Poll::Ready(None);
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for PartReceiver {
    fn drop(&mut self) {
        let mut queue = self.queue.borrow_mut();
        queue.is_closed = true;
        queue.parts = VecDeque::new();
        queue.bytes = 0;
        wake(&mut queue.writer);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }
    async fn next(receiver: &mut PartReceiver) -> Option<Bytes> {
        let part = poll_fn(|cx| Pin::new(&mut *receiver).poll_next(cx)).await;
        part.map(|part| part.expect("no error was sent"))
    }

    #[test]
    fn parts_come_in_order_and_end_with_their_sender() {
        let (mut sender, mut receiver) = channel(10);
        assert_eq!(poll(next(&mut receiver)), Poll::Pending);
        for part in ["a", "", "b"] {
            assert_eq!(poll(sender.send(part.into())), Poll::Ready(Ok(())));
        }
        drop(sender);
        assert_eq!(poll(next(&mut receiver)), Poll::Ready(Some("a".into())));
        assert_eq!(poll(next(&mut receiver)), Poll::Ready(Some("b".into())));
        assert_eq!(poll(next(&mut receiver)), Poll::Ready(None));
    }

    #[test]
    fn a_sender_waits_while_so_many_bytes_are_not_taken() {
        let (mut sender, mut receiver) = channel(4);
        let large = Bytes::from_static(b"more than four");
        assert_eq!(poll(sender.send(large.clone())), Poll::Ready(Ok(())));
        assert_eq!(poll(sender.send("b".into())), Poll::Pending);
        assert_eq!(poll(next(&mut receiver)), Poll::Ready(Some(large)));
        assert_eq!(poll(sender.send("c".into())), Poll::Ready(Ok(())));
        assert_eq!(poll(next(&mut receiver)), Poll::Ready(Some("c".into())));
    }

    #[test]
    fn a_sender_feels_that_the_client_has_left() {
        let (mut sender, receiver) = channel(4);
        assert_eq!(poll(sender.closed()), Poll::Pending);
        drop(receiver);
        assert_eq!(poll(sender.closed()), Poll::Ready(()));
        assert_eq!(poll(sender.send("a".into())), Poll::Ready(Err(Closed)));
    }
}
