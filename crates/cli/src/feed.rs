//! How a supergraph that is no file reaches the gateway, now and whenever there is another one.

use std::sync::Arc;

use anyhow::Result;
use ogive_edge::dev_diagnostics::DevDiagnostics;
use ogive_federation::Supergraph;
use tokio::sync::watch;

use crate::load::supergraph_text;

/// What the gateway is fed with.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    pub(crate) supergraph: watch::Receiver<Arc<str>>,
    pub(crate) diagnostics: DevDiagnostics,
    /// Whether diagnostics are served to GraphiQL.
    pub(crate) dev: bool,
    /// What to say when there is another one.
    pub(crate) why: watch::Receiver<Arc<str>>,
}

/// Feeds the gateway with supergraphs that come from elsewhere.
pub(crate) struct Feeder {
    good: watch::Sender<Arc<str>>,
    why: &'static str,
}

impl Feeder {
    /// Without a supergraph yet.
    pub(crate) fn new(why: &'static str) -> Self {
        Feeder {
            good: watch::channel(Arc::from("")).0,
            why,
        }
    }
    /// For the gateway.
    pub(crate) fn feed(&self) -> Feed {
        Feed {
            supergraph: self.good.subscribe(),
            diagnostics: DevDiagnostics::new("{}"),
            dev: false,
            why: watch::channel(Arc::from(self.why)).1,
        }
    }
    /// Takes a good supergraph; tells whether it is another one.
    pub(crate) fn feed_with(&self, text: &str) -> bool {
        let other = **self.good.borrow() != *text;
        if other {
            self.good.send_replace(text.into());
        }
        other
    }
}

impl Feed {
    /// The last good supergraph.
    pub(crate) fn supergraph(&self) -> Result<Supergraph> {
        let text = Arc::clone(&self.supergraph.borrow());
        if text.is_empty() {
            anyhow::bail!("no supergraph has come yet");
        }
        supergraph_text("composed supergraph", &text)
    }
    /// Whether there is none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.supergraph.borrow().is_empty()
    }
    /// Waits for the next one.
    pub(crate) async fn changed(&mut self) {
        if self.supergraph.changed().await.is_err() {
            // Whoever composes ends with the process.
            std::future::pending::<()>().await;
        }
    }
    /// What changed when it did.
    pub(crate) fn why(&self) -> String {
        self.why.borrow().to_string()
    }
    /// What GraphiQL shows; none unless in development.
    pub(crate) fn diagnostics(&self) -> Option<DevDiagnostics> {
        self.dev.then(|| self.diagnostics.clone())
    }
}
