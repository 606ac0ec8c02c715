//! The seam to the executor: one client request's view of the subgraphs.

use std::{cell::OnceCell, future::Future, pin::Pin};

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::{SubgraphRequest, Transport, TransportError, TransportFuture};
use tokio::time::Instant;

use crate::{
    Client, Collected, Endpoint,
    client::Exchanged,
    error::{BREAKER_OPEN, HTTP_ERROR, TIMEOUT, failed},
};

/// Lends a worker's [`Client`] to the execution of one client request. Header rules run at most once per subgraph.
pub struct RequestTransport<'a> {
    client: &'a Client,
    endpoints: &'a [Endpoint],
    client_headers: &'a HeaderMap,
    deadline: Option<Instant>,
    outgoing: Box<[OnceCell<Outgoing>]>,
    collected: Collected,
}

/// What one client request sends to a subgraph besides bodies.
struct Outgoing {
    headers: HeaderMap,
    /// Endpoint and headers as bytes; made when somebody asks for it.
    fingerprint: OnceCell<Bytes>,
}

impl Outgoing {
    fn identity(&self, endpoint: &Endpoint) -> Bytes {
        let bytes = self.fingerprint.get_or_init(|| {
            let sizes = self.headers.iter();
            let sizes = sizes.map(|(n, v)| n.as_str().len() + v.len() + 9);
            let mut bytes = Vec::with_capacity(8 + sizes.sum::<usize>());
            // An endpoint belongs to one schema under one configuration, and lives as long as requests to it do.
            bytes.extend_from_slice(&(std::ptr::from_ref(endpoint) as u64).to_ne_bytes());
            for (name, value) in &self.headers {
                bytes.extend_from_slice(name.as_str().as_bytes());
                bytes.push(b':');
                bytes.extend_from_slice(&(value.len() as u64).to_ne_bytes());
                bytes.extend_from_slice(value.as_bytes());
            }
            bytes.into()
        });
        bytes.clone()
    }
}

/// What a whole answer, or the lack of one, is shared as.
pub(crate) type Outcome = Result<Exchanged, TransportError>;

/// What requests to subgraphs are equal by.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey {
    identity: Bytes,
    body: Bytes,
}

impl<'a> RequestTransport<'a> {
    /// `endpoints` by subgraph index; `deadline` ends every exchange, whatever the subgraph's own timeout.
    pub fn new(
        client: &'a Client,
        endpoints: &'a [Endpoint],
        client_headers: &'a HeaderMap,
        deadline: Option<Instant>,
    ) -> Self {
        RequestTransport {
            client,
            endpoints,
            client_headers,
            deadline,
            outgoing: endpoints.iter().map(|_| OnceCell::new()).collect(),
            collected: Collected::default(),
        }
    }

    /// What the answers' headers add to the client's response.
    pub fn collected(&self) -> &Collected {
        &self.collected
    }
}

impl RequestTransport<'_> {
    /// A subgraph, and what this client request sends to it.
    fn outgoing(&self, subgraph: u32) -> Option<(&Endpoint, &Outgoing)> {
        let endpoint = self.endpoints.get(subgraph as usize)?;
        let outgoing = self.outgoing.get(subgraph as usize)?;
        let outgoing = outgoing.get_or_init(|| Outgoing {
            headers: endpoint.headers.apply(self.client_headers),
            fingerprint: OnceCell::new(),
        });
        Some((endpoint, outgoing))
    }

    /// Everything that decides what a subgraph is sent for this client request besides bodies, and who asks, as bytes
    /// that are equal only if all of it is.
    pub fn identity(&self, subgraph: u32) -> Option<Bytes> {
        let (endpoint, outgoing) = self.outgoing(subgraph)?;
        Some(outgoing.identity(endpoint))
    }

    /// Sends a request, or joins an equal one that is under way.
    async fn shared(
        &self,
        endpoint: &Endpoint,
        outgoing: &Outgoing,
        request: SubgraphRequest,
        deadline: Instant,
    ) -> Outcome {
        if !request.idempotent || !endpoint.traffic.deduplicate_query {
            return self
                .tries(endpoint, &outgoing.headers, request, deadline)
                .await;
        }
        let key = RequestKey {
            identity: outgoing.identity(endpoint),
            body: request.body.clone(),
        };
        let tries = || -> Pin<Box<dyn Future<Output = Outcome>>> {
            Box::pin(self.tries(endpoint, &outgoing.headers, request, deadline))
        };
        self.client.flights.fly(key, tries).await
    }

    /// Sends a request, and once more if it failed, may succeed and policy and budget allow it.
    async fn tries(
        &self,
        endpoint: &Endpoint,
        headers: &HeaderMap,
        request: SubgraphRequest,
        deadline: Instant,
    ) -> Outcome {
        let (traffic, health) = (&endpoint.traffic, &*endpoint.health);
        let retry = traffic.retry.filter(|_| request.idempotent);
        if let Some(retry) = &retry {
            health.deposit(retry);
        }
        let mut attempt = 0;
        loop {
            let Some(permit) = health.admit(traffic.breaker) else {
                return Err(failed(
                    BREAKER_OPEN,
                    &endpoint.name,
                    "the subgraph has failed too often and is left alone for a while",
                    "its circuit breaker is open",
                ));
            };
            let exchange = self.client.exchange(
                endpoint,
                headers.clone(),
                request.body.clone(),
                request.idempotent,
            );
            let exchanged = match tokio::time::timeout_at(deadline, exchange).await {
                Ok(exchanged) => exchanged,
                Err(_) => Err(failed(
                    TIMEOUT,
                    &endpoint.name,
                    "the subgraph took too long",
                    format!("no whole answer within {:?}", traffic.timeout),
                )
                .into()),
            };
            let well = matches!(&exchanged, Ok(e) if e.response.status < 500);
            if permit.done(well) {
                tracing::warn!(subgraph = &*endpoint.name, "the circuit breaker opens");
            }
            let (may_retry, at_least) = match &exchanged {
                Ok(e) => (
                    matches!(e.response.status, 429 | 502 | 503 | 504),
                    e.retry_after,
                ),
                Err(e) => (e.transient, None),
            };
            let wait = retry
                .filter(|retry| may_retry && attempt < retry.attempts)
                .and_then(|retry| health.withdraw(&retry, attempt))
                .map(|wait| wait.max(at_least.unwrap_or_default()))
                // An answer that comes too late helps nobody.
                .filter(|wait| Instant::now() + *wait < deadline);
            let Some(wait) = wait else {
                return exchanged.map_err(|e| e.error);
            };
            attempt += 1;
            tracing::debug!(
                subgraph = &*endpoint.name,
                attempt,
                ?wait,
                "trying once more"
            );
            tokio::time::sleep(wait).await;
        }
    }
}

impl Transport for RequestTransport<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        Box::pin(async move {
            let Some((endpoint, outgoing)) = self.outgoing(request.subgraph) else {
                return Err(TransportError {
                    code: HTTP_ERROR,
                    message: "the subgraph is not known".into(),
                    detail: format!("no endpoint for subgraph {}", request.subgraph),
                });
            };
            let own = Instant::now() + endpoint.traffic.timeout;
            let deadline = self.deadline.map_or(own, |d| d.min(own));
            let number = self.collected.sent();
            let result = self.shared(endpoint, outgoing, request, deadline).await;
            if let Ok(exchanged) = &result {
                let rules = &endpoint.response_headers;
                self.collected.answered(number, rules, &exchanged.headers);
            }
            if let Err(error) = &result {
                tracing::warn!(
                    subgraph = &*endpoint.name,
                    code = error.code,
                    detail = error.detail,
                    "subgraph request failed"
                );
            }
            result.map(|exchanged| exchanged.response)
        })
    }

    fn shows_errors(&self, subgraph: u32) -> bool {
        let endpoint = self.endpoints.get(subgraph as usize);
        endpoint.is_none_or(|endpoint| endpoint.shows_errors)
    }
}
