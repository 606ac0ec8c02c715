//! Serving a supergraph that is fetched from a URL, again and again.
//!
//! What is fetched reaches the gateway through [`Feed`] if it is a supergraph at all, and is kept on disk: it is served
//! when the URL does not answer at the next start. `etag` and `last-modified` spare fetching what has not changed; a URL
//! that fails is asked less and less often.

use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use ogive_config::{Config, SupergraphOptions};
use ogive_transport::{Http2, Source};

use crate::{
    composing::{Feed, Feeder},
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

/// Asks a URL for a supergraph.
pub(crate) struct Polling {
    url: String,
    source: Source,
    headers: HeaderMap,
    interval: Duration,
    kept: PathBuf,
    feeder: Feeder,
    /// What the URL said of the supergraph it gave last.
    validators: [Option<HeaderValue>; 2],
    failures: u32,
}

const VALIDATORS: [(HeaderName, HeaderName); 2] = [
    (header::ETAG, header::IF_NONE_MATCH),
    (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
];

impl Polling {
    /// Fetches for the first time; `None` if no URL is asked for. If the URL does not answer with a supergraph, what it
    /// gave last is taken from disk.
    pub(crate) async fn start(config: &Config) -> Result<Option<Polling>> {
        let options = &config.supergraph;
        let Some(url) = &options.url else {
            return Ok(None);
        };
        let remedy = "correct `supergraph.url` and `supergraph.headers` in the configuration";
        let mut source = Source::new(&url.0, Http2::Disable).map_err(|why| {
            terminal::error(format_args!("`{}` cannot be asked: {why}", url.0), remedy)
        })?;
        source.timeout = options.request_timeout.0;
        source.body_bytes_max = BYTES_MAX;
        let mut polling = Polling {
            url: url.0.clone(),
            source,
            headers: headers(options)
                .ok_or_else(|| terminal::error("`supergraph.headers` holds no header", remedy))?,
            interval: options.poll_interval.0.max(INTERVAL_MIN),
            kept: options
                .last_known_good
                .as_deref()
                .unwrap_or(LAST_KNOWN_GOOD)
                .into(),
            feeder: Feeder::new("the URL has another supergraph"),
            validators: [None, None],
            failures: 0,
        };
        if let Err(why) = polling.fetch().await {
            polling.fall_back(&why)?;
        }
        Ok(Some(polling))
    }

    /// For the gateway.
    pub(crate) fn feed(&self) -> Feed {
        self.feeder.feed()
    }

    /// Fetches again and again.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            let wait = self.interval * 2u32.saturating_pow(self.failures.min(16));
            tokio::time::sleep(wait.min(BACKOFF_MAX.max(self.interval))).await;
            match self.fetch().await {
                Ok(()) => {
                    if std::mem::take(&mut self.failures) > 0 {
                        tracing::info!(url = self.url, "the supergraph can be fetched again");
                    }
                }
                Err(why) => {
                    self.failures += 1;
                    tracing::warn!(url = self.url, "no supergraph, serving on as before: {why}");
                }
            }
        }
    }

    /// One request. Fine if there is a supergraph, or nothing new.
    async fn fetch(&mut self) -> Result<(), String> {
        let mut headers = self.headers.clone();
        for (known, (_, asked)) in self.validators.iter().zip(VALIDATORS) {
            if let Some(known) = known {
                headers.insert(asked, known.clone());
            }
        }
        let answer = self.source.send(Method::GET, headers, Bytes::new()).await?;
        match answer.status {
            200 => {}
            304 => return Ok(()),
            status => return Err(format!("it answers {status}")),
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| "it is not UTF-8".to_owned())?;
        // Whoever answers with an error page must not cost the good supergraph on disk.
        supergraph_text(&self.url, text).map_err(|error| format!("{error:#}"))?;
        let validators = VALIDATORS.map(|(name, _)| answer.headers.get(name).cloned());
        if self.feeder.feed_with(text) {
            self.keep(text);
        }
        self.validators = validators;
        Ok(())
    }

    /// Written beside and renamed, so that a process that ends meanwhile leaves the one before.
    fn keep(&self, text: &str) {
        let write = || -> std::io::Result<()> {
            if let Some(folder) = self.kept.parent().filter(|f| !f.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            let mut beside = self.kept.clone().into_os_string();
            beside.push(format!(".{}", std::process::id()));
            fs::write(&beside, text)?;
            fs::rename(&beside, &self.kept)
        };
        if let Err(error) = write() {
            let path = self.kept.display().to_string();
            tracing::warn!(%error, path, "the supergraph cannot be kept on disk");
        }
    }

    fn fall_back(&mut self, why: &str) -> Result<()> {
        let fail = |more: String| {
            terminal::error(
                format_args!("no supergraph from `{}`: {why}{more}", self.url),
                "check that the URL can be reached from here; a supergraph that was served before is kept in the \
                 file `supergraph.last_known_good`",
            )
        };
        let read = |path: &Path| fs::read_to_string(path);
        let text = read(&self.kept)
            .map_err(|error| fail(format!("; and `{}`: {error}", self.kept.display())))?;
        supergraph_text(&self.kept.display().to_string(), &text)?;
        tracing::warn!(
            url = self.url,
            "no supergraph, serving the last good one from {}: {why}",
            self.kept.display()
        );
        self.failures = 1;
        self.feeder.feed_with(&text);
        Ok(())
    }
}

fn headers(options: &SupergraphOptions) -> Option<HeaderMap> {
    let pairs = options.headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    pairs.collect()
}
