//! What people and machines see of the gateway at work: the one list of names, and how it is counted, traced and logged.
//!
//! A name that is not here does not exist: dashboards, alerts and clients switch on these words, so they are stable.
//!
//! One [`Record`] per request is the source of everything: [`metrics`], [`traces`], the [`access`] log and the
//! [`timeline`] that a client may ask for. A gateway without a [`Telemetry`] makes no records.
//!
//! Reading order: [`spans`] (the five stops), [`names`] (every metric), [`operation`], [`record`],
//! [`attributes`] (what operators add), [`metrics`], [`traces`], [`propagation`], [`process`], [`otlp`] (bytes for collectors), [`access`], [`timeline`],
//! [`failures`] (what goes wrong), [`hook`] (calls of coprocessors and scripts), [`log`] (the subscriber), [`lines`] (how both logs are written).

pub mod access;
pub mod attributes;
mod credentials;
pub mod failures;
pub mod hook;
pub mod lines;
pub mod log;
pub mod metrics;
pub mod names;
pub mod operation;
pub mod otlp;
pub mod process;
pub mod propagation;
pub mod record;

pub mod spans;
pub mod timeline;
pub mod traces;

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use http::{HeaderValue, request::Parts};

pub use ogive_failure::codes;

pub use access::AccessLog;
pub use failures::{FailureLine, Failures, Urgency};
pub use hook::{Hook, HookCall, HookOutcome};
pub use metrics::Metrics;
pub use operation::{Call, Operation, Stop};
pub use record::Record;
use traces::Ids;
pub use traces::Tracing;

/// What is on.
#[derive(Debug)]
pub struct Telemetry {
    /// Counting.
    pub metrics: Option<Metrics>,
    /// Tracing.
    pub tracing: Option<Tracing>,
    /// Logging every request.
    pub access: Option<AccessLog>,
    /// Telling what goes wrong.
    pub failures: Failures,
    /// When the process began.
    pub started: SystemTime,
    /// Makes ids where nothing is traced.
    ids: Ids,
}

impl Default for Telemetry {
    /// Nothing is on.
    fn default() -> Self {
        Telemetry {
            metrics: None,
            tracing: None,
            access: None,
            failures: Failures::default(),
            started: SystemTime::now(),
            ids: Ids::default(),
        }
    }
}

impl Telemetry {
    /// What was asked for.
    pub fn new(
        metrics: Option<Metrics>,
        tracing: Option<Tracing>,
        access: Option<AccessLog>,
    ) -> Self {
        Telemetry {
            metrics,
            tracing,
            access,
            ..Telemetry::default()
        }
    }
    /// An id for a request.
    pub fn new_id(&self) -> u128 {
        u128::from(self.ids.next()) << 64 | u128::from(self.ids.next())
    }
    /// Counts and notes a call of a hook that began at `since` and is over now.
    pub fn hook_called(
        &self,
        record: Option<&Record>,
        (hook, stage): (Hook, &'static str),
        outcome: HookOutcome,
        since: Instant,
    ) -> HookCall {
        let started = record.map(|record| since.saturating_duration_since(record.started));
        let call = HookCall {
            hook,
            stage,
            outcome,
            started: started.unwrap_or_default(),
            took: since.elapsed(),
        };
        if let Some(metrics) = &self.metrics {
            metrics.hook(&call);
        }
        if let Some(record) = record {
            record.hook(call);
        }
        call
    }
    /// Logs and counts a failure.
    pub fn failed(&self, line: &FailureLine<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.failed(line.subgraph, line.code);
        }
        self.failures.tell(line);
    }
    /// Opens log files anew, because they may have been moved away.
    pub fn reopen(&self) {
        if let Some(access) = &self.access {
            access.reopen();
        }
    }
    /// Writes what is left of the access log, for at most [`log::FINISH_MAX`].
    pub fn finish(&self) {
        if let Some(access) = &self.access {
            access.finish(log::FINISH_MAX);
        }
    }
    /// What became of the lines of each log.
    pub fn logs(&self) -> Vec<(&'static str, lines::LineCounts)> {
        let access = self.access.as_ref();
        let access = access.map(|access| ("access", access.counts()));
        access
            .into_iter()
            .chain([("process", log::counts())])
            .collect()
    }
    /// Whether requests need a record.
    pub fn is_on(&self) -> bool {
        self.metrics.is_some() || self.tracing.is_some() || self.access.is_some()
    }
    /// Begins the record of a request. `keep`: whether somebody wants its operations when it is done.
    pub fn begin(
        self: &Arc<Self>,
        parts: &Parts,
        request_id: Option<HeaderValue>,
        keep: bool,
    ) -> Record {
        let trace = self.tracing.as_ref().map(|t| t.context(&parts.headers));
        Record::new(
            Arc::clone(self),
            &parts.method,
            parts.uri.path(),
            trace,
            request_id,
            keep || self.access.is_some(),
        )
    }
    /// Begins the record of an event of a subscription, which came from this subgraph, if it is traced. Each has a trace of
    /// its own: a subscription may last for days.
    pub fn begin_event(self: &Arc<Self>, subgraph: &str) -> Option<Record> {
        let trace = self.tracing.as_ref()?.context(&http::HeaderMap::new());
        let trace = Some(trace).filter(|trace| trace.sampled)?;
        Some(Record::of_event(Arc::clone(self), subgraph, trace))
    }
}
