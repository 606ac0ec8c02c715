//! The plan cache (L1): canonical form to plan. Documents that differ in fragments, whitespace, names of operations or
//! literal arguments share one plan.
//!
//! One planner run per form: requests that need the same plan wait for the one that makes it. Plans are weighed by the
//! memory they take; once the cache is more than a sixteenth full only plans that are made twice are kept
//! ([`crate::schema::doorkeeper`]), so that what is asked once does not fill it. Plans of a bundle were made ahead of time; they are always there and never evicted.
//!
//! A failed run leaves nothing behind: the next request tries again.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use ogive_base::FastMap;
use ogive_plan::Plan;
use ogive_planner::Quality;
use quick_cache::{Weighter, sync::Cache};

use crate::{
    schema::cache_limits::{CacheLimits, SchemaCache},
    schema::doorkeeper::Doorkeeper,
    schema::fingerprint::Part,
};

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

/// How much was done to find a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Made ahead of time.
    Bundle,
    /// Made at once, and perhaps not the best.
    Greedy,
    /// Made at once, and known to be the best for its profile.
    Exact,
    /// Looked at again in the background ([`crate::schema::refine`]).
    Refined,
}

impl Tier {
    /// The word in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Bundle => "bundle",
            Tier::Greedy => "greedy",
            Tier::Exact => "exact",
            Tier::Refined => "refined",
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
    /// How much was done to find it.
    pub tier: Tier,
    /// How good it is; not known of bundled plans.
    pub quality: Option<Quality>,
    /// The snapshot it was made with ([`crate::schema::feedback`]).
    pub epoch: u64,
    /// See [`SharedPlan::heap_bytes`].
    pub(crate) bytes: OnceLock<usize>,
}

impl SharedPlan {
    /// Bytes on the heap once it is in use. Looks at all of the plan when it is first asked, and makes what executions derive
    /// from it: so whoever makes a plan that takes long asks where that was made, and not the worker that uses it.
    pub fn heap_bytes(&self) -> usize {
        *self
            .bytes
            .get_or_init(|| size_of_val(&*self.parts) + self.plan.heap_bytes_in_use())
    }
    /// How much was done to find the plan, and what that tells, in one line.
    pub fn describe(&self) -> String {
        let tier = self.tier.as_str();
        let Some(quality) = self.quality else {
            return tier.to_owned();
        };
        if quality.settled {
            format!("{tier}; no plan is better for this profile")
        } else {
            format!(
                "{tier}; a better plan might exist, with no fewer than {} requests",
                quality.lower_bound
            )
        }
    }
}

/// Where the plan of a canonical form is kept: what is in it can be replaced while it is in use.
#[derive(Debug)]
pub struct PlanSlot {
    key: Key,
    current: ArcSwap<SharedPlan>,
    /// The epoch for which it was offered to be refined, plus one; zero: never.
    claimed: AtomicU64,
}

impl PlanSlot {
    fn new(key: Key, shared: Arc<SharedPlan>) -> Arc<Self> {
        Arc::new(PlanSlot {
            key,
            current: ArcSwap::new(shared),
            claimed: AtomicU64::new(0),
        })
    }
    /// What operations have in common for which this plan is: their canonical form, and the labels that are on.
    pub(crate) fn key(&self) -> &Arc<[u8]> {
        &self.key
    }
    /// The plan for new requests.
    pub fn current(&self) -> Arc<SharedPlan> {
        self.current.load_full()
    }
    /// Whether new requests get this.
    pub(crate) fn holds(&self, shared: &Arc<SharedPlan>) -> bool {
        Arc::ptr_eq(&self.current.load(), shared)
    }
    /// True for the first caller in an epoch, and the first after a release.
    pub(crate) fn claim(&self, epoch: u64) -> bool {
        self.claimed.swap(epoch + 1, Ordering::Relaxed) != epoch + 1
    }
    /// Whether somebody claimed it in an epoch.
    pub(crate) fn is_claimed(&self, epoch: u64) -> bool {
        self.claimed.load(Ordering::Relaxed) == epoch + 1
    }
    pub(crate) fn release(&self) {
        self.claimed.store(0, Ordering::Relaxed);
    }
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
    doorkeeper: Doorkeeper,
    bundled: FastMap<Key, Arc<PlanSlot>>,
    counts: [AtomicU64; 3],
}

type Key = Arc<[u8]>;
type Entries = SchemaCache<Key, Entry, ByBytes>;

/// A slot, and what weighs while this is its entry: the weight of an entry must not change.
#[derive(Clone, Debug)]
struct Entry {
    slot: Arc<PlanSlot>,
    bytes: usize,
}

impl Entry {
    fn new(slot: &Arc<PlanSlot>) -> Self {
        let shared = slot.current.load();
        Entry {
            bytes: slot.key.len() + shared.heap_bytes(),
            slot: Arc::clone(slot),
        }
    }
}

#[derive(Clone, Debug)]
struct ByBytes(CacheLimits);

impl Weighter<Key, Entry> for ByBytes {
    fn weight(&self, _: &Key, entry: &Entry) -> u64 {
        self.0.weight(entry.bytes)
    }
}

impl PlanCache {
    /// A cache within limits; `None` keeps nothing but bundled plans.
    pub fn new(limits: Option<CacheLimits>) -> Self {
        PlanCache {
            entries: limits.map(|limits| limits.cache(ByBytes(limits))),
            doorkeeper: Doorkeeper::default(),
            bundled: FastMap::default(),
            counts: Default::default(),
        }
    }

    /// The plan of a canonical form. `make` runs if there is none, and not while another request makes it.
    pub async fn get_or_make<E>(
        &self,
        key: Box<[u8]>,
        make: impl AsyncFnOnce() -> Result<SharedPlan, E>,
    ) -> Result<(Arc<PlanSlot>, PlanSource), E> {
        if let Some(found) = self.bundled.get(&*key) {
            return Ok((Arc::clone(found), PlanSource::Bundle));
        }
        let key = Key::from(key);
        let Some(entries) = &self.entries else {
            return Ok((
                PlanSlot::new(key, Arc::new(make().await?)),
                PlanSource::Planner,
            ));
        };
        match entries.get_value_or_guard_async(&key).await {
            Ok(found) => Ok((found.slot, PlanSource::Cache)),
            Err(guard) => {
                let made = PlanSlot::new(Arc::clone(&key), Arc::new(make().await?));
                // Otherwise whoever waits makes it once more, and that one is kept.
                if self.admits(&key) {
                    let _ = guard.insert(Entry::new(&made));
                }
                Ok((made, PlanSource::Planner))
            }
        }
    }
    /// The same without waiting for anybody; two callers at a time may both make the plan. `keep`: even if it comes for the
    /// first time, because somebody knows that it will be asked for.
    pub fn get_or_make_now<E>(
        &self,
        key: Box<[u8]>,
        keep: bool,
        make: impl FnOnce() -> Result<SharedPlan, E>,
    ) -> Result<(Arc<PlanSlot>, PlanSource), E> {
        if let Some(found) = self.bundled.get(&*key) {
            return Ok((Arc::clone(found), PlanSource::Bundle));
        }
        let key = Key::from(key);
        let entries = self.entries.as_ref();
        if let Some(found) = entries.and_then(|entries| entries.get(&key)) {
            return Ok((found.slot, PlanSource::Cache));
        }
        let made = PlanSlot::new(key, Arc::new(make()?));
        if keep || self.admits(&made.key) {
            self.keep(&made);
        }
        Ok((made, PlanSource::Planner))
    }

    /// Whether a slot is kept: a plan that goes with its request need not get better.
    pub(crate) fn holds(&self, slot: &Arc<PlanSlot>) -> bool {
        let kept = self
            .entries
            .as_ref()
            .and_then(|entries| entries.peek(&slot.key));
        kept.is_some_and(|entry| Arc::ptr_eq(&entry.slot, slot))
    }

    fn admits(&self, key: &Key) -> bool {
        let entries = self.entries.as_ref();
        entries.is_some_and(|entries| {
            self.doorkeeper
                .admits(key, entries.weight(), entries.capacity())
        })
    }

    fn keep(&self, slot: &Arc<PlanSlot>) {
        if let Some(entries) = &self.entries {
            entries.insert(Arc::clone(&slot.key), Entry::new(slot));
        }
    }
    /// Keeps a plan.
    pub(crate) fn insert(&self, key: Key, shared: Arc<SharedPlan>) {
        self.keep(&PlanSlot::new(key, shared));
    }
    /// Keeps a plan for good.
    pub(crate) fn insert_bundled(&mut self, key: Key, shared: Arc<SharedPlan>) {
        let slot = PlanSlot::new(Arc::clone(&key), shared);
        self.bundled.insert(key, slot);
    }
    /// Puts another plan in a slot, for whoever comes after; a slot that was evicted is not kept again.
    pub(crate) fn replace(&self, slot: &Arc<PlanSlot>, shared: SharedPlan) {
        slot.current.store(Arc::new(shared));
        if let Some(entries) = &self.entries {
            let _ = entries.replace(Arc::clone(&slot.key), Entry::new(slot), true);
        }
    }
    /// Every plan with its key: bundled ones, then the others; in no particular order.
    pub(crate) fn all(&self) -> Vec<(Key, Arc<SharedPlan>)> {
        let bundled = self.bundled.values().cloned();
        let entries = self.entries.iter().flat_map(Cache::iter);
        let slots = bundled.chain(entries.map(|(_, entry)| entry.slot));
        slots
            .map(|slot| (Arc::clone(&slot.key), slot.current()))
            .collect()
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
