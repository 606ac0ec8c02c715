//! Everything that can be set, with its default. The doc comments are the reference.

use std::{collections::BTreeMap, num::NonZeroUsize};

use ogive_base::PeerRange;
use ogive_limits::WarnOnly;

use crate::{
    AuthenticationOptions, AuthorizationDirectives, ByteSize, ClientAddressHeader,
    CoprocessorOptions, DemandControlOptions, Duration, EventsOptions, FileMode, HeaderName,
    HeaderRule, IncrementalFormat, IntrospectionWord, LabelSelector, LabelShare, Listen, LogFormat,
    OperationWord, Path, Pattern, Percent, PersistedQueriesOptions, PlanProfile, PolicyOptions,
    ResponseHeaderRule, ReuseWord, RevocationOptions, StorageWord, StoreSection,
    SubscriptionOptions, TelemetryOptions, Url, UsageOptions, WhenMissing, decode::section,
    scalars::nonzero, tls::TlsOptions, traffic::TrafficShapingOptions,
};

section! {
    /// The whole of `ogive.yaml`. Every key may be left out.
    pub struct Config {
        /// Address to serve on, `HOST:PORT`, or a unix socket, `unix:///run/ogive.sock`; port 0 picks a free one.
        /// `--listen` wins over it.
        pub listen: Listen = Listen("127.0.0.1:4000".into()),
        /// Who may connect to `listen` if it is a unix socket: the mode of its file, whatever the process's umask is. Writing
        /// is connecting: `0660` adds the group of the process, `0666` everybody.
        pub listen_mode: FileMode = FileMode(0o600),
        /// The supergraph.
        pub supergraph: SupergraphOptions = SupergraphOptions::default(),
        /// Serving another configuration or supergraph without a restart.
        pub hot_reload: HotReloadOptions = HotReloadOptions::default(),
        /// The HTTP server.
        pub http: HttpOptions = HttpOptions::default(),
        /// TLS towards clients and subgraphs. Every file may also be given as PEM text.
        pub tls: TlsOptions = TlsOptions::default(),
        /// GraphiQL for people with a browser.
        pub homepage: HomepageOptions = HomepageOptions::default(),
        /// Endpoints for load balancers and orchestrators.
        pub health_check: HealthCheckOptions = HealthCheckOptions::default(),
        /// Which pages of other origins may use the gateway from a browser.
        pub cors: CorsOptions = CorsOptions::default(),
        /// Refusal of requests that any web page could make a browser send.
        pub csrf: CsrfOptions = CsrfOptions::default(),
        /// Several operations in one HTTP request.
        pub batching: BatchingOptions = BatchingOptions::default(),
        /// Files that clients send along, after the GraphQL multipart request specification.
        pub file_uploads: FileUploadOptions = FileUploadOptions::default(),
        /// Automatic persisted queries.
        pub apq: ApqOptions = ApqOptions::default(),
        /// Trusted documents: operations known by their id.
        pub persisted_queries: PersistedQueriesOptions = PersistedQueriesOptions::default(),
        /// What a client may ask of the gateway.
        pub limits: LimitOptions = LimitOptions::default(),
        /// Headers that travel to subgraphs, and from them to clients.
        pub headers: HeaderOptions = HeaderOptions::default(),
        /// URLs to use instead of those in the supergraph, by subgraph name.
        pub override_subgraph_url: BTreeMap<String, Url> = BTreeMap::new(),
        /// Other URLs for requests of which something holds, by subgraph name; the first rule that fits counts.
        pub override_subgraph_urls: BTreeMap<String, Vec<crate::SubgraphUrlRule>> = BTreeMap::new(),
        /// Timeouts and connections.
        pub traffic_shaping: TrafficShapingOptions = TrafficShapingOptions::default(),
        /// Planning of operations.
        pub query_planning: QueryPlanningOptions = QueryPlanningOptions::default(),
        /// Execution of plans.
        pub execution: ExecutionOptions = ExecutionOptions::default(),
        /// Who is who.
        pub authentication: AuthenticationOptions = AuthenticationOptions::default(),
        /// Who may see what.
        pub authorization: AuthorizationOptions = AuthorizationOptions::default(),
        /// Subscriptions.
        pub subscription: SubscriptionOptions = SubscriptionOptions::default(),
        /// Message brokers that event subgraphs are bound to.
        pub events: EventsOptions = EventsOptions::default(),
        /// What operations may cost.
        pub demand_control: DemandControlOptions = DemandControlOptions::default(),
        /// Which clients ask for what.
        pub usage: UsageOptions = UsageOptions::default(),
        /// Answers and entities of subgraphs, kept across requests.
        pub response_cache: crate::ResponseCacheOptions = crate::ResponseCacheOptions::default(),
        /// What several processes share.
        pub store: StoreSection = StoreSection::default(),
        /// A service that is told of requests, and may change or end them.
        pub coprocessor: CoprocessorOptions = CoprocessorOptions::default(),
        /// Scripts at the stages of requests.
        pub rhai: crate::RhaiOptions = crate::RhaiOptions::default(),
        /// WebAssembly components at the stages of requests; those that come first are called first on the way in, and last on
        /// the way out.
        pub plugins: Vec<crate::PluginSection> = Vec::new(),
        /// What is answered by path, method and header without asking anybody; the first that fits counts.
        pub static_responses: Vec<crate::StaticResponseOptions> = Vec::new(),
        /// Progressive overrides: for which requests a field is taken from its new subgraph.
        pub override_labels: OverrideLabelOptions = OverrideLabelOptions::default(),
        /// Whether clients see the messages of subgraph errors.
        pub include_subgraph_errors: IncludeSubgraphErrorsOptions = IncludeSubgraphErrorsOptions::default(),
        /// What clients are told of errors in place of what happened; the first rule that fits counts.
        pub error_rules: Vec<crate::ErrorRule> = Vec::new(),
        /// What is logged, and how.
        pub log: LogOptions = LogOptions::default(),
        /// Metrics, traces, access log.
        pub telemetry: TelemetryOptions = TelemetryOptions::default(),
    }

    /// `supergraph`
    pub struct SupergraphOptions {
        /// File with the supergraph SDL; relative to the working directory. `--supergraph` wins over it.
        pub path: Option<String> = None,
        /// List of subgraphs in the format of rover's `supergraph.yaml`, to compose and follow instead of reading a
        /// supergraph; relative to the working directory. `--subgraphs` wins over it.
        pub subgraphs: Option<String> = None,
        /// URL to fetch the supergraph from, again and again, instead of reading a file. `--supergraph` and `--subgraphs`
        /// win over it.
        pub url: Option<Url> = None,
        /// How often; a URL that fails is asked less and less often, every five minutes at the least.
        pub poll_interval: Duration = Duration::seconds(10),
        /// How long the URL may take to answer.
        pub request_timeout: Duration = Duration::seconds(30),
        /// Headers to send along, such as a key.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Whether `url` may be an `http://` one of another machine although a key is sent to it, as a header or in the URL
        /// itself. Whoever is on the way can read the key and choose where everything is asked. Without a key there is a
        /// warning only.
        pub allow_plain_http: bool = false,
        /// File that the last good supergraph of `url` is kept in, and taken from if the URL does not answer at the
        /// start; default `.ogive/supergraph.graphql`.
        pub last_known_good: Option<String> = None,
        /// What becomes of a start when the URL gives no supergraph and none is kept, or when the file is not there:
        /// `fail` ends the process, `wait` answers GraphQL with 503 and readiness with 503 until there is one. A file is
        /// looked for again on SIGHUP and with `hot_reload`.
        pub when_missing: WhenMissing = WhenMissing::Fail,
        /// Whether `__schema` and `__type` are answered. `ogive demo` answers them.
        pub introspection: bool = false,
        /// Whether what is under `@defer` or `@stream` is answered in parts to clients that accept `multipart/mixed`. All others
        /// get one answer.
        pub defer_support: bool = true,
        /// The form of these parts for clients that accept `multipart/mixed` and name none: `v0.1` is the one of 2022
        /// (`deferSpec=20220824`), `v0.2` the current one (`incrementalSpec=v0.2`).
        pub incremental_format_default: IncrementalFormat = IncrementalFormat::V01,
        /// Items of a list under `@stream` whose look-ups are sent together, behind those that are answered at first; of what
        /// follows twice as many each time, and all that are left with the fifth request.
        pub stream_window: NonZeroUsize = nonzero(50),
        /// Bytes of items of lists under `@stream` that leave together; a larger item leaves alone. Items that are ready never
        /// wait for others.
        pub stream_chunk_size: ByteSize = ByteSize(64 << 10),
    }

    /// `hot_reload`
    pub struct HotReloadOptions {
        /// Whether the files of configuration and supergraph are watched. SIGHUP reloads them whatever is set here.
        pub enabled: bool = false,
        /// How often they are looked at. A change counts once two looks agree, so that a file that is being written is left
        /// alone.
        pub interval: Duration = Duration::seconds(1),
    }

    /// `http`
    pub struct HttpOptions {
        /// Path of the GraphQL endpoint.
        pub graphql_endpoint: Path = Path("/graphql".into()),
        /// Worker threads, each with its own runtime and its own connections to subgraphs; default: one per core.
        pub workers: Option<NonZeroUsize> = None,
        /// Most client connections at a time. A newcomer gets the place of one that has been idle for a second or more;
        /// if all are busy, it is answered with 503, and about health (`health_check`) as ever.
        pub connections_max: NonZeroUsize = nonzero(10_000),
        /// Most connections of one address at a time, an IPv6 network of 64 bits counting as one. A newcomer beyond gets
        /// the place of another connection of that address that has been idle for a second or more; if all are busy, it
        /// is answered with 503. Default: a quarter of `connections_max`, but at least 100. Addresses behind which there
        /// are many clients belong into `trusted_proxies`, or need a higher limit, `connections_max` at the most.
        pub connections_per_client_max: Option<NonZeroUsize> = None,
        /// Load balancers and proxies, which speak for many clients: addresses, ranges such as `10.0.0.0/8`, or `unix`
        /// for connections to a unix socket. The limit above does not hold for them, and what they say in
        /// `client_address_header` is believed, by the rate limit with `key: ip` and by the access log.
        pub trusted_proxies: Vec<PeerRange> = Vec::new(),
        /// The header in which they name the client, `x-forwarded-for` or `forwarded` (RFC 7239). It is read from its end:
        /// the client is the first address that is no trusted proxy. The other header is not looked at.
        pub client_address_header: ClientAddressHeader = ClientAddressHeader::XForwardedFor,
        /// How long a client may take to send the headers of a request, the first one's TLS handshake included; also how
        /// long an idle connection is kept.
        pub header_read_timeout: Duration = Duration::seconds(60),
        /// How long a client may take to send the body of a request.
        pub body_read_timeout: Duration = Duration::seconds(30),
        /// How long a client may take nothing of an answer before its connection is closed; over HTTP/2 that holds for
        /// each answer.
        pub write_timeout: Duration = Duration::seconds(60),
        /// HTTP/2: agreed on during the TLS handshake, or spoken from the first byte on without TLS.
        pub http2: Http2Options = Http2Options::default(),
        /// Encoding of answers.
        pub compression: CompressionOptions = CompressionOptions::default(),
        /// How long requests in flight may take to finish after SIGTERM or SIGINT; then they are cut off. Together with
        /// `drain_delay` and five seconds for the last metrics and spans it should be shorter than what the supervisor
        /// waits, which is 30 s in Kubernetes.
        pub connection_shutdown_timeout: Duration = Duration::seconds(10),
        /// How long new connections are welcome after SIGTERM or SIGINT, while readiness says 503: time for load
        /// balancers to notice.
        pub drain_delay: Duration = Duration::seconds(0),
        /// How long after that an idle connection may still bring a request; its answer says
        /// `connection: close`.
        pub drain_idle_timeout: Duration = Duration::milliseconds(500),
    }

    /// `http.http2`
    pub struct Http2Options {
        /// Whether HTTP/2 is served.
        pub enabled: bool = true,
        /// Most requests at a time on one connection.
        pub max_concurrent_streams: u32 = 100,
        /// Most requests that a client may give up on one connection while they are more than half of all; then the
        /// connection is closed.
        pub max_reset_streams: u32 = 200,
    }

    /// `http.compression`
    pub struct CompressionOptions {
        /// Whether answers are sent as `zstd`, `br` or `gzip` to clients that read it. Requests may come encoded
        /// whatever is set here.
        pub enabled: bool = true,
        /// Smallest answer that is worth it.
        pub min_bytes: ByteSize = ByteSize(4 << 10),
    }

    /// `homepage`
    pub struct HomepageOptions {
        /// Whether GraphiQL is served, at `path` and to browsers that open the GraphQL endpoint.
        pub enabled: bool = true,
        /// Where.
        pub path: Path = Path("/".into()),
    }

    /// `health_check`
    pub struct HealthCheckOptions {
        /// Whether the two endpoints exist.
        pub enabled: bool = true,
        /// Address of their own, `HOST:PORT`; default: the one GraphQL is served on.
        pub listen: Option<Listen> = None,
        /// Answers 200 while the process serves; with `?ready` what `readiness_path` answers.
        pub path: Path = Path("/health".into()),
        /// Answers 200 while new requests are welcome, 503 while draining.
        pub readiness_path: Path = Path("/readiness".into()),
    }

    /// `cors`
    pub struct CorsOptions {
        /// Every origin, without credentials, unless a policy is about it.
        pub allow_any_origin: bool = false,
        /// Whether pages may send cookies and other credentials, where a policy does not say.
        pub allow_credentials: bool = false,
        /// Headers that pages may send; none listed: whatever they ask for. Where a policy does not say.
        pub allow_headers: Vec<String> = Vec::new(),
        /// Headers of answers that pages may read, where a policy does not say.
        pub expose_headers: Vec<String> = Vec::new(),
        /// Methods that pages may use.
        pub methods: Vec<String> = vec!["GET".into(), "POST".into(), "OPTIONS".into()],
        /// How long browsers may remember what they are allowed, where a policy does not say.
        pub max_age: Duration = Duration::seconds(7_200),
        /// What holds for which origins; the first that fits counts.
        pub policies: Vec<CorsPolicy> = Vec::new(),
    }

    /// `cors.policies[]`
    pub struct CorsPolicy {
        /// Origins as browsers send them, such as `https://app.example.com`; no path, no slash at the end.
        pub origins: Vec<String> = Vec::new(),
        /// Regular expressions that match the whole origin.
        pub match_origins: Vec<Pattern> = Vec::new(),
        /// Instead of `cors.allow_credentials`.
        pub allow_credentials: Option<bool> = None,
        /// Instead of `cors.allow_headers`.
        pub allow_headers: Option<Vec<String>> = None,
        /// Instead of `cors.expose_headers`.
        pub expose_headers: Option<Vec<String>> = None,
        /// Instead of `cors.max_age`.
        pub max_age: Option<Duration> = None,
    }

    /// `csrf`
    pub struct CsrfOptions {
        /// Whether a request that a browser sends without asking first (GET, or a body of a form's media type) needs
        /// one of `required_headers`.
        pub enabled: bool = true,
        /// Any one of them is enough: a page of another origin cannot send them without the gateway's consent. At least one;
        /// headers that browsers send without asking, such as `accept`, are refused.
        pub required_headers: Vec<String> = vec!["x-apollo-operation-name".into(), "apollo-require-preflight".into()],
    }

    /// `batching`
    pub struct BatchingOptions {
        /// Whether a list of requests is answered with a list of responses.
        pub enabled: bool = false,
        /// Most requests in one list.
        pub maximum_size: NonZeroUsize = nonzero(10),
    }

    /// `file_uploads`
    pub struct FileUploadOptions {
        /// Whether `multipart/form-data` bodies are read, and their files passed on to the subgraphs that want them while
        /// they arrive. Pages need one of `csrf.required_headers` for it.
        pub enabled: bool = false,
        /// Most files of one request; more are answered with 413.
        pub max_files: NonZeroUsize = nonzero(10),
        /// Largest file, in bytes.
        pub max_file_size: ByteSize = ByteSize(50 << 20),
        /// Largest body, all files together, in bytes; `limits.http_max_request_bytes` holds for the fields before the
        /// files.
        pub max_request_size: ByteSize = ByteSize(200 << 20),
        /// Most bytes of files that one request has the gateway keep: a file is kept if one behind it is wanted first,
        /// or if several requests to subgraphs want it.
        pub buffer_size: ByteSize = ByteSize(1 << 20),
        /// How long a request with files may take altogether, instead of the timeouts of `traffic_shaping`. A pause of
        /// the client may be as long as `http.body_read_timeout`.
        pub timeout: Duration = Duration::seconds(300),
    }

    /// `apq`
    pub struct ApqOptions {
        /// Whether a client may send the SHA-256 of a document it has sent before.
        pub enabled: bool = true,
        /// Documents clients have sent.
        pub router: ApqRouterOptions = ApqRouterOptions::default(),
    }

    /// `apq.router`
    pub struct ApqRouterOptions {
        /// Where they are kept.
        pub cache: ApqCacheOptions = ApqCacheOptions::default(),
    }

    /// `apq.router.cache`
    pub struct ApqCacheOptions {
        /// In this process.
        pub in_memory: ApqMemoryOptions = ApqMemoryOptions::default(),
        /// Whether a document that one process was told is known to all (`redis`, by way of `store.redis`), or to that one only
        /// (`local`, the default). What lies there is looked up once by each process, and taken only if its hash is right.
        pub storage: StorageWord = StorageWord::Local,
        /// How long Redis keeps a document after a client has registered it; default one day.
        pub ttl: Duration = Duration::seconds(86_400),
        /// Largest document that is written to Redis; a larger one is kept by this process only.
        pub max_document_size: ByteSize = ByteSize(64 << 10),
        /// Most bytes of documents that this process has in Redis at a time, each counting as 1 KiB at least; further ones are
        /// kept by this process only, and logged once. One client has `limits.client_share` of them at most.
        pub max_shared_size: ByteSize = ByteSize(64 << 20),
    }

    /// `apq.router.cache.in_memory`
    pub struct ApqMemoryOptions {
        /// Most documents kept; one of more than 16 KiB counts as several.
        pub limit: NonZeroUsize = nonzero(512),
    }

    /// `limits`
    pub struct LimitOptions {
        /// Most nested fields of an operation, fragments expanded; what is below `__schema` and `__type` does not count unless
        /// `count_introspection` is on. `null` is no limit.
        pub max_depth: Option<u32> = Some(50),
        /// Most fields of an operation, fragments expanded, each response key of a place counted once.
        pub max_height: Option<u32> = None,
        /// Most aliases of an operation, fragments expanded. `null` is no limit.
        pub max_aliases: Option<u32> = Some(300),
        /// Most fields of the root, fragments expanded. `null` is no limit.
        pub max_root_fields: Option<u32> = Some(200),
        /// Most directives of a document, as written.
        pub max_directives: Option<u32> = Some(500),
        /// Largest variables of a request, in bytes as JSON without white space; default: as large as the body may be.
        pub max_variables_size: Option<ByteSize> = None,
        /// Which limits only log and count: `true` for the six above, or a list of any of them and of `parser_max_tokens`,
        /// `http_max_request_bytes`, `http1_max_request_headers`, `http1_max_request_buf_size`, `max_request_memory`,
        /// `http.connections_max`, `http.connections_per_client_max`, `http.header_read_timeout`,
        /// `http.body_read_timeout`, `batching.maximum_size`, `traffic_shaping.router.concurrency_limit` and
        /// `traffic_shaping.response_max_bytes`. Those that protect the process itself still hold at ten times the limit, and
        /// never below their default. `ogive.limits.exceeded` counts what is let through. Rates have `measure_only`;
        /// `parser_max_recursion` always holds, because nobody writes what it refuses: `max_depth` can be measured.
        pub warn_only: WarnOnly = WarnOnly::default(),
        /// Operations that are refused by what they are, the first rule that is about one.
        pub operation_rules: Vec<crate::OperationRuleOptions> = Vec::new(),
        /// Whether fields below `__schema` and `__type` count against `max_depth`. They are nested more deeply than most
        /// operations, no subgraph is asked for them, and they have limits of their own.
        pub count_introspection: bool = false,
        /// Most bytes of subgraphs' answers that one operation has the gateway hold, all of its answers together; what does
        /// not fit is null, with the error `REQUEST_MEMORY_LIMIT`. What the request itself holds counts, too. Default: 256 MiB, or the largest
        /// `response_max_bytes` if that is more. Files that are kept (`file_uploads.buffer_size`) count, too.
        pub max_request_memory: Option<ByteSize> = None,
        /// Most bytes that all requests under way make the process hold: bodies that arrive, what they are decoded to, variables,
        /// documents and plans that are made, answers of subgraphs, responses that are sent. From three quarters of it on new
        /// requests are answered with 503, `GATEWAY_MEMORY_LIMIT` and `retry-after`, in the last thirty-second small ones,
        /// too; those that run may use the rest.
        /// Default: half of what the process may have (the limit of its control group or of its address space, or the
        /// machine's memory), at least 32 MiB.
        pub max_memory: Option<ByteSize> = None,
        /// How much one client may have of what all clients share, but at least 100 places of each table: of `max_memory` for
        /// bodies and messages that have not come to their end, of subscriptions, streams and WebSockets, of the documents in
        /// Redis, and of the names that metrics tell apart. A client is an address, an IPv6 network of 64 bits counting as
        /// one; behind `http.trusted_proxies` that of the client they name. Raise it where one address speaks for most clients.
        pub client_share: Percent = Percent::of(50),
        /// Largest response to a client, in bytes; instead of a larger one there is no data, and the error
        /// `EXECUTION_LIMIT_EXCEEDED`. Responses can be larger than all answers of subgraphs together, because many objects
        /// may have a value in common. It is looked at now and then, so a response may be some more. Default: 256 MiB, or
        /// `max_request_memory` if that is more.
        pub max_response_size: Option<ByteSize> = None,
        /// Largest request body, in bytes; a larger one is answered with 413.
        pub http_max_request_bytes: ByteSize = ByteSize(2_000_000),
        /// Most headers of a request; more are answered with 431.
        pub http1_max_request_headers: NonZeroUsize = nonzero(100),
        /// Largest head of a request (request line and headers), in bytes, at least 8 KiB; a larger one is answered
        /// with 431.
        pub http1_max_request_buf_size: ByteSize = ByteSize(64 << 10),
        /// Most lexical tokens of a document.
        pub parser_max_tokens: u32 = 15_000,
        /// Deepest nesting of selection sets, values and types in a document.
        pub parser_max_recursion: u32 = 200,
        /// Most errors in one response to an invalid document.
        pub errors_max: u32 = 100,
    }

    /// `headers`
    pub struct HeaderOptions {
        /// Rules for every subgraph.
        pub all: HeaderSection = HeaderSection::default(),
        /// Further rules by subgraph name, applied after those of `all`.
        pub subgraphs: BTreeMap<String, HeaderSection> = BTreeMap::new(),
    }

    /// `headers.all` and `headers.subgraphs.<name>`
    pub struct HeaderSection {
        /// Rules for requests to the subgraph, in order. Without rules no client header travels.
        pub request: Vec<HeaderRule> = Vec::new(),
        /// Rules for the subgraph's answers, in order. Without rules no header of a subgraph reaches a client.
        pub response: Vec<ResponseHeaderRule> = Vec::new(),
    }

    /// `query_planning`
    pub struct QueryPlanningOptions {
        /// What a plan makes small first: `critical-path` is the fewest waves of requests and so the shortest answer
        /// time, `fewest-requests` the fewest requests, `least-load` the least work for subgraphs, as estimated
        /// from the lengths of lists (`@listSize`).
        pub profile: PlanProfile = PlanProfile::CriticalPath,
        /// Plans of operations that were seen before.
        pub cache: PlanCacheOptions = PlanCacheOptions::default(),
        /// Most operations that wait to be validated and planned because nobody has asked for them before; more are answered
        /// with 503, `PLANNING_QUEUE_FULL` and `retry-after`. Half as many as there are cores, at least one, are worked on at a
        /// time, so that operations that are known are answered beside them.
        pub max_waiting: NonZeroUsize = nonzero(500),
        /// Better plans for operations whose first plan might not be the best.
        pub refinement: RefinementOptions = RefinementOptions::default(),
        /// Learning from running requests which subgraphs are slow.
        pub feedback: FeedbackOptions = FeedbackOptions::default(),
        /// Showing plans to clients.
        pub expose: ExposePlanOptions = ExposePlanOptions::default(),
    }

    /// `execution`
    pub struct ExecutionOptions {
        /// What need not be asked again within one query: `entities` asks a subgraph for the same fields of the same
        /// entity once, wherever it appears; `all`, the default, does not ask either for leaves of the entity that the
        /// subgraph has answered in any other way, as part of a list for example; `off` asks again. Mutations ask for
        /// everything.
        pub reuse: ReuseWord = ReuseWord::All,
        /// By subgraph name.
        pub subgraphs: BTreeMap<String, SubgraphExecution> = BTreeMap::new(),
    }

    /// `execution.subgraphs.<name>`
    pub struct SubgraphExecution {
        /// What the subgraph need not be asked again, if that is less than `execution.reuse` allows: for a subgraph
        /// whose answer for a field of an entity depends on the way to it.
        pub reuse: Option<ReuseWord> = None,
    }

    /// `query_planning.cache`
    pub struct PlanCacheOptions {
        /// Whether plans are kept. Off: every request is parsed, validated and planned anew.
        pub enabled: bool = true,
        /// Most operations kept, and most plans.
        pub size: NonZeroUsize = nonzero(1_000),
        /// Most memory for the operations kept, and for the plans.
        pub memory: ByteSize = ByteSize(64 << 20),
    }

    /// `query_planning.refinement`
    pub struct RefinementOptions {
        /// Whether plans that are not known to be the best are planned again with more time, on a thread of the lowest
        /// priority, and replaced for the requests that come after. Answers stay the same. Needs the cache.
        pub enabled: bool = true,
        /// Most plans that wait. One that finds no place stays as it is until another document needs it.
        pub queue_size: NonZeroUsize = nonzero(64),
        /// What may be spent on one plan, in steps of the planner; a million are about 6 ms of one core.
        pub fuel: NonZeroUsize = nonzero(20_000_000),
    }

    /// `query_planning.feedback`
    pub struct FeedbackOptions {
        /// Whether the time that subgraphs take decides between those that would do equally well. Plans that are kept
        /// are made anew in the background when a subgraph has become much slower or faster, which needs `refinement`.
        pub enabled: bool = false,
        /// How many answers of subgraphs there are between two looks at their times.
        pub answers: NonZeroUsize = nonzero(1_000),
    }

    /// `query_planning.expose`
    pub struct ExposePlanOptions {
        /// Whether a client that sends the header below gets the plan in `extensions.apolloQueryPlan` of the response.
        /// Plans show the names of subgraphs and what they are asked.
        pub enabled: bool = false,
        /// The header: `true` asks for the plan, `dry-run` for the plan without executing it.
        pub header: HeaderName = HeaderName("apollo-expose-query-plan".into()),
    }

    /// `authorization`
    pub struct AuthorizationOptions {
        /// What becomes of `@authenticated`, `@requiresScopes` and `@policy` in the supergraph: `refuse` does not serve a
        /// supergraph that has them; `enforce` shows what is restricted to those only who may see it, for all others
        /// it is null with the error `UNAUTHORIZED_FIELD_OR_TYPE` and no subgraph is asked for it; `ignore` serves it
        /// as if nothing was restricted, for graphs whose subgraphs check by themselves. Apollo Router's form is read, too:
        /// `{ enabled: true, reject_unauthorized: false, dry_run: false }`.
        pub directives: AuthorizationDirectives = AuthorizationDirectives::Refuse,
        /// With `enforce`: refuse an operation as a whole if it asks for anything its caller may not see.
        pub reject_unauthorized: bool = false,
        /// With `enforce`: only log what would be kept from whom, and show it. For trying a policy out, never for
        /// protecting anything.
        pub dry_run: bool = false,
        /// Whether every operation needs a caller that is known; others are refused with `UNAUTHENTICATED`. GraphiQL and health
        /// are for everybody.
        pub require_authentication: bool = false,
        /// What needs one if not all operations do: `query`, `mutation`, `subscription` (which `query` and `mutation` ask for,
        /// too), `introspection` (operations that ask for `__schema` or `__type`), and `graphiql`, the page, which
        /// `require_authentication` leaves to everybody.
        pub require_authentication_for: Vec<OperationWord> = Vec::new(),
        /// A header from which the gateway learns who a caller is; tokens are below `authentication`. Without either nobody is
        /// authenticated.
        pub claims: ClaimsOptions = ClaimsOptions::default(),
        /// With `enforce`: what introspection shows: `all`, everything to everybody; or `authorized`, to each caller the types and
        /// fields that this caller may see. Then messages suggest no names, either.
        pub introspection: IntrospectionWord = IntrospectionWord::All,
        /// With `enforce`: who decides what `@policy` asks for.
        pub policies: PolicyOptions = PolicyOptions::default(),
        /// With `enforce`: fields that are null for all callers but some, whatever the supergraph says of them.
        pub redact: Vec<crate::RedactionRule> = Vec::new(),
        /// What becomes of what goes on by a credential that is withdrawn.
        pub revocation: RevocationOptions = RevocationOptions::default(),
    }

    /// `authorization.claims`
    pub struct ClaimsOptions {
        /// A header in which a proxy in front of the gateway says what it knows of the caller, as JSON:
        /// `{"authenticated": true, "scopes": ["user:read"], "policies": ["paid"]}`. Whoever can send this header past
        /// the proxy can be anybody: the proxy has to remove or replace it in every request from outside. It never
        /// travels on to subgraphs.
        pub header: Option<HeaderName> = None,
        /// Peers whose header is believed: addresses, ranges such as `10.0.0.0/8`, or `unix` for connections to a unix
        /// socket. From all others the header is dropped. Empty: nobody is believed.
        pub trusted: Vec<PeerRange> = Vec::new(),
    }

    /// `override_labels`
    pub struct OverrideLabelOptions {
        /// By label of `@override(label:)`: `true`, `false`, or the part of requests for which it is on, such as `25%`.
        /// A label that is not named is off, except for `percent(25)`, which says itself what it is.
        pub labels: BTreeMap<String, LabelShare> = BTreeMap::new(),
        /// Header in which a client names labels that are on for its request, separated by commas; default none.
        pub header: Option<HeaderName> = None,
        /// What decides about parts of requests, so that equal values always get the same: the name of a header, or a selector such
        /// as `{ jwt_claim: sub }`. Without it, or in a request that has no such value, chance decides.
        pub sticky_by: Option<LabelSelector> = None,
    }

    /// `include_subgraph_errors`
    pub struct IncludeSubgraphErrorsOptions {
        /// Whether clients see message and code of errors that subgraphs report. Off: they learn where an error was, and
        /// no more.
        pub all: bool = false,
        /// By subgraph name; wins over `all`.
        pub subgraphs: BTreeMap<String, bool> = BTreeMap::new(),
        /// Members of `extensions` that clients see of these errors, besides `code`; `*` stands for all of them.
        pub extensions: Vec<String> = Vec::new(),
    }

    /// `log`
    pub struct LogOptions {
        /// Which events: a level (`error`, `warn`, `info`, `debug`, `trace`) or directives such as
        /// `info,ogive_transport=debug`. `--log` wins over it.
        pub filter: String = "info".into(),
        /// `text` for people, `json` for machines.
        pub format: LogFormat = LogFormat::Text,
    }
}

impl Config {
    /// The header rules of one subgraph, in order.
    pub fn request_header_rules<'a>(
        &'a self,
        subgraph: &str,
    ) -> impl Iterator<Item = &'a HeaderRule> {
        let own = self.headers.subgraphs.get(subgraph);
        self.headers
            .all
            .request
            .iter()
            .chain(own.into_iter().flat_map(|s| &s.request))
    }
    /// The rules for the headers of one subgraph's answers, in order.
    pub fn response_header_rules<'a>(
        &'a self,
        subgraph: &str,
    ) -> impl Iterator<Item = &'a ResponseHeaderRule> {
        let own = self.headers.subgraphs.get(subgraph);
        self.headers
            .all
            .response
            .iter()
            .chain(own.into_iter().flat_map(|s| &s.response))
    }
    /// Whether clients see the errors of one subgraph.
    pub fn includes_subgraph_errors(&self, subgraph: &str) -> bool {
        let options = &self.include_subgraph_errors;
        options
            .subgraphs
            .get(subgraph)
            .copied()
            .unwrap_or(options.all)
    }
    /// Names of subgraphs that any section mentions, with the section, for a check against the supergraph.
    pub fn mentioned_subgraphs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        fn keys<'a, T>(
            section: &'static str,
            map: &'a BTreeMap<String, T>,
        ) -> impl Iterator<Item = (&'static str, &'a str)> {
            map.keys().map(move |k| (section, k.as_str()))
        }
        keys("headers.subgraphs", &self.headers.subgraphs)
            .chain(keys("override_subgraph_url", &self.override_subgraph_url))
            .chain(keys("override_subgraph_urls", &self.override_subgraph_urls))
            .chain(keys(
                "traffic_shaping.subgraphs",
                &self.traffic_shaping.subgraphs,
            ))
            .chain(keys("tls.subgraph.subgraphs", &self.tls.subgraph.subgraphs))
            .chain(keys(
                "include_subgraph_errors.subgraphs",
                &self.include_subgraph_errors.subgraphs,
            ))
            .chain({
                let names = self.error_rules.iter().flat_map(|rule| &rule.subgraphs);
                names.map(|name| ("error_rules", name.as_str()))
            })
            .chain(keys("execution.subgraphs", &self.execution.subgraphs))
            .chain(keys(
                "response_cache.subgraph.subgraphs",
                &self.response_cache.subgraph.subgraphs,
            ))
            .chain(keys(
                "authentication.subgraph.subgraphs",
                &self.authentication.subgraph.subgraphs,
            ))
            .chain(keys(
                "demand_control.strategy.static_estimated.subgraph.subgraphs",
                &self
                    .demand_control
                    .strategy
                    .static_estimated
                    .subgraph
                    .subgraphs,
            ))
            .chain(keys(
                "subscription.mode.passthrough.subgraphs",
                &self.subscription.mode.passthrough.subgraphs,
            ))
            .chain(
                (self.subscription.mode.callback.subgraphs.iter())
                    .map(|name| ("subscription.mode.callback.subgraphs", name.as_str())),
            )
    }
}

impl HttpOptions {
    /// Most connections of one address.
    pub fn connections_per_client_max(&self) -> NonZeroUsize {
        let all = self.connections_max.get();
        let default = (all / CLIENTS_MIN).max(CLIENT_CONNECTIONS_MIN).min(all);
        self.connections_per_client_max.unwrap_or(nonzero(default))
    }
}

/// So many clients at least have to hold connections to hold all of them, unless the configuration says otherwise.
const CLIENTS_MIN: usize = 4;
/// So many connections a client may have in any case.
const CLIENT_CONNECTIONS_MIN: usize = 100;
