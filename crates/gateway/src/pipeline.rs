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
//! | charge | [`crate::charge`] | whether it costs more than it may |
//! | plan | [`crate::plan`] | which subgraphs are asked for what |
//! | decide | [`crate::policies`] | which policies hold for the caller, what introspection shows |
//! | authorize | [`crate::authorize`] | what of it the caller may see |
//! | execute | [`crate::execute`] | the answer |
//! | respond | [`crate::respond`] | how it leaves: status, media type, extensions |
//! | finish | [`crate::finish`] | what every response gets: encoding, CORS |
//!
//! Stages that are switched off are not in the [`Stages`], which are composed when a configuration is swapped.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    task::Poll,
};

use http::{HeaderMap, Method, Request, Response, request::Parts};
use ogive_base::Reservation;
use ogive_config::Peer;
use ogive_execute::ExecuteOutput;
use ogive_identity::Caller;
use ogive_plan::{OperationKind, Plan};
use ogive_telemetry::{Record, Stop, codes, spans, stop_span};
use tracing::Instrument;

use crate::{
    admit::{AdmissionOptions, Admitted, RateState},
    charge::charge,
    documents::resolve,
    execute::execute,
    finish::Answered,
    gateway::{Gateway, Serving},
    options::GatewayOptions,
    plan::plan_fairly,
    policies::decide,
    prepare::{Means, Prepared, prepare_fairly},
    receive::uploads::{self, Entry, Uploads},
    receive::{GraphqlRequest, Received, RequestBody, receive},
    respond::expose::{Exposed, add_extensions, dry_run, plan_extension},
    respond::parts::{Kept, only_in_parts, respond_in_parts},
    respond::{add_headers, refuse, respond, respond_batch, respond_with},
    router::{Destination, is_for_people},
    schema::operation::PlannedOperation,
    schema::state::SchemaState,
    shared::context::{Identity, OperationContext, RequestContext},
    shared::error::{RequestError, internal, no_memory, unauthenticated},
    shared::failures,
    shared::json_value::JsonObject,
    shared::measured::Exceeded,
    shared::media::{
        Accept, IncrementalMedia, Media, accept, asks_for_websocket, graphql_media,
        incremental_media, stream_asked, stream_media,
    },
    shared::observe::Watch,
    shared::panic::contained,
    shared::worker::WorkerState,
    subscribe::SubscriberSlot,
};
use ogive_server::ResponseBody;
use ogive_server::drain_body::read_refused;

/// After how many seconds clients come back while there is no schema.
const WAITING_SECONDS: u64 = 5;

/// What a request takes besides what it sends and gets, about.
const REQUEST_BYTES: usize = 8 << 10;

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
        let record = self.begin(&serving.options, parts).map(Box::new);
        let context = RequestContext {
            parts,
            identity: &identity,
            worker,
            telemetry: &self.telemetry,
            record: record.as_deref(),
        };
        let ended = contained(pin!(self.route(&serving, body, context))).await;
        let mut response = ended.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, context.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = &record {
            let client = identity.client;
            self.end(&serving.options, record, parts, client, &mut response);
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

    /// Answers an operation that came in another way than as a request of its own; who asks is known.
    pub(crate) async fn answer_operation<B: RequestBody>(
        &self,
        parts: &Parts,
        body: B,
        identity: &Identity,
        worker: &WorkerState,
    ) -> Response<ResponseBody> {
        let serving = self.serving.load_full();
        let record = self.begin(&serving.options, parts).map(Box::new);
        let context = RequestContext {
            parts,
            identity,
            worker,
            telemetry: &self.telemetry,
            record: record.as_deref(),
        };
        let ended = contained(pin!(self.graphql(&serving, body, context, None))).await;
        let mut response = ended.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, context.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = &record {
            let client = identity.client;
            self.end(&serving.options, record, parts, client, &mut response);
        }
        response
    }

    /// Whether who introduces itself like this may ask anything.
    pub(crate) async fn introduced(
        &self,
        parts: &Parts,
        identity: &Identity,
        worker: &WorkerState,
    ) -> Result<(), RequestError> {
        let serving = self.serving.load_full();
        let context = RequestContext {
            parts,
            identity,
            worker,
            telemetry: &self.telemetry,
            record: None,
        };
        let options = &serving.options;
        // Whoever guesses tokens is slowed down as with requests.
        let _admitted = self.let_in(options, context).map_err(|(error, _)| error)?;
        let known = self.known(&serving, context).await;
        let identity = known.as_ref().unwrap_or(identity);
        identity.check(options.caller_required, options.challenge)
    }

    async fn route<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
    ) -> Response<ResponseBody> {
        let parts = context.parts;
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

    /// Lets a request for a page in that is for known callers only. It costs as much as one for GraphQL.
    async fn let_page_in(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
    ) -> Result<(), RequestError> {
        let admitted = self.let_in(&serving.options, context);
        let _admitted = admitted.map_err(|(error, _)| error)?;
        let known = match &serving.authentication {
            Some(_) => Box::pin(self.known(serving, context)).await,
            None => None,
        };
        let identity = known.as_ref().unwrap_or(context.identity);
        let of_caller = self.let_caller_in(&serving.options, identity);
        of_caller.map_err(|(error, _)| error)?;
        identity.check(true, serving.options.challenge)
    }

    /// Refuses a request that is no GraphQL. It leads as far as any other: its answer has an id, it is logged and counted.
    fn refuse_elsewhere(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
        error: &RequestError,
    ) -> Response<ResponseBody> {
        let (parts, observe) = (context.parts, &options.observe);
        let is_wanted = context.record.is_none()
            && (self.telemetry.is_on() || observe.is_on())
            && parts.method != Method::OPTIONS;
        let own = is_wanted.then(|| self.record(observe, parts));
        let context = RequestContext {
            record: own.as_ref().or(context.record),
            ..context
        };
        let mut response = refused(context, error, media_of(parts));
        if let Some(record) = &own {
            let client = context.identity.client;
            self.end(options, record, parts, client, &mut response);
        }
        response
    }

    /// The five stops.
    async fn graphql<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        context: RequestContext<'_>,
        document_id: Option<&str>,
    ) -> Response<ResponseBody> {
        let (media, mut admitted) = match self.admit(&serving.options, context) {
            Ok(admitted) => admitted,
            Err(refused) => {
                read_refused(&context.parts.headers, body).await;
                return *refused;
            }
        };
        let mut answer = {
            let rate = &mut admitted.rate;
            let answer = pin!(self.admitted(serving, body, media, context, document_id, rate));
            answer.await
        };
        if let Some(rate) = admitted.rate {
            rate.write(answer.headers_mut());
        }
        answer
    }

    /// Lets a request for GraphQL in, or refuses it.
    fn admit(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<(Media, Admitted), Box<Response<ResponseBody>>> {
        let parts = context.parts;
        let headers = &parts.headers;
        let whole = graphql_media(headers).or_else(|| stream_only(options, parts));
        let Some(media) = whole.or_else(|| parts_only(options, parts)) else {
            let error = not_acceptable(parts);
            return Err(Box::new(refused(context, &error, Media::Json)));
        };
        if parts.method == Method::GET && asks_for_websocket(&parts.headers) {
            let opened = self.open_websocket(options, context);
            return Err(Box::new(match opened {
                Ok(response) => response,
                Err(error) => refused(context, &error, media),
            }));
        }
        if self.waiting.load(Ordering::Acquire) {
            let error = RequestError {
                retry_after: Some(WAITING_SECONDS),
                ..RequestError::http(
                    codes::SCHEMA_NOT_LOADED,
                    "the gateway has no schema yet: come back in a moment",
                )
            };
            return Err(Box::new(refused(context, &error, media)));
        }
        match self.let_in(options, context) {
            Ok(admitted) => Ok((media, admitted)),
            Err((error, rate)) => {
                let mut response = refused(context, &error, media);
                if let Some(rate) = rate {
                    rate.write(response.headers_mut());
                }
                Err(Box::new(response))
            }
        }
    }

    /// Counts a request, or an entry of a batch, against the limits that do not depend on who asks.
    fn let_in(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
    ) -> Result<Admitted, (RequestError, Option<RateState>)> {
        let (headers, identity) = (&context.parts.headers, context.identity);
        let admission = &self.admission;
        let admitted = admission.admit(&options.admission, headers, identity.client)?;
        self.exceeded(admitted.exceeded.iter());
        Ok(admitted)
    }

    /// Counts it against the rate of its caller, as soon as that one is known.
    fn let_caller_in(
        &self,
        options: &GatewayOptions,
        identity: &Identity,
    ) -> Result<Option<RateState>, (RequestError, RateState)> {
        let claim = |name: &str| identity.claim(name);
        let admission = &self.admission;
        let admitted = admission.admit_caller(&options.admission, identity.client, claim)?;
        let Some((state, exceeded)) = admitted else {
            return Ok(None);
        };
        self.exceeded(exceeded.then_some(&codes::REQUEST_RATE_LIMITED).into_iter());
        Ok(Some(state))
    }

    /// Who asks, by what the client brings; `None` if that changes nothing.
    async fn known(&self, serving: &Serving, context: RequestContext<'_>) -> Option<Identity> {
        let (authentication, identity) = (serving.authentication.as_ref()?, context.identity);
        let identified = pin!(authentication.identify(context.parts, identity, &self.offload));
        let caller = identified.await?;
        if let Some(metrics) = &self.telemetry.metrics {
            metrics.authenticated(caller.as_ref().err().map(RequestError::code));
        }
        Some(Identity {
            caller: Some(Box::new(caller)),
            ..Identity::like(identity)
        })
    }

    /// Who asks with such a head, as a request's own stage finds it out; for whoever measures that.
    pub async fn caller_of(
        &self,
        parts: &Parts,
        peer: Peer,
        worker: &WorkerState,
    ) -> Option<Arc<Caller>> {
        let serving = self.serving.load_full();
        let context = RequestContext {
            parts,
            identity: &Identity::of(peer),
            worker,
            telemetry: &self.telemetry,
            record: None,
        };
        let known = pin!(self.known(&serving, context)).await?;
        known.caller().ok().flatten()
    }

    /// Lets an entry of a batch in, or refuses it: each of them costs as much as a request of its own. The first one was let
    /// in with the request.
    fn admit_entry(
        &self,
        options: &GatewayOptions,
        context: RequestContext<'_>,
        at: usize,
    ) -> Result<Option<Admitted>, RequestError> {
        if at == 0 {
            return Ok(None);
        }
        // A list is answered with one head, which says nothing of the rate of one entry.
        let admitted = self.let_in(options, context).map_err(|(error, _)| error)?;
        let of_caller = self.let_caller_in(options, context.identity);
        of_caller.map_err(|(error, _)| error)?;
        Ok(Some(admitted))
    }

    /// Rates of operations are taken from when it is known which operation it is.
    fn admit_operation(
        &self,
        options: &AdmissionOptions,
        name: Option<&str>,
        context: &OperationContext<'_>,
    ) -> Result<(), RequestError> {
        let admitted = self.admission.admit_operation(options, name);
        // One that is refused says with `retry-after` when to come back.
        let admitted = admitted.map_err(|(error, _)| error)?;
        if let Some((state, exceeded)) = admitted {
            let mut headers = HeaderMap::new();
            state.write(&mut headers);
            context.add(headers);
            self.exceeded(exceeded.then_some(&codes::REQUEST_RATE_LIMITED).into_iter());
        }
        Ok(())
    }

    async fn admitted<B: RequestBody>(
        &self,
        serving: &Serving,
        body: B,
        media: Media,
        context: RequestContext<'_>,
        document_id: Option<&str>,
        rate: &mut Option<RateState>,
    ) -> Response<ResponseBody> {
        let parts = context.parts;
        let mut exceeded = Exceeded::new();
        let memory = context.worker.reserve(&self.memory);
        if memory.grow(REQUEST_BYTES).is_err() {
            read_refused(&parts.headers, body).await;
            return refused(context, &no_memory(), media);
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
        match self.let_caller_in(&serving.options, context.identity) {
            Ok(None) => {}
            Ok(state) => *rate = state,
            Err((error, state)) => {
                *rate = Some(state);
                read_refused(&parts.headers, body).await;
                return refused(context, &error, media);
            }
        }
        let from = context.record.map(Record::now);
        let (received, uploads) = {
            let body = (body, &memory);
            let received = pin!(self.received(serving, context, body, document_id, &mut exceeded));
            match received.await {
                Ok((received, uploads)) => (Ok(received), uploads),
                Err(error) => (Err(error), None),
            }
        };
        self.exceeded(exceeded.iter());
        let files = |at| uploads.as_deref().map(|uploads| Entry { uploads, at });
        if let (Some(record), Some(from)) = (context.record, from) {
            record.received(from);
        }
        let answer = match received {
            Ok(Received::One(mut request)) => {
                let files = files(None);
                request.may_subscribe = serving.options.subscription.is_some();
                let in_parts = parts_asked(&serving.options, parts, media);
                let in_parts = in_parts.filter(|_| files.is_none());
                request.in_parts = in_parts;
                let sent = memory.used().saturating_sub(REQUEST_BYTES);
                let means = (files, memory, sent);
                let answer = pin!(self.four_stops(serving, context, &mut request, media, means));
                match (answer.await, in_parts) {
                    (Ok(response), Some(parts)) if parts.is_only => only_in_parts(response, parts),
                    (Ok(response), _) => response,
                    (Err(error), _) => refused(context, &error, media),
                }
            }
            Ok(Received::Batch(_)) if matches!(media, Media::Stream(_)) => {
                refused(context, &not_acceptable(parts), Media::Json)
            }
            Ok(Received::Batch(requests)) => {
                let entries = requests.into_iter().enumerate().map(|(at, request)| {
                    let (files, memory) = (files(Some(at)), memory.beside());
                    async move {
                        let answer = async {
                            let mut request = request?;
                            let _admitted = self.admit_entry(&serving.options, context, at)?;
                            memory.grow(REQUEST_BYTES)?;
                            // All of them share the body.
                            let means = (files, memory, 0);
                            self.four_stops(serving, context, &mut request, media, means)
                                .await
                        };
                        let response = answer.await;
                        response.unwrap_or_else(|error| refused(context, &error, media))
                    }
                });
                let entries = join_all(entries).await;
                // What they hold is copied.
                let _ = memory.set(entries.iter().map(|entry| entry.body().len()).sum());
                let mut response = respond_batch(entries, media);
                response.body_mut().hold(memory);
                response
            }
            Err(error) => refused(context, &error, media),
        };
        if let Some(uploads) = &uploads {
            Box::pin(uploads.linger()).await;
        }
        answer
    }

    /// Stop 1.
    async fn received<B: RequestBody>(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        (body, memory): (B, &Reservation),
        document_id: Option<&str>,
        exceeded: &mut Exceeded,
    ) -> Result<(Received, Option<Box<Uploads>>), RequestError> {
        let parts = context.parts;
        let checked = serving.options.csrf.check(parts);
        let required = serving.options.caller_required;
        if let Err(error) =
            checked.and_then(|()| context.identity.check(required, serving.options.challenge))
        {
            read_refused(&parts.headers, body).await;
            return Err(error);
        }
        let limits = &serving.options.receive;
        let span = stop_span!(spans::RECEIVE);
        let options = serving.options.uploads.as_ref();
        match options.filter(|_| uploads::is_multipart(&parts.headers)) {
            // In a box, because it takes much room, and room is moved with every request.
            Some(options) => {
                let received = Box::pin(uploads::receive(
                    parts,
                    body,
                    options,
                    limits,
                    document_id,
                    (&self.offload, memory),
                    exceeded,
                ));
                let (received, uploads) = received.instrument(span).await?;
                Ok((received, Some(Box::new(uploads))))
            }
            None => {
                let means = (&self.offload, memory);
                let received = pin!(receive(parts, body, limits, document_id, means, exceeded));
                Ok((received.instrument(span).await?, None))
            }
        }
    }

    async fn four_stops(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        request: &mut GraphqlRequest,
        media: Media,
        (files, memory, sent): (Option<Entry<'_>>, Reservation, usize),
    ) -> Result<Response<ResponseBody>, RequestError> {
        let options = &serving.options.observe;
        let watch = context.record.map(|record| Watch::new(record, options));
        let operation = OperationContext::new(&context.parts.headers)
            .in_request(context.parts)
            .asked_by(context.identity.caller()?)
            .watched(watch.as_ref())
            .told_to(&self.telemetry)
            .with_uploads(files)
            .counted_in(&memory);
        let means = (context.worker, &memory, sent);
        let mut answer = pin!(self.stops(serving, request, media, means, &operation)).await;
        drop(operation);
        if let Ok(response) = &mut answer {
            response.body_mut().hold(memory);
        }
        if let Some(watch) = watch {
            watch.finish(answer.as_ref().err(), &serving.state.endpoints);
        }
        answer
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
        if policies.is_none() && state.views.is_none() {
            return Ok(());
        }
        Box::pin(decide(state, plan, policies, context, &self.offload)).await
    }

    async fn stops(
        &self,
        serving: &Serving,
        request: &mut GraphqlRequest,
        media: Media,
        (worker, memory, sent): (&WorkerState, &Reservation, usize),
        context: &OperationContext<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let (state, headers, watch) = (&serving.state, context.headers, context.watch());
        let register = resolve(request, &serving.options.documents, &self.registered)?;
        request.in_parts = request.in_parts.filter(|_| request.query.contains("defer"));
        let from = watch.map(Watch::now);
        let means = Means {
            offload: &self.offload,
            share: &worker.share,
            memory,
        };
        let (prepared, permit) = pin!(prepare_fairly(state, request, means))
            .instrument(stop_span!(spans::PREPARE))
            .await?;
        let text = taken(request);
        let name = name_of(&prepared);
        let kind = prepared.operation.definition.kind;
        if state.options.authorization.needs_caller(kind) && !context.claims().authenticated {
            return Err(unauthenticated(serving.options.challenge));
        }
        self.admit_operation(&serving.options.admission, name, context)?;
        self.exceeded(prepared.operation.exceeded.iter().chain(&prepared.exceeded));
        if let Some(control) = &serving.options.demand_control {
            let exceeded = charge(control, state, &prepared, worker, context)?;
            self.exceeded(exceeded.iter());
        }
        if let Some(files) = context.uploads() {
            files.check(&state.supergraph.api, &prepared)?;
        }
        let from = watch.zip(from).map(|(watch, from)| {
            watch.prepared(kind.as_str(), name);
            watch.stop(Stop::Prepare, from)
        });
        if let Some(hash) = register {
            self.registered.insert(hash, &text);
        }
        drop(text);
        memory.shrink(sent);
        let span = stop_span!(spans::PLAN, plan.source = tracing::field::Empty);
        let found = pin!(plan_fairly(
            state,
            &prepared.operation,
            headers,
            means,
            permit
        ))
        .instrument(span.clone())
        .await;
        let (planned, source) = found?;
        span.record(spans::PLAN_SOURCE, source.as_str());
        drop(span);
        let from = watch.zip(from).map(|(watch, from)| {
            watch.planned(source.as_str());
            watch.stop(Stop::Plan, from)
        });
        let exposed = serving.options.expose.asked(headers);
        if exposed == Exposed::DryRun {
            return Ok(respond_with(dry_run(&planned).into(), media));
        }
        pin!(self.decide(serving, &planned.plan, context)).await?;
        if kind == OperationKind::Subscription {
            return self.subscribe(serving, prepared, &planned, context, worker);
        }
        // What is begun is finished.
        memory.run();
        if let Some(in_parts) = request.in_parts.filter(|_| exposed == Exposed::No)
            && let Some(worker) = worker.handle()
            && planned.plan.deferral.is_some()
        {
            let kept = self.kept((state, prepared, planned), worker, context, memory);
            return Box::pin(respond_in_parts(kept, in_parts, media)).await;
        }
        if let Some(files) = context.uploads() {
            files.run();
        }
        let output = pin!(execute(state, prepared, &planned, context, worker, false))
            .instrument(stop_span!(spans::EXECUTE))
            .await;
        self.exceeded(context.exceeded().iter());
        let output = output?;
        let from = watch.zip(from).map(|(watch, from)| {
            watch.executed(output.errors_total);
            watch.stop(Stop::Execute, from)
        });
        let response = stop_span!(spans::RESPOND).in_scope(|| {
            let plan = (exposed == Exposed::WithResponse).then_some(&*planned);
            responded(serving, output, media, plan, context)
        });
        if let (Some(watch), Some(from)) = (watch, from) {
            watch.stop(Stop::Respond, from);
        }
        Ok(response)
    }
}

impl Gateway {
    /// What an operation keeps that goes on behind its request.
    fn kept(
        &self,
        (state, prepared, planned): (&Arc<SchemaState>, Prepared, Arc<PlannedOperation>),
        worker: Rc<WorkerState>,
        context: &OperationContext<'_>,
        memory: &Reservation,
    ) -> Kept {
        Kept {
            state: Arc::clone(state),
            prepared,
            planned,
            headers: context.headers.clone(),
            caller: context.shared_caller().cloned(),
            claims: context.claims().clone(),
            view: context.shared_view().cloned(),
            worker,
            telemetry: Arc::clone(&self.telemetry),
            memory: memory.beside(),
            added: context.take_added(),
        }
    }
}

/// Stop 5, with the plan if the client asked for it.
fn responded(
    serving: &Serving,
    output: ExecuteOutput,
    media: Media,
    plan: Option<&PlannedOperation>,
    context: &OperationContext<'_>,
) -> Response<ResponseBody> {
    let mut extensions = Vec::new();
    if let Some(plan) = plan {
        extensions.push(("apolloQueryPlan", plan_extension(plan)));
    }
    let traces = |_: &&Watch<'_>| serving.options.observe.traces(context.headers);
    if let Some(watch) = context.watch().filter(traces) {
        extensions.push(("ogiveTrace", watch.timeline(&serving.state.endpoints)));
    }
    let mut response = match extensions.as_slice() {
        [] => respond(output, media),
        all => respond_with(add_extensions(&output.body.into_bytes(), all).into(), media),
    };
    let added = context.take_added();
    if !added.is_empty() {
        add_headers(&mut response, added, !extensions.is_empty());
    }
    response
}

fn refused(
    context: RequestContext<'_>,
    error: &RequestError,
    media: Media,
) -> Response<ResponseBody> {
    let _span = stop_span!(spans::RESPOND).entered();
    failures::refused(context.telemetry, context.record, error);
    refuse(error, media)
}

/// Waits for all; their number is limited by what was received.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    enum Slot<F: Future> {
        Running(Pin<Box<F>>),
        Done(Option<F::Output>),
    }
    let mut slots: Vec<Slot<F>> = futures.map(|f| Slot::Running(Box::pin(f))).collect();
    // An output is only ever moved out whole.
    poll_fn(|cx| {
        let mut waiting = false;
        for slot in &mut slots {
            if let Slot::Running(future) = slot {
                match future.as_mut().poll(cx) {
                    Poll::Ready(output) => *slot = Slot::Done(Some(output)),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    let outputs = slots.into_iter().filter_map(|slot| match slot {
        Slot::Done(output) => output,
        Slot::Running(_) => None,
    });
    outputs.collect()
}

fn media_of(parts: &Parts) -> Media {
    match accept(&parts.headers) {
        Accept::Graphql(media) => media,
        Accept::Html | Accept::Nothing => Media::Json,
    }
}

/// The stream that a client asks for who reads nothing else.
#[cold]
fn stream_only(options: &GatewayOptions, parts: &Parts) -> Option<Media> {
    options.subscription.as_ref()?;
    stream_media(&parts.headers).map(Media::Stream)
}

/// The document of a request. The body it came in is gone with what else refers to it.
fn taken(request: &mut GraphqlRequest) -> String {
    request.variables = JsonObject::default();
    request.persisted_query = None;
    std::mem::take(&mut request.query)
}

/// The answer in parts that a client reads. What came over a WebSocket is answered over it.
fn parts_asked(options: &GatewayOptions, parts: &Parts, media: Media) -> Option<IncrementalMedia> {
    let asked = incremental_media(&parts.headers, options.incremental?)?;
    let is_stream = matches!(media, Media::Stream(_));
    let is_of_websocket = parts.extensions.get::<SubscriberSlot>().is_some();
    (!is_stream && !is_of_websocket).then_some(asked)
}

/// The name of an operation.
fn name_of(prepared: &Prepared) -> Option<&str> {
    let name = prepared.operation.definition.name.as_ref()?;
    Some(prepared.operation.document.name(*name))
}

/// What a client gets that is answered as a whole though it reads answers in parts only: refusals.
#[cold]
fn parts_only(options: &GatewayOptions, parts: &Parts) -> Option<Media> {
    incremental_media(&parts.headers, options.incremental?).map(|_| Media::Json)
}

/// A request whose `accept` header admits nothing that there is.
fn not_acceptable(parts: &Parts) -> RequestError {
    let Some(stream) = stream_asked(&parts.headers) else {
        let message = "the `accept` header admits neither `application/graphql-response+json` nor \
                       `application/json`";
        return RequestError::http(codes::NOT_ACCEPTABLE, message);
    };
    let message = match stream {
        "multipart/mixed" => {
            "no answer is `multipart/mixed` of this kind here: accept `application/json`, too, and `@defer` is answered \
             in one response"
        }
        _ => {
            "subscriptions are not served, and no other answer is a stream of events: accept `application/json` for \
             queries and mutations"
        }
    };
    RequestError {
        status: 406,
        ..RequestError::http(codes::SUBSCRIPTIONS_NOT_SUPPORTED, message)
    }
}
