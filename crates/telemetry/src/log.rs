//! The process's log: one subscriber, set once, writing to standard error so that standard output stays data.
//!
//! Lines go through [`Lines`]: a reader of standard error that stops reading costs lines, never an answer. Whoever ends
//! the process calls [`finish`].

use std::{fs::File, io, os::fd::AsFd, sync::OnceLock, time::Duration};

use tracing::Level;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::lines::{LineCounts, Lines, Target, Trouble};

/// How long the last lines may take to be written when the process ends.
pub const FINISH_MAX: Duration = Duration::from_secs(1);

/// What lines of the process go through.
static LINES: OnceLock<Lines> = OnceLock::new();

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people; coloured if asked for.
    Text {
        /// Whether to use ANSI colours.
        colour: bool,
    },
    /// One JSON object per line.
    Json,
}

/// Why logging could not be set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogError {
    /// The filter is not understood.
    Filter(String),
    /// The process has a subscriber already.
    AlreadySet,
    /// The thread that writes cannot be started.
    Thread(String),
}

impl std::fmt::Display for LogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogError::Filter(filter) => write!(
                f,
                "`{filter}` is no log filter: write a level (error, warn, info, debug, trace) or a list such as \
                 `info,ogive_transport=debug`"
            ),
            LogError::AlreadySet => f.write_str("logging is set up already"),
            LogError::Thread(error) => write!(f, "the log cannot be written: {error}"),
        }
    }
}

impl std::error::Error for LogError {}

/// Sets the process's subscriber. `filter` is a level or a comma-separated list of `target=level`.
pub fn init(filter: &str, format: Format) -> Result<(), LogError> {
    let targets = parse_filter(filter)?;
    let lines = start().map_err(|error| LogError::Thread(error.to_string()))?;
    LINES.set(lines).map_err(|_| LogError::AlreadySet)?;
    let base = tracing_subscriber::registry().with(targets);
    let set = match format {
        Format::Text { colour } => base
            .with(
                fmt::layer()
                    .with_writer(|| Line)
                    .with_ansi(colour)
                    .with_target(false)
                    .compact(),
            )
            .try_init(),
        Format::Json => base
            .with(fmt::layer().with_writer(|| Line).json())
            .try_init(),
    };
    set.map_err(|_| LogError::AlreadySet)
}

/// A line on its way to the queue: the subscriber writes each of them at once.
struct Line;

impl io::Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(lines) = LINES.get() {
            lines.push(line);
        }
        Ok(line.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start() -> io::Result<Lines> {
    // Not `io::stderr()`, whose lock others take.
    let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    Lines::start("ogive-log", Target::Stream(out), |trouble| match trouble {
        Trouble::Dropped(lines) => tracing::warn!(
            lines,
            "lines of the log were dropped: standard error was not read in time"
        ),
        Trouble::Mended(lines) => tracing::warn!(
            lines,
            "the log is written again; lines are missing because standard error could not be written"
        ),
        // There is no other place to tell it.
        Trouble::Failed(_) => {}
    })
}

/// Writes text as it is, as a line. Says whether there is a log.
pub fn remark(text: &str) -> bool {
    let Some(lines) = LINES.get() else {
        return false;
    };
    lines.push(format!("{text}\n").as_bytes());
    true
}

/// Waits until the lines so far are written, at most [`FINISH_MAX`].
pub fn finish() {
    if let Some(lines) = LINES.get() {
        lines.finish(FINISH_MAX);
    }
}

/// What became of lines so far.
pub fn counts() -> LineCounts {
    LINES.get().map(Lines::counts).unwrap_or_default()
}

/// Whether a filter is understood.
pub fn check(filter: &str) -> Result<(), LogError> {
    parse_filter(filter).map(|_| ())
}

/// Libraries that talk of their connections.
const LIBRARIES: [&str; 3] = ["async_nats", "rskafka", "redis"];

fn parse_filter(filter: &str) -> Result<Targets, LogError> {
    let error = || LogError::Filter(filter.to_owned());
    // A single word that is no level would be taken for a target, which nobody means.
    let words = filter.split(',').map(str::trim);
    for word in words.filter(|w| !w.contains('=')) {
        word.parse::<LevelFilter>().map_err(|_| error())?;
    }
    let targets: Targets = filter.parse().map_err(|_| error())?;
    // What libraries tell of their connections at the usual level says nothing that we do not say.
    let unnamed = LIBRARIES
        .into_iter()
        .filter(|library| !filter.contains(library));
    let is_usual = targets.would_enable("ogive", &Level::INFO)
        && !targets.would_enable("ogive", &Level::DEBUG);
    if !is_usual {
        return Ok(targets);
    }
    let quiet = |targets: Targets, library| targets.with_target(library, LevelFilter::WARN);
    Ok(unnamed.fold(targets, quiet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_lists() {
        assert!(parse_filter("info").is_ok());
        assert!(parse_filter("warn,ogive_transport=debug").is_ok());
        assert!(parse_filter("loud").is_err());
        let tells = |filter: &str| {
            let targets = parse_filter(filter).unwrap();
            targets.would_enable("async_nats::connection", &Level::INFO)
        };
        assert!(!tells("info"));
        assert!(tells("info,async_nats=info") && tells("debug"));
        assert!(parse_filter("info,x=loud").is_err());
    }
}
