//! What the parts of trusted documents share: the time by which they end, whose they are, and locks.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use ogive_config::DocumentSourceOptions;
use ogive_documents::ManifestEntry;

/// The client of a source is that of its documents, unless they say so themselves.
pub(super) fn named(entries: &mut [ManifestEntry], options: &DocumentSourceOptions) {
    for entry in entries {
        if entry.client.is_none() {
            entry.client.clone_from(&options.client_name);
        }
    }
}

/// Seconds since 1970.
pub(crate) fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
