//! What hooks of a configuration are made of: to know whether those that have let somebody in are the same still.

use ogive_script::Program;

use super::plugins::LoadedPlugin;

/// The scripts of a configuration, and the components that it has at stages, as they were read. Who passed them counts as let in
/// for as long as they stay the same, whatever the configuration says of them. A component that only decides is none of them: it
/// is asked again about everybody whom it knew.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoadedHooks {
    pub(crate) program: Option<Program>,
    pub(crate) plugins: Vec<LoadedPlugin>,
}
