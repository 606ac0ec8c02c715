//! One exchange with a subgraph.
//!
//! Timeouts: `connect_timeout` for connecting, `first_byte_timeout` up to the head of the answer, `timeout` for
//! everything up to its last byte; the last is laid around the whole exchange by
//! [`RequestTransport`](crate::RequestTransport). HTTP/1.1 is [`crate::http1`], HTTP/2 is hyper's.

use std::{cell::RefCell, io::ErrorKind, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use ogive_execute::{Failure, StreamScan};

use crate::{
    ClientTls,
    address::Address,
    age::Age,
    answer::{Exchanged, Head, Intake, no_redirect, whole},
    budget::Budget,
    coalescing::Coalescer,
    connect::{connect, speak_http2},
    encoding::{self, Encoding},
    endpoint::{ENCODED_BYTES_MIN, Endpoint},
    error::{HTTP_ERROR, TIMEOUT, chain, failed},
    events::{Callbacks, Sockets},
    exchange::{
        ACCEPT_ENCODING_LINE, ExchangeRequest, JSON_LINES, RequestKey, SharedOutcome,
        USER_AGENT_LINE, tls_of,
    },
    http1::framing::HeaderScope,
    http1::request::{self, Headers},
    http1::{Connection, OutgoingRequest, Unanswered},
    over_hyper,
    personal::Personal,
    pool::{Ages, Origin, Pool, Ready},
    resolve::{Names, Resolver},
    sign,
    upload::Attachment,
};

/// The subgraph client of one worker thread.
#[derive(Default)]
pub struct Client {
    pool: Pool,
    /// What is known of hosts.
    pub(crate) names: Names,
    /// The queries under way that others may join.
    pub(crate) queries: Coalescer<RequestKey, SharedOutcome>,
    /// Those that others better do not join.
    pub(crate) personal: Personal,
    /// Connections for subscriptions.
    pub(crate) sockets: Sockets,
    /// Subscriptions whose events come by requests; of the process, if it has told.
    pub(crate) callbacks: Arc<Callbacks>,
    /// Room to write down what a request is known by.
    pub(crate) scratch: RefCell<Vec<u8>>,
}

/// How a try ended without an answer.
enum Failed {
    /// The connection was closed before the subgraph answered anything. `unsent`: not one byte of the request was
    /// written.
    Stale {
        unsent: bool,
        error: Failure,
    },
    Final(Failure),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Failed::Final(failure)
    }
}

impl Client {
    /// A client without connections.
    pub fn new() -> Self {
        Client::default()
    }

    /// The same with another name service than that of the operating system.
    pub fn with_resolver(resolver: Arc<dyn Resolver>) -> Self {
        Client {
            names: Names::new(resolver),
            ..Client::default()
        }
    }

    /// The same, with subscriptions by callback that others find, too.
    #[must_use]
    pub fn with_callbacks(self, callbacks: Arc<Callbacks>) -> Self {
        Client { callbacks, ..self }
    }

    /// Number of idle connections to the endpoint's origins.
    pub fn idle_connections(&self, endpoint: &Endpoint) -> usize {
        let Ok(replicas) = &endpoint.replicas else {
            return 0;
        };
        let count = |address| match tls_of(endpoint, address) {
            Ok(tls) => self.pool.idle(&origin(endpoint, address, tls)),
            Err(_) => 0,
        };
        replicas.addresses().map(count).sum()
    }

    /// Closes idle connections that are too old or that the subgraph has closed; says how many. Requests do that as they
    /// come, so that this is for times when there are none.
    pub fn trim(&self) -> usize {
        self.pool.trim()
    }

    /// Sends a body that is made while it is sent, on a connection of its own: it can be sent only once. Reads the
    /// whole answer.
    pub(crate) async fn upload(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        headers: HeaderMap,
        attachment: Attachment<'_>,
        budget: &Budget<'_>,
    ) -> Result<Exchanged, Failure> {
        over_hyper::upload(
            &self.names,
            endpoint,
            address,
            headers,
            (attachment, budget),
        )
        .await
    }

    /// Sends `body` with `headers` to one of the endpoint's replicas and reads the whole answer. `idempotent` allows a
    /// second try when a kept-alive connection was stale.
    pub(crate) async fn exchange(
        &self,
        endpoint: &Endpoint,
        address: &Address,
        headers: Headers<'_>,
        (mut body, idempotent): (Bytes, bool),
        (budget, ahead): (&Budget<'_>, Option<StreamScan<'_>>),
    ) -> Result<Exchanged, Failure> {
        let tls = tls_of(endpoint, address)?;
        let (mut encoding, mut _copy) = (None, None);
        // Beside what it was made of, which may be sent to others.
        let beside = |bytes: usize| {
            budget.process().map(|process| {
                let copy = process.beside();
                copy.count(bytes);
                copy
            })
        };
        if let Some(signer) = &endpoint.signer
            && let Some(signed) = sign::body(&**signer, endpoint, &body)?
        {
            _copy = beside(signed.len());
            body = signed;
        }
        if let Some(wanted) = endpoint.traffic.compression
            && body.len() >= ENCODED_BYTES_MIN
            && let Ok(encoded) = encoding::encode(wanted, &body)
        {
            _copy = beside(encoded.len());
            body = encoded.into();
            encoding = Some(wanted);
        }
        let mut ask = ExchangeRequest {
            endpoint,
            address,
            headers,
            body,
            encoding,
            budget,
            ahead,
            tls,
            origin: origin(endpoint, address, tls),
        };
        if let Some(ready) = self.idle(&ask, idempotent).await {
            if let Some(signer) = &endpoint.signer {
                Box::pin(sign::sign(&**signer, &mut ask)).await?;
            }
            match self.attempt(&ask, ready).await {
                Ok(response) => return Ok(response),
                Err(Failed::Final(error)) => return Err(error),
                // Never written at all: safe to send even if it is a mutation.
                Err(Failed::Stale { unsent, .. }) if unsent || idempotent => {
                    tracing::debug!(
                        subgraph = &*endpoint.name,
                        "kept-alive connection was stale"
                    );
                }
                Err(Failed::Stale { error, .. }) => return Err(error.retried()),
            }
        }
        // In a box, because futures are moved, and connecting takes most of the room while it hardly ever happens.
        Box::pin(self.exchange_anew(ask)).await
    }

    /// The same on a new connection.
    async fn exchange_anew(&self, mut ask: ExchangeRequest<'_>) -> Result<Exchanged, Failure> {
        let ready = self.connected(&ask).await?;
        if let Some(signer) = &ask.endpoint.signer {
            sign::sign(&**signer, &mut ask).await?;
        }
        match self.attempt(&ask, ready).await {
            Ok(response) => Ok(response),
            Err(Failed::Final(error)) => Err(error),
            Err(Failed::Stale { error, .. }) => Err(error.retried()),
        }
    }

    /// A kept-alive connection that is ready for a request.
    async fn idle(&self, ask: &ExchangeRequest<'_>, idempotent: bool) -> Option<Ready> {
        let ages = ages(ask.endpoint);
        while let Some(mut ready) = self.pool.take(&ask.origin, ages) {
            let usable = match &mut ready {
                Ready::Http1(_) if idempotent => true,
                // A mutation has one try.
                Ready::Http1(connection) => connection.is_open().await,
                Ready::Http2(sender, _) => {
                    if !idempotent {
                        // Let the reactor report connections that were closed in the meantime first.
                        tokio::task::yield_now().await;
                    }
                    sender.ready().await.is_ok()
                }
            };
            if usable {
                return Some(ready);
            }
        }
        None
    }

    /// A new connection; requests that can share one wait for it instead of making one each.
    async fn connected(&self, ask: &ExchangeRequest<'_>) -> Result<Ready, Failure> {
        let gate = self.pool.gate(&ask.origin);
        let _first = match &gate {
            Some(gate) => {
                let first = gate.lock().await;
                if let Some(ready @ Ready::Http2(..)) =
                    self.pool.take(&ask.origin, ages(ask.endpoint))
                {
                    return Ok(ready);
                }
                Some(first)
            }
            None => None,
        };
        let stream = connect(ask.endpoint, ask.address, ask.tls, &self.names).await;
        let (stream, http2) = stream.map_err(Failure::retried)?;
        if !http2 {
            return Ok(Ready::Http1(Box::new(Connection::new(stream))));
        }
        let shared = speak_http2(stream).await.map_err(|error| {
            let what = "the connection failed before an answer came";
            failed(HTTP_ERROR, &ask.endpoint.name, what, chain(&error)).retried()
        })?;
        let age = Age::new();
        self.keep(ask, Ready::Http2(shared.clone(), age));
        Ok(Ready::Http2(shared, age))
    }

    fn keep(&self, ask: &ExchangeRequest<'_>, ready: Ready) {
        let traffic = &ask.endpoint.traffic;
        let max = (traffic.idle_max, traffic.idle_total_max);
        self.pool.keep(&ask.origin, ready, ages(ask.endpoint), max);
    }

    async fn attempt(&self, ask: &ExchangeRequest<'_>, ready: Ready) -> Result<Exchanged, Failed> {
        match ready {
            Ready::Http1(connection) => self.over_http1(ask, connection).await,
            // Futures are moved: the rare one stays out of the other's room.
            Ready::Http2(sender, _) => Box::pin(over_http2(ask, sender)).await,
        }
    }

    async fn over_http1(
        &self,
        ask: &ExchangeRequest<'_>,
        connection: Box<Connection>,
    ) -> Result<Exchanged, Failed> {
        let endpoint = ask.endpoint;
        let mut lent = ExchangeConnection(Some(connection));
        let connection = lent.connection();
        let asked = OutgoingRequest {
            head: &|out| write_head(out, ask),
            body: &ask.body,
            is_head: false,
            wanted: if endpoint.response_headers.is_empty()
                && !endpoint.keeps_headers
                && endpoint.cache.is_none()
            {
                HeaderScope::Deciding
            } else {
                HeaderScope::All
            },
        };
        let answer = connection.ask(asked);
        let head = match endpoint.traffic.first_byte_timeout {
            None => answer.await,
            Some(timeout) => match tokio::time::timeout(timeout, answer).await {
                Ok(head) => head,
                Err(_) => return Err(Failed::Final(no_head(endpoint, timeout))),
            },
        };
        let head = head.map_err(|why| unanswered(endpoint, why))?;
        no_redirect(endpoint, head.status, &head.headers)?;
        // What has to be decoded, or says nothing but what went wrong, is not worth a look before it is whole.
        let is_plain = || matches!(Encoding::of(&head.headers), Ok(None));
        let ahead = ask.ahead.filter(|_| head.status.is_success() && is_plain());
        let intake = Intake::new(endpoint, ask.budget);
        let body = read_body_ahead(intake, connection, ahead).await?;
        if let Some(connection) = lent.back().filter(|_| !ask.headers.binds) {
            self.keep(ask, Ready::Http1(connection));
        }
        Ok(whole(endpoint, head.into(), body, ask.budget).await?)
    }
}

/// A connection that carries an exchange, and is closed if that does not end well.
///
/// Closing waits until the task that gives the exchange up is done with it: whoever sees the connection end may rely on
/// the client's request being over, with everything that it held.
struct ExchangeConnection(Option<Box<Connection>>);

impl ExchangeConnection {
    fn connection(&mut self) -> &mut Connection {
        let connection = self.0.as_deref_mut();
        connection.expect("it is given back at the end only")
    }
    /// Gives it back if it can carry another exchange.
    fn back(mut self) -> Option<Box<Connection>> {
        self.0.take_if(|connection| connection.is_reusable())
    }
}

impl Drop for ExchangeConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { drop(connection) });
        }
    }
}

async fn over_http2(
    ask: &ExchangeRequest<'_>,
    mut sender: SendRequest<Full<Bytes>>,
) -> Result<Exchanged, Failed> {
    let endpoint = ask.endpoint;
    let sending = sender.try_send_request(over_hyper::request(ask));
    let sent = match endpoint.traffic.first_byte_timeout {
        None => sending.await,
        Some(timeout) => match tokio::time::timeout(timeout, sending).await {
            Ok(sent) => sent,
            Err(_) => return Err(Failed::Final(no_head(endpoint, timeout))),
        },
    };
    let response = sent.map_err(|mut refused| {
        let unsent = refused.take_message().is_some();
        let error = refused.into_error();
        // A connection that ends before the head of an answer was closed by a subgraph that had tired of it;
        // anything else (a malformed answer, say) would only happen again.
        let stale = unsent
            || error.is_canceled()
            || error.is_closed()
            || error.is_incomplete_message()
            || over_hyper::is_reset(&error);
        let what = "the connection failed before an answer came";
        let error = failed(HTTP_ERROR, &endpoint.name, what, chain(&error));
        if stale {
            Failed::Stale { unsent, error }
        } else {
            Failed::Final(error)
        }
    })?;
    let (head, body) = response.into_parts();
    no_redirect(endpoint, head.status, &head.headers)?;
    let body = over_hyper::read_body(Intake::new(endpoint, ask.budget), body).await?;
    let head = Head::new(head.status, head.headers);
    Ok(whole(endpoint, head, body, ask.budget).await?)
}

/// The head of a request to a subgraph.
fn write_head(out: &mut Vec<u8>, ask: &ExchangeRequest<'_>) {
    let mut lines: [&[u8]; 6] = [JSON_LINES, b"", b"", b"", b"", b""];
    if !ask.headers.contains(&header::USER_AGENT) {
        lines[1] = USER_AGENT_LINE;
    }
    if ask.endpoint.traffic.accept_compression {
        lines[2] = ACCEPT_ENCODING_LINE;
    }
    if let Some(encoding) = ask.encoding {
        lines[3..].copy_from_slice(&[b"content-encoding: ", encoding.name().as_bytes(), b"\r\n"]);
    }
    let target = ("POST", ask.address);
    request::write(out, target, &lines, &ask.headers, Some(ask.body.len()));
}

/// Reads a body to its end.
pub(crate) async fn read_body(
    intake: Intake<'_>,
    connection: &mut Connection,
) -> Result<Bytes, Failure> {
    read_body_ahead(intake, connection, None).await
}

/// The same, and looks at it while it arrives.
async fn read_body_ahead(
    mut intake: Intake<'_>,
    connection: &mut Connection,
    ahead: Option<StreamScan<'_>>,
) -> Result<Bytes, Failure> {
    let mut arriving = None;
    loop {
        let whole = connection.look().map_err(|why| intake.cut(why))?;
        intake.announced(connection.announced())?;
        intake.came(connection.came()).await?;
        if let Some(ahead) = ahead
            && !whole
            && connection.came() >= StreamScan::BYTES_MIN
        {
            let arriving = arriving.get_or_insert_with(|| ahead.begin());
            arriving.look(connection.so_far());
        }
        if whole
            || !connection
                .more(intake.limit())
                .await
                .map_err(|why| intake.cut(why))?
        {
            break;
        }
    }
    intake.whole();
    let body = connection.take();
    if let Some(arriving) = arriving {
        arriving.whole(&body);
    }
    Ok(body)
}

fn no_head(endpoint: &Endpoint, timeout: Duration) -> Failure {
    failed(
        TIMEOUT,
        &endpoint.name,
        "the subgraph took too long to begin its answer",
        format!("no head of an answer within {timeout:?}"),
    )
    .retried()
}

fn unanswered(endpoint: &Endpoint, why: Unanswered) -> Failed {
    let error = |detail: String| {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, detail)
    };
    match why {
        Unanswered::Closed { unsent, why } => Failed::Stale {
            unsent,
            error: error(why),
        },
        Unanswered::Cut(why) => Failed::Final(error(why).retried()),
        // Hosts and networks come back. What TLS refuses is `InvalidData`.
        Unanswered::Broken(why) if why.kind() != ErrorKind::InvalidData => {
            Failed::Final(error(why.to_string()).retried())
        }
        // It would only happen again.
        why => Failed::Final(error(why.to_string())),
    }
}

fn ages(endpoint: &Endpoint) -> Ages {
    Ages {
        idle: endpoint.traffic.idle_timeout,
        max: endpoint.traffic.connection_age_max,
    }
}

fn origin<'e>(endpoint: &Endpoint, address: &'e Address, tls: Option<&ClientTls>) -> Origin<'e> {
    Origin {
        target: &address.target,
        tls: tls.map(|tls| tls.current().1),
        http2: endpoint.traffic.http2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeaderRules, Traffic};

    #[test]
    fn what_the_network_does_may_be_over_a_moment_later() {
        let endpoint = Endpoint::new("a", "http://a/", Traffic::default(), HeaderRules::default());
        for (kind, expected) in [
            (ErrorKind::HostUnreachable, true),
            (ErrorKind::TimedOut, true),
            (ErrorKind::InvalidData, false),
        ] {
            let failed = unanswered(&endpoint, Unanswered::Broken(kind.into()));
            let Failed::Final(error) = failed else {
                panic!("{kind}: the request may have arrived");
            };
            assert_eq!(error.may_retry, expected, "{kind}");
        }
    }
}
