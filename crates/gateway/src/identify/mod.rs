//! Who asks: what is claimed of the caller, and the client behind proxies.

pub mod proxies;

use http::request::Parts;
use ogive_config::{Client, Peer};

use crate::{authorize::CallerClaims, options::GatewayOptions};

/// What is known of a request before its path is looked at.
pub(crate) struct Head<'a> {
    pub(crate) parts: &'a mut Parts,
    /// Who sent it.
    pub(crate) peer: Peer,
    /// Who asks: the peer, or the client that a trusted proxy names.
    pub(crate) client: Client,
}

/// Takes what names the caller out of the headers: it goes no further.
pub(crate) fn take_claims(options: &GatewayOptions, head: &mut Head<'_>) {
    let caller = options.claims.take_all(&mut head.parts.headers, head.peer);
    head.parts.extensions.insert(CallerClaims(caller));
}

/// From here on it is the client that counts, not a proxy.
pub(crate) fn find_client(options: &GatewayOptions, head: &mut Head<'_>) {
    head.client = options.proxies.client(&head.parts.headers, head.peer);
}
