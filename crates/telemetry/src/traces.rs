//! Which requests are traced, and the spans on their way to the exporter.
//!
//! Spans are made when a request is done, from its [record](crate::record): requests that are not sampled cost two random numbers.

use std::{
    fmt,
    hash::BuildHasher,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use ogive_base::FastMap;

use crate::{
    attributes::{Attributes, Signal},
    hook::{Hook, HookCall, HookOutcome},
    names,
    operation::{Call, ClientIdentity, Operation, Stop, Timed},
    propagation::{Propagation, TraceContext},
    spans,
};

/// How requests are chosen and how spans wait.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TracingOptions {
    /// Share of the traces that begin here which are recorded, 0 to 1; default 1.
    pub sampler: f64,
    /// Whether a client's decision about its trace counts; default yes.
    pub parent_based: bool,
    /// Formats of the context.
    pub propagation: Propagation,
    /// Most spans that wait for the exporter; more are dropped and counted. Default 2,048.
    pub queue_max: usize,
}

impl Default for TracingOptions {
    fn default() -> Self {
        TracingOptions {
            sampler: 1.0,
            parent_based: true,
            propagation: Propagation::default(),
            queue_max: 2_048,
        }
    }
}

/// Who asked whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// A part of the gateway's work.
    Internal,
    /// A client asked the gateway.
    Server,
    /// The gateway asked a subgraph.
    Client,
}

/// A request that is done, as its span shows it.
pub(crate) struct RequestSpan<'r> {
    /// When it came.
    pub(crate) time: SystemTime,
    pub(crate) took: Duration,
    pub(crate) method: &'static str,
    pub(crate) path: &'r str,
    pub(crate) request_id: Option<&'r str>,
    pub(crate) client: Option<&'r ClientIdentity>,
    pub(crate) status: u16,
    /// Code of the first refusal.
    pub(crate) code: Option<&'static str>,
    /// Whether it is an event of the subgraph that the path names.
    pub(crate) is_event: bool,
    /// What operators add, if they do.
    pub(crate) attributes: Option<&'r Attributes>,
    /// The calls of hooks.
    pub(crate) hooks: &'r [HookCall],
}

/// An attribute's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// Text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A switch.
    Switch(bool),
}

/// One finished span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its trace.
    pub trace_id: u128,
    /// Itself.
    pub span_id: u64,
    /// Its parent; 0 if it has none.
    pub parent_id: u64,
    /// `tracestate`.
    pub state: String,
    /// Its name.
    pub name: String,
    /// Who asked whom.
    pub kind: SpanKind,
    /// When it began.
    pub start: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// Attributes.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Whether it failed.
    pub failed: bool,
}

/// Ids are hashes of a counter under random keys: unique, hard to guess, and without a lock.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// A map is what brings such keys along.
    keys: FastMap<u8, ()>,
    next: AtomicU64,
}

impl Ids {
    /// An id that is not 0.
    pub(crate) fn next(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.keys.hasher().hash_one(number).max(1)
    }
}

/// The tracer of a process.
#[derive(Debug)]
pub struct Tracing {
    /// How it works.
    pub options: TracingOptions,
    ids: Ids,
    queue: Mutex<Vec<Span>>,
    wake: OnceLock<Wake>,
}

/// Whom to tell when so many spans wait.
struct Wake(usize, Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wake").field(&self.0).finish()
    }
}

impl Tracing {
    /// A tracer.
    pub fn new(options: TracingOptions) -> Self {
        Tracing {
            options,
            ids: Ids::default(),
            queue: Mutex::default(),
            wake: OnceLock::new(),
        }
    }
    /// Calls `wake` whenever at least so many spans wait. Only the first caller counts.
    pub fn when_waiting(&self, spans: usize, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.wake.set(Wake(spans, wake));
    }
    /// An id that is not 0.
    pub fn new_id(&self) -> u64 {
        self.ids.next()
    }
    /// The context of a request.
    pub fn context(&self, headers: &HeaderMap) -> TraceContext {
        let options = &self.options;
        let decide = |told: Option<bool>, trace_id: u128| match told {
            Some(told) if options.parent_based => told,
            // The lower half of the id is random; so every gateway of a chain decides alike.
            _ => (trace_id as u64 as f64) < options.sampler * u64::MAX as f64,
        };
        let mut new_id = || self.new_id();
        options.propagation.context(headers, &mut new_id, &decide)
    }
    /// Takes the spans that wait.
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Makes the spans of a request. Says whether there was no room for them.
    pub(crate) fn push(
        &self,
        request: &RequestSpan<'_>,
        trace: &TraceContext,
        operations: &[Operation],
    ) -> bool {
        let mut made = Vec::with_capacity(8);
        self.make(request, trace, operations, &mut made);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let full = queue.len() + made.len() > self.options.queue_max;
        if !full {
            queue.append(&mut made);
        }
        let waiting = queue.len();
        drop(queue);
        if let Some(Wake(spans, wake)) = self.wake.get()
            && waiting >= *spans
        {
            wake();
        }
        full
    }

    fn make(
        &self,
        request: &RequestSpan<'_>,
        trace: &TraceContext,
        operations: &[Operation],
        out: &mut Vec<Span>,
    ) {
        let new = NewSpans {
            trace,
            since: request.time,
        };
        let mut root = new.request(request);
        if let [only] = operations {
            root.attributes.extend(describe(only));
        }
        add(&mut root, request.attributes);
        out.push(root);
        for call in request.hooks {
            out.push(new.hook(call, self.new_id()));
        }
        for operation in operations {
            for (stop, timed) in Stop::ALL.into_iter().zip(&operation.stops) {
                let Some(timed) = *timed else {
                    continue;
                };
                let id = self.new_id();
                if stop == Stop::Execute {
                    out.extend(operation.calls.iter().map(|call| new.call(call, id)));
                }
                out.push(new.stop(operation, stop, timed, id));
            }
        }
    }
}

/// Makes the spans of one trace.
struct NewSpans<'t> {
    trace: &'t TraceContext,
    /// When the request came.
    since: SystemTime,
}

impl NewSpans<'_> {
    fn span(&self, span_id: u64, parent_id: u64, name: String, kind: SpanKind, at: Timed) -> Span {
        let state = self.trace.state.as_ref().and_then(|s| s.to_str().ok());
        let (start, took) = at;
        Span {
            trace_id: self.trace.trace_id,
            span_id,
            parent_id,
            state: state.unwrap_or_default().to_owned(),
            name,
            kind,
            start: self.since + start,
            took,
            attributes: Vec::new(),
            failed: false,
        }
    }
    fn request(&self, request: &RequestSpan<'_>) -> Span {
        if request.is_event {
            let name = format!("{} {}", spans::EVENT, request.path);
            let whole = (Duration::ZERO, request.took);
            let mut root = self.span(self.trace.span_id, 0, name, SpanKind::Internal, whole);
            root.attributes = vec![("subgraph.name", text(request.path))];
            return root;
        }
        let name = format!("{} {}", request.method, request.path);
        let whole = (Duration::ZERO, request.took);
        let (id, parent) = (self.trace.span_id, self.trace.parent_id);
        let mut root = self.span(id, parent, name, SpanKind::Server, whole);
        let status = Attribute::Number(i64::from(request.status));
        root.attributes = vec![
            ("http.request.method", text(request.method)),
            ("url.path", text(request.path)),
            ("url.scheme", text("http")),
            ("http.response.status_code", status),
        ];
        root.failed = request.status >= 500;
        if let Some(id) = request.request_id {
            root.attributes.push(("http.request.id", text(id)));
        }
        if let Some(client) = request.client {
            for (name, value) in [
                (names::CLIENT_NAME, &client.name),
                (names::CLIENT_VERSION, &client.version),
            ] {
                if !value.is_empty() {
                    root.attributes.push((name, text(value)));
                }
            }
        }
        if let Some(code) = request.code {
            root.attributes.push(("error.type", text(code)));
        }
        root
    }
    fn stop(&self, operation: &Operation, stop: Stop, timed: Timed, id: u64) -> Span {
        let name = spans::STOPS[stop as usize].to_owned();
        let mut span = self.span(id, self.trace.span_id, name, SpanKind::Internal, timed);
        match stop {
            Stop::Plan => {
                let source = text(operation.plan_source);
                span.attributes.push(("ogive.plan.source", source));
            }
            Stop::Execute => {
                span.attributes.extend(describe(operation));
                span.failed = operation.errors > 0;
                add(&mut span, operation.attributes.as_deref());
            }
            _ => {}
        }
        span
    }
    fn hook(&self, call: &HookCall, id: u64) -> Span {
        let name = format!("{} {}", call.hook.word(), call.stage);
        let kind = match call.hook {
            Hook::Coprocessor | Hook::Policies => SpanKind::Client,
            Hook::Script | Hook::Component(_) => SpanKind::Internal,
        };
        let mut span = self.span(
            id,
            self.trace.span_id,
            name,
            kind,
            (call.started, call.took),
        );
        span.attributes = vec![
            (names::HOOK, text(call.hook.word())),
            (names::HOOK_STAGE, text(call.stage)),
            (names::HOOK_OUTCOME, text(call.outcome.word())),
        ];
        span.failed = call.outcome == HookOutcome::Failed;
        span
    }
    fn call(&self, call: &Call, parent: u64) -> Span {
        let name = format!("POST {}", call.name);
        let timed = (call.started, call.took);
        let mut sent = self.span(call.span_id, parent, name, SpanKind::Client, timed);
        let bytes = Attribute::Number(call.bytes as i64);
        sent.attributes = vec![
            ("http.request.method", text("POST")),
            ("subgraph.name", text(&call.name)),
            ("http.response.body.size", bytes),
        ];
        if let Some(status) = call.status {
            let status = Attribute::Number(i64::from(status));
            sent.attributes.push(("http.response.status_code", status));
        }
        if let Some(code) = call.failure() {
            sent.attributes.push(("error.type", text(code)));
        }
        if call.tries > 1 {
            let resent = Attribute::Number(i64::from(call.tries - 1));
            sent.attributes.push(("http.request.resend_count", resent));
        }
        if call.tries == 0 {
            let joined = ("ogive.subgraph.joined", Attribute::Switch(true));
            sent.attributes.push(joined);
        }
        add(&mut sent, call.attributes.as_deref());
        sent.failed = call.failure().is_some() || call.status.is_some_and(|s| s >= 400);
        sent
    }
}

/// Adds what operators add, in the place of what has the same name.
fn add(span: &mut Span, noted: Option<&Attributes>) {
    for (name, value) in noted.iter().flat_map(|noted| noted.of(Signal::Span)) {
        span.attributes.retain(|(known, _)| *known != name);
        span.attributes.push((name, text(value)));
    }
}

fn text(text: &str) -> Attribute {
    Attribute::Text(text.to_owned())
}

fn describe(operation: &Operation) -> Vec<(&'static str, Attribute)> {
    let mut out = Vec::new();
    if !operation.kind.is_empty() {
        let kind = Attribute::Text(operation.kind.to_owned());
        out.push(("graphql.operation.type", kind));
    }
    if let Some(name) = &operation.name {
        out.push(("graphql.operation.name", Attribute::Text(name.to_string())));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use super::*;
    use crate::Telemetry;

    fn request(telemetry: &Arc<Telemetry>) {
        let (parts, ()) = http::Request::post("/graphql")
            .body(())
            .unwrap()
            .into_parts();
        let record = telemetry.begin(&parts, None, false);
        record.done(Operation::default(), |_| "");
        record.finish(200, 1);
    }

    #[test]
    fn spans_that_find_no_room_are_dropped() {
        let tracing = Tracing::new(TracingOptions {
            queue_max: 3,
            ..TracingOptions::default()
        });
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        tracing.when_waiting(
            2,
            Box::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        );
        let telemetry = Arc::new(Telemetry::new(None, Some(tracing), None));
        let waiting = || telemetry.tracing.as_ref().unwrap().waiting();
        // One span each: none of the stops was reached.
        for expected in [1, 2, 3, 3, 3] {
            request(&telemetry);
            assert_eq!(waiting(), expected);
        }
        assert!(woken.load(Ordering::Relaxed) >= 2);
        assert_eq!(telemetry.tracing.as_ref().unwrap().take().len(), 3);
        request(&telemetry);
        assert_eq!(waiting(), 1);
    }

    #[test]
    fn a_share_of_the_traces_is_recorded() {
        let share = |sampler: f64| {
            let tracing = Tracing::new(TracingOptions {
                sampler,
                ..TracingOptions::default()
            });
            let headers = HeaderMap::new();
            (0..2_000)
                .filter(|_| tracing.context(&headers).sampled)
                .count()
        };
        assert_eq!(share(0.0), 0);
        assert_eq!(share(1.0), 2_000);
        assert!((350..650).contains(&share(0.25)));
    }
}
