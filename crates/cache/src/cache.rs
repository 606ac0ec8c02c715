//! The cache of one process: what is found, what is stored, what is invalidated.
//!
//! A look-up goes through memory first, without waiting ([`ResponseCache::look_up_in_memory`]). Where there is a remote tier,
//! what is missing is asked for there, in one round that brings the clock, too ([`ResponseCache::look_up`], in
//! `remote_lookup.rs`). Stores go to memory at once and to the remote tier in the background.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use ogive_base::{MemoryBudget, Share, ShareLimits, Shares};

use crate::{
    CallerKey, ClockStamp, Entry, EntryKind, FlightRole, Flights, Invalidation, InvalidationList,
    Key, KeyMaker, KeySecret, Leader, MemoryLimits, MemoryTier, Position, Remote, RemoteWrite,
    Storable, StoringRefusal, Tag, Timestamp, Use, VaryRecord, WriteQueue,
    clock::TAGS_MAX,
    codec::{write_entry, write_record},
    flight::FLIGHTS_MAX,
    refresh,
    writer::BYTES_MAX as QUEUE_BYTES_MAX,
};

/// What becomes of hits in memory while the remote tier does not say what was invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LostPolicy {
    /// They are used within their lifetime.
    #[default]
    Serve,
    /// They are not used.
    Bypass,
}

/// Limits and choices of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheOptions {
    /// How much is held in memory.
    pub memory: MemoryLimits,
    /// Longest time that an entry is kept; see [`LifetimePolicy::kept_max`](crate::LifetimePolicy::kept_max). Default two
    /// days.
    pub kept_max: Duration,
    /// Most tags whose invalidation is remembered. Default 100,000.
    pub tags_max: usize,
    /// Most missing keys for which requests are shared. Default 16,384. One client has `memory.client_percent` of them at
    /// most.
    pub flights_max: usize,
    /// Most refreshes in the background at a time. Default 256. One client has `memory.client_percent` of them at most.
    pub refreshes_max: usize,
    /// Without contact for so long the remote tier counts as lost. Default 1 s.
    pub lost_after: Duration,
    /// What happens then. Default: hits are used.
    pub on_lost: LostPolicy,
}

impl Default for CacheOptions {
    fn default() -> Self {
        CacheOptions {
            memory: MemoryLimits::default(),
            kept_max: Duration::from_hours(48),
            tags_max: TAGS_MAX,
            flights_max: FLIGHTS_MAX,
            refreshes_max: 256,
            lost_after: Duration::from_secs(1),
            on_lost: LostPolicy::Serve,
        }
    }
}

impl CacheOptions {
    /// The limits of a table with so many places.
    fn share_of(&self, all: usize) -> ShareLimits {
        ShareLimits::of(all, self.memory.client_percent)
    }
}

/// Responses and entities kept by one process, perhaps together with others.
#[derive(Debug)]
pub struct ResponseCache {
    pub(crate) keys: KeyMaker,
    pub(crate) memory: Arc<MemoryTier>,
    pub(crate) list: InvalidationList,
    pub(crate) remote: Option<Remote>,
    pub(crate) options: CacheOptions,
    queue: Arc<WriteQueue>,
    flights: Arc<Flights>,
    refreshes: Arc<Shares<IpAddr>>,
    /// When the remote tier said last what was invalidated.
    contact: AtomicU64,
}

/// What was looked for, and what was found.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// What was asked.
    pub first: Key,
    /// The key of an entry that this caller could be given. Requests in flight are shared by it.
    pub second: Key,
    /// An entry.
    pub found: Option<Found>,
}

/// An entry that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Whether it may be used. [`Use::Never`]: only after it was validated.
    pub usability: Use,
}

/// An answer to be stored.
#[derive(Debug)]
pub struct Write<'a> {
    /// What was asked.
    pub first: Key,
    /// Who asked.
    pub caller: &'a CallerKey<'a>,
    /// The clock, read before the request was sent.
    pub stamp: ClockStamp,
    /// How it is kept, as [`decide`](crate::decide) says.
    pub storable: Storable,
    /// What it is an answer to.
    pub kind: EntryKind,
    /// HTTP status code.
    pub status: u16,
    /// Headers that rules read.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// The body, or the object of one entity. It is copied.
    pub body: &'a [u8],
    /// What it is about.
    pub tags: Box<[Tag]>,
    /// How long the request took.
    pub took: Duration,
    /// The client that asked.
    pub client: Option<IpAddr>,
}

/// A refresh in the background that may begin. Its [`Leader`] says how it ended.
#[derive(Debug)]
pub struct Refresh {
    /// Others that miss wait for it.
    pub leader: Leader,
    _share: Share<IpAddr>,
}

impl ResponseCache {
    /// An empty cache, which counts its bytes in `budget`.
    pub fn new(
        secret: KeySecret,
        options: CacheOptions,
        remote: Option<Remote>,
        budget: &Arc<MemoryBudget>,
    ) -> Self {
        ResponseCache {
            keys: KeyMaker::new(secret),
            memory: MemoryTier::new(options.memory, budget),
            list: InvalidationList::new(options.tags_max, options.kept_max),
            remote,
            queue: WriteQueue::new(options.share_of(QUEUE_BYTES_MAX), budget),
            flights: Arc::new(Flights::new(options.share_of(options.flights_max))),
            refreshes: Arc::default(),
            contact: AtomicU64::new(0),
            options,
        }
    }

    /// What makes keys.
    pub fn keys(&self) -> &KeyMaker {
        &self.keys
    }

    /// The memory tier.
    pub fn memory(&self) -> &MemoryTier {
        &self.memory
    }

    /// What an entry is stamped with. Read before the request is sent.
    pub fn stamp(&self) -> ClockStamp {
        self.list.stamp()
    }

    /// Looks in memory only.
    pub fn look_up_in_memory(&self, first: Key, caller: &CallerKey<'_>, now: Timestamp) -> Lookup {
        let record = self.record(first, now).unwrap_or_default();
        let second = self.keys.second(first, &record, caller);
        let is_trusted = !self.list.is_behind() && !self.is_bypassed(now);
        let entry = self.memory.entry(&second).filter(|_| is_trusted);
        Lookup {
            first,
            second,
            found: entry.and_then(|entry| self.judge(entry, &second, now)),
        }
    }

    /// Decides who sends the request for a key that `client` misses.
    pub fn begin(&self, second: Key, client: Option<IpAddr>) -> FlightRole {
        self.flights.begin(second, client)
    }

    /// Whether a hit has its entry asked for again in the background: stale ones always, fresh ones by chance shortly before
    /// their end; one at a time for each entry. `random`: 64 random bits.
    pub fn begin_refresh(
        &self,
        lookup: &Lookup,
        client: Option<IpAddr>,
        now: Timestamp,
        random: u64,
    ) -> Option<Refresh> {
        let found = lookup.found.as_ref()?;
        if !refresh::is_due(&found.entry, now, random) {
            return None;
        }
        let limits = self.options.share_of(self.options.refreshes_max);
        let _share = self.refreshes.take(client, 1, limits).ok()?;
        match self.flights.begin(lookup.second, client) {
            FlightRole::Lead(leader) => Some(Refresh { leader, _share }),
            FlightRole::Wait(_) | FlightRole::Alone => None,
        }
    }

    /// Stores an answer in memory, and queues it for the remote tier. Fails if memory has no room for it; the remote tier may
    /// have it nevertheless.
    pub fn store(&self, write: Write<'_>, now: Timestamp) -> Result<(), StoringRefusal> {
        if !self.list.is_valid(write.stamp, &write.tags) {
            return Err(StoringRefusal::InvalidatedMeanwhile);
        }
        let Storable {
            mut lifetime,
            vary,
            validators,
        } = write.storable;
        // Invalidations are forgotten after that time.
        lifetime.gone_at = lifetime.gone_at.min(now.plus(self.options.kept_max));
        let until = if validators.is_empty() {
            lifetime.ends_at()
        } else {
            lifetime.gone_at
        };
        let record = self.keep_record(write.first, vary, until, write.client, now)?;
        let second = self.keys.second(write.first, &record, write.caller);
        let entry = Arc::new(Entry {
            kind: write.kind,
            stamp: write.stamp,
            lifetime,
            took: write.took,
            validators,
            status: write.status,
            tags: write.tags,
            headers: write.headers,
            body: Bytes::copy_from_slice(write.body),
        });
        let kept = self.memory.insert(second, Arc::clone(&entry), write.client);
        self.flights.note(&second, kept.is_ok());
        if self.remote.is_some() {
            let write_to_remote = RemoteWrite {
                key: second,
                value: write_entry(&entry),
                until,
            };
            self.queue.push(write_to_remote, write.client);
        }
        kept
    }

    /// Invalidates entries of this process, where there is no remote tier.
    pub fn invalidate_locally(&self, tags: &[Tag], now: Timestamp) -> Position {
        self.list.invalidate(tags, now)
    }

    /// Notes an invalidation that another process announces.
    pub fn notice(&self, invalidation: &Invalidation, now: Timestamp) {
        self.list.apply(invalidation, now);
        self.note_contact(now);
    }

    /// Writes to the remote tier that were dropped, because the queue had no room or the remote tier failed.
    pub fn dropped_writes(&self) -> u64 {
        self.queue.dropped()
    }

    /// Sends entries to the remote tier as they are stored. Never returns: it needs a task of its own.
    pub async fn write_behind(&self) {
        if let Some(remote) = &self.remote {
            self.queue.run(remote).await;
        }
    }

    /// Sends all entries that wait to the remote tier.
    pub async fn flush(&self) {
        if let Some(remote) = &self.remote {
            self.queue.flush(remote).await;
        }
    }

    /// The record of a first key, while it holds.
    pub(crate) fn record(&self, first: Key, now: Timestamp) -> Option<VaryRecord> {
        let record = self.memory.record(&first)?;
        (now < record.until).then(|| VaryRecord::clone(&record))
    }

    /// Whether an entry is any good.
    pub(crate) fn judge(&self, entry: Arc<Entry>, second: &Key, now: Timestamp) -> Option<Found> {
        let usability = entry.lifetime.usability(now);
        let can_validate = !entry.validators.is_empty() && now < entry.lifetime.gone_at;
        let is_of_use = usability != Use::Never || can_validate;
        if is_of_use && self.list.is_valid(entry.stamp, &entry.tags) {
            return Some(Found { entry, usability });
        }
        self.memory.remove(second);
        None
    }

    /// Whether hits are not used because the remote tier is lost.
    fn is_bypassed(&self, now: Timestamp) -> bool {
        let Some(_) = self
            .remote
            .as_ref()
            .filter(|_| self.options.on_lost == LostPolicy::Bypass)
        else {
            return false;
        };
        let contact = Timestamp(self.contact.load(Ordering::Relaxed));
        now.since(contact) > self.options.lost_after
    }

    pub(crate) fn note_contact(&self, now: Timestamp) {
        self.contact.fetch_max(now.0, Ordering::Relaxed);
    }

    /// The record under which an answer is stored: its own and what holds already.
    fn keep_record(
        &self,
        first: Key,
        own: VaryRecord,
        until: Timestamp,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<VaryRecord, StoringRefusal> {
        let known = self.record(first, now);
        let mut record = match &known {
            Some(known) => known.and(&own),
            None => own,
        };
        if known.is_none() && record.is_default() {
            return Ok(record);
        }
        let is_new = known.is_none_or(|known| !known.says_what(&record) || known.until < until);
        if is_new {
            // Twice as long as need be: the next answer does not write it again.
            record.until = until.plus(until.since(now));
            self.memory.insert_record(first, record.clone(), client)?;
            if self.remote.is_some() {
                let write_to_remote = RemoteWrite {
                    key: first,
                    value: write_record(&record),
                    until: record.until,
                };
                self.queue.push(write_to_remote, client);
            }
        }
        Ok(record)
    }
}
