//! Stages in Rust. They stand where a coprocessor does, and are told what one would be.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use ogive_execute::{EventStreamFuture, SubgraphResponse, TransportFuture, no_events};
use ogive_failure::{Failure, codes};
use ogive_transport::{ServiceRequest, SubgraphService};
use serde_json::Value;

use crate::WorkerFuture;

/// Is told of requests and responses at the stages that `coprocessor` of the configuration switches on, and may change or end
/// them. Conditions, selections, time-outs and `on_error` are those of the configuration; its `url` is needed and never asked.
pub trait Stages: Send + Sync + 'static {
    /// One message of the protocol of coprocessors, version 1: `stage` says at which stage, `headers`, `body`, `context` and so on are
    /// there as selected. What is returned stands for the reply: the message as it is, or with other members; `control` set to
    /// `{"break": 401}` ends the request. An error is a failure of the coprocessor.
    fn call(&self, message: Value) -> WorkerFuture<'_, Result<Value, String>>;
}

/// Stages as the gateway asks them.
pub(crate) struct EmbeddedStages(pub(crate) Arc<dyn Stages>);

impl fmt::Debug for EmbeddedStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedStages")
    }
}

impl EmbeddedStages {
    async fn answer(&self, message: Bytes) -> Result<SubgraphResponse, Failure> {
        let failed = |why: String| {
            let message = "the stages failed";
            Failure::new(codes::COPROCESSOR_FAILED, message, why)
        };
        let message: Value =
            serde_json::from_slice(&message).map_err(|error| failed(error.to_string()))?;
        let reply = self.0.call(message).await.map_err(failed)?;
        let body = serde_json::to_vec(&reply).map_err(|error| failed(error.to_string()))?;
        Ok(SubgraphResponse {
            status: 200,
            body: body.into(),
        })
    }
}

impl SubgraphService for EmbeddedStages {
    fn send<'a>(&'a self, asked: ServiceRequest<'a>) -> TransportFuture<'a> {
        Box::pin(self.answer(asked.request.body))
    }
    fn fingerprint(&self, _: &[u8]) -> Option<String> {
        None
    }
    fn subscribe<'a>(&'a self, _: ServiceRequest<'a>) -> EventStreamFuture<'a> {
        Box::pin(std::future::ready(Err(no_events())))
    }
}
