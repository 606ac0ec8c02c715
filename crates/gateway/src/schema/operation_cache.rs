//! The operation cache (L0): raw document and operation name to everything that follows from them.
//!
//! A hit skips parsing, validation, normalisation and planning. Entries are found by a keyed hash and told apart by the
//! whole text, so two documents can never be taken for each other. Only valid operations are kept, and once the cache is
//! more than a sixteenth full only those that come twice ([`crate::schema::doorkeeper`]).
//!
//! Documents that differ in text but not in meaning share their plan one level below ([`crate::schema::plan_cache`]).

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use quick_cache::{Equivalent, Weighter, sync::Cache};

use ogive_edge::receive::Delivery;

use crate::schema::{
    cache_limits::{CacheLimits, SchemaCache},
    doorkeeper::Doorkeeper,
    operation::PreparedOperation,
};

/// The cache of one schema.
#[derive(Debug)]
pub struct OperationCache {
    entries: Option<SchemaCache<Key, Arc<PreparedOperation>, ByBytes>>,
    doorkeeper: Doorkeeper,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    /// Shared with the document of the entry.
    text: Arc<str>,
    operation_name: Option<Box<str>>,
    delivery: Delivery,
}

struct KeyRef<'a> {
    text: &'a str,
    operation_name: Option<&'a str>,
    delivery: Delivery,
}

// How they are answered is not hashed: few documents are asked for in both ways.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&*self.text, self.operation_name.as_deref()).hash(state);
    }
}
impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.text, self.operation_name).hash(state);
    }
}
impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.text == *key.text
            && self.operation_name == key.operation_name.as_deref()
            && self.delivery == key.delivery
    }
}

#[derive(Clone, Debug)]
struct ByBytes(CacheLimits);

impl Weighter<Key, Arc<PreparedOperation>> for ByBytes {
    fn weight(&self, key: &Key, entry: &Arc<PreparedOperation>) -> u64 {
        debug_assert_eq!(key.text.len(), entry.document.source().len());
        self.0.weight(entry.heap_bytes())
    }
}

impl OperationCache {
    /// A cache within limits; `None` keeps nothing.
    pub fn new(limits: Option<CacheLimits>) -> Self {
        OperationCache {
            doorkeeper: Doorkeeper::default(),
            entries: limits.map(|limits| limits.cache(ByBytes(limits))),
        }
    }
    /// The entry of this document and operation name, answered in this way.
    pub fn get(
        &self,
        text: &str,
        operation_name: Option<&str>,
        delivery: Delivery,
    ) -> Option<Arc<PreparedOperation>> {
        self.entries.as_ref()?.get(&KeyRef {
            text,
            operation_name,
            delivery,
        })
    }
    /// Keeps an entry that came for the second time, or for the first while there is much room.
    pub fn admit(&self, operation_name: Option<&str>, entry: Arc<PreparedOperation>) {
        let Some(entries) = &self.entries else { return };
        let key = (entry.document.source(), operation_name);
        if self
            .doorkeeper
            .admits(key, entries.weight(), entries.capacity())
        {
            self.insert(operation_name, entry);
        }
    }
    /// Keeps an entry.
    pub fn insert(&self, operation_name: Option<&str>, entry: Arc<PreparedOperation>) {
        if let Some(entries) = &self.entries {
            let key = Key {
                text: Arc::clone(entry.document.source_arc()),
                operation_name: operation_name.map(Into::into),
                delivery: entry.delivery,
            };
            entries.insert(key, entry);
        }
    }
    /// Every entry with its operation name, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = (Option<Box<str>>, Arc<PreparedOperation>)> + '_ {
        let entries = self.entries.iter().flat_map(Cache::iter);
        entries.map(|(key, entry)| (key.operation_name, entry))
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, Cache::len)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
