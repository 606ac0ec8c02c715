//! Requests of components to other hosts: which of them a configuration permits, and what is sent.
//!
//! Where a request goes comes from the configuration alone: a URL only chooses one of the permitted hosts, and gives the path.
//! So no two readers of a URL can disagree about its host.

use std::{collections::BTreeSet, fmt, net::Ipv6Addr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, uri::PathAndQuery};

/// Most headers of a request.
const HEADERS_MAX: usize = 100;
/// Most bytes of the names and values of its headers.
const HEADER_BYTES_MAX: usize = 32 << 10;
/// Longest URL.
const URL_BYTES_MAX: usize = 8 << 10;

/// A place that requests may go to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Host {
    /// Whether it is asked over TLS.
    pub https: bool,
    /// Its name in lower case, or its address, without brackets.
    pub name: Box<str>,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.https {
            ("https", 443)
        } else {
            ("http", 80)
        };
        if self.name.contains(':') {
            write!(f, "{scheme}://[{}]", self.name)?;
        } else {
            write!(f, "{scheme}://{}", self.name)?;
        }
        if self.port == usual {
            return Ok(());
        }
        write!(f, ":{}", self.port)
    }
}

/// A request, as it is sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Where it goes.
    pub host: Host,
    /// What it asks for.
    pub path: PathAndQuery,
    /// Its method.
    pub method: Method,
    /// Its headers, without those of the connection.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// How long it may take altogether.
    pub within: Duration,
    /// Most bytes of the body of its answer.
    pub body_bytes_max: usize,
}

/// What comes back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as it was sent.
    pub body: Bytes,
}

/// Why nothing comes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// Time is over.
    Late,
    /// Something else, for whoever asked.
    Failed(String),
}

/// Sends requests, and keeps the thread waiting that it is called on.
pub trait Sender: fmt::Debug + Send + Sync {
    /// Sends one, follows no redirect, and is done within its time.
    fn send(&self, request: Outgoing) -> Result<Answer, Unanswered>;
}

/// Why a request is not sent, for whoever asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Nobody permits it.
    Forbidden(String),
    /// It is no request.
    Malformed(String),
}

/// Where a URL leads, if that is permitted.
pub(crate) fn place(url: &str, hosts: &BTreeSet<Host>) -> Result<(Host, PathAndQuery), Refused> {
    let (wanted, path) = read(url)?;
    if !hosts.contains(&wanted) {
        let why = format!("requests to `{wanted}` (`permissions.hosts`)");
        return Err(Refused::Forbidden(why));
    }
    Ok((wanted, path))
}

/// Whether a request to a subgraph, which goes to one URL, may go to another one: at the same host, or at one that is
/// permitted. Otherwise its headers would reach anybody, and whoever reads the answer would ask anybody.
pub(crate) fn may_go(from: &str, to: &str, hosts: &BTreeSet<Host>) -> Result<(), Refused> {
    let (wanted, _) = read(to)?;
    if hosts.contains(&wanted) || read(from).is_ok_and(|(known, _)| known == wanted) {
        return Ok(());
    }
    let why = format!("sending a request of a subgraph to `{wanted}` (`permissions.hosts`)");
    Err(Refused::Forbidden(why))
}

/// What a URL names: a host, and a path there.
fn read(url: &str) -> Result<(Host, PathAndQuery), Refused> {
    let malformed = |why: &str| Refused::Malformed(format!("the URL {why}"));
    if url.len() > URL_BYTES_MAX {
        return Err(malformed("is too long"));
    }
    // Printable ASCII alone: others read a backslash or a tab in more than one way.
    if !url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return Err(malformed("has characters that have to be encoded"));
    }
    let uri: Uri = url.parse().map_err(|_| malformed("is none"))?;
    let https = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(malformed("is to begin with `https://`")),
    };
    let authority = uri.authority().ok_or_else(|| malformed("has no host"))?;
    let (host, port) = (authority.host(), authority.port_u16());
    let digits = authority.port().map_or(0, |port| {
        let is_number = port.as_str().bytes().all(|b| b.is_ascii_digit());
        if is_number {
            port.as_str().len() + 1
        } else {
            0
        }
    });
    if host.is_empty() || authority.as_str().len() != host.len() + digits {
        return Err(malformed("has more than a host and a port before its path"));
    }
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let name = match bare.map(str::parse::<Ipv6Addr>) {
        Some(Ok(address)) => address.to_string(),
        Some(Err(_)) => return Err(malformed("has an address that is none")),
        None => host.to_ascii_lowercase(),
    };
    let wanted = Host {
        https,
        name: name.into(),
        port: port.unwrap_or(if https { 443 } else { 80 }),
    };
    let path = uri.path_and_query().map(ToString::to_string);
    let path = path.unwrap_or_else(|| "/".to_owned()).parse();
    Ok((
        wanted,
        path.map_err(|_| malformed("has a path that is none"))?,
    ))
}

/// A method that says nothing to proxies or of connections.
pub(crate) fn method(name: &str) -> Result<Method, Refused> {
    let known = Method::from_bytes(name.as_bytes()).ok();
    let known = known
        .filter(|method| name.len() <= 32 && ![Method::CONNECT, Method::TRACE].contains(method));
    known.ok_or_else(|| Refused::Malformed("the method is none that can be sent".to_owned()))
}

/// Headers of a request; those of the connection, of the framing and of who it is for are the gateway's alone.
pub(crate) fn headers(said: &[(String, String)]) -> Result<HeaderMap, Refused> {
    let bytes: usize = said
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if said.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let why = format!("more than {HEADERS_MAX} headers or {HEADER_BYTES_MAX} bytes of them");
        return Err(Refused::Malformed(why));
    }
    let mut headers = HeaderMap::with_capacity(said.len());
    for (name, value) in said {
        let read = HeaderName::from_bytes(name.as_bytes()).ok();
        let name =
            read.ok_or_else(|| Refused::Malformed("the name of a header is none".to_owned()))?;
        if is_of_gateway(name.as_str()) {
            let why = format!("the header `{name}` is the gateway's to write");
            return Err(Refused::Malformed(why));
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| Refused::Malformed(format!("the value of the header `{name}` is none")))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Whether nobody else may say a header: it would say where the request ends, whose it is, or what the connection is for.
fn is_of_gateway(name: &str) -> bool {
    // What the body is encoded in is the business of whoever wrote it.
    let is_of_body = name == "content-encoding";
    (ogive_base::is_framing(name) && !is_of_body)
        || matches!(
            name,
            "proxy-authorization" | "proxy-authenticate" | "via" | "forwarded"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(https: bool, name: &str, port: u16) -> Host {
        Host {
            https,
            name: name.into(),
            port,
        }
    }

    fn led(url: &str) -> String {
        let hosts = BTreeSet::from([
            host(true, "good.test", 443),
            host(true, "good.test", 8443),
            host(false, "plain.test", 8080),
            host(false, "::1", 9000),
        ]);
        match place(url, &hosts) {
            Ok((host, path)) => format!("{host} {path}"),
            Err(Refused::Forbidden(why)) => format!("no: {why}"),
            Err(Refused::Malformed(why)) => why,
        }
    }

    #[test]
    fn a_url_leads_to_a_permitted_host_or_nowhere() {
        for (url, to) in [
            ("https://good.test/a?b=c#d", "https://good.test /a?b=c"),
            ("https://GOOD.test:443", "https://good.test /"),
            (
                "https://good.test?x=//evil.test",
                "https://good.test /?x=//evil.test",
            ),
            ("https://good.test:8443/", "https://good.test:8443 /"),
            (
                "http://plain.test:8080/@evil.test",
                "http://plain.test:8080 /@evil.test",
            ),
            ("http://[0:0:0::1]:9000/", "http://[::1]:9000 /"),
        ] {
            assert_eq!(led(url), to, "{url}");
        }
    }

    #[test]
    fn whatever_else_a_url_says_it_leads_nowhere() {
        for url in [
            "http://good.test/",
            "https://good.test:444/",
            "https://good.test./",
            "https://good.test.evil.test/",
            "https://evil.test/?good.test",
            "https://evil.test#good.test",
            "http://plain.test/",
            "https://plain.test:8080/",
            "http://127.0.0.1:8080/",
            "http://2130706433/",
            "http://0x7f.1:8080/",
            "http://[::ffff:127.0.0.1]:9000/",
            "http://169.254.169.254/latest/meta-data/",
        ] {
            assert!(led(url).starts_with("no: "), "{url}: {}", led(url));
        }
        for url in [
            "",
            "/a",
            "good.test",
            "//good.test/",
            "ftp://good.test/",
            "unix:///run/a.sock",
            "file:///etc/passwd",
            "https://",
            "https:///good.test",
            "https://good.test@evil.test/",
            "https://evil.test@good.test/",
            "https://u:p@good.test/",
            "https://good.test:/",
            "https://good.test:99999/",
            "https://good.test:+443/",
            "https://evil.test\\@good.test/",
            "https://good.test\\.evil.test/",
            "https://good.test/ HTTP/1.1\r\nx: y",
            "https://good.test/\r\nx: y",
            "https://good.test/\u{0}",
            "https://good.test/a b",
            "https://good.test/\u{e9}",
            "https://g\u{f6}od.test/",
            "https://good%2etest/",
            "https://[::1/",
            "https://[::1%25lo]:9000/",
        ] {
            let said = led(url);
            assert!(
                said.starts_with("the URL ") || said.starts_with("no: "),
                "{url}: {said}"
            );
        }
        assert!(led(&format!("https://good.test/{}", "a".repeat(9_000))).ends_with("too long"));
    }

    #[test]
    fn a_request_of_a_subgraph_goes_to_its_host_or_to_a_permitted_one() {
        let hosts = BTreeSet::from([host(true, "canary.test", 443)]);
        let goes = |from: &str, to: &str| may_go(from, to, &hosts);
        let from = "http://a.test:4001/graphql";
        assert_eq!(goes(from, "http://a.test:4001/other?b"), Ok(()));
        assert_eq!(goes(from, "https://canary.test/graphql"), Ok(()));
        assert_eq!(goes("unix:///a.sock", "https://canary.test/"), Ok(()));
        for (from, to) in [
            (from, "http://a.test/graphql"),
            (from, "https://a.test:4001/"),
            (from, "http://canary.test/"),
            (from, "http://169.254.169.254/latest/meta-data/"),
            ("unix:///a.sock", "http://localhost/"),
        ] {
            let refused = goes(from, to);
            assert!(matches!(refused, Err(Refused::Forbidden(_))), "{to}");
        }
        for to in ["/other", "unix:///a.sock", "http://a.test:4001@evil.test/"] {
            assert!(matches!(goes(from, to), Err(Refused::Malformed(_))), "{to}");
        }
    }

    #[test]
    fn methods_and_headers_that_would_be_another_request_are_refused() {
        assert_eq!(method("PATCH"), Ok(Method::PATCH));
        assert_eq!(method("QUERY").unwrap().as_str(), "QUERY");
        for bad in [
            "",
            "CONNECT",
            "TRACE",
            "GET / HTTP/1.1\r\n",
            "G T",
            "g\u{e9}",
        ] {
            assert!(method(bad).is_err(), "{bad}");
        }
        let one = |name: &str, value: &str| headers(&[(name.to_owned(), value.to_owned())]);
        assert_eq!(one("X-A", "b").unwrap()["x-a"], "b");
        assert!(one("accept-encoding", "gzip").is_ok() && one("content-encoding", "gzip").is_ok());
        for name in [
            "Host",
            "Content-Length",
            "transfer-encoding",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "http2-settings",
            "proxy-authorization",
            "proxy-connection",
            "forwarded",
            "via",
            ":authority",
            "",
            "a b",
            "a\r\nb",
            "a:",
        ] {
            assert!(one(name, "1").is_err(), "{name}");
        }
        for value in ["a\r\nx: y", "a\nb", "a\u{0}b", "\u{7f}"] {
            assert!(one("x-a", value).is_err(), "{value:?}");
        }
        let many: Vec<_> = (0..101)
            .map(|n| (format!("x-{n}"), String::new()))
            .collect();
        assert!(headers(&many).is_err() && headers(&many[1..]).is_ok());
        assert!(one("x-a", &"a".repeat(40_000)).is_err());
    }
}
