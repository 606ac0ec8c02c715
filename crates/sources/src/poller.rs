//! A URL that is asked for a text, again and again.
//!
//! What is fetched is handed on if it is a text of its kind at all, and is kept on disk: it is used when the URL does not
//! answer at the next start. `etag` and `last-modified` spare fetching what has not changed; a URL that fails is asked less
//! and less often.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use ogive_files::{
    Pipes,
    kept::{Readers, keep},
};
use ogive_transport::{Http2, Source};

use crate::{SourceEvent, SourceKind, SourceResult, Validators};

/// Largest text.
const BYTES_MAX: usize = 64 << 20;
/// Shortest time between two requests.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Longest.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Asks a URL for a text, again and again.
#[derive(Debug)]
pub struct Poller {
    /// What the text is.
    kind: SourceKind,
    /// The URL without anything secret.
    shown: String,
    source: Source,
    headers: HeaderMap,
    interval: Duration,
    kept: PathBuf,
    /// What the URL said of the text it gave last.
    validators: Validators,
    failures: u32,
}

/// How a URL is asked.
#[derive(Debug)]
pub struct PollerOptions {
    /// The URL without anything secret.
    pub shown: String,
    /// What is sent along.
    pub headers: HeaderMap,
    /// Time between two requests.
    pub interval: Duration,
    /// How long one request may take.
    pub timeout: Duration,
    /// The file for the last good text.
    pub kept: PathBuf,
}

/// A text, and what its URL says of it.
struct Asked {
    text: String,
    validators: Validators,
}

/// Takes a text, which is from there, and says whether it is another one; or why it is none at all. Called on a thread
/// of its own, because reading a large text takes long.
pub trait TextReader: Fn(&str, &str) -> Result<bool, String> + Send + Sync + 'static {}
impl<F: Fn(&str, &str) -> Result<bool, String> + Send + Sync + 'static> TextReader for F {}

impl Poller {
    /// The error is for the operator.
    pub fn new(kind: SourceKind, url: &str, options: PollerOptions) -> Result<Self, String> {
        let shown = options.shown;
        let source = Source::new(url, Http2::Disable);
        let mut source = source.map_err(|why| format!("`{shown}` cannot be asked: {why}"))?;
        source.timeout = options.timeout;
        source.body_bytes_max = BYTES_MAX;
        Ok(Poller {
            kind,
            shown,
            source,
            headers: options.headers,
            interval: options.interval.max(INTERVAL_MIN),
            kept: options.kept,
            validators: Validators::default(),
            failures: 0,
        })
    }
    /// The URL, fit for the log.
    pub fn shown(&self) -> &str {
        &self.shown
    }
    /// Asks once. Hands a text that is not the one before to `take` with where it is from; what that takes is not sent
    /// again, and kept on disk if it is another one (`true`).
    pub async fn fetch(&mut self, take: &Arc<impl TextReader>) -> Result<(), String> {
        let Some(Asked { text, validators }) = self.ask().await? else {
            return Ok(());
        };
        let (take, what) = (Arc::clone(take), self.kind.as_str());
        let (shown, kept) = (self.shown.clone(), self.kept.clone());
        // The thread of this runtime accepts connections: newcomers must not wait for a text to be read.
        let taking = tokio::task::spawn_blocking(move || {
            let other = take(&shown, &text)?;
            if other && let Err(error) = keep(&kept, text.as_bytes(), Readers::Owner) {
                let path = kept.display().to_string();
                tracing::warn!(%error, path, "the {what} cannot be kept on disk");
            }
            Ok(())
        });
        let taken: Result<(), String> = match taking.await {
            Ok(taken) => taken,
            Err(_) => Err("reading it failed in a way it should not; see the log above".to_owned()),
        };
        taken?;
        self.validators = validators;
        Ok(())
    }
    /// The same, again and again.
    pub async fn run(mut self, take: Arc<impl TextReader>) -> Infallible {
        loop {
            self.wait().await;
            let fetched = self.fetch(&take).await;
            self.went(fetched);
        }
    }
    /// One request; `None` if the text is the one before.
    async fn ask(&self) -> Result<Option<Asked>, String> {
        let mut headers = self.headers.clone();
        self.validators.ask(&mut headers);
        let answer = self.source.send(Method::GET, headers, Bytes::new()).await?;
        match answer.status {
            200 => {}
            304 => return Ok(None),
            status => return Err(format!("it answers {status}")),
        }
        let text = String::from_utf8(answer.body.into());
        Ok(Some(Asked {
            text: text.map_err(|_| "it is not UTF-8".to_owned())?,
            validators: Validators::of(&answer.headers),
        }))
    }
    /// Waits until it is time to ask again.
    async fn wait(&self) {
        let wait = self.interval * 2u32.saturating_pow(self.failures.min(16));
        tokio::time::sleep(wait.min(BACKOFF_MAX.max(self.interval))).await;
    }
    /// Remembers and tells how it went.
    fn went(&mut self, result: Result<(), String>) {
        let result = match &result {
            Ok(()) => SourceResult::Same,
            Err(why) => SourceResult::Kept(why),
        };
        self.failures = match result {
            SourceResult::Same => 0,
            _ => self.failures + 1,
        };
        let (kind, from) = (self.kind, &*self.shown);
        SourceEvent { kind, from, result }.tell();
    }
    /// The text that was kept. The URL failed, for that reason.
    pub fn kept(&mut self, why: &str) -> std::io::Result<String> {
        self.went(Err(why.to_owned()));
        ogive_files::read_text(&self.kept, BYTES_MAX as u64, Pipes::Refused)
    }
    /// Where it is kept.
    pub fn kept_path(&self) -> &Path {
        &self.kept
    }
}
