//! What every response gets, whatever it says: encoding, CORS.

use std::sync::Arc;

use http::{Response, request::Parts};
use ogive_base::MemoryBudget;
use ogive_edge::cors::Cors;

use crate::{
    options::GatewayOptions,
    shared::{stage::Stage, worker::WorkerState},
};
use ogive_server::body::{ResponseBody, encode};

/// Completes a response, whatever it says.
#[derive(Debug)]
pub(crate) struct Finish {
    steps: Box<[FinishStep]>,
    options: Arc<GatewayOptions>,
    memory: Arc<MemoryBudget>,
}

#[derive(Clone, Copy, Debug)]
enum FinishStep {
    /// Encodes what has so many bytes, as the client accepts it.
    Encode(usize),
    /// Says what pages of other origins may do with a response of the GraphQL endpoint.
    Cors,
}

impl Stage for Finish {
    const NAME: &'static str = "finish";
    const DOES: &'static str = "encode the response, write headers for other origins";
}

impl Finish {
    /// Does what the options ask for, and nothing else.
    pub(crate) fn new(options: &Arc<GatewayOptions>, memory: &Arc<MemoryBudget>) -> Self {
        let encode = options.encoded_bytes_min.map(FinishStep::Encode);
        let cors = options.cors.is_on().then_some(FinishStep::Cors);
        Finish {
            steps: encode.into_iter().chain(cors).collect(),
            options: Arc::clone(options),
            memory: Arc::clone(memory),
        }
    }
    /// `parts`: the head of the request that the response answers.
    pub(crate) fn run(
        &self,
        parts: &Parts,
        worker: &WorkerState,
        response: &mut Response<ResponseBody>,
    ) {
        for step in &self.steps {
            match step {
                FinishStep::Encode(bytes_min) => {
                    let reserve = || worker.reserve(&self.memory);
                    encode(&parts.headers, *bytes_min, response, reserve);
                }
                FinishStep::Cors => write_cors(&self.options, parts, response),
            }
        }
    }
}

fn write_cors(options: &GatewayOptions, parts: &Parts, response: &mut Response<ResponseBody>) {
    if parts.uri.path().starts_with(&options.graphql_path) {
        let is_preflight = Cors::is_preflight(parts);
        let headers = response.headers_mut();
        options.cors.write(&parts.headers, is_preflight, headers);
    }
}
