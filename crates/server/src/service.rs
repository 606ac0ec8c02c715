//! What answers the requests of a server, and what the server asks it.
//!
//! The server knows HTTP and nothing of what is said over it. So whatever a client reads, refusals included, comes from a
//! [`Service`].

use std::{fmt::Debug, future::Future, sync::Arc};

use http::{Response, request::Parts};
use hyper::body::Incoming;
use ogive_base::{Peer, Reservation};
use ogive_limits::Measured;
use ogive_net::TlsError;

use crate::body::ResponseBody;

/// What answers requests.
pub trait Service: Send + Sync + 'static {
    /// What lives as long as a worker thread.
    type Worker: 'static;

    /// Makes it, on that thread.
    fn worker(self: &Arc<Self>) -> Self::Worker;
    /// Answers a request. Dropping the future stops all work for it.
    fn answer(
        &self,
        head: &mut Parts,
        body: Incoming,
        peer: Peer,
        worker: &Self::Worker,
    ) -> impl Future<Output = Response<ResponseBody>>;
    /// The answer to a request that the server refuses.
    fn refuse(&self, refusal: Refusal, head: &Parts, peer: Peer) -> Response<ResponseBody>;
    /// Whether a request is about health: those are answered when no connection is left.
    fn is_health(&self, head: &Parts) -> bool;
    /// Whether requests may open WebSockets: clients of HTTP/2 are told so (RFC 8441) when they connect. Default no.
    fn opens_websockets(&self) -> bool {
        false
    }
    /// Counts memory that a connection holds.
    fn reserve(&self, worker: &Self::Worker) -> Reservation;
    /// Notes what is beyond a limit that is only measured.
    fn note<T: PartialOrd + Debug>(&self, measured: &Measured<T>, found: &T);
    /// The files of the listener's certificates were looked at: whether they are others, or why they cannot be used. Default:
    /// nobody is told.
    fn looked_at_certificates(&self, refreshed: Result<bool, TlsError>) {
        let _ = refreshed;
    }
    /// Shutdown began: readiness says no from now on.
    fn start_draining(&self);
    /// A number that changes whenever much memory may have become free: another schema is served.
    fn generation(&self) -> u64;
    /// No requests have come for some time: closes what a worker has kept open for too long. Says whether there was any.
    fn trim(&self, worker: &Self::Worker) -> bool;
}

/// The certificate that the client of a connection has shown, as DER: in the extensions of its requests. The listener has
/// checked who signed it, and that it held then.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub bytes::Bytes);

/// Why the server refuses a request by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The head has too many fields. Over HTTP/1.1 the client has its answer already.
    HeaderCount,
    /// The head is too large. The client has its answer already.
    HeaderSize,
    /// It is no HTTP. The client has its answer already.
    Malformed,
    /// There is no `host`, or several (RFC 9112, section 3.2).
    Host,
    /// It has both `content-length` and `transfer-encoding`.
    Framing,
    /// There is no memory for its head.
    Memory,
    /// There are too many connections.
    Connections,
}
