//! What is known of a request on its way through the stages, besides its body. Stages write it in their order, and all that
//! come later read it:
//!
//! - [`RequestContext`], of one HTTP request: its head, who asks ([`Identity`]), and what accompanies it;
//! - [`OperationContext`], of one GraphQL operation in it: what the caller may see, and what is decided on the way.

use std::cell::{RefCell, RefMut};

use http::{HeaderMap, request::Parts};
use ogive_base::Reservation;
use ogive_config::{Client, Peer};
use ogive_plan::Claims;
use ogive_telemetry::{Record, Telemetry};

use crate::{
    authorize::Caller, receive::uploads::Entry, shared::error::RequestError,
    shared::measured::Exceeded, shared::observe::Watch, shared::worker::WorkerState,
};

/// Who asks: what the identify stage has found, for all others.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Who sent it.
    pub(crate) peer: Peer,
    /// Who asks: the peer, or the client that a trusted proxy names.
    pub(crate) client: Client,
    /// What is known of the caller, or why it cannot be believed, which refuses what is GraphQL; `None` if nobody looked. In
    /// a box, because most requests have none.
    pub(crate) caller: Option<Box<Result<Caller, RequestError>>>,
}

impl Identity {
    /// Of a peer of whom nothing else is known.
    pub(crate) fn of(peer: Peer) -> Self {
        Identity {
            peer,
            client: peer.client(),
            caller: None,
        }
    }
    /// What restrictions ask for.
    pub(crate) fn claims(&self) -> Result<Claims, RequestError> {
        match self.caller.as_deref() {
            None => Ok(Claims::default()),
            Some(Ok(caller)) => Ok(caller.claims.clone()),
            Some(Err(error)) => Err(error.clone()),
        }
    }
    /// What a claim says. What an unauthenticated caller claims counts for nothing.
    pub(crate) fn claim(&self, name: &str) -> Option<&str> {
        let caller = self.caller.as_deref()?.as_ref().ok()?;
        caller.claim(name)
    }
}

/// One HTTP request: kept by the outermost function of the pipeline, and lent to all others.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// Its head, without what the identify stage has taken out.
    pub(crate) parts: &'a Parts,
    pub(crate) identity: &'a Identity,
    /// What its thread has.
    pub(crate) worker: &'a WorkerState,
    pub(crate) telemetry: &'a Telemetry,
    /// What is logged, counted and traced of it, if anybody wants that.
    pub(crate) record: Option<&'a Record>,
}

/// One GraphQL operation.
pub struct OperationContext<'a> {
    /// The client's headers.
    pub headers: &'a HeaderMap,
    /// What is known of the caller; nothing unless [`claimed`](Self::claimed) says more.
    pub claims: Claims,
    /// What the subgraphs' answers add to the response's headers.
    added: RefCell<HeaderMap>,
    watch: Option<&'a Watch<'a>>,
    telemetry: Option<&'a Telemetry>,
    uploads: Option<Entry<'a>>,
    memory: Option<&'a Reservation>,
    exceeded: RefCell<Exceeded>,
}

impl<'a> OperationContext<'a> {
    /// An operation of a request with these headers.
    pub fn new(headers: &'a HeaderMap) -> Self {
        OperationContext {
            headers,
            claims: Claims::default(),
            added: RefCell::default(),
            watch: None,
            telemetry: None,
            uploads: None,
            memory: None,
            exceeded: RefCell::default(),
        }
    }
    /// Says who the caller is.
    #[must_use]
    pub fn claimed(self, claims: Claims) -> Self {
        OperationContext { claims, ..self }
    }
    /// Lets `watch` note what happens.
    pub(crate) fn watched(self, watch: Option<&'a Watch<'a>>) -> Self {
        OperationContext { watch, ..self }
    }
    /// Tells operators what goes wrong.
    pub(crate) fn told_to(self, telemetry: &'a Telemetry) -> Self {
        OperationContext {
            telemetry: Some(telemetry),
            ..self
        }
    }
    /// Who tells operators what goes wrong.
    pub(crate) fn telemetry(&self) -> Option<&'a Telemetry> {
        self.telemetry
    }
    /// Who notes what happens.
    pub(crate) fn watch(&self) -> Option<&'a Watch<'a>> {
        self.watch
    }
    /// Lets it use the files that came along.
    pub(crate) fn with_uploads(self, uploads: Option<Entry<'a>>) -> Self {
        OperationContext { uploads, ..self }
    }
    /// The files that came along.
    pub(crate) fn uploads(&self) -> Option<Entry<'a>> {
        self.uploads
    }
    /// Counts what the request makes the process hold.
    pub(crate) fn counted_in(self, memory: &'a Reservation) -> Self {
        let memory = Some(memory);
        OperationContext { memory, ..self }
    }
    /// What counts it.
    pub(crate) fn memory(&self) -> Option<&'a Reservation> {
        self.memory
    }
    /// Notes limits that are exceeded and only measured.
    pub(crate) fn exceeded(&self) -> RefMut<'_, Exceeded> {
        self.exceeded.borrow_mut()
    }
    /// Adds headers to the response.
    pub(crate) fn add(&self, headers: HeaderMap) {
        if !headers.is_empty() {
            self.added.borrow_mut().extend(headers);
        }
    }
    /// The headers added so far.
    pub(crate) fn take_added(&self) -> HeaderMap {
        self.added.take()
    }
}
