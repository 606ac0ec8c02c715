//! What the pipeline notes of a request, and how the configuration asks for it.
//!
//! A [`Watch`] accompanies one GraphQL operation; it is the transport's observer, too. When the operation is done, what
//! it noted goes into the [`Record`] of the HTTP request.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell, RefMut},
    io,
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use ogive_base::bounded_name;
use ogive_config::{Config, LogFormat};
use ogive_edge::error::RequestError;
use ogive_execute::FailureReport;
use ogive_failure::{ErrorCode, codes};
use ogive_selectors::Selector;
use ogive_server::ResponseBody;
use ogive_telemetry::{
    AccessLog, Call, Metrics, Operation, Record, Stop, Telemetry, Tracing,
    access::{Field, LineFormat},
    metrics::MetricsOptions,
    propagation::Propagation,
    timeline,
    traces::TracingOptions,
};
use ogive_transport::{Answered, Endpoint, Observer};

use crate::hooks::values::entry_of;
pub use crate::shared::observe_options::ObserveOptions;
use crate::shared::{
    context::OperationContext,
    operation_values::RequestValues,
    stage_observer::{StageEvent, StageObserver},
};

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
                attribute_values_max: metrics.common.attribute_values_max.get(),
                client_share: config.limits.client_share.0.get().into(),
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
    // The configuration has no others.
    let fields = access.fields.iter().filter_map(|word| Field::parse(word));
    let format = match access.format {
        LogFormat::Json => LineFormat::Json,
        LogFormat::Text => LineFormat::Text,
    };
    let path = access.path.as_deref();
    AccessLog::start(path, format, fields.collect()).map_err(|error: io::Error| {
        format!(
            "cannot write the access log `{}`: {error}",
            path.unwrap_or("-")
        )
    })
}

/// What an operation gets.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// All of it is there.
    Whole,
    /// Parts or events follow its response.
    GoesOn,
    /// None.
    Refused(&'a RequestError),
}

impl<'a> Answer<'a> {
    pub(crate) fn of(answer: &'a Result<Response<ResponseBody>, RequestError>) -> Self {
        match answer {
            Ok(response) if response.body().is_in_parts() => Answer::GoesOn,
            Ok(_) => Answer::Whole,
            Err(error) => Answer::Refused(error),
        }
    }
}

/// Notes what becomes of one operation.
pub(crate) struct Watch<'a> {
    record: &'a Record,
    tracing: Option<&'a Tracing>,
    /// Header and value that go on to subgraphs.
    request_id: Option<(&'a HeaderName, &'a HeaderValue)>,
    operation: RefCell<Operation>,
    options: &'a ObserveOptions,
    /// When the stop began that it is at.
    from: Cell<Duration>,
    /// The request to a subgraph that was answered last.
    last: Cell<Option<u32>>,
    /// The code of what went wrong first.
    failed: Cell<Option<ErrorCode>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(record: &'a Record, options: &'a ObserveOptions) -> Self {
        let started = record.now();
        Watch {
            from: Cell::new(started),
            record,
            options,
            tracing: record.tracing(),
            request_id: options.request_id.as_ref().zip(record.request_id.as_ref()),
            operation: RefCell::new(Operation {
                started,
                ..Operation::default()
            }),
            last: Cell::new(None),
            failed: Cell::new(None),
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
    pub(crate) fn finish(
        &self,
        context: &OperationContext<'_>,
        answered: Answer<'_>,
        endpoints: &[Endpoint],
    ) {
        let mut operation = self.operation.take();
        if let Answer::Refused(error) = answered {
            operation.errors = error.errors.len();
            operation.code = error.errors.first().map(|e| e.code.as_str());
        }
        if let Some(rules) = &self.options.attributes {
            let subgraph = |index| name(endpoints, index).to_owned();
            let find = |from: &Selector| self.find(from, context);
            let goes_on = matches!(answered, Answer::GoesOn);
            rules.note_operation(self.record, &mut operation, (goes_on, subgraph), find);
        }
        self.record.done(operation, |index| name(endpoints, index));
    }
    /// What is known of who asks, and how.
    fn find<'c>(&self, from: &Selector, context: &'c OperationContext<'_>) -> Option<Cow<'c, str>> {
        match from {
            Selector::RequestMethod => {
                let (parts, _) = context.origin()?;
                Some(parts.method.as_str().to_owned().into())
            }
            Selector::RequestContext(name) => {
                let told = context.hooks()?;
                entry_of(told.run, Some(told), name)
            }
            _ => {
                let values = RequestValues {
                    headers: context.headers,
                    caller: context.caller(),
                    client: context.client(),
                    observe: self.options,
                };
                Some(values.find(from)?.into_owned().into())
            }
        }
    }
    /// Notes headers of a request to a subgraph, or of its answer, if attributes may look at them.
    fn headers(&self, number: u32, headers: &HeaderMap, is_answer: bool) {
        if let Some(rules) = &self.options.attributes
            && let Some(call) = self.operation.borrow_mut().calls.get_mut(number as usize)
        {
            rules.note_headers(call, headers, is_answer);
        }
    }
}

impl StageObserver for Watch<'_> {
    fn passed(&self, stage: &StageEvent<'_>) {
        match stage {
            StageEvent::Document(_) | StageEvent::Other(..) => self.from.set(self.record.now()),
            // Those who watch the worker are told.
            StageEvent::Known(..)
            | StageEvent::Receive(_)
            | StageEvent::Hook(_)
            | StageEvent::Part(_)
            | StageEvent::ExecuteInParts(..)
            | StageEvent::Source(..)
            | StageEvent::Event(..) => {}
            StageEvent::Prepare(_, prepared) => {
                let mut noted = self.stop(Stop::Prepare);
                noted.kind = prepared.operation.definition.kind.as_str();
                noted.name = prepared
                    .operation
                    .name()
                    .map(|name| bounded_name(name).into());
            }
            StageEvent::Plan(_, source) => self.stop(Stop::Plan).plan_source = source.as_str(),
            StageEvent::Charge(cost) => self.operation.borrow_mut().cost_estimated = Some(*cost),
            StageEvent::Execute(_, output) => {
                {
                    let mut noted = self.stop(Stop::Execute);
                    noted.errors = output.errors_total;
                    noted.cost_actual = output.cost;
                }
                if let Some(code) = self.failed.get().filter(|_| output.errors_total > 0) {
                    self.record.erred(code.as_str());
                }
            }
            StageEvent::Respond => drop(self.stop(Stop::Respond)),
        }
    }
    /// With the answer that came last, if it is of the same subgraph.
    fn failed(&self, failure: &FailureReport<'_>) {
        // What the subgraph reports has codes of its own, of which there may be many.
        let code = match ErrorCode::find(failure.code) {
            _ if failure.is_reported => Some(codes::SUBREQUEST_GRAPHQL_ERROR),
            // An entity that is not known is no error of the answer.
            Some(codes::SUBREQUEST_MISSING_ENTITY) => None,
            code => code,
        };
        self.failed.set(self.failed.get().or(code));
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
        let hooks = self.record.hooks();
        Some(timeline::json(&operation, &hooks, |index| {
            name(endpoints, index)
        }))
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
    fn sent(&self, number: u32, headers: &HeaderMap) {
        self.headers(number, headers, false);
    }
    fn answered_with(&self, number: u32, headers: &HeaderMap) {
        self.headers(number, headers, true);
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
