//! The `ogive` command: arguments, the allocator, wiring. Logic lives in the crates below.
//!
//! One file per command; [`load`] reads files and renders what is wrong with them, [`terminal`] writes to people.

mod bench;
mod cedar;
mod check;
mod compose;
mod composing;
mod config;
mod config_url;
mod cost;
mod demo;
mod dev;
mod diff;
mod environment;
mod explain;
mod feed;
mod fix;
mod graph;
mod graphs;
mod health;
mod inputs;
mod introspect;
mod lint;
mod load;
mod manual;
mod memory;
mod mock;
mod new;
mod operation;
mod operations;
mod plan;
mod played;
mod polling;
mod reload;
mod restart;
mod rhai;
mod schedule;
mod serve;
mod serve_arguments;
mod serving;
mod supergraph_input;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A federated GraphQL gateway.
#[derive(Parser)]
#[command(
    name = "ogive",
    version = manual::version(),
    arg_required_else_help = true,
    after_help = "Start with `ogive demo`: it needs no files and no network."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try a whole federated graph: subgraphs, gateway and GraphiQL in one process
    Demo(demo::Arguments),
    /// Serve a supergraph, or subgraphs that are composed and followed
    Serve(Box<serve_arguments::Arguments>),
    /// Write a project that runs at once: two subgraphs, a mock, configuration, checks
    New(new::Arguments),
    /// Ask a gateway whether it serves, or is ready: exit code 0 or 1, for probes
    Health(health::Arguments),
    /// Develop subgraphs: compose them, serve them, follow every change
    Dev(dev::Arguments),
    /// Ask a running subgraph for its schema, and write it as SDL
    Introspect(introspect::Arguments),
    /// Compose subgraphs into a supergraph
    Compose(compose::Arguments),
    /// Compare two graphs: what clients notice, and who resolves what
    Diff(diff::Arguments),
    /// Tell whether subgraphs may replace what serves now
    Check(check::Arguments),
    /// Find what composes and could be better: names, descriptions, what is unused
    Lint(lint::Arguments),
    /// Repair subgraphs that do not compose, where the repair is mechanical
    Fix(fix::Arguments),
    /// Ask a graph: `why` a field is resolved where it is
    Graph(graph::Arguments),
    /// Serve subgraphs from SDL with data or generated values, delays and faults
    Mock(mock::Arguments),
    /// Check a configuration, write schema and defaults, or bring another gateway's over
    Config(config::Arguments),
    /// Look at scripts before they are served
    Rhai(rhai::Arguments),
    /// Measure gateways against each other, answers checked
    Bench(bench::Arguments),
    /// Show how an operation is split into subgraph requests
    Plan(plan::Arguments),
    /// Find the operations of a front end, check them, and publish their manifest and plans
    Operations(operations::Arguments),
    /// Estimate what an operation costs, as `@cost` and `@listSize` say
    Cost(cost::Arguments),
    /// Show what becomes of an operation at each of the five stops, or what a code means
    Explain(explain::Arguments),
    /// Write a completion script for a shell
    Completions(manual::CompletionArguments),
    /// Write a manual page
    Man(manual::ManArguments),
    /// Print the version and the commit it was built from
    Version,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Fix(arguments) => fix::run(&arguments),
        Command::Graph(arguments) => graph::run(&arguments),
        Command::Dev(arguments) => dev::run(arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Rhai(arguments) => rhai::run(&arguments),
        Command::Compose(arguments) => compose::run(&arguments),
        Command::Introspect(arguments) => introspect::run(&arguments),
        Command::Mock(arguments) => mock::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Operations(arguments) => operations::run(&arguments),
        Command::Cost(arguments) => cost::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => {
            manual::completions(&arguments, Arguments::command());
            Ok(())
        }
        Command::Man(arguments) => manual::man(&arguments, Arguments::command()),
        Command::Version => {
            manual::print_version();
            Ok(())
        }
    };
    let code = match result.and_then(|()| terminal::written_all()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::fail(&error);
            ExitCode::from(terminal::exit_code(&error))
        }
    };
    ogive_telemetry::log::finish();
    code
}
