//! What tests make: headers, entries, caches.

use std::{path::PathBuf, process::Command, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::MemoryBudget;
use ogive_cache::{
    Answer, CacheOptions, CallerKey, ClockStamp, Content, Entry, EntryKind, Exchange, Key,
    KeyParts, KeySecret, Lifetime, Lookup, Remote, ResponseCache, StoringPolicy, StoringRefusal,
    Tag, Timestamp, Validators, Write, decide,
};
use ogive_testbase::oracle;

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.join("tests").join(name)
}

pub(crate) fn headers<N: AsRef<str>, V: AsRef<str>>(lines: &[(N, V)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(name.as_ref()).unwrap();
        headers.append(name, HeaderValue::from_str(value.as_ref()).unwrap());
    }
    headers
}

pub(crate) fn sent(headers: &HeaderMap) -> Vec<(&HeaderName, &HeaderValue)> {
    headers.iter().collect()
}

pub(crate) fn entry(body: &str, tags: &[Tag], stamp: ClockStamp) -> Entry {
    Entry {
        kind: EntryKind::Response,
        stamp,
        lifetime: Lifetime {
            made_at: NOW,
            fresh: Duration::from_secs(60),
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            gone_at: NOW.plus(Duration::from_hours(48)),
        },
        took: Duration::from_millis(10),
        validators: Validators::default(),
        status: 200,
        tags: tags.into(),
        headers: Box::default(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

pub(crate) fn cache(options: CacheOptions, remote: Option<Remote>) -> ResponseCache {
    let secret = KeySecret::derive(b"tests");
    ResponseCache::new(secret, options, remote, &Arc::new(MemoryBudget::default()))
}

/// The key of a whole request with this body.
pub(crate) fn first(cache: &ResponseCache, body: &str) -> Key {
    cache.keys().first(&KeyParts {
        subgraph: "a",
        url: "http://a/graphql",
        schema: 1,
        extensions: b"",
        content: Content::Whole {
            body: body.as_bytes(),
        },
    })
}

/// A request without headers.
pub(crate) fn anyone() -> CallerKey<'static> {
    CallerKey::new(&[], None)
}

/// An answer whose request was sent at `stamp`.
pub(crate) struct Answered<'a> {
    pub(crate) stamp: ClockStamp,
    pub(crate) body: &'a str,
    pub(crate) tags: &'a [Tag],
}

/// Stores an answer with these headers.
pub(crate) fn store(
    cache: &ResponseCache,
    first: Key,
    caller: &CallerKey<'_>,
    answered: Answered<'_>,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<(), StoringRefusal> {
    let Answered { stamp, body, tags } = answered;
    let answer = Answer {
        status: 200,
        headers,
        bytes: body.len(),
        has_errors: false,
        exchange: Exchange {
            asked_at: now,
            answered_at: now,
        },
    };
    let storable = decide(answer, caller.has_private_id(), &StoringPolicy::default())?;
    let write = Write {
        first,
        caller,
        stamp,
        storable,
        kind: EntryKind::Response,
        status: 200,
        headers: Box::default(),
        body: body.as_bytes(),
        tags: tags.into(),
        took: Duration::from_millis(10),
        client: None,
    };
    cache.store(write, now)
}

/// Ten thousand verdicts of an npm package, one JSON line each; `None` where the package is not installed.
pub(crate) fn record(kind: &str, package: &str) -> Option<String> {
    let oracle = oracle(&format!("cache/node_modules/{package}"))?;
    let made = Command::new("node")
        .arg(oracle.join("cache/record.mjs"))
        .args([kind, "2", "10000"])
        .output();
    Some(String::from_utf8(made.unwrap().stdout).unwrap())
}

/// The body that was found.
pub(crate) fn body(lookup: &Lookup) -> Option<&str> {
    let found = lookup.found.as_ref()?;
    std::str::from_utf8(&found.entry.body).ok()
}
