//! A histogram in the making.

use std::{sync::Arc, time::Duration};

use super::family::Histogram;

/// A histogram whose bounds somebody else knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By bucket; none before the first duration.
    buckets: Box<[u64]>,
    sum: u64,
}

impl Counts {
    pub(super) fn record(&mut self, took: Duration, bounds: &[u64]) {
        self.record_number(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), bounds);
    }
    pub(super) fn record_number(&mut self, number: u64, bounds: &[u64]) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; bounds.len() + 1].into();
        }
        let bucket = bounds.iter().position(|bound| number <= *bound);
        if let Some(count) = self.buckets.get_mut(bucket.unwrap_or(bounds.len())) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(number);
    }
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }
    pub(super) fn add(&mut self, other: &Counts) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            for (mine, other) in self.buckets.iter_mut().zip(&other.buckets) {
                *mine += other;
            }
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
    pub(super) fn with(&self, bounds: &Arc<[u64]>, unit: u64) -> Histogram {
        let mut buckets = self.buckets.to_vec();
        buckets.resize(bounds.len() + 1, 0);
        Histogram {
            bounds: Arc::clone(bounds),
            buckets,
            sum: self.sum,
            unit,
        }
    }
}
