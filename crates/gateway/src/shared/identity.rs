//! Who asks, as the stages find it out, one after the other.

use std::{borrow::Cow, sync::Arc};

use http::HeaderValue;
use ogive_base::{Client, Peer};
use ogive_edge::error::{RequestError, unauthenticated};
use ogive_identity::Caller;

/// Who asks: what the identify stage has found, for all others.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Who sent it.
    pub(crate) peer: Peer,
    /// Who asks: the peer, or the client that a trusted proxy names.
    pub(crate) client: Client,
    /// What is known of the caller, or why it cannot be believed, which refuses what is GraphQL; `None` if nobody looked. In
    /// a box, because most requests have none.
    pub(crate) caller: Option<Box<Result<Arc<Caller>, RequestError>>>,
    /// Whether the caller is known by what the client brings, not by what a proxy says of it.
    pub(crate) is_proved: bool,
    /// The component that says who asks, if one does.
    pub(crate) component: Option<&'static str>,
    /// What it brings as its API key, which is in the headers no more.
    pub(crate) api_key: Box<[HeaderValue]>,
}

impl Identity {
    /// Of a peer of whom nothing else is known.
    pub(crate) fn of(peer: Peer) -> Self {
        Identity {
            peer,
            client: peer.client(),
            caller: None,
            is_proved: false,
            component: None,
            api_key: Box::default(),
        }
    }
    /// Of the same peer and client, of whom nothing else is known.
    pub(crate) fn like(other: &Identity) -> Self {
        Identity {
            client: other.client,
            ..Identity::of(other.peer)
        }
    }
    /// The caller, if anybody is known.
    pub(crate) fn caller(&self) -> Result<Option<Arc<Caller>>, RequestError> {
        match self.caller.as_deref() {
            None => Ok(None),
            Some(Ok(caller)) => Ok(Some(Arc::clone(caller))),
            Some(Err(error)) => Err(error.clone()),
        }
    }
    /// Checks that somebody is known to ask, if that is required.
    pub(crate) fn check(&self, is_required: bool, challenge: &str) -> Result<(), RequestError> {
        let is_known = match self.caller.as_deref() {
            None => false,
            Some(Ok(caller)) => caller.granted.authenticated,
            Some(Err(error)) => return Err(error.clone()),
        };
        if is_required && !is_known {
            Err(unauthenticated(challenge))
        } else {
            Ok(())
        }
    }
    /// What a claim says. What an unauthenticated caller claims counts for nothing.
    pub(crate) fn claim(&self, name: &str) -> Option<Cow<'_, str>> {
        let caller = self.caller.as_deref()?.as_ref().ok()?;
        caller.claim(name)
    }
}
