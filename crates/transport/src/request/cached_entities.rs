//! Requests for entities whose entries are kept one by one: only those that are missing are requested.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, header};
use ogive_cache::{
    Entry, EntryKind, Key, Leader, Representation, Timestamp, Use, Waiter,
    entities::{EntityAnswer, EntityRequest},
};
use ogive_execute::SubgraphRequest;
use tokio::time::timeout_at;

use super::{
    Outcome, Prepared,
    cached::{CachedFetch, Keeping, Missing, NewEntry, aged_headers, exchanged, usable},
    too_slow,
};
use crate::{answer::Exchanged, cache_control};

/// The entities of one request, as far as they are known, in the order of the request.
struct Batch<'b> {
    asked: &'b EntityRequest<'b>,
    firsts: Vec<Key>,
    found: Vec<Option<Value>>,
}

/// An entity.
#[derive(Clone)]
enum Value {
    Kept(Arc<Entry>),
    Fresh(Bytes),
}

/// What was answered to a request for entities that were missing.
#[derive(Default)]
struct Fresh {
    headers: Option<HeaderMap>,
    echoes: Vec<http::HeaderName>,
    errors: Option<Vec<Vec<u8>>>,
    extensions: Option<Vec<u8>>,
}

/// What is sent for entities that are missing.
struct Sending {
    wanted: Vec<bool>,
    leaders: Vec<Option<Leader>>,
}

impl CachedFetch<'_, '_, '_> {
    /// Answers a request for entities.
    pub(super) async fn entities(&self, asked: &EntityRequest<'_>) -> Outcome {
        let extensions = asked.extensions();
        let key = |one: Representation<'_>| self.first_key(one.content, extensions);
        let firsts: Vec<Key> = asked.representations().map(key).collect();
        let mut batch = Batch {
            found: vec![None; firsts.len()],
            asked,
            firsts,
        };
        let (sending, waiters) = self.plan(&mut batch).await;
        let mut fresh = Fresh::default();
        if sending.wanted.contains(&true)
            && let Err(outcome) = self.send_missing(&mut batch, sending, &mut fresh).await
        {
            return *outcome;
        }
        if !waiters.is_empty() {
            for waiter in waiters {
                let ended = timeout_at(self.request.deadline, waiter.outcome()).await;
                if ended.is_err() {
                    return Err(too_slow(self.request.endpoint));
                }
            }
            // What others have not stored is requested without waiting once more.
            self.recall(&mut batch).await;
            let sending = batch.all_missing();
            if sending.wanted.contains(&true)
                && let Err(outcome) = self.send_missing(&mut batch, sending, &mut fresh).await
            {
                return *outcome;
            }
        }
        Ok(batch.answer(fresh, Timestamp::now()))
    }

    /// Looks all entities up, and decides for those that are missing who requests them.
    async fn plan(&self, batch: &mut Batch<'_>) -> (Sending, Vec<Waiter>) {
        if self.is_after_mutation() {
            return (batch.all_missing(), Vec::new());
        }
        let now = Timestamp::now();
        let lookups = self
            .cache
            .look_up(&batch.firsts, self.caller, self.client, now);
        let mut sending = Sending {
            wanted: vec![false; batch.firsts.len()],
            leaders: Vec::new(),
        };
        sending.leaders.resize_with(batch.firsts.len(), || None);
        let mut waiters = Vec::new();
        for (at, lookup) in lookups.await.into_iter().enumerate() {
            batch.found[at] = usable(&lookup.found, Use::Fresh).map(Value::Kept);
            if batch.found[at].is_some() {
                continue;
            }
            match self.begin(&lookup) {
                Missing::Found(found) => batch.found[at] = Some(Value::Kept(found.entry)),
                Missing::Wait(waiter) => waiters.push(waiter),
                Missing::Send(leader) => {
                    sending.wanted[at] = true;
                    sending.leaders[at] = leader;
                }
            }
        }
        (sending, waiters)
    }

    /// Looks those entities up that are still missing.
    async fn recall(&self, batch: &mut Batch<'_>) {
        let missing: Vec<usize> = batch.missing().collect();
        let firsts: Vec<Key> = missing.iter().map(|at| batch.firsts[*at]).collect();
        let now = Timestamp::now();
        let lookups = self.cache.look_up(&firsts, self.caller, self.client, now);
        for (at, lookup) in missing.into_iter().zip(lookups.await) {
            batch.found[at] = usable(&lookup.found, Use::Fresh).map(Value::Kept);
        }
    }

    /// Requests entities, and keeps those that are answered. Fails with the outcome of the request if it cannot be told
    /// apart what belongs to which entity.
    async fn send_missing(
        &self,
        batch: &mut Batch<'_>,
        sending: Sending,
        fresh: &mut Fresh,
    ) -> Result<(), Box<Outcome>> {
        let wanted = &sending.wanted;
        let mut kept = Keeping::begin(self);
        let outcome = if wanted.contains(&false) {
            let request = Prepared {
                request: SubgraphRequest {
                    body: batch.asked.body_of(wanted).into(),
                    ..self.request.request.clone()
                },
                // It looks for the whole answer.
                ahead: None,
                ..*self.request
            };
            self.transport.shared(&request, Some(kept.stamp)).await
        } else {
            self.transport.shared(self.request, Some(kept.stamp)).await
        };
        kept.exchange.answered_at = Timestamp::now();
        let leaders = sending.leaders.into_iter().flatten();
        let exchanged = match outcome {
            Ok(exchanged) if exchanged.response.status == 200 => exchanged,
            outcome => {
                leaders.for_each(Leader::fail);
                return Err(Box::new(outcome));
            }
        };
        let body = exchanged.response.body.clone();
        let Some(answer) = batch.asked.read_answer(wanted, &body) else {
            leaders.for_each(|leader| leader.land(false));
            return Err(Box::new(Ok(exchanged)));
        };
        let is_stored = batch.store(&kept, &exchanged, &answer);
        leaders.for_each(|leader| leader.land(is_stored));
        batch.take(&answer, &body);
        fresh.take(exchanged, &answer);
        Ok(())
    }
}

impl<'b> Batch<'b> {
    fn missing(&self) -> impl Iterator<Item = usize> + '_ {
        let places = self.found.iter().enumerate();
        places
            .filter(|(_, found)| found.is_none())
            .map(|(at, _)| at)
    }

    fn all_missing(&self) -> Sending {
        Sending {
            wanted: self.found.iter().map(Option::is_none).collect(),
            leaders: Vec::new(),
        }
    }

    /// Keeps each entity of an answer; false if one of them is not kept.
    fn store(
        &self,
        kept: &Keeping<'_, '_, '_, '_>,
        exchanged: &Exchanged,
        answer: &EntityAnswer<'_>,
    ) -> bool {
        let storable = match kept.decide(exchanged, 0, answer.errors.is_some()) {
            Ok(storable) => storable,
            Err(why) => {
                kept.note(&Err(why));
                return false;
            }
        };
        let (mut tags, mut is_stored) = (answer.tags.iter(), true);
        let entities = answer.entities.iter().zip(&self.firsts);
        for ((entity, first), one) in entities.zip(self.asked.representations()) {
            let Some(entity) = entity else {
                continue;
            };
            let own = tags.next().map_or(&[][..], |own| own);
            let mut tags = kept.tags().of_answer(&exchanged.headers, own);
            tags.extend(kept.tags().of_entity(one.json));
            let entry = NewEntry {
                first: *first,
                kind: EntryKind::Entity,
                body: entity,
                storable: storable.clone(),
                tags,
            };
            let stored = kept.store(entry, exchanged);
            kept.note(&stored);
            is_stored &= stored.is_ok();
        }
        is_stored
    }

    fn take(&mut self, answer: &EntityAnswer<'_>, body: &Bytes) {
        for (found, entity) in self.found.iter_mut().zip(&answer.entities) {
            if let Some(entity) = entity {
                *found = Some(Value::Fresh(body.slice_ref(entity)));
            }
        }
    }

    /// The answer to the whole request.
    fn answer(&self, fresh: Fresh, now: Timestamp) -> Exchanged {
        let entities = self.found.iter().map(|found| match found {
            Some(Value::Kept(entry)) => &*entry.body,
            Some(Value::Fresh(json)) => &**json,
            None => b"null",
        });
        let (errors, extensions) = (fresh.errors.as_deref(), fresh.extensions.as_deref());
        let body = self.asked.merge(entities, errors, extensions);
        let kept = self.found.iter().filter_map(|found| match found {
            Some(Value::Kept(entry)) => Some(&**entry),
            _ => None,
        });
        let headers = merged_headers(fresh.headers, kept, now);
        Exchanged {
            echoes: fresh.echoes,
            ..exchanged(200, Bytes::from(body), headers)
        }
    }
}

impl Fresh {
    /// Takes what an answer says besides entities; the errors of all answers.
    fn take(&mut self, exchanged: Exchanged, answer: &EntityAnswer<'_>) {
        if let Some(errors) = &answer.errors {
            self.errors
                .get_or_insert_default()
                .extend_from_slice(errors);
        }
        self.extensions = answer.extensions.map(<[u8]>::to_vec);
        self.headers = Some(match self.headers.take() {
            None => exchanged.headers,
            Some(mut known) => {
                let stated = cache_control::stated(&known);
                let stated = stated.and(cache_control::stated(&exchanged.headers));
                known.insert(header::CACHE_CONTROL, stated.to_value());
                known
            }
        });
        self.echoes = exchanged.echoes;
    }
}

/// The headers of an answer that is made of a fresh one and of entries: those of the fresh one or of the first entry, with
/// what all of them state to caches.
fn merged_headers<'e>(
    fresh: Option<HeaderMap>,
    entries: impl Iterator<Item = &'e Entry>,
    now: Timestamp,
) -> HeaderMap {
    // Entries have headers only where rules or hooks read them.
    let mut kept = entries.filter(|entry| !entry.headers.is_empty());
    let Some(mut headers) = fresh.or_else(|| Some(aged_headers(kept.next()?, now))) else {
        return HeaderMap::new();
    };
    for entry in kept {
        let own = aged_headers(entry, now);
        let stated = cache_control::stated(&headers).and(cache_control::stated(&own));
        headers.insert(header::CACHE_CONTROL, stated.to_value());
        for value in own.get_all(header::VARY) {
            if !headers
                .get_all(header::VARY)
                .iter()
                .any(|known| known == value)
            {
                headers.append(header::VARY, value.clone());
            }
        }
    }
    headers
}
