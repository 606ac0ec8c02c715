//! Who asks: what is claimed of the caller, and the client behind proxies. What is found is the [`Identity`] that all
//! later stages read.

pub(crate) mod caller;
pub(crate) mod caller_options;
pub(crate) mod components;
pub(crate) mod credential;
pub mod explain_token;
pub(crate) mod kept_head;
pub mod proxies;
pub(crate) mod revocation;
pub mod revocation_options;
pub mod tokens;

use std::sync::Arc;

use http::HeaderMap;

use crate::{
    identify::tokens::AuthenticationOptions, options::GatewayOptions, shared::context::Identity,
    shared::header::take,
};

/// Takes what names the caller out of the headers: it goes no further.
pub(crate) fn take_claims(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    let caller = options.claims.take(headers, identity.peer);
    identity.caller = Some(Box::new(caller.map(Arc::new)));
}

/// Takes API keys out of the headers: they are secrets, and for nobody else.
pub(crate) fn take_api_key(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    let name = options.authentication.as_ref();
    if let Some(name) = name.and_then(AuthenticationOptions::api_key_header) {
        identity.api_key = take(headers, name).into();
    }
}

/// From here on it is the client that counts, not a proxy.
pub(crate) fn find_client(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    identity.client = options.proxies.client(headers, identity.peer);
}
