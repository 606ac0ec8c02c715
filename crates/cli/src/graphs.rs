//! Two ways to a graph: a supergraph file, or subgraphs that are composed.

use std::path::Path;

use anyhow::Result;
use ogive_compose::{ComposeOptions, Composed, Composer};
use ogive_federation::Supergraph;
use ogive_files::Pipes;
use ogive_workshop::{
    inputs::read_text,
    load::{Loaded, compose},
    report,
};

use crate::{
    inputs::{self, MoreArguments, load_all},
    load,
    terminal::{self, Found},
};

/// A graph.
pub(crate) struct Graph {
    /// Read and checked.
    pub(crate) supergraph: Supergraph,
    /// What it was composed of, unless it was a file.
    pub(crate) composed: Option<Box<Composed>>,
}

/// Reads a supergraph file, or composes subgraphs. Errors of composition are shown here.
pub(crate) fn graph(arguments: &[String], more: &MoreArguments) -> Result<Graph> {
    if let [one] = arguments
        && let Some(text) = supergraph_file(one)?
    {
        return Ok(Graph {
            supergraph: load::supergraph_text(one, &text)?,
            composed: None,
        });
    }
    composed(&load_all(&more.inputs(arguments)?)?)
}

/// Composes what was loaded. Errors of composition are shown here.
pub(crate) fn composed(loaded: &[Loaded]) -> Result<Graph> {
    let composed = compose(&mut Composer::new(), loaded, &ComposeOptions::default());
    let Some(sdl) = &composed.supergraph_sdl else {
        let colour = terminal::colour();
        terminal::remark(&report::text(&composed.errors, &composed.sources, colour));
        terminal::remark(&format!("\n{}", report::summary(&composed.errors)));
        return Err(Found.into());
    };
    Ok(Graph {
        supergraph: load::supergraph_text("composed supergraph", sdl)?,
        composed: Some(Box::new(composed)),
    })
}

/// The text of a file that says it is a supergraph.
fn supergraph_file(argument: &str) -> Result<Option<String>> {
    let path = Path::new(argument);
    let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    if yaml || !path.is_file() {
        return Ok(None);
    }
    let text = read_text(path, "graph", Pipes::Read).map_err(inputs::refused)?;
    Ok(text.contains("join__Graph").then_some(text))
}
