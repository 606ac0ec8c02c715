//! The process's log: one subscriber, set once, writing to standard error so that standard output stays data.
//!
//! Lines go through [`Lines`]: a reader of standard error that stops reading costs lines, never an answer. Whoever ends
//! the process calls [`finish`].

use std::{fmt::Debug, fs::File, io, os::fd::AsFd, sync::OnceLock, time::Duration};

use tracing::{Level, Subscriber, field::Field};
use tracing_subscriber::{
    field::MakeExt,
    filter::{LevelFilter, Targets},
    fmt,
    fmt::FormatFields,
    fmt::format::{Compact, Writer, debug_fn},
    layer::SubscriberExt,
    registry::LookupSpan,
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
            .with(text_layer(colour).with_writer(|| Line))
            .try_init(),
        Format::Json => base
            .with(fmt::layer().with_writer(|| Line).json())
            .try_init(),
    };
    set.map_err(|_| LogError::AlreadySet)
}

/// Lines of text.
fn text_layer<S>(
    colour: bool,
) -> fmt::Layer<
    S,
    impl for<'w> FormatFields<'w> + Send + Sync + 'static,
    fmt::format::Format<Compact>,
>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fmt::layer()
        .with_ansi(colour)
        .with_target(false)
        .compact()
        .fmt_fields(debug_fn(write_field).delimited(" "))
}

/// Writes one field. What has white space in it is quoted, so that everybody sees where it ends.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    if field.name() == "message" {
        // What a terminal would obey is shown; a message may have several lines.
        let text = format!("{value:?}");
        for c in text.chars() {
            match c {
                '\n' | '\t' => out.write_char(c)?,
                c if c.is_control() => write!(out, "{}", c.escape_default())?,
                c => out.write_char(c)?,
            }
        }
        return Ok(());
    }
    let (name, text) = (field.name(), format!("{value:?}"));
    if out.has_ansi_escapes() {
        write!(out, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?;
    } else {
        write!(out, "{name}=")?;
    }
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"';
    if is_quoted(&text) || !text.is_empty() && text.chars().all(is_plain) {
        out.write_str(&text)
    } else {
        write!(out, "{text:?}")
    }
}

/// Whether a text is one string in quotes, of which nothing stands outside.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return false;
    };
    let mut is_escaped = false;
    for c in inner.chars() {
        if c.is_control() || c == '"' && !is_escaped {
            return false;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    !is_escaped
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
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everybody_sees_where_a_field_ends() {
        let kept = Kept::default();
        let out = kept.clone();
        let layer = text_layer(false)
            .with_writer(move || out.clone())
            .without_time();
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let why = std::fmt::from_fn(|f| f.write_str("no file \"a b\""));
            tracing::error!(cause = %why, id = 7, name = "x", word = %"plain", "it failed");
            let forged = "\"x\" is bad\nERROR forged";
            tracing::error!(cause = %forged, name = "a\"b", "\u{1b}[31mred");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text.trim(),
            "ERROR it failed cause=\"no file \\\"a b\\\"\" id=7 name=\"x\" word=plain\n\
             ERROR \\u{1b}[31mred cause=\"\\\"x\\\" is bad\\nERROR forged\" name=\"a\\\"b\""
        );
    }

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
