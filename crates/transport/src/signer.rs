//! The seam to whoever signs requests or adds credentials.

use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, uri::PathAndQuery};
use tokio::time::Instant;

/// A request as it is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// POST; GET for the upgrade of a WebSocket connection.
    pub method: &'a Method,
    /// Whether TLS is spoken.
    pub https: bool,
    /// The `host` header, or `:authority`.
    pub authority: &'a HeaderValue,
    /// What is asked for.
    pub target: &'a PathAndQuery,
    /// All headers, `content-length` included and `host` not.
    pub headers: &'a HeaderMap,
    /// The body, encoded as it is sent; `None` if it is made while it is sent.
    pub body: Option<&'a Bytes>,
}

/// Why a request cannot be signed; for the operator, and without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignError(pub String);

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SignError {}

/// The headers that prove who asks, once they are known.
pub type Signing<'a> = Pin<Box<dyn Future<Output = Result<HeaderMap, SignError>> + 'a>>;

/// Whether what a request is signed with is there, once that is known.
pub type Ready<'a> = Pin<Box<dyn Future<Output = Result<(), SignError>> + 'a>>;

/// Whether another try will have other credentials, once that is known.
pub type Refused<'a> = Pin<Box<dyn Future<Output = bool> + 'a>>;

/// Whoever proves to a subgraph who asks. One value serves all workers.
pub trait Signer: fmt::Debug + Send + Sync {
    /// What is sent instead of a request's JSON; `None` if it stays as it is. Comes before any encoding.
    fn body(&self, body: &Bytes) -> Result<Option<Bytes>, SignError> {
        let _ = body;
        Ok(None)
    }
    /// Waits for what requests are signed with, before a subgraph, a connection or a breaker has anything to do with the
    /// request.
    fn ready(&self) -> Ready<'_> {
        Box::pin(async { Ok(()) })
    }
    /// Reads files again that requests are signed with; tells whether anything has changed. Blocks.
    fn refresh(&self) -> Result<bool, SignError> {
        Ok(false)
    }
    /// Whether [`sign`](Self::sign) looks at headers; else it is given none.
    fn reads_headers(&self) -> bool {
        true
    }
    /// The headers to add to a request. Waits for nobody: a connection and the subgraph's time are taken already.
    fn sign<'a>(&'a self, request: Unsigned<'a>) -> Signing<'a>;
    /// A request that was begun then was answered with 401. Whether another try will have other credentials.
    fn refused(&self, began: Instant) -> Refused<'_> {
        let _ = began;
        Box::pin(async { false })
    }
}
