//! `ogive cost`: what an operation costs, the same number as a gateway's.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use ogive_base::Reservation;
use ogive_config::Config;
use ogive_cost::{Scratch, Settings, compile, report};
use ogive_files::Pipes;
use ogive_gateway::{RequestError, SchemaState, prepare::coerced, prepare::prepare_operation};

use crate::{
    demo, load,
    operation::{OperationArguments, refused},
    terminal,
};

/// Arguments of `ogive cost`.
#[derive(clap::Args)]
#[command(
    after_help = "An object costs 1, a scalar nothing, a mutation 10 more; a list costs its items. `@cost` and `@listSize` in \
                  the schema say otherwise. Lists whose size nobody says have --list-size items. How costs are counted: \
                  docs/demand-control.md."
)]
pub(crate) struct Arguments {
    /// Supergraph SDL file
    #[arg(short, long, value_name = "FILE", required_unless_present = "demo")]
    supergraph: Option<PathBuf>,
    /// Use the graph of `ogive demo`, and its query if no other is named
    #[arg(long, conflicts_with = "supergraph")]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// Items of lists whose size nobody says
    #[arg(long, value_name = "N", default_value_t = ogive_cost::LIST_SIZE)]
    list_size: u32,
    /// Say what each field costs, on one object, with all that is selected below it
    #[arg(long)]
    fields: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = arguments.operation.request(demo::QUERY)?;
    let supergraph = match &arguments.supergraph {
        Some(path) => load::supergraph(path, Pipes::Read)?,
        None => demo::supergraph()?,
    };
    let mut config = Config::default();
    // Who asks what introspection costs is told: nothing.
    config.supergraph.introspection = true;
    let (state, _) = SchemaState::new(supergraph, &config);
    let name = request.operation_name.as_deref();
    let document = arguments.operation.document_name();
    let fail = |error: RequestError| refused(&error, &document);
    let prepared = prepare_operation(&state, &request.query, name).map_err(fail)?;
    let memory = Reservation::new(&Arc::default());
    let variables = coerced(&state, &request, &prepared, &memory).map_err(fail)?;
    let settings = Settings {
        list_size: arguments.list_size,
        fields: arguments.fields,
        ..Settings::default()
    };
    let (schema, costs) = (&state.supergraph.schema, &state.supergraph.graph.costs);
    let program = compile(schema, costs, &prepared.operation, &settings);
    let mut scratch = Scratch::default();
    let estimate = program.evaluate(schema, costs, &variables, &mut scratch);
    let fields = program.evaluate_fields(schema, costs, &variables, &mut scratch);
    let write = if arguments.json {
        report::json
    } else {
        report::text
    };
    terminal::print(&write(&prepared.operation, &estimate, &fields));
    Ok(())
}
