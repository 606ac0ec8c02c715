//! The operation cache (L0): raw document and operation name to everything that follows from them.
//!
//! A hit skips parsing, validation, normalisation and planning. Entries are keyed by the whole text, not by a hash of
//! it, so two documents can never be taken for each other. Only valid operations are kept.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use ogive_operation::Operation;
use ogive_plan::Plan;
use ogive_syntax::{Document, ast::OperationDefinition};
use quick_cache::{Equivalent, Weighter, sync::Cache};

/// A valid operation, and its plan once there is one.
#[derive(Debug)]
pub struct PreparedOperation {
    /// The parsed document.
    pub document: Document,
    /// The operation's definition.
    pub definition: OperationDefinition,
    /// The normal form.
    pub operation: Operation,
    /// The plan; set by stop 3.
    pub plan: OnceLock<Arc<Plan>>,
}

/// The cache of one schema.
#[derive(Debug)]
pub struct OperationCache {
    entries: Option<Cache<Key, Arc<PreparedOperation>, ByText, foldhash::fast::RandomState>>,
}

/// A document of so many bytes counts as one more entry, so that few huge documents cannot hold all memory.
const BYTES_PER_ENTRY: usize = 16 << 10;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    /// Shared with the document of the entry.
    text: Arc<str>,
    operation_name: Option<Box<str>>,
}

struct KeyRef<'a> {
    text: &'a str,
    operation_name: Option<&'a str>,
}

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
        *self.text == *key.text && self.operation_name == key.operation_name.as_deref()
    }
}

#[derive(Clone, Debug)]
struct ByText;

impl Weighter<Key, Arc<PreparedOperation>> for ByText {
    fn weight(&self, key: &Key, _: &Arc<PreparedOperation>) -> u64 {
        1 + (key.text.len() / BYTES_PER_ENTRY) as u64
    }
}

impl OperationCache {
    /// A cache of at most `size` entries; `None` keeps nothing.
    pub fn new(size: Option<usize>) -> Self {
        OperationCache {
            entries: size.map(|size| {
                Cache::with(
                    size,
                    size as u64,
                    ByText,
                    foldhash::fast::RandomState::default(),
                    quick_cache::sync::DefaultLifecycle::default(),
                )
            }),
        }
    }
    /// The entry of this document and operation name.
    pub fn get(&self, text: &str, operation_name: Option<&str>) -> Option<Arc<PreparedOperation>> {
        self.entries.as_ref()?.get(&KeyRef {
            text,
            operation_name,
        })
    }
    /// Keeps an entry.
    pub fn insert(&self, operation_name: Option<&str>, entry: Arc<PreparedOperation>) {
        if let Some(entries) = &self.entries {
            let key = Key {
                text: Arc::clone(entry.document.source_arc()),
                operation_name: operation_name.map(Into::into),
            };
            entries.insert(key, entry);
        }
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
