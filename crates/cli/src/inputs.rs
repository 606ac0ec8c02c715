//! Which subgraphs: the arguments that commands over subgraphs share.

use anyhow::Result;
use ogive_workshop::{
    Refused,
    inputs::Inputs,
    load::{Loaded, load as load_entries},
    report,
};

use crate::{
    load, serving,
    terminal::{self, Unreadable},
};

/// What the arguments mean; shown below the help of each command that has them.
pub(crate) const HELP: &str = "Subgraphs are given as\n  \
    NAME=FILE         an SDL file; FILE alone is named after itself\n  \
    NAME=http://...   a running subgraph, asked for its schema\n  \
    NAME=-            SDL on standard input\n  \
    DIR               a folder: its supergraph.yaml, else every SDL file in it\n  \
    FILE.yaml, -      a list of subgraphs in the format of rover's supergraph.yaml; - reads it from standard input\n\n\
    Exit codes: 0 all is well, 1 errors were found, 2 the arguments are wrong, 3 an input cannot be read.";

/// Subgraphs of a command.
#[derive(clap::Args, Clone)]
pub(crate) struct SubgraphArguments {
    /// Subgraphs; see below for every form
    #[arg(value_name = "SUBGRAPH", required = true)]
    pub(crate) subgraphs: Vec<String>,
    #[command(flatten)]
    pub(crate) more: MoreArguments,
}

/// What else there is to say about subgraphs.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct MoreArguments {
    /// Where a subgraph is served, as in reviews=http://reviews:4001/graphql; may be repeated
    #[arg(long, value_name = "NAME=URL")]
    url: Vec<String>,
    /// A header for subgraphs that are asked for their schema, such as 'authorization: Bearer x'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

impl SubgraphArguments {
    /// What is asked for; reads standard input if it is part of it.
    pub(crate) fn inputs(&self) -> Result<Inputs> {
        self.more.inputs(&self.subgraphs)
    }
    /// Every subgraph.
    pub(crate) fn load(&self) -> Result<Vec<Loaded>> {
        load_all(&self.inputs()?)
    }
}

impl MoreArguments {
    /// What is asked for; reads standard input if it is part of it.
    pub(crate) fn inputs(&self, subgraphs: &[String]) -> Result<Inputs> {
        let mut inputs = Inputs {
            arguments: subgraphs.to_vec(),
            ..Inputs::default()
        };
        for url in &self.url {
            let pair = url.split_once('=');
            let (name, url) = pair.ok_or_else(|| wrong("--url", url, "NAME=URL"))?;
            inputs.urls.push((name.into(), url.into()));
        }
        for text in &self.headers {
            inputs.headers.push(header(text)?);
        }
        if inputs.wants_stdin() {
            inputs.stdin = Some(load::standard_input("subgraphs")?);
        }
        Ok(inputs)
    }
}

/// A header as it is written on the command line.
pub(crate) fn header(text: &str) -> Result<(String, String)> {
    let pair = text.split_once(':');
    let (name, value) = pair.ok_or_else(|| wrong("--header", text, "'name: value'"))?;
    Ok((name.trim().into(), value.trim().into()))
}

/// Reads every subgraph.
pub(crate) fn load_all(inputs: &Inputs) -> Result<Vec<Loaded>> {
    let resolved = inputs.resolve().map_err(refused)?;
    serving::runtime()?
        .block_on(load_entries(&resolved.entries))
        .map_err(refused)
}

/// Inputs that cannot be read, as an error.
pub(crate) fn refused(refused: Refused) -> anyhow::Error {
    let colour = terminal::colour();
    Unreadable(report::text(&refused.diagnostics, &refused.sources, colour)).into()
}

fn wrong(option: &str, given: &str, form: &str) -> anyhow::Error {
    terminal::error(
        format_args!("`{option} {given}` cannot be read"),
        &format!("write it as {form}"),
    )
}
