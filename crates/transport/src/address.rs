//! Where something is served: URLs that can be used, taken apart.

use std::{fmt, path::Path};

use http::{HeaderValue, Uri, uri::PathAndQuery};

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
