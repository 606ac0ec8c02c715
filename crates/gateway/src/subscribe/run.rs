//! One source of events while it runs: opened once, then the rest of the plan for each event.
//!
//! Events are executed one after the other, so they stay in order. While one is executed the next ones wait where they
//! come from. What is open belongs to no schema: when another one is served, the rest of the plan is replaced between two
//! events, if the source would be asked the same ([`SourcePlan::under`]).

use std::{
    borrow::Cow,
    collections::BTreeMap,
    future::{poll_fn, ready},
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use ogive_edge::error::no_memory;
use ogive_execute::{
    ErrorRules, Event, EventStream, Failure, FailureReport, SubgraphRequest, SubgraphResponse,
    Transport, TransportFuture, answer_event, execute_event, no_events,
};
use ogive_net::Rest;
use ogive_transport::{Endpoint, FetchAdmission, Reporter, RequestTransport};
use serde::de::IgnoredAny;
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    admit::operation::RateSources,
    execution::Execution,
    gateway::Gateway,
    hooks::kept::KeptRun,
    shared::{
        failures::Telling,
        observe::{Answer, Watch},
        operation_values::OperationCaller,
        stage_observer::{StageEvent, StageObserver},
        worker::WorkerState,
    },
    subscribe::{
        opening::Opening,
        owner::Opener,
        plan::SourcePlan,
        queue::StreamEnd,
        source_memory::SourceReservation,
        sources::{EndState, RunningSource},
    },
};

/// What a source works with.
pub(crate) struct SourceInput {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) worker: Rc<WorkerState>,
    /// Counts what the source keeps.
    pub(crate) _memory: SourceReservation,
    pub(crate) opener: Opener,
    /// How its stream is opened.
    pub(crate) opening: Opening,
    /// The hooks that see its events, and the requests to subgraphs that follow an event; nobody shares the source then.
    pub(crate) hooks: Option<KeptRun>,
    /// Over how long a time subscriptions end after a reload, and at the end of the process.
    pub(crate) reload_window: Duration,
    pub(crate) drain_window: Duration,
}

/// By whom an event is executed, and which hooks see what that asks.
#[derive(Clone, Copy)]
struct EventContext<'a> {
    opener: &'a Opener,
    hooks: Option<&'a KeptRun>,
}

impl<'a> EventContext<'a> {
    fn new(opener: &'a Opener, hooks: &'a Option<KeptRun>) -> Self {
        EventContext {
            opener,
            hooks: hooks.as_ref(),
        }
    }
}

/// Larger events count as memory of the process while they are executed.
const SMALL_BYTES_MAX: usize = 8 << 10;

/// For an event to which nothing else belongs: nothing is sent.
struct EventTransport<'e> {
    endpoints: &'e [Endpoint],
    telling: &'e Telling<'e>,
    error_rules: Option<&'e dyn ErrorRules>,
}

impl EventTransport<'_> {
    fn endpoint(&self, subgraph: u32) -> Option<&Endpoint> {
        self.endpoints.get(subgraph as usize)
    }
}

impl Transport for EventTransport<'_> {
    fn send(&self, _: SubgraphRequest) -> TransportFuture<'_> {
        Box::pin(ready(Err(no_events())))
    }
    fn shows_errors(&self, subgraph: u32) -> bool {
        let endpoint = self.endpoint(subgraph);
        endpoint.is_some_and(|endpoint| endpoint.shows_errors)
    }
    fn names_service(&self, subgraph: u32) -> bool {
        let endpoint = self.endpoint(subgraph);
        endpoint.is_some_and(|endpoint| endpoint.shows_errors && endpoint.service.is_none())
    }
    fn error_rules(&self) -> Option<&dyn ErrorRules> {
        self.error_rules
    }
    fn failed(&self, failure: &FailureReport<'_>) {
        let endpoint = failure.subgraph.and_then(|at| self.endpoint(at));
        let failure = &ogive_transport::told_by(endpoint, failure);
        self.telling
            .failed(endpoint.map_or("", |endpoint| &*endpoint.name), failure);
    }
}

impl SourceInput {
    /// The response to a small event to which nothing else belongs; `None`: something does, or somebody watches.
    fn respond_now(
        &self,
        plan: &SourcePlan,
        telling: &Telling<'_>,
        event: &SubgraphResponse,
    ) -> Option<Response> {
        let is_watched =
            self.gateway.telemetry.tracing.is_some() || self.worker.observer().is_some();
        if is_watched || event.body.len() > SMALL_BYTES_MAX {
            return None;
        }
        let transport = EventTransport {
            endpoints: &plan.state.endpoints,
            error_rules: plan.state.options.error_rules(),
            telling,
        };
        let input = plan.input(false);
        let output = answer_event(&plan.planned.plan, input, &transport, event)?;
        plan.settle(&self.gateway.telemetry, &output);
        Some(Response {
            is_last: output.errors_total > 0 && !has_data(&event.body),
            json: output.body.into_bytes(),
        })
    }
    /// The response to one event; `None` if a hook drops the event.
    async fn response(
        &self,
        plan: &SourcePlan,
        by: EventContext<'_>,
        telling: &Telling<'_>,
        mut event: Event,
    ) -> Option<Response> {
        if let Some(kept) = by.hooks.filter(|_| self.opening.asks_subgraph())
            && let Ok(response) = event
        {
            event = Box::pin(kept.see_event(plan.subgraph(), response))
                .await
                .transpose()?;
        }
        let at_once = event.as_ref().ok();
        Some(
            match at_once.and_then(|event| self.respond_now(plan, telling, event)) {
                Some(response) => response,
                // In a box: most of the time there is none.
                None => Box::pin(self.respond(plan, by, event)).await,
            },
        )
    }
    /// Executes an event as a request of its own: it has its own time and its own part of the memory.
    async fn respond(&self, plan: &SourcePlan, by: EventContext<'_>, event: Event) -> Response {
        let memory = self.worker.reserve(&self.gateway.memory);
        let held = event.as_ref().map_or(0, |response| response.body.len());
        if memory.grow(held).is_err() {
            return Response {
                json: self.gateway.sources.told_error(&no_memory()).into(),
                is_last: event.is_err(),
            };
        }
        let answered = event.as_ref().ok().map(|response| response.body.clone());
        let (telemetry, operation) = (&self.gateway.telemetry, &plan.bound.operation);
        let run = by.hooks.map(KeptRun::run);
        let told = by.hooks.zip(run.as_ref());
        let told = told.map(|(kept, run)| kept.operation(run));
        let context = by.opener.context().told_to(telemetry).counted_in(&memory);
        let context = context.with_hooks(told.as_ref());
        // Boxed: keeps the common future small.
        let record = telemetry.begin_event(plan.subgraph());
        let record = record.map(Box::new);
        let serving = record.as_ref().map(|_| self.gateway.serving.load_full());
        let watch = record.as_deref().zip(serving.as_ref());
        let watch = watch.map(|(record, serving)| {
            let watch = Watch::new(record, &serving.options.observe);
            Box::new(watch.of_event(operation.name()))
        });
        let planned = &plan.planned;
        let observer = self.worker.observer();
        let now = plan.rates.is_some();
        let now = now.then(|| self.gateway.serving.load_full());
        let sources = RateSources {
            admission: &self.gateway.admission,
            shared: now.as_ref().and_then(|now| now.services.shared.as_deref()),
        };
        let rates = plan.rates.as_ref();
        let rates = rates.map(|rates| rates.admission(sources, (&context, operation)));
        let output = {
            let execution = Execution::new(&plan.state, operation, &context, &self.worker);
            let requests = watch.as_deref().and_then(StageObserver::requests);
            let admission = rates.as_ref().map(|rates| rates as &dyn FetchAdmission);
            let transport = execution.transport(requests, admission, held);
            // An event says that something has changed: entries may be older.
            let transport = transport.kept_in(None);
            let input = plan.input(observer.is_some_and(StageObserver::wants_fetches));
            pin!(execute_event(&planned.plan, input, &transport, event)).await
        };
        if let Some(observer) = observer {
            observer.passed(&StageEvent::Event(planned, &output));
        }
        plan.settle(&self.gateway.telemetry, &output);
        if let (Some(watch), Some(record)) = (watch, &record) {
            watch.passed(&StageEvent::Execute(planned, &output));
            watch.finish(&context, Answer::Whole, &plan.state.endpoints);
            record.finish(200, output.body.len() as u64);
        }
        let was_refused = |body: Bytes| output.errors_total > 0 && !has_data(&body);
        Response {
            is_last: answered.is_none_or(was_refused),
            json: output.body.into_bytes(),
        }
    }
}

/// The response to one event.
struct Response {
    json: Bytes,
    /// Whether it says why the subscription ends.
    is_last: bool,
}

/// Whether a response is one to an event: what was refused or given up has errors and no data.
fn has_data(response: &[u8]) -> bool {
    let members: Option<BTreeMap<Cow<'_, str>, IgnoredAny>> = serde_json::from_slice(response).ok();
    members.is_none_or(|members| members.contains_key("data"))
}

/// Runs a source until it ends, or nobody is subscribed any more.
pub(crate) async fn run(
    mut input: Box<SourceInput>,
    plan: Box<SourcePlan>,
    mut running: RunningSource,
) {
    if let Some(observer) = input.worker.observer()
        && let Some((request, _)) = plan.source()
    {
        observer.passed(&StageEvent::Source(plan.subgraph(), &request.body));
    }
    let mut hooks = input.hooks.take();
    let subgraph: Box<str> = plan.subgraph().into();
    let end = serve(&input, plan, &running, &mut hooks).await;
    running.set_end(end);
    drop(running);
    if let Some(kept) = hooks.filter(|_| input.opening.asks_subgraph()) {
        kept.tell_end(&subgraph).await;
    }
}

/// What a source does next.
enum Turn<'s> {
    /// Another schema is served, or the process stops; `None`: it has.
    Ending(Option<Ending>),
    /// Nobody is subscribed any more.
    Left,
    /// Some subscriptions are to end.
    Retire,
    Opened(Result<EventStream<'s>, Failure>),
    Event(Option<Event>),
}

/// Why sources end, as it is now, and who tells of the next change.
type Ending = (EndState, watch::Receiver<EndState>);

/// Waits for a change.
async fn change(mut ending: watch::Receiver<EndState>) -> Option<Ending> {
    ending.changed().await.ok()?;
    let state = *ending.borrow_and_update();
    Some((state, ending))
}

/// Ends a subscription for which no subgraph may be asked; the response says why.
async fn ask_nothing(input: &SourceInput, plan: &SourcePlan, hooks: &Option<KeptRun>) -> StreamEnd {
    let by = EventContext::new(&input.opener, hooks);
    let response = Box::pin(input.respond(plan, by, Err(no_events()))).await;
    StreamEnd::Failed(response.json)
}

/// Serves the subscribers, and says how it ended.
async fn serve(
    input: &SourceInput,
    mut plan: Box<SourcePlan>,
    running: &RunningSource,
    hooks: &mut Option<KeptRun>,
) -> StreamEnd {
    let gateway = &*input.gateway;
    let context = input.opener.context().told_to(&gateway.telemetry);
    let mut renewed: Option<Opener> = None;
    // The plan may become another one, and the operation stays what it is.
    let operation = Arc::clone(&plan.bound.operation);
    let telling = Telling {
        telemetry: &gateway.telemetry,
        observer: None,
        operation: operation.name(),
    };
    let opener = &input.opener;
    let Some((request, endpoint)) = plan.lasting_source() else {
        return ask_nothing(input, &plan, hooks).await;
    };
    let endpoint = input.opening.endpoint().unwrap_or(endpoint);
    let caller = OperationCaller::new(&context, &operation);
    let transport = RequestTransport::new(&input.worker.client, &*endpoint, &opener.headers, None)
        .asked_by(Some(&caller))
        .reporting_to(Some(&telling as &dyn Reporter));
    let mut opening = Some(input.opening.open(&transport, request));
    let mut events: Option<EventStream<'_>> = None;
    let mut ending = gateway.sources.ending();
    let mut retiring = Retiring::default();
    // What is served may have changed since this was planned.
    let state = *ending.borrow_and_update();
    Box::pin(retiring.look_at(state, (input, opener), &mut plan, running)).await;
    let mut changed = pin!(change(ending));
    let mut left = pin!(running.left());
    // All that this waits for but events: they are what wakes it, mostly.
    let mut rest = Rest::default();
    loop {
        let turn = poll_fn(|cx| {
            // First: what comes after another schema is answered by it.
            if rest.is_due(cx) {
                let waker = rest.waker().clone();
                let mut cx = Context::from_waker(&waker);
                let turn = match changed.as_mut().poll(&mut cx) {
                    Poll::Ready(changed) => Poll::Ready(Turn::Ending(changed)),
                    Poll::Pending if left.as_mut().poll(&mut cx).is_ready() => {
                        Poll::Ready(Turn::Left)
                    }
                    Poll::Pending => retiring.poll_due(&mut cx).map(|()| Turn::Retire),
                };
                if turn.is_ready() {
                    rest.again();
                    return turn;
                }
            }
            if let Some(opening) = &mut opening {
                return opening.as_mut().poll(cx).map(Turn::Opened);
            }
            match &mut events {
                Some(events) => events.as_mut().poll_next(cx).map(Turn::Event),
                None => Poll::Pending,
            }
        });
        match turn.await {
            Turn::Ending(None) => return StreamEnd::Drain,
            Turn::Ending(Some((state, ending))) => {
                changed.set(change(ending));
                if let Some(kept) = hooks {
                    kept.refresh();
                }
                let opener = renewed.as_ref().unwrap_or(opener);
                let looked = retiring.look_at(state, (input, opener), &mut plan, running);
                Box::pin(looked).await;
            }
            Turn::Left => return StreamEnd::Complete,
            Turn::Retire => retiring.end_some(running),
            Turn::Opened(Ok(opened)) => (opening, events) = (None, Some(opened)),
            Turn::Opened(Err(error)) => {
                let by = EventContext::new(opener, hooks);
                let response = input.respond(&plan, by, Err(error));
                return StreamEnd::Failed(Box::pin(response).await.json);
            }
            Turn::Event(None) => return StreamEnd::Complete,
            Turn::Event(Some(event)) => {
                renewed = taken_over(input, &plan, running).or(renewed);
                let opener = renewed.as_ref().unwrap_or(opener);
                let by = EventContext::new(opener, hooks);
                let Some(response) = input.response(&plan, by, &telling, event).await else {
                    continue;
                };
                if response.is_last {
                    return StreamEnd::Failed(response.json);
                }
                running.push(response.json).await;
                // Whoever is subscribed on this thread takes it before so many more come that there is no room.
                tokio::task::coop::consume_budget().await;
            }
        }
    }
}

/// By whose fresh credential a source goes on from now on. Others who share it are equal by what subgraphs are sent: none of
/// them changes that for all.
fn taken_over(input: &SourceInput, plan: &SourcePlan, running: &RunningSource) -> Option<Opener> {
    let mut opener = running.renewed()?;
    opener.client = input.opener.client;
    let key = plan.key(&opener.context(), &input.worker);
    let goes_on = running.go_on_as(key.filter(|_| running.is_shared()), true);
    goes_on.then_some(opener)
}

/// The end of subscriptions that end over a window, each in its turn.
#[derive(Default)]
struct Retiring {
    /// When it was told, over how long a time, and how they end.
    told: Option<(Instant, Duration, StreamEnd)>,
    /// When the next ones end.
    next: Option<Pin<Box<Sleep>>>,
}

impl Retiring {
    /// Goes on by what is served now, or begins to end.
    async fn look_at(
        &mut self,
        state: EndState,
        (input, opener): (&SourceInput, &Opener),
        plan: &mut SourcePlan,
        running: &RunningSource,
    ) {
        if state.drains {
            self.begin(StreamEnd::Drain, input.drain_window);
        } else if self.told.is_none() && !migrate(input, opener, plan, running).await {
            self.begin(StreamEnd::Reload, input.reload_window);
        }
    }
    fn begin(&mut self, end: StreamEnd, window: Duration) {
        if self.told.as_ref().is_none_or(|told| told.2 != end) {
            self.told = Some((Instant::now(), window, end));
            self.next = Some(Box::pin(sleep_until(Instant::now())));
        }
    }
    /// Waits until the next ones end.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.next {
            Some(next) => next.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
    fn end_some(&mut self, running: &RunningSource) {
        if let (Some((since, window, end)), Some(next)) = (&self.told, &mut self.next) {
            let wait = running.end_some(since.elapsed(), *window, end);
            let at = next.deadline() + wait.max(Duration::from_millis(1));
            next.as_mut().reset(at);
        }
    }
}

/// Goes on under what is served now; says whether it can.
async fn migrate(
    input: &SourceInput,
    opener: &Opener,
    plan: &mut SourcePlan,
    running: &RunningSource,
) -> bool {
    let gateway = &*input.gateway;
    let serving = gateway.serving.load_full();
    if Arc::ptr_eq(&serving.state, &plan.state) {
        return true;
    }
    let worker = &*input.worker;
    let migrated = plan.under(&serving, gateway, opener, worker).await;
    let Some(migrated) = migrated else {
        return false;
    };
    let options = serving.options.subscription.as_ref();
    let is_shared = options.is_some_and(|options| options.shared);
    let key = is_shared.then(|| migrated.plan.key(&opener.context(), worker));
    if !running.go_on_as(key.flatten(), migrated.for_opener) {
        return false;
    }
    *plan = migrated.plan;
    true
}
