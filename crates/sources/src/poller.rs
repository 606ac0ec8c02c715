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
use ogive_transport::{Http2, Signer, Source};

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
    signer: Option<Arc<dyn Signer>>,
    interval: Duration,
    kept: PathBuf,
    keeps: bool,
    /// What the URL said of the text it gave last.
    validators: Validators,
    failures: u32,
    /// Whether there is a good text to go on with.
    has_text: bool,
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
    /// Whether it is written; otherwise it is only read.
    pub keeps: bool,
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
            signer: None,
            interval: options.interval.max(INTERVAL_MIN),
            kept: options.kept,
            keeps: options.keeps,
            validators: Validators::default(),
            failures: 0,
            has_text: false,
        })
    }
    /// Signs every request.
    #[must_use]
    pub fn signed_by(self, signer: Arc<dyn Signer>) -> Self {
        let signer = Some(signer);
        Poller { signer, ..self }
    }
    /// There is a good text already, from elsewhere.
    #[must_use]
    pub fn with_text(self) -> Self {
        Poller {
            has_text: true,
            ..self
        }
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
        let (shown, kept, keeps) = (self.shown.clone(), self.kept.clone(), self.keeps);
        // The thread of this runtime accepts connections: newcomers must not wait for a text to be read.
        let taking = tokio::task::spawn_blocking(move || {
            let other = take(&shown, &text)?;
            if other
                && keeps
                && let Err(error) = keep(&kept, text.as_bytes(), Readers::Owner)
            {
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
        self.has_text = true;
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
        if let Some(signer) = &self.signer {
            let signed = self.source.sign(signer.as_ref(), &Method::GET, &headers);
            headers.extend(signed.await.map_err(|why| why.to_string())?);
        }
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
    pub fn went(&mut self, result: Result<(), String>) {
        let result = self.came(&result);
        self.failures = match result {
            SourceResult::Same => 0,
            _ => self.failures + 1,
        };
        let (kind, from) = (self.kind, &*self.shown);
        SourceEvent { kind, from, result }.tell();
    }
    fn came<'r>(&self, result: &'r Result<(), String>) -> SourceResult<'r> {
        match result {
            Ok(()) => SourceResult::Same,
            Err(why) if self.has_text => SourceResult::Kept(why),
            Err(why) => SourceResult::Missing(why),
        }
    }
    /// The text that was kept. The URL failed, for that reason.
    pub fn kept(&mut self, why: &str) -> std::io::Result<String> {
        let kept = ogive_files::read_text(&self.kept, BYTES_MAX as u64, Pipes::Refused);
        self.has_text |= kept.is_ok();
        self.went(Err(why.to_owned()));
        kept
    }
    /// Where it is kept.
    pub fn kept_path(&self) -> &Path {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_good_text_there_is_none_to_go_on_with() {
        let name = format!("ogive-poller-{}.graphql", std::process::id());
        let kept = std::env::temp_dir().join(name);
        let options = PollerOptions {
            shown: "http://127.0.0.1:1/".to_owned(),
            headers: HeaderMap::new(),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            kept: kept.clone(),
            keeps: true,
        };
        let poller = Poller::new(SourceKind::Supergraph, "http://127.0.0.1:1/", options);
        let mut poller = poller.unwrap();
        let failed = Err("no answer".to_owned());
        assert!(poller.kept("no answer").is_err());
        assert_eq!(poller.came(&failed), SourceResult::Missing("no answer"));
        std::fs::write(&kept, "type Query { a: Int }").unwrap();
        assert!(poller.kept("no answer").is_ok());
        assert_eq!(poller.came(&failed), SourceResult::Kept("no answer"));
        assert_eq!(poller.came(&Ok(())), SourceResult::Same);
        std::fs::remove_file(kept).unwrap();
    }
}
