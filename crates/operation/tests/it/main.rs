//! Integration tests of operation validation and variable coercion: a recorded corpus, live comparison with the
//! reference implementation where node and its packages are installed, and limits.

mod corpus;
mod files;
mod generate;
mod limits;
mod oracle;
mod variables;
