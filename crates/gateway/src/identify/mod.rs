//! Who asks: what is claimed of the caller, and the client behind proxies. What is found is the [`Identity`] that all
//! later stages read.

pub mod explain_token;
pub mod proxies;
pub mod tokens;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header::Entry};
use ogive_transport::headers::is_read_as;

use crate::{
    identify::tokens::AuthenticationOptions, options::GatewayOptions, shared::context::Identity,
};

/// Takes what names the caller out of the headers: it goes no further.
pub(crate) fn take_claims(
    options: &GatewayOptions,
    headers: &mut HeaderMap,
    identity: &mut Identity,
) {
    let caller = options.claims.take_all(headers, identity.peer);
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

/// Takes a header out, and what others read as one of its name.
pub(crate) fn take(headers: &mut HeaderMap, name: &HeaderName) -> Vec<HeaderValue> {
    let is_like = |other: &&HeaderName| *other != name && is_read_as(other, name);
    let like: Vec<HeaderName> = headers.keys().filter(is_like).cloned().collect();
    for name in like {
        headers.remove(name);
    }
    match headers.entry(name) {
        Entry::Occupied(entry) => entry.remove_entry_mult().1.collect(),
        Entry::Vacant(_) => Vec::new(),
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
