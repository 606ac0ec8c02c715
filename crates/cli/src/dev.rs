//! `ogive dev`: subgraphs under development behind a gateway that follows them.

use std::path::PathBuf;

use anyhow::Result;

use crate::{composing::CACHE, environment, inputs::SubgraphArguments, serve, serve_arguments};

/// Where it serves without `--listen`.
const LISTEN: &str = "127.0.0.1:4000";

/// Arguments of `ogive dev`.
#[derive(clap::Args)]
#[command(
    after_help = "Files are watched, running subgraphs are asked again every second; whatever changes is composed and served at once.\n\
                  While there are errors, they are shown here and in GraphiQL, and the last good graph serves on.\n\
                  A running subgraph that does not answer is served with its last known schema.\n\n\
                  Introspection is on, subscriptions are served, messages of subgraph errors are shown, and plans and traces to whoever asks for them: GraphiQL has a tab for both.\n\
                  What the graph restricts (`@authenticated` and the like) is restricted here, too: a `--config` with `authentication.router` says how callers are known.\n\
                  For production, use `ogive serve`.\n\n\
                  Environment: OGIVE_CONFIG, OGIVE_LISTEN, OGIVE_LOG, and OGIVE__section__key for every key of the configuration."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subgraphs: SubgraphArguments,
    /// Address to serve on [default: 127.0.0.1:4000]
    #[arg(short, long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where schemas of running subgraphs are kept for when they do not answer
    #[arg(long, value_name = "DIR", default_value = CACHE)]
    schema_cache: PathBuf,
    /// What to log: error, warn, info, debug, trace, or a list such as info,ogive_transport=debug [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let listen = arguments
        .listen
        .or_else(|| environment::text(environment::LISTEN));
    let listen = listen.unwrap_or_else(|| LISTEN.to_owned());
    let log = arguments
        .log
        .or_else(|| environment::text(environment::LOG));
    let log = log.unwrap_or_else(|| "info".to_owned());
    serve::run(serve_arguments::Arguments::for_development(
        arguments.subgraphs,
        arguments.config,
        listen,
        arguments.schema_cache,
        log,
    ))
}
