//! The header `Cache-Status` (RFC 9211): how the cache handled a request.

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
    /// No answer is stored for this request.
    UriMiss,
    /// The stored answers are for other headers or other callers.
    VaryMiss,
    /// No stored answer can be used.
    Miss,
    /// The request demands a new answer.
    Request,
    /// The stored answer is stale.
    Stale,
    /// Only some of the entities are stored.
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

/// How the cache handled a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheStatus {
    /// The cache answered.
    Hit {
        /// Seconds for which the answer is still fresh; negative if it is stale.
        ttl: i64,
    },
    /// The request was sent to the subgraph.
    Forwarded {
        /// The reason.
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
