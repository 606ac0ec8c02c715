//! The operation cache (L0): raw document and operation name to everything that follows from them.
//!
//! A hit skips parsing, validation, normalisation and planning. Entries are found by a keyed hash and told apart by the
//! whole text, so two documents can never be taken for each other. Only valid operations are kept, and once the cache is
//! more than a sixteenth full only those that come twice ([`crate::doorkeeper`]).
//!
//! Documents that differ in text but not in meaning share their plan one level below ([`crate::plans`]).

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwapOption;
use ogive_base::BitSet;
use ogive_operation::Operation;
use ogive_syntax::{Document, ast::OperationDefinition};
use quick_cache::{Equivalent, Weighter, sync::Cache};

use crate::{doorkeeper::Doorkeeper, plan::PlannedOperation};

/// A valid operation, and its plan once there is one.
#[derive(Debug)]
pub struct PreparedOperation {
    /// The parsed document.
    pub document: Document,
    /// The operation's definition.
    pub definition: OperationDefinition,
    /// The normal form.
    pub operation: Operation,
    /// Codes of the limits that it exceeds and that are only measured.
    pub exceeded: Box<[&'static str]>,
    /// The plan; set by stop 3.
    pub planned: ArcSwapOption<PlannedOperation>,
    /// Override labels that can matter to its plan, by index; none for most operations.
    pub labels: Box<[u32]>,
    /// Its plans with some of them on.
    pub(crate) variants: Mutex<Vec<(BitSet, Arc<PlannedOperation>)>>,
}

impl PreparedOperation {
    /// Bytes on the heap, about; plans not counted.
    pub(crate) fn heap_bytes(&self) -> usize {
        let text = self.document.source().len() * (1 + TREE_BYTES_PER_TEXT_BYTE);
        text + self.operation.fields.len() * BYTES_PER_FIELD
    }
    /// Most variants kept with an operation; further ones are found a level below.
    const VARIANTS_MAX: usize = 16;

    /// The plan with these labels on, if it was made before.
    pub(crate) fn known(&self, on: &BitSet) -> Option<Arc<PlannedOperation>> {
        if on.is_empty() {
            return self.planned.load_full();
        }
        let variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let found = variants.iter().find(|(labels, _)| labels == on);
        found.map(|(_, planned)| Arc::clone(planned))
    }
    /// Keeps the plan with these labels on, instead of the one before; gives back what is kept.
    pub(crate) fn keep(&self, on: &BitSet, planned: PlannedOperation) -> Arc<PlannedOperation> {
        let planned = Arc::new(planned);
        if on.is_empty() {
            self.planned.store(Some(Arc::clone(&planned)));
            return planned;
        }
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = variants.iter_mut().find(|(labels, _)| labels == on) {
            kept.clone_from(&planned);
        } else if variants.len() < Self::VARIANTS_MAX {
            variants.push((on.clone(), Arc::clone(&planned)));
        }
        planned
    }
}

/// The cache of one schema.
#[derive(Debug)]
pub struct OperationCache {
    entries: Option<Cache<Key, Arc<PreparedOperation>, ByBytes, foldhash::fast::RandomState>>,
    doorkeeper: Doorkeeper,
}

/// Bounds of a cache: it holds neither more entries nor more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits {
    /// Most entries; default 1,000.
    pub entries_max: usize,
    /// Most bytes, as estimated; default 64 MiB.
    pub bytes_max: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        CacheLimits {
            entries_max: 1_000,
            bytes_max: 64 << 20,
        }
    }
}

impl CacheLimits {
    /// What an entry of so many bytes weighs: at least its share, so that both bounds hold.
    pub(crate) fn weight(&self, bytes: usize) -> u64 {
        let share = self.bytes_max / self.entries_max.max(1);
        bytes.max(share).max(1) as u64
    }
}

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
struct ByBytes(CacheLimits);

/// Bytes of syntax tree per byte of text, about.
pub(crate) const TREE_BYTES_PER_TEXT_BYTE: usize = 8;
/// Bytes of normal form per field, about.
const BYTES_PER_FIELD: usize = 400;

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
            entries: limits.map(|limits| {
                Cache::with(
                    limits.entries_max,
                    limits.bytes_max as u64,
                    ByBytes(limits),
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
            };
            entries.insert(key, entry);
        }
    }
    /// Document and operation name of every entry, in no particular order.
    pub fn documents(&self) -> impl Iterator<Item = (Arc<str>, Option<Box<str>>)> + '_ {
        let entries = self.entries.iter().flat_map(Cache::iter);
        entries.map(|(key, _)| (key.text, key.operation_name))
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
