//! Serving a supergraph that is composed in this process, again whenever a subgraph changes.
//!
//! [`Composing`] watches and composes; what it makes reaches the gateway through [`Feed`], by the same reload as a
//! supergraph file. The last good supergraph goes on serving while there are errors.

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use ogive_base::{Diagnostic, Severity, Sources, diagnostic::line_column};
use ogive_compose::{ComposeOptions, Composed, Composer};
use ogive_edge::dev_diagnostics::DevDiagnostics;
use ogive_sources::told;
use ogive_workshop::{
    codes::UNREADABLE_INPUT,
    inputs::Inputs,
    live::{Live, LiveOptions, Snapshot},
    load::{self, SchemaCache},
    report::{self, Origins},
};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    feed::Feed,
    played::Played,
    terminal::{self, Rendered, Unreadable},
};

/// Most diagnostics shown at once.
const SHOWN_MAX: usize = 20;

/// What is said when the composed supergraph is another one.
const COMPOSED: &str = "a subgraph has changed";

/// Longest time a subgraph that does not answer is left alone in development.
const DEV_POLL_MAX: Duration = Duration::from_secs(2);

/// Where schemas of running subgraphs are kept without `--schema-cache`.
pub(crate) const CACHE: &str = ".ogive/schemas";

/// Watches subgraphs and composes them.
pub(crate) struct Composing {
    live: Live,
    composer: Composer,
    good: watch::Sender<Arc<str>>,
    diagnostics: DevDiagnostics,
    dev: bool,
    /// What was said last, so that nothing is said twice.
    said: String,
    /// What changed before the last supergraph.
    why: watch::Sender<Arc<str>>,
    /// Subgraphs that are only schemas, played in development.
    played: Played,
}

impl Composing {
    /// Reads and composes for the first time. In development, waits until that succeeds, unless a file is not there: most
    /// likely its name is mistyped, and nothing would ever come. Else failing is an error.
    pub(crate) async fn start(
        inputs: Inputs,
        cache: Option<PathBuf>,
        dev: bool,
    ) -> Result<Composing> {
        let mut options = LiveOptions {
            cache: cache.map(SchemaCache::new),
            ..LiveOptions::default()
        };
        if dev {
            options.poll_max = DEV_POLL_MAX;
        }
        let live = Live::start(inputs, options).await;
        let mut composing = Composing {
            live: live.map_err(crate::inputs::refused)?,
            composer: Composer::new(),
            good: watch::channel(Arc::from("")).0,
            diagnostics: DevDiagnostics::new("{}"),
            dev,
            said: String::new(),
            why: watch::channel(Arc::from(COMPOSED)).0,
            played: Played::default(),
        };
        let troubles = composing.live.snapshot().troubles;
        let unreadable = troubles.iter().filter(|t| t.code == UNREADABLE_INPUT);
        let texts: Vec<String> = unreadable
            .map(|trouble| trouble.render(&Sources::new(), terminal::colour()))
            .collect();
        if dev && !texts.is_empty() {
            return Err(Unreadable(texts.join("\n\n")).into());
        }
        loop {
            if composing.compose().await {
                return Ok(composing);
            }
            if !dev {
                let why = if composing.live.snapshot().is_complete() {
                    "error: the subgraphs do not compose"
                } else {
                    "error: a subgraph cannot be read, so there is nothing to serve"
                };
                return Err(Rendered(why.into()).into());
            }
            terminal::remark("nothing to serve yet; waiting for a change");
            composing.live.changed().await;
        }
    }

    /// How many subgraphs there are.
    pub(crate) fn subgraphs(&self) -> usize {
        self.live.snapshot().loaded.len()
    }

    /// For the gateway.
    pub(crate) fn feed(&self) -> Feed {
        Feed {
            supergraph: self.good.subscribe(),
            diagnostics: self.diagnostics.clone(),
            dev: self.dev,
            why: self.why.subscribe(),
        }
    }

    /// Composes whenever something changes.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            self.live.changed().await;
            self.compose().await;
        }
    }

    /// Composes what there is, and says what is wrong with it; tells whether there is a new or equal supergraph.
    async fn compose(&mut self) -> bool {
        let snapshot = self.live.snapshot();
        if !snapshot.is_complete() {
            self.say(&snapshot, None);
            return false;
        }
        let mut composer = std::mem::take(&mut self.composer);
        let mut loaded = snapshot.loaded.clone();
        if self.dev {
            self.played.play(&mut loaded);
        }
        let start = Instant::now();
        // The thread of this runtime accepts connections: it must not be kept for the time of a composition.
        let done = tokio::task::spawn_blocking(move || {
            let composed = load::compose(&mut composer, &loaded, &ComposeOptions::default());
            (composer, composed)
        });
        let Ok((composer, composed)) = done.await else {
            tracing::error!("composing failed in a way it should not; see the log above");
            return false;
        };
        self.composer = composer;
        tracing::debug!(took = ?start.elapsed(), "composed");
        self.say(&snapshot, Some(&composed));
        let Some(sdl) = &composed.supergraph_sdl else {
            return false;
        };
        let changes = self.live.take_changes();
        if **self.good.borrow() != **sdl {
            self.why
                .send_replace(told(&changes, "").map_or(COMPOSED.into(), Arc::from));
            self.good.send_replace(sdl.as_str().into());
        }
        true
    }

    /// Tells terminal or log, and GraphiQL.
    fn say(&mut self, snapshot: &Snapshot, composed: Option<&Composed>) {
        let none = Sources::new();
        let mut all: Vec<(&Diagnostic, &Sources)> = Vec::new();
        if let Some(refused) = &snapshot.refused {
            all.extend(refused.diagnostics.iter().map(|d| (d, &refused.sources)));
        }
        all.extend(snapshot.troubles.iter().map(|d| (d, &none)));
        if let Some(composed) = composed {
            all.extend(composed.errors.iter().map(|d| (d, &composed.sources)));
        }
        let more = all.len().saturating_sub(SHOWN_MAX);
        all.truncate(SHOWN_MAX);
        let ok = composed.is_some_and(|c| c.supergraph_sdl.is_some());
        let blocks: Vec<String> = all.iter().map(|(d, s)| d.render(s, false)).collect();
        let mut plain = blocks.join("\n\n");
        if more > 0 {
            plain.push_str(&format!("\n\n... and {more} more"));
        }
        let origins = Origins::new(&snapshot.loaded);
        let diagnostics: Vec<serde_json::Value> = all
            .iter()
            .map(|(d, s)| report::json(d, s, &origins))
            .collect();
        self.diagnostics.set(
            json!({
                "ok": ok,
                "subgraphs": snapshot.loaded.iter().map(|s| &s.name).collect::<Vec<_>>(),
                "diagnostics": diagnostics,
                "text": plain,
            })
            .to_string(),
        );
        if plain == self.said {
            return;
        }
        if self.dev {
            let colour = terminal::colour();
            for (diagnostic, sources) in &all {
                terminal::remark(&format!("{}\n", diagnostic.render(sources, colour)));
            }
            match (ok, self.good.borrow().is_empty()) {
                (false, false) => terminal::remark("not composed: the graph before serves on"),
                (true, _) if !self.said.is_empty() && all.is_empty() => {
                    terminal::remark("all is well again");
                }
                _ => {}
            }
        } else {
            for (diagnostic, sources) in &all {
                log(diagnostic, sources);
            }
        }
        self.said = plain;
    }
}

/// One diagnostic as a line of the log.
fn log(diagnostic: &Diagnostic, sources: &Sources) {
    let place = diagnostic.labels.first().and_then(|label| {
        let source = sources.get(label.source)?;
        let (line, column) = line_column(&source.text, label.span.start);
        Some(format!("{}:{line}:{column}: ", source.name))
    });
    let (place, notes) = (place.unwrap_or_default(), diagnostic.notes.join("; "));
    let (code, message) = (diagnostic.code, &diagnostic.message);
    match diagnostic.severity {
        Severity::Error => tracing::error!(code, notes, "{place}{message}"),
        _ => tracing::warn!(code, notes, "{place}{message}"),
    }
}
