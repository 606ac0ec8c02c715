//! `ogive rhai`: looking at scripts before they are served.

use std::path::PathBuf;

use anyhow::{Result, bail};
use ogive_hooks::scripts::{Limits, Program, check};

use crate::terminal;

/// Arguments of `ogive rhai`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Read the scripts of a folder, run their entry points, and name every call and member that is not offered here
    ///
    /// Members are looked at where it is known what they are of: at the parameter of a hook, and of functions that are given it.
    #[command(after_help = "Example: ogive rhai check rhai")]
    Check {
        /// The folder of the scripts (`rhai.scripts`)
        folder: PathBuf,
        /// The script that has the entry points (`rhai.main`)
        #[arg(long, value_name = "FILE", default_value = "main.rhai")]
        main: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Command::Check { folder, main } = &arguments.command;
    let program = Program::read(&folder.to_string_lossy(), main, Limits::default())?;
    for warning in program.warnings() {
        terminal::remark(&format!("warning: {warning}"));
    }
    let unknown = check(&program)?;
    for call in &unknown {
        terminal::print(&call.to_string());
    }
    if !unknown.is_empty() {
        bail!("{} of the calls and members are not offered", unknown.len());
    }
    terminal::print("every call is offered");
    Ok(())
}
