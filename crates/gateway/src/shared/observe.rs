//! What the pipeline notes of a request, and how the configuration asks for it.
//!
//! A [`Watch`] accompanies one GraphQL operation; it is the transport's observer, too. When the operation is done, what
//! it noted goes into the [`Record`] of the HTTP request.

use std::{
    cell::{Cell, RefCell, RefMut},
    io,
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::bounded_name;
use ogive_config::{Config, LogFormat};
use ogive_execute::FailureReport;
use ogive_telemetry::{
    AccessLog, Call, Metrics, Operation, Record, Stop, Telemetry, Tracing,
    access::{Field, LineFormat},
    metrics::MetricsOptions,
    operation::ClientIdentity,
    propagation::Propagation,
    timeline,
    traces::TracingOptions,
};
use ogive_transport::{Answered, Endpoint, Observer, first_text};

use crate::shared::{
    error::RequestError,
    stage_observer::{StageEvent, StageObserver},
};

/// Longest id of a request that a client may choose.
const REQUEST_ID_MAX: usize = 128;

/// What can change while the process runs.
#[derive(Clone, Debug, Default)]
pub struct ObserveOptions {
    /// The header in which the id of a request travels; `None`: requests have none.
    pub request_id: Option<HeaderName>,
    /// Which clients see where the time went.
    pub execution_trace: Option<ExecutionTrace>,
    /// Headers in which clients say what they are called: the first that is there counts.
    pub client_names: Vec<HeaderName>,
    /// Likewise their version.
    pub client_versions: Vec<HeaderName>,
}

/// The header that asks for the execution trace, and what it must say.
#[derive(Clone, Debug)]
pub struct ExecutionTrace {
    header: HeaderName,
    secret: Box<[u8]>,
}

impl ObserveOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let telemetry = &config.telemetry;
        let name = |name: &ogive_config::HeaderName| HeaderName::from_bytes(name.0.as_bytes()).ok();
        let trace = &telemetry.execution_trace;
        let names = |list: &[ogive_config::HeaderName]| list.iter().filter_map(name).collect();
        ObserveOptions {
            request_id: name(&telemetry.request_id.header).filter(|_| telemetry.request_id.enabled),
            execution_trace: name(&trace.header).filter(|_| trace.enabled).map(|header| {
                ExecutionTrace {
                    header,
                    secret: trace.secret.as_deref().unwrap_or("true").as_bytes().into(),
                }
            }),
            client_names: names(&telemetry.clients.name_headers),
            client_versions: names(&telemetry.clients.version_headers),
        }
    }
    /// What the client of a request is called, if it says so.
    pub(crate) fn client_of(&self, headers: &HeaderMap) -> Option<Box<ClientIdentity>> {
        let (name, version) = (&self.client_names, &self.client_versions);
        let (name, version) = (first_text(headers, name), first_text(headers, version));
        if name.is_none() && version.is_none() {
            return None;
        }
        // Labels of metrics, and attributes of spans.
        Some(Box::new(ClientIdentity {
            name: name.unwrap_or_default().into(),
            version: version.unwrap_or_default().into(),
        }))
    }
    /// Whether requests need a record although nothing is exported.
    pub(crate) fn is_on(&self) -> bool {
        self.request_id.is_some() || self.execution_trace.is_some()
    }
    /// The header with which everybody gets the execution trace, if there is one.
    pub(crate) fn open_trace(&self) -> Option<&str> {
        let trace = self.execution_trace.as_ref()?;
        (&*trace.secret == b"true").then(|| trace.header.as_str())
    }
    /// Whether this client gets the execution trace.
    pub(crate) fn traces(&self, headers: &HeaderMap) -> bool {
        let Some(trace) = &self.execution_trace else {
            return false;
        };
        let sent = headers.get(&trace.header).map(HeaderValue::as_bytes);
        // In constant time: how long it takes must not tell how much of a guess was right.
        sent.is_some_and(|sent| {
            sent.len() == trace.secret.len()
                && sent
                    .iter()
                    .zip(&trace.secret)
                    .fold(0, |acc, (a, b)| acc | (a ^ b))
                    == 0
        })
    }
    /// The id of a request: the client's, if it is one, else `make`'s.
    pub(crate) fn id_of(
        &self,
        headers: &HeaderMap,
        make: impl FnOnce() -> u128,
    ) -> Option<HeaderValue> {
        let name = self.request_id.as_ref()?;
        let fine = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        };
        match headers.get(name).filter(fine) {
            Some(value) => Some(value.clone()),
            None => HeaderValue::from_str(&format!("{:032x}", make())).ok(),
        }
    }
}

/// What a configuration asks to be counted, traced and logged, of a process that was built from a commit, if that is known.
/// The error is for the operator.
pub fn telemetry(config: &Config, commit: Option<&'static str>) -> Result<Telemetry, String> {
    let options = &config.telemetry;
    let (metrics, tracing) = (&options.exporters.metrics, &options.exporters.tracing);
    let access = &options.access_log;
    let metrics_on = metrics.prometheus.enabled || metrics.otlp.enabled;
    let propagation = &tracing.propagation;
    Ok(Telemetry::new(
        metrics_on.then(|| {
            Metrics::new(MetricsOptions {
                cardinality_limit: metrics.common.cardinality_limit.get(),
                operation_names: metrics.common.operation_names,
                clients: metrics.common.clients,
                bounds_ns: metrics.common.buckets.0.clone(),
                commit,
            })
        }),
        tracing.otlp.enabled.then(|| {
            Tracing::new(TracingOptions {
                sampler: tracing.common.sampler.0,
                parent_based: tracing.common.parent_based_sampler,
                propagation: Propagation {
                    trace_context: propagation.trace_context,
                    baggage: propagation.baggage,
                    b3: propagation.b3,
                    jaeger: propagation.jaeger,
                    datadog: propagation.datadog,
                },
                queue_max: tracing.otlp.batch_processor.max_queue_size.get(),
            })
        }),
        if access.enabled {
            Some(access_log(config)?)
        } else {
            None
        },
    ))
}

fn access_log(config: &Config) -> Result<AccessLog, String> {
    let access = &config.telemetry.access_log;
    let fields: Result<Vec<Field>, String> = access
        .fields
        .iter()
        .map(|word| {
            Field::parse(word).ok_or_else(|| {
                let known: Vec<&str> = Field::ALL.iter().map(|f| f.word()).collect();
                format!(
                    "`telemetry.access_log.fields` has no field `{word}`; there are {}",
                    known.join(", ")
                )
            })
        })
        .collect();
    let format = match access.format {
        LogFormat::Json => LineFormat::Json,
        LogFormat::Text => LineFormat::Text,
    };
    let path = access.path.as_deref();
    AccessLog::start(path, format, fields?).map_err(|error: io::Error| {
        format!(
            "cannot write the access log `{}`: {error}",
            path.unwrap_or("-")
        )
    })
}

/// Notes what becomes of one operation.
pub(crate) struct Watch<'a> {
    record: &'a Record,
    tracing: Option<&'a Tracing>,
    /// Header and value that go on to subgraphs.
    request_id: Option<(&'a HeaderName, &'a HeaderValue)>,
    operation: RefCell<Operation>,
    /// When the stop began that it is at.
    from: Cell<Duration>,
    /// The request to a subgraph that was answered last.
    last: Cell<Option<u32>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(record: &'a Record, options: &'a ObserveOptions) -> Self {
        let started = record.now();
        Watch {
            from: Cell::new(started),
            record,
            tracing: record.tracing(),
            request_id: options.request_id.as_ref().zip(record.request_id.as_ref()),
            operation: RefCell::new(Operation {
                started,
                ..Operation::default()
            }),
            last: Cell::new(None),
        }
    }
    /// The same for an event of a subscription.
    pub(crate) fn of_event(self, name: Option<&str>) -> Self {
        let mut noted = self.operation.borrow_mut();
        noted.kind = "subscription";
        noted.name = name.map(|name| bounded_name(name).into());
        drop(noted);
        self
    }
    /// A stop is over; the next one begins.
    fn stop(&self, stop: Stop) -> RefMut<'_, Operation> {
        let (from, now) = (self.from.get(), self.record.now());
        self.from.set(now);
        let mut operation = self.operation.borrow_mut();
        operation.stops[stop as usize] = Some((from, now - from));
        operation
    }
    /// It is done, or refused.
    pub(crate) fn finish(self, refused: Option<&RequestError>, endpoints: &[Endpoint]) {
        let mut operation = self.operation.into_inner();
        if let Some(error) = refused {
            operation.errors = error.errors.len();
            operation.code = error.errors.first().map(|e| e.code.as_str());
        }
        self.record.done(operation, |index| name(endpoints, index));
    }
}

impl StageObserver for Watch<'_> {
    fn passed(&self, stage: &StageEvent<'_>) {
        match stage {
            StageEvent::Document(_) | StageEvent::Other(..) => self.from.set(self.record.now()),
            StageEvent::Prepare(_, prepared) => {
                let mut noted = self.stop(Stop::Prepare);
                noted.kind = prepared.operation.definition.kind.as_str();
                noted.name = prepared
                    .operation
                    .name()
                    .map(|name| bounded_name(name).into());
            }
            StageEvent::Plan(_, source) => self.stop(Stop::Plan).plan_source = source.as_str(),
            StageEvent::Execute(_, output) => self.stop(Stop::Execute).errors = output.errors_total,
            StageEvent::Respond => drop(self.stop(Stop::Respond)),
        }
    }
    /// With the answer that came last, if it is of the same subgraph.
    fn failed(&self, failure: &FailureReport<'_>) {
        let mut operation = self.operation.borrow_mut();
        let last = self.last.get();
        let call = last.and_then(|number| operation.calls.get_mut(number as usize));
        if let Some(call) = call.filter(|call| Some(call.subgraph) == failure.subgraph)
            && call.failure().is_none()
            && failure.status.is_some()
        {
            call.wrong = Some(bounded_name(failure.code).into());
        }
    }
    fn record(&self) -> Option<&Record> {
        Some(self.record)
    }
    fn requests(&self) -> Option<&dyn Observer> {
        Some(self)
    }
    fn timeline(&self, endpoints: &[Endpoint]) -> Option<Vec<u8>> {
        let operation = self.operation.borrow();
        Some(timeline::json(&operation, |index| name(endpoints, index)))
    }
}

fn name(endpoints: &[Endpoint], subgraph: u32) -> &str {
    let endpoint = endpoints.get(subgraph as usize);
    endpoint.map_or("", |endpoint| &endpoint.name)
}

impl Observer for Watch<'_> {
    fn asked(&self, subgraph: u32) -> u32 {
        let mut operation = self.operation.borrow_mut();
        operation.calls.push(Call {
            subgraph,
            span_id: self.tracing.map_or(0, Tracing::new_id),
            started: self.record.now(),
            ..Call::default()
        });
        operation.calls.len() as u32 - 1
    }
    fn sending(&self, number: u32, headers: &mut HeaderMap) {
        let mut operation = self.operation.borrow_mut();
        let Some(call) = operation.calls.get_mut(number as usize) else {
            return;
        };
        call.tries += 1;
        if let (Some(tracing), Some(trace)) = (self.tracing, &self.record.trace) {
            let propagation = &tracing.options.propagation;
            propagation.write(trace, call.span_id, headers);
        }
        if let Some((name, value)) = self.request_id {
            headers.insert(name, value.clone());
        }
    }
    fn identity(&self, to: &mut Vec<u8>) {
        if let (Some(_), Some(trace)) = (self.tracing, &self.record.trace) {
            trace.write_identity(to);
        }
    }
    fn answered(&self, number: u32, answered: Answered) {
        let mut operation = self.operation.borrow_mut();
        let Some(call) = operation.calls.get_mut(number as usize) else {
            return;
        };
        self.last.set(Some(number));
        call.took = self.record.now() - call.started;
        match answered {
            Answered::Status(status, bytes) => {
                call.status = Some(status);
                call.bytes = bytes;
            }
            Answered::Failed(code) => call.code = Some(code.as_str()),
        }
    }
}
