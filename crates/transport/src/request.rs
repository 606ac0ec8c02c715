//! The seam to the executor: one client request's view of the subgraphs.

use std::cell::OnceCell;

use http::HeaderMap;
use ogive_execute::{SubgraphRequest, Transport, TransportError, TransportFuture};
use tokio::time::Instant;

use crate::{
    Client, Endpoint,
    error::{HTTP_ERROR, TIMEOUT, failed},
};

/// Lends a worker's [`Client`] to the execution of one client request. Header rules run at most once per subgraph.
pub struct RequestTransport<'a> {
    client: &'a Client,
    endpoints: &'a [Endpoint],
    client_headers: &'a HeaderMap,
    deadline: Option<Instant>,
    headers: Box<[OnceCell<HeaderMap>]>,
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
            headers: endpoints.iter().map(|_| OnceCell::new()).collect(),
        }
    }
}

impl Transport for RequestTransport<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        Box::pin(async move {
            let index = request.subgraph as usize;
            let (Some(endpoint), Some(headers)) =
                (self.endpoints.get(index), self.headers.get(index))
            else {
                return Err(TransportError {
                    code: HTTP_ERROR,
                    message: "the subgraph is not known".into(),
                    detail: format!("no endpoint for subgraph {index}"),
                });
            };
            let headers = headers.get_or_init(|| endpoint.headers.apply(self.client_headers));
            let own = Instant::now() + endpoint.traffic.timeout;
            let deadline = self.deadline.map_or(own, |d| d.min(own));
            let exchange =
                self.client
                    .exchange(endpoint, headers.clone(), request.body, request.idempotent);
            let result = match tokio::time::timeout_at(deadline, exchange).await {
                Ok(result) => result,
                Err(_) => Err(failed(
                    TIMEOUT,
                    &endpoint.name,
                    "the subgraph took too long",
                    format!("no whole answer within {:?}", endpoint.traffic.timeout),
                )),
            };
            if let Err(error) = &result {
                tracing::warn!(
                    subgraph = &*endpoint.name,
                    code = error.code,
                    detail = error.detail,
                    "subgraph request failed"
                );
            }
            result
        })
    }

    fn shows_errors(&self, subgraph: u32) -> bool {
        let endpoint = self.endpoints.get(subgraph as usize);
        endpoint.is_none_or(|endpoint| endpoint.shows_errors)
    }
}
