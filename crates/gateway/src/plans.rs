//! The plan cache (L1): canonical form to plan. Documents that differ in fragments, whitespace, names of operations or
//! literal arguments share one plan.
//!
//! One planner run per form: requests that need the same plan wait for the one that makes it. Plans are weighed by the
//! memory they take. Plans of a bundle were made ahead of time; they are always there and never evicted.
//!
//! A failed run leaves nothing behind: the next request tries again.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ogive_base::FastMap;
use ogive_plan::Plan;
use quick_cache::{Weighter, sync::Cache};

use crate::{cache::CacheLimits, fingerprint::Part};

/// Where the plan of a request came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanSource {
    /// Made ahead of time.
    Bundle,
    /// Made for an earlier request.
    Cache,
    /// Made now.
    Planner,
}

impl PlanSource {
    /// The word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PlanSource::Bundle => "bundle",
            PlanSource::Cache => "cache",
            PlanSource::Planner => "planner",
        }
    }
}

/// A plan that any number of documents share.
#[derive(Debug)]
pub struct SharedPlan {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The parts of the schema it rests on.
    pub parts: Box<[Part]>,
    /// Whether it came out of a bundle.
    pub bundled: bool,
}

/// How many plans came from where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlanCounts {
    /// See [`PlanSource::Bundle`].
    pub bundle: u64,
    /// See [`PlanSource::Cache`].
    pub cache: u64,
    /// See [`PlanSource::Planner`]: runs that gave a plan.
    pub planner: u64,
}

/// The plans of one schema.
#[derive(Debug)]
pub struct PlanCache {
    entries: Option<Entries>,
    bundled: FastMap<Arc<[u8]>, Arc<SharedPlan>>,
    counts: [AtomicU64; 3],
}

type Key = Arc<[u8]>;
type Entries = Cache<Key, Arc<SharedPlan>, ByBytes, foldhash::fast::RandomState>;

#[derive(Clone, Debug)]
struct ByBytes(CacheLimits);

impl Weighter<Key, Arc<SharedPlan>> for ByBytes {
    fn weight(&self, key: &Key, shared: &Arc<SharedPlan>) -> u64 {
        let parts = size_of_val(&*shared.parts);
        self.0.weight(key.len() + parts + shared.plan.heap_bytes())
    }
}

impl PlanCache {
    /// A cache within limits; `None` keeps nothing but bundled plans.
    pub fn new(limits: Option<CacheLimits>) -> Self {
        PlanCache {
            entries: limits.map(|limits| {
                Cache::with(
                    limits.entries_max,
                    limits.bytes_max as u64,
                    ByBytes(limits),
                    foldhash::fast::RandomState::default(),
                    quick_cache::sync::DefaultLifecycle::default(),
                )
            }),
            bundled: FastMap::default(),
            counts: Default::default(),
        }
    }

    /// The plan of a canonical form. `make` runs if there is none, and not while another request makes it.
    pub async fn get_or_make<E>(
        &self,
        key: Box<[u8]>,
        make: impl FnOnce() -> Result<SharedPlan, E>,
    ) -> Result<(Arc<SharedPlan>, PlanSource), E> {
        if let Some(found) = self.bundled.get(&*key) {
            return Ok((Arc::clone(found), PlanSource::Bundle));
        }
        let Some(entries) = &self.entries else {
            return Ok((Arc::new(make()?), PlanSource::Planner));
        };
        match entries.get_value_or_guard_async(&Key::from(key)).await {
            Ok(found) => Ok((found, PlanSource::Cache)),
            Err(guard) => {
                let made = Arc::new(make()?);
                let _ = guard.insert(Arc::clone(&made));
                Ok((made, PlanSource::Planner))
            }
        }
    }
    /// The same without waiting for anybody; two callers at a time may both make the plan.
    pub fn get_or_make_now<E>(
        &self,
        key: Box<[u8]>,
        make: impl FnOnce() -> Result<SharedPlan, E>,
    ) -> Result<(Arc<SharedPlan>, PlanSource), E> {
        if let Some(found) = self.bundled.get(&*key) {
            return Ok((Arc::clone(found), PlanSource::Bundle));
        }
        let key = Key::from(key);
        let entries = self.entries.as_ref();
        if let Some(found) = entries.and_then(|entries| entries.get(&key)) {
            return Ok((found, PlanSource::Cache));
        }
        let made = Arc::new(make()?);
        self.insert(key, Arc::clone(&made));
        Ok((made, PlanSource::Planner))
    }

    /// Keeps a plan.
    pub(crate) fn insert(&self, key: Arc<[u8]>, shared: Arc<SharedPlan>) {
        if let Some(entries) = &self.entries {
            entries.insert(key, shared);
        }
    }
    /// Keeps a plan for good.
    pub(crate) fn insert_bundled(&mut self, key: Arc<[u8]>, shared: Arc<SharedPlan>) {
        self.bundled.insert(key, shared);
    }
    /// Every plan with its key: bundled ones, then the others; in no particular order.
    pub(crate) fn all(&self) -> Vec<(Arc<[u8]>, Arc<SharedPlan>)> {
        let bundled = self.bundled.iter();
        let bundled = bundled.map(|(key, shared)| (Arc::clone(key), Arc::clone(shared)));
        let entries = self.entries.iter().flat_map(Cache::iter);
        bundled.chain(entries).collect()
    }

    pub(crate) fn count(&self, source: PlanSource) {
        self.counts[source as usize].fetch_add(1, Ordering::Relaxed);
    }
    /// How many requests got their plan from where.
    pub fn counts(&self) -> PlanCounts {
        let [bundle, cache, planner] = &self.counts;
        PlanCounts {
            bundle: bundle.load(Ordering::Relaxed),
            cache: cache.load(Ordering::Relaxed),
            planner: planner.load(Ordering::Relaxed),
        }
    }
    /// Number of plans, bundled ones included.
    pub fn len(&self) -> usize {
        self.bundled.len() + self.entries.as_ref().map_or(0, Cache::len)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Weight of the plans that can be evicted, in bytes.
    pub fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, Cache::weight)
    }
}
