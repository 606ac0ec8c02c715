//! Where subgraphs are served and how to treat them.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Uri, uri::PathAndQuery};

use ogive_execute::RequestLimits;

use crate::{
    CircuitBreaker, ClientTls, Encoding, HeaderRules, Health, Hedge, ResponseHeaderRules, Retry,
    Signer,
    balance::{OutlierEjection, Replicas},
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

/// When HTTP/2 is spoken with a subgraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Http2 {
    /// If both sides agree on it during the TLS handshake; never without TLS.
    #[default]
    Enable,
    /// Never.
    Disable,
    /// Always, without TLS from the first byte on (prior knowledge, RFC 9113, section 3.3).
    Only,
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
    /// Header rules for its answers; default none.
    pub response_headers: ResponseHeaderRules,
    /// What its past says about its next request.
    pub health: Arc<Health>,
    /// Whether clients see what it says about its errors; default true.
    pub shows_errors: bool,
    /// Who proves to it who asks; default nobody.
    pub signer: Option<Arc<dyn Signer>>,
    /// TLS for `https` URLs; an error is reported by the first fetch that needs it.
    pub tls: Result<Option<Arc<ClientTls>>, EndpointError>,
    /// Where it is; an error if one of its URLs cannot be used, reported by the first fetch.
    pub replicas: Result<Arc<Replicas>, EndpointError>,
}

/// The parts of a usable URL.
#[derive(Clone, Debug)]
pub struct Address {
    /// Where to connect to.
    pub target: Target,
    /// Whether TLS is spoken.
    pub https: bool,
    /// The `host` header.
    pub host: HeaderValue,
    /// What to ask for.
    pub path: PathAndQuery,
}

/// What to connect to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A host name or address, without brackets, and a port.
    Tcp(Box<str>, u16),
    /// A unix socket.
    Unix(Box<Path>),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(host, port) => write!(f, "{host}:{port}"),
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The endpoints of a plan's subgraphs, by subgraph index.
pub type Endpoints = Vec<Endpoint>;

/// Why a URL cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EndpointError {
    /// There is none.
    Missing,
    /// It cannot be parsed.
    Malformed(String),
    /// TLS cannot be set up.
    Tls(String),
    /// Some other scheme.
    Scheme(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::Missing => {
                f.write_str("it has no URL (where it is composed, `--url NAME=URL` gives it one: `ogive compose`, `ogive serve --subgraphs`)")
            }
            EndpointError::Malformed(why) => write!(f, "its URL is malformed: {why}"),
            EndpointError::Tls(why) => write!(f, "its TLS cannot be set up: {why}"),
            EndpointError::Scheme(scheme) => {
                write!(
                    f,
                    "its URL has the scheme `{scheme}`; http, https and unix are supported"
                )
            }
        }
    }
}

impl std::error::Error for EndpointError {}

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
            response_headers: ResponseHeaderRules::default(),
            health: Arc::default(),
            shows_errors: true,
            signer: None,
            tls: Ok(None),
            replicas,
        }
    }
    /// Whether one of its URLs is `https`.
    pub fn is_https(&self) -> bool {
        let replicas = self.replicas.as_ref();
        replicas.is_ok_and(|replicas| replicas.addresses().any(|address| address.https))
    }
}

impl Address {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<Address, EndpointError> {
        if url.is_empty() {
            return Err(EndpointError::Missing);
        }
        let malformed = |why: &dyn fmt::Display| EndpointError::Malformed(why.to_string());
        if let Some(rest) = url.strip_prefix("unix://") {
            return Self::unix(rest);
        }
        let uri: Uri = url.parse().map_err(|e| malformed(&e))?;
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(EndpointError::Scheme(other.to_owned())),
            None => return Err(malformed(&"no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| malformed(&"no host"))?;
        if authority.as_str().contains('@') {
            return Err(malformed(
                &"user names and passwords do not belong into URLs",
            ));
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(malformed(&"no host"));
        }
        let bare = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        Ok(Address {
            target: Target::Tcp(
                bare.into(),
                authority.port_u16().unwrap_or(if https { 443 } else { 80 }),
            ),
            https,
            host: HeaderValue::from_str(authority.as_str()).map_err(|e| malformed(&e))?,
            path: match uri.path_and_query() {
                // As text it begins with a slash, also that of `http://a?x=1`.
                Some(path) => path.to_string().parse().map_err(|e| malformed(&e))?,
                None => PathAndQuery::from_static("/"),
            },
        })
    }

    /// `/run/products.sock`, or `/run/products.sock?path=/graphql`.
    fn unix(rest: &str) -> Result<Address, EndpointError> {
        let malformed = |why: String| EndpointError::Malformed(why);
        let (socket, path) = match rest.split_once('?') {
            None => (rest, "/"),
            Some((socket, query)) => match query.strip_prefix("path=") {
                Some(path) if path.starts_with('/') => (socket, path),
                _ => {
                    return Err(malformed(
                        "write `unix:///run/products.sock?path=/graphql`".into(),
                    ));
                }
            },
        };
        if !socket.starts_with('/') || socket.len() < 2 {
            return Err(malformed(
                "the path of the socket starts with a slash, such as `unix:///run/products.sock`"
                    .into(),
            ));
        }
        Ok(Address {
            target: Target::Unix(Path::new(socket).into()),
            https: false,
            host: HeaderValue::from_static("localhost"),
            path: path
                .parse()
                .map_err(|e| malformed(format!("its path is no path: {e}")))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(a: &Address) -> String {
        a.target.to_string()
    }

    #[test]
    fn urls_are_taken_apart() {
        let a = Address::parse("http://localhost:4001/graphql?x=1").unwrap();
        assert_eq!(target(&a), "localhost:4001");
        assert_eq!(a.path, "/graphql?x=1");
        assert_eq!(a.host, "localhost:4001");
        let a = Address::parse("http://[::1]:80").unwrap();
        assert_eq!(a.target, Target::Tcp("::1".into(), 80));
        assert_eq!(a.path, "/");
        let a = Address::parse("http://example.org").unwrap();
        assert_eq!((target(&a).as_str(), a.https), ("example.org:80", false));
        assert_eq!(a.host, "example.org");
        let a = Address::parse("https://example.org/a").unwrap();
        assert_eq!((target(&a).as_str(), a.https), ("example.org:443", true));
        for (url, path) in [("http://a?x=1", "/?x=1"), ("http://a#b", "/")] {
            assert_eq!(Address::parse(url).unwrap().path.as_str(), path);
        }
        let a = Address::parse("unix:///run/a.sock?path=/graphql?x=1").unwrap();
        assert_eq!(target(&a), "unix:/run/a.sock");
        assert_eq!(
            (a.path.as_str(), &a.host),
            ("/graphql?x=1", &HeaderValue::from_static("localhost"))
        );
        assert_eq!(Address::parse("unix:///run/a.sock").unwrap().path, "/");
    }

    #[test]
    fn unusable_urls_say_why() {
        let why = |url| Address::parse(url).unwrap_err();
        assert_eq!(why(""), EndpointError::Missing);
        assert_eq!(why("ftp://a/"), EndpointError::Scheme("ftp".into()));
        for url in [
            "localhost",
            "http://u:p@a/",
            "http:// a",
            "unix://run/a.sock",
            "unix:///",
            "unix:///a?b",
        ] {
            assert!(matches!(why(url), EndpointError::Malformed(_)), "{url}");
        }
    }
}
