//! The stages that some configurations have and others do not. What is switched off is not among them, so it costs no
//! request anything.

use http::HeaderMap;

use crate::{
    finish::FinishStage,
    identify::{find_client, take_api_key, take_claims, tokens::AuthenticationOptions},
    options::GatewayOptions,
    shared::context::Identity,
};

/// Those of one configuration, in the order in which they happen.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    /// Before anybody else sees the headers.
    pub(crate) identify: Box<[IdentifyStage]>,
    /// Whatever the response says.
    pub(crate) finish: Box<[FinishStage]>,
}

/// Learns who asks.
pub(crate) type IdentifyStage = fn(&GatewayOptions, &mut HeaderMap, &mut Identity);

impl Stages {
    /// The stages that these options ask for.
    pub(crate) fn new(options: &GatewayOptions) -> Self {
        let authentication = options.authentication.as_ref();
        let api_keys = authentication.and_then(AuthenticationOptions::api_key_header);
        let has_api_keys = api_keys.is_some();
        let identify = [
            (options.claims.is_on(), take_claims as IdentifyStage),
            (has_api_keys, take_api_key),
            (options.proxies.is_on(), find_client),
        ];
        let identify = identify.into_iter().filter(|(is_on, _)| *is_on);
        let encode = options.encoded_bytes_min.map(FinishStage::Encode);
        let cors = options.cors.is_on().then_some(FinishStage::Cors);
        Stages {
            identify: identify.map(|(_, stage)| stage).collect(),
            finish: encode.into_iter().chain(cors).collect(),
        }
    }
}
