//! The remote tier: entries that several processes share, and the clock by which they invalidate.
//!
//! [`RemoteTier`] says what a service must do; [`Remote`] asks it, with a time limit and a breaker for each use, so that a
//! service that is slow for one use stays in use for the others.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use crate::{Breaker, Invalidation, Key, Position, Tag, Timestamp};

/// Why the remote tier did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RemoteError {
    /// No answer in time.
    Timeout,
    /// It has failed too often and is left alone for a while.
    BreakerOpen,
    /// It has failed, with this text for the operator.
    Failed(String),
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Timeout => f.write_str("the remote cache did not answer in time"),
            RemoteError::BreakerOpen => {
                f.write_str("the remote cache has failed repeatedly and is left alone for a while")
            }
            RemoteError::Failed(why) => write!(f, "the remote cache failed: {why}"),
        }
    }
}

impl std::error::Error for RemoteError {}

/// What the remote tier answers, later.
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RemoteError>> + Send + 'a>>;

/// Values of keys, and where the clock stood when they were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The shared clock.
    pub position: Position,
    /// A value for each key that was asked for, in order.
    pub values: Vec<Option<Bytes>>,
}

/// A value to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteWrite {
    /// Where.
    pub key: Key,
    /// What.
    pub value: Vec<u8>,
    /// When it may be dropped.
    pub until: Timestamp,
}

/// What happened since a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// All invalidations since, the first one first.
    Since(Vec<Invalidation>),
    /// Some of what followed is no longer remembered. This is the present position.
    Forgotten(Position),
    /// The position is of another history, because the clock has gone back. This is the present position.
    Replaced(Position),
}

/// A service that keeps values and a clock for several processes.
pub trait RemoteTier: Send + Sync + fmt::Debug {
    /// Reads values and the clock in one round. Where there is no clock, one begins at number 0 of an epoch chosen at random.
    fn fetch<'a>(&'a self, keys: &'a [Key]) -> RemoteFuture<'a, Fetched>;

    /// Stores values.
    fn insert(&self, writes: Vec<RemoteWrite>) -> RemoteFuture<'_, ()>;

    /// Takes the next number for these tags, tells all processes, and remembers it as long as entries last.
    fn invalidate<'a>(&'a self, tags: &'a [Tag], nonce: u64) -> RemoteFuture<'a, Position>;

    /// What happened since a position, compared by number and nonce.
    fn changes_since(&self, known: Position) -> RemoteFuture<'_, Changes>;

    /// Begins an epoch chosen at random, unless the clock is of another epoch than `instead_of` already. Gives the present
    /// position.
    fn begin_epoch(&self, instead_of: u64) -> RemoteFuture<'_, Position>;
}

/// How long the remote tier may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteLimits {
    /// To read what requests wait for, all rounds together. Default 20 ms.
    pub fetch: Duration,
    /// To store, in the background. Default 1 s.
    pub insert: Duration,
    /// To invalidate. Default 1 s.
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

/// What the remote tier is used for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RemoteUse {
    /// Reading entries that requests wait for.
    Fetch,
    /// Storing.
    Insert,
    /// Invalidating, and following the clock.
    Invalidate,
}

/// The remote tier as the cache uses it.
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
    /// Uses a service.
    pub fn new(tier: Arc<dyn RemoteTier>, timeouts: RemoteLimits) -> Self {
        Remote {
            tier,
            timeouts,
            fetch: Breaker::default(),
            insert: Breaker::default(),
            invalidate: Breaker::default(),
        }
    }

    /// Does something with the service, within the time and the breaker of a use.
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
                tracing::warn!(?usage, %error, "the remote cache is left alone for a while");
            }
            (true, Ok(_)) => tracing::info!(?usage, "the remote cache answers again"),
            (false, _) => {}
        }
        done
    }
}
