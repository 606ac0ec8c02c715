//! What is noted of one request while it is answered: the one source of metrics, spans, access log and timeline.
//!
//! A [`Record`] belongs to one HTTP request, an [`Operation`] to one GraphQL operation of it. Both are written by one
//! thread. A record that is dropped before it is finished is a client that left.

use std::{
    borrow::Cow,
    cell::{Cell, Ref, RefCell},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::HeaderValue;
use ogive_base::{bounded, bounded_name, foreign::MESSAGE_BYTES_MAX};

use crate::{
    Telemetry,
    attributes::{AttributeName, Attributes},
    hook::HookCall,
    metrics::NewValue,
    metrics::{Event, Metrics},
    operation::{ClientIdentity, Operation, Stop, Timed},
    propagation::TraceContext,
    traces::RequestSpan,
};

/// One HTTP request.
#[derive(Debug)]
pub struct Record {
    telemetry: Arc<Telemetry>,
    /// When it came.
    pub started: Instant,
    /// The same on the wall.
    pub time: SystemTime,
    /// Its method; one of the known ones, or `_OTHER`.
    pub method: &'static str,
    /// Its path.
    pub path: Box<str>,
    /// Its trace, if there is one.
    pub trace: Option<TraceContext>,
    /// Its id, if it has one.
    pub request_id: Option<HeaderValue>,
    /// What its client is called, if that is said.
    pub client: Option<Box<ClientIdentity>>,
    /// Whose share of what metrics tell apart it has; `None` if nobody can tell.
    pub counted_for: Option<IpAddr>,
    /// Reading and checking it.
    received: Cell<Option<Timed>>,
    /// Whether operations are kept with the names of subgraphs until the end.
    keep: bool,
    /// Whether it is an event of a subscription, which is traced and not counted as a request. Its path is the subgraph.
    is_event: bool,
    operations: RefCell<Vec<Operation>>,
    /// What operators add, if they do.
    attributes: RefCell<Option<Box<Attributes>>>,
    hooks: RefCell<Vec<HookCall>>,
    code: Cell<Option<&'static str>>,
    /// Codes of limits that it exceeds and that are only measured, each once.
    exceeded: RefCell<Vec<&'static str>>,
    /// Code of the first error of an answer that has data.
    error: Cell<Option<&'static str>>,
    finished: Cell<bool>,
    /// Whether it was let in, so that its client is counted by its name.
    is_admitted: Cell<bool>,
}

/// Most calls of hooks that are kept of one request; metrics have all.
const HOOKS_MAX: usize = 1_000;

impl Record {
    /// A request came.
    pub(crate) fn new(
        telemetry: Arc<Telemetry>,
        method: &http::Method,
        path: &str,
        trace: Option<TraceContext>,
        request_id: Option<HeaderValue>,
        keep: bool,
    ) -> Self {
        if let Some(metrics) = &telemetry.metrics {
            metrics.came();
        }
        let sampled = trace.as_ref().is_some_and(|t| t.sampled);
        let keep = keep || sampled;
        Record {
            telemetry,
            started: Instant::now(),
            time: if keep {
                SystemTime::now()
            } else {
                SystemTime::UNIX_EPOCH
            },
            method: known_method(method),
            path: if keep {
                bounded(path, MESSAGE_BYTES_MAX).into()
            } else {
                Box::default()
            },
            trace,
            request_id,
            client: None,
            counted_for: None,
            received: Cell::new(None),
            keep,
            is_event: false,
            operations: RefCell::default(),
            attributes: RefCell::default(),
            hooks: RefCell::default(),
            code: Cell::new(None),
            exceeded: RefCell::default(),
            error: Cell::new(None),
            finished: Cell::new(false),
            is_admitted: Cell::new(false),
        }
    }
    /// An event of a subscription came from this subgraph.
    pub(crate) fn of_event(telemetry: Arc<Telemetry>, subgraph: &str, trace: TraceContext) -> Self {
        Record {
            telemetry,
            started: Instant::now(),
            time: SystemTime::now(),
            method: "",
            path: bounded(subgraph, MESSAGE_BYTES_MAX).into(),
            trace: Some(trace),
            request_id: None,
            client: None,
            counted_for: None,
            received: Cell::new(None),
            keep: true,
            is_event: true,
            operations: RefCell::default(),
            attributes: RefCell::default(),
            hooks: RefCell::default(),
            code: Cell::new(None),
            exceeded: RefCell::default(),
            error: Cell::new(None),
            finished: Cell::new(false),
            is_admitted: Cell::new(false),
        }
    }
    /// What counts requests.
    fn counts(&self) -> Option<&Metrics> {
        self.telemetry.metrics.as_ref().filter(|_| !self.is_event)
    }
    /// Now, from the start.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }
    /// Operators add these attributes.
    pub fn with_attributes(&mut self, names: &Arc<[AttributeName]>) {
        *self.attributes.get_mut() = Some(Box::new(Attributes::new(names)));
    }
    /// Notes attributes, if operators add any.
    pub fn note(&self, note: impl FnOnce(&mut Attributes)) {
        if let Some(attributes) = &mut *self.attributes.borrow_mut() {
            note(attributes);
        }
    }
    /// What operators add.
    pub fn attributes(&self) -> Ref<'_, Option<Box<Attributes>>> {
        self.attributes.borrow()
    }
    /// Stop 1 is over.
    pub fn received(&self, from: Duration) {
        self.received.set(Some((from, self.now() - from)));
    }
    /// The request was let in: it is within the rates, and of somebody who is known, if somebody has to be.
    pub fn admit(&self) {
        self.is_admitted.set(true);
    }
    /// The request, or one entry of a batch, was refused.
    pub fn refused(&self, code: &'static str) {
        self.code.set(self.code.get().or(Some(code)));
    }
    /// An operation was answered, with data and errors; this is the code of the first.
    pub fn erred(&self, code: &'static str) {
        self.error.set(self.error.get().or(Some(code)));
    }
    /// It is beyond a limit that is only measured.
    pub fn exceeded(&self, code: &'static str) {
        let mut exceeded = self.exceeded.borrow_mut();
        if !exceeded.contains(&code) {
            exceeded.push(code);
        }
    }
    /// An operation is done. `subgraph` names a subgraph by its index.
    pub fn done<'n>(&self, mut operation: Operation, subgraph: impl Fn(u32) -> &'n str) {
        operation.stops[Stop::Receive as usize] = self.received.take();
        // A label of metrics, and an attribute of spans.
        if let Some(name) = &mut operation.name
            && let Cow::Owned(shown) = bounded_name(name)
        {
            *name = shown.into();
        }
        let took = self.now() - operation.started;
        if let Some(metrics) = self.counts() {
            metrics.operation(&operation, self.counted_for, took, &subgraph);
        }
        if self.keep {
            for call in &mut operation.calls {
                call.name = subgraph(call.subgraph).into();
            }
            self.operations.borrow_mut().push(operation);
        }
    }
    /// A hook was called.
    pub(crate) fn hook(&self, call: HookCall) {
        let mut hooks = self.hooks.borrow_mut();
        if hooks.len() < HOOKS_MAX {
            hooks.push(call);
        }
    }
    /// The calls of hooks so far.
    pub fn hooks(&self) -> Ref<'_, [HookCall]> {
        Ref::map(self.hooks.borrow(), Vec::as_slice)
    }
    /// The response is ready. Gives what is needed to log it.
    pub fn finish(&self, status: u16, bytes: u64) -> Vec<Operation> {
        self.finished.set(true);
        let took = self.now();
        let attributes = self.attributes.borrow();
        let attributes = attributes.as_deref();
        if let Some(metrics) = self.counts() {
            let new_client = NewValue::refused(!self.is_admitted.get(), self.counted_for);
            let who = (self.method, self.client.as_deref(), new_client);
            // Behind an upgrade nobody knows yet who asks.
            let is_refused =
                self.code.get().is_some() || status == 101 || (400..500).contains(&status);
            let is_new = NewValue::refused(is_refused, self.counted_for);
            metrics.left(who, attributes, (status, is_new), took, bytes);
        }
        let operations = self.operations.take();
        if let (Some(tracing), Some(trace)) = (&self.telemetry.tracing, &self.trace)
            && trace.sampled
        {
            let request_id = self.request_id.as_ref();
            let request = RequestSpan {
                time: self.time,
                took,
                method: self.method,
                path: &self.path,
                request_id: request_id.and_then(|id| id.to_str().ok()),
                client: self.client.as_deref(),
                status,
                code: self.code(),
                is_event: self.is_event,
                attributes,
                hooks: &self.hooks.borrow(),
            };
            let dropped = tracing.push(&request, trace, &operations);
            if let (true, Some(metrics)) = (dropped, &self.telemetry.metrics) {
                metrics.count(Event::SpanDropped);
            }
        }
        operations
    }
    /// The tracer, if there is one.
    pub fn tracing(&self) -> Option<&crate::Tracing> {
        self.telemetry.tracing.as_ref()
    }
    /// Code of the first refusal.
    pub fn code(&self) -> Option<&'static str> {
        self.code.get()
    }
}

impl Record {
    /// Codes of the limits that it exceeds and that are only measured.
    pub(crate) fn limits_exceeded(&self) -> Ref<'_, [&'static str]> {
        Ref::map(self.exceeded.borrow(), Vec::as_slice)
    }
    /// Code of the first refusal, or else of the first error in an answer.
    pub(crate) fn told_code(&self) -> Option<&'static str> {
        self.code.get().or(self.error.get())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.finished.get() {
            self.finish(499, 0);
        }
    }
}

/// Methods are a label, so foreign ones are counted together.
fn known_method(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "OPTIONS" => "OPTIONS",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "PATCH" => "PATCH",
        _ => "_OTHER",
    }
}
