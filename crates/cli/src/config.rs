//! `ogive config`: checking a configuration, and what can be configured.

use std::path::PathBuf;

use anyhow::Result;

use crate::{load, terminal};

/// Arguments of `ogive config`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a configuration; says what is wrong with line and column
    Validate {
        /// Configuration file
        #[arg(default_value = "ogive.yaml")]
        file: PathBuf,
    },
    /// Write the JSON schema, for editors: `# yaml-language-server: $schema=ogive.schema.json`
    Schema,
    /// Write every option with its default, as a file to start from
    Defaults,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Validate { file } => {
            load::config(file)?;
            terminal::print(&format!("{} is fine", file.display()));
        }
        Command::Schema => terminal::print(ogive_config::schema::schema().trim_end()),
        Command::Defaults => terminal::print(ogive_config::schema::defaults().trim_end()),
    }
    Ok(())
}
