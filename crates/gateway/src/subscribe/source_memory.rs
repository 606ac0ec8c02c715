//! What sources of events keep for as long as they run counts as memory of the process: variables in all their copies, and
//! documents, which no cache may keep any more.
//!
//! All sources count in one reservation, because one of its own takes a chunk at least, which is more than most sources keep.
//! A document counts once, however many sources there are of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ogive_base::{FastMap, MemoryBudget, OutOfMemory, Reservation};

use crate::schema::operation::PreparedOperation;

/// What all sources of the process keep.
#[derive(Debug)]
pub(crate) struct SourceMemory(Mutex<Held>);

#[derive(Debug)]
struct Held {
    memory: Reservation,
    /// By address.
    documents: FastMap<usize, HeldDocument>,
}

#[derive(Debug)]
struct HeldDocument {
    sources: usize,
    bytes: usize,
}

/// What one source keeps; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct SourceReservation {
    all: Arc<SourceMemory>,
    /// Nothing else gets its address as long as this is there.
    operation: Weak<PreparedOperation>,
    bytes: usize,
}

impl SourceMemory {
    /// Counts in a budget.
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Self {
        SourceMemory(Mutex::new(Held {
            memory: Reservation::new(budget),
            documents: FastMap::default(),
        }))
    }
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Counts the document of a source, and so many bytes besides, if there is memory for them.
    pub(crate) fn hold(
        self: &Arc<Self>,
        operation: &Arc<PreparedOperation>,
        bytes: usize,
    ) -> Result<SourceReservation, OutOfMemory> {
        let mut held = self.lock();
        let Held { memory, documents } = &mut *held;
        let address = Arc::as_ptr(operation) as usize;
        if let Some(document) = documents.get_mut(&address) {
            memory.grow(bytes)?;
            document.sources += 1;
        } else {
            let document = HeldDocument {
                sources: 1,
                bytes: operation.heap_bytes(),
            };
            memory.grow(bytes.saturating_add(document.bytes))?;
            documents.insert(address, document);
        }
        Ok(SourceReservation {
            all: Arc::clone(self),
            operation: Arc::downgrade(operation),
            bytes,
        })
    }
}

impl Drop for SourceReservation {
    fn drop(&mut self) {
        let mut held = self.all.lock();
        let Held { memory, documents } = &mut *held;
        memory.shrink(self.bytes);
        let address = self.operation.as_ptr() as usize;
        if let Some(document) = documents.get_mut(&address) {
            document.sources -= 1;
            if document.sources == 0 {
                memory.shrink(document.bytes);
                documents.remove(&address);
            }
        }
    }
}
