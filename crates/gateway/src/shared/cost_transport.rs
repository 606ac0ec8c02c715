//! Subgraphs that are not asked, because what is asked of them costs too much: a transport that answers for them.

use std::future::ready;

use ogive_execute::{
    ErrorRules, EventStreamFuture, Failure, FailureReport, RequestLimits, StreamScan,
    SubgraphRequest, Transport, TransportFuture,
};
use ogive_telemetry::codes;

/// A subgraph that is not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RefusedSubgraph {
    /// Its index in the plan.
    pub(crate) subgraph: u32,
    /// What is asked of it is estimated to cost so much.
    pub(crate) estimated: u64,
    /// It may cost no more.
    pub(crate) max: u64,
}

/// Sends what is for other subgraphs.
pub(crate) struct CostTransport<'t> {
    pub(crate) transport: &'t dyn Transport,
    pub(crate) refused: &'t [RefusedSubgraph],
}

/// The transport, or one over it that does not ask some of the subgraphs.
pub(crate) fn sender<'t>(
    limited: &'t Option<CostTransport<'t>>,
    transport: &'t dyn Transport,
) -> &'t dyn Transport {
    match limited {
        None => transport,
        Some(limited) => limited,
    }
}

impl CostTransport<'_> {
    fn refusal(&self, subgraph: u32) -> Option<Failure> {
        let refused = self.refused.iter().find(|row| row.subgraph == subgraph)?;
        let (estimated, max) = (refused.estimated, refused.max);
        let message = format!(
            "what is asked of this subgraph is estimated to cost {estimated}, and may cost no more than {max}"
        );
        let code = codes::SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE;
        Some(Failure::new(code, message.clone(), message))
    }
}

impl Transport for CostTransport<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        match self.refusal(request.subgraph) {
            Some(error) => Box::pin(ready(Err(error))),
            None => self.transport.send(request),
        }
    }
    fn send_scanned<'a>(
        &'a self,
        request: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        match self.refusal(request.subgraph) {
            Some(error) => Box::pin(ready(Err(error))),
            None => self.transport.send_scanned(request, ahead),
        }
    }
    fn subscribe(&self, request: SubgraphRequest) -> EventStreamFuture<'_> {
        match self.refusal(request.subgraph) {
            Some(error) => Box::pin(ready(Err(error))),
            None => self.transport.subscribe(request),
        }
    }
    fn request_limits(&self, subgraph: u32) -> RequestLimits {
        self.transport.request_limits(subgraph)
    }
    fn shows_errors(&self, subgraph: u32) -> bool {
        // What it may cost is no secret of the subgraph.
        self.refused.iter().any(|row| row.subgraph == subgraph)
            || self.transport.shows_errors(subgraph)
    }
    fn names_service(&self, subgraph: u32) -> bool {
        self.transport.names_service(subgraph)
    }
    fn error_rules(&self) -> Option<&dyn ErrorRules> {
        self.transport.error_rules()
    }
    fn failed(&self, failure: &FailureReport<'_>) {
        self.transport.failed(failure);
    }
    fn holds(&self, bytes: usize) {
        self.transport.holds(bytes);
    }
}
