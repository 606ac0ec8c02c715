//! One thread's numbers.

use std::{sync::Arc, time::Duration};

use ogive_base::FastMap;

use super::{Family, Series, Value};
use crate::{
    names::{self, Metric},
    record::Stop,
};

/// How often which duration was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// Upper bounds of the buckets in nanoseconds, smallest first; the last bucket has none.
    pub bounds: Arc<[u64]>,
    /// By bucket; one more than there are bounds.
    pub buckets: Vec<u64>,
    /// Sum of all durations in nanoseconds.
    pub sum_ns: u64,
}

impl Histogram {
    /// How many durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// A histogram whose bounds somebody else knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By bucket; none before the first duration.
    buckets: Box<[u64]>,
    sum_ns: u64,
}

impl Counts {
    pub(super) fn record(&mut self, took: Duration, bounds: &[u64]) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if self.buckets.is_empty() {
            self.buckets = vec![0; bounds.len() + 1].into();
        }
        let bucket = bounds.iter().position(|bound| ns <= *bound);
        if let Some(count) = self.buckets.get_mut(bucket.unwrap_or(bounds.len())) {
            *count += 1;
        }
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }
    fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }
    fn add(&mut self, other: &Counts) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            for (mine, other) in self.buckets.iter_mut().zip(&other.buckets) {
                *mine += other;
            }
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
    fn with(&self, bounds: &Arc<[u64]>) -> Histogram {
        let mut buckets = self.buckets.to_vec();
        buckets.resize(bounds.len() + 1, 0);
        Histogram {
            bounds: Arc::clone(bounds),
            buckets,
            sum_ns: self.sum_ns,
        }
    }
}

/// How series are kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// Most of one metric.
    pub(super) limit: usize,
    /// As [`Histogram::bounds`].
    pub(super) bounds: Arc<[u64]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct RequestKey {
    pub(super) method: &'static str,
    pub(super) status: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct OperationKey<'n> {
    pub(super) name: &'n str,
    pub(super) kind: &'static str,
    pub(super) failed: bool,
}

/// How a request to a subgraph ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// An answer with that HTTP status.
    Status(u16),
    /// No answer, with that code.
    Failed(&'static str),
}

/// By name first, so that looking up needs no owned name.
type ByName<K> = FastMap<Box<str>, Vec<(K, Counts)>>;

/// All series of one thread, or of all.
#[derive(Debug, Default)]
pub(super) struct Shard {
    requests: Vec<(RequestKey, Counts)>,
    operations: ByName<(&'static str, bool)>,
    operation_series: usize,
    operation_overflow: Counts,
    calls: ByName<Outcome>,
    call_series: usize,
    call_overflow: Counts,
    pub(super) stops: [Counts; Stop::ALL.len()],
    plans: Vec<(&'static str, Counts)>,
    /// By subgraph, empty for none: codes.
    errors: FastMap<Box<str>, Vec<(Box<str>, u64)>>,
    error_series: usize,
    error_overflow: u64,
    exceeded: Vec<(&'static str, u64)>,
    pub(super) response_bytes: u64,
    pub(super) retries: u64,
    pub(super) joined: u64,
}

/// The histogram of a key in a short list; `None` if the list is full.
fn find<K: PartialEq>(list: &mut Vec<(K, Counts)>, key: K, limit: usize) -> Option<&mut Counts> {
    let at = match list.iter().position(|(k, _)| *k == key) {
        Some(at) => at,
        None if list.len() < limit => {
            list.push((key, Counts::default()));
            list.len() - 1
        }
        None => return None,
    };
    Some(&mut list[at].1)
}

/// Adds to a code's number; codes that find the list full are not counted.
fn count(list: &mut Vec<(&'static str, u64)>, code: &'static str, more: u64, limit: usize) {
    let full = list.len() >= limit;
    match list.iter_mut().find(|(c, _)| *c == code) {
        Some((_, count)) => *count += more,
        None if !full => list.push((code, more)),
        None => {}
    }
}

/// The same in a map of lists with `series` entries altogether.
fn find_named<'m, K: PartialEq>(
    map: &'m mut ByName<K>,
    series: &mut usize,
    overflow: &'m mut Counts,
    name: &str,
    key: K,
    limit: usize,
) -> &'m mut Counts {
    let known = map
        .get(name)
        .is_some_and(|list| list.iter().any(|(k, _)| *k == key));
    if !known {
        if *series >= limit {
            return overflow;
        }
        *series += 1;
        if !map.contains_key(name) {
            map.insert(name.into(), Vec::new());
        }
    }
    match map
        .get_mut(name)
        .and_then(|list| find(list, key, usize::MAX))
    {
        Some(found) => found,
        None => overflow,
    }
}

impl Shard {
    pub(super) fn request(&mut self, key: RequestKey, took: Duration, kept: &Kept) {
        if let Some(found) = find(&mut self.requests, key, kept.limit) {
            found.record(took, &kept.bounds);
        }
    }
    pub(super) fn operation(&mut self, key: OperationKey<'_>, took: Duration, kept: &Kept) {
        let (map, series) = (&mut self.operations, &mut self.operation_series);
        let rest = (key.kind, key.failed);
        find_named(
            map,
            series,
            &mut self.operation_overflow,
            key.name,
            rest,
            kept.limit,
        )
        .record(took, &kept.bounds);
    }
    pub(super) fn call(&mut self, name: &str, outcome: Outcome, took: Duration, kept: &Kept) {
        let (map, series) = (&mut self.calls, &mut self.call_series);
        let overflow = &mut self.call_overflow;
        find_named(map, series, overflow, name, outcome, kept.limit).record(took, &kept.bounds);
    }
    pub(super) fn plan(&mut self, source: &'static str, took: Duration, kept: &Kept) {
        if let Some(found) = find(&mut self.plans, source, kept.limit) {
            found.record(took, &kept.bounds);
        }
    }
    pub(super) fn failed(&mut self, subgraph: &str, code: &str, limit: usize) {
        self.count_errors(subgraph, code, 1, limit);
    }
    fn count_errors(&mut self, subgraph: &str, code: &str, more: u64, limit: usize) {
        let codes = self.errors.get_mut(subgraph);
        if let Some((_, count)) = codes
            .into_iter()
            .flatten()
            .find(|(known, _)| **known == *code)
        {
            *count += more;
        } else if self.error_series >= limit {
            self.error_overflow += more;
        } else {
            self.error_series += 1;
            let codes = self.errors.entry(subgraph.into()).or_default();
            codes.push((code.into(), more));
        }
    }
    pub(super) fn exceeded(&mut self, code: &'static str, limit: usize) {
        count(&mut self.exceeded, code, 1, limit);
    }

    pub(super) fn add(&mut self, other: &Shard, limit: usize) {
        for (key, histogram) in &other.requests {
            if let Some(found) = find(&mut self.requests, *key, limit) {
                found.add(histogram);
            }
        }
        self.operation_overflow.add(&other.operation_overflow);
        for (name, key, histogram) in sorted(&other.operations) {
            let (map, series) = (&mut self.operations, &mut self.operation_series);
            find_named(map, series, &mut self.operation_overflow, name, *key, limit).add(histogram);
        }
        self.call_overflow.add(&other.call_overflow);
        for (name, key, histogram) in sorted(&other.calls) {
            let (map, series) = (&mut self.calls, &mut self.call_series);
            find_named(map, series, &mut self.call_overflow, name, *key, limit).add(histogram);
        }
        for (mine, other) in self.stops.iter_mut().zip(&other.stops) {
            mine.add(other);
        }
        for (source, histogram) in &other.plans {
            if let Some(found) = find(&mut self.plans, *source, limit) {
                found.add(histogram);
            }
        }
        for (code, more) in &other.exceeded {
            count(&mut self.exceeded, code, *more, limit);
        }
        let mut subgraphs: Vec<&Box<str>> = other.errors.keys().collect();
        subgraphs.sort_unstable();
        for subgraph in subgraphs {
            for (code, more) in other.errors.get(subgraph).into_iter().flatten() {
                self.count_errors(subgraph, code, *more, limit);
            }
        }
        self.error_overflow += other.error_overflow;
        self.response_bytes += other.response_bytes;
        self.retries += other.retries;
        self.joined += other.joined;
    }

    /// Everything, with the bounds that durations were recorded with.
    pub(super) fn families(&self, bounds: &Arc<[u64]>) -> Vec<Family> {
        let histogram = |h: &Counts| Value::Histogram(h.with(bounds));
        let mut requests: Vec<Series> = self
            .requests
            .iter()
            .map(|(key, h)| Series {
                labels: vec![
                    (names::METHOD, key.method.to_owned()),
                    (names::STATUS, key.status.to_string()),
                ],
                value: histogram(h),
            })
            .collect();
        let mut operations: Vec<Series> = sorted(&self.operations)
            .into_iter()
            .map(|(name, (kind, failed), h)| Series {
                labels: vec![
                    (names::OPERATION_NAME, name.to_owned()),
                    (names::OPERATION_TYPE, (*kind).to_owned()),
                    (names::FAILED, failed.to_string()),
                ],
                value: histogram(h),
            })
            .collect();
        let mut calls: Vec<Series> = sorted(&self.calls)
            .into_iter()
            .map(|(name, outcome, h)| Series {
                labels: vec![
                    (names::SUBGRAPH, name.to_owned()),
                    match outcome {
                        Outcome::Status(status) => (names::STATUS, status.to_string()),
                        Outcome::Failed(code) => (names::ERROR_TYPE, (*code).to_owned()),
                    },
                ],
                value: histogram(h),
            })
            .collect();
        for (series, overflow) in [
            (&mut operations, &self.operation_overflow),
            (&mut calls, &self.call_overflow),
        ] {
            if !overflow.is_empty() {
                series.push(Series {
                    labels: vec![(names::OVERFLOW, "true".to_owned())],
                    value: histogram(overflow),
                });
            }
        }
        let stops = Stop::ALL
            .into_iter()
            .zip(&self.stops)
            .map(|(stop, h)| Series {
                labels: vec![(names::STOP, stop.word().to_owned())],
                value: histogram(h),
            });
        let mut plans: Vec<Series> = self
            .plans
            .iter()
            .map(|(source, h)| Series {
                labels: vec![(names::PLAN_SOURCE, (*source).to_owned())],
                value: histogram(h),
            })
            .collect();
        let counted = |list: &[(&'static str, u64)]| -> Vec<Series> {
            let series = list.iter().map(|(code, count)| Series {
                labels: vec![(names::ERROR_CODE, (*code).to_owned())],
                value: Value::Counter(*count),
            });
            series.collect()
        };
        let mut exceeded = counted(&self.exceeded);
        let by_subgraph = self.errors.iter().flat_map(|(subgraph, codes)| {
            codes.iter().map(|(code, count)| {
                let subgraph =
                    (!subgraph.is_empty()).then(|| (names::SUBGRAPH, subgraph.to_string()));
                let code = (names::ERROR_CODE, code.to_string());
                Series {
                    labels: subgraph.into_iter().chain([code]).collect(),
                    value: Value::Counter(*count),
                }
            })
        });
        let mut errors: Vec<Series> = by_subgraph.collect();
        if self.error_overflow > 0 {
            errors.push(Series {
                labels: vec![(names::OVERFLOW, "true".to_owned())],
                value: Value::Counter(self.error_overflow),
            });
        }
        for list in [
            &mut requests,
            &mut operations,
            &mut calls,
            &mut plans,
            &mut errors,
            &mut exceeded,
        ] {
            list.sort_by(|a, b| a.labels.cmp(&b.labels));
        }
        let family = |metric: &'static Metric, series: Vec<Series>| Family { metric, series };
        let single = |metric: &'static Metric, count: u64| Family {
            metric,
            series: vec![Series {
                labels: Vec::new(),
                value: Value::Counter(count),
            }],
        };
        vec![
            family(&names::REQUEST_DURATION, requests),
            family(&names::OPERATION_DURATION, operations),
            family(&names::SUBGRAPH_DURATION, calls),
            family(&names::STOP_DURATION, stops.collect()),
            family(&names::PLAN_DURATION, plans),
            family(&names::ERRORS, errors),
            family(&names::LIMITS_EXCEEDED, exceeded),
            single(&names::RESPONSE_BYTES, self.response_bytes),
            single(&names::SUBGRAPH_RETRIES, self.retries),
            single(&names::SUBGRAPH_JOINED, self.joined),
        ]
    }
}

/// In an order that does not depend on the map's.
fn sorted<K>(map: &ByName<K>) -> Vec<(&str, &K, &Counts)> {
    let mut names: Vec<&Box<str>> = map.keys().collect();
    names.sort_unstable();
    let series = names.into_iter().flat_map(|name| {
        let list = map.get(name).into_iter().flatten();
        list.map(|(key, histogram)| (&**name, key, histogram))
    });
    series.collect()
}
