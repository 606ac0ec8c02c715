//! What hooks of a configuration are made of: to know whether those that have let somebody in are the same still.

use ogive_script::Program;

use super::plugins::LoadedPlugin;

/// The scripts and components of a configuration, as they were read. What they have decided counts for as long as they stay the
/// same, whatever the configuration says of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoadedHooks {
    pub(crate) program: Option<Program>,
    pub(crate) plugins: Vec<LoadedPlugin>,
}
