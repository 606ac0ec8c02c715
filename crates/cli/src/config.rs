//! `ogive config`: checking a configuration, and what can be configured.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Result;
use ogive_config::Config;
use ogive_files::Pipes;
use ogive_gateway::{GatewayOptions, SchemaState, stages, unusable};
use ogive_migrate::{Format, Migration, wrapped};
use ogive_workshop::inputs::TEXT_BYTES_MAX;

use crate::{
    environment, load,
    serve_arguments::{NOTHING, redacts, restricted, unusable_scripts},
    terminal,
};

/// Arguments of `ogive config`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a configuration and the files it names; says everything that is wrong, with line and column
    ///
    /// Values of the environment (`OGIVE__section__key`) win over the file here as they do for `ogive serve`.
    Validate {
        /// Configuration file
        #[arg(default_value = "ogive.yaml")]
        file: PathBuf,
    },
    /// Write the JSON schema, for editors: `# yaml-language-server: $schema=ogive.schema.json`
    Schema,
    /// Write every option with its default, as a file to start from
    Defaults,
    /// List the stages that requests pass under a configuration, in their order
    ///
    /// A stage that is off is not there when requests are served; the option that switches it on is named. Stages of
    /// subgraph requests and hooks are not in the list.
    Pipeline {
        /// Configuration file
        #[arg(default_value = "ogive.yaml")]
        file: PathBuf,
    },
    /// Bring the configuration of another gateway over, with a report on every key
    ///
    /// Reads Apollo Router's `router.yaml`, Hive Router's `router.config.yaml`, Grafbase Gateway's `grafbase.toml` and
    /// Cosmo Router's `config.yaml`. The report goes to standard error, the configuration to standard output or to a
    /// file. What protected the other gateway and cannot be brought over comes first in both, and makes the command
    /// fail. Subscriptions that would all be refused do so, too.
    #[command(after_help = "Example: ogive config migrate router.yaml --output ogive.yaml")]
    Migrate {
        /// The other gateway's configuration
        file: PathBuf,
        /// Whose it is; guessed by the name of the file
        #[arg(long, value_name = "PRODUCT", value_parser = format)]
        from: Option<Format>,
        /// Where to write ours; never replaces a file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Succeed although protections or subscriptions are lost: for when they were looked at and are had in another way
        #[arg(long)]
        accept_unsupported: bool,
        /// How to write the report
        #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
        report: String,
    },
}

fn format(word: &str) -> Result<Format, String> {
    Format::parse(word).ok_or_else(|| "one of apollo, hive, grafbase, cosmo".to_owned())
}

const SETS_NOTHING: &str = "the file sets no option, so every option has its default; check that the file is the one that \
                            was meant to be written";

/// Whether the file of a configuration sets no option: often a template failed to write it.
fn sets_nothing(file: &Path) -> bool {
    ogive_files::read_text(file, TEXT_BYTES_MAX, Pipes::Refused)
        .is_ok_and(|text| load::says_nothing(&text))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Validate { file } => {
            let config = load::config_checked(file)?;
            let url = unusable::supergraph_url(&config.supergraph).ok();
            let warning = url.and_then(|usable| usable.warning).map(str::to_owned);
            let notes = match supergraph_notes(&config)? {
                Some(notes) => notes,
                None => config.notes(),
            };
            let notes = notes.into_iter().chain(GatewayOptions::notes_of(&config));
            let notes = notes.chain(warning);
            let notes = notes.chain(sets_nothing(file).then(|| SETS_NOTHING.to_owned()));
            let absent: Vec<String> = not_there(&config).collect();
            for note in notes.chain(absent.iter().cloned()) {
                terminal::remark(&format!("warning: {note}"));
            }
            let names = environment::override_names();
            let with = if names.is_empty() {
                String::new()
            } else {
                format!(", with {} of the environment", names.join(", "))
            };
            let unchecked = if absent.is_empty() {
                ""
            } else {
                "; its supergraph was not checked"
            };
            terminal::print(&format!("{} is fine{with}{unchecked}", file.display()));
        }
        Command::Schema => terminal::print(ogive_config::schema::schema().trim_end()),
        Command::Defaults => terminal::print(ogive_config::schema::defaults().trim_end()),
        Command::Pipeline { file } => {
            let config = load::config_checked(file)?;
            terminal::print(pipeline(&config)?.trim_end());
        }
        Command::Migrate {
            file,
            from,
            output,
            accept_unsupported,
            report,
        } => {
            let migration = migrate(file, *from)?;
            write_out(&migration, output.as_deref())?;
            let read = load::migrated(output.as_deref(), &migration);
            let warnings = warnings(&read.config);
            if report == "json" {
                terminal::remark(&migration.report_json(&read.absent, &warnings));
            } else {
                terminal::remark(migration.report_text().trim_end());
                listed("NOT HERE", &read.absent);
                listed("WARNINGS", &warnings);
            }
            if let Some(error) = read.error {
                terminal::remark("\nTHE RESULT CANNOT BE LOADED AS IT IS:");
                return Err(error);
            }
            if migration.protections_lost() > 0 && !accept_unsupported {
                return Err(terminal::Found.into());
            }
        }
    }
    Ok(())
}

/// The stages under a configuration, one in a line. Which ones there are does not depend on the supergraph.
fn pipeline(config: &Config) -> Result<String> {
    let nothing = load::supergraph_text("nothing.graphql", NOTHING)?;
    let (state, _) = SchemaState::new(nothing, config);
    let mut out = String::new();
    for stage in stages::list(&state, &GatewayOptions::new(config)) {
        let (name, does) = (stage.name, stage.does);
        let state = if stage.is_on { "on" } else { "off" };
        let option = stage
            .option
            .map_or_else(String::new, |key| format!(" (`{key}`)"));
        out.push_str(&format!("{name:<18}{state:<5}{does}{option}\n"));
    }
    Ok(out)
}

/// What does not do what it seems to.
fn warnings(config: &Config) -> Vec<String> {
    let notes = config.notes().into_iter();
    notes.chain(GatewayOptions::notes_of(config)).collect()
}

/// Sentences below a heading, if there are any.
fn listed(heading: &str, sentences: &[String]) {
    for (index, sentence) in sentences.iter().enumerate() {
        if index == 0 {
            terminal::remark(&format!("\n{heading}:"));
        }
        terminal::remark(wrapped("  ", sentence).trim_end());
    }
}

/// What `ogive serve` would say of the supergraph that the configuration names, if it is here; an error if it would not serve
/// it.
fn supergraph_notes(config: &Config) -> Result<Option<Vec<String>>> {
    let supergraph = &config.supergraph;
    let path = match (&supergraph.url, &supergraph.subgraphs, &supergraph.path) {
        (None, None, Some(path)) if Path::new(path).is_file() => Path::new(path),
        _ => return Ok(None),
    };
    let remedy = "check `supergraph.path` in the configuration";
    let supergraph = load::supergraph_named(path, remedy, Pipes::Refused)?;
    ogive_gateway::authorize::check(&supergraph, config).map_err(|what| restricted(&what))?;
    redacts(&supergraph, config)?;
    let (state, notes) = SchemaState::new(supergraph, config);
    GatewayOptions::check_scripts_of(config, &state).map_err(unusable_scripts)?;
    Ok(Some(notes))
}

/// What is often put beside the configuration only where it is served.
fn not_there(config: &Config) -> impl Iterator<Item = String> {
    let supergraph = &config.supergraph;
    let files = [
        ("path", &supergraph.path),
        ("subgraphs", &supergraph.subgraphs),
    ];
    let missing = files.into_iter().filter_map(|(key, file)| {
        let file = file.as_deref().filter(|file| !Path::new(file).exists())?;
        Some(format!(
            "`supergraph.{key}`: there is no file `{file}` here"
        ))
    });
    missing.collect::<Vec<_>>().into_iter()
}

fn migrate(file: &Path, from: Option<Format>) -> Result<Migration> {
    let name = file.file_name().map(|n| n.to_string_lossy().into_owned());
    let guessed = || Format::guess(&name.unwrap_or_default());
    let Some(format) = from.or_else(guessed) else {
        return Err(terminal::error(
            format_args!(
                "`{}` does not tell whose configuration it is",
                file.display()
            ),
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("ts" | "mts" | "cts" | "js" | "mjs" | "cjs") => {
                    "it is a program, which cannot be converted: docs/migrating.md says what replaces each of its options"
                }
                _ => "name the product: `--from apollo`, `hive`, `grafbase` or `cosmo`",
            },
        ));
    };
    let text = load::read(file, "configuration", "check the path")?;
    let (sources, id) = load::source(file, &text);
    let migration = ogive_migrate::migrate(id, &text, format).map_err(|errors| {
        load::render(
            errors,
            &sources,
            "correct the file, or name its product with `--from`",
        )
    })?;
    if migration.report.iter().all(|row| row.from.is_empty()) {
        return Err(terminal::error(
            format_args!("`{}` has no keys to migrate", file.display()),
            "check that the file was written completely; without a file, start with `ogive config defaults`",
        ));
    }
    Ok(migration)
}

fn write_out(migration: &Migration, output: Option<&Path>) -> Result<()> {
    match output {
        Some(path) => {
            let mut options = std::fs::OpenOptions::new();
            let written = options
                .write(true)
                .create_new(true)
                .open(path)
                .and_then(|mut file| file.write_all(migration.yaml.as_bytes()));
            written.map_err(|error| {
                terminal::error(
                    format_args!("cannot write `{}`: {error}", path.display()),
                    "name a file that does not exist yet",
                )
            })?;
        }
        None => terminal::print(migration.yaml.trim_end()),
    }
    Ok(())
}
