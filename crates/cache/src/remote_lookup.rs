//! Look-ups in the remote tier, and following its clock.

use std::net::IpAddr;

use bytes::Bytes;

use crate::{
    CallerKey, Changes, ClockState, Found, Invalidation, Key, Lookup, LostPolicy, Position, Remote,
    RemoteError, RemoteUse, ResponseCache, Tag, Timestamp, Use, VaryRecord,
    codec::{read_entry, read_record},
};

impl ResponseCache {
    /// Looks first keys up, in memory and then in the remote tier, for which it waits no longer than
    /// [`RemoteLimits::fetch`](crate::RemoteLimits::fetch). A look-up that fails there is a miss. Entries that are found
    /// there are stored in memory, in the share of `client`.
    pub async fn look_up(
        &self,
        firsts: &[Key],
        caller: &CallerKey<'_>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Vec<Lookup> {
        let look = |first: &Key| self.look_up_in_memory(*first, caller, now);
        let mut lookups: Vec<Lookup> = firsts.iter().map(look).collect();
        let Some(remote) = &self.remote else {
            return lookups;
        };
        if !self.list.is_behind() && lookups.iter().all(is_fresh) {
            return lookups;
        }
        let fetched = self.fetch_missing(remote, &mut lookups, caller, client, now);
        let done = remote.call(RemoteUse::Fetch, fetched).await;
        if done.is_err() && self.options.on_lost == LostPolicy::Serve {
            // The policy accepts that this process may have missed invalidations: use what memory has.
            for lookup in lookups.iter_mut().filter(|lookup| lookup.found.is_none()) {
                let entry = self.memory.entry(&lookup.second);
                lookup.found = entry.and_then(|entry| self.judge(entry, &lookup.second, now));
            }
        }
        lookups
    }

    /// Reads the position of the shared clock, and the invalidations that this process has missed. A background task calls
    /// it while no announcements arrive.
    pub async fn follow_clock(&self, now: Timestamp) -> Result<(), RemoteError> {
        let Some(remote) = &self.remote else {
            return Ok(());
        };
        let followed = self.fetch(remote, &[], now);
        remote.call(RemoteUse::Invalidate, followed).await?;
        Ok(())
    }

    /// Invalidates entries of all processes. Fails if the remote tier cannot be reached: then no entry is invalidated.
    pub async fn invalidate(
        &self,
        tags: &[Tag],
        nonce: u64,
        now: Timestamp,
    ) -> Result<Position, RemoteError> {
        let Some(remote) = &self.remote else {
            return Ok(self.invalidate_locally(tags, now));
        };
        let invalidated = async {
            let position = remote.tier.invalidate(tags, nonce).await?;
            let tags = tags.to_vec();
            self.list.apply(&Invalidation { position, tags }, now);
            self.follow(remote, position, now).await?;
            Ok(position)
        };
        remote.call(RemoteUse::Invalidate, invalidated).await
    }

    /// Fetches what memory lacks: entries and records in one round. Where a record that was not known here changes the key
    /// of an entry, a second round fetches the entries of such keys.
    async fn fetch_missing(
        &self,
        remote: &Remote,
        lookups: &mut [Lookup],
        caller: &CallerKey<'_>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), RemoteError> {
        let missing: Vec<&mut Lookup> = lookups.iter_mut().filter(|l| !is_fresh(l)).collect();
        let entries = missing.iter().map(|lookup| lookup.second);
        let records = missing.iter().map(|lookup| lookup.first);
        let keys: Vec<Key> = entries.chain(records).collect();
        let values = self.fetch(remote, &keys, now).await?;
        let value = |at: usize| values.get(at).and_then(Option::as_ref);
        let count = missing.len();
        let mut moved = Vec::new();
        for (at, lookup) in missing.into_iter().enumerate() {
            let second = match value(count + at).and_then(|bytes| read_record(bytes)) {
                Some(record) if now < record.until => {
                    self.take_record(lookup.first, record, caller, client, now)
                }
                _ => lookup.second,
            };
            if second == lookup.second {
                self.take_entry(lookup, value(at), client, now);
            } else {
                lookup.second = second;
                moved.push(lookup);
            }
        }
        if moved.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = moved.iter().map(|lookup| lookup.second).collect();
        let values = self.fetch(remote, &keys, now).await?;
        for (at, lookup) in moved.into_iter().enumerate() {
            let value = values.get(at).and_then(Option::as_ref);
            self.take_entry(lookup, value, client, now);
        }
        Ok(())
    }

    /// Fetches values, and applies all invalidations that came before they were read.
    async fn fetch(
        &self,
        remote: &Remote,
        keys: &[Key],
        now: Timestamp,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        let fetched = remote.tier.fetch(keys).await?;
        self.follow(remote, fetched.position, now).await?;
        Ok(fetched.values)
    }

    /// Stores the record of another process in memory; returns the second key that follows from it.
    fn take_record(
        &self,
        first: Key,
        record: VaryRecord,
        caller: &CallerKey<'_>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> Key {
        let known = self.record(first, now);
        let record = match &known {
            Some(known) => known.and(&record),
            None => record,
        };
        if known.is_none_or(|known| !known.says_what(&record)) {
            // If memory has no room, the next look-up fetches the record again.
            let _ = self.memory.insert_record(first, record.clone(), client);
        }
        self.keys.second(first, &record, caller)
    }

    /// Stores the entry of another process in memory, if it is valid and newer than the entry that memory has.
    fn take_entry(
        &self,
        lookup: &mut Lookup,
        bytes: Option<&Bytes>,
        client: Option<IpAddr>,
        now: Timestamp,
    ) {
        // The fetch may have brought an invalidation of the entry that was found before.
        let known = lookup.found.take();
        let local = known.map(|found| found.entry);
        let local = local.or_else(|| self.memory.entry(&lookup.second));
        lookup.found = local.and_then(|entry| self.judge(entry, &lookup.second, now));
        let Some(entry) = bytes.and_then(|bytes| read_entry(bytes)) else {
            return;
        };
        let made_at = entry.lifetime.made_at;
        let is_older = |found: &Found| found.entry.lifetime.made_at >= made_at;
        if lookup.found.as_ref().is_some_and(is_older) {
            return;
        }
        if let Some(found) = self.judge(entry.into(), &lookup.second, now) {
            // If memory has no room, the next look-up fetches the entry again.
            let _ = self
                .memory
                .insert(lookup.second, found.entry.clone(), client);
            lookup.found = Some(found);
        }
    }

    /// Applies all invalidations up to a position of the shared clock.
    async fn follow(
        &self,
        remote: &Remote,
        shared: Position,
        now: Timestamp,
    ) -> Result<(), RemoteError> {
        match self.list.observe(shared) {
            ClockState::Current => {}
            ClockState::Replaced => self.begin_epoch(remote, shared).await?,
            ClockState::Behind => match remote.tier.changes_since(self.list.position()).await? {
                Changes::Since(changes) => {
                    for invalidation in &changes {
                        self.list.apply(invalidation, now);
                    }
                }
                Changes::Forgotten(position) => self.list.begin_epoch(position),
                Changes::Replaced(position) => self.begin_epoch(remote, position).await?,
            },
        }
        self.note_contact(now);
        Ok(())
    }

    /// Adopts the history of a clock that has lost its state. A clock that continues from an older state of the known epoch
    /// uses numbers a second time, so it needs a new epoch for all processes.
    async fn begin_epoch(&self, remote: &Remote, shared: Position) -> Result<(), RemoteError> {
        let known = self.list.position();
        let position = if shared.epoch == known.epoch {
            remote.tier.begin_epoch(shared.epoch).await?
        } else {
            shared
        };
        if known != Position::default() {
            tracing::warn!(
                "the remote cache lost its clock or restored an older state; all entries are invalid"
            );
        }
        self.list.begin_epoch(position);
        Ok(())
    }
}

fn is_fresh(lookup: &Lookup) -> bool {
    let found = lookup.found.as_ref();
    found.is_some_and(|found| found.usability == Use::Fresh)
}
