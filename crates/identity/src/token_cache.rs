//! Tokens that were proved once, by digest, until they end or their key is gone. A look-up costs a hash, a signature up to a
//! hundred times as much.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};

use crate::{caller::Caller, digest::Digest, jwk::Key};

/// What was found out about a token.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The second since 1970 from which on it does not hold.
    pub end: u64,
    /// The key that proved it.
    pub key: Arc<Key>,
    /// Bytes, about.
    pub size: usize,
}

/// Tokens that were proved.
#[derive(Debug)]
pub struct TokenCache(Cache<Digest, Verified, BySize, foldhash::fast::RandomState>);

#[derive(Clone, Debug)]
struct BySize;

impl Weighter<Digest, Verified> for BySize {
    fn weight(&self, _: &Digest, proved: &Verified) -> u64 {
        proved.size as u64
    }
}

/// What an entry has besides claims, about.
const ENTRY_BYTES: usize = 256;
/// A tree of claims takes so many times the bytes of its text, about.
const TREE: usize = 4;

/// The bytes of an entry made of a token of so many bytes.
pub fn size_of(token: usize) -> usize {
    ENTRY_BYTES + token * TREE
}

impl TokenCache {
    /// A cache of at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        let entries = bytes_max / size_of(512);
        TokenCache(Cache::with(
            entries.max(16),
            bytes_max as u64,
            BySize,
            foldhash::fast::RandomState::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }
    /// The token of a digest, if it still holds.
    pub fn get(&self, digest: &Digest, now: u64) -> Option<Arc<Caller>> {
        let proved = self.0.get(digest)?;
        let holds = now < proved.end && proved.key.is_good(now);
        if !holds {
            self.0.remove(digest);
            return None;
        }
        Some(proved.caller)
    }
    /// Remembers one.
    pub fn insert(&self, digest: Digest, proved: Verified) {
        self.0.insert(digest, proved);
    }
    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
