//! The subgraph HTTP client: HTTP/1.1 and HTTP/2, with and without TLS, over our own connection pool.
//!
//! A [`Client`] belongs to one worker thread; its connections never leave it, so the pool needs no lock. For every
//! client request a [`RequestTransport`] lends the pool to the executor together with that request's headers and
//! deadline.
//!
//! Invariants:
//! - A request that a subgraph may have seen is sent again only if it is idempotent, once, on a fresh connection, and
//!   only when a kept-alive connection turned out to be stale; further tries need a retry policy and its budget.
//! - Hop-by-hop headers never travel, whatever the header rules say.
//! - Dropping the future closes the connection of a request in flight: cancelled work does not continue upstream and
//!   a half-read connection is never reused.
//! - Messages for clients name the subgraph, never its host.
//!
//! Reading order: [`address`] and [`endpoint`] (where and how), [`headers`] and [`response_headers`] (rules), [`condition`] (when they hold), [`request`] (the seam to
//! the executor), `exchange` and `client` (one exchange), `answer` and `budget` (what becomes of an answer, and how much of it there may
//! be), `http1` (our own HTTP/1.1), `over_hyper` (HTTP/2 and uploads), `events` (subscriptions), [`mod@fetch`] and [`source`] (single requests
//! outside the hot path), [`service`] (what stands in for an HTTP service), `connect`, `resolve`, `race` `pool` and `age` (connections), [`ogive_net`] (streams, TLS, compressed bodies),
//! [`coalescing`] (equal requests sent once) and `personal` (those that are not), [`resilience`] (retries, circuit breaker, hedging), [`balance`] (several
//! replicas), [`upload`] (bodies made while they are sent), `sign` and [`signer`] (proof of who asks), [`hook`] (who
//! looks at single requests), `error`.

pub mod address;
mod age;
mod answer;
pub mod balance;
mod budget;
mod cache_control;
mod caller;
mod client;
pub mod coalescing;
pub mod condition;
mod connect;
pub mod endpoint;
mod error;
mod events;
mod exchange;
pub mod extensions;
mod fetch;
pub mod headers;
pub mod hook;
mod http1;
pub mod observe;
mod over_hyper;
pub mod personal;
mod pool;
mod race;
pub mod request;
pub mod resilience;
mod resolve;
pub mod response_headers;
pub mod service;
mod sign;
pub mod signer;
pub mod source;
pub mod subgraph_cache;
pub mod upload;

use ogive_net::{Socket, Stream, encoding, growth};

pub use address::EndpointError;
pub use balance::{OutlierEjection, Replicas};
pub use cache_control::is_for_caches;
pub use caller::{CallerContext, ClientValue};
pub use client::Client;
pub use coalescing::{Coalesced, Coalescer, SharingScope};
pub use condition::{RequestCondition, SharedCondition};
pub use endpoint::{ConditionalEndpoint, Endpoint, Endpoints, Traffic};
pub use events::callback::{CallbackAnswer, CallbackSubscription, Callbacks};
pub use events::source::{CallbackSource, EventProtocol, EventSource, LearnedProtocol, Reconnect};
pub use extensions::{ExtensionValue, RequestExtension, RequestExtensions};
pub use fetch::{Fetched, fetch};
pub use headers::{HeaderRule, HeaderRules, NameMatch, OwnHeader, TemplatePart, first_text};
pub use hook::{
    AdmissionFuture, FetchAdmission, FetchAnswer, FetchDecision, FetchHook, FetchRequest,
    HookFuture,
};
// What its options are made of.
pub use observe::{Answered, Observer, Reporter};
pub use ogive_net::{ClientTls, ClientTlsOptions, Encoding, Http2, Identity, Pem, TlsError};
pub use personal::Personal;
pub use request::{RequestTransport, told_by};
pub use resilience::{CircuitBreaker, Health, Hedge, Retry};
pub use resolve::{LOOKUPS_MAX, Resolver, Resolving, SystemResolver};
pub use response_headers::{
    ADDED_BYTES_MAX, Collected, Merge, ResponseHeaderRule, ResponseHeaderRules,
};
pub use service::{ServiceRequest, SubgraphService};
pub use signer::{Ready, Refused, SignError, Signer, Signing, Unsigned};
pub use source::Source;
pub use subgraph_cache::{PrivateId, SubgraphCachePolicy};
pub use upload::{Attachment, FeedError, Files, PieceSender, Pieces};
