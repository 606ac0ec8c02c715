//! The description of a stage, which `ogive config pipeline` prints. [`crate::stages::Pipeline`] composes the stages.

/// A stage of the pipeline.
pub(crate) trait Stage {
    /// Its name in the list of stages.
    const NAME: &'static str;
    /// What it does: verbs with their objects.
    const DOES: &'static str;
    /// The option that switches it on; `None` if it is always on.
    const OPTION: Option<&'static str> = None;
}

/// A stage as `ogive config pipeline` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageLine {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// The option that switches it on; `None` if it is always on.
    pub option: Option<&'static str>,
    /// Whether requests pass it.
    pub is_on: bool,
}

impl StageLine {
    pub(crate) fn of<S: Stage>(is_on: bool) -> StageLine {
        StageLine {
            name: S::NAME,
            does: S::DOES,
            option: S::OPTION,
            is_on,
        }
    }
}
