//! The stages that some configurations have and others do not. What is switched off is not among them, so it costs no
//! request anything.

use http::Response;

use crate::{
    finish::{Answered, encode_body, write_headers},
    identify::{Head, find_client, take_claims},
    options::GatewayOptions,
};
use ogive_server::ResponseBody;

/// Those of one configuration, in the order in which they happen.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    /// Before anybody else sees the headers.
    pub(crate) identify: Box<[IdentifyStage]>,
    /// Whatever the response says.
    pub(crate) finish: Box<[FinishStage]>,
}

/// Learns who asks.
pub(crate) type IdentifyStage = fn(&GatewayOptions, &mut Head<'_>);
/// Completes a response.
pub(crate) type FinishStage = fn(&Answered<'_>, &mut Response<ResponseBody>);

impl Stages {
    /// The stages that these options ask for.
    pub(crate) fn new(options: &GatewayOptions) -> Self {
        let identify = [
            (options.claims.is_on(), take_claims as IdentifyStage),
            (options.proxies.is_on(), find_client),
        ];
        let finish = [
            (
                options.encoded_bytes_min.is_some(),
                encode_body as FinishStage,
            ),
            (options.cors.is_on(), write_headers),
        ];
        Stages {
            identify: switched_on(identify),
            finish: switched_on(finish),
        }
    }
}

fn switched_on<S>(stages: impl IntoIterator<Item = (bool, S)>) -> Box<[S]> {
    let stages = stages.into_iter().filter(|(is_on, _)| *is_on);
    stages.map(|(_, stage)| stage).collect()
}
