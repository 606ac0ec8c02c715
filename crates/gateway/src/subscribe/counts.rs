//! What is counted of subscriptions, for each subgraph that has events.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Upper bounds of how long events waited for their clients, in nanoseconds.
pub(crate) const LAG_BOUNDS: [u64; 9] = [
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    30_000_000_000,
];

/// What is counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionCounts {
    /// Subscriptions that are open.
    pub open: usize,
    /// Their sources.
    pub sources: usize,
    /// Events that came from sources.
    pub events: u64,
    /// Events that wait for clients, or were taken by them.
    pub deliveries: u64,
    /// Events that were dropped because a client has not taken them.
    pub dropped: u64,
    /// Subscriptions that ended because of it.
    pub overflows: u64,
    /// How long those waited that were taken: how many, by bucket of [`LAG_BOUNDS`].
    pub lag: [u64; LAG_BOUNDS.len() + 1],
    /// All that they waited together, in nanoseconds.
    pub lag_sum: u64,
}

impl SubscriptionCounts {
    /// With those of others.
    fn plus(&mut self, other: &SubscriptionCounts) {
        self.open += other.open;
        self.sources += other.sources;
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.dropped += other.dropped;
        self.overflows += other.overflows;
        self.lag_sum += other.lag_sum;
        for (all, own) in self.lag.iter_mut().zip(other.lag) {
            *all += own;
        }
    }
}

/// What is counted of one subgraph.
#[derive(Debug, Default)]
pub(crate) struct SubgraphCounts {
    pub(crate) open: AtomicUsize,
    pub(crate) sources: AtomicUsize,
    pub(crate) events: AtomicU64,
    pub(crate) deliveries: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) overflows: AtomicU64,
    lag: [AtomicU64; LAG_BOUNDS.len() + 1],
    lag_sum: AtomicU64,
}

impl SubgraphCounts {
    /// An event was taken that had waited so long.
    pub(crate) fn taken(&self, waited: Duration) {
        let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let bucket = LAG_BOUNDS.partition_point(|bound| *bound < waited);
        if let Some(bucket) = self.lag.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.lag_sum.fetch_add(waited, Ordering::Relaxed);
    }
    /// So many were taken that had not waited.
    pub(crate) fn taken_at_once(&self, n: u64) {
        self.lag[0].fetch_add(n, Ordering::Relaxed);
    }
    fn read(&self) -> SubscriptionCounts {
        // First, with acquire: what became of an event that is counted is counted, too.
        let events = self.events.load(Ordering::Acquire);
        SubscriptionCounts {
            events,
            open: self.open.load(Ordering::Relaxed),
            sources: self.sources.load(Ordering::Relaxed),
            deliveries: self.deliveries.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            overflows: self.overflows.load(Ordering::Relaxed),
            lag: std::array::from_fn(|at| self.lag[at].load(Ordering::Relaxed)),
            lag_sum: self.lag_sum.load(Ordering::Relaxed),
        }
    }
}

/// What is counted of all subgraphs that had a subscription since the process began; schemas bound how many there are.
#[derive(Debug, Default)]
pub(crate) struct CountsBySubgraph(Mutex<BTreeMap<Box<str>, Arc<SubgraphCounts>>>);

impl CountsBySubgraph {
    /// Those of a subgraph.
    pub(crate) fn of(&self, subgraph: &str) -> Arc<SubgraphCounts> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = all.get(subgraph) {
            return Arc::clone(counts);
        }
        Arc::clone(all.entry(subgraph.into()).or_default())
    }
    /// By subgraph.
    pub(crate) fn read(&self) -> Vec<(Box<str>, SubscriptionCounts)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read = all
            .iter()
            .map(|(name, counts)| (name.clone(), counts.read()));
        read.collect()
    }
    /// Of all together.
    pub(crate) fn sum(&self) -> SubscriptionCounts {
        let mut sum = SubscriptionCounts::default();
        for (_, counts) in self.read() {
            sum.plus(&counts);
        }
        sum
    }
}
