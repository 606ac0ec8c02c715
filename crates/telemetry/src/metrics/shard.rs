//! One thread's numbers.

use std::{sync::Arc, time::Duration};

use ogive_base::FastMap;

use super::{
    attribute_values::read,
    costs::CostCounts,
    counts::Counts,
    family::{Family, Series, Value},
    pairs::PairCounts,
};
use crate::{
    hook::{Hook, HookCall, HookOutcome},
    names::{self, Metric},
    operation::Stop,
};

/// How series are kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// Most of one metric.
    pub(super) limit: usize,
    /// Upper bounds of the buckets of a histogram.
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

/// Who was called where, and how it ended.
type HookKey = (Hook, &'static str, HookOutcome);

/// By name first, so that looking up needs no owned name.
type ByName<K> = FastMap<Box<str>, Vec<(K, Counts)>>;

/// All series of one thread, or of all.
#[derive(Debug, Default)]
pub(super) struct Shard {
    requests: Vec<(RequestKey, Counts)>,
    /// By the attributes that operators add.
    attributed_requests: ByName<RequestKey>,
    request_series: usize,
    request_overflow: Counts,
    operations: ByName<(&'static str, bool)>,
    operation_series: usize,
    operation_overflow: Counts,
    calls: ByName<Outcome>,
    call_series: usize,
    call_overflow: Counts,
    pub(super) stops: [Counts; Stop::ALL.len()],
    plans: Vec<(&'static str, Counts)>,
    hooks: Vec<(HookKey, Counts)>,
    /// By subgraph, empty for none, and code.
    errors: PairCounts,
    /// By name and version.
    clients: PairCounts,
    /// By code, or that they were accepted.
    authenticated: Vec<(&'static str, u64)>,
    exceeded: Vec<(&'static str, u64)>,
    pub(super) costs: CostCounts,
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

/// The same in a map of lists with `series` entries altogether; a new one has room only if it is let in.
fn find_named<'m, K: PartialEq>(
    map: &'m mut ByName<K>,
    series: &mut usize,
    overflow: &'m mut Counts,
    name: &str,
    key: K,
    (limit, is_let_in): (usize, impl FnOnce() -> bool),
) -> &'m mut Counts {
    let known = map
        .get(name)
        .is_some_and(|list| list.iter().any(|(k, _)| *k == key));
    if !known {
        if *series >= limit || !is_let_in() {
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
    /// The same with attributes that operators add.
    pub(super) fn attributed_request(
        &mut self,
        attributes: &str,
        key: RequestKey,
        took: Duration,
        kept: &Kept,
    ) {
        let (map, series) = (&mut self.attributed_requests, &mut self.request_series);
        let overflow = &mut self.request_overflow;
        let room = (kept.limit, || true);
        find_named(map, series, overflow, attributes, key, room).record(took, &kept.bounds);
    }
    /// An operation was answered. `is_let_in`: whether a name that this thread has not seen is told apart.
    pub(super) fn operation(
        &mut self,
        key: OperationKey<'_>,
        took: Duration,
        kept: &Kept,
        is_let_in: impl FnOnce() -> bool,
    ) {
        let (map, series) = (&mut self.operations, &mut self.operation_series);
        let rest = (key.kind, key.failed);
        find_named(
            map,
            series,
            &mut self.operation_overflow,
            key.name,
            rest,
            (kept.limit, is_let_in),
        )
        .record(took, &kept.bounds);
    }
    pub(super) fn call(&mut self, name: &str, outcome: Outcome, took: Duration, kept: &Kept) {
        let (map, series) = (&mut self.calls, &mut self.call_series);
        let overflow = &mut self.call_overflow;
        let room = (kept.limit, || true);
        find_named(map, series, overflow, name, outcome, room).record(took, &kept.bounds);
    }
    pub(super) fn plan(&mut self, source: &'static str, took: Duration, kept: &Kept) {
        if let Some(found) = find(&mut self.plans, source, kept.limit) {
            found.record(took, &kept.bounds);
        }
    }
    pub(super) fn hook(&mut self, call: &HookCall, kept: &Kept) {
        let key = (call.hook, call.stage, call.outcome);
        if let Some(found) = find(&mut self.hooks, key, kept.limit) {
            found.record(call.took, &kept.bounds);
        }
    }
    pub(super) fn failed(&mut self, subgraph: &str, code: &str, limit: usize) {
        self.errors.add((subgraph, code), 1, limit);
    }
    /// A client of this name and version asked. `is_let_in`: whether one that this thread has not seen is told apart.
    pub(super) fn client(
        &mut self,
        client: (&str, &str),
        limit: usize,
        is_let_in: impl FnOnce() -> bool,
    ) {
        self.clients.add_if(client, 1, limit, is_let_in);
    }
    /// One asked whose name was never let in.
    pub(super) fn other_client(&mut self) {
        self.clients.add_other(1);
    }
    pub(super) fn authenticated(&mut self, result: &'static str, limit: usize) {
        count(&mut self.authenticated, result, 1, limit);
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
        self.request_overflow.add(&other.request_overflow);
        for (name, key, histogram) in sorted(&other.attributed_requests) {
            let (map, series) = (&mut self.attributed_requests, &mut self.request_series);
            let room = (limit, || true);
            find_named(map, series, &mut self.request_overflow, name, *key, room).add(histogram);
        }
        self.operation_overflow.add(&other.operation_overflow);
        for (name, key, histogram) in sorted(&other.operations) {
            let (map, series) = (&mut self.operations, &mut self.operation_series);
            let room = (limit, || true);
            find_named(map, series, &mut self.operation_overflow, name, *key, room).add(histogram);
        }
        self.call_overflow.add(&other.call_overflow);
        for (name, key, histogram) in sorted(&other.calls) {
            let (map, series) = (&mut self.calls, &mut self.call_series);
            let room = (limit, || true);
            find_named(map, series, &mut self.call_overflow, name, *key, room).add(histogram);
        }
        for (mine, other) in self.stops.iter_mut().zip(&other.stops) {
            mine.add(other);
        }
        for (source, histogram) in &other.plans {
            if let Some(found) = find(&mut self.plans, *source, limit) {
                found.add(histogram);
            }
        }
        for (key, histogram) in &other.hooks {
            if let Some(found) = find(&mut self.hooks, *key, limit) {
                found.add(histogram);
            }
        }
        for (code, more) in &other.exceeded {
            count(&mut self.exceeded, code, *more, limit);
        }
        for (result, more) in &other.authenticated {
            count(&mut self.authenticated, result, *more, limit);
        }
        self.costs.merge(&other.costs);
        self.errors.merge(&other.errors, limit);
        self.clients.merge(&other.clients, limit);
        self.response_bytes += other.response_bytes;
        self.retries += other.retries;
        self.joined += other.joined;
    }

    /// Everything, with the bounds that durations were recorded with.
    pub(super) fn families(&self, bounds: &Arc<[u64]>) -> Vec<Family> {
        let family = |metric: &'static Metric, series: Vec<Series>| Family { metric, series };
        let single = |metric: &'static Metric, count: u64| {
            let series = Series {
                labels: Vec::new(),
                value: Value::Counter(count),
            };
            family(metric, vec![series])
        };
        let errors = self.errors.series([names::SUBGRAPH, names::ERROR_CODE]);
        let clients = self
            .clients
            .series([names::CLIENT_NAME, names::CLIENT_VERSION]);
        let authenticated = counted(names::AUTHENTICATION_RESULT, &self.authenticated);
        let exceeded = counted(names::ERROR_CODE, &self.exceeded);
        let costs = self.costs.families();
        let all = vec![
            family(&names::REQUEST_DURATION, self.request_series(bounds)),
            family(&names::OPERATION_DURATION, self.operation_series(bounds)),
            family(&names::SUBGRAPH_DURATION, self.call_series(bounds)),
            family(&names::STOP_DURATION, self.stop_series(bounds)),
            family(&names::PLAN_DURATION, self.plan_series(bounds)),
            family(&names::HOOK_DURATION, self.hook_series(bounds)),
            family(&names::ERRORS, errors),
            family(&names::CLIENT_REQUESTS, clients),
            family(&names::AUTHENTICATIONS, authenticated),
            family(&names::LIMITS_EXCEEDED, exceeded),
            single(&names::RESPONSE_BYTES, self.response_bytes),
            single(&names::SUBGRAPH_RETRIES, self.retries),
            single(&names::SUBGRAPH_JOINED, self.joined),
        ];
        all.into_iter().chain(costs).collect()
    }
    fn request_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let plain = self.requests.iter().map(|(key, counts)| ("", key, counts));
        let all = plain.chain(sorted(&self.attributed_requests));
        let series = all.map(|(name, key, counts)| Series {
            labels: attributed(name, |_| {
                vec![
                    (names::METHOD, key.method.to_owned()),
                    (names::STATUS, key.status.to_string()),
                ]
            }),
            value: histogram(counts, bounds),
        });
        by_labels(series.chain(overflow(&self.request_overflow, bounds)))
    }
    fn operation_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let named = sorted(&self.operations).into_iter();
        let named = named.map(|(name, (kind, failed), counts)| Series {
            labels: attributed(name, |name| {
                vec![
                    (names::OPERATION_NAME, name.to_owned()),
                    (names::OPERATION_TYPE, (*kind).to_owned()),
                    (names::FAILED, failed.to_string()),
                ]
            }),
            value: histogram(counts, bounds),
        });
        by_labels(named.chain(overflow(&self.operation_overflow, bounds)))
    }
    fn call_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let named = sorted(&self.calls).into_iter();
        let named = named.map(|(name, outcome, counts)| Series {
            labels: attributed(name, |name| {
                vec![
                    (names::SUBGRAPH, name.to_owned()),
                    match outcome {
                        Outcome::Status(status) => (names::STATUS, status.to_string()),
                        Outcome::Failed(code) => (names::ERROR_TYPE, (*code).to_owned()),
                    },
                ]
            }),
            value: histogram(counts, bounds),
        });
        by_labels(named.chain(overflow(&self.call_overflow, bounds)))
    }
    /// In the order of the stops.
    fn stop_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let stops = Stop::ALL.into_iter().zip(&self.stops);
        let series = stops.map(|(stop, counts)| Series {
            labels: vec![(names::STOP, stop.word().to_owned())],
            value: histogram(counts, bounds),
        });
        series.collect()
    }
    fn hook_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let series = self
            .hooks
            .iter()
            .map(|((hook, stage, outcome), counts)| Series {
                labels: vec![
                    (names::HOOK, hook.word().to_owned()),
                    (names::HOOK_STAGE, (*stage).to_owned()),
                    (names::HOOK_OUTCOME, outcome.word().to_owned()),
                ],
                value: histogram(counts, bounds),
            });
        by_labels(series)
    }
    fn plan_series(&self, bounds: &Arc<[u64]>) -> Vec<Series> {
        let series = self.plans.iter().map(|(source, counts)| Series {
            labels: vec![(names::PLAN_SOURCE, (*source).to_owned())],
            value: histogram(counts, bounds),
        });
        by_labels(series)
    }
}

/// The labels of a series, with those that operators add behind them.
fn attributed(
    key: &str,
    labels: impl FnOnce(&str) -> Vec<(&'static str, String)>,
) -> Vec<(&'static str, String)> {
    let (name, mut added) = read(key);
    let mut all = labels(name);
    all.append(&mut added);
    all
}

/// Numbers by one label.
fn counted(label: &'static str, counts: &[(&'static str, u64)]) -> Vec<Series> {
    by_labels(counts.iter().map(|(word, count)| Series {
        labels: vec![(label, (*word).to_owned())],
        value: Value::Counter(*count),
    }))
}

fn histogram(counts: &Counts, bounds: &Arc<[u64]>) -> Value {
    Value::Histogram(counts.with(bounds, 1_000_000_000))
}

/// What is beyond the limit of series, if anything is.
fn overflow(counts: &Counts, bounds: &Arc<[u64]>) -> Option<Series> {
    (!counts.is_empty()).then(|| Series {
        labels: vec![(names::OVERFLOW, "true".to_owned())],
        value: histogram(counts, bounds),
    })
}

/// In order of their labels.
fn by_labels(series: impl Iterator<Item = Series>) -> Vec<Series> {
    let mut series: Vec<Series> = series.collect();
    series.sort_by(|a, b| a.labels.cmp(&b.labels));
    series
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
