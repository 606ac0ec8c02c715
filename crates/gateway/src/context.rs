//! What belongs to one GraphQL request on its way through the stops, besides the request itself.

use std::cell::RefCell;

use http::HeaderMap;

/// One request's surroundings.
#[derive(Debug)]
pub struct RequestContext<'a> {
    /// The client's headers.
    pub headers: &'a HeaderMap,
    /// What the subgraphs' answers add to the response's headers.
    added: RefCell<HeaderMap>,
}

impl<'a> RequestContext<'a> {
    /// The surroundings of a request with these headers.
    pub fn new(headers: &'a HeaderMap) -> Self {
        RequestContext {
            headers,
            added: RefCell::default(),
        }
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
