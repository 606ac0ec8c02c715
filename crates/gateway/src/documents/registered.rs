//! Documents that clients have registered, as far as there is room.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};

use super::sha256;

/// Documents that clients have registered.
#[derive(Debug)]
pub struct Registered {
    entries: Cache<[u8; 32], Arc<str>, BySize>,
}

#[derive(Clone, Debug)]
struct BySize;

impl Weighter<[u8; 32], Arc<str>> for BySize {
    fn weight(&self, _: &[u8; 32], text: &Arc<str>) -> u64 {
        1 + (text.len() >> 14) as u64
    }
}

impl Registered {
    /// Room for so many documents.
    pub fn new(size: usize) -> Self {
        Registered {
            entries: Cache::with_weighter(size, size as u64, BySize),
        }
    }
    /// Remembers a document; whether it was not known before.
    pub fn insert(&self, hash: [u8; 32], text: &str) -> bool {
        let is_new = self.entries.get(&hash).is_none();
        if is_new {
            self.entries.insert(hash, text.into());
        }
        is_new
    }
    /// Remembers the document of a request that has only its hash, if it is `text`: what others wrote down is not believed.
    pub(crate) fn insert_found(&self, hash: [u8; 32], text: &str) {
        if sha256(text) == hash {
            self.insert(hash, text);
        }
    }
    /// The document of a hash.
    pub(super) fn get(&self, hash: &[u8; 32]) -> Option<Arc<str>> {
        self.entries.get(hash)
    }
    /// Whether a document is known.
    pub(crate) fn has(&self, hash: &[u8; 32]) -> bool {
        self.entries.get(hash).is_some()
    }
    /// Number of documents.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
