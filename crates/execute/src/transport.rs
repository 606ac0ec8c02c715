//! What the executor needs from the network: bytes to a subgraph, bytes back.

use std::{future::Future, num::NonZeroU32, pin::Pin};

use bytes::Bytes;
use futures_core::Stream;

use ogive_failure::codes;

pub use ogive_failure::{ErrorCode, Failure};

use crate::error_rules::ErrorRules;
use crate::{failure_report::FailureReport, limits::Reuse, stream_scan::StreamScan};

/// One request to a subgraph.
#[derive(Clone, Debug)]
pub struct SubgraphRequest {
    /// Index into [`ogive_plan::Plan::subgraphs`].
    pub subgraph: u32,
    /// The JSON body.
    pub body: Bytes,
    /// Whether it may be retried or shared: true for queries, never for mutations.
    pub idempotent: bool,
}

/// A subgraph's answer, any HTTP status.
#[derive(Clone, Debug)]
pub struct SubgraphResponse {
    /// HTTP status code.
    pub status: u16,
    /// The whole body.
    pub body: Bytes,
}

/// A future of a subgraph's answer. Dropping it cancels the request.
pub type TransportFuture<'a> =
    Pin<Box<dyn Future<Output = Result<SubgraphResponse, Failure>> + 'a>>;

/// An event: what a subgraph answers to a subscription, again and again. An error is the last one.
pub type Event = Result<SubgraphResponse, Failure>;

/// The events of one subscription, in their order. It ends where the subgraph ends it. Dropping it ends the subscription.
pub type EventStream<'a> = Pin<Box<dyn Stream<Item = Event> + 'a>>;

/// A future of the events of a subscription: complete when the subgraph has accepted it. Dropping it gives it up.
pub type EventStreamFuture<'a> =
    Pin<Box<dyn Future<Output = Result<EventStream<'a>, Failure>> + 'a>>;

/// What a subscription that nobody can open is answered with.
pub fn no_events() -> Failure {
    Failure::new(
        codes::SUBREQUEST_NO_EVENTS,
        "This subgraph cannot be subscribed to.",
        "the transport of this subgraph knows no subscriptions",
    )
}

/// How much one request may ask, and what becomes of it when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most entity representations in one request; more are sent as several requests at a time. Default: no limit.
    pub representations_max: Option<NonZeroU32>,
    /// Whether a query of several look-ups, or of root fields and look-ups, that is answered with `data: null` is sent again
    /// in pieces, once, so that one of them cannot null the others. Default yes.
    pub split_retry: bool,
    /// What of the subgraph's answers may be reused inside one operation, if
    /// [`ExecuteOptions::reuse`](crate::ExecuteOptions::reuse) allows it. Default everything.
    pub reuse: Reuse,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            representations_max: None,
            split_retry: true,
            reuse: Reuse::All,
        }
    }
}

/// Sends requests to subgraphs. One value serves one client request, so it may carry that request's headers,
/// deadline and trace. Futures stay on the thread that made them.
pub trait Transport {
    /// Sends one request.
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_>;

    /// Sends one request whose answer may be large, and lets `ahead` look at the body while it arrives, if it comes as it
    /// is, in one piece of memory. Default: nobody looks.
    fn send_scanned<'a>(
        &'a self,
        request: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        let _ = ahead;
        self.send(request)
    }

    /// Opens the source of a subscription, by a request of [`source_request`](crate::source_request). Default: there are
    /// no events, which an error says.
    fn subscribe(&self, request: SubgraphRequest) -> EventStreamFuture<'_> {
        let _ = request;
        Box::pin(std::future::ready(Err(no_events())))
    }

    /// How much one request to a subgraph may ask, and what becomes of it when it fails.
    fn request_limits(&self, subgraph: u32) -> RequestLimits {
        let _ = subgraph;
        RequestLimits::default()
    }

    /// Whether the client may see message, code and extensions of the errors this subgraph reports. Otherwise it
    /// learns where there was an error, and no more.
    fn shows_errors(&self, subgraph: u32) -> bool {
        let _ = subgraph;
        true
    }

    /// Whether the client may learn from an error which subgraph it comes from. Default no, unless
    /// [`error_service_names`](crate::ExecuteOptions::error_service_names) says so.
    fn names_service(&self, subgraph: u32) -> bool {
        let _ = subgraph;
        false
    }

    /// What clients are told of errors in place of what happened. Default: what happened.
    fn error_rules(&self) -> Option<&dyn ErrorRules> {
        None
    }

    /// Learns of everything that goes wrong, at once. Default: nobody does.
    fn failed(&self, failure: &FailureReport<'_>) {
        let _ = failure;
    }

    /// Learns how many bytes the objects of answers take besides the answers themselves. Default: nobody counts.
    fn holds(&self, bytes: usize) {
        let _ = bytes;
    }
}
