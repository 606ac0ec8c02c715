//! Gateways: how each is had, started, asked whether it is ready, and switched.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Result, units::Time};

/// A folder of `bench/gateways` or `bench/tools`.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its name: the folder's.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What it says about itself.
    pub spec: Spec,
}

/// `gateway.toml`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its name for people.
    pub title: String,
    /// What it is written in.
    pub language: String,
    /// Under which licence.
    pub licence: String,
    /// What it can take part in.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Whether it understands the supergraph, or subgraph SDL of Federation 1 only.
    #[serde(default)]
    pub federation_1: bool,
    /// How it is had.
    pub install: Install,
    /// How it is started; tools are not started by themselves.
    #[serde(default)]
    pub start: Start,
    /// How to tell that it is ready.
    #[serde(default)]
    pub health: Health,
    /// How to ask for its version.
    #[serde(default)]
    pub version: Version,
    /// How it takes up a new supergraph.
    #[serde(default)]
    pub reload: Reload,
    /// How clients ask; GraphQL over POST unless said otherwise.
    #[serde(default)]
    pub request: RequestForm,
    /// How it serves subscriptions.
    #[serde(default)]
    pub subscriptions: Subscriptions,
    /// Ways to run it. A mode that is missing does not exist for this gateway.
    #[serde(default)]
    pub modes: BTreeMap<Mode, ModeSpec>,
    /// Placeholders of its files, with values for the default mode.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// What it is roughly like, for estimates of time only.
    #[serde(default)]
    pub estimate: Estimate,
    /// What readers should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a gateway is roughly like on one CPU. Nothing measured depends on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Start to ready.
    #[serde(default = "Estimate::start")]
    pub start: Time,
    /// Answers to the query of `shop` it gives in a second.
    #[serde(default = "Estimate::requests_per_second")]
    pub requests_per_second: f64,
}

impl Estimate {
    fn start() -> Time {
        Time(std::time::Duration::from_millis(200))
    }
    fn requests_per_second() -> f64 {
        500.0
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Estimate {
            start: Estimate::start(),
            requests_per_second: Estimate::requests_per_second(),
        }
    }
}

/// What a participant can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Serves a federated graph.
    Federation,
    /// Serves one schema with its own data.
    Server,
    /// Chains REST calls.
    Rest,
    /// Passes requests on without looking at them.
    Proxy,
    /// Serves subscriptions over a federated graph.
    Subscriptions,
    /// Answers `@defer` in parts.
    Defer,
}

/// How events come: to clients, or from a subgraph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventProtocol {
    /// WebSocket with the sub-protocol `graphql-transport-ws`.
    #[default]
    Websocket,
    /// Server-sent events, a connection for each subscription.
    Sse,
}

impl EventProtocol {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            EventProtocol::Websocket => "WebSocket",
            EventProtocol::Sse => "SSE",
        }
    }
}

/// How a gateway serves subscriptions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscriptions {
    /// How clients may get events.
    #[serde(default)]
    pub clients: Vec<EventProtocol>,
    /// How it gets events from subgraphs, and what is to be set for it. In scenarios without subscriptions none of this
    /// is set.
    #[serde(default)]
    pub sources: BTreeMap<EventProtocol, ModeSpec>,
    /// Path of WebSockets, if it is another one than that of requests.
    pub websocket_path: Option<String>,
}

/// How something is had.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Install {
    /// This program itself.
    Ogive {},
    /// Packages of the npm registry.
    Npm {
        /// `name@version`
        packages: Vec<String>,
        /// Versions forced on dependencies.
        #[serde(default)]
        overrides: BTreeMap<String, String>,
    },
    /// A package of the Rust registry.
    Cargo {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The program it builds.
        binary: String,
        /// Its features.
        #[serde(default)]
        features: Vec<String>,
        /// Environment of the build.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// What must be there before, for people.
        #[serde(default)]
        needs: Vec<String>,
    },
    /// A Go module.
    Go {
        /// `module/path@version`
        module: String,
        /// The program it builds.
        binary: String,
    },
    /// A Debian package.
    Apt {
        /// The package.
        package: String,
        /// Its program.
        binary: String,
    },
    /// In no registry: the user names a program.
    Binary {
        /// Where people get it.
        hint: String,
    },
}

/// How a gateway is started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Commands before, each run to its end.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// The command.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files that are filled in and put into the working folder; paths are relative to the gateway's folder, and no two
    /// may have the same last part.
    #[serde(default)]
    pub files: Vec<String>,
}

/// How to tell that a gateway is ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// A path that answers 2xx; without one, `{__typename}` is asked.
    pub path: Option<String>,
    /// How long it may take.
    #[serde(default = "Health::patience")]
    pub timeout: Time,
}

impl Health {
    fn patience() -> Time {
        Time::seconds(60)
    }
}

impl Default for Health {
    fn default() -> Self {
        Health {
            path: None,
            timeout: Health::patience(),
        }
    }
}

/// How to ask for a version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// A command that prints it.
    #[serde(default)]
    pub command: Vec<String>,
    /// npm packages to read it from.
    #[serde(default)]
    pub npm: Vec<String>,
}

/// How a gateway takes up a new supergraph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reload {
    /// Only by a new start.
    #[default]
    None,
    /// It watches the file.
    Watch,
    /// On SIGHUP.
    Hangup,
}

/// How clients ask.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestForm {
    /// Path to POST to; `/graphql`.
    pub path: Option<String>,
    /// Path to GET instead, for servers that speak no GraphQL.
    pub get: Option<String>,
}

/// Ways to run a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As its makers ship it, plus forwarding of `authorization`.
    #[default]
    Default,
    /// Every operation is planned anew.
    NoPlanCache,
    /// Equal subgraph requests in flight are shared.
    Dedup,
    /// They are not.
    NoDedup,
    /// `@defer` is answered in parts, where that has to be asked for.
    Defer,
}

impl Mode {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::NoPlanCache => "no-plan-cache",
            Mode::Dedup => "dedup",
            Mode::NoDedup => "no-dedup",
            Mode::Defer => "defer",
        }
    }
}

/// What a mode changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeSpec {
    /// Placeholders.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Further arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What is known about this switch.
    pub note: Option<String>,
}

impl Gateway {
    pub(crate) fn read(folder: &Path) -> Result<Gateway> {
        Ok(Gateway {
            name: super::file_name(folder),
            folder: folder.to_path_buf(),
            spec: super::read_toml(&folder.join("gateway.toml"))?,
        })
    }

    /// What a mode changes, or what is to be said because there is no such mode.
    pub fn mode(&self, mode: Mode) -> (ModeSpec, Option<String>) {
        match (self.spec.modes.get(&mode), mode) {
            (Some(spec), _) => (spec.clone(), spec.note.clone()),
            (None, Mode::Default | Mode::Defer) => (ModeSpec::default(), None),
            (None, Mode::Dedup | Mode::NoDedup) => {
                let note = "no switch for sharing requests in flight: default behaviour".to_owned();
                (ModeSpec::default(), Some(note))
            }
            (None, Mode::NoPlanCache) => {
                let note =
                    "no switch for its plan cache: only the fresh alias of each request defeats it";
                (ModeSpec::default(), Some(note.to_owned()))
            }
        }
    }

    /// Whether it can take part where this role is asked for.
    pub fn can(&self, role: Role) -> bool {
        self.spec.roles.contains(&role)
    }
}
