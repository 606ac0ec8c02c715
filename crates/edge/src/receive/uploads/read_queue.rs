//! Who may read: one request at a time, the one whose first file comes earliest.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;

/// Requests that want files.
#[derive(Default)]
pub(super) struct ReadQueue {
    /// Number and first file of each.
    waiting: RefCell<Vec<(u64, usize)>>,
    next: Cell<u64>,
    busy: Cell<bool>,
    changed: Notify,
}

/// A request's place; given up with it.
pub(super) struct ReadPermit<'a> {
    queue: &'a ReadQueue,
    number: u64,
    reading: bool,
}

impl ReadQueue {
    /// A place for a request whose first file is `first`.
    pub(super) fn join(&self, first: usize) -> ReadPermit<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        self.waiting.borrow_mut().push((number, first));
        ReadPermit {
            queue: self,
            number,
            reading: false,
        }
    }
}

impl ReadPermit<'_> {
    fn is_first(&self) -> bool {
        let waiting = self.queue.waiting.borrow();
        let first = waiting.iter().min_by_key(|(number, file)| (*file, *number));
        first.is_some_and(|(number, _)| *number == self.number)
    }
    /// Waits until this request may read.
    pub(super) async fn granted(&mut self) {
        loop {
            let changed = self.queue.changed.notified();
            if self.is_first() && !self.queue.busy.get() {
                self.queue.busy.set(true);
                self.reading = true;
                return;
            }
            changed.await;
        }
    }
}

impl Drop for ReadPermit<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting.borrow_mut();
        waiting.retain(|(number, _)| *number != self.number);
        if self.reading {
            self.queue.busy.set(false);
        }
        self.queue.changed.notify_waiters();
    }
}
