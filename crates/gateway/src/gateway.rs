//! The pipeline behind one HTTP request, independent of sockets.

use std::{
    fmt::{Debug, Display},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    request::Parts,
};
use hyper::body::{Body, Bytes};
use ogive_base::{MemoryBudget, Reservation};
use ogive_config::{Client, Config, Measured, Peer};
use ogive_telemetry::{Record, Stop, Telemetry, access::Finished, codes, spans, stop_span};
use tracing::Instrument;

use crate::{
    admit::{Admission, AdmissionOptions, Admitted},
    authorize::{CallerClaims, ClaimsSource},
    documents::{DocumentOptions, Registered, resolve},
    execute::execute,
    identify::proxies::Proxies,
    plan::plan_fairly,
    prepare::{Means, prepare_fairly},
    receive::uploads::{self, Entry, UploadOptions, Uploads},
    receive::{GraphqlRequest, ReceiveLimits, Received, receive},
    respond::expose::{ExposeOptions, Exposed, add_extensions, dry_run, plan_extension},
    respond::{add_headers, refuse, respond, respond_batch, respond_with},
    router::cors::{Cors, Csrf},
    router::dev_diagnostics::{self as notice, Notice},
    router::graphiql,
    schema::refinement::Wakeup,
    schema::state::SchemaState,
    shared::body::{ResponseBody, encode},
    shared::context::RequestContext,
    shared::drain_body::read_refused,
    shared::error::{RequestError, internal, no_memory},
    shared::failures,
    shared::json_value::JsonObject,
    shared::measured::{Exceeded, code, log},
    shared::media::{Accept, Media, accept, asks_for_websocket, graphql_media, stream_asked},
    shared::memory,
    shared::observe::{Lent, ObserveOptions, Watch},
    shared::offload::Heavy,
    shared::panic::contained,
    shared::worker::WorkerState,
};

/// After how many seconds clients come back while there is no schema.
const WAITING_SECONDS: u64 = 5;

/// What a request takes besides what it sends and gets, about.
const REQUEST_BYTES: usize = 8 << 10;

/// A gateway: one schema at a time, any number of workers.
#[derive(Debug)]
pub struct Gateway {
    serving: ArcSwap<Serving>,
    /// Documents that clients registered; they outlive schemas and configurations.
    registered: Registered,
    admission: Admission,
    draining: AtomicBool,
    /// Whether there is no schema yet, and what is served is only a stand-in.
    waiting: AtomicBool,
    /// When it was made, and how often its schema was replaced since: together they name a schema for GraphiQL.
    started: u64,
    replaced: AtomicU64,
    telemetry: Arc<Telemetry>,
    /// Wakes its thread when a plan waits to be refined, whatever the schema.
    wakeup: Arc<Wakeup>,
    heavy: Heavy,
    /// What requests make the process hold.
    memory: Arc<MemoryBudget>,
}

/// What new requests are served with: swapped as one, so that no request sees the schema of one configuration and the
/// options of another.
#[derive(Debug)]
struct Serving {
    state: Arc<SchemaState>,
    options: Arc<GatewayOptions>,
}

/// What does not change with the schema.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Path of the GraphQL endpoint.
    pub graphql_path: String,
    /// Path of GraphiQL; `None` if it is off.
    pub homepage_path: Option<String>,
    /// Paths of liveness and readiness; `None` if they are off, or on an address of their own.
    pub health_paths: Option<(String, String)>,
    /// Limits on what is received.
    pub receive: ReceiveLimits,
    /// Files that clients may send along; `None` if they may not.
    pub uploads: Option<UploadOptions>,
    /// Whether clients may see plans.
    pub expose: ExposeOptions,
    /// Who gets in.
    pub admission: AdmissionOptions,
    /// Which peers speak for others.
    pub proxies: Proxies,
    /// How the caller of a request is known.
    pub claims: ClaimsSource,
    /// Which pages of other origins may use the gateway.
    pub cors: Cors,
    /// The guard against requests that any page can cause.
    pub csrf: Csrf,
    /// How documents are found by an id.
    pub documents: DocumentOptions,
    /// What of requests is noted and told.
    pub observe: ObserveOptions,
    /// Most bytes that all requests under way make the process hold.
    pub memory_max: usize,
    /// Most operations that wait to be validated and planned because nobody has asked for them before.
    pub waiting_max: usize,
    /// Smallest answer that is encoded; `None` if none is.
    pub encoded_bytes_min: Option<usize>,
    /// Most documents that clients can have registered at a time.
    pub registered_max: usize,
    /// The operation GraphiQL starts with.
    pub graphiql_query: Option<String>,
    /// What GraphiQL says about composition; served at [`crate::router::dev_diagnostics::PATH`] unless `None`.
    pub notice: Option<Notice>,
}

impl GatewayOptions {
    /// The options that a configuration asks for, and the manifests it names. The error is for the operator.
    pub fn load(config: &Config) -> Result<Self, String> {
        Ok(GatewayOptions {
            documents: DocumentOptions::new(config)?,
            ..Self::new(config)
        })
    }

    /// The options that a configuration asks for; reads no files, so there are no trusted documents.
    pub fn new(config: &Config) -> Self {
        let health = &config.health_check;
        GatewayOptions {
            graphql_path: config.http.graphql_endpoint.0.clone(),
            homepage_path: config
                .homepage
                .enabled
                .then(|| config.homepage.path.0.clone()),
            health_paths: (health.enabled && health.listen.is_none())
                .then(|| (health.path.0.clone(), health.readiness_path.0.clone())),
            receive: ReceiveLimits::new(config),
            uploads: UploadOptions::new(config),
            admission: AdmissionOptions::new(config),
            proxies: Proxies::new(config),
            claims: ClaimsSource::new(config),
            cors: Cors::new(config),
            csrf: Csrf::new(config),
            documents: DocumentOptions {
                apq: config.apq.enabled,
                trusted: None,
            },
            encoded_bytes_min: config
                .http
                .compression
                .enabled
                .then_some(config.http.compression.min_bytes.0),
            memory_max: memory::limit(config),
            waiting_max: config.query_planning.max_waiting.get(),
            registered_max: config.apq.router.cache.in_memory.limit.get(),
            expose: ExposeOptions::new(config),
            observe: ObserveOptions::new(config),
            graphiql_query: None,
            notice: None,
        }
    }
}

impl Gateway {
    /// A gateway that serves `state`.
    pub fn new(mut state: SchemaState, options: GatewayOptions) -> Self {
        let (wakeup, memory_max) = (Arc::default(), options.memory_max);
        let heavy = Heavy::default();
        heavy.set_waiting_max(options.waiting_max);
        state.refinement.wake_at(&wakeup);
        Gateway {
            wakeup,
            registered: Registered::new(options.registered_max),
            admission: Admission::default(),
            serving: ArcSwap::from_pointee(Serving {
                state: Arc::new(state),
                options: Arc::new(options),
            }),
            draining: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            started: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |time| time.as_micros() as u64),
            replaced: AtomicU64::new(0),
            telemetry: Arc::default(),
            heavy,
            memory: Arc::new(MemoryBudget::new(memory_max)),
        }
    }
    /// Until the first [`Gateway::replace_all`] there is no schema: GraphQL is answered with 503, and readiness says no.
    /// What the gateway was made with only stands in for one.
    #[must_use]
    pub fn without_schema(self) -> Self {
        Gateway {
            waiting: AtomicBool::new(true),
            ..self
        }
    }
    /// Counts, traces and logs every request.
    #[must_use]
    pub fn observed_by(self, telemetry: Telemetry) -> Self {
        Gateway {
            telemetry: Arc::new(telemetry),
            ..self
        }
    }
    /// Does heavy work there.
    #[must_use]
    pub fn with_heavy(self, heavy: Heavy) -> Self {
        heavy.set_waiting_max(self.options().waiting_max);
        Gateway { heavy, ..self }
    }
    /// What is counted, traced and logged.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }
    /// What workers hand over.
    pub fn heavy(&self) -> &Heavy {
        &self.heavy
    }
    /// What requests make the process hold.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }
    /// Whether new requests are welcome.
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.waiting.load(Ordering::Relaxed)
    }
    /// The schema that new requests are served with.
    pub fn state(&self) -> Arc<SchemaState> {
        Arc::clone(&self.serving.load().state)
    }
    /// Serves new requests with another schema; requests in flight keep theirs.
    pub fn replace(&self, state: SchemaState) {
        self.serve(state, self.options());
    }
    /// Serves new requests with another schema and other options; requests in flight keep theirs.
    pub fn replace_all(&self, state: SchemaState, options: GatewayOptions) {
        self.serve(state, Arc::new(options));
    }
    fn serve(&self, mut state: SchemaState, options: Arc<GatewayOptions>) {
        state.refinement.wake_at(&self.wakeup);
        let state = Arc::new(state);
        self.memory.set_limit(options.memory_max);
        self.heavy.set_waiting_max(options.waiting_max);
        self.serving.store(Arc::new(Serving { state, options }));
        self.replaced.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(false, Ordering::Release);
        self.wakeup.wake();
    }
    pub(crate) fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }
    /// What does not change with the schema.
    pub fn options(&self) -> Arc<GatewayOptions> {
        Arc::clone(&self.serving.load().options)
    }
    /// Reports "not ready" from now on.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Answers one HTTP request of a peer. `worker` belongs to the calling thread. Dropping the future stops all work for the
    /// request, upstream requests included.
    pub async fn handle<B>(
        &self,
        request: Request<B>,
        peer: Peer,
        worker: &WorkerState,
    ) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let (mut parts, body) = request.into_parts();
        self.answer(&mut parts, body, peer, worker).await
    }

    /// The same for a request in parts: what many futures within one another need is kept by the outermost and lent to
    /// the others, because each of them would have room for it, and room is moved with every request.
    pub(crate) async fn answer<B>(
        &self,
        parts: &mut Parts,
        body: B,
        peer: Peer,
        worker: &WorkerState,
    ) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let serving = self.serving.load_full();
        // Before anybody else sees the headers: what names the caller goes no further.
        if serving.options.claims.is_on() {
            let caller = serving.options.claims.take_all(&mut parts.headers, peer);
            parts.extensions.insert(CallerClaims(caller));
        }
        let parts = &*parts;
        // From here on it is the client that counts, not a proxy.
        let proxies = &serving.options.proxies;
        let client = match proxies.is_on() {
            true => proxies.client(&parts.headers, peer),
            false => peer.client(),
        };
        // In a box, because most requests have none.
        let record = self.begin(&serving.options, parts).map(Box::new);
        let lent = Lent {
            worker,
            telemetry: &self.telemetry,
            record: record.as_deref(),
            client,
        };
        let answered = contained(pin!(self.route(&serving, parts, body, lent))).await;
        let mut response = answered.unwrap_or_else(|| {
            failures::panicked(&self.telemetry, lent.record);
            refuse(&internal(), media_of(parts))
        });
        if let Some(record) = &record {
            self.end(&serving.options, record, parts, client, &mut response);
        }
        if let Some(bytes_min) = serving.options.encoded_bytes_min {
            encode(&parts.headers, bytes_min, &mut response, || {
                worker.reserve(&self.memory)
            });
        }
        let cors = &serving.options.cors;
        if cors.is_on() && parts.uri.path().starts_with(&serving.options.graphql_path) {
            let preflight = Cors::is_preflight(parts);
            cors.write(&parts.headers, preflight, response.headers_mut());
        }
        response
    }

    /// Ends the record of a request.
    fn end(
        &self,
        options: &GatewayOptions,
        record: &Record,
        parts: &Parts,
        client: Client,
        response: &mut Response<ResponseBody>,
    ) {
        let (status, bytes) = (response.status().as_u16(), response.body().len() as u64);
        let operations = record.finish(status, bytes);
        let name = options.observe.request_id.as_ref();
        if let (Some(name), Some(id)) = (name, &record.request_id) {
            response.headers_mut().insert(name, id.clone());
        }
        if let Some(log) = &self.telemetry.access {
            let finished = Finished {
                status,
                bytes,
                address: client.address(),
                headers: &parts.headers,
                operations: &operations,
            };
            log.log(record, &finished);
        }
    }

    /// Whether a request is about health.
    pub(crate) fn is_health(&self, parts: &Parts) -> bool {
        let options = self.options();
        let paths = options.health_paths.iter();
        let mut paths = paths.flat_map(|(live, ready)| [live, ready]);
        paths.any(|path| path == parts.uri.path())
            && matches!(parts.method, Method::GET | Method::HEAD)
    }

    /// Notes a request that was refused before anybody looked into it.
    pub(crate) fn log_refused(
        &self,
        parts: &Parts,
        peer: Peer,
        response: &mut Response<ResponseBody>,
        code: &'static str,
    ) {
        let serving = self.serving.load_full();
        let observe = &serving.options.observe;
        if !(self.telemetry.is_on() || observe.is_on()) {
            return;
        }
        let record = self.record(observe, parts);
        failures::turned_away(&self.telemetry, &record, response.status(), code);
        let client = serving.options.proxies.client(&parts.headers, peer);
        self.end(&serving.options, &record, parts, client, response);
    }

    /// The record of a GraphQL request, if anybody wants one.
    fn begin(&self, options: &GatewayOptions, parts: &Parts) -> Option<Record> {
        let observe = &options.observe;
        let wanted = (self.telemetry.is_on() || observe.is_on())
            && parts.uri.path().starts_with(&options.graphql_path)
            && parts.method != Method::OPTIONS;
        wanted.then(|| self.record(observe, parts))
    }
    fn record(&self, observe: &ObserveOptions, parts: &Parts) -> Record {
        let id = observe.id_of(&parts.headers, || self.telemetry.new_id());
        self.telemetry.begin(parts, id, false)
    }

    async fn route<B>(
        &self,
        serving: &Serving,
        parts: &Parts,
        body: B,
        lent: Lent<'_>,
    ) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        match self.destination(&serving.options, parts) {
            Destination::Graphql(id) => self.graphql(serving, parts, body, lent, id).await,
            Destination::Answered(response) => {
                read_refused(&parts.headers, body).await;
                response
            }
            Destination::Refused(error) => {
                read_refused(&parts.headers, body).await;
                self.refuse_elsewhere(&serving.options, parts, lent, &error)
            }
        }
    }

    /// Refuses a request that is no GraphQL. It leads as far as any other: its answer has an id, it is logged and counted.
    fn refuse_elsewhere(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
        lent: Lent<'_>,
        error: &RequestError,
    ) -> Response<ResponseBody> {
        let observe = &options.observe;
        let is_wanted = lent.record.is_none()
            && (self.telemetry.is_on() || observe.is_on())
            && parts.method != Method::OPTIONS;
        let own = is_wanted.then(|| self.record(observe, parts));
        let lent = Lent {
            record: own.as_ref().or(lent.record),
            ..lent
        };
        let mut response = refused(lent, error, media_of(parts));
        if let Some(record) = &own {
            self.end(options, record, parts, lent.client, &mut response);
        }
        response
    }

    /// Who answers a request. Whatever is no GraphQL is answered at once.
    fn destination<'p>(&self, options: &GatewayOptions, parts: &'p Parts) -> Destination<'p> {
        let path = parts.uri.path();
        if options.cors.is_on()
            && path.starts_with(&options.graphql_path)
            && Cors::is_preflight(parts)
        {
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Destination::Answered(response);
        }
        if let Some(id) = document_path(options, path) {
            return Destination::Graphql(Some(id));
        }
        if path == options.graphql_path {
            let browser = parts.method == Method::GET && accept(&parts.headers) == Accept::Html;
            // A page that links back to the endpoint with `?query=` is still a page.
            if !browser || options.homepage_path.is_none() {
                return Destination::Graphql(None);
            }
        }
        match self.page(options, parts) {
            Ok(response) => Destination::Answered(response),
            Err(error) => Destination::Refused(error),
        }
    }

    /// The answer to a request that is no GraphQL.
    fn page(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let path = parts.uri.path();
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(not_found_or_allowed(path, options));
        }
        if asks_for_websocket(&parts.headers) {
            return Err(no_websockets());
        }
        if let Some((live, ready)) = &options.health_paths {
            if path == live {
                let up = !asks_readiness(parts.uri.query()) || self.is_ready();
                return Ok(health(up));
            }
            if path == ready {
                return Ok(health(self.is_ready()));
            }
        }
        if let Some(notice) = options.notice.as_ref().filter(|_| path == notice::PATH) {
            return Ok(notice.answer());
        }
        if let Some(homepage) = &options.homepage_path {
            if path == homepage || path == options.graphql_path {
                return Ok(graphiql::page(
                    &options.graphql_path,
                    options.graphiql_query.as_deref(),
                    options.notice.is_some(),
                ));
            }
            if path == graphiql::STATE {
                return Ok(self.offered(options));
            }
            if let Some(asset) = graphiql::asset(path) {
                return Ok(asset);
            }
        }
        Err(not_found_or_allowed(path, options))
    }

    /// What GraphiQL can show of this gateway.
    fn offered(&self, options: &GatewayOptions) -> Response<ResponseBody> {
        let schema = format!(
            "{:x}-{}",
            self.started,
            self.replaced.load(Ordering::Relaxed)
        );
        graphiql::offered(
            &schema,
            self.state().options.introspection,
            options.expose.header.as_ref().map(HeaderName::as_str),
            options.observe.open_trace(),
        )
    }

    /// The five stops.
    async fn graphql<B>(
        &self,
        serving: &Serving,
        parts: &Parts,
        body: B,
        lent: Lent<'_>,
        document_id: Option<&str>,
    ) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let (media, admitted) = match self.admit(&serving.options, parts, lent) {
            Ok(admitted) => admitted,
            Err(refused) => {
                read_refused(&parts.headers, body).await;
                return *refused;
            }
        };
        let mut answer = self
            .admitted(serving, parts, body, media, lent, document_id)
            .await;
        if let Some(rate) = admitted.rate {
            rate.write(answer.headers_mut());
        }
        answer
    }

    /// Lets a request for GraphQL in, or refuses it.
    fn admit(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
        lent: Lent<'_>,
    ) -> Result<(Media, Admitted), Box<Response<ResponseBody>>> {
        let Some(media) = graphql_media(&parts.headers) else {
            return Err(Box::new(refused(lent, &not_acceptable(parts), Media::Json)));
        };
        if parts.method == Method::GET && asks_for_websocket(&parts.headers) {
            return Err(Box::new(refused(lent, &no_websockets(), media)));
        }
        if self.waiting.load(Ordering::Acquire) {
            let error = RequestError {
                retry_after: Some(WAITING_SECONDS),
                ..RequestError::http(
                    codes::SCHEMA_NOT_LOADED,
                    "the gateway has no schema yet: come back in a moment",
                )
            };
            return Err(Box::new(refused(lent, &error, media)));
        }
        let (asked, headers) = (&options.admission, &parts.headers);
        let claim = |name: &str| CallerClaims::named(parts, name);
        match self.admission.admit(asked, headers, lent.client, claim) {
            Ok(admitted) => {
                self.exceeded(admitted.exceeded.iter());
                Ok((media, admitted))
            }
            Err((error, rate)) => {
                let mut response = refused(lent, &error, media);
                if let Some(rate) = rate {
                    rate.write(response.headers_mut());
                }
                Err(Box::new(response))
            }
        }
    }

    /// Lets an entry of a batch in, or refuses it: each of them costs as much as a request of its own. The first one was let
    /// in with the request.
    fn admit_entry(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
        lent: Lent<'_>,
        at: usize,
    ) -> Result<Option<Admitted>, RequestError> {
        if at == 0 {
            return Ok(None);
        }
        let (asked, headers) = (&options.admission, &parts.headers);
        let claim = |name: &str| CallerClaims::named(parts, name);
        let admitted = self.admission.admit(asked, headers, lent.client, claim);
        // A list is answered with one head, which says nothing of the rate of one entry.
        let admitted = admitted.map_err(|(error, _)| error)?;
        self.exceeded(admitted.exceeded.iter());
        Ok(Some(admitted))
    }

    /// Rates of operations are taken from when it is known which operation it is.
    fn admit_operation(
        &self,
        options: &AdmissionOptions,
        name: Option<&str>,
        context: &RequestContext<'_>,
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

    /// Counts limits that are exceeded and only measured.
    fn exceeded<'c>(&self, codes: impl Iterator<Item = &'c &'static str>) {
        if let Some(metrics) = &self.telemetry.metrics {
            codes.for_each(|code| metrics.exceeded(code));
        }
    }

    /// Notes what of a connection is beyond a limit that is only measured.
    pub(crate) fn note<T: PartialOrd + Debug>(&self, measured: &Measured<T>, found: &T) {
        if measured.is_exceeded_by(found) {
            log(measured.which, found, &measured.limit);
            self.exceeded([&code(measured.which)].into_iter());
        }
    }

    async fn admitted<B>(
        &self,
        serving: &Serving,
        parts: &Parts,
        body: B,
        media: Media,
        lent: Lent<'_>,
        document_id: Option<&str>,
    ) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let from = lent.record.map(Record::now);
        let mut exceeded = Exceeded::new();
        let memory = lent.worker.reserve(&self.memory);
        if memory.grow(REQUEST_BYTES).is_err() {
            read_refused(&parts.headers, body).await;
            return refused(lent, &no_memory(), media);
        }
        let received = self.received(serving, parts, (body, &memory), document_id, &mut exceeded);
        let (received, uploads) = match received.await {
            Ok((received, uploads)) => (Ok(received), uploads),
            Err(error) => (Err(error), None),
        };
        self.exceeded(exceeded.iter());
        let files = |at| uploads.as_deref().map(|uploads| Entry { uploads, at });
        if let (Some(record), Some(from)) = (lent.record, from) {
            record.received(from);
        }
        let answer = match received {
            Ok(Received::One(mut request)) => {
                let files = files(None);
                let sent = memory.used().saturating_sub(REQUEST_BYTES);
                let means = (files, memory, sent);
                let answer = self.four_stops(serving, parts, &mut request, media, lent, means);
                match answer.await {
                    Ok(response) => response,
                    Err(error) => refused(lent, &error, media),
                }
            }
            Ok(Received::Batch(requests)) => {
                let entries = requests.into_iter().enumerate().map(|(at, request)| {
                    let (files, memory) = (files(Some(at)), memory.beside());
                    async move {
                        let answer = async {
                            let mut request = request?;
                            let _admitted = self.admit_entry(&serving.options, parts, lent, at)?;
                            memory.grow(REQUEST_BYTES)?;
                            // All of them share the body.
                            let means = (files, memory, 0);
                            self.four_stops(serving, parts, &mut request, media, lent, means)
                                .await
                        };
                        let response = answer.await;
                        response.unwrap_or_else(|error| refused(lent, &error, media))
                    }
                });
                let entries = join_all(entries).await;
                // What they hold is copied.
                let _ = memory.set(entries.iter().map(|entry| entry.body().len()).sum());
                let mut response = respond_batch(entries, media);
                response.body_mut().hold(memory);
                response
            }
            Err(error) => refused(lent, &error, media),
        };
        if let Some(uploads) = &uploads {
            Box::pin(uploads.linger()).await;
        }
        answer
    }

    /// Stop 1.
    async fn received<B>(
        &self,
        serving: &Serving,
        parts: &Parts,
        (body, memory): (B, &Reservation),
        document_id: Option<&str>,
        exceeded: &mut Exceeded,
    ) -> Result<(Received, Option<Box<Uploads>>), RequestError>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let checked = serving.options.csrf.check(parts);
        if let Err(error) = checked.and_then(|()| CallerClaims::of(parts)) {
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
                    (&self.heavy, memory),
                    exceeded,
                ));
                let (received, uploads) = received.instrument(span).await?;
                Ok((received, Some(Box::new(uploads))))
            }
            None => {
                let means = (&self.heavy, memory);
                let received = receive(parts, body, limits, document_id, means, exceeded);
                Ok((received.instrument(span).await?, None))
            }
        }
    }

    async fn four_stops(
        &self,
        serving: &Serving,
        parts: &Parts,
        request: &mut GraphqlRequest,
        media: Media,
        lent: Lent<'_>,
        (files, memory, sent): (Option<Entry<'_>>, Reservation, usize),
    ) -> Result<Response<ResponseBody>, RequestError> {
        let options = &serving.options.observe;
        let watch = lent.record.map(|record| Watch::new(record, options));
        let context = RequestContext::new(&parts.headers)
            .claimed(CallerClaims::of(parts)?)
            .watched(watch.as_ref())
            .told_to(&self.telemetry)
            .with_uploads(files)
            .counted_in(&memory);
        let means = (lent.worker, &memory, sent);
        let answer = self.stops(serving, request, media, means, &context);
        let mut answer = answer.await;
        drop(context);
        if let Ok(response) = &mut answer {
            response.body_mut().hold(memory);
        }
        if let Some(watch) = watch {
            watch.finish(answer.as_ref().err(), &serving.state.endpoints);
        }
        answer
    }

    async fn stops(
        &self,
        serving: &Serving,
        request: &mut GraphqlRequest,
        media: Media,
        (worker, memory, sent): (&WorkerState, &Reservation, usize),
        context: &RequestContext<'_>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let (state, headers, watch) = (&serving.state, context.headers, context.watch());
        let register = resolve(request, &serving.options.documents, &self.registered)?;
        let from = watch.map(Watch::now);
        let means = Means {
            heavy: &self.heavy,
            share: &worker.share,
            memory,
        };
        let (prepared, turn) = prepare_fairly(state, request, means)
            .instrument(stop_span!(spans::PREPARE))
            .await?;
        let text = std::mem::take(&mut request.query);
        // The body it came in is gone with them.
        request.variables = JsonObject::default();
        request.persisted_query = None;
        let name = prepared.operation.definition.name;
        let name = name
            .as_ref()
            .map(|name| prepared.operation.document.name(*name));
        self.admit_operation(&serving.options.admission, name, context)?;
        self.exceeded(prepared.operation.exceeded.iter().chain(&prepared.exceeded));
        if let Some(files) = context.uploads() {
            files.check(&state.supergraph.api, &prepared)?;
        }
        let from = watch.zip(from).map(|(watch, from)| {
            let definition = &prepared.operation.definition;
            let name = definition.name.as_ref();
            let name = name.map(|name| prepared.operation.document.name(*name));
            watch.prepared(definition.kind.as_str(), name);
            watch.stop(Stop::Prepare, from)
        });
        if let Some(hash) = register {
            self.registered.insert(hash, &text);
        }
        drop(text);
        memory.shrink(sent);
        let span = stop_span!(spans::PLAN, plan.source = tracing::field::Empty);
        let found = plan_fairly(state, &prepared.operation, headers, means, turn)
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
        // What is begun is finished.
        memory.run();
        if let Some(files) = context.uploads() {
            files.run();
        }
        let output = execute(state, prepared, &planned, context, worker, false)
            .instrument(stop_span!(spans::EXECUTE))
            .await;
        self.exceeded(context.exceeded().iter());
        let output = output?;
        let from = watch.zip(from).map(|(watch, from)| {
            watch.executed(output.errors_total);
            watch.stop(Stop::Execute, from)
        });
        let response = stop_span!(spans::RESPOND).in_scope(|| {
            let mut extensions = Vec::new();
            if exposed == Exposed::WithResponse {
                extensions.push(("apolloQueryPlan", plan_extension(&planned)));
            }
            if let Some(watch) = watch.filter(|_| serving.options.observe.traces(headers)) {
                extensions.push(("ogiveTrace", watch.timeline(&state.endpoints)));
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
        });
        if let (Some(watch), Some(from)) = (watch, from) {
            watch.stop(Stop::Respond, from);
        }
        Ok(response)
    }
}

/// Who answers a request.
enum Destination<'p> {
    /// The five stops; with the id of a document, if the path has one.
    Graphql(Option<&'p str>),
    /// Nobody any more.
    Answered(Response<ResponseBody>),
    /// Nobody at all.
    Refused(RequestError),
}

fn refused(lent: Lent<'_>, error: &RequestError, media: Media) -> Response<ResponseBody> {
    let _span = stop_span!(spans::RESPOND).entered();
    failures::refused(lent.telemetry, lent.record, error);
    refuse(error, media)
}

/// The id in the path behind the GraphQL endpoint, where trusted documents are served.
fn document_path<'p>(options: &GatewayOptions, path: &'p str) -> Option<&'p str> {
    options.documents.trusted.as_ref()?;
    let id = path.strip_prefix(&*options.graphql_path)?;
    let id = match options.graphql_path.ends_with('/') {
        true => id,
        false => id.strip_prefix('/')?,
    };
    (!id.is_empty() && !id.contains('/')).then_some(id)
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

fn not_found_or_allowed(path: &str, options: &GatewayOptions) -> RequestError {
    let known = options
        .health_paths
        .iter()
        .flat_map(|(live, ready)| [live, ready])
        .chain(&options.homepage_path)
        .any(|p| p == path);
    if known {
        return RequestError {
            allow: Some("GET, HEAD"),
            ..RequestError::http(
                codes::METHOD_NOT_ALLOWED,
                format!(
                    "use GET here; the GraphQL endpoint is {}, and takes POST",
                    options.graphql_path
                ),
            )
        };
    }
    RequestError::http(
        codes::NOT_FOUND,
        format!(
            "nothing is served here; the GraphQL endpoint is {}",
            options.graphql_path
        ),
    )
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
            "answers in parts are not served, and neither are subscriptions: accept `application/json`, too, and \
             `@defer` is answered in one response"
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

fn no_websockets() -> RequestError {
    RequestError::http(
        codes::SUBSCRIPTIONS_NOT_SUPPORTED,
        "there are no WebSockets here, because subscriptions are not served: send queries and mutations by POST",
    )
}

/// Whether liveness is asked for readiness instead, as Apollo Router is: `/health?ready`.
pub(crate) fn asks_readiness(query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    pairs.any(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        key.eq_ignore_ascii_case("ready")
    })
}

pub(crate) fn health(up: bool) -> Response<ResponseBody> {
    let (status, text) = if up {
        (StatusCode::OK, r#"{"status":"UP"}"#)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"DOWN"}"#)
    };
    let mut response = Response::new(ResponseBody::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
