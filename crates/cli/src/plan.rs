//! `ogive plan`: how an operation is split into subgraph requests; and `ogive plan build`, plans ahead of time.
//!
//! Operations are planned exactly as a gateway plans them, literals lifted to variables included.

mod build;
mod stages;

use anyhow::Result;
use clap::ValueEnum;
use ogive_base::BitSet;
use ogive_config::{Config, PlanProfile};
use ogive_federation::Supergraph;
use ogive_gateway::{
    SchemaState, explain::literals_text, prepare::prepare_operation, schema::canonical::canonical,
    schema::options::PipelineOptions, schema::refinement::RefineLimits,
};
use ogive_plan::{Plan, apollo};
use ogive_planner::PlanOptions;

use crate::{
    demo,
    operation::{OperationArguments, refused},
    serving,
    supergraph_input::SupergraphArguments,
    terminal,
};

/// Arguments of `ogive plan`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Pictures: `ogive plan -s supergraph.graphql query.graphql --format svg > plan.svg`, or `--format dot | dot -Tpng`.\n\
                  Plans ahead of time: `ogive plan build --help`. How to read a plan: docs/planning.md."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    show: Show,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Plan a folder of operations into one file, for `ogive serve --plans`
    Build(build::Arguments),
}

/// Which operation, and how to show its plan.
#[derive(clap::Args)]
struct Show {
    #[command(flatten)]
    graph: SupergraphArguments,
    /// Use the graph of `ogive demo`, and its query if no other is named
    #[arg(long, conflicts_with_all = ["supergraph", "config"])]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// How to show the plan
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Show what a planning pass found instead, with its time and fuel
    #[arg(long, value_enum)]
    stage: Option<stages::Stage>,
    /// What the plan makes small first; what the configuration says if it is not given
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Plan as a gateway does in the background, for operations whose first plan might not be the best
    #[arg(long)]
    refine: bool,
    /// Plan with another profile too, and show both
    #[arg(long, value_enum, value_name = "PROFILE", conflicts_with = "stage")]
    compare: Option<Profile>,
    /// Plan as if this label of `@override(label:)` were on; may be repeated
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For tools
    Json,
    /// Apollo's plan tree as JSON
    Apollo,
    /// Apollo's plan tree as text
    ApolloText,
    /// Graph for Graphviz
    Dot,
    /// Graph for Mermaid
    Mermaid,
    /// Picture
    Svg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Fewest waves: the shortest answer time
    CriticalPath,
    /// Fewest requests, then fewest waves
    FewestRequests,
    /// The least work for subgraphs, as estimated; looked for around the plans of both others
    LeastLoad,
}

impl Profile {
    fn set_in(self, config: &Config) -> Config {
        let mut config = config.clone();
        config.query_planning.profile = match self {
            Profile::CriticalPath => PlanProfile::CriticalPath,
            Profile::FewestRequests => PlanProfile::FewestRequests,
            Profile::LeastLoad => PlanProfile::LeastLoad,
        };
        config
    }
    fn of(config: &Config) -> Self {
        match config.query_planning.profile {
            PlanProfile::CriticalPath => Profile::CriticalPath,
            PlanProfile::FewestRequests => Profile::FewestRequests,
            PlanProfile::LeastLoad => Profile::LeastLoad,
        }
    }
    fn name(self) -> &'static str {
        match self {
            Profile::CriticalPath => "critical-path",
            Profile::FewestRequests => "fewest-requests",
            Profile::LeastLoad => "least-load",
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Some(Command::Build(arguments)) => build::run(arguments),
        None => show(&arguments.show),
    }
}

fn show(arguments: &Show) -> Result<()> {
    let request = arguments.operation.request(demo::QUERY)?;
    let runtime = serving::runtime()?;
    let (config, supergraph) = arguments.graph.read(&runtime, arguments.demo)?;
    let profile = arguments.profile.unwrap_or(Profile::of(&config));
    let config = profile.set_in(&config);
    let (mut state, _) = SchemaState::new(supergraph, &config);
    let labels = labels(&arguments.labels, &state.supergraph)?;
    state.options.plan.labels.clone_from(&labels);
    // The gateway answers at once; the plan shows what could come later.
    state.options.prepare.normalise.deferral = true;
    let name = request.operation_name.as_deref();
    let document = arguments.operation.document_name();
    let fail = |error| refused(&error, &document);
    // Plans do not depend on variable values, so none are asked for.
    let operation = prepare_operation(&state, &request.query, name).map_err(fail)?;
    let form = canonical(&state.supergraph, &state.compared, &operation.operation);
    let limits = RefineLimits::new(&config).or_else(|| RefineLimits::new(&Config::default()));
    let fuel = limits.map(|limits| limits.fuel);
    let fuel = fuel.filter(|_| arguments.refine);
    let run = |options| {
        stages::run(&state, &form.operation, options, fuel).map_err(|error| {
            fail(ogive_gateway::RequestError::graphql(
                error.code,
                error.message,
            ))
        })
    };
    let passes = run(&state.options.plan)?;
    if let Some(stage) = arguments.stage {
        terminal::print(&passes.text(stage));
        return Ok(());
    }
    let names = &passes.plan.variables;
    let literals = form.binding.literals();
    let literals: Vec<_> = literals
        .filter_map(|(index, json)| Some((names.get(index)?.clone(), json.into())))
        .collect();
    let written = |plan: &Plan| {
        let mut text = write(plan, arguments.format);
        if let Form::Text = arguments.format {
            literals_text(&literals, &mut text);
        }
        text
    };
    let Some(other) = arguments.compare else {
        terminal::print(&written(&passes.plan));
        return Ok(());
    };
    let other_passes = run(&PlanOptions {
        labels,
        ..PipelineOptions::planning(&other.set_in(&config))
    })?;
    let both = [(profile, passes), (other, other_passes)];
    let mut out = String::new();
    for (profile, passes) in &both {
        out.push_str(&format!("{:<16} {}\n", profile.name(), passes.summary()));
    }
    for (profile, passes) in &both {
        out.push_str(&format!(
            "\n== {} ==\n{}",
            profile.name(),
            written(&passes.plan)
        ));
    }
    terminal::print(&out);
    Ok(())
}

/// The indexes of override labels.
fn labels(names: &[String], supergraph: &Supergraph) -> Result<BitSet> {
    let known = &supergraph.graph.override_labels;
    let mut out = BitSet::new();
    for name in names {
        let Some(at) = known.iter().position(|label| **label == **name) else {
            let known: Vec<String> = known.iter().map(|label| format!("`{label}`")).collect();
            let help = if known.is_empty() {
                "no `@override` of this supergraph has a label".to_owned()
            } else {
                format!("its labels are {}", known.join(", "))
            };
            return Err(terminal::error(
                format_args!("no `@override` of the supergraph has the label `{name}`"),
                &help,
            ));
        };
        out.insert(at as u32);
    }
    Ok(out)
}

fn write(plan: &Plan, form: Form) -> String {
    match form {
        Form::Text => ogive_plan::text(plan),
        Form::Json => ogive_plan::json(plan),
        Form::Apollo => apollo::json(plan),
        Form::ApolloText => apollo::text(plan),
        Form::Dot => ogive_plan::dot(plan),
        Form::Mermaid => ogive_plan::mermaid(plan),
        Form::Svg => ogive_plan::svg(plan),
    }
}
