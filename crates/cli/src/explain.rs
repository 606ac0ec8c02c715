//! `ogive explain`: one operation at each of the five stops.

use std::path::{Path, PathBuf};

use anyhow::Result;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::Config;
use ogive_gateway::{SchemaState, explain};
use ogive_transport::Client;

use crate::{load, operation::OperationArguments, serve, terminal};

/// Arguments of `ogive explain`.
#[derive(clap::Args)]
#[command(
    after_help = "Nothing is sent to subgraphs without --execute. With it, the URLs of the supergraph are asked, or \
                  those of `override_subgraph_url` in the configuration."
)]
pub(crate) struct Arguments {
    /// Supergraph SDL file
    #[arg(short, long, value_name = "FILE")]
    supergraph: PathBuf,
    #[command(flatten)]
    operation: OperationArguments,
    /// Configuration file, for subgraph URLs, timeouts and headers
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask the subgraphs, and show every request and answer
    #[arg(long)]
    execute: bool,
    /// A header of the client's request, such as 'authorization: Bearer x'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = arguments.operation.request()?;
    let config = match &arguments.config {
        Some(path) => load::config(path)?,
        None => Config::default(),
    };
    let headers = headers(&arguments.headers)?;
    let state = state(&arguments.supergraph, &config)?;
    let text = serve::runtime()?.block_on(async {
        let client = arguments.execute.then(Client::new);
        let explanation = explain(&state, request, &headers, client.as_ref()).await;
        explanation.text(arguments.execute)
    });
    terminal::print(&text);
    Ok(())
}

fn state(supergraph: &Path, config: &Config) -> Result<SchemaState> {
    let (state, notes) = SchemaState::new(load::supergraph(supergraph)?, config);
    for note in notes {
        terminal::remark(&format!("note: {note}"));
    }
    Ok(state)
}

fn headers(texts: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for text in texts {
        let parsed = text.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) = parsed.ok_or_else(|| {
            terminal::error(
                format_args!("`{text}` is no header"),
                "write `--header 'name: value'`",
            )
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}
