//! The stages of a request, in the order in which they happen.
//!
//! | stage | where | what it decides |
//! |---|---|---|
//! | identify | [`crate::identify`] | who asks, as far as a trusted peer says it: claims of the caller, the client behind proxies |
//! | route | [`crate::router`] | whether it is GraphQL, a page, or nothing |
//! | admit | [`crate::admit`] | whether it gets in: media types, rates, the memory of the process |
//! | know | [`crate::identify::tokens`] | who asks, by a token or an API key, which may take long |
//! | receive | [`ogive_edge::receive`] | what is asked: one request or a batch, with its files |
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
//! Stages that are values are in [`crate::stages::Pipeline`], composed when a configuration or a schema is swapped.

use std::{future::Future, pin::pin, time::Duration};

use http::{HeaderMap, Request, Response, StatusCode, request::Parts};
use ogive_base::{Peer, Reservation};
use ogive_edge::{
    error::{RequestError, expired, internal, no_memory, unauthenticated},
    json_value::JsonObject,
    media::{IncrementalMedia, Media},
    receive::{
        GraphqlRequest, Received, RequestBody,
        growing::Arriving,
        uploads::{Entry, Uploads},
    },
};
use ogive_plan::{OperationKind, Plan};
use ogive_server::{ResponseBody, drain_body::read_refused, panic::contained};
use ogive_telemetry::{Record, spans, stop_span};
use tracing::Instrument;

use crate::{
    admit::rates::Admitted,
    batch::Batch,
    charge::{OperationCost, OperationEstimate},
    explain::only_explained,
    gateway::{Gateway, Serving},
    hooks::body::note_break,
    hooks::router::{FirstStage, HookedRequest},
    hooks::run::OperationHooks,
    operation::{OperationInput, OperationRun, REQUEST_BYTES},
    pending_cost::PendingCost,
    policies::decisions,
    prepare::Prepared,
    respond::{
        expose::{Exposed, dry_run},
        parts::{InParts, may_come_later, only_in_parts, parts_asked, respond_in_parts},
        refusal::{media_of, refuse, refused},
        respond_with,
    },
    router::{Destination, is_for_people, static_response},
    schema::{access::UpgradeAccess, state::SchemaState},
    shared::{
        context::{Identity, OperationContext, RequestContext},
        failures,
        observe::{Answer, Watch},
        stage_observer::StageEvent,
        worker::WorkerState,
    },
    subscribe::{
        SubscriberSlot,
        owner::{Owner, claims_end},
        plan::note_source,
        stream_requests::{StreamRequest, no_stream},
    },
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
        let pipeline = &serving.pipeline;
        let identity = pipeline.identify.run(&mut parts.headers, peer);
        let parts = &*parts;
        // Boxed: keeps the common future small.
        let record = match worker.observer() {
            None => self.begin(&serving.options, parts, &identity).map(Box::new),
            // What is only explained is neither counted nor logged.
            Some(_) => None,
        };
        let context = self.context(&serving, (parts, &identity), worker, record.as_deref());
        let ended = contained(pin!(self.route(&serving, body, context))).await;
        let mut response = self.conclude(&serving, context, ended);
        pipeline.finish.run(parts, worker, &mut response);
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
        let context = self.context(&serving, (parts, identity), worker, record.as_deref());
        let ended = contained(pin!(self.graphql(&serving, body, context, None))).await;
        Some(self.conclude(&serving, context, ended))
    }

    /// What all stages know of a request of which the head is known.
    pub(crate) fn context<'a>(
        &'a self,
        serving: &'a Serving,
        (parts, identity): (&'a Parts, &'a Identity),
        worker: &'a WorkerState,
        record: Option<&'a Record>,
    ) -> RequestContext<'a> {
        RequestContext {
            parts,
            identity,
            worker,
            telemetry: &self.telemetry,
            record,
            hooks: None,
            error_rules: serving.state.options.error_rules.as_deref(),
        }
    }

    /// The response to a request, which is recorded; `None`: answering it ended in a panic.
    fn conclude(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        ended: Option<Response<ResponseBody>>,
    ) -> Response<ResponseBody> {
        let (parts, identity) = (context.parts, context.identity);
        let mut response = ended.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, context.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = context.record {
            self.end(&serving.options, record, parts, identity, &mut response);
        }
        response
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

    /// The media type of the response and the admission of the request, or the response that rejects it.
    fn negotiate_and_admit(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
    ) -> Result<(Media, Admitted), Box<Response<ResponseBody>>> {
        let media = self.negotiate(&serving.options, context)?;
        let admitted = serving.pipeline.admit.run(context);
        let admitted = admitted.map_err(|error| Box::new(refused(context, &error, media)))?;
        Ok((media, admitted))
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
        let (media, mut admitted) = match self.negotiate_and_admit(serving, context) {
            Ok(admitted) => admitted,
            Err(ended) => {
                read_refused(&context.parts.headers, body).await;
                return *ended;
            }
        };
        // No future of its own, which would be moved with every request. All that comes of it tells of the rate.
        let mut answer = 'answer: {
            let memory = context.worker.reserve(&self.memory);
            if memory.grow(REQUEST_BYTES).is_err() {
                break 'answer refuse_unread(context, &no_memory(), media, body).await;
            }
            // Only what is let in and counted may have keys fetched and signatures checked.
            let known = match &serving.pipeline.authenticate {
                Some(authenticate) => pin!(authenticate.run(context)).await,
                None => None,
            };
            let context = RequestContext {
                identity: known.as_ref().unwrap_or(context.identity),
                ..context
            };
            context.passed(|| StageEvent::Known(context.parts, context.identity));
            if let Err(error) = admit_known(serving, context, &mut admitted) {
                break 'answer refuse_unread(context, &error, media, body).await;
            }
            count_name(serving, context);
            context.note("admit", || admitted.describe());
            let changed: Box<HookedRequest<'_>>;
            // Whoever only looks tells nobody.
            let told = serving.hooks.as_ref();
            let (context, (received, uploads)) = match told.filter(|_| !context.is_dry_run()) {
                None => {
                    let receiving = serving.pipeline.receive.run(context, body, &memory, id);
                    (context, pin!(receiving).await)
                }
                Some(served) => {
                    let input = FirstStage::new(media, &memory, id, &mut admitted);
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
                    let answer = match context.hooks {
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
            match context.hooks {
                None => answer,
                Some(run) => Box::pin(self.tell_answer(context, run, answer, media)).await,
            }
        };
        admitted.answered(&mut answer);
        answer
    }

    /// One operation.
    pub(crate) async fn operation(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        input: OperationInput<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        match context.hooks {
            None => pin!(self.run_operation(serving, context, None, input)).await,
            Some(run) => {
                let answer = self.run_hooked(serving, context, run, input);
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
        hooks: Option<&OperationHooks<'_>>,
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
            .with_hooks(hooks)
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
        let (state, pipeline) = (&serving.state, &serving.pipeline);
        if let Some(looking) = pipeline.resolve.find(context.headers, request) {
            looking.await;
        }
        let register = pipeline.resolve.run(context.headers, request)?;
        request.in_parts = request.in_parts.filter(|_| may_come_later(&request.query));
        context.passed(|| StageEvent::Document(request));
        let (prepared, permit) = pin!(pipeline.prepare.run(request, &worker.share, memory))
            .instrument(stop_span!(spans::PREPARE))
            .await?;
        context.passed(|| StageEvent::Prepare(state, &prepared));
        let text = taken(request);
        let estimate = judge(run, &prepared)?;
        let taken = match &pipeline.admit_operation {
            Some(admit) => match admit.run(context, &prepared, estimate)? {
                Some(taking) => Some(taking.await?),
                None => None,
            },
            None => None,
        };
        check_files(context, state, &prepared)?;
        if let Some(hash) = register {
            let text = sent(request, &text);
            pipeline.resolve.register(context.client(), hash, text);
        }
        drop(text);
        memory.shrink(body_bytes);
        let span = stop_span!(spans::PLAN, plan.source = tracing::field::Empty);
        let headers = context.headers;
        let found = {
            let asked = run.values(&prepared.operation);
            pin!(pipeline.plan.run(&asked, &worker.share, memory, permit))
                .instrument(span.clone())
                .await
        };
        let (planned, source) = found?;
        span.record(spans::PLAN_SOURCE, source.as_str());
        drop(span);
        context.passed(|| StageEvent::Plan(&planned, source));
        if let Some(charge) = &pipeline.charge {
            charge.run_planned(context, worker, (&prepared, &planned))?;
        }
        let exposed = serving.options.expose.asked(headers);
        pin!(pipeline.decide.run(&planned.plan, context)).await?;
        if exposed == Exposed::DryRun {
            return Ok(respond_with(dry_run(&planned).into(), media));
        }
        note_decided(serving, &planned.plan, context);
        if let Some(ended) = only_explained(serving, context, &prepared) {
            return ended;
        }
        if let Some(told) = context.hooks()
            && let Some(response) = Box::pin(told.planned(headers, &prepared, &planned)).await?
        {
            return Ok(response);
        }
        let used = used(run, &prepared, estimate);
        if prepared.operation.definition.kind == OperationKind::Subscription {
            // Boxed: keeps the common future small.
            return Box::pin(self.subscribe(run, prepared, &planned, estimate)).await;
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
        let output = pin!(
            pipeline
                .execute
                .run(context, worker, (prepared, &planned), pending)
        )
        .await?;
        context.passed(|| StageEvent::Execute(&planned, &output));
        let plan = (exposed == Exposed::WithResponse).then_some(&*planned);
        let response = pipeline.respond.run(context, media, output, plan);
        context.passed(|| StageEvent::Respond);
        Ok(response)
    }
}

/// Stages as hooks call them, which look at a request before it passes them.
impl Gateway {
    pub(crate) fn arriving<'a>(
        &'a self,
        serving: &'a Serving,
        identity: &Identity,
        memory: &'a Reservation,
    ) -> Arriving<'a> {
        serving.pipeline.receive.arriving(identity, memory)
    }
    pub(crate) fn receive<'a, B: RequestBody + 'a>(
        &'a self,
        serving: &'a Serving,
        context: RequestContext<'a>,
        body: B,
        memory: &'a Reservation,
        document_id: Option<&'a str>,
    ) -> impl Future<Output = (Result<Received, RequestError>, Option<Box<Uploads>>)> + 'a {
        let receive = &serving.pipeline.receive;
        receive.run(context, body, memory, document_id)
    }
    pub(crate) fn find_shared<'a>(
        &'a self,
        serving: &'a Serving,
        headers: &HeaderMap,
        request: &GraphqlRequest,
    ) -> Option<impl Future<Output = ()> + 'a> {
        serving.pipeline.resolve.find(headers, request)
    }
    pub(crate) fn resolve(
        &self,
        serving: &Serving,
        headers: &HeaderMap,
        request: &mut GraphqlRequest,
    ) -> Result<Option<[u8; 32]>, RequestError> {
        serving.pipeline.resolve.resolve(headers, request)
    }
}

/// Rejects files where the schema has no place for one.
fn check_files(
    context: &OperationContext<'_>,
    state: &SchemaState,
    prepared: &Prepared,
) -> Result<(), RequestError> {
    let Some(files) = context.uploads() else {
        return Ok(());
    };
    let operation = &prepared.operation;
    let (document, definition) = (&operation.document, &operation.definition);
    files.check(&state.supergraph.api, document, definition)
}

/// Rejects an operation for who asks it, what it is or what it costs; gives what it is estimated to cost.
fn judge(
    run: &OperationRun<'_>,
    prepared: &Prepared,
) -> Result<Option<OperationEstimate>, RequestError> {
    let (serving, context) = (run.serving, run.context);
    let authorization = &serving.state.options.authorization;
    if authorization.needs_caller(prepared.operation.definition.kind)
        && !context.claims().authenticated
    {
        return Err(unauthenticated(serving.options.challenge));
    }
    let exceeded = || prepared.operation.exceeded.iter().chain(&prepared.exceeded);
    context.count_exceeded(exceeded());
    let line = |code: &&str| format!("exceeded, which is only measured: {code}\n");
    context.note("limits", || exceeded().map(line).collect());
    if let Some(rules) = &serving.pipeline.check_rules {
        rules.run(context, prepared)?;
    }
    let estimate = match &serving.pipeline.charge {
        Some(charge) => charge.run(context, run.worker, prepared)?,
        None => None,
    };
    if let Some(record) = context.record() {
        record.admit();
    }
    Ok(estimate)
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
    let policies = serving.services.policies.as_deref();
    context.note("decide", || decisions(plan, policies, context));
    note_source(&serving.state, plan, context);
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

/// Admits a request of which the caller is known now.
fn admit_known(
    serving: &Serving,
    context: RequestContext<'_>,
    admitted: &mut Admitted,
) -> Result<(), RequestError> {
    let (identity, admit) = (context.identity, &serving.pipeline.admit);
    let extensions = &context.parts.extensions;
    // An operation in a stream of many comes in a request of its own, and says whose the stream is.
    let is_of_socket =
        extensions.get::<SubscriberSlot>().is_some() && extensions.get::<Owner>().is_none();
    // A proxy says it of each request; of what comes over a connection it has said it once.
    if is_of_socket && !identity.is_proved && claims_end(identity) == Some(Duration::ZERO) {
        return Err(expired());
    }
    admit.charge_caller(context, admitted)?;
    if !StreamRequest::is_let_in(&serving.options, context) {
        return Err(no_stream());
    }
    admit.enter(context, admitted)
}

/// Counts the client by its name from now on: its request was let in, and its caller is known if any operation needs that.
fn count_name(serving: &Serving, context: RequestContext<'_>) {
    let needs_caller =
        serving.options.caller_required || serving.state.options.authorization.ever_needs_caller();
    if let Some(record) = context.record
        && context
            .identity
            .check(needs_caller, serving.options.challenge)
            .is_ok()
    {
        record.admit();
    }
}

/// The document of a request. The body it came in is gone with what else refers to it.
fn taken(request: &mut GraphqlRequest) -> String {
    request.variables = JsonObject::default();
    request.extensions = JsonObject::default();
    request.persisted_query = None;
    std::mem::take(&mut request.query)
}
