//! `ogive compose`: subgraphs to a supergraph, or located errors; once, or whenever something changes.

use std::{fs, path::PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use ogive_base::{Diagnostic, Severity};
use ogive_compose::{ComposeOptions, Composed, Composer, ContractFilter, codes};
use ogive_federation::vocabulary::Version;
use ogive_workshop::{
    live::{Live, LiveOptions},
    load::{Loaded, compose, warnings},
    report::{self, Origins},
};

use crate::{
    check,
    inputs::{self, SubgraphArguments},
    serving,
    terminal::{self, Found, Rendered},
};

#[derive(clap::Args)]
#[command(after_help = inputs::HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subgraphs: SubgraphArguments,
    /// Write the supergraph to a file instead of standard output; the file stays as it is if there are errors
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the schema that clients see instead of the supergraph
    #[arg(long)]
    api: bool,
    /// Leave out what this contract of the file of checks hides
    #[arg(long, value_name = "NAME")]
    contract: Option<String>,
    /// The file of checks that has the contract [default: checks.yaml, if it is there]
    #[arg(long, value_name = "FILE", requires = "contract")]
    checks: Option<PathBuf>,
    /// How errors and hints are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Which hints are written [default: debug for json, else warn]
    #[arg(long, value_enum)]
    hints: Option<Hints>,
    /// Version of the join specification to write, such as 0.3, for gateways that do not know newer ones
    #[arg(long, value_name = "VERSION", value_parser = join_version)]
    join_version: Option<Version>,
    /// Compose again whenever a subgraph changes, until interrupted; needs --output to write anywhere
    #[arg(long)]
    watch: bool,
}

/// How diagnostics are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Excerpts for people, on standard error
    Text,
    /// One JSON object: `{"supergraph": …, "errors": […], "hints": […]}`
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
}

/// The quietest hints to show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Hints {
    /// None
    None,
    /// Probably not what was meant
    Warn,
    /// Worth knowing
    Info,
    /// Everything
    Debug,
}

impl Hints {
    fn shows(self, hint: &Diagnostic) -> bool {
        let level = codes::hint_code(hint.code).map(|h| h.level);
        let needed = match level {
            Some(codes::Level::Warn) | None => Hints::Warn,
            Some(codes::Level::Info) => Hints::Info,
            Some(codes::Level::Debug) => Hints::Debug,
        };
        self >= needed
    }
}

fn join_version(text: &str) -> Result<Version, String> {
    let parsed = text
        .trim_start_matches('v')
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match parsed {
        Some((0, minor @ 3..=5)) => Ok(Version { major: 0, minor }),
        _ => Err("versions that can be written are 0.3, 0.4 and 0.5".into()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = ComposeOptions {
        join_version: arguments.join_version,
        ..ComposeOptions::default()
    };
    let filter = filter(arguments)?;
    if arguments.watch {
        return watch(arguments, &options, filter.as_ref());
    }
    let loaded = arguments.subgraphs.load()?;
    let mut composed = compose(&mut Composer::new(), &loaded, &options);
    apply(filter.as_ref(), &mut composed);
    finish(arguments, &composed, &loaded)
}

/// What the contract hides that is named.
fn filter(arguments: &Arguments) -> Result<Option<ContractFilter>> {
    let Some(name) = &arguments.contract else {
        return Ok(None);
    };
    let checks = check::read_checks(arguments.checks.as_deref())?;
    if let Some(contract) = checks.contracts.iter().find(|c| c.name == *name) {
        return Ok(Some(check::filter(contract)));
    }
    let known: Vec<&str> = checks.contracts.iter().map(|c| &*c.name).collect();
    let help = if known.is_empty() {
        "declare it below `contracts:` in checks.yaml, or name another file with `--checks`".into()
    } else {
        format!("it has {}", known.join(", "))
    };
    Err(terminal::error(
        format_args!("the file of checks has no contract `{name}`"),
        &help,
    ))
}

/// Reduces a graph that composes to what a contract shows.
fn apply(filter: Option<&ContractFilter>, composed: &mut Composed) {
    let contract = filter.and_then(|filter| composed.contract(filter));
    if let Some(contract) = contract {
        composed.supergraph_sdl = contract.supergraph_sdl;
        composed.errors.extend(contract.errors);
    }
}

/// Writes what came out.
fn finish(arguments: &Arguments, composed: &Composed, loaded: &[Loaded]) -> Result<()> {
    let result = if arguments.api {
        composed.api_sdl()
    } else {
        composed.supergraph_sdl.clone()
    };
    let wanted = arguments.hints.unwrap_or(match arguments.format {
        Format::Json => Hints::Debug,
        _ => Hints::Warn,
    });
    let hints: Vec<&Diagnostic> = composed.hints.iter().filter(|h| wanted.shows(h)).collect();
    let warnings = match wanted {
        Hints::None => Vec::new(),
        _ => warnings(loaded, composed),
    };
    let all = || {
        let hints = hints.iter().copied();
        composed.errors.iter().chain(hints).chain(&warnings)
    };
    let origins = Origins::new(loaded);
    match arguments.format {
        Format::Text => {
            let shown = all().count();
            if shown > 0 {
                terminal::remark(&report::text(all(), &composed.sources, terminal::colour()));
                terminal::remark(&format!("\n{}", report::summary(all())));
            }
        }
        Format::Json => {
            let list = |severity: Severity| -> Vec<serde_json::Value> {
                let of = |d: &&Diagnostic| {
                    (d.severity == Severity::Error) == (severity == Severity::Error)
                };
                all()
                    .filter(of)
                    .map(|d| report::json(d, &composed.sources, &origins))
                    .collect()
            };
            let value = serde_json::json!({
                "supergraph": result,
                "errors": list(Severity::Error),
                "hints": list(Severity::Hint),
            });
            terminal::print(&value.to_string());
        }
        Format::Sarif => {
            let log = report::sarif(all(), &composed.sources, &origins);
            terminal::print(&log.to_string());
        }
        Format::Github => terminal::print(&report::github(all(), &composed.sources, &origins)),
    }
    match result {
        None if composed.supergraph_sdl.is_some() => Err(terminal::error(
            "the composed supergraph cannot be read, so it has no API schema",
            "compose without `--api`, and report the supergraph as a bug",
        )),
        None => Err(Found.into()),
        Some(text) => write(arguments, &text),
    }
}

fn write(arguments: &Arguments, text: &str) -> Result<()> {
    let Some(path) = &arguments.output else {
        if arguments.format == Format::Text && !arguments.watch {
            terminal::print(text);
        }
        return Ok(());
    };
    fs::write(path, text).map_err(|error| {
        terminal::error(
            format_args!("cannot write `{}`: {error}", path.display()),
            "check that the folder exists and may be written to",
        )
    })
}

/// Composes again and again.
fn watch(
    arguments: &Arguments,
    options: &ComposeOptions,
    filter: Option<&ContractFilter>,
) -> Result<()> {
    let inputs = arguments.subgraphs.inputs()?;
    let mut composer = Composer::new();
    serving::runtime()?.block_on(async {
        let live = Live::start(inputs, LiveOptions::default()).await;
        let mut live = live.map_err(inputs::refused)?;
        loop {
            let snapshot = live.snapshot();
            let colour = terminal::colour();
            if let Some(refused) = &snapshot.refused {
                let text = report::text(&refused.diagnostics, &refused.sources, colour);
                terminal::remark(&text);
            }
            for trouble in &snapshot.troubles {
                terminal::remark(&trouble.render(&ogive_base::Sources::new(), colour));
            }
            if snapshot.is_complete() {
                let start = std::time::Instant::now();
                let mut composed = compose(&mut composer, &snapshot.loaded, options);
                apply(filter, &mut composed);
                let took = start.elapsed();
                match finish(arguments, &composed, &snapshot.loaded) {
                    Ok(()) => terminal::remark(&format!(
                        "composed {} subgraphs in {:.1} ms; watching",
                        snapshot.loaded.len(),
                        took.as_secs_f64() * 1e3
                    )),
                    Err(error) if error.is::<Found>() => {
                        terminal::remark("not composed; watching");
                    }
                    Err(error) if error.is::<Rendered>() => terminal::fail(&error),
                    Err(error) => return Err(error),
                }
            } else {
                terminal::remark("not composed: a subgraph cannot be read; watching");
            }
            tokio::select! {
                () = live.changed() => {}
                interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            }
        }
    })
}
