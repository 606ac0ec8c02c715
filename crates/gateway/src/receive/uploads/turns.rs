//! Who may read: one request at a time, the one whose first file comes earliest.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;

/// Requests that want files.
#[derive(Default)]
pub(super) struct Turns {
    /// Number and first file of each.
    waiting: RefCell<Vec<(u64, usize)>>,
    next: Cell<u64>,
    busy: Cell<bool>,
    changed: Notify,
}

/// A request's place; given up with it.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
    reading: bool,
}

impl Turns {
    /// A place for a request whose first file is `first`.
    pub(super) fn join(&self, first: usize) -> Turn<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        self.waiting.borrow_mut().push((number, first));
        Turn {
            turns: self,
            number,
            reading: false,
        }
    }
}

impl Turn<'_> {
    fn is_first(&self) -> bool {
        let waiting = self.turns.waiting.borrow();
        let first = waiting.iter().min_by_key(|(number, file)| (*file, *number));
        first.is_some_and(|(number, _)| *number == self.number)
    }
    /// Waits until it is this request's turn.
    pub(super) async fn comes(&mut self) {
        loop {
            let changed = self.turns.changed.notified();
            if self.is_first() && !self.turns.busy.get() {
                self.turns.busy.set(true);
                self.reading = true;
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = self.turns.waiting.borrow_mut();
        waiting.retain(|(number, _)| *number != self.number);
        if self.reading {
            self.turns.busy.set(false);
        }
        self.turns.changed.notify_waiters();
    }
}
