//! What answers for a subgraph that is no HTTP service, such as a message broker.
//!
//! It stands where the HTTP client does, so what is around requests holds for it, too: who is asked once for equal
//! requests, who is told of failures, how much a request may hold. An endpoint with a service has no URL.

use std::{fmt, time::Duration};

use ogive_execute::{EventStreamFuture, Failure, SubgraphRequest, TransportFuture};

/// What is asked, and how patient whoever asks is.
pub struct ServiceRequest<'a> {
    /// The request.
    pub request: SubgraphRequest,
    /// How long an answer, or the beginning of a stream, may take.
    pub within: Duration,
    /// Largest answer or event in bytes.
    pub bytes_max: usize,
    /// Learns that a stream was lost, and is going to be opened again.
    pub on_loss: Box<dyn Fn(&Failure) + 'a>,
}

/// Answers requests and subscriptions for one subgraph.
pub trait SubgraphService: fmt::Debug + Send + Sync {
    /// Answers a query or a mutation.
    fn send<'a>(&'a self, asked: ServiceRequest<'a>) -> TransportFuture<'a>;
    /// Says everything that the events of a request with this body depend on besides it: two services with equal ones send
    /// the same. `None` if that cannot be told.
    fn fingerprint(&self, body: &[u8]) -> Option<String>;
    /// Opens a subscription. Events come in order; what is lost is told.
    fn subscribe<'a>(&'a self, asked: ServiceRequest<'a>) -> EventStreamFuture<'a>;
}
