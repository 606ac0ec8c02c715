//! Watching one client request's requests to subgraphs.

use http::HeaderMap;

/// Told of every request; belongs to one client request.
pub trait Observer {
    /// A subgraph is to be asked. The number is for the other two.
    fn asked(&self, subgraph: u32) -> u32;
    /// The request is about to be sent, once more if it was sent before; may add headers, which replace those of
    /// the same name that the rules say and do not keep equal requests from being shared. Not called for a request that joins an equal one under way.
    fn sending(&self, number: u32, headers: &mut HeaderMap);
    /// It is answered, or will not be.
    fn answered(&self, number: u32, answered: Answered);
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// With an HTTP status and so many bytes.
    Status(u16, usize),
    /// Without an answer; the code says why.
    Failed(&'static str),
}
