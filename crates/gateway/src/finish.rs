//! What every response gets, whatever it says.

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

/// Encodes what is large enough, as the client accepts it.
pub(crate) fn encode_body(answered: &Answered<'_>, response: &mut Response<ResponseBody>) {
    if let Some(bytes_min) = answered.options.encoded_bytes_min {
        let reserve = || answered.worker.reserve(answered.memory);
        encode(&answered.parts.headers, bytes_min, response, reserve);
    }
}

/// Says what pages of other origins may do with a response of the GraphQL endpoint.
pub(crate) fn write_headers(answered: &Answered<'_>, response: &mut Response<ResponseBody>) {
    let Answered { options, parts, .. } = answered;
    if parts.uri.path().starts_with(&options.graphql_path) {
        let is_preflight = Cors::is_preflight(parts);
        let headers = response.headers_mut();
        options.cors.write(&parts.headers, is_preflight, headers);
    }
}
