//! Supergraph SDL to [`Supergraph`].

use ogive_base::{Diagnostic, SourceId};

use crate::Supergraph;

/// Limits on a supergraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most subgraphs; default 2,000.
    pub subgraphs_max: u32,
    /// Most diagnostics before giving up; default 100.
    pub errors_max: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            subgraphs_max: 2_000,
            errors_max: 100,
        }
    }
}

/// Reads a supergraph of join v0.1 to v0.5. Unknown specifications marked `for: EXECUTION` or `SECURITY` are refused.
/// Diagnostics point into `source_id`.
pub fn read_supergraph(
    sdl: &str,
    source_id: SourceId,
    options: &ReadOptions,
) -> Result<Supergraph, Vec<Diagnostic>> {
    let _ = (sdl, source_id, options);
    todo!()
}
