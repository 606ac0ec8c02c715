//! The cache of one process: it looks entries up, stores them and invalidates them.
//!
//! A look-up searches memory first, without waiting ([`ResponseCache::look_up_in_memory`]). Where there is a remote tier, one
//! round then fetches all entries that memory lacks, and the position of the shared clock ([`ResponseCache::look_up`], in
//! `remote_lookup.rs`). A store writes to memory at once and to the remote tier in the background.

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

/// Whether hits in memory are used while the remote tier is lost, so that this process may have missed invalidations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LostPolicy {
    /// Hits are used within their lifetime.
    #[default]
    Serve,
    /// Hits are not used: each request goes to its subgraph.
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
    /// How long after the last contact the remote tier counts as lost. Default 1 s.
    pub lost_after: Duration,
    /// Whether hits in memory are used while the remote tier is lost. Default [`LostPolicy::Serve`].
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

/// Responses and entities that one process keeps. Processes with one remote tier share their entries.
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
    /// When the remote tier last confirmed that this process knows all invalidations, as [`Timestamp`].
    contact: AtomicU64,
}

/// The keys of a look-up, and the entry that it found.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The key of the request, without headers and caller.
    pub first: Key,
    /// The key of entries that this caller may get. Requests in flight are shared by this key.
    pub second: Key,
    /// The entry, if there is one that may be used or validated.
    pub found: Option<Found>,
}

/// An entry that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Whether the entry may be used. [`Use::Never`]: only after the subgraph has validated it.
    pub usability: Use,
}

/// An answer to be stored.
#[derive(Debug)]
pub struct Write<'a> {
    /// The key of the request, without headers and caller.
    pub first: Key,
    /// The caller whose request was answered.
    pub caller: &'a CallerKey<'a>,
    /// The clock, read before the request was sent.
    pub stamp: ClockStamp,
    /// For whom and how long the answer is kept: the result of [`decide`](crate::decide).
    pub storable: Storable,
    /// Whether it answers a whole request or is one entity of an answer.
    pub kind: EntryKind,
    /// HTTP status code.
    pub status: u16,
    /// The headers of the answer that header rules read.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// The body, or the object of one entity. The cache copies it.
    pub body: &'a [u8],
    /// Tags by which the entry is invalidated.
    pub tags: Box<[Tag]>,
    /// How long the request took.
    pub took: Duration,
    /// The client whose request was answered; the entry counts in its share.
    pub client: Option<IpAddr>,
}

/// Permission to refresh an entry in the background.
#[derive(Debug)]
pub struct Refresh {
    /// Reports how the refresh ended to callers that miss the entry meanwhile and wait.
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

    /// The limits and choices.
    pub fn options(&self) -> &CacheOptions {
        &self.options
    }

    /// The maker of keys.
    pub fn keys(&self) -> &KeyMaker {
        &self.keys
    }

    /// The memory tier.
    pub fn memory(&self) -> &MemoryTier {
        &self.memory
    }

    /// The stamp of an entry whose request is sent now. Read it before the request is sent.
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

    /// Decides whether the caller must refresh the entry of a hit in the background, by a request to the subgraph. Stale
    /// entries are always refreshed, fresh ones by chance shortly before they become stale. Each entry has one refresh at a
    /// time. `random`: 64 random bits.
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
        // The list forgets invalidations after `kept_max`; no entry may be older.
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

    /// Invalidates entries of a process that has no remote tier.
    pub fn invalidate_locally(&self, tags: &[Tag], now: Timestamp) -> Position {
        self.list.invalidate(tags, now)
    }

    /// Applies an invalidation that another process has announced.
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

    /// The `Vary` record of a first key, unless it has expired.
    pub(crate) fn record(&self, first: Key, now: Timestamp) -> Option<VaryRecord> {
        let record = self.memory.record(&first)?;
        (now < record.until).then(|| VaryRecord::clone(&record))
    }

    /// Returns an entry if it may be used or validated; otherwise removes it from memory.
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

    /// Whether hits in memory must not be used because the remote tier is lost.
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

    /// The `Vary` record under which an answer is stored: the combination of its own and the known one.
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
            // Twice as long as the entry lasts, so that the next answer need not write the record again.
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
