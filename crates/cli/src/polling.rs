//! Serving a supergraph that is fetched from a URL, again and again ([`Poller`]). It reaches the gateway through [`Feed`] if it
//! is a supergraph at all.

use std::{convert::Infallible, sync::Arc};

use anyhow::Result;
use ogive_config::{Config, WhenMissing, without_secrets};
use ogive_gateway::unusable;
use ogive_sources::{Poller, PollerOptions, SourceKind, TextReader};

use crate::{
    feed::{Feed, Feeder},
    load::supergraph_text,
    terminal,
};

/// Where the last good supergraph is kept unless the configuration says otherwise.
const LAST_KNOWN_GOOD: &str = ".ogive/supergraph.graphql";

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
    ///
    /// `only_looks`: it is fetched at once in any case, and nothing is written to disk.
    pub(crate) async fn start(config: &Config, only_looks: bool) -> Result<Option<Polling>> {
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
            shown: without_secrets(&url.0),
            headers: usable.headers,
            interval: options.poll_interval.0,
            timeout: options.request_timeout.0,
            kept: kept.unwrap_or(LAST_KNOWN_GOOD).into(),
            keeps: !only_looks,
        };
        let poller = Poller::new(SourceKind::Supergraph, &url.0, how);
        let mut polling = Polling {
            poller: poller.map_err(|why| {
                terminal::error(why, "correct `supergraph.url` in the configuration")
            })?,
            feeder: Arc::new(Feeder::new("the URL has another supergraph")),
            waits: options.when_missing == WhenMissing::Wait && !only_looks,
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
    fn take(&self) -> Arc<impl TextReader + use<>> {
        let feeder = Arc::clone(&self.feeder);
        Arc::new(move |from: &str, text: &str| {
            supergraph_text(from, text).map_err(|error| format!("{error:#}"))?;
            Ok(feeder.feed_with(text))
        })
    }

    async fn fall_back(&mut self, why: &str) -> Result<()> {
        let kept = self.poller.kept(why);
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
