//! `ogive cost`: what an operation costs, the same number as a gateway's.

use std::sync::Arc;

use anyhow::Result;
use ogive_base::Reservation;
use ogive_cost::{Scratch, Settings, compile, report};
use ogive_gateway::{RequestError, SchemaState, prepare::coerced, prepare::prepare_operation};

use crate::{
    demo,
    operation::{OperationArguments, refused},
    serving,
    supergraph_input::SupergraphArguments,
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
    #[command(flatten)]
    graph: SupergraphArguments,
    /// Use the graph of `ogive demo`, and its query if no other is named
    #[arg(long, conflicts_with_all = ["supergraph", "config"])]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// Items of lists whose size nobody says; what the configuration says if it is not given, else 10
    #[arg(long, value_name = "N")]
    list_size: Option<u32>,
    /// Say what each field costs, on one object, with all that is selected below it
    #[arg(long)]
    fields: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = arguments.operation.request(demo::QUERY)?;
    let runtime = serving::runtime()?;
    let (mut config, supergraph) = arguments.graph.read(&runtime, arguments.demo)?;
    let control = &config.demand_control;
    let configured = control.strategy.static_estimated.list_size.get();
    let list_size = match arguments.list_size {
        Some(size) => size,
        None if control.enabled => u32::try_from(configured).unwrap_or(u32::MAX),
        None => ogive_cost::LIST_SIZE,
    };
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
        list_size,
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
