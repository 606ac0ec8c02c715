//! `ogive bench`: the benchmark lab on the command line.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use ogive_bench::{
    campaign::{self, Equipment, Order},
    events,
    install::Cache,
    load::Tool,
    machine::Machine,
    model::{Gateway, Install, Lab, Role, Selection},
    process,
    progress::human,
    record::{self, Verdict},
    report::{self, Summary, banner, compare, markdown},
    rest,
    schedule::Choice,
    stage::Servers,
    units::{self, Time},
};

use crate::{serving, terminal};

/// Gateways `--quick` runs when none are named.
const QUICK_GATEWAYS: [&str; 2] = ["ogive", "apollo-gateway"];
/// Rounds without `--rounds`.
const ROUNDS: u32 = 3;

/// Arguments of `ogive bench`.
#[derive(clap::Args)]
#[command(
    after_help = "Run it where the folder `bench` is. Results go to target/bench/runs; docs/bench.md tells the rest."
)]
pub(crate) struct Arguments {
    /// Folder with gateways, scenarios and graphs
    #[arg(long, value_name = "FOLDER", default_value = "bench", global = true)]
    lab: PathBuf,
    /// Folder for what is installed and measured
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "target/bench",
        global = true
    )]
    cache: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List gateways, scenarios and tools, and what is installed
    List,
    /// Install gateways and tools from package registries
    Install {
        /// Names, as `ogive bench list` shows them
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Check answers and headers without any load
    Check(RunArguments),
    /// Check, then measure in interleaved rounds, then write the report
    Run(RunArguments),
    /// Write the report of a run anew
    Report {
        /// Folder of the run
        run: PathBuf,
        /// What to print; files are written in any case
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
    },
    /// Draw one scenario of a run as an image for a README, and write the README's section
    Chart {
        /// Folder of the run
        run: PathBuf,
        /// The scenario
        #[arg(long, value_name = "NAME", default_value = "query")]
        scenario: String,
        /// Where the image goes
        #[arg(long, value_name = "FILE", default_value = "docs/images/benchmark.svg")]
        out: PathBuf,
        /// A file with the marks of the section, which is written anew
        #[arg(long, value_name = "FILE")]
        readme: Option<PathBuf>,
    },
    /// Compare two runs
    Compare {
        /// Folder of the run before
        before: PathBuf,
        /// Folder of the run after
        after: PathBuf,
        /// What to print
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
    },
    /// Serve the REST services of `rest-chain`
    #[command(hide = true)]
    RestServices {
        /// Where
        listen: String,
        /// How long every answer is held
        delay: String,
    },
    /// Serve the source of events
    #[command(hide = true)]
    EventSource {
        /// Where
        listen: String,
    },
}

#[derive(clap::Args)]
struct RunArguments {
    /// A gateway; may be given several times [default: all]
    #[arg(short, long = "gateway", value_name = "NAME")]
    gateways: Vec<String>,
    /// A scenario; may be given several times [default: all]
    #[arg(short, long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// Short loads, one round, ogive and one other gateway: under five minutes
    #[arg(short, long)]
    quick: bool,
    /// Rounds, interleaved: A B C, A B C [default: 3]
    #[arg(short, long, value_name = "NUMBER")]
    rounds: Option<u32>,
    /// Multiply all durations
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Cut all loads so that everything fits into this time, such as 55m; none below 4s or what its scenario needs
    #[arg(long, value_name = "TIME", value_parser = time)]
    budget: Option<Time>,
    /// Cut all loads to this time, such as 8s
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "budget")]
    cap: Option<Time>,
    /// File that says who runs where over how many rounds, such as bench/full.toml
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    selection: Option<PathBuf>,
    /// Keep gateways running from round to round of a scenario: saves starts and warm-ups
    #[arg(long)]
    keep_running: bool,
    /// Print what would be run and how long it would take, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Install gateways that are missing
    #[arg(long)]
    install: bool,
    /// A program no registry offers, or another one than the installed
    #[arg(long = "binary", value_name = "NAME=PATH")]
    binaries: Vec<String>,
    /// Who makes the load
    #[arg(long, value_enum, default_value_t = ToolName::Builtin)]
    tool: ToolName,
    /// Folder for the results; one that holds the same campaign, interrupted, is continued
    /// [default: target/bench/runs/DATE-MACHINE]
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// What to print at the end
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// Tables
    Markdown,
    /// Everything, for programs
    Json,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ToolName {
    Builtin,
    K6,
    Oha,
    Wrk,
    Vegeta,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let Arguments {
        lab,
        cache,
        command,
    } = arguments;
    match command {
        Command::List => list(&read_lab(&lab)?, &open_cache(&cache, &[])?),
        Command::Install { names } => install(&read_lab(&lab)?, &open_cache(&cache, &[])?, &names),
        Command::Check(run) => measure(&read_lab(&lab)?, &cache, &run, true),
        Command::Run(run) => measure(&read_lab(&lab)?, &cache, &run, false),
        Command::Report { run, format } => {
            let features = Lab::read(&lab).ok().map(|lab| lab.features);
            let summary = report::write(&run, features.as_ref())?;
            print(&summary, format)
        }
        Command::Chart {
            run,
            scenario,
            out,
            readme,
        } => chart(&run, &scenario, &out, readme.as_deref()),
        Command::Compare {
            before,
            after,
            format,
        } => {
            let read = |path: &Path| {
                let (campaign, runs) = record::read(path)?;
                Ok::<_, ogive_bench::Error>(Summary::new(campaign, &runs))
            };
            let comparison = compare::compare(&read(&before)?, &read(&after)?);
            match format {
                Format::Markdown => terminal::print(&compare::render(&comparison)),
                Format::Json => terminal::print(&serde_json::to_string_pretty(&comparison)?),
            }
            Ok(())
        }
        Command::EventSource { listen } => {
            // A connection for each subscription, where a gateway needs one.
            serving::raise_file_limit();
            Ok(events::source::serve(&listen)?)
        }
        Command::RestServices { listen, delay } => {
            let delay = Time::parse(&delay).map_err(anyhow::Error::msg)?;
            Ok(rest::serve(&listen, delay.0)?)
        }
    }
}

fn read_lab(folder: &Path) -> Result<Lab> {
    if !folder.join("scenarios").is_dir() {
        return Err(terminal::error(
            format_args!("{} is no lab", folder.display()),
            "run `ogive bench` where the folder `bench` of the repository is, or name it with `--lab FOLDER`",
        ));
    }
    Ok(Lab::read(folder)?)
}

fn open_cache(folder: &Path, binaries: &[String]) -> Result<Cache> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut named = BTreeMap::new();
    for text in binaries {
        let (name, path) = text.split_once('=').ok_or_else(|| {
            terminal::error(
                format_args!("`{text}` names no program"),
                "write `--binary NAME=PATH`",
            )
        })?;
        let path = std::path::absolute(path).context("the path of a program")?;
        named.insert(name.to_owned(), path);
    }
    Ok(Cache {
        folder: std::path::absolute(folder).context("the folder for results")?,
        ogive: std::env::current_exe().context("the path of this program")?,
        binaries: named,
    })
}

fn list(lab: &Lab, cache: &Cache) -> Result<()> {
    let mut text = String::from("gateways\n");
    let mut line = |gateway: &Gateway| {
        let how = match (&gateway.spec.install, cache.find(gateway)) {
            (_, Ok(_)) => "here".to_owned(),
            (Install::Binary { .. }, Err(_)) => {
                format!("name it: --binary {}=PATH", gateway.name)
            }
            (_, Err(_)) => "to be installed".to_owned(),
        };
        let roles: Vec<&str> = gateway
            .spec
            .roles
            .iter()
            .map(|role| role_name(*role))
            .collect();
        text.push_str(&format!(
            "  {:<18} {:<36} {:<14} {how}\n",
            gateway.name,
            gateway.spec.title,
            roles.join(", ")
        ));
    };
    lab.gateways.iter().for_each(&mut line);
    text.push_str("\ntools\n");
    let mut tools = String::new();
    for tool in &lab.tools {
        let here = match cache.find(tool) {
            Ok(_) => "here",
            Err(_) => "to be installed",
        };
        tools.push_str(&format!("  {:<18} {here}\n", tool.name));
    }
    text.push_str(&tools);
    text.push_str("\nscenarios (* with --quick)\n");
    for scenario in &lab.scenarios {
        let quick = if scenario.quick.is_some() { "*" } else { " " };
        text.push_str(&format!(
            "{quick} {:<24} {:<34} {}\n",
            scenario.name,
            scenario.title,
            scenario.load.shape.describe()
        ));
    }
    terminal::print(&text);
    Ok(())
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Federation => "federation",
        Role::Server => "server",
        Role::Rest => "rest",
        Role::Proxy => "proxy",
        Role::Subscriptions => "subscriptions",
        Role::Defer => "defer",
    }
}

fn install(lab: &Lab, cache: &Cache, names: &[String]) -> Result<()> {
    let mut failed = Vec::new();
    for name in names {
        let gateway = lab.gateway(name)?;
        if let Install::Cargo { needs, .. } = &gateway.spec.install
            && !needs.is_empty()
            && cache.find(gateway).is_err()
        {
            terminal::remark(&format!("{name} needs {}", needs.join(", ")));
        }
        match cache.install(gateway) {
            Ok(installed) => {
                let version = cache.version(gateway, &installed);
                terminal::print(&format!("{name}: {version}"));
            }
            Err(error) => {
                terminal::remark(&error.to_string());
                failed.push(name.as_str());
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(terminal::error(
        format_args!("not installed: {}", failed.join(", ")),
        "the messages above say why; a program of yours is named with `--binary NAME=PATH`",
    ))
}

fn measure(lab: &Lab, cache: &Path, arguments: &RunArguments, check_only: bool) -> Result<()> {
    let cache = open_cache(cache, &arguments.binaries)?;
    let machine = Machine::here();
    let started = units::timestamp(units::now());
    // A day and a machine name a folder; a second run of the day gets the time as well.
    let runs = cache.folder.join("runs");
    let folder = match &arguments.out {
        Some(folder) => folder.clone(),
        None => {
            let folder = runs.join(format!("{}-{}", &started[..10], machine.slug()));
            if folder.exists() {
                runs.join(format!("{}-{}", started.replace(':', ""), machine.slug()))
            } else {
                folder
            }
        }
    };
    let mut gateways = arguments.gateways.clone();
    if arguments.quick && gateways.is_empty() {
        gateways = QUICK_GATEWAYS.map(str::to_owned).to_vec();
    }
    let selection = arguments
        .selection
        .as_ref()
        .map(|path| Selection::read(path, lab))
        .transpose()?;
    let choice = Choice {
        gateways,
        scenarios: arguments.scenarios.clone(),
        rounds: arguments
            .rounds
            .unwrap_or(if arguments.quick { 1 } else { ROUNDS }),
        quick: arguments.quick,
        scale: arguments.scale,
        selection,
        cap: arguments.cap.map(|time| time.0),
        budget: arguments.budget.map(|time| time.0),
        keep: arguments.keep_running,
    };
    let schedule = campaign::schedule(lab, &choice, &cache)?;
    let is_here = |gateway: &Gateway| cache.find(gateway).is_ok();
    if arguments.dry_run && check_only {
        let time = human(schedule.time_of_checks(&is_here));
        terminal::print(&format!("checks alone: about {time}"));
        return Ok(());
    }
    if arguments.dry_run {
        terminal::print(&schedule.describe(&is_here));
        return Ok(());
    }
    let time = if check_only {
        schedule.time_of_checks(&is_here)
    } else {
        schedule.estimate
    };
    terminal::remark(&format!("about {}", human(time)));
    let order = Order {
        choice,
        install: arguments.install || arguments.quick,
        check_only,
        tool: tool(lab, &cache, arguments.tool)?,
        folder: std::path::absolute(folder).context("the folder for results")?,
        command: command_line(),
    };
    // Clients and gateways need a file for each connection; the gateways inherit this.
    serving::raise_file_limit();
    let equipment = Equipment {
        servers: Servers::of(&cache.ogive),
        cache,
        stop: watch_for_stop(),
    };
    let say = Box::new(|text: &str| terminal::remark(text));
    let ran = campaign::run(lab, &order, &equipment, say);
    if !order.folder.join(record::RESULTS).exists() {
        ran?;
        return Ok(());
    }
    // Whatever ended the campaign: what was measured is reported.
    let summary = report::write(&order.folder, Some(&lab.features))?;
    print(&summary, arguments.format)?;
    terminal::remark(&format!("\n{}", order.folder.join("report.html").display()));
    ran?;
    is_done(&summary, check_only)
}

/// An error if a gateway was not checked or answered wrongly, or if there are no numbers of any.
fn is_done(summary: &Summary, check_only: bool) -> Result<()> {
    let rows = summary.scenarios.iter().flat_map(|scenario| &scenario.rows);
    let all = rows.clone().count();
    let good = rows.filter(|row| row.verdict == Verdict::Ok).count();
    let wanted = if check_only { all.max(1) } else { 1 };
    if good >= wanted {
        return Ok(());
    }
    let what = if check_only { "passed" } else { "has numbers" };
    Err(terminal::error(
        format_args!("{good} of {all} gateways and scenarios {what}"),
        "the report says why for each of the others",
    ))
}

fn chart(run: &Path, name: &str, out: &Path, readme: Option<&Path>) -> Result<()> {
    let (campaign, runs) = record::read(run)?;
    let summary = Summary::new(campaign, &runs);
    let found = summary.scenarios.iter().find(|s| s.name == name);
    let scenario = found.ok_or_else(|| {
        let names: Vec<&str> = summary.scenarios.iter().map(|s| s.name.as_str()).collect();
        terminal::error(
            format_args!("the run has no scenario `{name}`"),
            &format!("it has {}", names.join(", ")),
        )
    })?;
    let image = banner::chart(&summary, scenario);
    std::fs::write(out, image).with_context(|| format!("writing {}", out.display()))?;
    let Some(readme) = readme else {
        return Ok(());
    };
    let context = || format!("writing {}", readme.display());
    let text = std::fs::read_to_string(readme).with_context(context)?;
    let run = run.display().to_string();
    let section = banner::section(
        &summary,
        &out.display().to_string(),
        run.trim_end_matches('/'),
    );
    let text = banner::splice(&text, &section).ok_or_else(|| {
        terminal::error(
            format_args!("{} has no place for the section", readme.display()),
            &format!(
                "put the lines `{}` and `{}` where it belongs",
                banner::START,
                banner::END
            ),
        )
    })?;
    std::fs::write(readme, text).with_context(context)
}

/// The command as the user could give it again. The path of the program and those of this machine are nobody's
/// business: of a path outside the working folder the last part is kept.
fn command_line() -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let portable = |text: String| match text.split_once('=') {
        Some((name, path)) if path.starts_with('/') => format!("{name}={}", inside(path, &here)),
        None if text.starts_with('/') => inside(&text, &here),
        _ => text,
    };
    std::iter::once("ogive".to_owned())
        .chain(std::env::args().skip(1).map(portable))
        .collect()
}

fn inside(path: &str, here: &Path) -> String {
    let path = Path::new(path);
    match path.strip_prefix(here) {
        Ok(rest) => rest.display().to_string(),
        Err(_) => path
            .file_name()
            .map_or_else(String::new, |name| format!("…/{}", name.to_string_lossy())),
    }
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text)
}

fn print(summary: &Summary, format: Format) -> Result<()> {
    match format {
        Format::Json => terminal::print(&serde_json::to_string_pretty(summary)?),
        Format::Markdown => {
            let mut text = String::new();
            for scenario in &summary.scenarios {
                text.push_str(&format!(
                    "{} ({})\n{}\n",
                    scenario.info.title,
                    scenario.name,
                    markdown::table(scenario)
                ));
            }
            terminal::print(&text);
        }
    }
    Ok(())
}

fn tool(lab: &Lab, cache: &Cache, name: ToolName) -> Result<Tool> {
    let find = |name: &str| -> Result<PathBuf> {
        let installed = cache.find(lab.gateway(name)?)?;
        installed.binary.ok_or_else(|| {
            terminal::error(format_args!("{name} has no program"), "install it anew")
        })
    };
    Ok(match name {
        ToolName::Builtin => Tool::Builtin,
        ToolName::K6 => Tool::K6(find("k6")?),
        ToolName::Oha => Tool::Oha(find("oha")?),
        ToolName::Wrk => Tool::Wrk(find("wrk")?),
        ToolName::Vegeta => Tool::Vegeta(find("vegeta")?),
    })
}

/// The first Ctrl-C ends the campaign after the run under way, the second at once, as does SIGTERM; no process stays
/// behind.
fn watch_for_stop() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let watching = std::thread::Builder::new().spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return;
        };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let terminate = signal(SignalKind::terminate());
            let interrupt = signal(SignalKind::interrupt());
            let (Ok(mut terminate), Ok(mut interrupt)) = (terminate, interrupt) else {
                return;
            };
            loop {
                let code = tokio::select! {
                    _ = interrupt.recv() => 130,
                    _ = terminate.recv() => 143,
                };
                if told.swap(true, Ordering::Relaxed) || code == 143 {
                    process::kill_all();
                    std::process::exit(code);
                }
                terminal::remark("stopping after this run; press Ctrl-C again to stop at once");
            }
        });
    });
    // Without the thread, Ctrl-C does what it always does.
    drop(watching);
    stop
}
