//! Integration tests: files of cases (`cases`), the reference implementation as oracle (`oracle`), options, limits
//! and costs (`options`).

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test may panic anywhere and says when it is skipped"
)]

mod cases;
mod options;
mod oracle;

use ogive_schema::{BuildOptions, Built, build};
use ogive_syntax::{Limits, SourceId, parse};

/// Parses and builds one document; what the parser found comes first among the errors.
fn built(sdl: &str, options: &BuildOptions) -> Built {
    let parsed = parse(sdl, SourceId(0), &Limits::default());
    let mut built = build(&[&parsed.document], options);
    built.errors.splice(0..0, parsed.errors);
    built
}
