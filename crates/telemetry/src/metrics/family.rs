//! Metrics as they are shown: families of series with their values.

use std::sync::Arc;

use crate::names::Metric;

/// One series: labels and value.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Names and values, in the order of the metric's documentation.
    pub labels: Vec<(&'static str, String)>,
    /// What was counted.
    pub value: Value,
}

/// What a series holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Only grows.
    Counter(u64),
    /// Only grows, in parts.
    Total(f64),
    /// Now.
    Gauge(f64),
    /// Durations, or numbers.
    Histogram(Histogram),
}

/// One metric with all of its series.
#[derive(Clone, PartialEq, Debug)]
pub struct Family {
    /// Name, unit and meaning.
    pub metric: &'static Metric,
    /// Its series, in order of their labels.
    pub series: Vec<Series>,
}

/// How often which duration, or which number, was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// Upper bounds of the buckets, smallest first; the last bucket has none.
    pub bounds: Arc<[u64]>,
    /// By bucket; one more than there are bounds.
    pub buckets: Vec<u64>,
    /// Sum of all that was seen.
    pub sum: u64,
    /// What is 1 of the metric's unit: durations are in nanoseconds.
    pub unit: u64,
}

impl Histogram {
    /// A bound or the sum in the metric's unit.
    pub fn scaled(&self, number: u64) -> f64 {
        number as f64 / self.unit as f64
    }
    /// How many were seen.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}
