//! The caches that a memory budget can make give up memory.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicUsize},
};

/// A cache that gives up memory.
pub trait Reclaim: Send + Sync + fmt::Debug {
    /// Gives up at least so many bytes, or all that it holds. Called on threads of requests.
    fn reclaim(&self, bytes: usize);
}

/// The caches of a process that give up memory.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    list: Mutex<Vec<Weak<dyn Reclaim>>>,
    /// Bytes that all of them hold.
    pub(crate) bytes: AtomicUsize,
}

impl Caches {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn Reclaim>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caches that exist. Copies the list: a cache may drop the last reference to an object that takes the lock.
    pub(crate) fn living(&self) -> Vec<Arc<dyn Reclaim>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
