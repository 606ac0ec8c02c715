//! The remote tier: entries that several processes share, and the clock by which they invalidate.
//!
//! [`RemoteTier`] is the interface of a service; [`Remote`] calls it, with a timeout and a breaker for each use. So a service
//! that is slow for one use stays available for the others.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use crate::{Breaker, Invalidation, Key, Position, Tag, Timestamp};

/// Why a call to the remote tier failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteError {
    /// The service did not answer within the timeout.
    Timeout,
    /// The breaker is open after repeated failures: the service was not called.
    BreakerOpen,
    /// The service has failed, with this text for the operator.
    Failed(String),
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Timeout => {
                f.write_str("the remote cache did not answer within its timeout")
            }
            RemoteError::BreakerOpen => {
                f.write_str("the remote cache failed repeatedly; its circuit breaker is open")
            }
            RemoteError::Failed(why) => write!(f, "the remote cache failed: {why}"),
        }
    }
}

impl std::error::Error for RemoteError {}

/// The future of a call to the remote tier.
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RemoteError>> + Send + 'a>>;

/// Values of keys, and the position of the clock when they were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The position of the shared clock.
    pub position: Position,
    /// The values, in the order of the keys; `None` for a key without a value.
    pub values: Vec<Option<Bytes>>,
}

/// A value to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteWrite {
    /// The key of the value.
    pub key: Key,
    /// The value.
    pub value: Vec<u8>,
    /// The service may drop the value from this time on.
    pub until: Timestamp,
}

/// The invalidations since a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// All invalidations since the position, the oldest first.
    Since(Vec<Invalidation>),
    /// The service has dropped some of the invalidations since. This is the current position.
    Forgotten(Position),
    /// The position belongs to another history: an older state was restored. This is the current position.
    Replaced(Position),
}

/// A service that stores values and a clock for several processes.
pub trait RemoteTier: Send + Sync + fmt::Debug {
    /// Reads values and the position of the clock in one round. If the service has no clock, it creates one: number 0 of a
    /// random epoch.
    fn fetch<'a>(&'a self, keys: &'a [Key]) -> RemoteFuture<'a, Fetched>;

    /// Writes values.
    fn insert(&self, writes: Vec<RemoteWrite>) -> RemoteFuture<'_, ()>;

    /// Takes the next number for these tags, announces it to all processes, and remembers it as long as entries are kept.
    fn invalidate<'a>(&'a self, tags: &'a [Tag], nonce: u64) -> RemoteFuture<'a, Position>;

    /// Returns the invalidations since a position. The service compares positions by number and nonce.
    fn changes_since(&self, known: Position) -> RemoteFuture<'_, Changes>;

    /// Begins a random epoch, unless the clock's epoch differs from `instead_of` already. Returns the current position.
    fn begin_epoch(&self, instead_of: u64) -> RemoteFuture<'_, Position>;
}

/// Timeouts of calls to the remote tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteLimits {
    /// Of reads that requests wait for, all rounds together. Default 20 ms.
    pub fetch: Duration,
    /// Of writes in the background. Default 1 s.
    pub insert: Duration,
    /// Of invalidations. Default 1 s.
    pub invalidate: Duration,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        RemoteLimits {
            fetch: Duration::from_millis(20),
            insert: Duration::from_secs(1),
            invalidate: Duration::from_secs(1),
        }
    }
}

/// The uses of the remote tier; each has its own timeout and breaker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RemoteUse {
    /// Reads of entries that requests wait for.
    Fetch,
    /// Writes of entries.
    Insert,
    /// Invalidations, and reads of the clock.
    Invalidate,
}

/// The remote tier with its timeouts and breakers.
#[derive(Debug)]
pub struct Remote {
    /// The service.
    pub(crate) tier: Arc<dyn RemoteTier>,
    timeouts: RemoteLimits,
    fetch: Breaker,
    insert: Breaker,
    invalidate: Breaker,
}

impl Remote {
    /// A remote tier that calls this service.
    pub fn new(tier: Arc<dyn RemoteTier>, timeouts: RemoteLimits) -> Self {
        Remote {
            tier,
            timeouts,
            fetch: Breaker::default(),
            insert: Breaker::default(),
            invalidate: Breaker::default(),
        }
    }

    /// Runs a call to the service within the timeout of its use, unless the breaker of this use is open.
    pub async fn call<T>(
        &self,
        usage: RemoteUse,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let (breaker, within) = match usage {
            RemoteUse::Fetch => (&self.fetch, self.timeouts.fetch),
            RemoteUse::Insert => (&self.insert, self.timeouts.insert),
            RemoteUse::Invalidate => (&self.invalidate, self.timeouts.invalidate),
        };
        if !breaker.admits() {
            return Err(RemoteError::BreakerOpen);
        }
        let done = timeout(within, work).await;
        let done = done.unwrap_or(Err(RemoteError::Timeout));
        match (breaker.note(done.is_ok()), &done) {
            (true, Err(error)) => {
                tracing::warn!(?usage, %error, "the remote cache failed repeatedly; circuit breaker opened");
            }
            (true, Ok(_)) => tracing::info!(
                ?usage,
                "the remote cache answers again; circuit breaker closed"
            ),
            (false, _) => {}
        }
        done
    }
}
