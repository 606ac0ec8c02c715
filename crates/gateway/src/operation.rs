//! One operation on its way through the stages after it was received: what it comes with, and what all these stages use.

use std::sync::Arc;

use ogive_base::Reservation;
use ogive_edge::{
    media::Media,
    receive::{GraphqlRequest, uploads::Entry},
};

use crate::{
    gateway::Serving,
    schema::operation::PreparedOperation,
    shared::{context::OperationContext, operation_values::OperationValues, worker::WorkerState},
};

/// What a request takes besides what it sends and gets, about.
pub(crate) const REQUEST_BYTES: usize = 8 << 10;

/// What an operation comes with.
pub(crate) struct OperationInput<'a> {
    pub(crate) request: &'a mut GraphqlRequest,
    /// What the client reads.
    pub(crate) media: Media,
    /// The files that came along.
    pub(crate) files: Option<Entry<'a>>,
    /// What counts the memory it takes.
    pub(crate) memory: Reservation,
    /// So much of that is the body, which is not needed for long.
    pub(crate) body_bytes: usize,
}

/// What its stages use.
pub(crate) struct OperationRun<'a> {
    pub(crate) serving: &'a Serving,
    pub(crate) context: &'a OperationContext<'a>,
    pub(crate) worker: &'a WorkerState,
    pub(crate) memory: &'a Reservation,
    /// What the client reads.
    pub(crate) media: Media,
}

impl<'a> OperationRun<'a> {
    /// What selectors give for it.
    pub(crate) fn values(&self, operation: &'a Arc<PreparedOperation>) -> OperationValues<'a> {
        OperationValues {
            context: self.context,
            operation,
            observe: &self.serving.options.observe,
        }
    }
}
