//! `ogive graph why Type.field`: who resolves a field, and how one gets there.

use anyhow::Result;
use clap::ValueEnum;
use ogive_workshop::why::why;

use crate::{graphs, inputs::MoreArguments, terminal};

/// Arguments of `ogive graph`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Which subgraphs resolve a field, by which keys they are entered, and a shortest way there
    Why(WhyArguments),
}

#[derive(clap::Args)]
#[command(
    after_help = "Pictures: `ogive graph why Product.price supergraph.graphql --format svg > why.svg`, or `--format dot | dot -Tpng`."
)]
struct WhyArguments {
    /// The field
    #[arg(value_name = "TYPE.FIELD")]
    field: String,
    /// The graph: a supergraph file, or subgraphs in any form that `ogive compose` takes
    #[arg(value_name = "GRAPH", required = true)]
    graph: Vec<String>,
    #[command(flatten)]
    more: MoreArguments,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For tools
    Json,
    /// Graph for Graphviz
    Dot,
    /// Graph for Mermaid
    Mermaid,
    /// Picture
    Svg,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Command::Why(arguments) = &arguments.command;
    let graph = graphs::graph(&arguments.graph, &arguments.more)?;
    let found = why(&graph.supergraph, &arguments.field).map_err(|what| {
        terminal::error(what, "`ogive compose --api` prints every type and field")
    })?;
    terminal::print(&match arguments.format {
        Form::Text => found.text(),
        Form::Json => found.json().to_string(),
        Form::Dot => found.dot(),
        Form::Mermaid => found.mermaid(),
        Form::Svg => found.svg(),
    });
    Ok(())
}
