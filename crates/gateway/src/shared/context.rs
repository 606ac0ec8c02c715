//! What belongs to one GraphQL request on its way through the stops, besides the request itself.

use std::cell::{RefCell, RefMut};

use http::HeaderMap;
use ogive_base::Reservation;
use ogive_plan::Claims;
use ogive_telemetry::Telemetry;

use crate::{receive::uploads::Entry, shared::measured::Exceeded, shared::observe::Watch};

/// One request's surroundings.
pub struct RequestContext<'a> {
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

impl<'a> RequestContext<'a> {
    /// The surroundings of a request with these headers.
    pub fn new(headers: &'a HeaderMap) -> Self {
        RequestContext {
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
        RequestContext { claims, ..self }
    }
    /// Lets `watch` note what happens.
    pub(crate) fn watched(self, watch: Option<&'a Watch<'a>>) -> Self {
        RequestContext { watch, ..self }
    }
    /// Tells operators what goes wrong.
    pub(crate) fn told_to(self, telemetry: &'a Telemetry) -> Self {
        RequestContext {
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
        RequestContext { uploads, ..self }
    }
    /// The files that came along.
    pub(crate) fn uploads(&self) -> Option<Entry<'a>> {
        self.uploads
    }
    /// Counts what the request makes the process hold.
    pub(crate) fn counted_in(self, memory: &'a Reservation) -> Self {
        let memory = Some(memory);
        RequestContext { memory, ..self }
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
