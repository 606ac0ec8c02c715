//! Responses and entities of subgraphs, kept across requests.
//!
//! Three rules decide everything here:
//!
//! - A key holds everything that is sent to a subgraph; only the answer or the operator removes parts of it.
//! - An entry carries the number of a logical clock that was read before its request was sent. So an invalidation is one
//!   number, and a slow writer cannot restore an entry that was invalidated.
//! - The cache never fails a request that could be answered without it. A tier that is slow or fails counts as a miss.
//!
//! The crate does not depend on plans, HTTP connections or Redis: the caller passes requests, answers and the time.
//!
//! Reading order: [`key`] and [`vary`] (which requests are equal), [`directives`], [`freshness`] and [`storing`] (which
//! answers are stored, for which callers, how long), [`tag`] and [`clock`] (invalidation), [`entities`] (one entry for each
//! entity of a request), [`entry`] and [`memory`],
//! [`flight`] and [`refresh`] (which caller sends a request for an entry that is missing or about to expire), [`remote`],
//! [`writer`], and [`cache`], which uses all of them.

pub mod breaker;
pub mod cache;
pub mod canonical;
pub mod clock;
pub mod codec;
#[cfg(test)]
mod crossings;
pub mod directives;
pub mod entities;
mod entity_query;
pub mod entry;
pub mod flight;
pub mod freshness;
pub mod key;
pub mod memory;
pub mod refresh;
pub mod remote;
mod remote_lookup;
mod siphash;
pub mod status;
pub mod storing;
pub mod structured;
pub mod tag;
pub mod timestamp;
pub mod vary;
pub mod writer;

pub use breaker::Breaker;
pub use cache::{CacheOptions, Found, Lookup, LostPolicy, Refresh, ResponseCache, Write};
pub use canonical::canonical;
pub use clock::{ClockStamp, ClockState, Invalidation, InvalidationList, Position};
pub use directives::Directives;
pub use entities::{EntityAnswer, EntityRequest, Representation};
pub use entry::{Entry, EntryKind};
pub use flight::{FlightOutcome, FlightRole, Flights, Leader, Waiter};
pub use freshness::{Exchange, Lifetime, LifetimePolicy, Use, Validators};
pub use key::{CallerKey, Content, Key, KeyMaker, KeyParts, KeySecret, SentHeaders};
pub use memory::{MemoryLimits, MemoryTier};
pub use remote::{
    Changes, Fetched, Remote, RemoteError, RemoteFuture, RemoteLimits, RemoteTier, RemoteUse,
    RemoteWrite,
};
pub use status::{CacheStatus, ForwardReason};
pub use storing::{Answer, CREDENTIALS, Storable, StoringPolicy, StoringRefusal, decide};
pub use tag::{Tag, TagName};
pub use timestamp::Timestamp;
pub use vary::{Scope, Vary, VaryRecord};
pub use writer::WriteQueue;
