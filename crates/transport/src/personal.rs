//! Which requests are answered for one client alone, as far as lately seen: to subgraphs, and, with a memory of their own,
//! whole operations.
//!
//! Whoever joins such a request waits for an answer that is somebody else's, and asks only then. Where a subgraph sets a
//! cookie with every answer, as load balancers do that keep clients where they are, all who ask at the same time would take
//! twice as long. So it is remembered for a while that an equal body was answered so, and such requests are not shared.

use std::{
    cell::RefCell,
    hash::{BuildHasher, Hash, RandomState},
    time::Duration,
};

use tokio::time::Instant;

/// How long it is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Most requests that are remembered; of two in one place the later one is.
const PLACES: usize = 256;

/// The requests of one worker that were answered so. What they are known by is the same for all clients: headers, which
/// tell clients apart, are no part of it.
#[derive(Debug, Default)]
pub struct Personal {
    hasher: RandomState,
    /// Empty until there is one.
    places: RefCell<Vec<Option<(u64, Instant)>>>,
}

impl Personal {
    /// A request was answered for one client alone.
    pub fn note(&self, request: impl Hash) {
        let hash = self.hasher.hash_one(request);
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize(PLACES, None);
        }
        places[hash as usize % PLACES] = Some((hash, Instant::now() + REMEMBERED));
    }
    /// Whether an equal request was lately.
    pub fn knows(&self, request: impl Hash) -> bool {
        if self.places.borrow().is_empty() {
            return false;
        }
        // Two that are equal only share less than they might.
        let hash = self.hasher.hash_one(request);
        let known = self.places.borrow()[hash as usize % PLACES];
        known.is_some_and(|(known, until)| known == hash && Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_remembered_for_a_while() {
        let (a, b) = (("a", b"{me}"), ("b", b"{me}"));
        let personal = Personal::default();
        assert!(!personal.knows(a));
        personal.note(a);
        assert!(personal.knows(a));
        assert!(!personal.knows(b) && !personal.knows(("a", b"{top}")));
        tokio::time::advance(REMEMBERED).await;
        assert!(!personal.knows(a));
    }
}
