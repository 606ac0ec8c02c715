//! What is noted of one call of a hook: of a coprocessor, of a script, or of a service that decides policies.

use std::time::Duration;

/// Who is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hook {
    /// A coprocessor.
    Coprocessor,
    /// A script.
    Script,
    /// A component, with its word.
    Component(&'static str),
    /// The service that decides policies.
    Policies,
}

impl Hook {
    /// The word in metrics, spans and traces.
    pub fn word(self) -> &'static str {
        match self {
            Hook::Coprocessor => "coprocessor",
            Hook::Script => "script",
            Hook::Component(word) => word,
            Hook::Policies => "policies",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HookOutcome {
    /// The request goes on.
    Continue,
    /// It ends, because the hook says so.
    Break,
    /// The hook failed, whatever becomes of the request.
    Failed,
}

impl HookOutcome {
    /// The word in metrics, spans and traces.
    pub fn word(self) -> &'static str {
        match self {
            HookOutcome::Continue => "continue",
            HookOutcome::Break => "break",
            HookOutcome::Failed => "failed",
        }
    }
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HookCall {
    /// Who was called.
    pub hook: Hook,
    /// At which stage.
    pub stage: &'static str,
    /// How it ended.
    pub outcome: HookOutcome,
    /// When it began, from the start of the record; nothing if there is none.
    pub started: Duration,
    /// How long it took, waiting included.
    pub took: Duration,
}
