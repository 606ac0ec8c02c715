//! Reading files, and saying with file, line and remedy what is wrong with them.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use ogive_base::{Diagnostic, SourceId, Sources};
use ogive_config::{Config, Expansion};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};

use crate::terminal::{self, Rendered};

/// Diagnostics shown at once; one mistake often causes the rest.
const SHOWN_MAX: usize = 3;

/// Reads a configuration file.
pub(crate) fn config(path: &Path) -> Result<Config> {
    config_and_files(path, &mut Vec::new())
}

/// Reads a configuration file, and notes the files that its values come from.
pub(crate) fn config_and_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<Config> {
    let text = read(
        path,
        "configuration",
        "check the path given with `--config`",
    )?;
    config_text(&path.display().to_string(), &text, files)
}

/// Reads the text of a configuration, and notes the files that its values come from.
pub(crate) fn config_text(called: &str, text: &str, files: &mut Vec<PathBuf>) -> Result<Config> {
    let (sources, id) = source(Path::new(called), text);
    let read = RefCell::new(Vec::new());
    let from = Expansion {
        env: &|name| std::env::var(name).ok(),
        file: &|path| {
            read.borrow_mut().push(PathBuf::from(path));
            secret(path)
        },
    };
    let loaded = ogive_config::load_with(id, text, from);
    *files = read.into_inner();
    loaded.map_err(|errors| {
        render(
            errors,
            &sources,
            "correct the configuration and start again; `ogive serve` runs without one, too",
        )
    })
}

/// Largest file that a configuration may refer to.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// The text of a file that a configuration refers to.
fn secret(path: &str) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > SECRET_BYTES_MAX {
        return Err("it is larger than 1 MiB".to_owned());
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Reads a supergraph file.
pub(crate) fn supergraph(path: &Path) -> Result<Supergraph> {
    let text = read(
        path,
        "supergraph",
        "check the path given with `--supergraph`; `ogive demo` needs no file",
    )?;
    supergraph_text(&path.display().to_string(), &text)
}

/// Reads the text of a supergraph.
pub(crate) fn supergraph_text(called: &str, text: &str) -> Result<Supergraph> {
    let (sources, id) = source(Path::new(called), text);
    read_supergraph(text, id, &ReadOptions::default()).map_err(|errors| {
        render(
            errors,
            &sources,
            "a supergraph is written by a composition tool; compose it again from its subgraphs",
        )
    })
}

/// Reads a text file.
pub(crate) fn read(path: &Path, what: &str, remedy: &str) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| {
        terminal::error(
            format_args!("cannot read the {what} `{}`: {error}", path.display()),
            remedy,
        )
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|b| **b == b'\n').count();
        terminal::error(
            format_args!("the {what} `{}` is not UTF-8 (line {line})", path.display()),
            "save the file as UTF-8",
        )
    })
}

/// A table with one source.
pub(crate) fn source(path: &Path, text: &str) -> (Sources, SourceId) {
    let mut sources = Sources::new();
    let id = sources.add(path.display().to_string(), text);
    (sources, id)
}

/// All that is wrong with one text. A diagnostic without a remedy of its own gets `remedy`.
pub(crate) fn render(errors: Vec<Diagnostic>, sources: &Sources, remedy: &str) -> anyhow::Error {
    let total = errors.len();
    let mut text = String::new();
    for mut error in errors.into_iter().take(SHOWN_MAX) {
        if error.help.is_none() {
            error.help = Some(remedy.to_owned());
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&error.render(sources, terminal::colour()));
    }
    if total > SHOWN_MAX {
        text.push_str(&format!("\n\n... and {} more", total - SHOWN_MAX));
    }
    Rendered(text).into()
}
