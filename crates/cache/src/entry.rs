//! What is kept of an answer.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{ClockStamp, Lifetime, Tag, Validators};

/// What an entry is an answer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    /// A whole request to a subgraph.
    Response,
    /// A selection of one entity.
    Entity,
}

/// An answer that is kept. It owns its bytes: a slice of a larger answer would keep all of that in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it is an answer to.
    pub kind: EntryKind,
    /// The clock before its request was sent.
    pub stamp: ClockStamp,
    /// When it was made and how long it may be used.
    pub lifetime: Lifetime,
    /// How long its request took: what is slow is asked for again earlier.
    pub took: Duration,
    /// What proves that it is still the present answer.
    pub validators: Validators,
    /// HTTP status code.
    pub status: u16,
    /// What it is about.
    pub tags: Box<[Tag]>,
    /// Headers of the answer that rules read.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// The body, or the object of one entity.
    pub body: Bytes,
}

/// Bytes of an entry besides what it refers to, its key and its places in tables included.
const OVERHEAD: usize = size_of::<Entry>() + 128;

impl Entry {
    /// Bytes that it holds, about.
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

    /// A copy of headers that shares no memory with the answer that they came with.
    pub fn own_headers(headers: &HeaderMap) -> Box<[(HeaderName, HeaderValue)]> {
        let owned = headers.iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
            Some((name.clone(), value))
        });
        owned.collect()
    }
}
