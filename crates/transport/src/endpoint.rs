//! Where subgraphs are served and how to treat them.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName};

use ogive_execute::RequestLimits;

use crate::{
    CallerContext, CircuitBreaker, ClientTls, Encoding, EventSource, HeaderRules, Health, Hedge,
    Http2, LearnedProtocol, RequestExtensions, ResponseHeaderRules, Retry, Signer,
    SubgraphCachePolicy, SubgraphService,
    address::{Address, EndpointError},
    balance::{OutlierEjection, Replicas},
    condition::SharedCondition,
};

/// Smaller bodies are never encoded: they fit into one packet anyway.
pub const ENCODED_BYTES_MIN: usize = 1 << 10;

/// Time and size limits for one subgraph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// From the start of a request to the last byte of its answer; default 30 s.
    pub timeout: Duration,
    /// For resolving and connecting; default 5 s.
    pub connect_timeout: Duration,
    /// From sending a request to the head of its answer; default only `timeout`.
    pub first_byte_timeout: Option<Duration>,
    /// Largest answer in bytes; default 64 MiB.
    pub response_bytes_max: usize,
    /// With it answers beyond `response_bytes_max` are only noted, up to so many bytes; default they are refused.
    pub response_bytes_ceiling: Option<usize>,
    /// How request bodies of at least [`ENCODED_BYTES_MIN`] are encoded; default not at all.
    pub compression: Option<Encoding>,
    /// Whether answers may come encoded; default no, because near subgraphs it costs more than it saves. What comes
    /// encoded all the same is decoded.
    pub accept_compression: bool,
    /// When failed queries are sent once more; default never.
    pub retry: Option<Retry>,
    /// When the subgraph is left alone; default never.
    pub breaker: Option<CircuitBreaker>,
    /// Whether equal queries of any clients that are under way at the same time are sent once; default yes.
    pub deduplicate_query: bool,
    /// How much one request asks, and whether a failed one is sent again in pieces.
    pub request_limits: RequestLimits,
    /// When a slow query is asked a second time; default never.
    pub hedge: Option<Hedge>,
    /// When one of several replicas is left alone; default never.
    pub outlier: Option<OutlierEjection>,
    /// When HTTP/2 is spoken; default if both sides agree on it during the TLS handshake.
    pub http2: Http2,
    /// Header that tells the subgraph how many milliseconds are left; default none.
    pub deadline_header: Option<HeaderName>,
    /// How long an idle connection is kept; default 50 s.
    pub idle_timeout: Duration,
    /// How old a connection may be when it is given another request; default 60 s. Every connection has a limit of its own
    /// between four fifths of it and all of it, so that those made together do not end together. Requests in flight are
    /// never cut off.
    pub connection_age_max: Duration,
    /// Most idle connections per worker and origin; default 2,000. With fewer than there are requests at a time, connections
    /// are closed and made all the time.
    pub idle_max: usize,
    /// Most idle HTTP/1.1 connections per worker, all origins together; default 10,000. Beyond it the connection is
    /// closed that has been idle longest. The same for all endpoints of a client.
    pub idle_total_max: usize,
}

impl Traffic {
    /// Bytes beyond which answers are refused.
    pub fn response_bytes_refused(&self) -> usize {
        self.response_bytes_ceiling
            .unwrap_or(self.response_bytes_max)
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: None,
            response_bytes_max: 64 << 20,
            response_bytes_ceiling: None,
            compression: None,
            accept_compression: false,
            retry: None,
            breaker: None,
            deduplicate_query: true,
            request_limits: RequestLimits::default(),
            hedge: None,
            outlier: None,
            http2: Http2::Enable,
            deadline_header: None,
            idle_timeout: Duration::from_secs(50),
            connection_age_max: Duration::from_secs(60),
            idle_max: 2_000,
            idle_total_max: 10_000,
        }
    }
}

/// One subgraph as the client sees it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Subgraph name, for messages.
    pub name: Box<str>,
    /// Limits.
    pub traffic: Traffic,
    /// Header rules, those for all subgraphs first.
    pub headers: HeaderRules,
    /// What is added to the `extensions` of its requests; default nothing.
    pub extensions: RequestExtensions,
    /// Header rules for its answers; default none.
    pub response_headers: ResponseHeaderRules,
    /// Whether all headers of its answers are wanted, whatever the rules for them are; default no.
    pub keeps_headers: bool,
    /// How its answers are kept across requests; default not at all.
    pub cache: Option<Arc<SubgraphCachePolicy>>,
    /// What its past says about its next request.
    pub health: Arc<Health>,
    /// Whether clients see what it says about its errors; default true.
    pub shows_errors: bool,
    /// How it sends events; default not at all.
    pub events: Option<Arc<EventSource>>,
    /// What answers for it if it is no HTTP service; default it is one.
    pub service: Option<Arc<dyn SubgraphService>>,
    /// Who proves to it who asks; default nobody.
    pub signer: Option<Arc<dyn Signer>>,
    /// TLS for `https` URLs; an error is reported by the first fetch that needs it.
    pub tls: Result<Option<Arc<ClientTls>>, EndpointError>,
    /// Where it is; an error if one of its URLs cannot be used, reported by the first fetch.
    pub replicas: Result<Arc<Replicas>, EndpointError>,
    /// Where it is for requests of which something holds, the first that fits; default nowhere else.
    pub elsewhere: Arc<[ConditionalEndpoint]>,
}

/// Another place of a subgraph.
#[derive(Clone, Debug)]
pub struct ConditionalEndpoint {
    /// What has to hold.
    pub when: SharedCondition,
    /// The subgraph at that place, with a health and connections of its own.
    pub endpoint: Endpoint,
}

/// The endpoints of a plan's subgraphs, by subgraph index.
pub type Endpoints = Vec<Endpoint>;

impl Endpoint {
    /// The endpoint of a subgraph at `url`, without options for TLS.
    pub fn new(name: &str, url: &str, traffic: Traffic, headers: HeaderRules) -> Self {
        Self::with_replicas(name, &[url], traffic, headers)
    }
    /// The endpoint of a subgraph that is served at several URLs, without options for TLS.
    pub fn with_replicas(
        name: &str,
        urls: &[&str],
        traffic: Traffic,
        headers: HeaderRules,
    ) -> Self {
        let addresses: Result<Vec<Address>, _> =
            urls.iter().map(|url| Address::parse(url)).collect();
        let replicas = addresses.and_then(|addresses| {
            Replicas::new(addresses, traffic.outlier)
                .map(Arc::new)
                .ok_or(EndpointError::Missing)
        });
        Endpoint {
            name: name.into(),
            traffic,
            headers,
            extensions: RequestExtensions::default(),
            response_headers: ResponseHeaderRules::default(),
            keeps_headers: false,
            cache: None,
            health: Arc::default(),
            shows_errors: true,
            events: None,
            service: None,
            signer: None,
            tls: Ok(None),
            replicas,
            elsewhere: Arc::default(),
        }
    }
    /// The same subgraph at another URL: nothing is known of it there yet.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        let address = Address::parse(url);
        let replicas = address.and_then(|address| {
            let replicas = Replicas::new(vec![address], self.traffic.outlier);
            replicas.map(Arc::new).ok_or(EndpointError::Missing)
        });
        let events = self.events.as_deref().map(|events| EventSource {
            learned: LearnedProtocol::default(),
            ..events.clone()
        });
        let cache = self.cache.as_deref().map(|cache| cache.at(url));
        Endpoint {
            replicas,
            cache: cache.map(Arc::new),
            health: Arc::default(),
            events: events.map(Arc::new),
            elsewhere: Arc::default(),
            ..self.clone()
        }
    }
    /// Lets something in this process answer in place of HTTP.
    pub fn serve_locally(&mut self, service: Arc<dyn SubgraphService>) {
        self.service = Some(service);
        // What has an URL is asked there.
        self.replicas = Err(EndpointError::Missing);
        self.elsewhere = Arc::default();
        self.signer = None;
        self.cache = None;
    }
    /// Where a request of a client goes.
    #[inline]
    pub(crate) fn chosen(&self, client: &HeaderMap, caller: Option<&dyn CallerContext>) -> &Self {
        if self.elsewhere.is_empty() {
            return self;
        }
        let mut rules = self.elsewhere.iter();
        let found = rules.find(|rule| rule.when.0.is_met(client, caller));
        found.map_or(self, |rule| &rule.endpoint)
    }
    /// The headers of clients that decide where requests go, and whether who asks does.
    pub(crate) fn decided_by(&self) -> (Vec<HeaderName>, bool) {
        let rules = || self.elsewhere.iter().map(|rule| &rule.when.0);
        let headers = rules().flat_map(|condition| condition.headers()).cloned();
        (headers.collect(), rules().any(|one| one.claims()))
    }
    /// Whether clients whom this one cannot tell from each other are the same for the other one: everything that depends on
    /// who asks is written alike, namely what is sent of them and by what a place is chosen.
    pub fn knows_clients_like(&self, other: &Endpoint) -> bool {
        let of = |endpoint: &'_ Endpoint| {
            let rules = endpoint.elsewhere.iter();
            let sent = rules.map(|rule| {
                let (headers, extensions) = (&rule.endpoint.headers, &rule.endpoint.extensions);
                (rule.when.clone(), headers.clone(), extensions.clone())
            });
            sent.collect::<Vec<_>>()
        };
        self.headers == other.headers
            && self.extensions == other.extensions
            && of(self) == of(other)
    }
    /// Whether a stream of events of this body from the one would be asked for in the same words at the same place by the
    /// other. What proves to a subgraph who asks is not looked at.
    pub fn has_same_events(&self, other: &Endpoint, body: &[u8]) -> bool {
        let place = |endpoint: &Endpoint| {
            let replicas = endpoint.replicas.as_ref().ok()?;
            let mut places: Vec<String> =
                replicas.addresses().map(|at| format!("{at:?}")).collect();
            places.sort_unstable();
            Some(places)
        };
        let spoken = |endpoint: &Endpoint| {
            let source = endpoint.events.as_deref()?;
            let path = source.path.clone();
            let callback = source.callback.clone();
            Some((
                source.protocol,
                path,
                source.connection_init.clone(),
                callback,
            ))
        };
        if let (Some(own), Some(theirs)) = (&self.service, &other.service) {
            let (own, theirs) = (own.fingerprint(body), theirs.fingerprint(body));
            return self.name == other.name && own.is_some() && own == theirs;
        }
        // Which of several places it is depends on the client.
        let elsewhere = [self, other].map(|endpoint| {
            let rules = endpoint.elsewhere.iter();
            rules.map(|rule| place(&rule.endpoint)).collect::<Vec<_>>()
        });
        self.name == other.name
            && self.knows_clients_like(other)
            && elsewhere[0] == elsewhere[1]
            && place(self).is_some_and(|own| Some(own) == place(other))
            && spoken(self).is_some_and(|own| Some(own) == spoken(other))
    }
    /// Whether one of its URLs is `https`.
    pub fn is_https(&self) -> bool {
        let replicas = self.replicas.as_ref();
        let mut elsewhere = self.elsewhere.iter();
        replicas.is_ok_and(|replicas| replicas.addresses().any(|address| address.https))
            || elsewhere.any(|rule| rule.endpoint.is_https())
    }
}
