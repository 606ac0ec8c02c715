//! The options of `traffic_shaping`.

use std::{collections::BTreeMap, num::NonZeroUsize};

use crate::{
    BatchingWord, ByteSize, CompressionWord, Config, Duration, HeaderName, Http2Word,
    OverloadOptions, RateLimitKey, RateLimitRule, RequestExtensions, SubgraphRateRule, Url,
    decode::section, scalars::nonzero,
};

section! {
    /// `traffic_shaping`
    pub struct TrafficShapingOptions {
        /// The client's side.
        pub router: RouterTraffic = RouterTraffic::default(),
        /// Every subgraph.
        pub all: SubgraphTraffic = SubgraphTraffic::default(),
        /// By subgraph name; what is not set here is taken from `all`.
        pub subgraphs: BTreeMap<String, SubgraphTraffic> = BTreeMap::new(),
        /// Most idle HTTP/1.1 connections to subgraphs per worker, all origins together, whatever `pool_idle_max` says;
        /// beyond it the connection is closed that has been idle longest. Of HTTP/2 there is one connection per origin.
        pub pool_idle_total_max: NonZeroUsize = nonzero(10_000),
    }

    /// `traffic_shaping.router`
    pub struct RouterTraffic {
        /// How long a client request may take altogether; then subgraph requests still under way are given up and
        /// their fields answered with null and an error.
        pub timeout: Duration = Duration::seconds(60),
        /// Most requests at a time; more are answered with 503 and `retry-after`.
        pub concurrency_limit: Option<NonZeroUsize> = None,
        /// Whether equal queries of clients that are under way at the same time are answered once: same operation,
        /// same variables, and the same headers for every subgraph that is asked. Default no.
        pub deduplicate_query: bool = false,
        /// How often a client may ask; more often is answered with 429 and `retry-after`.
        pub rate_limit: Option<RateLimitOptions> = None,
        /// Further rates, several at once, of operations that are valid: by any selectors, charged by request or by cost.
        /// All of them have to have enough. docs/limits.md.
        pub rate_limits: Vec<RateLimitRule> = Vec::new(),
        /// Requests are refused, those of low classes first, when so many run at a time that they take longer for it.
        pub overload: OverloadOptions = OverloadOptions::default(),
    }

    /// `traffic_shaping.router.rate_limit`
    pub struct RateLimitOptions {
        /// So many requests; default 1000.
        pub capacity: NonZeroUsize = nonzero(1_000),
        /// In so much time; default `1s`.
        pub interval: Duration = Duration::seconds(1),
        /// Whose requests are counted together: everybody's (`global`, the default), those of one `ip`, those with
        /// the same value of a `header`, those of callers with the same `claim` (`authorization.claims`), those for
        /// one `operation` by its name, those without a name together, or those of clients with one `client_name`
        /// (`telemetry.clients`), those without by their address. Behind `http.trusted_proxies` the address is
        /// that of the client they name; an IPv6 network of 64 bits counts as one.
        pub key: RateLimitKey = RateLimitKey::Global,
        /// Which header, with `key: header`; default `authorization`.
        pub header: HeaderName = HeaderName("authorization".into()),
        /// Which claim, with `key: claim`: a member of `claims` in the header `authorization.claims.header`; default
        /// `sub`. Callers without it are told apart by their address.
        pub claim: String = "sub".into(),
        /// Whether exceeding the rate is only logged, and counted in `ogive.limits.exceeded`; default no.
        pub measure_only: bool = false,
    }

    /// `traffic_shaping.all.retry` and `traffic_shaping.subgraphs.<name>.retry`
    pub struct RetryOptions {
        /// Most further tries of one query; default 2.
        pub attempts: u32 = 2,
        /// Longest wait before the first of them, doubled with each; the wait is a random part of it; default `50ms`.
        pub backoff: Duration = Duration::milliseconds(50),
        /// Longest wait before any of them; default `1s`.
        pub backoff_max: Duration = Duration::seconds(1),
        /// Further tries in percent of all requests to the subgraph; default 20.
        pub budget_percent: u32 = 20,
        /// Further tries per second that are fine however few requests there are; default 10.
        pub min_per_sec: u32 = 10,
    }

    /// `traffic_shaping.all.circuit_breaker` and `traffic_shaping.subgraphs.<name>.circuit_breaker`
    pub struct CircuitBreakerOptions {
        /// Failures in percent of the requests of a window; default 50.
        pub error_threshold_percent: u32 = 50,
        /// Fewest requests of a window that say anything; default 20.
        pub volume_threshold: u32 = 20,
        /// How long requests are counted together; default `10s`.
        pub window: Duration = Duration::seconds(10),
        /// How long the subgraph is left alone before one request tries again; default `30s`.
        pub reset_timeout: Duration = Duration::seconds(30),
    }

    /// `traffic_shaping.all.hedge` and `traffic_shaping.subgraphs.<name>.hedge`
    pub struct HedgeOptions {
        /// A query is slow if so many percent of the last ones were faster; default 95.
        pub percentile: u32 = 95,
        /// Shortest time that is slow; default `5ms`.
        pub min_delay: Duration = Duration::milliseconds(5),
        /// Second requests in percent of all; default 10.
        pub budget_percent: u32 = 10,
    }

    /// `traffic_shaping.all.outlier_ejection` and `traffic_shaping.subgraphs.<name>.outlier_ejection`
    pub struct OutlierEjectionOptions {
        /// Failures in a row (no answer, or 5xx) after which a replica is left alone; default 5.
        pub consecutive_failures: u32 = 5,
        /// How long, the first time; each further time as much longer, up to ten times as long; default `30s`.
        pub base_ejection_time: Duration = Duration::seconds(30),
        /// Most replicas left alone at a time, in percent; default 50.
        pub max_ejection_percent: u32 = 50,
    }

    /// `traffic_shaping.all` and `traffic_shaping.subgraphs.<name>`
    pub struct SubgraphTraffic {
        /// How long one subgraph request may take, from its start to the last byte of its answer; default `30s`.
        pub timeout: Option<Duration> = None,
        /// How long connecting may take; default `5s`.
        pub connect_timeout: Option<Duration> = None,
        /// How long the subgraph may take to begin its answer, once the request is sent; default: `timeout` alone.
        pub first_byte_timeout: Option<Duration> = None,
        /// Largest subgraph answer, in bytes, before and after decoding; a larger one is refused, and its connection closed.
        /// Default `64MiB`.
        pub response_max_bytes: Option<ByteSize> = None,
        /// How request bodies of at least 1 KiB are encoded; default not at all. Answers are decoded whatever is set
        /// here.
        pub compression: Option<CompressionWord> = None,
        /// Whether the subgraph is told that its answers may be `zstd`, `br` or `gzip`; default no.
        pub accept_compression: Option<bool> = None,
        /// When failed queries are sent once more: the connection failed, or the answer is 429, 502, 503 or 504. Default
        /// never; mutations never are.
        pub retry: Option<RetryOptions> = None,
        /// When the subgraph is left alone because too many requests failed (no answer, or 5xx); default never.
        pub circuit_breaker: Option<CircuitBreakerOptions> = None,
        /// Whether equal queries to the subgraph, headers included, that are under way at the same time are sent
        /// once, whoever asks; default yes.
        pub deduplicate_query: Option<bool> = None,
        /// Whether requests of operations that have a name have one, too: the operation's, the subgraph's and the number of
        /// the fetch, as in `Shop__reviews__0`. Only requests of operations of the same name are then shared. Default no.
        pub operation_names: Option<bool> = None,
        /// What may share one request: `all` look-ups of a wave (the default), the same look-up at several `paths`, or
        /// nothing (`off`).
        pub batching: Option<BatchingWord> = None,
        /// Most look-ups in one request, with `batching: all`; more are sent as several requests at a time. Default: no
        /// limit.
        pub max_aliases: Option<NonZeroUsize> = None,
        /// Most entity representations in one request; more are sent as several requests at a time. Default: no limit.
        pub max_representations: Option<NonZeroUsize> = None,
        /// Whether a query of several look-ups, or of root fields and look-ups, that is answered with `data: null` is sent
        /// again in pieces, once, so that one of them cannot null the others; default yes.
        pub split_retry: Option<bool> = None,
        /// How often the subgraph may be asked; what is beyond is not sent, and its fields are null with
        /// `REQUEST_RATE_LIMITED`. Those of one subgraph replace those of `all`, which each subgraph has for itself.
        /// docs/limits.md.
        pub rate_limits: Vec<SubgraphRateRule> = Vec::new(),
        /// When a slow query is asked a second time, elsewhere if there are several `urls`; the first good answer counts.
        /// Default never; mutations never are.
        pub hedge: Option<HedgeOptions> = None,
        /// Only below `subgraphs`: URLs of the subgraph's replicas, instead of `override_subgraph_url` and the one in the supergraph. Of two
        /// picked at random the faster and less busy one is asked; a retry goes to another one.
        pub urls: Option<Vec<Url>> = None,
        /// When one of several replicas is left alone; default never.
        pub outlier_ejection: Option<OutlierEjectionOptions> = None,
        /// When HTTP/2 is spoken: `enable` (the default) if both sides agree on it during the TLS handshake, `disable`
        /// never, `http2only` always, without TLS from the first byte on.
        pub http2: Option<Http2Word> = None,
        /// Members of `extensions` in the body of every request to the subgraph, by name: what the caller claims as JSON, as in
        /// `{ user: { jwt_claim: sub } }`, or what another [selector](selectors.md) says as a text; left out if nothing is there and
        /// there is no `default`. Only equal ones share a request. Default none.
        pub request_extensions: Option<RequestExtensions> = None,
        /// Header that tells the subgraph how many milliseconds are left for the request; default none.
        pub deadline_header: Option<HeaderName> = None,
        /// How long an idle connection is kept for the next request; default `50s`.
        pub pool_idle_timeout: Option<Duration> = None,
        /// How old a connection may be when it is given another request, so that changes of the name service are followed
        /// while there is traffic; default `60s`. Each has a limit of its own between four fifths of it and all of it. Requests
        /// in flight are never cut off.
        pub pool_max_age: Option<Duration> = None,
        /// Most idle connections per worker and origin; default 2000. More only helps if more requests than that are under way
        /// at a time.
        pub pool_idle_max: Option<NonZeroUsize> = None,
    }
}

/// What holds for one subgraph, defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedTraffic {
    /// See [`SubgraphTraffic::timeout`].
    pub timeout: std::time::Duration,
    /// See [`SubgraphTraffic::connect_timeout`].
    pub connect_timeout: std::time::Duration,
    /// See [`SubgraphTraffic::first_byte_timeout`].
    pub first_byte_timeout: Option<std::time::Duration>,
    /// See [`SubgraphTraffic::hedge`].
    pub hedge: Option<HedgeOptions>,
    /// See [`SubgraphTraffic::urls`]; none if not set.
    pub urls: Vec<Url>,
    /// See [`SubgraphTraffic::outlier_ejection`].
    pub outlier_ejection: Option<OutlierEjectionOptions>,
    /// See [`SubgraphTraffic::http2`].
    pub http2: Http2Word,
    /// See [`SubgraphTraffic::request_extensions`]; none if not set.
    pub request_extensions: RequestExtensions,
    /// See [`SubgraphTraffic::deadline_header`].
    pub deadline_header: Option<HeaderName>,
    /// See [`SubgraphTraffic::response_max_bytes`].
    pub response_max_bytes: usize,
    /// See [`SubgraphTraffic::retry`].
    pub retry: Option<RetryOptions>,
    /// See [`SubgraphTraffic::circuit_breaker`].
    pub circuit_breaker: Option<CircuitBreakerOptions>,
    /// See [`SubgraphTraffic::compression`].
    pub compression: Option<CompressionWord>,
    /// See [`SubgraphTraffic::accept_compression`].
    pub accept_compression: bool,
    /// See [`SubgraphTraffic::deduplicate_query`].
    pub deduplicate_query: bool,
    /// See [`SubgraphTraffic::operation_names`].
    pub operation_names: bool,
    /// See [`SubgraphTraffic::batching`].
    pub batching: BatchingWord,
    /// See [`SubgraphTraffic::max_aliases`].
    pub max_aliases: Option<NonZeroUsize>,
    /// See [`SubgraphTraffic::max_representations`].
    pub max_representations: Option<NonZeroUsize>,
    /// See [`SubgraphTraffic::split_retry`].
    pub split_retry: bool,
    /// See [`SubgraphTraffic::pool_idle_timeout`].
    pub pool_idle_timeout: std::time::Duration,
    /// See [`SubgraphTraffic::pool_max_age`].
    pub pool_max_age: std::time::Duration,
    /// See [`SubgraphTraffic::pool_idle_max`].
    pub pool_idle_max: usize,
}

impl Config {
    /// The traffic options of one subgraph: its own, else those of `all`, else the defaults.
    pub fn traffic(&self, subgraph: &str) -> ResolvedTraffic {
        let all = &self.traffic_shaping.all;
        let own = self.traffic_shaping.subgraphs.get(subgraph).unwrap_or(all);
        fn pick<T: Copy>(own: Option<T>, all: Option<T>, default: T) -> T {
            own.or(all).unwrap_or(default)
        }
        ResolvedTraffic {
            timeout: pick(own.timeout, all.timeout, Duration::seconds(30)).0,
            connect_timeout: pick(
                own.connect_timeout,
                all.connect_timeout,
                Duration::seconds(5),
            )
            .0,
            response_max_bytes: pick(
                own.response_max_bytes,
                all.response_max_bytes,
                ByteSize(64 << 20),
            )
            .0,
            first_byte_timeout: own
                .first_byte_timeout
                .or(all.first_byte_timeout)
                .map(|timeout| timeout.0),
            hedge: own.hedge.as_ref().or(all.hedge.as_ref()).cloned(),
            urls: {
                let own = self.traffic_shaping.subgraphs.get(subgraph);
                own.and_then(|own| own.urls.clone()).unwrap_or_default()
            },
            outlier_ejection: own
                .outlier_ejection
                .as_ref()
                .or(all.outlier_ejection.as_ref())
                .cloned(),
            http2: pick(own.http2, all.http2, Http2Word::Enable),
            request_extensions: own
                .request_extensions
                .as_ref()
                .or(all.request_extensions.as_ref())
                .cloned()
                .unwrap_or_default(),
            deadline_header: own
                .deadline_header
                .as_ref()
                .or(all.deadline_header.as_ref())
                .cloned(),
            retry: own.retry.as_ref().or(all.retry.as_ref()).cloned(),
            circuit_breaker: own
                .circuit_breaker
                .as_ref()
                .or(all.circuit_breaker.as_ref())
                .cloned(),
            compression: own.compression.or(all.compression),
            accept_compression: pick(own.accept_compression, all.accept_compression, false),
            deduplicate_query: pick(own.deduplicate_query, all.deduplicate_query, true),
            operation_names: pick(own.operation_names, all.operation_names, false),
            batching: pick(own.batching, all.batching, BatchingWord::All),
            max_aliases: own.max_aliases.or(all.max_aliases),
            max_representations: own.max_representations.or(all.max_representations),
            split_retry: pick(own.split_retry, all.split_retry, true),
            pool_idle_timeout: pick(
                own.pool_idle_timeout,
                all.pool_idle_timeout,
                Duration::seconds(50),
            )
            .0,
            pool_max_age: pick(own.pool_max_age, all.pool_max_age, Duration::seconds(60)).0,
            pool_idle_max: pick(own.pool_idle_max, all.pool_idle_max, nonzero(2_000)).get(),
        }
    }
}
