//! What this process has written to the store that processes share: registered documents, for as long as they are kept there.
//! All clients together have a limit on its bytes, and each of them has its share of that.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use ogive_base::{ShareLimits, Shortage};
use ogive_edge::client_shares::{ClientShare, ClientShares};

use super::SharedDocumentOptions;

/// A document counts as so many bytes at least: its key, and what is kept of it here.
const DOCUMENT_LEAST: usize = 1 << 10;

/// Documents in the store.
#[derive(Debug, Default)]
pub(crate) struct WrittenDocuments {
    bytes: Arc<ClientShares>,
    /// Those that are there, in the order in which they were written. No more than the limit has room for.
    kept: Mutex<VecDeque<WrittenDocument>>,
    is_told: AtomicBool,
}

#[derive(Debug)]
struct WrittenDocument {
    until: Instant,
    _bytes: ClientShare,
}

impl WrittenDocuments {
    /// Whether a document of so many bytes may be written for a client. Counts it if it may.
    pub(crate) fn admit(
        &self,
        client: Option<IpAddr>,
        bytes: usize,
        options: SharedDocumentOptions,
        limits: ShareLimits,
        now: Instant,
    ) -> bool {
        if bytes > options.document_bytes_max {
            return false;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.front().is_some_and(|first| first.until <= now) {
            kept.pop_front();
        }
        let taken = self.bytes.take(client, bytes.max(DOCUMENT_LEAST), limits);
        match (taken, now.checked_add(options.kept_for)) {
            (Ok(bytes), Some(until)) => {
                kept.push_back(WrittenDocument {
                    until,
                    _bytes: bytes,
                });
                true
            }
            (taken, _) => {
                self.tell(taken.err(), limits);
                false
            }
        }
    }
    /// Logs once that there is no room: clients decide how often.
    fn tell(&self, shortage: Option<Shortage>, limits: ShareLimits) {
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let of = match shortage {
            Some(Shortage::Own) => "one client has registered",
            _ => "clients have registered",
        };
        let (all, each) = (limits.all, limits.each);
        tracing::warn!(
            "{of} more documents than `apq.router.cache.max_shared_size` ({all} bytes, {each} for one client) has room for: \
             further ones are kept by this process only"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_writes_no_more_than_its_share_until_what_it_wrote_is_gone() {
        let written = WrittenDocuments::default();
        let limits = ShareLimits::of(1_000_000, 50);
        let day = Duration::from_secs(86_400);
        let options = SharedDocumentOptions {
            kept_for: day,
            document_bytes_max: 100_000,
            bytes_max: 1_000_000,
        };
        let start = Instant::now();
        let write = |client: u8, bytes, now| {
            let client = Some(IpAddr::from([10, 0, 0, client]));
            written.admit(client, bytes, options, limits, now)
        };
        assert!(!write(1, 100_001, start), "it is too large");
        let fills = |client, now| (0..10_000).filter(|_| write(client, 100_000, now)).count();
        assert_eq!(fills(1, start), 5);
        assert!(!write(1, 1, start));
        assert_eq!(fills(2, start), 5);
        assert!(!write(3, 1, start), "all of it is taken");
        assert!(!write(1, 1, start + day / 2));
        assert_eq!(fills(1, start + day), 5);
        assert_eq!(written.kept.lock().unwrap().len(), 5);
        // However small they are, there are not too many.
        let small = (0..10_000).filter(|_| write(2, 1, start + day)).count();
        assert_eq!(small, 500_000 / DOCUMENT_LEAST);
    }
}
