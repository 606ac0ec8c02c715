//! `Cache-Status` (RFC 9211): what the cache did with a request, for readers of the response.

use std::fmt;

/// The name of this cache in the header.
const NAME: &str = "ogive";

/// Why a request was sent to the subgraph (RFC 9211, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardReason {
    /// The cache is not used for this request.
    Bypass,
    /// The operation is a mutation.
    Method,
    /// Nothing is stored for such a request.
    UriMiss,
    /// What is stored is for requests with other headers or other callers.
    VaryMiss,
    /// Nothing stored can be used.
    Miss,
    /// The request asks for a new answer.
    Request,
    /// What is stored is stale.
    Stale,
    /// Only some entities are stored.
    Partial,
}

impl ForwardReason {
    /// The token of the registry.
    pub const fn token(self) -> &'static str {
        match self {
            ForwardReason::Bypass => "bypass",
            ForwardReason::Method => "method",
            ForwardReason::UriMiss => "uri-miss",
            ForwardReason::VaryMiss => "vary-miss",
            ForwardReason::Miss => "miss",
            ForwardReason::Request => "request",
            ForwardReason::Stale => "stale",
            ForwardReason::Partial => "partial",
        }
    }
}

/// What the cache did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheStatus {
    /// It answered.
    Hit {
        /// Seconds for which the answer is still fresh; negative if it is stale.
        ttl: i64,
    },
    /// It sent the request on.
    Forwarded {
        /// Why.
        reason: ForwardReason,
        /// The status of the answer, if there was one.
        status: Option<u16>,
        /// For how many seconds the answer is stored, if it is.
        stored: Option<i64>,
        /// Whether the answer of another request in flight was used.
        collapsed: bool,
    },
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)?;
        match *self {
            CacheStatus::Hit { ttl } => write!(f, "; hit; ttl={ttl}"),
            CacheStatus::Forwarded {
                reason,
                status,
                stored,
                collapsed,
            } => {
                write!(f, "; fwd={}", reason.token())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={status}")?;
                }
                if let Some(ttl) = stored {
                    write!(f, "; stored; ttl={ttl}")?;
                }
                if collapsed {
                    f.write_str("; collapsed")?;
                }
                Ok(())
            }
        }
    }
}
