//! Messages to a coprocessor that are about to be sent as one list ([`fetch_batch`](super::fetch_batch)).

use std::cell::RefCell;

use bytes::Bytes;
use ogive_hooks::CoprocessorError;
use tokio::sync::oneshot;

/// A message, and who waits for what is said to it.
pub(super) type PendingMessage = (Vec<u8>, oneshot::Sender<Result<Bytes, CoprocessorError>>);

/// Messages that are about to be sent.
#[derive(Default)]
pub(crate) struct MessageBatch(RefCell<Vec<PendingMessage>>);

/// Asks for all. Given up, it gives up all who wait for it: nobody else would ask.
pub(super) struct BatchSender<'b>(Option<&'b MessageBatch>);

impl MessageBatch {
    /// Adds one; whether it is the first.
    pub(super) fn push(&self, waiting: PendingMessage) -> bool {
        let mut all = self.0.borrow_mut();
        all.push(waiting);
        all.len() == 1
    }
}

impl<'b> BatchSender<'b> {
    pub(super) fn of(batch: &'b MessageBatch) -> Self {
        BatchSender(Some(batch))
    }
    pub(super) fn take(mut self) -> Vec<PendingMessage> {
        let batch = self.0.take();
        batch.map_or_else(Vec::new, |batch| batch.0.take())
    }
}

impl Drop for BatchSender<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.0 {
            batch.0.take();
        }
    }
}
