//! A manifest from a URL or an object store, asked for again and again, and what it listed before.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::{
    DocumentS3Options, DocumentSourceOptions, WhenMissing, is_loopback, without_secrets,
};
use ogive_documents::{ManifestEntry, ManifestFormat, manifest};
use ogive_files::{
    Pipes,
    kept::{Readers, keep},
};
use ogive_json::write_string;
use ogive_signing::{
    Aws, AwsOptions, CredentialSource, Proof, Secret,
    sigv4::{Credentials, Target},
};
use ogive_sources::{Poller, PollerOptions, SourceEvent, SourceKind, SourceResult};
use ogive_transport::Signer;
use tokio::sync::Notify;

use super::epoch::{lock, named, seconds_since_1970};

/// Largest file with the documents that were fetched last.
const KEPT_BYTES_MAX: u64 = 256 << 20;
const DAY_SECONDS: u64 = 86_400;

/// A manifest from elsewhere.
#[derive(Debug)]
pub(crate) struct DocumentSource {
    pub(super) options: DocumentSourceOptions,
    url: String,
    headers: HeaderMap,
    state: Mutex<State>,
    tried: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: Arc<Vec<ManifestEntry>>,
    /// Whether there ever was a manifest.
    has_any: bool,
    /// How the first attempt went, once it is over.
    first: Option<Result<(), String>>,
}

/// Where documents that are kept on disk are from.
#[derive(serde::Deserialize)]
struct KeptFrom {
    from: String,
}

impl DocumentSource {
    /// The error is for the operator.
    pub(super) fn new(options: &DocumentSourceOptions) -> Result<Self, String> {
        let url = match (&options.url, &options.s3) {
            (Some(url), _) => url.0.clone(),
            (None, Some(s3)) => object_url(s3),
            (None, None) => return Err("a source of documents has no place".into()),
        };
        check_way(&url, options)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let header = header.zip(HeaderValue::from_str(value).ok());
            let Some((name, mut value)) = header else {
                return Err(format!(
                    "`headers` has `{name}`, which cannot be sent as a header"
                ));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let source = DocumentSource {
            options: options.clone(),
            url,
            headers,
            state: Mutex::default(),
            tried: Notify::new(),
        };
        source.poller()?;
        source.take_kept();
        Ok(source)
    }

    /// What it listed last.
    pub(crate) fn entries(&self) -> Arc<Vec<ManifestEntry>> {
        Arc::clone(&lock(&self.state).entries)
    }

    /// Whether it is asked at the same place, for the same client. How it is asked does not count: what was fetched is good
    /// whatever key fetched it.
    pub(super) fn is_same_place(&self, other: &DocumentSource) -> bool {
        (&self.url, &self.options.client_name) == (&other.url, &other.options.client_name)
    }

    /// Takes over what one of the same place has fetched.
    pub(super) fn go_on(&self, before: &DocumentSource) {
        let before = lock(&before.state);
        let mut state = lock(&self.state);
        if before.has_any {
            state.entries = Arc::clone(&before.entries);
            state.has_any = true;
        }
    }

    /// The URL, fit for the log.
    fn shown(&self) -> String {
        without_secrets(&self.url)
    }

    /// Who asks for it.
    pub(crate) fn poller(&self) -> Result<Poller, String> {
        let options = &self.options;
        let how = PollerOptions {
            shown: self.shown(),
            headers: self.headers.clone(),
            interval: options.poll_interval.0,
            timeout: options.request_timeout.0,
            // What is kept is kept here, with what was replaced.
            kept: options.last_known_good.clone().unwrap_or_default().into(),
            keeps: false,
        };
        let mut poller = Poller::new(SourceKind::Documents, &self.url, how)?;
        if lock(&self.state).has_any {
            poller = poller.with_text();
        }
        Ok(match options.s3.as_ref().and_then(signer) {
            Some(signer) => poller.signed_by(signer),
            None => poller,
        })
    }

    /// Takes over a manifest; what it does not list any more lives on for a while. Says whether anything has changed.
    pub(crate) fn take(&self, from: &str, text: &str) -> Result<bool, String> {
        let entries = manifest::read(text.as_bytes(), None).map_err(|error| error.to_string())?;
        let foreign = manifest::foreign_hashes(&entries);
        if foreign > 0 {
            tracing::warn!(
                from,
                "{foreign} ids look like the SHA-256 of their document and are not: whoever asks by the hash of what it \
                 would send does not find them"
            );
        }
        let mut entries = entries;
        named(&mut entries, &self.options);
        let now = seconds_since_1970();
        let mut state = lock(&self.state);
        let kept = u64::from(self.options.keep_days) * DAY_SECONDS;
        let until = now.saturating_add(kept);
        let entries = manifest::with_replaced(entries, &state.entries, now, until);
        let is_other = !state.has_any || *state.entries != entries;
        state.has_any = true;
        if is_other {
            state.entries = Arc::new(entries);
            self.keep(&state.entries);
            let (kind, result) = (SourceKind::Documents, SourceResult::Taken);
            SourceEvent { kind, from, result }.tell();
        }
        Ok(is_other)
    }

    fn keep(&self, entries: &[ManifestEntry]) {
        let Some(path) = &self.options.last_known_good else {
            return;
        };
        let bytes = self.marked(&manifest::write(entries, ManifestFormat::Apollo));
        if let Err(error) = keep(Path::new(path), &bytes, Readers::Owner) {
            tracing::warn!(%error, path, "the trusted documents cannot be kept on disk");
        }
    }

    /// Where what is kept is from, and whose it is.
    fn origin(&self) -> String {
        match &self.options.client_name {
            Some(client) => format!("{} for {client}", self.shown()),
            None => self.shown(),
        }
    }

    /// A manifest that says where it is from.
    fn marked(&self, manifest: &[u8]) -> Vec<u8> {
        let mut out = b"{\n  \"from\": ".to_vec();
        write_string(&mut out, &self.origin());
        out.push(b',');
        out.extend_from_slice(manifest.strip_prefix(b"{").unwrap_or(manifest));
        out
    }

    /// What was kept on disk by the process before.
    fn take_kept(&self) {
        let Some(path) = &self.options.last_known_good else {
            return;
        };
        let Ok(bytes) = ogive_files::read(Path::new(path), KEPT_BYTES_MAX, Pipes::Refused) else {
            return;
        };
        let from: Option<KeptFrom> = serde_json::from_slice(&bytes).ok();
        if from.is_none_or(|kept| kept.from != self.origin()) {
            tracing::warn!(
                path,
                "what was kept of trusted documents is not of `{}`, and not used",
                self.origin()
            );
            return;
        }
        match manifest::read(&bytes, None) {
            Ok(entries) => {
                let mut state = lock(&self.state);
                state.entries = Arc::new(entries);
                state.has_any = true;
            }
            Err(error) => tracing::warn!(
                path,
                "what was kept of trusted documents is of no use: {error}"
            ),
        }
    }

    /// How the first attempt went.
    pub(crate) fn was_tried(&self, result: Result<(), String>) {
        let mut state = lock(&self.state);
        state.first.get_or_insert(result);
        drop(state);
        self.tried.notify_waiters();
    }

    /// Waits for the first attempt, where the configuration asks for it.
    pub(super) async fn ready(&self) -> Result<(), String> {
        if self.options.when_missing == WhenMissing::Wait {
            return Ok(());
        }
        loop {
            let tried = self.tried.notified();
            tokio::pin!(tried);
            tried.as_mut().enable();
            {
                let state = lock(&self.state);
                match &state.first {
                    _ if state.has_any => return Ok(()),
                    Some(Err(why)) => {
                        return Err(format!(
                            "there are no documents from `{}`: {why}",
                            self.shown()
                        ));
                    }
                    Some(Ok(())) => return Ok(()),
                    None => {}
                }
            }
            tried.await;
        }
    }
}

/// Whether a place may be asked that way.
pub(super) fn check_way(url: &str, options: &DocumentSourceOptions) -> Result<(), String> {
    let shown = without_secrets(url);
    let is_open = url.starts_with("http://") && !is_loopback(&shown);
    if is_open && !options.allow_plain_http {
        return Err(format!(
            "`{shown}` is no https: whoever is on the way can trust documents; set `allow_plain_http: true` if nobody is"
        ));
    }
    Ok(())
}

fn object_url(s3: &DocumentS3Options) -> String {
    let (bucket, region) = (&s3.bucket, &s3.region);
    let key = s3.key.trim_start_matches('/');
    let mut path = String::new();
    for byte in key.bytes() {
        // As AWS encodes what it signs.
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                path.push(byte as char)
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    match &s3.endpoint {
        Some(endpoint) => format!("{}/{bucket}/{path}", endpoint.0.trim_end_matches('/')),
        None => format!("https://{bucket}.s3.{region}.amazonaws.com/{path}"),
    }
}

fn signer(s3: &DocumentS3Options) -> Option<Arc<dyn Signer>> {
    let source = match &s3.access_key_id {
        Some(id) => CredentialSource::Given(Credentials {
            access_key_id: id.clone(),
            secret_access_key: Secret::new(s3.secret_access_key.0.clone()),
            session_token: None,
        }),
        None => CredentialSource::Found { profile: None },
    };
    let aws = Aws::new(AwsOptions {
        target: Target {
            region: s3.region.clone(),
            service: "s3".into(),
        },
        source,
        assume_role: None,
    });
    Some(Arc::new(Proof {
        aws: Some(aws),
        ..Proof::default()
    }))
}
