//! API keys: a file has the SHA-256 of each, and what is claimed of whoever has it.
//!
//! ```json
//! { "keys": { "reporting": { "sha256": "9f86d0…", "scopes": ["read"], "claims": { "tenant": "acme" } } } }
//! ```
//!
//! Keys are looked up by digest, so how long that takes says nothing of how near a guess was. They are long and random, or
//! they would be guessed; that is why one round of SHA-256 is enough for them, and would not be for passwords.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use ogive_base::{FastMap, encode::decode_hex};
use ogive_files::Pipes;
use ogive_sources::{FileLook, SourceEvent, SourceKind, SourceResult};
use serde_json::{Map, Value};

use crate::{
    caller::{Caller, CallerOptions},
    claims::{self, END_MAX},
    digest::{Digest, digest_of},
    error::TokenError,
    json,
};

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 1 << 10;
/// How often the file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The keys of a file, which is read again when it has changed: on a thread of its own, because a file may be large, or on a
/// disk that does not answer.
pub struct ApiKeys {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    _stop: Sender<()>,
}

struct Shared {
    path: PathBuf,
    keys: ArcSwap<KeyTable>,
    /// The file as it was read last.
    found: Mutex<Option<FileLook>>,
}

/// Never shows digests.
impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKeys")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

/// Callers by the digest of their key.
type KeyTable = FastMap<Digest, KeyEntry>;

struct KeyEntry {
    caller: Arc<Caller>,
    /// The second since 1970 from which on it does not hold.
    end: u64,
}

impl ApiKeys {
    /// Reads a file. One that cannot be read has no keys until it can.
    pub fn start(path: PathBuf) -> Self {
        let shared = Arc::new(Shared {
            keys: ArcSwap::default(),
            found: Mutex::default(),
            path,
        });
        shared.read();
        let (stop, stopped) = channel();
        let keeping = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("ogive-api-keys".into());
        let started = thread.spawn(move || {
            // Nothing is ever sent: it is an error when the other end goes.
            while stopped.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                keeping.read();
            }
        });
        if let Err(error) = started {
            let why = format!("changes are not seen: {error}");
            tell(&shared.path.display().to_string(), SourceResult::Kept(&why));
        }
        ApiKeys {
            shared,
            _stop: stop,
        }
    }

    /// Checks a file. The error is for the operator.
    pub fn check(path: &Path) -> Result<usize, String> {
        parse(&read(path)?).map(|keys| keys.len())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.shared.keys.load().len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The caller of a key, of which there must be one, at a time in seconds since 1970.
    pub fn caller(&self, values: &[HeaderValue], now: u64) -> Result<Arc<Caller>, TokenError> {
        let [key] = values else {
            return Err(TokenError::Request(
                "the header with the API key is there more than once",
            ));
        };
        let key = key.as_bytes().trim_ascii();
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(TokenError::ApiKey);
        }
        let keys = self.shared.keys.load();
        match keys.get(&digest_of(key)) {
            Some(entry) if now < entry.end => Ok(Arc::clone(&entry.caller)),
            _ => Err(TokenError::ApiKey),
        }
    }
}

impl Shared {
    /// Reads the file if it has changed.
    fn read(&self) {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = FileLook::of(&self.path);
        if found.is_some() && found == *known {
            return;
        }
        let from = self.path.display().to_string();
        let table = read(&self.path).and_then(|text| parse(&text));
        match table {
            Ok(table) => {
                tell(&from, SourceResult::Taken);
                *known = found;
                self.keys.store(Arc::new(table));
            }
            Err(why) => {
                *known = found;
                let result = if self.keys.load().is_empty() {
                    SourceResult::Missing(&why)
                } else {
                    SourceResult::Kept(&why)
                };
                tell(&from, result);
            }
        }
    }
}

fn tell(from: &str, result: SourceResult<'_>) {
    let kind = SourceKind::ApiKeys;
    SourceEvent { kind, from, result }.tell();
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let text = ogive_files::read(path, FILE_BYTES_MAX, Pipes::Refused);
    text.map_err(|error| format!("`{}`: {error}", path.display()))
}

fn parse(text: &[u8]) -> Result<KeyTable, String> {
    let members = json::object(text).ok_or("the file is no JSON object, or has a member twice")?;
    let Some(Value::Object(keys)) = members.get("keys") else {
        return Err("the file has no object `keys`".into());
    };
    let mut table = KeyTable::default();
    for (name, value) in keys {
        let (digest, entry) = key(name, value).map_err(|why| format!("key `{name}`: {why}"))?;
        if table.insert(digest, entry).is_some() {
            return Err(format!("key `{name}`: its digest is there twice"));
        }
    }
    Ok(table)
}

fn key(name: &str, value: &Value) -> Result<(Digest, KeyEntry), &'static str> {
    let Value::Object(members) = value else {
        return Err("it is no object");
    };
    const KNOWN: [&str; 5] = ["sha256", "scopes", "policies", "claims", "expires"];
    if members.keys().any(|key| !KNOWN.contains(&key.as_str())) {
        return Err("its members are `sha256`, `scopes`, `policies`, `claims` and `expires`");
    }
    let digest = members
        .get("sha256")
        .and_then(Value::as_str)
        .and_then(decode_hex);
    let digest = digest.ok_or("`sha256` is not 64 hexadecimal digits")?;
    let mut claims = match members.get("claims") {
        None => Map::new(),
        Some(Value::Object(claims)) => claims.clone(),
        Some(_) => return Err("`claims` is no object"),
    };
    let end = match members.get("expires") {
        None => u64::MAX,
        Some(end) => end
            .as_u64()
            .filter(|end| *end <= END_MAX)
            .ok_or("`expires` is no number of seconds from 1970 to the year 9999")?,
    };
    claims::end(&claims)?;
    claims.entry("sub").or_insert_with(|| name.into());
    let mut caller = Caller::proved(
        claims,
        &CallerOptions {
            scopes: Vec::new(),
            policies: Vec::new(),
        },
    );
    for (member, out) in [
        ("scopes", &mut caller.granted.scopes),
        ("policies", &mut caller.granted.policies),
    ] {
        match members.get(member) {
            None => {}
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                out.extend(items.iter().filter_map(Value::as_str).map(Into::into));
            }
            Some(_) => return Err("`scopes` and `policies` are lists of texts"),
        }
    }
    caller.end = members.get("expires").map(|_| end);
    let caller = Arc::new(caller);
    Ok((digest, KeyEntry { caller, end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_within_the_years_that_dates_have() {
        let key = |more: Value| {
            let mut value = serde_json::json!({"sha256": "00".repeat(32)});
            let members = value.as_object_mut().unwrap();
            members.extend(more.as_object().unwrap().clone());
            key("a", &value).map(|(_, entry)| entry.end)
        };
        for wrong in [
            serde_json::json!({"expires": u64::MAX}),
            serde_json::json!({"expires": END_MAX + 1}),
            serde_json::json!({"claims": {"exp": 1e19}}),
            serde_json::json!({"claims": {"exp": "soon"}}),
        ] {
            let refused = key(wrong.clone()).unwrap_err();
            assert!(refused.ends_with("to the year 9999"), "{wrong}: {refused}");
        }
        let last = serde_json::json!({"expires": END_MAX, "claims": {"exp": END_MAX}});
        assert_eq!(key(last), Ok(END_MAX));
    }

    /// No request reads the file, however many keys it has.
    #[test]
    fn a_file_that_changes_is_read_without_a_request() {
        let path = std::env::temp_dir().join(format!("ogive-api-keys-{}", std::process::id()));
        std::fs::write(&path, r#"{"keys":{}}"#).unwrap();
        let keys = ApiKeys::start(path.clone());
        assert!(keys.is_empty());
        let digest = "00".repeat(32);
        let text = format!(r#"{{"keys":{{"a":{{"sha256":"{digest}"}}}}}}"#);
        std::fs::write(&path, text).unwrap();
        let began = std::time::Instant::now();
        while keys.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        std::fs::remove_file(path).unwrap();
    }
}
