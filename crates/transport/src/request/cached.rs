//! Requests whose answers are kept across requests: a query is answered from the cache, or sent and its answer kept. Equal
//! queries that are missing wait for one request, on any worker.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    net::IpAddr,
    sync::Arc,
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use ogive_cache::{
    Answer, CallerKey, Content, Entry, EntryKind, Exchange, FlightOutcome, FlightRole, Found, Key,
    Leader, Lookup, ResponseCache, StoringRefusal, Timestamp, Use, Write, decide,
    entities::{DEPTH_MAX, EntityRequest, tags_of_answer},
    tag,
};
use ogive_execute::SubgraphResponse;
use ogive_json::Tree;
use tokio::time::timeout_at;

use super::{Outcome, Prepared, RequestTransport, too_slow};
use crate::{
    SubgraphCachePolicy, answer::Exchanged, cache_control, caller::ClientValue,
    http1::framing::is_personal, subgraph_cache::SubgraphTags,
};

/// How often a request waits for the answer to another one before it is sent itself.
const WAITS_MAX: usize = 3;

/// A query, and the cache in which its answer is looked up and kept.
pub(super) struct CachedFetch<'f, 'a, 'p> {
    pub(super) transport: &'f RequestTransport<'a>,
    pub(super) cache: &'f ResponseCache,
    policy: &'f SubgraphCachePolicy,
    pub(super) request: &'f Prepared<'p>,
    pub(super) caller: &'f CallerKey<'f>,
    pub(super) client: Option<IpAddr>,
}

impl RequestTransport<'_> {
    /// Answers a query from the cache, or sends it and keeps the answer. A mutation is sent; its answer may invalidate
    /// entries. After a mutation of this operation no entry is used.
    pub(super) async fn cached(
        &self,
        policy: &SubgraphCachePolicy,
        request: &Prepared<'_>,
    ) -> Outcome {
        let Some(cache) = self.cache else {
            return self.shared(request, None).await;
        };
        let endpoint = request.endpoint;
        if !request.request.idempotent {
            self.has_mutated.set(true);
            let outcome = self.shared(request, None).await;
            if let Ok(exchanged) = &outcome {
                let tags = SubgraphTags {
                    cache,
                    subgraph: &endpoint.name,
                };
                invalidate_groups(tags, &exchanged.headers).await;
            }
            return outcome;
        }
        let sent = &request.outgoing.headers;
        let headers = policy.headers(sent);
        let private_id = policy.private_id(sent, self.caller);
        let caller = CallerKey::new(&headers, private_id.as_deref());
        let address = self
            .caller
            .and_then(|caller| caller.value(ClientValue::Address));
        let fetch = CachedFetch {
            transport: self,
            cache,
            policy,
            request,
            caller: &caller,
            client: address.and_then(|address| address.parse().ok()),
        };
        match EntityRequest::read(&request.request.body) {
            Some(entities) => fetch.entities(&entities).await,
            None => fetch.whole().await,
        }
    }
}

/// Invalidates the groups that an answer to a mutation names (RFC 9875, section 3).
async fn invalidate_groups(tags: SubgraphTags<'_>, answered: &HeaderMap) {
    let groups = tag::invalidated_groups(answered);
    if groups.is_empty() {
        return;
    }
    let groups: Vec<_> = groups.iter().map(|group| tags.free(group)).collect();
    let invalidated = tags.cache.invalidate(&groups, nonce(), Timestamp::now());
    if let Err(error) = invalidated.await {
        let subgraph = tags.subgraph;
        tracing::warn!(subgraph, %error, "entries of the response cache were not invalidated");
    }
}

/// A number that no other invalidation has.
fn nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// How a query that is missing goes on.
pub(super) enum Missing {
    /// Another request has stored the answer meanwhile.
    Found(Found),
    /// Send it; callers that miss the same key wait for the leader, if there is one.
    Send(Option<Leader>),
    /// Wait for the request of another caller.
    Wait(ogive_cache::Waiter),
}

impl CachedFetch<'_, '_, '_> {
    /// Whether entries must not be used because they may be older than a mutation of this operation.
    pub(super) fn is_after_mutation(&self) -> bool {
        self.transport.has_mutated.get()
    }

    pub(super) fn subgraph(&self) -> &str {
        &self.request.endpoint.name
    }

    pub(super) fn first_key(&self, content: Content<'_>, extensions: &[u8]) -> Key {
        let subgraph = self.subgraph();
        self.policy
            .first_key(self.cache, subgraph, content, extensions)
    }

    /// Decides who sends the request for a key that is missing. Another request may have stored the answer between the
    /// look-up and this decision.
    pub(super) fn begin(&self, lookup: &Lookup) -> Missing {
        match self.cache.begin(lookup.second, self.client) {
            FlightRole::Wait(waiter) => Missing::Wait(waiter),
            FlightRole::Alone => Missing::Send(None),
            FlightRole::Lead(leader) => {
                let again = Timestamp::now();
                let again = self
                    .cache
                    .look_up_in_memory(lookup.first, self.caller, again);
                match again.found.filter(|found| found.usability == Use::Fresh) {
                    Some(found) => {
                        leader.land(true);
                        Missing::Found(found)
                    }
                    None => Missing::Send(Some(leader)),
                }
            }
        }
    }

    /// Answers a query as a whole.
    async fn whole(&self) -> Outcome {
        let body = &self.request.request.body;
        let first = self.first_key(Content::Whole { body }, b"");
        if self.is_after_mutation() {
            return self.send_whole(first, None, None).await;
        }
        for _ in 0..WAITS_MAX {
            let (now, firsts) = (Timestamp::now(), [first]);
            let lookups = self.cache.look_up(&firsts, self.caller, self.client, now);
            let Some(lookup) = lookups.await.pop() else {
                break;
            };
            if let Some(entry) = usable(&lookup.found, Use::Fresh) {
                return Ok(answer(&entry, now));
            }
            let waiter = match self.begin(&lookup) {
                Missing::Found(found) => return Ok(answer(&found.entry, now)),
                Missing::Send(leader) => {
                    return self.send_whole(first, leader, lookup.found).await;
                }
                Missing::Wait(waiter) => waiter,
            };
            match timeout_at(self.request.deadline, waiter.outcome()).await {
                Err(_) => return Err(too_slow(self.request.endpoint)),
                Ok(FlightOutcome::Stored | FlightOutcome::Abandoned) => {}
                Ok(FlightOutcome::NotStored | FlightOutcome::InFlight) => break,
                Ok(FlightOutcome::Failed) => match usable(&lookup.found, Use::IfError) {
                    Some(entry) => return Ok(answer(&entry, now)),
                    None => break,
                },
            }
        }
        self.send_whole(first, None, None).await
    }

    /// Sends a query and keeps its answer. If the request fails, a stale entry may answer it.
    async fn send_whole(
        &self,
        first: Key,
        leader: Option<Leader>,
        stale: Option<Found>,
    ) -> Outcome {
        let mut kept = Keeping::begin(self);
        let outcome = self.transport.shared(self.request, Some(kept.stamp)).await;
        kept.exchange.answered_at = Timestamp::now();
        match &outcome {
            Ok(exchanged) if exchanged.response.status < 500 => {
                let stored = kept.store_whole(first, exchanged);
                if let Some(leader) = leader {
                    leader.land(stored.is_ok());
                }
            }
            _ => {
                if let Some(leader) = leader {
                    leader.fail();
                }
                if let Some(entry) = usable(&stale, Use::IfError) {
                    return Ok(answer(&entry, kept.exchange.answered_at));
                }
            }
        }
        outcome
    }
}

/// An answer that is about to be kept: everything that was known before its request was sent.
pub(super) struct Keeping<'k, 'f, 'a, 'p> {
    fetch: &'k CachedFetch<'f, 'a, 'p>,
    /// Read before the request is sent, so that an invalidation meanwhile invalidates the answer.
    pub(super) stamp: ogive_cache::ClockStamp,
    pub(super) exchange: Exchange,
}

/// An answer, or an entity of one, that is about to become an entry.
pub(super) struct NewEntry<'e> {
    pub(super) first: Key,
    pub(super) kind: EntryKind,
    pub(super) body: &'e [u8],
    pub(super) storable: ogive_cache::Storable,
    pub(super) tags: Vec<ogive_cache::Tag>,
}

impl<'k, 'f, 'a, 'p> Keeping<'k, 'f, 'a, 'p> {
    pub(super) fn begin(fetch: &'k CachedFetch<'f, 'a, 'p>) -> Self {
        let now = Timestamp::now();
        Keeping {
            fetch,
            stamp: fetch.cache.stamp(),
            exchange: Exchange {
                asked_at: now,
                answered_at: now,
            },
        }
    }

    fn store_whole(&self, first: Key, exchanged: &Exchanged) -> Result<(), StoringRefusal> {
        let body = &*exchanged.response.body;
        // The headers decide for most answers; bodies are long.
        let stored = self
            .decide(exchanged, body.len(), false)
            .and_then(|storable| {
                let tree = Tree::read(body, DEPTH_MAX).map_err(|_| StoringRefusal::Error)?;
                if has_errors(&tree) {
                    return Err(StoringRefusal::Error);
                }
                let names = tags_of_answer(tree.root());
                let tags = self.tags().of_answer(&exchanged.headers, &names);
                let entry = NewEntry {
                    first,
                    kind: EntryKind::Response,
                    body,
                    storable,
                    tags,
                };
                self.store(entry, exchanged)
            });
        self.note(&stored);
        stored
    }

    pub(super) fn tags(&self) -> SubgraphTags<'_> {
        SubgraphTags {
            cache: self.fetch.cache,
            subgraph: self.fetch.subgraph(),
        }
    }

    pub(super) fn decide(
        &self,
        exchanged: &Exchanged,
        bytes: usize,
        has_errors: bool,
    ) -> Result<ogive_cache::Storable, StoringRefusal> {
        let answer = Answer {
            status: exchanged.response.status,
            headers: &exchanged.headers,
            bytes,
            has_errors,
            exchange: self.exchange,
        };
        let has_private_id = self.fetch.caller.has_private_id();
        decide(answer, has_private_id, &self.fetch.policy.storing)
    }

    pub(super) fn store(
        &self,
        entry: NewEntry<'_>,
        exchanged: &Exchanged,
    ) -> Result<(), StoringRefusal> {
        let fetch = self.fetch;
        let NewEntry {
            first,
            kind,
            body,
            storable,
            tags,
        } = entry;
        if body.len() > fetch.policy.storing.entry_bytes_max {
            return Err(StoringRefusal::TooBig);
        }
        let Exchange {
            asked_at,
            answered_at,
        } = self.exchange;
        let write = Write {
            first,
            caller: fetch.caller,
            stamp: self.stamp,
            storable,
            kind,
            status: exchanged.response.status,
            headers: self.headers(exchanged),
            body,
            tags: tags.into(),
            took: answered_at.since(asked_at),
            client: fetch.client,
        };
        fetch.cache.store(write, answered_at)
    }

    fn headers(&self, exchanged: &Exchanged) -> Box<[(HeaderName, HeaderValue)]> {
        let endpoint = self.fetch.request.endpoint;
        let are_read = !endpoint.response_headers.is_empty() || endpoint.keeps_headers;
        kept_headers(exchanged, are_read)
    }

    pub(super) fn note(&self, stored: &Result<(), StoringRefusal>) {
        if let Err(why) = stored {
            let (subgraph, why) = (self.fetch.subgraph(), why.name());
            tracing::debug!(subgraph, why, "an answer is not kept");
        }
    }
}

/// The headers of an answer that are kept: those that rules or hooks read, without those that repeat a header of this
/// request. Headers that make the answer one client's own are always kept: equal operations of other clients must not share
/// the response that is made of it.
fn kept_headers(exchanged: &Exchanged, are_read: bool) -> Box<[(HeaderName, HeaderValue)]> {
    let mut headers = HeaderMap::new();
    for (name, value) in &exchanged.headers {
        let is_kept = are_read || is_personal(name.as_str(), value.as_bytes());
        if is_kept && !exchanged.echoes.contains(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    Entry::own_headers(&headers)
}

/// Whether an answer is anything but data without errors.
fn has_errors(tree: &Tree<'_>) -> bool {
    let has_data = tree.root().get("data").is_some_and(|data| !data.is_null());
    let errors = tree.root().get("errors");
    !has_data || errors.is_some_and(|errors| !errors.is_null())
}

/// The answer that an entry holds.
fn answer(entry: &Entry, now: Timestamp) -> Exchanged {
    exchanged(entry.status, entry.body.clone(), aged_headers(entry, now))
}

/// An answer with these headers.
pub(super) fn exchanged(status: u16, body: bytes::Bytes, headers: HeaderMap) -> Exchanged {
    let is_of_one_client =
        |(name, value): (&HeaderName, &HeaderValue)| is_personal(name.as_str(), value.as_bytes());
    Exchanged {
        personal: headers.iter().any(is_of_one_client),
        response: SubgraphResponse { status, body },
        retry_after: None,
        headers,
        echoes: Vec::new(),
    }
}

/// The headers of an entry; their lifetimes begin now.
pub(super) fn aged_headers(entry: &Entry, now: Timestamp) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(entry.headers.len());
    for (name, value) in &entry.headers {
        headers.append(name.clone(), value.clone());
    }
    headers.remove(header::AGE);
    if headers.contains_key(header::CACHE_CONTROL) {
        let stated = cache_control::stated(&headers).after(entry.lifetime.age(now));
        headers.insert(header::CACHE_CONTROL, stated.to_value());
    }
    headers
}

/// An entry, if it may be used for this reason.
pub(super) fn usable(found: &Option<Found>, reason: Use) -> Option<Arc<Entry>> {
    let found = found.as_ref()?;
    let is_usable = match reason {
        Use::IfError => found.usability != Use::Never,
        reason => found.usability == reason,
    };
    is_usable.then(|| Arc::clone(&found.entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_for_one_client_stays_one_without_rules_for_its_headers() {
        for (said, is_personal) in [("private, max-age=60", true), ("max-age=60", false)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(said));
            headers.insert(header::ETAG, HeaderValue::from_static("\"a\""));
            let answered = exchanged(200, bytes::Bytes::new(), headers);
            let kept: HeaderMap = kept_headers(&answered, false)
                .into_vec()
                .into_iter()
                .collect();
            assert!(!kept.contains_key(header::ETAG));
            assert_eq!(
                exchanged(200, bytes::Bytes::new(), kept).personal,
                is_personal
            );
            assert_eq!(kept_headers(&answered, true).len(), 2);
        }
    }
}
