//! Entries: stored answers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{ClockStamp, Lifetime, Tag, Validators};

/// The part of a request that an entry answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    /// A whole request to a subgraph.
    Response,
    /// A selection of one entity.
    Entity,
}

/// A stored answer. It owns its bytes: a slice of a larger answer would keep the whole answer in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Whether it answers a whole request or is one entity of an answer.
    pub kind: EntryKind,
    /// The position of the clock before its request was sent.
    pub stamp: ClockStamp,
    /// When the answer was made, and how long it may be used.
    pub lifetime: Lifetime,
    /// How long its request took. An entry whose request is slow is refreshed earlier.
    pub took: Duration,
    /// Validators by which the subgraph confirms that the answer has not changed.
    pub validators: Validators,
    /// HTTP status code.
    pub status: u16,
    /// Tags by which the entry is invalidated.
    pub tags: Box<[Tag]>,
    /// The headers of the answer that header rules read.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// The body, or the object of one entity.
    pub body: Bytes,
}

/// Bytes of an entry without the values that it refers to, but with its key and its places in tables.
const OVERHEAD: usize = size_of::<Entry>() + 128;

impl Entry {
    /// Bytes that the entry holds, approximately.
    pub fn bytes(&self) -> usize {
        let validators = [&self.validators.etag, &self.validators.last_modified];
        let validators = validators.iter().filter_map(|value| value.as_ref());
        let validators: usize = validators.map(HeaderValue::len).sum();
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| name.as_str().len() + value.len() + 72)
            .sum();
        OVERHEAD + size_of_val(&*self.tags) + validators + headers + self.body.len()
    }

    /// Copies headers, so that they share no memory with the answer that brought them.
    pub fn own_headers(headers: &HeaderMap) -> Box<[(HeaderName, HeaderValue)]> {
        let owned = headers.iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
            Some((name.clone(), value))
        });
        owned.collect()
    }
}
