//! Counting and timing, cheap enough to be on everywhere.
//!
//! Every thread writes to a shard of its own, under a lock that nobody else wants; one lock per operation and one per
//! HTTP request. Whoever reads adds the shards up ([`Metrics::snapshot`]); [`text`] writes Prometheus' format and
//! [`crate::otlp`] OpenTelemetry's.
//!
//! Labels that clients choose (names of operations) and any other label are bounded: beyond
//! [`MetricsOptions::cardinality_limit`] series of one metric, the rest is counted together in a series marked
//! `otel_metric_overflow`.

mod attribute_values;
mod costs;
mod counts;
mod family;
mod new_names;
mod pairs;
mod shard;
mod subscriptions;
pub mod text;

use std::{
    cell::Cell,
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use ogive_base::ShareLimits;

pub(crate) use attribute_values::NewValue;
use attribute_values::{AttributeValues, Instrument};
pub use family::{Family, Histogram, Series, Value};
use new_names::NewNames;
pub use shard::Outcome;
use shard::{Kept, OperationKey, RequestKey, Shard};
pub use subscriptions::SubscriptionGauges;

use crate::{
    attributes::Attributes,
    hook::HookCall,
    lines::LineCounts,
    names::{self, Metric},
    operation::{ClientIdentity, Operation, Stop},
    process::Process,
};

/// Upper bounds of the buckets of durations unless told otherwise, in nanoseconds; the last bucket has none.
pub const BOUNDS_NS: [u64; 14] = [
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Shards; threads beyond them share.
const SHARDS: usize = 32;

/// How metrics are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsOptions {
    /// Most series of one metric; default 2,000.
    pub cardinality_limit: usize,
    /// Most values of one attribute that operators add; default 200.
    pub attribute_values_max: usize,
    /// How many of these one client may bring, in percent; default 50.
    pub client_share: usize,
    /// Whether operations are told apart by name; default yes.
    pub operation_names: bool,
    /// Whether clients that say what they are called are counted; default yes.
    pub clients: bool,
    /// Upper bounds of the buckets of durations, in nanoseconds, smallest first; default [`BOUNDS_NS`].
    pub bounds_ns: Vec<u64>,
    /// The commit that the process was built from; default: not known.
    pub commit: Option<&'static str>,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        MetricsOptions {
            cardinality_limit: 2_000,
            attribute_values_max: 200,
            client_share: 50,
            operation_names: true,
            clients: true,
            bounds_ns: BOUNDS_NS.to_vec(),
            commit: None,
        }
    }
}

/// All that is counted.
#[derive(Debug)]
pub struct Metrics {
    operation_names: bool,
    clients: bool,
    /// Series of operations, and clients by name and version, that are told apart.
    new_operations: NewNames,
    new_clients: NewNames,
    commit: Option<&'static str>,
    values: AttributeValues,
    kept: Kept,
    shards: Box<[Slot]>,
    reloads: AtomicU64,
    reloads_refused: AtomicU64,
    spans_dropped: AtomicU64,
    plans_refined: AtomicU64,
    plans_improved: AtomicU64,
    refinement_dropped: AtomicU64,
}

/// What was built: a label is left out if its value is not known.
fn build_labels(commit: Option<&'static str>) -> Vec<(&'static str, String)> {
    let version = (names::VERSION, env!("CARGO_PKG_VERSION").to_owned());
    let commit = commit.map(|commit| (names::COMMIT, commit.to_owned()));
    std::iter::once(version).chain(commit).collect()
}

/// A shard on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    active: AtomicI64,
    shard: Mutex<Shard>,
}

/// What is not counted but looked at when somebody asks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gauges {
    /// Operations kept.
    pub operations: usize,
    /// Plans kept.
    pub plans: usize,
    /// Bytes of the plans that can be evicted.
    pub plan_bytes: u64,
    /// Bytes that requests make the process hold.
    pub memory_used: usize,
    /// Most of them.
    pub memory_limit: usize,
    /// How often there was no memory.
    pub memory_refused: u64,
    /// Operations that wait to be planned.
    pub planning_waiting: usize,
    /// Whether new requests are welcome.
    pub ready: bool,
    /// How subgraphs are.
    pub subgraphs: Vec<SubgraphGauges>,
    /// Where each key set is, how often it came, and how often it did not.
    pub key_sets: Vec<(String, u64, u64)>,
    /// What was taken over of texts that change, and what was not usable, by what they are.
    pub sources: Vec<(&'static str, u64, u64)>,
    /// What became of the lines of each log.
    pub logs: Vec<(&'static str, LineCounts)>,
    /// Lines about failures that were left out.
    pub suppressed: u64,
    /// What is counted of subscriptions, by subgraph.
    pub subscriptions: Vec<SubscriptionGauges>,
    /// What the process uses.
    pub process: Option<Process>,
}

/// How a subgraph is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubgraphGauges {
    /// Its name.
    pub name: Box<str>,
    /// Whether its circuit breaker is open, if it has one.
    pub is_open: Option<bool>,
    /// Replicas that are left alone, if any may be.
    pub ejected: Option<usize>,
}

impl SubgraphGauges {
    fn is_open(&self) -> Option<f64> {
        self.is_open.map(|is_open| f64::from(u8::from(is_open)))
    }
    fn ejected(&self) -> Option<f64> {
        self.ejected.map(|ejected| ejected as f64)
    }
    /// The numbers of all subgraphs that have one.
    fn series(all: &[Self], number: fn(&Self) -> Option<f64>) -> Vec<Series> {
        let series = all.iter().filter_map(|subgraph| {
            Some(Series {
                labels: vec![(names::SUBGRAPH, subgraph.name.to_string())],
                value: Value::Gauge(number(subgraph)?),
            })
        });
        let mut series: Vec<Series> = series.collect();
        series.sort_by(|one, other| one.labels.cmp(&other.labels));
        series
    }
}

/// What happens seldom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A new configuration or supergraph serves.
    Reloaded,
    /// One was refused.
    ReloadRefused,
    /// A span found the queue full.
    SpanDropped,
    /// A plan was looked at again in the background.
    PlanRefined,
    /// It was replaced by a better one.
    PlanImproved,
    /// A plan found the queue of the background planner full.
    RefinementDropped,
}

/// What became of texts that change.
fn of_sources(gauges: &Gauges) -> [(&'static Metric, Vec<Series>); 2] {
    let series = |number: fn(&(&'static str, u64, u64)) -> u64| {
        let series = gauges.sources.iter().map(|source| Series {
            labels: vec![(names::SOURCE, source.0.to_owned())],
            value: Value::Counter(number(source)),
        });
        series.collect()
    };
    [
        (&names::SOURCES_TAKEN, series(|source| source.1)),
        (&names::SOURCES_REFUSED, series(|source| source.2)),
    ]
}

/// The code of a failure as a label of metrics: those that subgraphs choose are as good as their authors.
fn label(code: &str) -> &str {
    let is_word = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    if (1..=64).contains(&code.len()) && code.bytes().all(is_word) {
        code
    } else {
        "OTHER"
    }
}

impl Metrics {
    /// Counts from zero.
    pub fn new(options: MetricsOptions) -> Self {
        let limits = |all| ShareLimits::of(all, options.client_share);
        Metrics {
            operation_names: options.operation_names,
            clients: options.clients,
            new_operations: NewNames::new(limits(options.cardinality_limit)),
            new_clients: NewNames::new(limits(options.cardinality_limit)),
            commit: options.commit,
            values: AttributeValues::new(limits(options.attribute_values_max)),
            kept: Kept {
                limit: options.cardinality_limit,
                bounds: options.bounds_ns.into(),
            },
            shards: (0..SHARDS).map(|_| Slot::default()).collect(),
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
            plans_refined: AtomicU64::new(0),
            plans_improved: AtomicU64::new(0),
            refinement_dropped: AtomicU64::new(0),
        }
    }

    fn slot(&self) -> &Slot {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let mine = MINE.with(|mine| {
            if mine.get() == usize::MAX {
                mine.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            mine.get()
        });
        &self.shards[mine % SHARDS]
    }
    fn shard<T>(slot: &Slot, act: impl FnOnce(&mut Shard) -> T) -> T {
        // Numbers cannot be left half written.
        act(&mut slot.shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A request came. The slot is for [`Metrics::left`], which may be called on another thread.
    pub(crate) fn came(&self) {
        self.slot().active.fetch_add(1, Ordering::Relaxed);
    }
    /// A request is done, or its client has left (status 499).
    pub(crate) fn left(
        &self,
        (method, client, new_client): (&'static str, Option<&ClientIdentity>, NewValue),
        attributes: Option<&Attributes>,
        (status, is_new): (u16, NewValue),
        took: Duration,
        bytes: u64,
    ) {
        let slot = self.slot();
        let client = client.filter(|_| self.clients);
        slot.active.fetch_sub(1, Ordering::Relaxed);
        let key = self.values.key(Instrument::Request, "", attributes, is_new);
        Self::shard(slot, |shard| {
            let request = RequestKey { method, status };
            match &key {
                None => shard.request(request, took, &self.kept),
                Some(key) => shard.attributed_request(key, request, took, &self.kept),
            }
            shard.response_bytes += bytes;
        });
        if let Some(client) = client {
            self.client(slot, client, new_client);
        }
    }
    /// Counts a client by its name and version if it is let in or was before, and as `other` if not.
    fn client(&self, slot: &Slot, client: &ClientIdentity, new: NewValue) {
        let pair = (&*client.name, &*client.version);
        let name = || [pair.0, pair.1].join("\0");
        if new == NewValue::Other && !self.new_clients.knows(&name()) {
            return Self::shard(slot, Shard::other_client);
        }
        let is_let_in = || match new {
            NewValue::Learn(from) => self.new_clients.learn(&name(), from),
            NewValue::Other => true,
        };
        let limit = self.kept.limit;
        Self::shard(slot, |shard| shard.client(pair, limit, is_let_in));
    }
    /// An operation is done. `subgraph` names a subgraph by its index.
    pub(crate) fn operation<'n>(
        &self,
        operation: &Operation,
        client: Option<IpAddr>,
        took: Duration,
        subgraph: impl Fn(u32) -> &'n str,
    ) {
        let kept = &self.kept;
        let name = operation.name.as_deref().unwrap_or_default();
        let name = if self.operation_names { name } else { "" };
        let attributed = self.values.key(
            Instrument::Operation,
            name,
            operation.attributes.as_deref(),
            NewValue::refused(operation.code.is_some(), client),
        );
        let key = OperationKey {
            name: attributed.as_deref().unwrap_or(name),
            kind: operation.kind,
            failed: operation.errors > 0,
        };
        Self::shard(self.slot(), |shard| {
            if !operation.kind.is_empty() {
                shard.operation(key, took, kept, || {
                    let series = format!("{}\0{}\0{}", key.name, key.kind, key.failed);
                    self.new_operations.learn(&series, client)
                });
            }
            for (stop, timed) in Stop::ALL.into_iter().zip(&operation.stops) {
                if let Some((_, took)) = timed {
                    shard.stops[stop as usize].record(*took, &kept.bounds);
                    if stop == Stop::Plan {
                        shard.plan(operation.plan_source, *took, kept);
                    }
                }
            }
            for call in &operation.calls {
                let outcome = match (call.status, call.code) {
                    (_, Some(code)) => Outcome::Failed(code),
                    (Some(status), None) => Outcome::Status(status),
                    (None, None) => Outcome::Failed("CANCELLED"),
                };
                let name = subgraph(call.subgraph);
                let attributed = self.values.key(
                    Instrument::Subgraph,
                    name,
                    call.attributes.as_deref(),
                    NewValue::Learn(client),
                );
                let name = attributed.as_deref().unwrap_or(name);
                shard.call(name, outcome, call.took, kept);
                shard.retries += u64::from(call.tries.saturating_sub(1));
                shard.joined += u64::from(call.tries == 0);
            }
        });
    }
    /// Something went wrong; `subgraph` is empty if none is to blame.
    pub(crate) fn failed(&self, subgraph: &str, code: &str) {
        let (code, limit) = (label(code), self.kept.limit);
        Self::shard(self.slot(), |shard| shard.failed(subgraph, code, limit));
    }
    /// A request is beyond a limit that is only measured; `code` is what it would have been refused with.
    pub fn exceeded(&self, code: &'static str) {
        let limit = self.kept.limit;
        Self::shard(self.slot(), |shard| shard.exceeded(code, limit));
    }
    /// It was estimated what an operation costs; `result`: `COST_OK`, or the code of what it exceeds.
    pub fn cost_estimated(&self, result: &'static str, estimated: u64) {
        Self::shard(self.slot(), |shard| {
            shard.costs.estimated(result, estimated)
        });
    }
    /// It was counted what it did cost, and how much more was estimated.
    pub fn cost_actual(&self, result: &'static str, actual: u64, delta: u64) {
        Self::shard(self.slot(), |shard| {
            shard.costs.actual(result, actual, delta)
        });
    }
    /// A hook was called.
    pub(crate) fn hook(&self, call: &HookCall) {
        Self::shard(self.slot(), |shard| shard.hook(call, &self.kept));
    }
    /// A caller was known by what a request brought; `refused` is the code if it was not.
    pub fn authenticated(&self, refused: Option<&'static str>) {
        let (result, limit) = (refused.unwrap_or("accepted"), self.kept.limit);
        Self::shard(self.slot(), |shard| shard.authenticated(result, limit));
    }
    /// Counts something that happens seldom.
    pub fn count(&self, event: Event) {
        let counter = match event {
            Event::Reloaded => &self.reloads,
            Event::ReloadRefused => &self.reloads_refused,
            Event::SpanDropped => &self.spans_dropped,
            Event::PlanRefined => &self.plans_refined,
            Event::PlanImproved => &self.plans_improved,
            Event::RefinementDropped => &self.refinement_dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything, added up.
    pub fn snapshot(&self, gauges: Gauges) -> Vec<Family> {
        let limit = self.kept.limit;
        let mut all = Shard::default();
        let mut active = 0;
        for slot in &self.shards {
            active += slot.active.load(Ordering::Relaxed);
            Self::shard(slot, |shard| all.add(shard, limit));
        }
        let mut out = all.families(&self.kept.bounds);
        let mut single = |metric: &'static Metric, value: Value| {
            out.push(Family {
                metric,
                series: vec![Series {
                    labels: Vec::new(),
                    value,
                }],
            });
        };
        let load = |counter: &AtomicU64| Value::Counter(counter.load(Ordering::Relaxed));
        single(&names::ACTIVE_REQUESTS, Value::Gauge(active as f64));
        single(
            &names::OPERATIONS_KEPT,
            Value::Gauge(gauges.operations as f64),
        );
        single(&names::PLANS_KEPT, Value::Gauge(gauges.plans as f64));
        single(&names::PLAN_BYTES, Value::Gauge(gauges.plan_bytes as f64));
        single(&names::MEMORY_USED, Value::Gauge(gauges.memory_used as f64));
        single(
            &names::MEMORY_LIMIT,
            Value::Gauge(gauges.memory_limit as f64),
        );
        single(
            &names::MEMORY_REFUSED,
            Value::Counter(gauges.memory_refused),
        );
        single(
            &names::PLANNING_WAITING,
            Value::Gauge(gauges.planning_waiting as f64),
        );
        single(
            &names::READY,
            Value::Gauge(f64::from(u8::from(gauges.ready))),
        );
        single(&names::RELOADS, load(&self.reloads));
        single(&names::RELOADS_REFUSED, load(&self.reloads_refused));
        single(&names::SPANS_DROPPED, load(&self.spans_dropped));
        single(&names::PLANS_REFINED, load(&self.plans_refined));
        single(&names::PLANS_IMPROVED, load(&self.plans_improved));
        single(&names::REFINEMENT_DROPPED, load(&self.refinement_dropped));
        let each = |number: fn(&SubgraphGauges) -> Option<f64>| {
            SubgraphGauges::series(&gauges.subgraphs, number)
        };
        single(
            &names::LOG_LINES_SUPPRESSED,
            Value::Counter(gauges.suppressed),
        );
        out.push(Family {
            metric: &names::BUILD_INFO,
            series: vec![Series {
                labels: build_labels(self.commit),
                value: Value::Gauge(1.0),
            }],
        });
        out.extend(gauges.process.iter().flat_map(Process::families));
        out.extend(SubscriptionGauges::families(&gauges.subscriptions));
        let of_logs = |number: fn(&LineCounts) -> u64| {
            let series = gauges.logs.iter().map(|(log, counts)| Series {
                labels: vec![(names::LOG, (*log).to_owned())],
                value: Value::Counter(number(counts)),
            });
            series.collect()
        };
        let of_key_sets = |number: fn(&(String, u64, u64)) -> u64| {
            let series = gauges.key_sets.iter().map(|set| Series {
                labels: vec![(names::KEY_SET, set.0.clone())],
                value: Value::Counter(number(set)),
            });
            series.collect()
        };
        let of_many = [
            (&names::KEY_SET_FETCHES, of_key_sets(|set| set.1)),
            (&names::KEY_SET_FAILURES, of_key_sets(|set| set.2)),
            (&names::LOG_LINES_DROPPED, of_logs(|counts| counts.dropped)),
            (&names::LOG_WRITE_ERRORS, of_logs(|counts| counts.errors)),
            (&names::BREAKER_OPEN, each(SubgraphGauges::is_open)),
            (&names::REPLICAS_EJECTED, each(SubgraphGauges::ejected)),
        ];
        for (metric, series) in of_many.into_iter().chain(of_sources(&gauges)) {
            if !series.is_empty() {
                out.push(Family { metric, series });
            }
        }
        out.sort_by_key(|family| family.metric.name);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn codes_that_subgraphs_choose_are_labels_only_if_they_are_words() {
        assert_eq!(label("UNAUTHENTICATED"), "UNAUTHENTICATED");
        for code in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert_eq!(label(code), "OTHER");
        }
    }
}
