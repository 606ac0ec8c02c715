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
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use ogive_base::FastMap;
use ogive_files::Pipes;
use ogive_sources::{FileLook, SourceEvent, SourceKind, SourceResult};
use serde_json::{Map, Value};

use crate::{
    caller::{Caller, CallerOptions},
    digest::{Digest, digest_of},
    error::TokenError,
    json,
};

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 1 << 10;
/// How often the file is looked at, when keys come.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The keys of a file, which is read again when it has changed.
pub struct ApiKeys {
    path: PathBuf,
    keys: ArcSwap<KeyTable>,
    looked: Mutex<Looked>,
}

/// Never shows digests.
impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKeys")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

struct Looked {
    at: Instant,
    found: Option<FileLook>,
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
        let keys = ApiKeys {
            keys: ArcSwap::default(),
            looked: Mutex::new(Looked {
                at: Instant::now(),
                found: None,
            }),
            path,
        };
        keys.read();
        keys
    }

    /// Checks a file. The error is for the operator.
    pub fn check(path: &Path) -> Result<usize, String> {
        parse(&read(path)?).map(|keys| keys.len())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.load().len()
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
        self.look();
        let keys = self.keys.load();
        match keys.get(&digest_of(key)) {
            Some(entry) if now < entry.end => Ok(Arc::clone(&entry.caller)),
            _ => Err(TokenError::ApiKey),
        }
    }

    /// Reads the file again if it has changed.
    fn look(&self) {
        let Ok(looked) = self.looked.try_lock() else {
            return;
        };
        if looked.at.elapsed() < LOOK_INTERVAL {
            return;
        }
        drop(looked);
        self.read();
    }

    fn read(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.at = Instant::now();
        let found = FileLook::of(&self.path);
        if found.is_some() && found == looked.found {
            return;
        }
        let from = self.path.display().to_string();
        let table = read(&self.path).and_then(|text| parse(&text));
        match table {
            Ok(table) => {
                tell(&from, SourceResult::Taken);
                looked.found = found;
                self.keys.store(Arc::new(table));
            }
            Err(why) => {
                looked.found = found;
                tell(&from, SourceResult::Kept(&why));
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
        .and_then(from_hex);
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
            .ok_or("`expires` is no number of seconds since 1970")?,
    };
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

fn from_hex(text: &str) -> Option<Digest> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}
