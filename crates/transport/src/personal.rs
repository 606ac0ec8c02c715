//! Which requests are answered for one client alone, as far as lately seen.
//!
//! Whoever joins such a request waits for an answer that is somebody else's, and asks only then. Where a subgraph sets a
//! cookie with every answer, as load balancers do that keep clients where they are, all who ask at the same time would take
//! twice as long. So it is remembered for a while that an equal body was answered so, and such requests are not shared.

use std::{
    cell::RefCell,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::Instant;

use crate::Endpoint;

/// How long it is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Most requests that are remembered; of two in one place the later one is.
const PLACES: usize = 256;

/// The requests of one worker that were answered so.
#[derive(Debug, Default)]
pub(crate) struct Personal {
    hasher: RandomState,
    /// Empty until there is one.
    places: RefCell<Vec<Option<(u64, Instant)>>>,
}

impl Personal {
    /// A request was answered for one client alone.
    pub(crate) fn note(&self, endpoint: &Endpoint, body: &[u8]) {
        let hash = self.hash(endpoint, body);
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize(PLACES, None);
        }
        places[hash as usize % PLACES] = Some((hash, Instant::now() + REMEMBERED));
    }
    /// Whether an equal request was lately.
    pub(crate) fn knows(&self, endpoint: &Endpoint, body: &[u8]) -> bool {
        if self.places.borrow().is_empty() {
            return false;
        }
        let hash = self.hash(endpoint, body);
        let known = self.places.borrow()[hash as usize % PLACES];
        known.is_some_and(|(known, until)| known == hash && Instant::now() < until)
    }
    /// Two that are equal only share less than they might.
    fn hash(&self, endpoint: &Endpoint, body: &[u8]) -> u64 {
        self.hasher.hash_one((&*endpoint.name, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeaderRules, Traffic};

    #[tokio::test(start_paused = true)]
    async fn a_request_is_remembered_for_a_while() {
        let endpoint = |name| {
            Endpoint::new(
                name,
                "http://a/",
                Traffic::default(),
                HeaderRules::default(),
            )
        };
        let (a, b) = (endpoint("a"), endpoint("b"));
        let personal = Personal::default();
        assert!(!personal.knows(&a, b"{me}"));
        personal.note(&a, b"{me}");
        assert!(personal.knows(&a, b"{me}"));
        assert!(!personal.knows(&b, b"{me}") && !personal.knows(&a, b"{top}"));
        tokio::time::advance(REMEMBERED).await;
        assert!(!personal.knows(&a, b"{me}"));
    }
}
