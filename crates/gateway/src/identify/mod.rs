//! Who asks: what is claimed of the caller, and the client behind proxies. What is found is the [`Identity`] that all
//! later stages read.

pub mod explain_token;
pub mod proxies;
pub mod tokens;

use std::sync::Arc;

use http::HeaderMap;

use crate::{options::GatewayOptions, shared::context::Identity};

/// Takes what names the caller out of the headers: it goes no further.
pub(crate) fn take_claims(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    let caller = options.claims.take_all(headers, identity.peer);
    identity.caller = Some(Box::new(caller.map(Arc::new)));
}

/// From here on it is the client that counts, not a proxy.
pub(crate) fn find_client(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    identity.client = options.proxies.client(headers, identity.peer);
}
