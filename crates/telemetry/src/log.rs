//! The process's log: one subscriber, set once, writing to standard error so that standard output stays data.

use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, util::SubscriberInitExt};

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
        }
    }
}

impl std::error::Error for LogError {}

/// Sets the process's subscriber. `filter` is a level or a comma-separated list of `target=level`.
pub fn init(filter: &str, format: Format) -> Result<(), LogError> {
    let targets = parse_filter(filter)?;
    let base = tracing_subscriber::registry().with(targets);
    let set = match format {
        Format::Text { colour } => base
            .with(
                fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(colour)
                    .with_target(false)
                    .compact(),
            )
            .try_init(),
        Format::Json => base
            .with(fmt::layer().with_writer(std::io::stderr).json())
            .try_init(),
    };
    set.map_err(|_| LogError::AlreadySet)
}

fn parse_filter(filter: &str) -> Result<Targets, LogError> {
    let error = || LogError::Filter(filter.to_owned());
    // A single word that is no level would be taken for a target, which nobody means.
    let words = filter.split(',').map(str::trim);
    for word in words.filter(|w| !w.contains('=')) {
        word.parse::<tracing_subscriber::filter::LevelFilter>()
            .map_err(|_| error())?;
    }
    filter.parse().map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_lists() {
        assert!(parse_filter("info").is_ok());
        assert!(parse_filter("warn,ogive_transport=debug").is_ok());
        assert!(parse_filter("loud").is_err());
        assert!(parse_filter("info,x=loud").is_err());
    }
}
