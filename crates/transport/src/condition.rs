//! Conditions on the request of a client, by which header rules hold and a subgraph is asked at another URL.
//!
//! Whoever makes the rules knows how to judge them ([`RequestCondition`]). What a condition looks at is known beforehand, because what
//! depends on it must not be kept for others.

use std::{fmt::Debug, sync::Arc};

use http::{HeaderMap, HeaderName};

use crate::caller::CallerContext;

/// Something that holds of a client's request, or does not.
pub trait RequestCondition: Debug + Send + Sync {
    /// Whether it holds.
    fn is_met(&self, client: &HeaderMap, caller: Option<&dyn CallerContext>) -> bool;
    /// The client's headers that it looks at.
    fn headers(&self) -> &[HeaderName];
    /// Whether it looks at who asks.
    fn claims(&self) -> bool;
}

/// One that is shared. Two are equal if they are written the same.
#[derive(Clone, Debug)]
pub struct SharedCondition(pub Arc<dyn RequestCondition>);

impl PartialEq for SharedCondition {
    fn eq(&self, other: &Self) -> bool {
        format!("{:?}", self.0) == format!("{:?}", other.0)
    }
}
