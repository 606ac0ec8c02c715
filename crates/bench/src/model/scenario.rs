//! Scenarios: one goal, one graph, one operation, one shape of load.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use super::{EventProtocol, Graph, Mode, Role};
use crate::{
    Error, Result,
    units::{Size, Time},
};

/// Longest warm-up of `--quick`, shortest of `--scale`.
const SHORT_WARMUP: Time = Time::seconds(1);
/// Longest request of `--quick`.
const QUICK_TIMEOUT: Time = Time::seconds(10);
/// Shortest step of rising rates when loads are capped: the load is over too soon to see a queue grow otherwise.
const SHORT_STEP: Time = Time::seconds(2);
/// Part of a capped load that its warm-up may take.
const WARMUP_PART: f64 = 0.25;
/// How long answers are waited for after the end of a load, at most.
const DRAIN_MAX: Time = Time::seconds(10);

/// A file of `bench/scenarios`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name: the file's.
    #[serde(skip)]
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The one question it answers.
    pub goal: String,
    /// The number that answers it.
    pub key: Goal,
    /// Rows of `docs/bench.md` it stands for, such as `000-5`.
    #[serde(default)]
    pub seeds: Vec<String>,
    /// What its numbers do not say.
    #[serde(default)]
    pub caveats: Vec<String>,
    /// Folder of `bench/graphs`.
    pub graph: String,
    /// File of the graph's operations.
    pub operation: String,
    /// Variables; `{0..999}` in a text is a number drawn for each request.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Who takes part.
    #[serde(default = "Scenario::federation")]
    pub roles: Vec<Role>,
    /// How gateways are set.
    #[serde(default)]
    pub mode: Mode,
    /// Whether every request is a new document.
    #[serde(default)]
    pub fresh: Fresh,
    /// The `authorization` header.
    #[serde(default)]
    pub authorization: Authorization,
    /// How subgraphs behave.
    #[serde(default)]
    pub subgraphs: Subgraphs,
    /// Who waits for events, where events are the load.
    pub subscribers: Option<Subscribers>,
    /// What the gateway gets.
    #[serde(default)]
    pub limits: Limits,
    /// The load.
    pub load: Load,
    /// What answers must be.
    #[serde(default)]
    pub expect: Expect,
    /// What happens meanwhile.
    #[serde(default)]
    pub events: Vec<Event>,
    /// What `--quick` changes; without it, `--quick` leaves the scenario out.
    pub quick: Option<Quick>,
}

/// The number a scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Median latency.
    P50,
    /// 99th percentile.
    P99,
    /// Answers per second.
    Throughput,
    /// Answers per CPU-second.
    Efficiency,
    /// Largest proportional set size.
    Memory,
    /// Subgraph requests per request.
    SubgraphRequests,
    /// Start to first answer.
    Start,
    /// The highest of several rates that was kept up with.
    Rate,
    /// Share of events that did not come.
    Lost,
    /// Memory by subscription.
    Subscription,
}

/// Whether requests repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fresh {
    /// Always the same document.
    #[default]
    No,
    /// A new alias in every request.
    Alias,
}

/// The `authorization` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authorization {
    /// Another one in every request.
    #[default]
    Unique,
    /// Always the same.
    Constant,
    /// None.
    None,
}

/// How subgraphs behave.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subgraphs {
    /// How long each holds its answers: `10ms` or `20..150ms`.
    pub delay: Option<String>,
    /// By subgraph.
    #[serde(default)]
    pub delays: BTreeMap<String, String>,
    /// Faults by subgraph, in the words of the mock server.
    #[serde(default)]
    pub faults: BTreeMap<String, Vec<String>>,
    /// Threads of the mock server; 1.
    pub workers: Option<usize>,
}

/// Who waits for events. Each has a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscribers {
    /// How many.
    pub count: usize,
    /// Whether each asks for something else (the variable `of` is its number).
    #[serde(default)]
    pub distinct: bool,
    /// How they get events.
    #[serde(default)]
    pub client: EventProtocol,
    /// How the gateway gets them.
    #[serde(default)]
    pub source: EventProtocol,
}

impl Subscribers {
    /// In words.
    pub fn describe(&self) -> String {
        format!(
            "{} {} subscribers over {}, events from the subgraph over {}",
            self.count,
            if self.distinct { "distinct" } else { "equal" },
            self.client.name(),
            self.source.name()
        )
    }
}

/// What the gateway gets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPUs; all but those of load and subgraphs unless said otherwise.
    pub cores: Option<usize>,
    /// Memory.
    pub memory: Option<Size>,
}

/// The load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Its shape.
    pub shape: Shape,
    /// Load that is not counted, before.
    #[serde(default = "Load::warmup")]
    pub warmup: Time,
    /// How long a request may take.
    #[serde(default = "Load::timeout")]
    pub timeout: Time,
    /// Whether connections are used again.
    #[serde(default = "yes")]
    pub keep_alive: bool,
    /// Most connections of an open-loop load.
    #[serde(default = "Load::connections_max")]
    pub connections_max: usize,
    /// How long answers are waited for after the end at least, however short the load: longer than an answer takes.
    #[serde(default)]
    pub settle: Time,
    /// The shortest load that can answer the scenario's question; no cap goes below.
    #[serde(default)]
    pub least: Time,
}

/// The shape of a load.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// So many clients, each asks again as soon as it has its answer (closed loop).
    Clients {
        /// How many.
        clients: usize,
        /// How long.
        duration: Time,
        /// What each waits between answer and next request.
        #[serde(default)]
        pause: Time,
    },
    /// So many requests per second, whatever the answers do (open loop).
    Rate {
        /// Requests per second.
        rate: f64,
        /// How long.
        duration: Time,
    },
    /// Clients come and go.
    Ramp {
        /// Clients at the start.
        start: usize,
        /// One stage after the other.
        stages: Vec<Stage>,
        /// What each waits between answer and next request.
        #[serde(default)]
        pause: Time,
    },
    /// One open-loop rate after the other, each with numbers of its own.
    Rates {
        /// Requests per second.
        rates: Vec<f64>,
        /// How long each.
        each: Time,
    },
    /// The gateway is started so many times, and asked once.
    Starts {
        /// How many times.
        count: usize,
    },
    /// So many events per second for every subscriber.
    Events {
        /// Events per second.
        rate: f64,
        /// How long.
        duration: Time,
    },
    /// So many events as fast as the gateway takes them.
    Burst {
        /// How many.
        events: u64,
        /// How long all of them may take.
        within: Time,
    },
    /// Subscribers who get an event at the beginning and none after it.
    Idle {
        /// How long.
        duration: Time,
    },
    /// Clients who ask for answers in parts, each again as soon as it has the last part (closed loop).
    Parts {
        /// How many.
        clients: usize,
        /// How long.
        duration: Time,
    },
}

/// A stage of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Clients at its end.
    pub to: usize,
    /// How long.
    pub over: Time,
}

/// What answers must be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Answers must have errors, and `data` as of a server whose fields fail like this.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// What happens while the load runs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, as a part of the load's duration.
    pub at: f64,
    /// What.
    pub action: EventAction,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventAction {
    /// A new supergraph is put in place.
    Reload,
}

/// What `--quick` changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Seconds of the whole load.
    pub duration: Option<Time>,
    /// Clients.
    pub clients: Option<usize>,
    /// Requests per second.
    pub rate: Option<f64>,
    /// Requests per second, one after the other.
    pub rates: Option<Vec<f64>>,
    /// Starts.
    pub count: Option<usize>,
    /// Events of a burst.
    pub events: Option<u64>,
}

fn yes() -> bool {
    true
}

impl Load {
    fn warmup() -> Time {
        Time::seconds(5)
    }
    fn timeout() -> Time {
        Time::seconds(60)
    }
    fn connections_max() -> usize {
        200
    }

    /// How long all of it takes, warm-up included.
    pub fn total(&self) -> Duration {
        self.warmup.0 + self.shape.duration()
    }

    /// How long answers are waited for after the end of one load (of rising rates: of each): as long as it took, of an
    /// open loop half of that (whoever is behind then is overloaded), at least a second and at most ten.
    pub fn drain(&self) -> Duration {
        let one = match &self.shape {
            Shape::Rates { each, .. } => each.0 / 2,
            Shape::Rate { duration, .. } => duration.0 / 2,
            shape => shape.duration(),
        };
        one.max(self.settle.0)
            .clamp(SHORT_WARMUP.0, DRAIN_MAX.0)
            .min(self.timeout.0)
    }
}

impl Shape {
    /// How long it takes.
    pub fn duration(&self) -> Duration {
        match self {
            Shape::Clients { duration, .. }
            | Shape::Rate { duration, .. }
            | Shape::Events { duration, .. }
            | Shape::Idle { duration }
            | Shape::Parts { duration, .. } => duration.0,
            Shape::Burst { within, .. } => within.0,
            Shape::Ramp { stages, .. } => stages.iter().map(|stage| stage.over.0).sum(),
            Shape::Rates { rates, each } => each.0 * rates.len() as u32,
            Shape::Starts { count } => Duration::from_secs(2) * *count as u32,
        }
    }
    /// How long is measured, for people.
    fn measured(&self) -> String {
        match self {
            Shape::Rates { rates, each } => format!("{} rates of {each}", rates.len()),
            Shape::Starts { count } => format!("{count} starts"),
            shape => Time(shape.duration()).to_string(),
        }
    }
    /// One line for people.
    pub fn describe(&self) -> String {
        match self {
            Shape::Clients {
                clients,
                duration,
                pause,
            } if pause.0.is_zero() => {
                let s = if *clients == 1 { "" } else { "s" };
                format!("{clients} client{s} for {duration}, closed loop")
            }
            Shape::Clients {
                clients,
                duration,
                pause,
            } => {
                format!("{clients} clients for {duration}, {pause} between answer and next request")
            }
            Shape::Rate { rate, duration } => {
                format!("{rate} requests/s for {duration}, open loop")
            }
            Shape::Ramp {
                start,
                stages,
                pause,
            } => {
                let stages: Vec<String> = stages
                    .iter()
                    .map(|s| format!("{} over {}", s.to, s.over))
                    .collect();
                let pause = if pause.0.is_zero() {
                    String::new()
                } else {
                    format!(", {pause} between answer and next request")
                };
                format!(
                    "{start} clients, then {}, closed loop{pause}",
                    stages.join(", ")
                )
            }
            Shape::Rates { rates, each } => {
                let rates: Vec<String> = rates.iter().map(f64::to_string).collect();
                format!("{} requests/s for {each} each, open loop", rates.join(", "))
            }
            Shape::Starts { count } => format!("{count} starts"),
            Shape::Events { rate, duration } => {
                format!("{rate} events/s to each subscriber for {duration}")
            }
            Shape::Burst { events, within } => {
                format!("{events} events as fast as they are taken, within {within}")
            }
            Shape::Idle { duration } => format!("one event, then none for {duration}"),
            Shape::Parts { clients, duration } => {
                format!("{clients} clients of answers in parts for {duration}, closed loop")
            }
        }
    }

    /// Whether events are the load.
    pub fn is_of_events(&self) -> bool {
        matches!(
            self,
            Shape::Events { .. } | Shape::Burst { .. } | Shape::Idle { .. }
        )
    }
}

impl Scenario {
    fn federation() -> Vec<Role> {
        vec![Role::Federation]
    }

    pub(crate) fn read(path: &Path) -> Result<Scenario> {
        let mut scenario: Scenario = super::read_toml(path)?;
        scenario.name = super::file_name(path);
        Ok(scenario)
    }

    /// Refuses what no type refuses.
    pub(crate) fn check(&self, graph: &Graph, path: &Path) -> Result<()> {
        let wrong = |message: String| {
            Err(Error::Model {
                path: path.to_path_buf(),
                message,
            })
        };
        let operation = graph.operation(&self.operation)?;
        if self.fresh == Fresh::Alias && !operation.contains(super::graph::FRESH) {
            return wrong(format!(
                "operation `{}` has no place for a fresh alias",
                self.operation
            ));
        }
        for name in self
            .subgraphs
            .delays
            .keys()
            .chain(self.subgraphs.faults.keys())
        {
            if !graph.subgraphs.iter().any(|(known, _)| known == name) {
                return wrong(format!("graph `{}` has no subgraph `{name}`", graph.name));
            }
        }
        if self.load.shape.duration().is_zero() {
            return wrong("the load takes no time".into());
        }
        if self.load.shape.is_of_events() != self.subscribers.is_some() {
            return wrong("`subscribers` belong to loads of events, and those need them".into());
        }
        Ok(())
    }

    /// Whether a gateway may keep running between rounds: not where starts, cold caches or events are the point.
    pub fn can_keep(&self) -> bool {
        let shape = &self.load.shape;
        let is_start = matches!(shape, Shape::Starts { .. } | Shape::Parts { .. });
        !is_start
            && !shape.is_of_events()
            && !self.load.warmup.0.is_zero()
            && self.events.is_empty()
    }

    /// Scenarios with the same key ask the same of the same stage: one check is enough for all of them.
    pub fn check_key(&self) -> Vec<String> {
        vec![
            self.graph.clone(),
            self.operation.clone(),
            format!("{:?}", self.variables),
            self.mode.name().to_owned(),
            format!("{:?} {:?}", self.fresh, self.authorization),
            format!("{:?} {:?}", self.subgraphs.faults, self.expect.faults),
            format!("{:?} {:?}", self.roles, self.subscribers),
        ]
    }

    /// This scenario as `--quick` runs it, if it does.
    pub fn quick(&self) -> Option<Scenario> {
        let mut scenario = self.changed(self.quick.as_ref()?);
        let load = &mut scenario.load;
        load.warmup = Time(load.warmup.0.min(SHORT_WARMUP.0));
        load.timeout = Time(load.timeout.0.min(QUICK_TIMEOUT.0));
        Some(scenario)
    }

    /// This scenario with some numbers of its load changed.
    pub fn changed(&self, quick: &Quick) -> Scenario {
        let mut scenario = self.clone();
        if let (Shape::Rates { rates, .. }, Some(new)) = (&mut scenario.load.shape, &quick.rates) {
            rates.clone_from(new);
        }
        let whole = scenario.load.shape.duration();
        if let Some(Time(duration)) = quick.duration {
            scenario = scenario.scaled(duration.as_secs_f64() / whole.as_secs_f64());
        }
        match &mut scenario.load.shape {
            Shape::Clients { clients, .. } => *clients = quick.clients.unwrap_or(*clients),
            Shape::Rate { rate, .. } => *rate = quick.rate.unwrap_or(*rate),
            Shape::Starts { count } => *count = quick.count.unwrap_or(*count),
            Shape::Events { rate, .. } => *rate = quick.rate.unwrap_or(*rate),
            Shape::Burst { events, .. } => *events = quick.events.unwrap_or(*events),
            Shape::Parts { clients, .. } => *clients = quick.clients.unwrap_or(*clients),
            Shape::Ramp { .. } | Shape::Rates { .. } | Shape::Idle { .. } => {}
        }
        if let (Some(subscribers), Some(count)) = (&mut scenario.subscribers, quick.clients) {
            subscribers.count = count;
        }
        scenario
    }

    /// This scenario with a load of at most `cap`, but at least what it says it needs. Stages of a ramp keep their
    /// proportions; each of several rates takes half of it, and at least two seconds.
    pub fn capped(mut self, cap: Duration) -> Scenario {
        let warmup = cap.mul_f64(WARMUP_PART).max(SHORT_WARMUP.0);
        let cap = cap.max(self.load.least.0);
        let whole = self.load.shape.duration();
        let load = &mut self.load;
        match &mut load.shape {
            Shape::Clients { duration, .. }
            | Shape::Rate { duration, .. }
            | Shape::Events { duration, .. }
            | Shape::Parts { duration, .. } => duration.0 = duration.0.min(cap),
            Shape::Ramp { stages, .. } if whole > cap => {
                let factor = cap.as_secs_f64() / whole.as_secs_f64();
                for stage in stages {
                    stage.over = stage.over.scaled(factor);
                }
            }
            Shape::Rates { each, .. } => each.0 = each.0.min((cap / 2).max(SHORT_STEP.0)),
            Shape::Ramp { .. }
            | Shape::Starts { .. }
            | Shape::Burst { .. }
            | Shape::Idle { .. } => {}
        }
        load.warmup.0 = load.warmup.0.min(warmup);
        self
    }

    /// What a shortened load was before, in words; `None`: it is as its file says.
    pub fn shortened_from(&self, original: &Scenario) -> Option<String> {
        let mut parts = Vec::new();
        let (now, then) = (self.load.shape.measured(), original.load.shape.measured());
        if now != then {
            parts.push(format!("from {then} to {now}"));
        }
        let (now, then) = (self.load.warmup, original.load.warmup);
        if now != then {
            parts.push(format!("warm-up from {then} to {now}"));
        }
        (!parts.is_empty()).then(|| format!("shortened {}", parts.join(", ")))
    }

    /// This scenario with all durations multiplied; a warm-up stays at least a second.
    pub fn scaled(mut self, factor: f64) -> Scenario {
        let warmup = self.load.warmup;
        if factor < 1.0 && warmup.0 > SHORT_WARMUP.0 {
            self.load.warmup = Time(warmup.scaled(factor).0.max(SHORT_WARMUP.0));
        }
        match &mut self.load.shape {
            Shape::Clients { duration, .. }
            | Shape::Rate { duration, .. }
            | Shape::Events { duration, .. }
            | Shape::Parts { duration, .. } => *duration = duration.scaled(factor),
            Shape::Ramp { stages, .. } => {
                for stage in stages {
                    stage.over = stage.over.scaled(factor);
                }
            }
            Shape::Rates { each, .. } => *each = each.scaled(factor),
            Shape::Starts { .. } | Shape::Burst { .. } | Shape::Idle { .. } => {}
        }
        self
    }
}
