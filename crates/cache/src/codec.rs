//! Entries and `Vary` records as bytes, for the remote tier.
//!
//! The remote tier may return bytes that another version or another program has written. So reading checks every length,
//! and bytes that cannot be read are a miss.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::{
    ClockStamp, Entry, EntryKind, Lifetime, Scope, Tag, Timestamp, Validators, Vary, VaryRecord,
    timestamp::millis, vary::NAMES_MAX,
};

/// The first byte of an entry. Increase it when the layout changes.
const ENTRY: u8 = 1;
/// The first byte of a `Vary` record. Increase it when the layout changes.
const RECORD: u8 = 129;

/// Writes an entry as bytes.
pub fn write_entry(entry: &Entry) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(entry.bytes()));
    out.0.push(ENTRY);
    out.0.push(match entry.kind {
        EntryKind::Response => 0,
        EntryKind::Entity => 1,
    });
    out.0.extend_from_slice(&entry.status.to_le_bytes());
    let lifetime = &entry.lifetime;
    for number in [
        entry.stamp.epoch,
        entry.stamp.number,
        lifetime.made_at.0,
        millis(lifetime.fresh),
        millis(lifetime.stale_while_revalidate),
        millis(lifetime.stale_if_error),
        lifetime.gone_at.0,
        millis(entry.took),
    ] {
        out.number(number);
    }
    out.optional(entry.validators.etag.as_ref());
    out.optional(entry.validators.last_modified.as_ref());
    out.number(entry.tags.len() as u64);
    entry.tags.iter().for_each(|tag| out.number(tag.0));
    out.number(entry.headers.len() as u64);
    for (name, value) in &entry.headers {
        out.bytes(name.as_str().as_bytes());
        out.bytes(value.as_bytes());
    }
    out.bytes(&entry.body);
    out.0
}

/// Reads an entry; `None` if the bytes are not an entry of this format.
pub fn read_entry(bytes: &[u8]) -> Option<Entry> {
    let mut input = Reader(bytes);
    if input.byte()? != ENTRY {
        return None;
    }
    let kind = match input.byte()? {
        0 => EntryKind::Response,
        1 => EntryKind::Entity,
        _ => return None,
    };
    let status = u16::from_le_bytes([input.byte()?, input.byte()?]);
    let stamp = ClockStamp {
        epoch: input.number()?,
        number: input.number()?,
    };
    let lifetime = Lifetime {
        made_at: Timestamp(input.number()?),
        fresh: Duration::from_millis(input.number()?),
        stale_while_revalidate: Duration::from_millis(input.number()?),
        stale_if_error: Duration::from_millis(input.number()?),
        gone_at: Timestamp(input.number()?),
    };
    let entry = Entry {
        kind,
        status,
        stamp,
        lifetime,
        took: Duration::from_millis(input.number()?),
        validators: Validators {
            etag: input.optional()?,
            last_modified: input.optional()?,
        },
        tags: input.list(|input| input.number().map(Tag))?,
        headers: input.list(|input| {
            let name = HeaderName::from_bytes(input.bytes()?).ok()?;
            let value = HeaderValue::from_bytes(input.bytes()?).ok()?;
            Some((name, value))
        })?,
        body: Bytes::copy_from_slice(input.bytes()?),
    };
    input.0.is_empty().then_some(entry)
}

/// Writes a `Vary` record as bytes.
pub fn write_record(record: &VaryRecord) -> Vec<u8> {
    let VaryRecord { vary, scope, until } = record;
    let mut out = Writer(vec![
        RECORD,
        u8::from(scope.by_credentials),
        u8::from(scope.by_private_id),
    ]);
    out.number(until.0);
    if let Vary::Named(names) = vary {
        out.number(names.len() as u64);
        names
            .iter()
            .for_each(|name| out.bytes(name.as_str().as_bytes()));
    }
    out.0
}

/// Reads a `Vary` record; `None` if the bytes are not a record of this format.
pub fn read_record(bytes: &[u8]) -> Option<VaryRecord> {
    let mut input = Reader(bytes);
    if input.byte()? != RECORD {
        return None;
    }
    let scope = Scope {
        by_credentials: input.flag()?,
        by_private_id: input.flag()?,
    };
    let until = Timestamp(input.number()?);
    if input.0.is_empty() {
        let vary = Vary::AllHeaders;
        return Some(VaryRecord { vary, scope, until });
    }
    let names = input.list(|input| HeaderName::from_bytes(input.bytes()?).ok())?;
    let is_sorted = names
        .windows(2)
        .all(|two| two[0].as_str() < two[1].as_str());
    let is_well = is_sorted && names.len() <= NAMES_MAX && input.0.is_empty();
    let vary = Vary::Named(names);
    is_well.then_some(VaryRecord { vary, scope, until })
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
    fn optional(&mut self, value: Option<&HeaderValue>) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.bytes(value.as_bytes());
        }
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }
    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
    fn optional(&mut self) -> Option<Option<HeaderValue>> {
        if !self.flag()? {
            return Some(None);
        }
        HeaderValue::from_bytes(self.bytes()?).ok().map(Some)
    }
    /// Reads a number and so many items. Each item takes eight bytes at least, so a larger number than the remaining bytes
    /// allow is rejected before anything is allocated.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Box<[T]>> {
        let length = usize::try_from(self.number()?).ok()?;
        if length > self.0.len() / 8 {
            return None;
        }
        (0..length).map(|_| item(self)).collect()
    }
}
