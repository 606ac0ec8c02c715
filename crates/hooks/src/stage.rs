//! Where hooks are called.

use crate::headers::Peer;

/// A stage of a request, as the protocol of coprocessors calls it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// An HTTP request came in; its body is not read as GraphQL yet.
    RouterRequest,
    /// An HTTP response is about to leave.
    RouterResponse,
    /// A GraphQL request was read.
    SupergraphRequest,
    /// A GraphQL response was made, or a part of one.
    SupergraphResponse,
    /// An operation was planned.
    ExecutionRequest,
    /// A plan was executed.
    ExecutionResponse,
    /// A request to a subgraph is about to leave.
    SubgraphRequest,
    /// A subgraph has answered.
    SubgraphResponse,
}

impl Stage {
    /// Every stage, in the order in which a request passes them, responses on the way back.
    pub const ALL: [Stage; 8] = [
        Stage::RouterRequest,
        Stage::SupergraphRequest,
        Stage::ExecutionRequest,
        Stage::SubgraphRequest,
        Stage::SubgraphResponse,
        Stage::ExecutionResponse,
        Stage::SupergraphResponse,
        Stage::RouterResponse,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Stage::RouterRequest => "RouterRequest",
            Stage::RouterResponse => "RouterResponse",
            Stage::SupergraphRequest => "SupergraphRequest",
            Stage::SupergraphResponse => "SupergraphResponse",
            Stage::ExecutionRequest => "ExecutionRequest",
            Stage::ExecutionResponse => "ExecutionResponse",
            Stage::SubgraphRequest => "SubgraphRequest",
            Stage::SubgraphResponse => "SubgraphResponse",
        }
    }
    /// The other side of the headers at the stage.
    pub fn peer(self) -> Peer {
        if self.is_of_subgraph() {
            Peer::Subgraph
        } else {
            Peer::Client
        }
    }
    /// Whether a body is a text here, and not an object.
    pub fn body_is_text(self) -> bool {
        matches!(self, Stage::RouterRequest | Stage::RouterResponse)
    }
    /// Whether it is about a request to a subgraph, or its answer.
    pub fn is_of_subgraph(self) -> bool {
        matches!(self, Stage::SubgraphRequest | Stage::SubgraphResponse)
    }
    /// Whether it is about something on its way back to the client.
    pub fn is_response(self) -> bool {
        matches!(
            self,
            Stage::RouterResponse
                | Stage::SupergraphResponse
                | Stage::ExecutionResponse
                | Stage::SubgraphResponse
        )
    }
}
