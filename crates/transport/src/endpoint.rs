//! Where subgraphs are served and how to treat them.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderValue, Uri, uri::PathAndQuery};

use crate::{CircuitBreaker, Encoding, HeaderRules, Health, ResponseHeaderRules, Retry};

/// Smaller bodies are never encoded: they fit into one packet anyway.
pub const ENCODED_BYTES_MIN: usize = 1 << 10;

/// Time and size limits for one subgraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// From the start of a request to the last byte of its answer; default 30 s.
    pub timeout: Duration,
    /// For resolving and connecting; default 5 s.
    pub connect_timeout: Duration,
    /// Largest answer in bytes; default 128 MiB.
    pub response_bytes_max: usize,
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
    /// How long an idle connection is kept; default 50 s.
    pub idle_timeout: Duration,
    /// Most idle connections per worker and origin; default 100.
    pub idle_max: usize,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            response_bytes_max: 128 << 20,
            compression: None,
            accept_compression: false,
            retry: None,
            breaker: None,
            deduplicate_query: true,
            idle_timeout: Duration::from_secs(50),
            idle_max: 100,
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
    /// Header rules for its answers; default none.
    pub response_headers: ResponseHeaderRules,
    /// What its past says about its next request.
    pub health: Arc<Health>,
    /// Whether clients see what it says about its errors; default true.
    pub shows_errors: bool,
    /// Where it is; an error if its URL cannot be used, reported by the first fetch.
    pub address: Result<Address, EndpointError>,
}

/// The parts of a usable URL.
#[derive(Clone, Debug)]
pub struct Address {
    /// Host and port to connect to.
    pub origin: Origin,
    /// The `host` header.
    pub host: HeaderValue,
    /// What to ask for.
    pub path: PathAndQuery,
}

/// What connections are pooled by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// Host name or address, without brackets.
    pub host: Box<str>,
    /// Port.
    pub port: u16,
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
    /// `https` is not supported yet.
    Tls,
    /// Some other scheme.
    Scheme(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::Missing => f.write_str("it has no URL"),
            EndpointError::Malformed(why) => write!(f, "its URL is malformed: {why}"),
            EndpointError::Tls => f.write_str("its URL is https, which is not supported yet"),
            EndpointError::Scheme(scheme) => {
                write!(
                    f,
                    "its URL has the scheme `{scheme}`; only http is supported"
                )
            }
        }
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// The endpoint of a subgraph at `url`.
    pub fn new(name: &str, url: &str, traffic: Traffic, headers: HeaderRules) -> Self {
        Endpoint {
            name: name.into(),
            traffic,
            headers,
            response_headers: ResponseHeaderRules::default(),
            health: Arc::default(),
            shows_errors: true,
            address: Address::parse(url),
        }
    }
}

impl Address {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<Address, EndpointError> {
        if url.is_empty() {
            return Err(EndpointError::Missing);
        }
        let malformed = |why: &dyn fmt::Display| EndpointError::Malformed(why.to_string());
        let uri: Uri = url.parse().map_err(|e| malformed(&e))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(EndpointError::Tls),
            Some(other) => return Err(EndpointError::Scheme(other.to_owned())),
            None => return Err(malformed(&"no scheme")),
        }
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
            origin: Origin {
                host: bare.into(),
                port: authority.port_u16().unwrap_or(80),
            },
            host: HeaderValue::from_str(authority.as_str()).map_err(|e| malformed(&e))?,
            path: uri
                .path_and_query()
                .cloned()
                .unwrap_or_else(|| PathAndQuery::from_static("/")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let a = Address::parse("http://localhost:4001/graphql?x=1").unwrap();
        assert_eq!((&*a.origin.host, a.origin.port), ("localhost", 4001));
        assert_eq!(a.path, "/graphql?x=1");
        assert_eq!(a.host, "localhost:4001");
        let a = Address::parse("http://[::1]:80").unwrap();
        assert_eq!((&*a.origin.host, a.origin.port), ("::1", 80));
        assert_eq!(a.path, "/");
        let a = Address::parse("http://example.org").unwrap();
        assert_eq!(
            (a.origin.port, a.host),
            (80, HeaderValue::from_static("example.org"))
        );
    }

    #[test]
    fn unusable_urls_say_why() {
        let why = |url| Address::parse(url).unwrap_err();
        assert_eq!(why(""), EndpointError::Missing);
        assert_eq!(why("https://a/"), EndpointError::Tls);
        assert_eq!(why("ftp://a/"), EndpointError::Scheme("ftp".into()));
        assert!(matches!(why("localhost"), EndpointError::Malformed(_)));
        assert!(matches!(why("http://u:p@a/"), EndpointError::Malformed(_)));
        assert!(matches!(why("http:// a"), EndpointError::Malformed(_)));
    }
}
