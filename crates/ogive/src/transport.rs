//! Transports in Rust: what answers for a subgraph in place of HTTP.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use ogive_execute::{EventStreamFuture, SubgraphResponse, TransportFuture, no_events};
use ogive_failure::{Failure, codes};
use ogive_transport::{ServiceRequest, SubgraphService};

use crate::WorkerFuture;

/// What is asked of a subgraph.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The body as it would be sent: JSON with `query`, `variables` and `operationName`.
    pub body: Vec<u8>,
    /// Whether it may be asked twice: it is no mutation.
    pub idempotent: bool,
    /// How long an answer may take; then it is given up.
    pub within: Duration,
}

/// Answers for a subgraph. Rates, circuit breaker, time-outs, shared requests and the size of answers are those of the
/// configuration; header rules and proofs of who asks are for HTTP alone. Subscriptions are not offered.
pub trait SubgraphTransport: Send + Sync + 'static {
    /// A GraphQL response as JSON; an error says, for the operator, why there is none.
    fn send(&self, request: Request) -> WorkerFuture<'_, Result<Vec<u8>, String>>;
}

/// A transport as the gateway asks it.
pub(crate) struct EmbeddedTransport(pub(crate) Arc<dyn SubgraphTransport>);

impl fmt::Debug for EmbeddedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedTransport")
    }
}

impl EmbeddedTransport {
    async fn answer(&self, request: Request, most: usize) -> Result<SubgraphResponse, Failure> {
        let failed = |why: String| {
            let message = "the subgraph cannot be asked";
            Failure::new(codes::SUBREQUEST_HTTP_ERROR, message, why)
        };
        let body = self.0.send(request).await.map_err(failed)?;
        if body.len() > most {
            return Err(failed(format!("the answer has more than {most} bytes")));
        }
        Ok(SubgraphResponse {
            status: 200,
            body: body.into(),
        })
    }
}

impl SubgraphService for EmbeddedTransport {
    fn send<'a>(&'a self, asked: ServiceRequest<'a>) -> TransportFuture<'a> {
        let request = Request {
            body: Bytes::into(asked.request.body),
            idempotent: asked.request.idempotent,
            within: asked.within,
        };
        Box::pin(self.answer(request, asked.bytes_max))
    }
    fn fingerprint(&self, _: &[u8]) -> Option<String> {
        None
    }
    fn subscribe<'a>(&'a self, _: ServiceRequest<'a>) -> EventStreamFuture<'a> {
        Box::pin(std::future::ready(Err(no_events())))
    }
}
