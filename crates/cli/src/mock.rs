//! `ogive mock`: subgraphs from SDL and data, with delays, faults and counters.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use ogive_base::id::Id;
use ogive_federation::{SubgraphId, subgraph_sdl};
use ogive_files::Pipes;
use ogive_mock::{AssembleError, Config, Delay, Fault, Sdl, Server, SubgraphConfig, assemble};

use crate::{load, serving, terminal};

/// Where to listen without `--listen` and `listen`.
const LISTEN: &str = "127.0.0.1:4200";

/// Arguments of `ogive mock`.
#[derive(clap::Args)]
#[command(
    after_help = "Subgraphs are served at /graphql/NAME, counters at /stats, liveness at /health.\n\
                  Without data, values are generated: always the same for the same seed, and the same in every subgraph."
)]
pub(crate) struct Arguments {
    /// Subgraphs to serve: a name and its SDL file, or the file alone to take its name
    #[arg(value_name = "NAME=FILE")]
    subgraphs: Vec<String>,
    /// Serve every subgraph of a supergraph
    #[arg(short, long, value_name = "FILE")]
    supergraph: Option<PathBuf>,
    /// Data file (YAML or JSON) for all subgraphs
    #[arg(short, long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Configuration file with subgraphs, data, delays and faults
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to serve on; port 0 picks a free one [default: 127.0.0.1:4200]
    #[arg(short, long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Hold every answer back: 10ms, or a range such as 20..150ms
    #[arg(long, value_name = "TIME", value_parser = Delay::parse)]
    delay: Option<Delay>,
    /// Fail on purpose, as in status:503, drop, error:User.name; with @3 only every third request; NAME=FAULT for
    /// one subgraph only
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<String>,
    /// Seed of generated values
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Threads [default: 1]
    #[arg(long, value_name = "NUMBER")]
    workers: Option<usize>,
    /// Compute every answer anew instead of remembering answers by request
    #[arg(long)]
    no_cache: bool,
    /// Do not validate requests against the schema
    #[arg(long)]
    no_validate: bool,
    /// Keep the latest requests with their headers at /requests
    #[arg(long)]
    record: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    serving::raise_file_limit();
    let config = configure(arguments)?;
    let assembled = assemble(&config).map_err(explain)?;
    for warning in &assembled.warnings {
        terminal::remark(&format!("warning: {warning}"));
    }
    let service = Arc::new(assembled.service);
    let listen = config.listen.as_deref().unwrap_or(LISTEN);
    let workers = config.workers.unwrap_or(1);
    let server = Server::start(service.clone(), listen, workers).map_err(|error| {
        terminal::error(
            format_args!("cannot listen on {listen}: {error}"),
            "choose another address with `--listen`; port 0 picks a free one",
        )
    })?;
    let mut text = String::new();
    for name in service.names() {
        text.push_str(&format!("{name}  {}\n", server.url(name)));
    }
    terminal::print(&text);
    server.join();
    Ok(())
}

/// The config file with the arguments laid over it.
fn configure(arguments: &Arguments) -> Result<Config> {
    let mut config = match &arguments.config {
        None => Config::default(),
        Some(path) => {
            let text = load::read(
                path,
                "configuration",
                "check the path given with `--config`",
            )?;
            let folder = path.parent().unwrap_or(Path::new("."));
            Config::parse(&text, folder).map_err(|error| {
                terminal::error(
                    format_args!("{}: {error}", path.display()),
                    "docs/mock.md describes the configuration",
                )
            })?
        }
    };
    if let Some(path) = &arguments.supergraph {
        let supergraph = load::supergraph(path, Pipes::Read)?;
        for i in 0..supergraph.subgraphs.len() {
            let id = SubgraphId::from_usize(i);
            let name = &*supergraph.subgraphs[id].name;
            let sdl = Sdl::Text(subgraph_sdl(&supergraph, id));
            config.subgraphs.push(SubgraphConfig::new(name, sdl));
        }
    }
    for text in &arguments.subgraphs {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.to_owned(), Path::new(path)),
            None => {
                let stem = Path::new(text).file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), Path::new(text))
            }
        };
        let sdl = Sdl::File(path.to_path_buf());
        config.subgraphs.push(SubgraphConfig::new(&name, sdl));
    }
    if config.subgraphs.is_empty() {
        return Err(terminal::error(
            "nothing to serve",
            "name a subgraph, as in `ogive mock accounts=accounts.graphql`, or give `--supergraph` or `--config`",
        ));
    }
    if let Some(listen) = &arguments.listen {
        config.listen = Some(listen.clone());
    }
    if arguments.workers.is_some() {
        config.workers = arguments.workers;
    }
    if let Some(seed) = arguments.seed {
        config.generate.seed = seed;
    }
    for subgraph in &mut config.subgraphs {
        if arguments.data.is_some() {
            subgraph.data.clone_from(&arguments.data);
        }
        let settings = &mut subgraph.settings;
        settings.delay = arguments.delay.unwrap_or(settings.delay);
        settings.cache &= !arguments.no_cache;
        settings.record |= arguments.record;
        subgraph.options.validate &= !arguments.no_validate;
    }
    for text in &arguments.faults {
        add_fault(&mut config, text)?;
    }
    Ok(config)
}

fn add_fault(config: &mut Config, text: &str) -> Result<()> {
    let (name, fault) = match text.split_once('=') {
        Some((name, fault)) => (Some(name), fault),
        None => (None, text),
    };
    let fault = Fault::parse(fault)
        .map_err(|message| terminal::error(message, "docs/mock.md lists all faults"))?;
    let mut found = false;
    for subgraph in &mut config.subgraphs {
        if name.is_none_or(|n| n == subgraph.name) {
            subgraph.settings.faults.push(fault.clone());
            found = true;
        }
    }
    if !found {
        return Err(terminal::error(
            format_args!("no subgraph `{}` to fail", name.unwrap_or_default()),
            "write the name of a subgraph before `=`, or the fault alone for all",
        ));
    }
    Ok(())
}

fn explain(error: AssembleError) -> anyhow::Error {
    match error {
        AssembleError::Sdl(error) => load::render(
            error.diagnostics,
            &error.sources,
            "correct the SDL and start again",
        ),
        AssembleError::File(..) => terminal::error(error, "check the path"),
        AssembleError::Data(..) => terminal::error(error, "docs/mock.md describes data files"),
        AssembleError::Fault(..) => terminal::error(
            error,
            "write a coordinate of its schema, as in error:User.name",
        ),
    }
}
