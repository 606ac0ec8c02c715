//! What every response gets, whatever it says: encoding, CORS.

use std::sync::Arc;

use http::{Response, request::Parts};
use ogive_base::MemoryBudget;

use crate::{options::GatewayOptions, router::cors::Cors, shared::worker::WorkerState};
use ogive_server::body::{ResponseBody, encode};

/// What a response is completed by.
pub(crate) struct Answered<'a> {
    pub(crate) options: &'a GatewayOptions,
    /// The request that it answers.
    pub(crate) parts: &'a Parts,
    pub(crate) worker: &'a WorkerState,
    pub(crate) memory: &'a Arc<MemoryBudget>,
}

/// Completes a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FinishStage {
    /// Encodes what has so many bytes, as the client accepts it.
    Encode(usize),
    /// Says what pages of other origins may do with a response of the GraphQL endpoint.
    Cors,
}

impl FinishStage {
    pub(crate) fn finish(self, answered: &Answered<'_>, response: &mut Response<ResponseBody>) {
        match self {
            FinishStage::Encode(bytes_min) => {
                let reserve = || answered.worker.reserve(answered.memory);
                encode(&answered.parts.headers, bytes_min, response, reserve);
            }
            FinishStage::Cors => write_cors(answered, response),
        }
    }
}

fn write_cors(answered: &Answered<'_>, response: &mut Response<ResponseBody>) {
    let Answered { options, parts, .. } = answered;
    if parts.uri.path().starts_with(&options.graphql_path) {
        let is_preflight = Cors::is_preflight(parts);
        let headers = response.headers_mut();
        options.cors.write(&parts.headers, is_preflight, headers);
    }
}
