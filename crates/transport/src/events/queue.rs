//! Events of one subscription over WebSocket that wait for their reader: bounded by number and bytes.
//!
//! How the stream ends stands beside the queue, so that it is told however full that is.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::error::ExchangeError;

/// How a stream ended.
pub(crate) enum End {
    /// The subscription is over.
    Complete,
    /// It failed.
    Failed(ExchangeError),
}

/// An event with the room that it takes.
struct Waiting {
    event: Bytes,
    _room: OwnedSemaphorePermit,
}

/// Where events are put.
pub(crate) struct Feed {
    events: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    room_max: usize,
    end: Arc<OnceLock<End>>,
}

/// Where they are taken.
pub(crate) struct Queue {
    events: mpsc::Receiver<Waiting>,
    room: Arc<Semaphore>,
    end: Arc<OnceLock<End>>,
}

/// A queue for so many events of so many bytes altogether.
pub(crate) fn queue(events_max: usize, bytes_max: usize) -> (Feed, Queue) {
    let (sender, receiver) = mpsc::channel(events_max.max(1));
    let room_max = bytes_max.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let room = Arc::new(Semaphore::new(room_max));
    let end = Arc::new(OnceLock::new());
    let feed = Feed {
        events: sender,
        room: Arc::clone(&room),
        room_max,
        end: Arc::clone(&end),
    };
    let queue = Queue {
        events: receiver,
        room,
        end,
    };
    (feed, queue)
}

impl Feed {
    /// An event that is larger than all room takes all of it.
    fn bytes(&self, event: &Bytes) -> u32 {
        event.len().clamp(1, self.room_max) as u32
    }

    /// Puts an event; gives it back if there is no room now.
    pub(crate) fn put(&self, event: Bytes) -> Result<(), Bytes> {
        let bytes = self.bytes(&event);
        let room = Arc::clone(&self.room);
        let Ok(slot) = self.events.try_reserve() else {
            // Nobody reads any more: there is always room.
            return if self.events.is_closed() {
                Ok(())
            } else {
                Err(event)
            };
        };
        match room.try_acquire_many_owned(bytes) {
            Ok(room) => slot.send(Waiting { event, _room: room }),
            Err(_) if self.events.is_closed() => {}
            Err(_) => return Err(event),
        }
        Ok(())
    }

    /// Waits until there is room for an event; may be given up at any time.
    pub(crate) async fn has_room(&self, event: &Bytes) {
        let slot = self.events.reserve().await;
        if slot.is_ok() {
            // Closed when nobody reads any more.
            let _ = self.room.acquire_many(self.bytes(event)).await;
        }
    }

    /// Says how the stream ends.
    pub(crate) fn end(self, end: End) {
        let _ = self.end.set(end);
    }
}

impl Queue {
    /// The next event, or how the stream ended; `None` if nobody has said.
    pub(crate) async fn next(&mut self) -> Result<Bytes, Option<End>> {
        match self.events.recv().await {
            Some(waiting) => Ok(waiting.event),
            None => Err(Arc::get_mut(&mut self.end).and_then(OnceLock::take)),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.room.close();
    }
}
