//! A configuration that is fetched from a URL, again and again.
//!
//! What is fetched reaches [`Reloading`](crate::reload) if it is a valid configuration, and is kept in a file that only
//! its owner may read. Neither its text nor the headers it is asked with are ever logged.

use std::{convert::Infallible, path::Path, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::is_loopback;
use ogive_sources::{Poller, PollerOptions, SourceKind, TextReader};
use tokio::sync::watch;

use crate::{load, terminal};

/// How long the URL may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How the URL of a configuration is asked.
#[derive(clap::Args)]
pub(crate) struct ConfigUrlArguments {
    /// With a URL for --config: a header to send along, such as 'authorization: Bearer ${env.TOKEN}'; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    config_header: Vec<String>,
    /// With a URL for --config: how often it is asked
    #[arg(long, value_name = "TIME", default_value = "10s")]
    config_poll_interval: String,
    /// With a URL for --config: file that the last good configuration is kept in, and taken from if the URL does not
    /// answer at the start
    #[arg(long, value_name = "FILE", default_value = ".ogive/config.yaml")]
    config_kept: PathBuf,
    /// Whether that file is only read.
    #[arg(skip)]
    only_looks: bool,
}

impl ConfigUrlArguments {
    /// For commands that look once: nothing is kept.
    pub(crate) fn only_looking() -> Self {
        ConfigUrlArguments {
            only_looks: true,
            ..ConfigUrlArguments::default()
        }
    }
}

impl Default for ConfigUrlArguments {
    fn default() -> Self {
        ConfigUrlArguments {
            config_header: Vec::new(),
            config_poll_interval: "10s".into(),
            config_kept: ".ogive/config.yaml".into(),
            only_looks: false,
        }
    }
}

/// A configuration from elsewhere, as it was last.
#[derive(Clone, Debug)]
pub(crate) struct RemoteText {
    text: watch::Receiver<Arc<str>>,
    /// Where from, for messages.
    pub(crate) name: Arc<str>,
}

impl RemoteText {
    /// The text.
    pub(crate) fn get(&self) -> Arc<str> {
        Arc::clone(&self.text.borrow())
    }
    /// Waits for another one.
    pub(crate) async fn changed(&mut self) {
        if self.text.changed().await.is_err() {
            // Whoever asks ends with the process.
            std::future::pending::<()>().await;
        }
    }
}

/// Asks a URL for a configuration.
pub(crate) struct ConfigPolling {
    poller: Poller,
    good: Arc<watch::Sender<Arc<str>>>,
    /// Why the one on disk is served; told once there is a log.
    fell_back: Option<String>,
}

/// Whether `--config` is a URL.
pub(crate) fn is_url(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    text.starts_with("https://") || text.starts_with("http://")
}

impl ConfigPolling {
    /// Fetches for the first time. If the URL does not answer with a configuration, what it gave last is taken from
    /// disk.
    pub(crate) async fn start(url: &Path, arguments: &ConfigUrlArguments) -> Result<Self> {
        let url = url.to_str().unwrap_or_default();
        let interval = ogive_config::parse_duration(&arguments.config_poll_interval);
        let how = PollerOptions {
            shown: ogive_config::without_secrets(url),
            headers: headers(&arguments.config_header)?,
            interval: interval
                .map_err(|help| terminal::error("`--config-poll-interval` is no time", help))?
                .0,
            timeout: TIMEOUT,
            kept: arguments.config_kept.clone(),
            keeps: !arguments.only_looks,
        };
        let poller = Poller::new(SourceKind::Configuration, url, how)
            .map_err(|why| terminal::error(why, "correct the URL given with `--config`"))?;
        if url.starts_with("http://") && !is_loopback(poller.shown()) {
            return Err(terminal::error(
                format_args!("the configuration must not come from `{}`", poller.shown()),
                "whoever is on the way could change it: use https; http is for this machine only",
            ));
        }
        let mut polling = ConfigPolling {
            poller,
            good: Arc::new(watch::channel(Arc::from("")).0),
            fell_back: None,
        };
        let take = polling.take();
        if let Err(why) = polling.poller.fetch(&take).await {
            polling.fall_back(why)?;
        }
        Ok(polling)
    }

    /// For reading it.
    pub(crate) fn text(&self) -> RemoteText {
        RemoteText {
            text: self.good.subscribe(),
            name: self.poller.shown().into(),
        }
    }

    /// Logs how it went so far, once there is a log.
    pub(crate) fn tell(&self) {
        if let Some(why) = &self.fell_back {
            tracing::warn!(url = self.poller.shown(), "{why}");
        }
    }

    /// Fetches again and again.
    pub(crate) async fn run(self) -> Infallible {
        let take = self.take();
        self.poller.run(take).await
    }

    fn take(&self) -> Arc<impl TextReader + use<>> {
        let good = Arc::clone(&self.good);
        Arc::new(move |from: &str, text: &str| take(&good, from, text))
    }

    fn fall_back(&mut self, why: String) -> Result<()> {
        let kept = self.poller.kept(&why);
        let (url, path) = (self.poller.shown(), self.poller.kept_path().display());
        let text = kept.map_err(|error| {
            terminal::error(
                format_args!("no configuration from `{url}`: {why}; and `{path}`: {error}"),
                "check that the URL can be reached from here and needs no other `--config-header`; a configuration \
                 that was served before is kept in the file `--config-kept`",
            )
        })?;
        load::config_text(&path.to_string(), &text, &mut Vec::new())?;
        self.good.send_replace(text.as_str().into());
        self.fell_back = Some(format!(
            "no configuration, serving with the last good one from {path}: {why}"
        ));
        Ok(())
    }
}

fn take(good: &watch::Sender<Arc<str>>, from: &str, text: &str) -> Result<bool, String> {
    load::config_text(from, text, &mut Vec::new()).map_err(|error| format!("{error:#}"))?;
    let other = **good.borrow() != *text;
    if other {
        good.send_replace(text.into());
    }
    Ok(other)
}

fn headers(arguments: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for argument in arguments {
        let refuse = |why: &str| {
            // The value may be a secret.
            let name = argument.split(':').next().unwrap_or_default();
            terminal::error(
                format_args!("the header `{name}` of `--config-header` cannot be sent: {why}"),
                "write `NAME: VALUE`; `${env.NAME}` in the value is the variable's value",
            )
        };
        let (name, value) = argument
            .split_once(':')
            .ok_or_else(|| refuse("it has no value"))?;
        let value = expanded(value.trim()).map_err(|why| refuse(&why))?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| refuse("this is no name"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| refuse("this is no value"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// A text with variables of the environment in their places.
fn expanded(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${env.") {
        let (name, more) = after.split_once('}').ok_or("`${env.` has no end")?;
        out.push_str(before);
        out.push_str(&std::env::var(name).map_err(|_| format!("`{name}` is not set"))?);
        rest = more;
    }
    out.push_str(rest);
    Ok(out)
}
