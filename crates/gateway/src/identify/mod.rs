//! Who asks: what is claimed of the caller, and the client behind proxies. What is found is the [`Identity`] that all
//! later stages read.

pub(crate) mod caller;
pub(crate) mod caller_options;
pub(crate) mod components;
pub(crate) mod credential;
pub mod explain_token;
pub(crate) mod revocation;
pub mod revocation_options;
pub mod tokens;

use std::sync::Arc;

use http::HeaderMap;
use ogive_base::Peer;
use ogive_edge::header::take;

use crate::{
    identify::tokens::AuthenticationOptions,
    options::GatewayOptions,
    shared::{identity::Identity, stage::Stage},
};

/// Finds out who asks, as far as the head of a request says it, before anything else sees the headers.
#[derive(Debug)]
pub(crate) struct Identify {
    steps: Box<[IdentifyStep]>,
    options: Arc<GatewayOptions>,
}

type IdentifyStep = fn(&GatewayOptions, &mut HeaderMap, &mut Identity);

impl Stage for Identify {
    const NAME: &'static str = "identify";
    const DOES: &'static str =
        "take claims and API keys out of the headers, find the client behind proxies";
}

impl Identify {
    /// Does what the options ask for, and nothing else.
    pub(crate) fn new(options: &Arc<GatewayOptions>) -> Self {
        let authentication = options.authentication.as_ref();
        let api_keys = authentication.and_then(AuthenticationOptions::api_key_header);
        let steps = [
            (options.claims.is_on(), take_claims as IdentifyStep),
            (api_keys.is_some(), take_api_key),
            (options.proxies.is_on(), find_client),
        ];
        let steps = steps.into_iter().filter(|(is_on, _)| *is_on);
        Identify {
            steps: steps.map(|(_, step)| step).collect(),
            options: Arc::clone(options),
        }
    }
    pub(crate) fn run(&self, headers: &mut HeaderMap, peer: Peer) -> Identity {
        let mut identity = Identity::of(peer);
        for step in &self.steps {
            step(&self.options, headers, &mut identity);
        }
        identity
    }
}

/// Takes what names the caller out of the headers: it goes no further.
fn take_claims(options: &GatewayOptions, headers: &mut HeaderMap, identity: &mut Identity) {
    let caller = options.claims.take(headers, identity.peer);
    identity.caller = Some(Box::new(caller.map(Arc::new)));
}

/// Takes API keys out of the headers: they are secrets, and for nobody else.
fn take_api_key(options: &GatewayOptions, headers: &mut HeaderMap, identity: &mut Identity) {
    let name = options.authentication.as_ref();
    if let Some(name) = name.and_then(AuthenticationOptions::api_key_header) {
        identity.api_key = take(headers, name).into();
    }
}

/// From here on it is the client that counts, not a proxy.
fn find_client(options: &GatewayOptions, headers: &mut HeaderMap, identity: &mut Identity) {
    identity.client = options.proxies.client(headers, identity.peer);
}
