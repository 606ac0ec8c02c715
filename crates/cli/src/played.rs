//! Subgraphs under development that are only schemas: `ogive dev` plays them, with generated values.
//!
//! They are served by one server in the process, on a free port of the loopback interface. Another schema means another
//! server; the one before stays until the next change, for the requests that are under way to it.

use std::sync::Arc;

use ogive_mock::{Config, Sdl, Server, SubgraphConfig, assemble};
use ogive_workshop::load::Loaded;

use crate::terminal;

/// The servers, and what they play.
#[derive(Debug, Default)]
pub(crate) struct Played {
    server: Option<Server>,
    before: Option<Server>,
    schemas: Vec<(String, Arc<str>)>,
    /// Who was named as played.
    said: Vec<String>,
}

impl Played {
    /// Gives every subgraph without a URL one where it is played. A schema that cannot be played is no schema, and
    /// composition says so.
    pub(crate) fn play(&mut self, loaded: &mut [Loaded]) {
        let bare = |s: &&mut Loaded| s.url.is_empty();
        let schemas: Vec<(String, Arc<str>)> = loaded
            .iter_mut()
            .filter(bare)
            .map(|s| (s.name.clone(), Arc::clone(&s.sdl)))
            .collect();
        if schemas.is_empty() {
            return;
        }
        if schemas != self.schemas
            && let Some(server) = start(&schemas)
        {
            self.before = self.server.replace(server);
            self.schemas = schemas;
        }
        let Some(server) = &self.server else {
            return;
        };
        let mut new = Vec::new();
        for subgraph in loaded.iter_mut().filter(bare) {
            if !self.schemas.iter().any(|(name, _)| *name == subgraph.name) {
                continue;
            }
            subgraph.url = server.url(&subgraph.name);
            if !self.said.contains(&subgraph.name) {
                self.said.push(subgraph.name.clone());
                new.push(subgraph.name.clone());
            }
        }
        if let Some(first) = new.first() {
            let quoted: Vec<String> = new.iter().map(|n| format!("`{n}`")).collect();
            let (verb, them) = match new.len() {
                1 => ("is", "it"),
                _ => ("are", "them"),
            };
            terminal::remark(&format!(
                "{} {verb} only a schema: ogive plays {them}, with made-up values\n  \
                 to ask a running one: --url {first}=http://..., or {first}=http://... instead of the file",
                quoted.join(", ")
            ));
        }
    }
}

fn start(schemas: &[(String, Arc<str>)]) -> Option<Server> {
    let config = Config {
        subgraphs: schemas
            .iter()
            .map(|(name, sdl)| SubgraphConfig::new(name, Sdl::Text(sdl.to_string())))
            .collect(),
        ..Config::default()
    };
    let assembled = assemble(&config)
        .inspect_err(|error| tracing::debug!("not played: {error}"))
        .ok()?;
    Server::start(Arc::new(assembled.service), "127.0.0.1:0", 1)
        .inspect_err(|error| {
            tracing::warn!("subgraphs that are only schemas cannot be played: {error}")
        })
        .ok()
}
