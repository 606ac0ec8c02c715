//! Integration tests of operation validation and variable coercion: a recorded corpus, live comparison with the
//! reference implementation where node and its packages are installed, and limits.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot set up its case should stop there, and says what it compared"
)]

mod corpus;
mod defer;
mod files;
mod generate;
mod limits;
mod oracle;
mod variables;
