//! `ogive fix`: mechanical repairs, shown as a diff or written.

use std::fs;

use anyhow::Result;
use ogive_workshop::{
    fix::{FixOptions, fix, unified},
    load::sources,
    report,
};

use crate::{
    inputs::{self, SubgraphArguments},
    terminal::{self, Found},
};

/// Arguments of `ogive fix`.
#[derive(clap::Args)]
#[command(after_help = inputs::HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subgraphs: SubgraphArguments,
    /// Change the files instead of showing a diff
    #[arg(long)]
    write: bool,
    /// Make repairs too that change what a subgraph promises: keys, definitions of types, removal of overridden fields
    #[arg(long)]
    suggested: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut loaded = arguments.subgraphs.load()?;
    loaded.sort_by(|a, b| a.name.cmp(&b.name));
    let options = FixOptions {
        suggested: arguments.suggested,
    };
    let fixed = fix(&loaded, &options);
    for repair in &fixed.repairs {
        terminal::remark(&format!(
            "{}: {} [{}]",
            repair.subgraph, repair.what, repair.code
        ));
    }
    let mut unwritten = 0;
    for (before, after) in loaded.iter().zip(&fixed.loaded) {
        if before.sdl == after.sdl {
            continue;
        }
        match (&before.file, arguments.write) {
            (Some(path), true) => fs::write(path, &*after.sdl).map_err(|error| {
                terminal::error(
                    format_args!("cannot write `{}`: {error}", path.display()),
                    "check that the file may be written to",
                )
            })?,
            (None, true) => {
                unwritten += 1;
                terminal::remark(&format!(
                    "{} is not a file, so its repairs are not written: make these changes where it comes from",
                    before.called
                ));
                terminal::print(&unified(&before.called, &before.sdl, &after.sdl));
            }
            (_, false) => terminal::print(&unified(&before.called, &before.sdl, &after.sdl)),
        }
    }
    for repair in &fixed.suggestions {
        terminal::remark(&format!(
            "{}: suggested: {} [{}]; --suggested does it",
            repair.subgraph, repair.what, repair.code
        ));
    }
    if fixed.repairs.is_empty() && fixed.errors.is_empty() {
        terminal::remark("nothing to repair");
    } else if !arguments.write && !fixed.repairs.is_empty() {
        terminal::remark("nothing is written; --write does it");
    }
    if fixed.errors.is_empty() && unwritten == 0 {
        return Ok(());
    }
    if fixed.errors.is_empty() {
        return Err(Found.into());
    }
    let colour = terminal::colour();
    terminal::remark(&report::text(
        &fixed.errors,
        &sources(&fixed.loaded),
        colour,
    ));
    terminal::remark(&format!(
        "\n{} left that no repair is known for",
        report::summary(&fixed.errors)
    ));
    Err(Found.into())
}
