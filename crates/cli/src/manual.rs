//! `ogive version`, `ogive completions` and `ogive man`: what the program says about itself.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap_complete::Shell;

use crate::terminal;

/// The commit it was built from; empty if nobody knew.
const COMMIT: &str = env!("OGIVE_BUILT_FROM");

/// Version and commit.
pub(crate) fn version() -> &'static str {
    match COMMIT {
        "" => env!("CARGO_PKG_VERSION"),
        _ => concat!(
            env!("CARGO_PKG_VERSION"),
            " (",
            env!("OGIVE_BUILT_FROM"),
            ")"
        ),
    }
}

/// The commit, if it is known.
pub(crate) fn commit() -> Option<&'static str> {
    (!COMMIT.is_empty()).then_some(COMMIT)
}

/// Arguments of `ogive completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ogive completions bash > ~/.local/share/bash-completion/completions/ogive\n  \
                  ogive completions zsh > \"${fpath[1]}/_ogive\"\n  \
                  ogive completions fish > ~/.config/fish/completions/ogive.fish"
)]
pub(crate) struct CompletionArguments {
    /// For which shell
    shell: Shell,
}

/// Arguments of `ogive man`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ogive man | man -l -\n  ogive man serve | man -l -\n  ogive man --output /usr/local/share/man/man1"
)]
pub(crate) struct ManArguments {
    /// The page of a command, such as `serve` or `config migrate`; without one that of the whole
    command: Vec<String>,
    /// Write the pages of all commands into a folder
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "command")]
    output: Option<PathBuf>,
}

pub(crate) fn print_version() {
    terminal::print(&format!("ogive {}", version()));
    let engines = [
        ("cedar", cfg!(feature = "cedar")),
        ("components", cfg!(feature = "components")),
    ];
    let [cedar, components] = engines.map(|(name, is_there)| {
        let not = if is_there { "" } else { "no " };
        format!("{not}{name}")
    });
    terminal::print(&format!("features: {cedar}, {components}"));
}

pub(crate) fn completions(arguments: &CompletionArguments, mut command: clap::Command) {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "ogive", &mut text);
    terminal::print(&String::from_utf8_lossy(&text));
}

pub(crate) fn man(arguments: &ManArguments, mut command: clap::Command) -> Result<()> {
    if let Some(folder) = &arguments.output {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        return clap_mangen::generate_to(command, folder)
            .with_context(|| format!("writing manual pages to {}", folder.display()));
    }
    command.build();
    let mut chosen = &command;
    for name in &arguments.command {
        let known = chosen.get_subcommands().filter(|c| !c.is_hide_set());
        let names: Vec<&str> = known.map(clap::Command::get_name).collect();
        chosen = chosen.find_subcommand(name).ok_or_else(|| {
            terminal::error(
                format_args!("there is no command `{name}`"),
                &format!("name one of {}", names.join(", ")),
            )
        })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(chosen.clone()).render(&mut text)?;
    terminal::print(&String::from_utf8_lossy(&text));
    Ok(())
}
