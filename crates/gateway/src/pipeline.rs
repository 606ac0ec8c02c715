//! The stages of a request, in the order in which they happen.
//!
//! | stage | where | what it decides |
//! |---|---|---|
//! | identify | [`crate::identify`] | who asks, as far as a trusted peer says it: claims of the caller, the client behind proxies |
//! | route | [`crate::router`] | whether it is GraphQL, a page, or nothing |
//! | admit | [`crate::admit`] | whether it gets in: media types, rates, the memory of the process |
//! | know | [`crate::identify::tokens`] | who asks, by a token or an API key, which may take long |
//! | receive | [`crate::receive`] | what is asked: one request or a batch, with its files |
//! | document | [`crate::documents`] | which document, where it is known by an id |
//! | prepare | [`crate::prepare`] | whether it is valid; the normal form, coerced variables |
//! | rules | [`crate::operation_rules`] | whether a rule refuses it for what it is |
//! | charge | [`crate::charge`] | whether it costs more than it may |
//! | plan | [`crate::plan`] | which subgraphs are asked for what |
//! | decide | [`crate::policies`] | which policies hold for the caller, what introspection shows |
//! | authorize | [`crate::authorize`] | what of it the caller may see |
//! | execute | [`crate::execute`] | the answer |
//! | respond | [`crate::respond`] | how it leaves: status, media type, extensions |
//! | finish | [`crate::finish`] | what every response gets: encoding, CORS |
//!
//! Stages that are switched off are not in the stages, which are composed when a configuration is swapped.

use std::{pin::pin, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, request::Parts};
use ogive_config::Peer;
use ogive_execute::ExecuteOutput;
use ogive_plan::{OperationKind, Plan};
use ogive_server::{ResponseBody, drain_body::read_refused};
use ogive_telemetry::{spans, stop_span};
use ogive_transport::FetchAdmission;
use tracing::Instrument;

use crate::{
    admit::{
        latency_sample::LatencySample,
        overload::{Overload, Running},
        rates::Admitted,
        subgraph_rates::FetchRates,
    },
    batch::Batch,
    charge::{OperationCost, OperationEstimate},
    coprocessor::body::note_break,
    coprocessor::router::CoprocessorRequest,
    coprocessor::run::OperationCoprocessor,
    execute::execute,
    explain::only_explained,
    finish::Answered,
    gateway::{Gateway, Serving},
    operation::{OperationInput, OperationRun, REQUEST_BYTES},
    plan::plan_fairly,
    policies::{decide, decisions},
    prepare::{Means, Prepared, prepare_fairly},
    receive::{GraphqlRequest, Received, RequestBody, uploads::Entry},
    respond::expose::{Exposed, dry_run},
    respond::parts::{
        InParts, PendingCost, may_come_later, only_in_parts, parts_asked, respond_in_parts,
    },
    respond::refusal::{media_of, refuse, refused},
    respond::{respond_operation, respond_with},
    router::{Destination, is_for_people, static_response},
    schema::access::UpgradeAccess,
    schema::operation::PlannedOperation,
    shared::context::{Identity, OperationContext, RequestContext},
    shared::error::{RequestError, expired, internal, no_memory, unauthenticated},
    shared::failures,
    shared::json_value::JsonObject,
    shared::media::{IncrementalMedia, Media},
    shared::observe::{Answer, Watch},
    shared::operation_values::RequestValues,
    shared::panic::contained,
    shared::stage_observer::StageEvent,
    shared::worker::WorkerState,
    subscribe::SubscriberSlot,
    subscribe::owner::{Owner, claims_end},
    subscribe::plan::note_source,
    subscribe::stream_requests::{StreamRequest, no_stream},
    usage::UsedOperation,
};

impl Gateway {
    /// Answers one HTTP request of a peer. `worker` belongs to the calling thread. Dropping the future stops all work for the
    /// request, upstream requests included.
    pub async fn handle<B: RequestBody>(
        &self,
        request: Request<B>,
        peer: Peer,
        worker: &WorkerState,
    ) -> Response<ResponseBody> {
        let (mut parts, body) = request.into_parts();
        self.answer_parts(&mut parts, body, peer, worker).await
    }

    /// The same for a request in parts: what many futures within one another need is kept by the outermost and lent to
    /// the others, because each of them would have room for it, and room is moved with every request.
    pub(crate) async fn answer_parts<B: RequestBody>(
        &self,
        parts: &mut Parts,
        body: B,
        peer: Peer,
        worker: &WorkerState,
    ) -> Response<ResponseBody> {
        let serving = self.serving.load_full();
        let mut identity = Identity::of(peer);
        for stage in &serving.stages.identify {
            stage(&serving.options, &mut parts.headers, &mut identity);
        }
        let parts = &*parts;
        // In a box, because most requests have none.
        let record = match worker.observer() {
            None => self.begin(&serving.options, parts, &identity).map(Box::new),
            // What is only explained is neither counted nor logged.
            Some(_) => None,
        };
        let context = RequestContext {
            parts,
            identity: &identity,
            worker,
            telemetry: &self.telemetry,
            record: record.as_deref(),
            coprocessor: None,
            error_rules: serving.state.options.error_rules.as_deref(),
        };
        let ended = contained(pin!(self.route(&serving, body, context))).await;
        let mut response = ended.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, context.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = &record {
            self.end(&serving.options, record, parts, &identity, &mut response);
        }
        let answered = Answered {
            options: &serving.options,
            parts,
            worker,
            memory: &self.memory,
        };
        for stage in &serving.stages.finish {
            stage.finish(&answered, &mut response);
        }
        response
    }

    /// Answers an operation that came in another way than as a request of its own; who asks was found out with this access.
    /// `None` if that counts no longer.
    pub(crate) async fn answer_operation<B: RequestBody>(
        &self,
        parts: &Parts,
        body: B,
        (identity, upgrade_access): (&Identity, &UpgradeAccess),
        worker: &WorkerState,
    ) -> Option<Response<ResponseBody>> {
        let serving = self.serving.load_full();
        if !upgrade_access.is(&serving.options.upgrade_access) {
            return None;
        }
        let record = self.begin(&serving.options, parts, identity).map(Box::new);
        let context = RequestContext {
            parts,
            identity,
            worker,
            telemetry: &self.telemetry,
            record: record.as_deref(),
            coprocessor: None,
            error_rules: serving.state.options.error_rules.as_deref(),
        };
        let ended = contained(pin!(self.graphql(&serving, body, context, None))).await;
        let mut response = ended.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, context.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = &record {
            self.end(&serving.options, record, parts, identity, &mut response);
        }
        Some(response)
    }

    async fn route<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
    ) -> Response<ResponseBody> {
        let parts = context.parts;
        if let Some(response) = static_response(&serving.options, parts, context.identity.client) {
            Box::pin(read_refused(&parts.headers, body)).await;
            return response;
        }
        let destination = self.destination(&serving.options, parts);
        let is_guarded = serving.options.graphiql_needs_caller
            && matches!(destination, Destination::Answered(_))
            && is_for_people(&serving.options, parts);
        if is_guarded && let Err(error) = self.let_page_in(serving, context).await {
            read_refused(&parts.headers, body).await;
            return self.refuse_elsewhere(&serving.options, context, &error);
        }
        match destination {
            Destination::Graphql(id) => self.graphql(serving, body, context, id).await,
            Destination::Callback(id) => {
                Box::pin(self.called_back(serving, body, context, id)).await
            }
            Destination::Answered(response) => {
                read_refused(&parts.headers, body).await;
                response
            }
            Destination::Refused(error) => {
                read_refused(&parts.headers, body).await;
                self.refuse_elsewhere(&serving.options, context, &error)
            }
        }
    }

    /// The five stops.
    pub(crate) async fn graphql<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
        id: Option<&str>,
    ) -> Response<ResponseBody> {
        if let Some(asked) = StreamRequest::of(&serving.options, context.parts) {
            return Box::pin(self.stream_request(serving, body, context, asked)).await;
        }
        let (media, mut admitted) = match self.admit(&serving.options, context) {
            Ok(admitted) => admitted,
            Err(refused) => {
                read_refused(&context.parts.headers, body).await;
                return *refused;
            }
        };
        // No future of its own, which would be moved with every request. All that comes of it tells of the rate.
        let mut answer = 'answer: {
            let memory = context.worker.reserve(&self.memory);
            if memory.grow(REQUEST_BYTES).is_err() {
                break 'answer refuse_unread(context, &no_memory(), media, body).await;
            }
            // Only what is let in and counted may have keys fetched and signatures checked.
            let known = match &serving.authentication {
                Some(_) => pin!(self.known(serving, context)).await,
                None => None,
            };
            let context = RequestContext {
                identity: known.as_ref().unwrap_or(context.identity),
                ..context
            };
            context.passed(|| StageEvent::Known(context.parts, context.identity));
            if let Err(error) = self.let_known_in(serving, context, &mut admitted) {
                break 'answer refuse_unread(context, &error, media, body).await;
            }
            self.admit_name(serving, context);
            context.note("admit", || admitted.describe());
            let changed: Box<CoprocessorRequest<'_>>;
            // Whoever only looks tells nobody.
            let told = serving.coprocessor.as_ref();
            let (context, (received, uploads)) = match told.filter(|_| !context.is_dry_run()) {
                None => {
                    let receiving = self.receive(serving, context, body, &memory, id);
                    (context, pin!(receiving).await)
                }
                Some(served) => {
                    let input = (media, &memory, id, &mut admitted);
                    let receiving = self.receive_changed(serving, served, context, input, body);
                    match Box::pin(receiving).await {
                        Ok((request, received)) => {
                            changed = request;
                            (changed.context(context), received)
                        }
                        Err(ended) => break 'answer *ended,
                    }
                }
            };
            let answer = match admitted.received(received, uploads.is_some()) {
                Ok(Received::One(mut request)) => {
                    let files = uploads.as_deref().map(Entry::only);
                    let in_parts =
                        receive_one(serving, context, &mut request, (media, files.is_some()));
                    let input = OperationInput {
                        request: &mut request,
                        media,
                        files,
                        body_bytes: memory.used().saturating_sub(REQUEST_BYTES),
                        memory,
                    };
                    // Not by way of `operation`: one future less to move.
                    let answer = match context.coprocessor {
                        None => pin!(self.run_operation(serving, context, None, input)).await,
                        Some(_) => Box::pin(self.operation(serving, context, input)).await,
                    };
                    answered(context, answer, in_parts, media)
                }
                Ok(Received::Batch(requests)) => {
                    let batch = Batch {
                        requests,
                        uploads: uploads.as_deref(),
                        media,
                        memory,
                    };
                    Box::pin(self.answer_batch(serving, context, batch)).await
                }
                Err(error) => refused(context, &error, media),
            };
            if let Some(uploads) = &uploads {
                Box::pin(uploads.linger()).await;
            }
            match context.coprocessor {
                None => answer,
                Some(run) => Box::pin(self.tell_answer(context, run, answer, media)).await,
            }
        };
        admitted.answered(&mut answer);
        answer
    }

    /// Lets in whoever asks, as soon as that is known. What the response says of their rate is noted.
    fn let_known_in(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), RequestError> {
        let identity = context.identity;
        let extensions = &context.parts.extensions;
        // An operation in a stream of many comes in a request of its own, and says whose the stream is.
        let is_of_socket =
            extensions.get::<SubscriberSlot>().is_some() && extensions.get::<Owner>().is_none();
        // A proxy says it of each request; of what comes over a connection it has said it once.
        if is_of_socket && !identity.is_proved && claims_end(identity) == Some(Duration::ZERO) {
            return Err(expired());
        }
        match self.let_caller_in(&serving.options, context, identity) {
            Ok(None) => {}
            Ok(state) => admitted.rate = state,
            Err((error, state)) => {
                admitted.rate = Some(state);
                return Err(error);
            }
        }
        if !StreamRequest::is_let_in(&serving.options, context) {
            return Err(no_stream());
        }
        if let Some(overload) = &serving.overload {
            admitted.slot = Some(run_within(overload, serving, context)?);
        }
        Ok(())
    }

    /// Counts the client by its name from now on: its request was let in, and its caller is known if any operation needs that.
    fn admit_name(&self, serving: &Serving, context: RequestContext<'_>) {
        let needs_caller = serving.options.caller_required
            || serving.state.options.authorization.ever_needs_caller();
        if let Some(record) = context.record
            && context
                .identity
                .check(needs_caller, serving.options.challenge)
                .is_ok()
        {
            record.admit();
        }
    }

    /// One operation.
    pub(crate) async fn operation(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        match context.coprocessor {
            None => pin!(self.run_operation(serving, context, None, input)).await,
            Some(run) => {
                let answer = self.coprocess_operation(serving, context, run, input);
                let answer = Box::pin(answer).await;
                if let (Some(record), Ok(response)) = (context.record, &answer) {
                    // The response to a batch does not say it of one of its operations.
                    note_break(record, response);
                }
                answer
            }
        }
    }

    /// The same, and what is noted of it.
    pub(crate) async fn run_operation(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        coprocessor: Option<&OperationCoprocessor<'_>>,
        input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let OperationInput {
            request,
            media,
            files,
            memory,
            body_bytes,
        } = input;
        let options = &serving.options.observe;
        let watch = context.record.map(|record| Watch::new(record, options));
        let operation = OperationContext::new(&context.parts.headers)
            .in_request(context.parts, context.identity)
            .asked_by(context.identity.caller()?)
            .of_client(context.identity.client)
            .observed_by(
                context
                    .worker
                    .observer()
                    .or(watch.as_ref().map(|watch| watch as _)),
            )
            .told_to(&self.telemetry)
            .with_uploads(files)
            .told_coprocessor(coprocessor)
            .counted_in(&memory);
        let run = OperationRun {
            serving,
            context: &operation,
            worker: context.worker,
            memory: &memory,
            media,
        };
        let mut answer = pin!(self.stages(&run, request, body_bytes)).await;
        if let Some(watch) = &watch {
            watch.finish(&operation, Answer::of(&answer), &serving.state.endpoints);
        }
        drop(operation);
        if let Ok(response) = &mut answer {
            response.body_mut().hold(memory);
        }
        answer
    }

    /// The stages of one operation.
    async fn stages(
        &self,
        run: &OperationRun<'_>,
        request: &mut GraphqlRequest,
        body_bytes: usize,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let OperationRun {
            serving,
            context,
            worker,
            memory,
            media,
        } = *run;
        let state = &serving.state;
        if let Some(looking) = self.find_shared(serving, context.headers, request) {
            looking.await;
        }
        let register = self.resolve_once(serving, context.headers, request)?;
        request.in_parts = request.in_parts.filter(|_| may_come_later(&request.query));
        context.passed(|| StageEvent::Document(request));
        let means = Means {
            offload: &self.offload,
            share: &worker.share,
            memory,
        };
        let (prepared, permit) = pin!(prepare_fairly(state, request, means))
            .instrument(stop_span!(spans::PREPARE))
            .await?;
        context.passed(|| StageEvent::Prepare(state, &prepared));
        let text = taken(request);
        let estimate = self.judge(run, &prepared)?;
        let taken = match self.take_rates(run, &prepared, estimate)? {
            Some(taking) => Some(taking.await?),
            None => None,
        };
        if let Some(files) = context.uploads() {
            files.check(&state.supergraph.api, &prepared)?;
        }
        if let Some(hash) = register {
            self.register(serving, context.client(), hash, sent(request, &text));
        }
        drop(text);
        memory.shrink(body_bytes);
        let span = stop_span!(spans::PLAN, plan.source = tracing::field::Empty);
        let headers = context.headers;
        let found = {
            let asked = run.values(&prepared.operation);
            pin!(plan_fairly(state, &asked, means, permit))
                .instrument(span.clone())
                .await
        };
        let (planned, source) = found?;
        span.record(spans::PLAN_SOURCE, source.as_str());
        drop(span);
        context.passed(|| StageEvent::Plan(&planned, source));
        self.charge_plan(run, &prepared, &planned)?;
        let exposed = serving.options.expose.asked(headers);
        pin!(self.decide(serving, &planned.plan, context)).await?;
        if exposed == Exposed::DryRun {
            return Ok(respond_with(dry_run(&planned).into(), media));
        }
        note_decided(serving, &planned.plan, context);
        if let Some(ended) = only_explained(serving, context, &prepared) {
            return ended;
        }
        if let Some(told) = context.coprocessor()
            && let Some(response) = Box::pin(told.planned(headers, &prepared, &planned)).await?
        {
            return Ok(response);
        }
        let used = used(run, &prepared, estimate);
        if prepared.operation.definition.kind == OperationKind::Subscription {
            return self.subscribe(run, prepared, &planned, estimate);
        }
        // What is begun is finished.
        memory.run();
        let cost =
            OperationCost::open(serving.options.demand_control.as_ref(), &prepared, estimate);
        let pending = PendingCost::of(cost, taken, used);
        let in_parts = request.in_parts.filter(|_| exposed == Exposed::No);
        if let Some(in_parts) = in_parts.and_then(|media| InParts::of(media, run, &planned, self)) {
            let kept = in_parts.keep(run, prepared, planned, (self, pending));
            return Box::pin(respond_in_parts(kept, media)).await;
        }
        if let Some(files) = context.uploads() {
            files.run();
        }
        let output = pin!(self.execute_charged(run, prepared, &planned, pending)).await?;
        context.passed(|| StageEvent::Execute(&planned, &output));
        let sample = LatencySample::of_execution(&output.stats);
        let mut response = stop_span!(spans::RESPOND).in_scope(|| {
            let plan = (exposed == Exposed::WithResponse).then_some(&*planned);
            respond_operation(run, output, plan)
        });
        if serving.overload.is_some() {
            sample.tell(&mut response);
        }
        context.passed(|| StageEvent::Respond);
        Ok(response)
    }

    /// Executes an operation, and settles what it did cost.
    async fn execute_charged(
        &self,
        run: &OperationRun<'_>,
        prepared: Prepared,
        planned: &PlannedOperation,
        pending: Option<Box<PendingCost>>,
    ) -> Result<ExecuteOutput, RequestError> {
        let (serving, context, worker) = (run.serving, run.context, run.worker);
        let operation = has_subgraph_rates(serving).then(|| Arc::clone(&prepared.operation));
        let rates = operation.as_ref();
        let rates = rates.and_then(|operation| FetchRates::of(self, serving, context, operation));
        let rates = rates.map(Box::new);
        let admission = rates.as_deref().map(|rates| rates as &dyn FetchAdmission);
        let means = (worker, admission);
        let output = pin!(execute(&serving.state, prepared, planned, context, means))
            .instrument(stop_span!(spans::EXECUTE))
            .await;
        self.exceeded(context.record(), context.exceeded().iter());
        let output = output?;
        if let Some(pending) = pending {
            let unused = OperationCost::settle(pending.cost, context, &output)?;
            let unused = pending.taken.settle(unused, &self.admission);
            UsedOperation::finish(pending.used, output.errors, unused);
        }
        Ok(output)
    }

    /// Refuses an operation for who asks it, what it is or what it costs; gives what it is estimated to cost.
    fn judge(
        &self,
        run: &OperationRun<'_>,
        prepared: &Prepared,
    ) -> Result<Option<OperationEstimate>, RequestError> {
        let (serving, kind) = (run.serving, prepared.operation.definition.kind);
        let authorization = &serving.state.options.authorization;
        if authorization.needs_caller(kind) && !run.context.claims().authenticated {
            return Err(unauthenticated(serving.options.challenge));
        }
        let exceeded = || prepared.operation.exceeded.iter().chain(&prepared.exceeded);
        self.exceeded(run.context.record(), exceeded());
        let line = |code: &&str| format!("exceeded, which is only measured: {code}\n");
        run.context
            .note("limits", || exceeded().map(line).collect());
        self.check_rules(run, prepared)?;
        let estimate = self.charge(run, prepared)?;
        if let Some(record) = run.context.record() {
            record.admit();
        }
        Ok(estimate)
    }

    /// Finds out what has to be known of the caller before a plan is executed.
    async fn decide(
        &self,
        serving: &Serving,
        plan: &Plan,
        context: &OperationContext<'_>,
    ) -> Result<(), RequestError> {
        let state = &serving.state;
        let options = &state.options.authorization;
        if options.needs_caller_of(plan) && !context.claims().authenticated {
            return Err(unauthenticated(serving.options.challenge));
        }
        let policies = serving.policies.as_deref();
        if policies.is_none() && state.views.is_none() && context.coprocessor().is_none() {
            return Ok(());
        }
        Box::pin(decide(state, plan, policies, context, &self.offload)).await
    }
}

/// Refuses a request whose body nobody reads.
async fn refuse_unread<B: RequestBody>(
    context: RequestContext<'_>,
    error: &RequestError,
    media: Media,
    body: B,
) -> Response<ResponseBody> {
    // In a box, because most requests are let in, and room for it is moved with every one.
    Box::pin(read_refused(&context.parts.headers, body)).await;
    refused(context, error, media)
}

/// Says of a request that was read what may become of it, and how it is answered.
fn receive_one(
    serving: &Serving,
    context: RequestContext<'_>,
    request: &mut GraphqlRequest,
    (media, has_files): (Media, bool),
) -> Option<IncrementalMedia> {
    let options = &serving.options;
    // What would come of a subscription is told without its stream.
    request.may_subscribe = options.subscription.is_some() || context.is_dry_run();
    let in_parts = parts_asked(options, context.parts, media);
    request.in_parts = in_parts.filter(|_| !has_files);
    context.passed(|| StageEvent::Receive(request));
    request.in_parts
}

/// The response to one operation; in parts, if the client reads nothing else.
fn answered(
    context: RequestContext<'_>,
    answer: Result<Response<ResponseBody>, RequestError>,
    in_parts: Option<IncrementalMedia>,
    media: Media,
) -> Response<ResponseBody> {
    match (answer, in_parts) {
        (Ok(response), Some(parts)) if parts.is_only && response.status() == StatusCode::OK => {
            only_in_parts(response, parts)
        }
        (Ok(response), _) => response,
        (Err(error), _) => refused(context, &error, media),
    }
}

/// The document as the client sent it.
fn sent<'t>(request: &'t GraphqlRequest, text: &'t str) -> &'t str {
    request.original.as_deref().unwrap_or(text)
}

/// Notes what is decided of the caller, and what a subscription does, for people.
fn note_decided(serving: &Serving, plan: &Plan, context: &OperationContext<'_>) {
    let policies = serving.policies.as_deref();
    context.note("decide", || decisions(plan, policies, context));
    note_source(&serving.state, plan, context);
}

/// Whether subgraphs have rates.
fn has_subgraph_rates(serving: &Serving) -> bool {
    serving.options.subgraph_rates.is_some()
}

/// Counts who uses an operation, if anybody wants to know.
fn used(
    run: &OperationRun<'_>,
    prepared: &Prepared,
    estimate: Option<OperationEstimate>,
) -> Option<Box<UsedOperation>> {
    let serving = run.serving;
    let usage = serving.usage.as_ref()?;
    let client = serving.options.observe.client_of(run.context.headers);
    let cost = estimate.map_or(0, |estimate| estimate.estimated);
    let operation = &prepared.operation;
    Some(UsedOperation::begin(
        usage,
        &serving.state,
        operation,
        client,
        cost,
    ))
}

/// Lets a request run if there is room for one of its class.
fn run_within(
    overload: &Arc<Overload>,
    serving: &Serving,
    context: RequestContext<'_>,
) -> Result<Running, RequestError> {
    let caller = context.identity.caller.as_deref();
    overload.enter(&RequestValues {
        headers: &context.parts.headers,
        caller: caller.and_then(|caller| caller.as_deref().ok()),
        client: Some(context.identity.client),
        observe: &serving.options.observe,
    })
}

/// The document of a request. The body it came in is gone with what else refers to it.
fn taken(request: &mut GraphqlRequest) -> String {
    request.variables = JsonObject::default();
    request.extensions = JsonObject::default();
    request.persisted_query = None;
    std::mem::take(&mut request.query)
}
