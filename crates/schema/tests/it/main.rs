//! Integration tests: files of cases (`cases`), the reference implementation as oracle (`oracle`), printing.

mod cases;
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
