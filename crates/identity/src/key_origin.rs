//! Where a key set is, and how it is fetched from there.

use std::{path::PathBuf, time::Duration};

use http::{HeaderMap, Uri};
use ogive_base::without_secrets;
use ogive_sources::{SourceEvent, SourceKind, SourceResult};
use ring::digest::{SHA256, digest};

use crate::{algorithm::AlgorithmSet, base64url};

/// Where a key set is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrigin {
    /// In a file, which is watched.
    File(PathBuf),
    /// Behind a URL.
    Url(String),
    /// Where this issuer says.
    Discovery(String),
}

/// How a key set is kept up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySourceOptions {
    /// Where it is.
    pub origin: KeyOrigin,
    /// What its keys may be used for.
    pub algorithms: AlgorithmSet,
    /// Headers to ask with; after discovery only where the set has the origin of its issuer.
    pub headers: HeaderMap,
    /// How often it is fetched; `None`: as often as the answer says, within bounds.
    pub poll_interval: Option<Duration>,
    /// How long a fetch may take.
    pub timeout: Duration,
    /// In so much time there are at most two fetches because of keys that are not there.
    pub refetch_interval: Duration,
    /// How long a key that is gone is still good.
    pub grace: Duration,
    /// How long keys are good while they cannot be fetched; `None`: as long as nobody takes them back.
    pub max_stale: Option<Duration>,
    /// The folder in which the last good set is kept.
    pub kept: Option<PathBuf>,
    /// Whether plain http to other machines is allowed.
    pub allow_plain_http: bool,
}

impl KeySourceOptions {
    /// Tells what became of a look at the set.
    pub(crate) fn tell(&self, result: SourceResult<'_>) {
        let (kind, from) = (SourceKind::KeySet, &*self.shown());
        SourceEvent { kind, from, result }.tell();
    }
    /// With defaults.
    pub fn new(origin: KeyOrigin) -> Self {
        let algorithms = match origin {
            KeyOrigin::File(_) => AlgorithmSet::EVERY,
            KeyOrigin::Url(_) | KeyOrigin::Discovery(_) => AlgorithmSet::PUBLIC,
        };
        KeySourceOptions {
            origin,
            algorithms,
            headers: HeaderMap::new(),
            poll_interval: None,
            timeout: Duration::from_secs(5),
            refetch_interval: Duration::from_secs(10),
            grace: Duration::from_secs(300),
            max_stale: None,
            kept: None,
            allow_plain_http: false,
        }
    }
    /// Where it is, without anything secret.
    pub fn shown(&self) -> String {
        match &self.origin {
            KeyOrigin::File(path) => path.display().to_string(),
            KeyOrigin::Url(url) | KeyOrigin::Discovery(url) => without_secrets(url),
        }
    }
    /// The file in which the last good set is kept.
    pub fn kept_file(&self) -> Option<PathBuf> {
        let (KeyOrigin::Url(url) | KeyOrigin::Discovery(url)) = &self.origin else {
            return None;
        };
        let name = base64url::encode(&digest(&SHA256, url.as_bytes()).as_ref()[..12]);
        Some(self.kept.as_ref()?.join(format!("{name}.jwks.json")))
    }
}

/// Whoever is on the way to a key set over plain http can put keys of their own into it. The error is for the operator.
pub fn check_way(url: &str, allow_plain_http: bool) -> Result<(), String> {
    if url.starts_with("https://") || allow_plain_http && url.starts_with("http://") {
        return Ok(());
    }
    if ogive_base::is_loopback_url(url) {
        Ok(())
    } else {
        Err(format!(
            "whoever is on the way to `{}` could change the keys: use https",
            without_secrets(url)
        ))
    }
}

/// Whether two URLs have one origin (RFC 6454, section 4).
pub(crate) fn has_one_origin(a: &str, b: &str) -> bool {
    let origin = |url: &str| {
        let url: Uri = url.parse().ok()?;
        let scheme = url.scheme_str()?.to_ascii_lowercase();
        let usual = if scheme == "https" { 443 } else { 80 };
        let host = url.host()?.to_ascii_lowercase();
        Some((scheme, host, url.port_u16().unwrap_or(usual)))
    };
    origin(a).is_some_and(|a| origin(b) == Some(a))
}
