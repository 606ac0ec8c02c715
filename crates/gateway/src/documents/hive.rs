//! App deployments of Hive: each document is fetched from the CDN when a client asks for it for the first time, by
//! `APP~VERSION~HASH`.
//!
//! A document never changes, so what was fetched stays until there is no room; that there is none is believed for a while.
//! One fetch is under way for an id, whoever waits for it; while the CDN does not answer, a pause spares it and the clients.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ogive_config::{DocumentHiveOptions, DocumentSourceOptions, without_secrets};
use ogive_sources::{SourceEvent, SourceKind, SourceResult};
use ogive_transport::{Http2, Source};
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::{epoch::lock, source::check_way};

/// Largest document.
const DOCUMENT_BYTES_MAX: usize = 2 << 20;
/// Longest part of an id.
const PART_BYTES_MAX: usize = 128;
/// Most fetches at a time.
const FETCHES_MAX: usize = 32;
/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What is known of an id.
#[derive(Clone, Debug)]
enum Held {
    Text(Arc<str>),
    /// There is none, as was said then.
    Absent(Instant),
}

/// What looking one up has to say.
pub(super) enum HiveAnswer {
    /// The document.
    Text(Arc<str>),
    /// There is none.
    Absent,
}

/// Documents of one target.
#[derive(Debug)]
pub(crate) struct HiveDocuments {
    pub(super) options: DocumentSourceOptions,
    hive: DocumentHiveOptions,
    key: HeaderValue,
    cache: Mutex<Arc<Cache<String, Held>>>,
    slots: Semaphore,
    failures: AtomicU32,
    pause_until: Mutex<Option<Instant>>,
}

impl HiveDocuments {
    /// The error is for the operator.
    pub(super) fn new(options: &DocumentSourceOptions) -> Result<Self, String> {
        let hive = options.hive.clone().unwrap_or_default();
        check_way(&hive.endpoint.0, options)?;
        let mut key = HeaderValue::from_str(&hive.token.0)
            .map_err(|_| "`hive.token` cannot be sent as a header".to_owned())?;
        key.set_sensitive(true);
        Source::new(&hive.endpoint.0, Http2::Disable)?;
        Ok(HiveDocuments {
            options: options.clone(),
            key,
            cache: Mutex::new(Arc::new(Cache::new(hive.max_documents.get()))),
            slots: Semaphore::new(FETCHES_MAX),
            failures: AtomicU32::new(0),
            pause_until: Mutex::default(),
            hive,
        })
    }

    /// Whose documents these are; `None`: everybody's.
    pub(super) fn client_name(&self) -> Option<&str> {
        self.options.client_name.as_deref()
    }
    /// Whether a client may ask for them.
    pub(super) fn is_for(&self, client: Option<&str>) -> bool {
        self.client_name().is_none_or(|own| client == Some(own))
    }
    /// Whether a document of that text was fetched, whatever its id. Looks at all of them.
    pub(super) fn has(&self, text: &str) -> bool {
        let is_it = |held: Held| matches!(held, Held::Text(held) if &*held == text);
        self.cache().iter().any(|(_, held)| is_it(held))
    }
    /// Whether it is the same target, with the same room, for the same client.
    pub(super) fn is_same_place(&self, other: &HiveDocuments) -> bool {
        let place = |hive: &HiveDocuments| {
            let options = &hive.hive;
            (
                options.endpoint.clone(),
                options.max_documents,
                hive.options.client_name.clone(),
            )
        };
        place(self) == place(other)
    }

    /// Takes over what one of the same target has fetched.
    pub(super) fn go_on(&self, before: &HiveDocuments) {
        let cache = Arc::clone(&lock(&before.cache));
        *lock(&self.cache) = cache;
    }

    fn cache(&self) -> Arc<Cache<String, Held>> {
        Arc::clone(&lock(&self.cache))
    }

    /// The document of an id, or that there is none, if that is known without asking.
    pub(super) fn known(&self, id: &str) -> Option<HiveAnswer> {
        path_of(id)?;
        match self.cache().get(id)? {
            Held::Text(text) => Some(HiveAnswer::Text(text)),
            Held::Absent(since) if since.elapsed() < self.hive.missing_ttl.0 => {
                Some(HiveAnswer::Absent)
            }
            Held::Absent(_) => None,
        }
    }

    /// Whether an id is one of these at all.
    pub(super) fn is_id(id: &str) -> bool {
        path_of(id).is_some()
    }

    /// Fetches the document of an id, unless somebody does already.
    pub(super) async fn look(&self, id: &str) {
        let Some(path) = path_of(id) else {
            return;
        };
        let cache = self.cache();
        // What is believed no more makes room for what is fetched.
        if let Some(Held::Absent(since)) = cache.get(id)
            && since.elapsed() >= self.hive.missing_ttl.0
        {
            cache.remove(id);
        }
        let fetching = cache.get_or_insert_async(id, self.fetch(&path));
        // The wait for a slot and the answer have a time each; whoever waits for another's fetch has both.
        let wait_max = self.options.request_timeout.0 * 2;
        let found = tokio::time::timeout(wait_max, fetching).await;
        // Whoever waited for another's fetch is woken before what it brought is in its place.
        if let Ok(Ok(held)) = found
            && cache.get(id).is_none()
        {
            cache.insert(id.to_owned(), held);
        }
    }

    async fn fetch(&self, path: &str) -> Result<Held, ()> {
        if self.is_paused() {
            return Err(());
        }
        let slot = tokio::time::timeout(self.options.request_timeout.0, self.slots.acquire());
        let _slot = slot.await.map_err(drop)?.map_err(drop)?;
        // It may have begun while this one waited.
        if self.is_paused() {
            return Err(());
        }
        let fetched = self.ask(path).await;
        let endpoint = without_secrets(&self.hive.endpoint.0);
        let (kind, from) = (SourceKind::Documents, &*endpoint);
        match fetched {
            Ok(held) => {
                self.failures.store(0, Ordering::Relaxed);
                let result = SourceResult::Same;
                SourceEvent { kind, from, result }.tell();
                Ok(held)
            }
            Err(failed) => {
                if failed.is_of_all {
                    self.pause();
                }
                let result = SourceResult::Kept(&failed.why);
                SourceEvent { kind, from, result }.tell();
                Err(())
            }
        }
    }

    fn is_paused(&self) -> bool {
        lock(&self.pause_until).is_some_and(|until| Instant::now() < until)
    }
    /// Leaves the CDN alone for a while. What fails together counts once.
    fn pause(&self) {
        let mut until = lock(&self.pause_until);
        let now = Instant::now();
        if until.is_none_or(|until| until <= now) {
            let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(8);
            *until = Some(now + (PAUSES.0 * (1 << failures)).min(PAUSES.1));
        }
    }

    async fn ask(&self, path: &str) -> Result<Held, Failed> {
        let url = format!("{}{path}", self.hive.endpoint.0.trim_end_matches('/'));
        let mut source = Source::new(&url, Http2::Disable).map_err(Failed::of_all)?;
        source.timeout = self.options.request_timeout.0;
        source.body_bytes_max = DOCUMENT_BYTES_MAX;
        let mut headers = HeaderMap::new();
        let name = HeaderName::from_static("x-hive-cdn-key");
        headers.insert(name, self.key.clone());
        let answer = source.send(Method::GET, headers, Bytes::new()).await;
        let answer = answer.map_err(Failed::of_all)?;
        match answer.status {
            200 => {}
            // Said of this id; a key that is refused, and one that asks too often, are of all.
            400..=499 if ![401, 403, 429].contains(&answer.status) => {
                return Ok(Held::Absent(Instant::now()));
            }
            status => return Err(Failed::of_all(format!("it answers {status}"))),
        }
        let text = String::from_utf8(answer.body.into());
        let text = text.map_err(|_| Failed::of_one("a document is not UTF-8"))?;
        if ogive_documents::form(&text).is_none() {
            return Err(Failed::of_one("what it answers with is no document"));
        }
        Ok(Held::Text(text.into()))
    }
}

/// Why a document cannot be had.
struct Failed {
    why: String,
    /// Whether others cannot be had either.
    is_of_all: bool,
}

impl Failed {
    fn of_all(why: String) -> Self {
        Failed {
            why,
            is_of_all: true,
        }
    }
    fn of_one(why: &str) -> Self {
        let why = why.to_owned();
        Failed {
            why,
            is_of_all: false,
        }
    }
}

/// Where the document of an id is, if it is the id of an app deployment.
fn path_of(id: &str) -> Option<String> {
    let parts: Vec<&str> = id.split('~').collect();
    let [app, version, hash] = *parts else {
        return None;
    };
    let plain = |part: &&str| {
        let mut bytes = part.bytes();
        let is_plain = bytes.all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        is_plain && !part.is_empty() && part.len() <= PART_BYTES_MAX && !part.starts_with('.')
    };
    [app, version, hash]
        .iter()
        .all(plain)
        .then(|| format!("/apps/{app}/{version}/{hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_app_deployments_are_asked_for() {
        assert_eq!(
            path_of("web~1.0.0~ab").as_deref(),
            Some("/apps/web/1.0.0/ab")
        );
        for id in [
            "web~1", "a~b~c~d", "a~..~c", "a~b/c~d", "a~~c", "a~b~c?", "é~b~c", "", "~~",
        ] {
            assert_eq!(path_of(id), None, "{id}");
        }
        assert_eq!(path_of(&format!("a~b~{}", "c".repeat(129))), None);
    }
}
