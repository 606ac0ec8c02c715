//! What a configuration says of a component.

use std::{collections::BTreeSet, time::Duration};

use crate::Stage;
use http::HeaderName;

use super::outgoing::Host;

/// One component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComponentOptions {
    /// What it is called in messages.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The SHA-256 of the file in hexadecimal digits, if no other file is to be taken.
    pub sha256: Option<String>,
    /// Where it is called.
    pub stages: Vec<Stage>,
    /// What it decides.
    pub decides: Vec<Decision>,
    /// Where it is lent the body.
    pub bodies: Vec<Stage>,
    /// What it may see and change.
    pub permissions: Permissions,
    /// What a call may need.
    pub limits: Limits,
    /// When it is left alone.
    pub ejection: Ejection,
    /// Whether a request goes on if it fails.
    pub goes_on: bool,
    /// What it is told of its configuration.
    pub configuration: String,
}

impl ComponentOptions {
    /// One that may do nothing, at no stage yet.
    pub fn new(name: &str, path: &str) -> Self {
        ComponentOptions {
            name: name.to_owned(),
            path: path.to_owned(),
            sha256: None,
            stages: Vec::new(),
            decides: Vec::new(),
            bodies: Vec::new(),
            permissions: Permissions::default(),
            limits: Limits::default(),
            ejection: Ejection::default(),
            goes_on: false,
            configuration: String::new(),
        }
    }
}

/// What a component may see and change: nothing that is not named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Permissions {
    /// Headers that it may read.
    pub read_headers: BTreeSet<Name>,
    /// Headers that it may write.
    pub write_headers: BTreeSet<Name>,
    /// Entries of the context that it may read.
    pub read_context: BTreeSet<String>,
    /// Entries of the context that it may write.
    pub write_context: BTreeSet<String>,
    /// Variables of the environment that it may read.
    pub environment: BTreeSet<String>,
    /// Where its requests may go.
    pub hosts: BTreeSet<Host>,
}

impl Permissions {
    /// Whether it may read or write an entry of the context.
    pub fn knows(&self, entry: &str) -> bool {
        self.read_context.contains(entry) || self.write_context.contains(entry)
    }
}

/// The name of a header, in order of its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name(Box<str>);

impl Name {
    /// In lower case; `None` if no header is called so.
    pub fn read(text: &str) -> Option<Self> {
        let name = HeaderName::from_bytes(text.as_bytes()).ok()?;
        Some(Name(name.as_str().into()))
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What one call may need, and one component altogether.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most bytes of memory of one instance.
    pub memory: usize,
    /// Most instructions of a call.
    pub fuel: u64,
    /// Longest time of a call.
    pub time: Duration,
    /// Most instances, which is most calls at a time.
    pub instances: usize,
    /// Most requests to other hosts of a call.
    pub requests: usize,
    /// Most bytes of the body of an answer to one.
    pub response_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 64 << 20,
            fuel: 50_000_000,
            time: Duration::from_millis(100),
            instances: 64,
            requests: 8,
            response_bytes: 1 << 20,
        }
    }
}

/// When a component is left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ejection {
    /// After how many faults.
    pub faults: usize,
    /// Within how long.
    pub window: Duration,
    /// For how long.
    pub time: Duration,
}

impl Default for Ejection {
    fn default() -> Self {
        Ejection {
            faults: 5,
            window: Duration::from_secs(60),
            time: Duration::from_secs(30),
        }
    }
}

/// What a component may decide where the configuration names it, whatever else it exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Who asks.
    Authenticate,
    /// Which policies hold.
    Policies,
    /// What an operation is counted by.
    RateKey,
}

impl Decision {
    /// All of them.
    pub const ALL: [Decision; 3] = [
        Decision::Authenticate,
        Decision::Policies,
        Decision::RateKey,
    ];
    /// The interface that is called.
    pub fn hook_name(self) -> &'static str {
        match self {
            Decision::Authenticate => "authenticate",
            Decision::Policies => "decide-policies",
            Decision::RateKey => "rate-key",
        }
    }
}

/// Hooks by the names of their interfaces.
const HOOKS: [(&str, Stage); 8] = [
    ("receive", Stage::RouterRequest),
    ("operation", Stage::SupergraphRequest),
    ("plan", Stage::ExecutionRequest),
    ("subgraph-request", Stage::SubgraphRequest),
    ("subgraph-response", Stage::SubgraphResponse),
    ("executed", Stage::ExecutionResponse),
    ("answer", Stage::SupergraphResponse),
    ("respond", Stage::RouterResponse),
];

/// The interface that is called at a stage.
pub fn hook_name(stage: Stage) -> &'static str {
    let mut hooks = HOOKS.iter();
    hooks
        .find(|(_, of)| *of == stage)
        .map_or("", |(name, _)| name)
}

/// The stage at which an interface is called; `_` stands for `-`.
pub fn hook_of(name: &str) -> Option<Stage> {
    let name = name.replace('_', "-");
    let mut hooks = HOOKS.iter();
    hooks
        .find(|(known, _)| *known == name)
        .map(|(_, stage)| *stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_hook() {
        for stage in Stage::ALL {
            assert_eq!(hook_of(hook_name(stage)), Some(stage));
        }
        assert_eq!(hook_of("subgraph_request"), Some(Stage::SubgraphRequest));
        assert_eq!(hook_of("nothing"), None);
    }
}
