//! Reading files, and saying with file, line and remedy what is wrong with them.

use std::{
    cell::RefCell,
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::Result;
use ogive_base::{Diagnostic, SourceId, Sources, Span};
use ogive_config::{Config, Expansion, Override, PREFIX, codes, place_of};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_files::Pipes;
use ogive_gateway::unusable::{self, Problem};
use ogive_migrate::Migration;
use ogive_workshop::{codes::UNREADABLE_INPUT, inputs::TEXT_BYTES_MAX};

use crate::{
    environment,
    terminal::{self, Rendered},
};

/// Diagnostics shown at once, but of configurations; one mistake often causes the rest.
const SHOWN_MAX: usize = 3;

/// Reads the text of a configuration file.
pub(crate) fn config_file(path: &Path, pipes: Pipes) -> Result<String> {
    read_from(
        path,
        pipes,
        "configuration",
        "check the path given with `--config`",
    )
}

/// Whether the text of a configuration sets nothing at all.
pub(crate) fn says_nothing(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').lines().all(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        line.starts_with('#') || matches!(line, "" | "---" | "..." | "{}" | "null" | "~")
    })
}

/// Reads the text of a configuration, and notes the files that its values come from.
pub(crate) fn config_text(called: &str, text: &str, files: &mut Vec<PathBuf>) -> Result<Config> {
    let (config, errors) = read_whole(called, text, files);
    match errors {
        None => Ok(config),
        Some(errors) => Err(errors.error()),
    }
}

/// What is wrong with a configuration.
pub(crate) struct ConfigErrors {
    sources: Sources,
    id: SourceId,
    found: Vec<Diagnostic>,
}

impl ConfigErrors {
    /// All of it, in order of places.
    fn error(mut self) -> anyhow::Error {
        let place = |d: &Diagnostic| d.labels.first().map_or(u32::MAX, |label| label.span.start);
        self.found.sort_by_key(place);
        let twice = self.found.iter_mut();
        for error in twice.filter(|d| d.code == codes::DUPLICATE_KEY && d.help.is_none()) {
            error.help = Some("keep the one that is meant, and remove the other".to_owned());
        }
        render_up_to(
            usize::MAX,
            self.found,
            &self.sources,
            "correct this place of the configuration",
        )
    }
}

/// Reads the text of a configuration as far as it can be read, under the values of the environment.
fn read_whole(
    called: &str,
    text: &str,
    files: &mut Vec<PathBuf>,
) -> (Config, Option<ConfigErrors>) {
    let (sources, id) = source(Path::new(called), text);
    let read = RefCell::new(Vec::new());
    let from = Expansion {
        env: &|name| std::env::var(name).ok(),
        file: &|path| {
            read.borrow_mut().push(PathBuf::from(path));
            secret(path)
        },
    };
    let (config, found) = ogive_config::load_whole(id, text, from, &environment::overrides());
    *files = read.into_inner();
    let errors = (!found.is_empty()).then_some(ConfigErrors { sources, id, found });
    (config, errors)
}

/// Reads a configuration file and looks at everything it names: all that would keep `ogive serve` from starting.
pub(crate) fn config_checked(path: &Path) -> Result<Config> {
    let text = read(
        path,
        "configuration",
        "name another one: `ogive config validate FILE`",
    )?;
    let (config, errors) = read_whole(&path.display().to_string(), &text, &mut Vec::new());
    let mut errors = errors.unwrap_or_else(|| {
        let (sources, id) = source(path, &text);
        ConfigErrors {
            sources,
            id,
            found: Vec::new(),
        }
    });
    let overrides = environment::overrides();
    let cedar = &config.authorization.policies.cedar;
    let cedar = cedar
        .as_ref()
        .and_then(|cedar| crate::cedar::read(cedar).err());
    let cedar = cedar.map(|message| Problem {
        at: ["authorization", "policies", "cedar"]
            .map(str::to_owned)
            .into(),
        message,
        help: None,
    });
    for problem in unusable::problems(&config).into_iter().chain(cedar) {
        let found = errors.found.len();
        errors.found.extend(unusable_value(
            problem,
            &text,
            errors.id,
            &errors.found[..found],
            &overrides,
        ));
    }
    if errors.found.is_empty() {
        Ok(config)
    } else {
        Err(errors.error())
    }
}

/// What is known of a configuration that was brought over, as far as its values are here.
pub(crate) struct Migrated {
    /// The configuration, without what cannot be read.
    pub(crate) config: Config,
    /// Values, files and folders that are not here.
    pub(crate) absent: Vec<String>,
    /// Why it cannot be loaded.
    pub(crate) error: Option<anyhow::Error>,
}

/// Reads a configuration that was brought over, and looks at everything it names.
pub(crate) fn migrated(output: Option<&Path>, migration: &Migration) -> Migrated {
    let called = output.unwrap_or(Path::new("ogive.yaml"));
    let (sources, id) = source(called, &migration.yaml);
    let from = Expansion {
        env: &|name| std::env::var(name).ok(),
        file: &secret,
    };
    let read = migration.loaded(id, from);
    let mut known = read.errors.clone();
    known.extend(read.missing.iter().cloned());
    let unusable = unusable::problems(&read.config).into_iter();
    let unusable =
        unusable.filter_map(|problem| unusable_value(problem, &migration.yaml, id, &known, &[]));
    let (absent, unusable): (Vec<_>, Vec<_>) = unusable.partition(|one| is_absent(&one.message));
    let absent = read.missing.into_iter().chain(absent);
    let mut found = read.errors;
    found.extend(unusable);
    Migrated {
        config: read.config,
        absent: absent.map(|one| one.message).collect(),
        error: (!found.is_empty())
            .then(|| render_up_to(usize::MAX, found, &sources, "correct this place by hand")),
    }
}

/// Whether a value cannot be used because a file is not there. It may be there where the gateway is served.
fn is_absent(message: &str) -> bool {
    let absent = io::Error::from_raw_os_error(2);
    debug_assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    message.contains(&absent.to_string())
}

/// One value that cannot be used, unless that follows from what is wrong with it anyway: `known`.
fn unusable_value(
    problem: Problem,
    text: &str,
    id: SourceId,
    known: &[Diagnostic],
    overrides: &[Override],
) -> Option<Diagnostic> {
    if let Some((name, value)) = overrides.iter().find(|(name, _)| sets(name, &problem.at)) {
        // It may be a secret, and stands in no file.
        let message = problem.message.replace(&format!("`{value}`"), "its value");
        let message = format!("the environment variable `{name}`: {message}");
        let error = Diagnostic::error(codes::UNUSABLE, message);
        return Some(match problem.help {
            Some(help) => error.help(help),
            None => error,
        });
    }
    let mut error = Diagnostic::error(codes::UNUSABLE, problem.message);
    if let Some(help) = problem.help {
        error = error.help(help);
    }
    // As near to the key as the file goes: it may be a default.
    let mut at = problem.at.as_slice();
    while let Some((_, above)) = at.split_last() {
        if let Some(span) = place_of(text, at) {
            let labels = known.iter().flat_map(|error| &error.labels);
            let within = |inner: Span| span.start <= inner.start && inner.end <= span.end;
            if at == problem.at && labels.into_iter().any(|label| within(label.span)) {
                return None;
            }
            return Some(error.label(id, span, ""));
        }
        at = above;
    }
    let about = problem.at.join(".");
    Some(error.note(format!("this is about `{about}`")))
}

/// Whether a variable of the environment sets a key, or something above it.
fn sets(variable: &str, key: &[String]) -> bool {
    let path = variable.strip_prefix(PREFIX).unwrap_or_default();
    let mut parts = key.iter();
    path.split("__").all(|part| {
        parts
            .next()
            .is_some_and(|key| key.eq_ignore_ascii_case(part))
    })
}

/// Largest file that a configuration may refer to.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// The text of a file that a configuration refers to.
fn secret(path: &str) -> Result<String, String> {
    let text = ogive_files::read_text(Path::new(path), SECRET_BYTES_MAX, Pipes::Refused);
    text.map_err(|error| error.to_string())
}

/// What to do about a supergraph that is named by an argument.
pub(crate) const SUPERGRAPH_ARGUMENT: &str =
    "check the path given with `--supergraph`; `ogive demo` needs no file";

/// Reads a supergraph file.
pub(crate) fn supergraph(path: &Path, pipes: Pipes) -> Result<Supergraph> {
    supergraph_named(path, SUPERGRAPH_ARGUMENT, pipes)
}

/// Reads a supergraph file; `remedy` says where it is named.
pub(crate) fn supergraph_named(path: &Path, remedy: &str, pipes: Pipes) -> Result<Supergraph> {
    let text = read_from(path, pipes, "supergraph", remedy)?;
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

/// Reads a text file, once.
pub(crate) fn read(path: &Path, what: &str, remedy: &str) -> Result<String> {
    read_from(path, Pipes::Read, what, remedy)
}

/// Reads a text file, or standard input, which is known from then on.
fn read_from(path: &Path, pipes: Pipes, what: &str, remedy: &str) -> Result<String> {
    if path.as_os_str() == "-" {
        return standard_input(what);
    }
    let remedy = match pipes {
        Pipes::Refused if is_pipe(path) => {
            "write it to a file, or name it `-` and give it on standard input"
        }
        _ => remedy,
    };
    let bytes = ogive_files::read(path, TEXT_BYTES_MAX, pipes).map_err(|error| {
        terminal::coded(
            UNREADABLE_INPUT,
            format_args!("cannot read the {what} `{}`: {error}", path.display()),
            remedy,
        )
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|b| **b == b'\n').count();
        terminal::coded(
            UNREADABLE_INPUT,
            format_args!("the {what} `{}` is not UTF-8 (line {line})", path.display()),
            "save the file as UTF-8",
        )
    })
}

fn is_pipe(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.file_type().is_fifo())
}

/// What was read of standard input, and as what: it can be read once.
static STANDARD_INPUT: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Standard input, which is one thing only, however often that is read.
pub(crate) fn standard_input(what: &str) -> Result<String> {
    let mut known = STANDARD_INPUT
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some((before, text)) = &*known {
        if before == what {
            return Ok(text.clone());
        }
        return Err(terminal::error(
            format_args!("standard input is the {before} already, and cannot be the {what} too"),
            "write one of them to a file",
        ));
    }
    let mut text = String::new();
    let mut stdin = io::stdin().lock().take(TEXT_BYTES_MAX + 1);
    let read = stdin
        .read_to_string(&mut text)
        .and_then(|bytes| match bytes as u64 {
            0..=TEXT_BYTES_MAX => Ok(()),
            _ => Err(io::Error::other("it is larger than 64 MiB")),
        });
    read.map_err(|error| {
        terminal::error(
            format_args!("standard input cannot be read: {error}"),
            "give UTF-8 text, or name a file",
        )
    })?;
    *known = Some((what.to_owned(), text.clone()));
    Ok(text)
}

/// A table with one source.
pub(crate) fn source(path: &Path, text: &str) -> (Sources, SourceId) {
    let mut sources = Sources::new();
    let id = sources.add(path.display().to_string(), text);
    (sources, id)
}

/// All that is wrong with one text. A diagnostic without a remedy of its own gets `remedy`.
pub(crate) fn render(errors: Vec<Diagnostic>, sources: &Sources, remedy: &str) -> anyhow::Error {
    render_up_to(SHOWN_MAX, errors, sources, remedy)
}

/// The same with as many as are worth showing.
pub(crate) fn render_up_to(
    shown_max: usize,
    errors: Vec<Diagnostic>,
    sources: &Sources,
    remedy: &str,
) -> anyhow::Error {
    let total = errors.len();
    let mut text = String::new();
    for mut error in errors.into_iter().take(shown_max) {
        if error.help.is_none() {
            error.help = Some(remedy.to_owned());
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&error.render(sources, terminal::colour()));
    }
    if total > shown_max {
        text.push_str(&format!("\n\n... and {} more", total - shown_max));
    }
    Rendered(text).into()
}
