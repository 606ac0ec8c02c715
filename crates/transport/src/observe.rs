//! Watching one client request's requests to subgraphs.

use http::HeaderMap;
use ogive_execute::FailureReport;
use ogive_failure::ErrorCode;

/// Told of every request; belongs to one client request.
pub trait Observer {
    /// A subgraph is to be asked. The number is for the other two.
    fn asked(&self, subgraph: u32) -> u32;
    /// The request is about to be sent, once more if it was sent before; may add headers, which replace those of
    /// the same name that the rules say. They keep equal requests from being shared only as far as
    /// [`identity`](Observer::identity) says so. Not called for a request that joins an equal one under way.
    fn sending(&self, number: u32, headers: &mut HeaderMap);
    /// These headers go along, besides those of the exchange itself. Default: nobody looks.
    fn sent(&self, _number: u32, _headers: &HeaderMap) {}
    /// The answer that came has these headers, as far as anybody keeps them. Default: nobody looks.
    fn answered_with(&self, _number: u32, _headers: &HeaderMap) {}
    /// Appends what must be equal for requests of two clients to be shared: of all that [`sending`](Observer::sending)
    /// adds, whatever a subgraph's answer may depend on, so that it can be told where it ends. Default: nothing.
    fn identity(&self, _to: &mut Vec<u8>) {}
    /// It is answered, or will not be.
    fn answered(&self, number: u32, answered: Answered);
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// With an HTTP status and so many bytes.
    Status(u16, usize),
    /// Without an answer; the code says why.
    Failed(ErrorCode),
}

/// Told of everything that goes wrong with requests to subgraphs; belongs to one client request.
pub trait Reporter {
    /// `subgraph` is the name of the one to blame; empty if none is. When an answer is wrong, it is the one of which
    /// [`Observer::answered`] was told last.
    fn failed(&self, subgraph: &str, failure: &FailureReport<'_>);
}
