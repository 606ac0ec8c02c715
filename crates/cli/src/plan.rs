//! `ogive plan`: how an operation is split into subgraph requests.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use ogive_config::Config;
use ogive_gateway::{SchemaState, plan::plan_now, prepare::prepare_operation};

use crate::{
    demo, load,
    operation::{OperationArguments, refused},
    terminal,
};

/// Arguments of `ogive plan`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Supergraph SDL file
    #[arg(short, long, value_name = "FILE", required_unless_present = "demo")]
    supergraph: Option<PathBuf>,
    /// Use the graph of `ogive demo`, and its query if no other is named
    #[arg(long, conflicts_with = "supergraph")]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// How to show the plan
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For tools
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = arguments.operation.request(demo::QUERY)?;
    let supergraph = match &arguments.supergraph {
        Some(path) => load::supergraph(path)?,
        None => demo::supergraph()?,
    };
    let (state, _) = SchemaState::new(supergraph, &Config::default());
    let name = request.operation_name.as_deref();
    let document = arguments.operation.document_name();
    // Plans do not depend on variable values, so none are asked for.
    let operation = prepare_operation(&state, &request.query, name)
        .map_err(|error| refused(&error, &document))?;
    let (planned, _) = plan_now(&state, &operation).map_err(|error| refused(&error, &document))?;
    terminal::print(&match arguments.format {
        Form::Text => ogive_plan::text(&planned.plan),
        Form::Json => ogive_plan::json(&planned.plan),
    });
    Ok(())
}
