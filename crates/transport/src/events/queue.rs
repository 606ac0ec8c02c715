//! Events of one subscription over WebSocket that wait for their reader: bounded by number and bytes.
//!
//! There is one who puts and one who takes. A queue in which nothing waits holds next to nothing, and how the stream ends
//! stands beside what waits, so that it is told however full that is.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use ogive_failure::Failure;

/// How a stream ended.
pub(crate) enum End {
    /// The subscription is over.
    Complete,
    /// It failed.
    Failed(Failure),
}

struct Shared {
    events_max: usize,
    bytes_max: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Bytes>,
    /// Of them.
    bytes: usize,
    /// Boxed, as there is one at most.
    end: Option<Box<End>>,
    /// Nobody puts anything any more.
    is_over: bool,
    /// Nobody reads any more.
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Where events are put.
pub(crate) struct Feed(Arc<Shared>);

/// Where they are taken.
pub(crate) struct Queue(Arc<Shared>);

/// A queue for so many events of so many bytes altogether.
pub(crate) fn queue(events_max: usize, bytes_max: usize) -> (Feed, Queue) {
    let shared = Arc::new(Shared {
        events_max: events_max.max(1),
        bytes_max,
        waiting: Mutex::default(),
    });
    (Feed(Arc::clone(&shared)), Queue(shared))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Nobody who reads needs any; an event that is larger than all room waits alone.
    fn has_room(&self, waiting: &Waiting, event: &Bytes) -> bool {
        waiting.is_closed
            || waiting.events.is_empty()
            || (waiting.events.len() < self.events_max
                && waiting.bytes.saturating_add(event.len()) <= self.bytes_max)
    }
}

/// Wakes without the lock.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Feed {
    /// Puts an event; gives it back if there is no room now.
    pub(crate) fn put(&self, event: Bytes) -> Result<(), Bytes> {
        let mut waiting = self.0.lock();
        if !self.0.has_room(&waiting, &event) {
            return Err(event);
        }
        if waiting.is_closed {
            return Ok(());
        }
        waiting.bytes += event.len();
        waiting.events.push_back(event);
        let reader = waiting.reader.take();
        drop(waiting);
        wake(reader);
        Ok(())
    }

    /// Waits until there is room for an event; may be given up at any time.
    pub(crate) async fn has_room(&self, event: &Bytes) {
        poll_fn(|cx| {
            let mut waiting = self.0.lock();
            if self.0.has_room(&waiting, event) {
                return Poll::Ready(());
            }
            waiting.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Says how the stream ends.
    pub(crate) fn end(self, end: End) {
        self.0.lock().end = Some(Box::new(end));
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_over = true;
        let reader = waiting.reader.take();
        drop(waiting);
        wake(reader);
    }
}

impl Queue {
    /// The next event, or how the stream ended; `None` if nobody has said.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Option<End>>> {
        let mut waiting = self.0.lock();
        if let Some(event) = waiting.events.pop_front() {
            waiting.bytes -= event.len();
            let writer = waiting.writer.take();
            drop(waiting);
            wake(writer);
            return Poll::Ready(Ok(event));
        }
        if waiting.is_over {
            return Poll::Ready(Err(waiting.end.take().map(|end| *end)));
        }
        match &mut waiting.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_closed = true;
        waiting.bytes = 0;
        let events = std::mem::take(&mut waiting.events);
        let writer = waiting.writer.take();
        drop(waiting);
        drop(events);
        wake(writer);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }
    fn bytes(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    #[test]
    fn events_beyond_number_or_bytes_are_given_back_and_have_room_later() {
        for (events_max, bytes_max) in [(2, 100), (100, 2)] {
            let (feed, mut queue) = queue(events_max, bytes_max);
            assert_eq!(feed.put(bytes(1)), Ok(()));
            assert_eq!(feed.put(bytes(1)), Ok(()));
            let event = feed.put(bytes(1)).unwrap_err();
            let mut room = pin!(feed.has_room(&event));
            assert!(room.as_mut().poll(&mut cx()).is_pending());
            assert!(matches!(queue.poll_next(&mut cx()), Poll::Ready(Ok(_))));
            assert!(room.as_mut().poll(&mut cx()).is_ready());
        }
    }

    #[test]
    fn an_event_larger_than_all_room_waits_alone() {
        let (feed, mut queue) = queue(9, 2);
        assert_eq!(feed.put(bytes(9)), Ok(()));
        assert!(feed.put(bytes(1)).is_err());
        assert!(matches!(queue.poll_next(&mut cx()), Poll::Ready(Ok(event)) if event.len() == 9));
        assert_eq!(feed.put(bytes(1)), Ok(()));
    }

    #[test]
    fn the_end_is_told_behind_what_waits() {
        let (feed, mut queue) = queue(1, 1);
        assert_eq!(feed.put(bytes(1)), Ok(()));
        feed.end(End::Complete);
        assert!(matches!(queue.poll_next(&mut cx()), Poll::Ready(Ok(_))));
        let end = queue.poll_next(&mut cx());
        assert!(matches!(end, Poll::Ready(Err(Some(End::Complete)))));
    }

    #[test]
    fn where_nobody_reads_there_is_always_room_and_nothing_is_kept() {
        let (feed, queue) = queue(1, 1);
        assert_eq!(feed.put(bytes(1)), Ok(()));
        let event = feed.put(bytes(1)).unwrap_err();
        let mut room = pin!(feed.has_room(&event));
        assert!(room.as_mut().poll(&mut cx()).is_pending());
        drop(queue);
        assert!(room.as_mut().poll(&mut cx()).is_ready());
        assert_eq!(feed.put(bytes(1)), Ok(()));
        assert!(feed.0.lock().events.is_empty());
    }

    #[test]
    fn an_end_that_nobody_has_said_is_none() {
        let (feed, mut queue) = queue(1, 1);
        assert!(queue.poll_next(&mut cx()).is_pending());
        drop(feed);
        assert!(matches!(queue.poll_next(&mut cx()), Poll::Ready(Err(None))));
    }
}
