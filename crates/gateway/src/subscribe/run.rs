//! One source of events while it runs: opened once, then the rest of the plan for each event.
//!
//! Events are executed one after the other, so they stay in order. While one is executed the next ones wait where they
//! come from.

use std::{pin::pin, rc::Rc, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use ogive_base::MemoryBudget;
use ogive_execute::{
    Event, ExecuteInput, ExecuteOptions, Transport as _, execute_event, source_request,
};
use ogive_identity::Caller;
use ogive_plan::Granted;
use ogive_telemetry::Telemetry;
use ogive_transport::{Reporter, RequestTransport};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    schema::operation::{PlannedOperation, PreparedOperation},
    schema::state::SchemaState,
    shared::context::OperationContext,
    shared::error::internal,
    shared::failures::Telling,
    shared::worker::WorkerState,
    subscribe::queue::StreamEnd,
    subscribe::sources::{EndState, EventSource, RunningSource, Sources, next},
};

/// What a source works with.
pub(crate) struct SourceInput {
    pub(crate) state: Arc<SchemaState>,
    pub(crate) operation: Arc<PreparedOperation>,
    pub(crate) planned: Arc<PlannedOperation>,
    /// Of the plan.
    pub(crate) variables: Vec<Option<Box<str>>>,
    pub(crate) granted: Granted,
    pub(crate) locals: Vec<Bytes>,
    /// Of whoever came first; what subgraphs see of them is the same for all.
    pub(crate) headers: HeaderMap,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) worker: Rc<WorkerState>,
    pub(crate) memory: Arc<MemoryBudget>,
    /// Over how long a time subscriptions end after a reload, and at the end of the process.
    pub(crate) reload_window: Duration,
    pub(crate) drain_window: Duration,
}

impl SourceInput {
    fn execute_input(&self) -> ExecuteInput<'_> {
        let options = &self.state.options;
        ExecuteInput {
            variables: &self.variables,
            granted: &self.granted,
            locals: &self.locals,
            limits: options.execute,
            options: ExecuteOptions {
                trace: false,
                prefetch: false,
                ..options.tell
            },
            error_extensions: &options.error_extensions,
        }
    }
    fn transport<'a>(
        &'a self,
        context: &'a OperationContext<'_>,
        telling: &'a Telling<'_>,
        deadline: Option<Instant>,
    ) -> RequestTransport<'a> {
        let (client, endpoints) = (&self.worker.client, &self.state.endpoints);
        RequestTransport::new(client, endpoints, &self.headers, deadline)
            .asked_by(Some(context))
            .within(self.state.options.request_memory.ceiling)
            .reporting_to(Some(telling as &dyn Reporter))
    }
    /// The response to one event, as a request of its own: it has its own time and its own part of the memory.
    async fn respond(
        &self,
        context: &OperationContext<'_>,
        telling: &Telling<'_>,
        event: Event,
    ) -> Bytes {
        let deadline = Instant::now() + self.state.options.request_timeout;
        let memory = self.worker.reserve(&self.memory);
        let held = event.as_ref().map_or(0, |response| response.body.len());
        if memory.grow(held).is_err() {
            return crate::shared::error::no_memory().to_json().into();
        }
        let transport = self.transport(context, telling, Some(deadline));
        let transport = transport.counted_in(Some(&memory), held);
        let plan = &self.planned.plan;
        let executing = pin!(execute_event(plan, self.execute_input(), &transport, event));
        executing.await.body.into_bytes()
    }
}

/// Runs a source until it ends, or nobody is subscribed any more.
pub(crate) async fn run(input: SourceInput, source: Arc<EventSource>, sources: Arc<Sources>) {
    // Told if this ends in a panic.
    let broken = StreamEnd::Failed(internal().to_json().into());
    let mut running = sources.run(&source, broken);
    let context = OperationContext::new(&input.headers)
        .asked_by(input.caller.clone())
        .told_to(&input.telemetry);
    let name = input.operation.definition.name;
    let telling = Telling {
        telemetry: &input.telemetry,
        watch: None,
        operation: name.map(|name| input.operation.document.name(name)),
    };
    let end = serve(&input, &context, &telling, (&source, &running, &sources)).await;
    running.set_end(end);
}

/// Serves the subscribers, and says how it ended.
async fn serve(
    input: &SourceInput,
    context: &OperationContext<'_>,
    telling: &Telling<'_>,
    (source, running, sources): (&EventSource, &RunningSource, &Sources),
) -> StreamEnd {
    let transport = input.transport(context, telling, None);
    let mut leaving = pin!(end_all(input, running, sources.ending()));
    let Some(request) = source_request(&input.planned.plan, &input.execute_input()) else {
        // Nothing may be asked: the response says why.
        let nothing = Err(ogive_execute::no_events());
        return StreamEnd::Failed(input.respond(context, telling, nothing).await);
    };
    let opened = tokio::select! {
        opened = transport.subscribe(request) => opened,
        () = source.left() => return StreamEnd::Complete,
        end = &mut leaving => return end,
    };
    let mut events = match opened {
        Ok(events) => events,
        Err(error) => return StreamEnd::Failed(input.respond(context, telling, Err(error)).await),
    };
    loop {
        tokio::select! {
            event = next(&mut events) => {
                let Some(event) = event else {
                    return StreamEnd::Complete;
                };
                let is_last = event.is_err();
                let response = input.respond(context, telling, event).await;
                if is_last {
                    return StreamEnd::Failed(response);
                }
                running.push(response);
            }
            () = source.left() => return StreamEnd::Complete,
            end = &mut leaving => return end,
        }
    }
}

/// Ends the subscribers in their turn, once it is told that all are to end: while the source is being opened, too. Says how
/// the rest ends if nobody can tell any more.
async fn end_all(
    input: &SourceInput,
    running: &RunningSource,
    mut ending: watch::Receiver<EndState>,
) -> StreamEnd {
    let since = *ending.borrow_and_update();
    // When it was told, and how they end.
    let mut told: Option<(Instant, Duration, StreamEnd)> = None;
    let mut look = Instant::now();
    loop {
        tokio::select! {
            changed = ending.changed(), if told.as_ref().is_none_or(|told| told.2 != StreamEnd::Drain) => {
                if changed.is_err() {
                    return StreamEnd::Drain;
                }
                let now = *ending.borrow_and_update();
                if now.drains {
                    told = Some((Instant::now(), input.drain_window, StreamEnd::Drain));
                } else if now.reloads != since.reloads && told.is_none() {
                    told = Some((Instant::now(), input.reload_window, StreamEnd::Reload));
                }
                look = Instant::now();
            }
            () = sleep_until(look), if told.is_some() => {
                if let Some((since, window, end)) = &told {
                    look += running.end_some(since.elapsed(), *window, end).max(Duration::from_millis(1));
                }
            }
        }
    }
}
