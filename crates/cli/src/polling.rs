//! Serving a supergraph that is fetched from a URL, again and again; and asking URLs again and again at all.
//!
//! What is fetched reaches the gateway through [`Feed`] if it is a supergraph at all, and is kept on disk: it is served
//! when the URL does not answer at the next start. `etag` and `last-modified` spare fetching what has not changed; a URL
//! that fails is asked less and less often.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use ogive_config::{Config, WhenMissing, without_secrets};
use ogive_files::Pipes;
use ogive_gateway::unusable;
use ogive_transport::{Http2, Source};

use ogive_workshop::kept::{Readers, keep};

use crate::{
    feed::{Feed, Feeder},
    load::supergraph_text,
    terminal,
};

/// Where the last good supergraph is kept unless the configuration says otherwise.
const LAST_KNOWN_GOOD: &str = ".ogive/supergraph.graphql";
/// Largest supergraph.
const BYTES_MAX: usize = 64 << 20;
/// Shortest time between two requests.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Longest.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Asks a URL for a text, again and again.
pub(crate) struct Poller {
    /// What the text is, for the log.
    what: &'static str,
    /// The URL without anything secret.
    shown: String,
    source: Source,
    headers: HeaderMap,
    interval: Duration,
    kept: PathBuf,
    /// What the URL said of the text it gave last.
    validators: [Option<HeaderValue>; 2],
    failures: u32,
}

/// How a URL is asked.
pub(crate) struct PollerOptions {
    pub(crate) headers: HeaderMap,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// The file for the last good text.
    pub(crate) kept: PathBuf,
}

/// A text, and what its URL says of it.
struct Asked {
    text: String,
    validators: [Option<HeaderValue>; 2],
}

/// Takes a text, which is from there, and says whether it is another one; or why it is none at all. Called on a thread
/// of its own, because reading a large text takes long.
pub(crate) trait Take:
    Fn(&str, &str) -> Result<bool, String> + Send + Sync + 'static
{
}
impl<F: Fn(&str, &str) -> Result<bool, String> + Send + Sync + 'static> Take for F {}

const VALIDATORS: [(HeaderName, HeaderName); 2] = [
    (header::ETAG, header::IF_NONE_MATCH),
    (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
];

impl Poller {
    /// The error is for the operator.
    pub(crate) fn new(
        what: &'static str,
        url: &str,
        options: PollerOptions,
    ) -> Result<Self, String> {
        let shown = without_secrets(url);
        let source = Source::new(url, Http2::Disable);
        let mut source = source.map_err(|why| format!("`{shown}` cannot be asked: {why}"))?;
        source.timeout = options.timeout;
        source.body_bytes_max = BYTES_MAX;
        Ok(Poller {
            what,
            shown,
            source,
            headers: options.headers,
            interval: options.interval.max(INTERVAL_MIN),
            kept: options.kept,
            validators: [None, None],
            failures: 0,
        })
    }
    /// The URL, fit for the log.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
    /// Asks once. Hands a text that is not the one before to `take` with where it is from; what that takes is not sent
    /// again, and kept on disk if it is another one (`true`).
    pub(crate) async fn fetch(&mut self, take: &Arc<impl Take>) -> Result<(), String> {
        let Some(Asked { text, validators }) = self.ask().await? else {
            return Ok(());
        };
        let (take, what) = (Arc::clone(take), self.what);
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
    pub(crate) async fn run(mut self, take: Arc<impl Take>) -> Infallible {
        loop {
            self.wait().await;
            let fetched = self.fetch(&take).await;
            self.went(fetched);
        }
    }
    /// One request; `None` if the text is the one before.
    async fn ask(&self) -> Result<Option<Asked>, String> {
        let mut headers = self.headers.clone();
        for (known, (_, asked)) in self.validators.iter().zip(VALIDATORS) {
            if let Some(known) = known {
                headers.insert(asked, known.clone());
            }
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
            validators: VALIDATORS.map(|(name, _)| answer.headers.get(name).cloned()),
        }))
    }
    /// Waits until it is time to ask again.
    async fn wait(&self) {
        let wait = self.interval * 2u32.saturating_pow(self.failures.min(16));
        tokio::time::sleep(wait.min(BACKOFF_MAX.max(self.interval))).await;
    }
    /// Remembers and logs how it went.
    fn went(&mut self, result: Result<(), String>) {
        let (what, url) = (self.what, &self.shown);
        match result {
            Ok(()) if std::mem::take(&mut self.failures) > 0 => {
                tracing::info!(url, "the {what} can be fetched again");
            }
            Ok(()) => {}
            Err(why) => {
                self.failures += 1;
                tracing::warn!(url, "no {what}, serving on as before: {why}");
            }
        }
    }
    /// The text that was kept. From now on the URL counts as failing.
    pub(crate) fn kept(&mut self) -> std::io::Result<String> {
        self.failures = 1;
        ogive_files::read_text(&self.kept, BYTES_MAX as u64, Pipes::Refused)
    }
    /// Where it is kept.
    pub(crate) fn kept_path(&self) -> &Path {
        &self.kept
    }
}

/// Asks a URL for a supergraph.
pub(crate) struct Polling {
    poller: Poller,
    feeder: Arc<Feeder>,
    /// Whether the URL has not been asked yet, because the gateway waits for a supergraph while it answers.
    waits: bool,
}

impl Polling {
    /// Fetches for the first time; `None` if no URL is asked for. If the URL does not answer with a supergraph, what it
    /// gave last is taken from disk. With `when_missing: wait` both are left to [`Polling::run`], so that a URL that is slow
    /// to answer keeps nobody from health and from an answer that says so.
    pub(crate) async fn start(config: &Config) -> Result<Option<Polling>> {
        let options = &config.supergraph;
        let Some(url) = &options.url else {
            return Ok(None);
        };
        let usable = unusable::supergraph_url(options).map_err(|problem| {
            let help = problem.help.unwrap_or("correct it in the configuration");
            terminal::error(problem.message, help)
        })?;
        if let Some(warning) = usable.warning {
            tracing::warn!(url = without_secrets(&url.0), "{warning}");
        }
        let kept = options.last_known_good.as_deref();
        let how = PollerOptions {
            headers: usable.headers,
            interval: options.poll_interval.0,
            timeout: options.request_timeout.0,
            kept: kept.unwrap_or(LAST_KNOWN_GOOD).into(),
        };
        let poller = Poller::new("supergraph", &url.0, how);
        let mut polling = Polling {
            poller: poller.map_err(|why| {
                terminal::error(why, "correct `supergraph.url` in the configuration")
            })?,
            feeder: Arc::new(Feeder::new("the URL has another supergraph")),
            waits: options.when_missing == WhenMissing::Wait,
        };
        if !polling.waits {
            let take = polling.take();
            if let Err(why) = polling.poller.fetch(&take).await {
                polling.fall_back(&why).await?;
            }
        }
        Ok(Some(polling))
    }

    /// The URL, fit for the log.
    pub(crate) fn url(&self) -> &str {
        self.poller.shown()
    }

    /// For the gateway.
    pub(crate) fn feed(&self) -> Feed {
        self.feeder.feed()
    }

    /// Fetches again and again.
    pub(crate) async fn run(mut self) -> Infallible {
        let take = self.take();
        if self.waits
            && let Err(why) = self.poller.fetch(&take).await
            && self.fall_back(&why).await.is_err()
        {
            let url = self.poller.shown();
            tracing::warn!(url, "no supergraph yet, waiting for one: {why}");
        }
        self.poller.run(take).await
    }

    /// Whoever answers with an error page must not cost the good supergraph on disk.
    fn take(&self) -> Arc<impl Take + use<>> {
        let feeder = Arc::clone(&self.feeder);
        Arc::new(move |from: &str, text: &str| {
            supergraph_text(from, text).map_err(|error| format!("{error:#}"))?;
            Ok(feeder.feed_with(text))
        })
    }

    async fn fall_back(&mut self, why: &str) -> Result<()> {
        let kept = self.poller.kept();
        let (url, path) = (self.poller.shown(), self.poller.kept_path().display());
        let text = kept.map_err(|error| {
            terminal::error(
                format_args!("no supergraph from `{url}`: {why}; and `{path}`: {error}"),
                "check that the URL can be reached from here; a supergraph that was served before is kept in the \
                 file `supergraph.last_known_good`, and `supergraph.when_missing: wait` starts without one",
            )
        })?;
        let (called, text) = (path.to_string(), Arc::<str>::from(text));
        let read = Arc::clone(&text);
        // On a thread of its own, as what is fetched.
        let reading =
            tokio::task::spawn_blocking(move || supergraph_text(&called, &read).map(|_| ()));
        reading.await??;
        tracing::warn!(
            url,
            "no supergraph, serving the last good one from {path}: {why}"
        );
        self.feeder.feed_with(&text);
        Ok(())
    }
}
