//! Single requests to other servers than subgraphs: collectors of telemetry, places where a schema is kept. They are
//! seldom, so every one has a connection of its own; those that decide about requests of clients are asked over connections
//! that are kept ([`Source::kept`]).

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::ThreadId,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Uri, header, uri, uri::PathAndQuery,
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::{
    ClientTls, ClientTlsOptions, Fetched, Http2, Resolver, SignError, Signer, Unsigned,
    address::Address,
    connect::{open, open_by, speak_http2},
    error::chain,
    exchange::{USER_AGENT, USER_AGENT_LINE},
    http1::framing::HeaderScope,
    http1::request::{self, Headers},
    http1::{Connection, OutgoingRequest, Unanswered},
    resolve::Names,
};

/// Most connections of a source that are kept.
const IDLE_MAX: usize = 64;
/// How long one is kept.
const IDLE_FOR: Duration = Duration::from_secs(30);

/// A connection that waits for the next request of its thread, whose runtime it belongs to.
struct Idle {
    thread: ThreadId,
    since: Instant,
    connection: Connection,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").finish_non_exhaustive()
    }
}

/// A place to ask.
#[derive(Debug)]
pub struct Source {
    address: Address,
    tls: Option<ClientTls>,
    http2: Http2,
    idle: Option<Mutex<Vec<Idle>>>,
    /// Who finds addresses, if not the operating system.
    names: Option<Names>,
    /// Whether a request that the other side may have seen is sent once more, whatever its method.
    resends: bool,
    /// How long one request may take altogether; default 10 s.
    pub timeout: Duration,
    /// Most bytes of an answer; default 16 MiB.
    pub body_bytes_max: usize,
}

/// A request, and how it may be sent.
struct Asked<'a> {
    address: &'a Address,
    method: &'a Method,
    headers: &'a HeaderMap,
    body: &'a Bytes,
    /// Most bytes of its answer.
    limit: usize,
    /// Whether it is sent once more if a connection turns out to be closed.
    resends: bool,
    /// Whether its connection may be one of other requests.
    shares: bool,
}

/// Why there is no answer.
enum NoAnswer {
    /// The other side had closed the connection.
    Stale(String),
    /// For operators.
    Failed(String),
}

impl From<String> for NoAnswer {
    fn from(why: String) -> Self {
        NoAnswer::Failed(why)
    }
}

impl Source {
    /// The place of a URL. Certificates are checked by the authorities that the operating system trusts. With
    /// [`Http2::Only`] everything but TLS is HTTP/2, too. The error is for the operator.
    pub fn new(url: &str, http2: Http2) -> Result<Self, String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        // With TLS both sides agree on a version.
        Source::with(address, http2, Http2::Enable)
    }
    /// The same over HTTP/1.1 connections that are kept for further requests. One that turns out to be closed is replaced, and
    /// the request sent once more: it has to be one that may be.
    pub fn kept(url: &str) -> Result<Self, String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let source = Source::with(address, Http2::Disable, Http2::Disable)?;
        Ok(Source {
            idle: Some(Mutex::default()),
            ..source
        })
    }
    /// The same for requests of any method, of which only those are sent once more that may be, at addresses that a resolver
    /// finds.
    pub fn resolved_by(url: &str, resolver: Arc<dyn Resolver>) -> Result<Self, String> {
        Ok(Source {
            names: Some(Names::new(resolver)),
            resends: false,
            ..Source::kept(url)?
        })
    }
    fn with(address: Address, http2: Http2, over_tls: Http2) -> Result<Self, String> {
        let tls = if address.https {
            let tls = ClientTls::load(ClientTlsOptions::default(), over_tls);
            Some(tls.map_err(|error| error.to_string())?)
        } else {
            None
        };
        Ok(Source {
            address,
            tls,
            http2,
            idle: None,
            names: None,
            resends: true,
            timeout: Duration::from_secs(10),
            body_bytes_max: 16 << 20,
        })
    }
    /// The path of the URL, with its query string.
    pub fn path(&self) -> &str {
        self.address.path.as_str()
    }
    /// Asks for `path` instead of the URL's.
    pub fn set_path(&mut self, path: &str) {
        if let Ok(path) = path.parse() {
            self.address.path = path;
        }
    }

    /// What a request without a body has to have besides these headers so that it is signed.
    pub async fn sign(
        &self,
        signer: &dyn Signer,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<HeaderMap, SignError> {
        signer.ready().await?;
        let body = Bytes::new();
        let unsigned = Unsigned {
            method,
            https: self.address.https,
            authority: &self.address.host,
            target: &self.address.path,
            headers,
            body: Some(&body),
        };
        signer.sign(unsigned).await
    }

    /// Sends one request and reads the whole answer. The error is for the operator.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Fetched, String> {
        let limit = self.body_bytes_max;
        let exchange = self.exchange(&self.address, method, headers, (body, limit));
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no whole answer within {:?}", self.timeout)),
        }
    }

    /// Sends one request for another path than that of the URL, and reads the whole answer of at most so many bytes. It takes
    /// as long as it takes.
    pub async fn send_to(
        &self,
        path: PathAndQuery,
        method: Method,
        headers: HeaderMap,
        body: (Bytes, usize),
    ) -> Result<Fetched, String> {
        let address = Address {
            path,
            ..self.address.clone()
        };
        self.exchange(&address, method, headers, body).await
    }

    async fn exchange(
        &self,
        address: &Address,
        method: Method,
        headers: HeaderMap,
        (body, limit): (Bytes, usize),
    ) -> Result<Fetched, String> {
        let asked = Asked {
            address,
            method: &method,
            headers: &headers,
            body: &body,
            limit,
            resends: self.resends || method.is_idempotent(),
            // What is known of a connection is not to be known of the next request.
            shares: !request::binds(&headers),
        };
        while let Some(mut connection) = self.take_idle(&asked) {
            if !asked.resends && !connection.is_open().await {
                continue;
            }
            match self.over_http1(connection, &asked).await {
                Err(NoAnswer::Stale(_)) => {}
                Err(NoAnswer::Failed(why)) => return Err(why),
                Ok(answer) => return Ok(answer),
            }
        }
        let stream = match &self.names {
            Some(names) => open_by(address, self.tls.as_ref(), names).await?,
            None => open(address, self.tls.as_ref()).await?,
        };
        let http2 = stream.agreed_on_http2() || (!address.https && self.http2 == Http2::Only);
        if !http2 {
            let asked = self.over_http1(Connection::new(stream), &asked).await;
            return asked.map_err(|why| match why {
                NoAnswer::Stale(why) | NoAnswer::Failed(why) => why,
            });
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
        *request.uri_mut() = absolute(address)?;
        let mut sender = speak_http2(stream).await.map_err(|error| chain(&error))?;
        let answer = sender.send_request(request).await;
        read(answer.map_err(|error| chain(&error))?, limit).await
    }

    async fn over_http1(
        &self,
        mut connection: Connection,
        asked: &Asked<'_>,
    ) -> Result<Fetched, NoAnswer> {
        let &Asked {
            method,
            body,
            limit,
            ..
        } = asked;
        let headers = Headers {
            common: asked.headers,
            own: HeaderMap::new(),
            binds: false,
        };
        let user_agent = if headers.contains(&header::USER_AGENT) {
            b""
        } else {
            USER_AGENT_LINE
        };
        // RFC 9110, section 8.6: methods without a body by nature say no length.
        let has_body =
            !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(method);
        let length = has_body.then_some(body.len());
        let target = (method.as_str(), asked.address);
        let outgoing = OutgoingRequest {
            head: &|out| request::write(out, target, &[user_agent], &headers, length),
            body,
            is_head: method == Method::HEAD,
            wanted: HeaderScope::All,
        };
        let head = connection.ask(outgoing).await;
        let head = head.map_err(|why| match why {
            Unanswered::Closed { unsent, why } if unsent || asked.resends => NoAnswer::Stale(why),
            other => NoAnswer::Failed(other.to_string()),
        })?;
        loop {
            let whole = connection.look()?;
            if connection.announced() > limit as u64 || connection.came() > limit {
                return Err(too_large(limit).into());
            }
            if whole || !connection.more(limit).await? {
                break;
            }
        }
        let body = connection.take();
        if asked.shares {
            self.put_idle(connection);
        }
        Ok(Fetched {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    /// A connection of this thread that was kept and is still open, as far as anybody knows.
    fn take_idle(&self, asked: &Asked<'_>) -> Option<Connection> {
        let mut idle = self
            .idle
            .as_ref()
            .filter(|_| asked.shares)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| kept.since.elapsed() < IDLE_FOR);
        let thread = std::thread::current().id();
        loop {
            let at = idle.iter().rposition(|kept| kept.thread == thread)?;
            let mut connection = idle.swap_remove(at).connection;
            if connection.is_quiet() {
                return Some(connection);
            }
        }
    }
    fn put_idle(&self, connection: Connection) {
        let Some(idle) = self.idle.as_ref().filter(|_| connection.is_reusable()) else {
            return;
        };
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(Idle {
                thread: std::thread::current().id(),
                since: Instant::now(),
                connection,
            });
        }
    }
}

fn too_large(limit: usize) -> String {
    format!("the answer is larger than {limit} bytes")
}

/// HTTP/2 names the host in the URL.
fn absolute(address: &Address) -> Result<Uri, String> {
    let mut parts = uri::Parts::default();
    parts.scheme = Some(if address.https {
        uri::Scheme::HTTPS
    } else {
        uri::Scheme::HTTP
    });
    let host: &HeaderValue = &address.host;
    parts.authority = uri::Authority::try_from(host.as_bytes()).ok();
    parts.path_and_query = Some(address.path.clone());
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

async fn read(answer: Response<Incoming>, limit: usize) -> Result<Fetched, String> {
    let (head, mut body) = answer.into_parts();
    let mut headers = head.headers;
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| chain(&error))?;
        match frame.into_data() {
            Ok(data) if whole.len() + data.len() > limit => {
                return Err(too_large(limit));
            }
            Ok(data) => whole.extend_from_slice(&data),
            Err(frame) => headers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    Ok(Fetched {
        status: head.status.as_u16(),
        headers,
        body: whole.freeze(),
    })
}
