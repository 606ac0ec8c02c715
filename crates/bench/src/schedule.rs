//! What a campaign consists of and how long it will take: pairs of gateways and scenarios, rounds, durations.
//!
//! A budget is met by one cap for all loads, the longest one with which everything fits. Loads are never cut below
//! [`LEAST`] or what their scenario says it needs; what does not fit then is an error that says so before anything runs.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Error, Result,
    model::{EventAction, Gateway, Lab, Reload, Scenario, Selection, Shape},
    progress::human,
    units::Time,
};

/// The shortest load a budget may lead to.
pub const LEAST: Duration = Duration::from_secs(4);
/// The longest load a budget is tried with: longer than any scenario.
const MOST: Duration = Duration::from_secs(7200);
/// What a run costs beside its load and the gateway's start: servers, answers before and after, the end of processes.
pub const FIXED: Duration = Duration::from_millis(700);
/// What a run costs beside its load where the gateway runs already.
pub const FIXED_AGAIN: Duration = Duration::from_millis(200);
/// What a check costs beside the gateway's start.
pub const CHECK: Duration = Duration::from_millis(1_500);

/// What to choose from a lab, and how long it may take.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names of gateways; empty means all.
    pub gateways: Vec<String>,
    /// Names of scenarios; empty means all.
    pub scenarios: Vec<String>,
    /// Rounds, where no selection says otherwise.
    pub rounds: u32,
    /// Whether the short form is run.
    pub quick: bool,
    /// Factor on all durations; 0 is taken as 1.
    pub scale: f64,
    /// Who runs where.
    pub selection: Option<Selection>,
    /// The longest load.
    pub cap: Option<Duration>,
    /// How long all of it may take.
    pub budget: Option<Duration>,
    /// Whether gateways keep running from round to round.
    pub keep: bool,
}

/// A gateway in a scenario.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The scenario as it will be run.
    pub scenario: Scenario,
    /// The gateway.
    pub gateway: Gateway,
    /// Its rounds; 0: left out by the selection.
    pub rounds: u32,
    /// Whether it keeps running from round to round.
    pub keep: bool,
}

/// All pairs, in the order of scenarios.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Pairs.
    pub pairs: Vec<Pair>,
    /// Scenarios as they will be run, with what was shortened, in words.
    pub scenarios: Vec<(Scenario, Option<String>)>,
    /// Most rounds.
    pub rounds: u32,
    /// The cap on loads.
    pub cap: Option<Duration>,
    /// How long it will take.
    pub estimate: Duration,
}

impl Choice {
    /// Whether gateways keep running from round to round.
    pub fn keeps(&self) -> bool {
        self.keep || self.selection.as_ref().is_some_and(|s| s.keep)
    }
}

impl Schedule {
    /// Chooses from a lab. Installed gateways only are counted for the estimate: `is_here` says which.
    pub fn new(lab: &Lab, choice: &Choice, is_here: &dyn Fn(&Gateway) -> bool) -> Result<Schedule> {
        let originals = scenarios(lab, choice)?;
        let gateways = gateways(lab, choice)?;
        let with = |cap: Option<Duration>| {
            let mut schedule = Schedule {
                cap,
                ..Schedule::default()
            };
            for original in &originals {
                let scenario = shaped(original, choice, cap);
                for gateway in &gateways {
                    if !scenario.roles.iter().any(|role| gateway.can(*role)) {
                        continue;
                    }
                    schedule.pairs.push(Pair {
                        rounds: rounds(choice, gateway, &scenario),
                        keep: choice.keeps() && scenario.can_keep(),
                        scenario: scenario.clone(),
                        gateway: gateway.clone(),
                    });
                }
                let words = scenario.shortened_from(original);
                schedule.scenarios.push((scenario, words));
            }
            schedule.rounds = schedule.pairs.iter().map(|p| p.rounds).max().unwrap_or(0);
            schedule.estimate = schedule.time(is_here);
            schedule
        };
        let own = choice.selection.as_ref().and_then(|s| s.budget);
        let budget = choice.budget.or(own.map(|time| time.0));
        match (choice.cap, budget) {
            (Some(cap), _) => Ok(with(Some(cap.max(LEAST)))),
            (None, None) => Ok(with(None)),
            (None, Some(budget)) => {
                let shortest = with(Some(LEAST));
                if shortest.estimate > budget {
                    return Err(Error::Budget {
                        wanted: human(budget),
                        needed: human(shortest.estimate),
                        least: Time(LEAST).to_string(),
                    });
                }
                Ok(longest(budget, shortest, &with))
            }
        }
    }

    /// Gateways that take part, each once.
    pub fn gateways(&self) -> Vec<&Gateway> {
        let mut found: Vec<&Gateway> = Vec::new();
        for pair in &self.pairs {
            if !found.iter().any(|g| g.name == pair.gateway.name) {
                found.push(&pair.gateway);
            }
        }
        found
    }

    /// The list for people: each scenario with its load, who runs it over how many rounds, and how long that takes.
    pub fn describe(&self, is_here: &dyn Fn(&Gateway) -> bool) -> String {
        let mut out = String::new();
        let mut n_runs = 0;
        for (scenario, shortened) in &self.scenarios {
            let pairs = self
                .pairs
                .iter()
                .filter(|p| p.scenario.name == scenario.name);
            let mut by_rounds: BTreeMap<u32, Vec<String>> = BTreeMap::new();
            let mut time = Duration::ZERO;
            for pair in pairs {
                let mark = match (is_here(&pair.gateway), pair.refusal()) {
                    (false, _) => " (not installed)",
                    (true, Some(_)) => " (cannot)",
                    (true, None) => {
                        time += pair.expected_rounds(pair.rounds);
                        n_runs += pair.rounds;
                        ""
                    }
                };
                by_rounds
                    .entry(pair.rounds)
                    .or_default()
                    .push(format!("{}{mark}", pair.gateway.name));
            }
            out.push_str(&format!(
                "{:<24} {:>5} s  {}\n",
                scenario.name,
                time.as_secs(),
                scenario.load.shape.describe()
            ));
            if let Some(words) = shortened {
                out.push_str(&format!("{:34}{words}\n", ""));
            }
            for (rounds, names) in by_rounds.iter().rev() {
                let how = match rounds {
                    0 => "left out".to_owned(),
                    1 => "1 round".to_owned(),
                    n => format!("{n} rounds"),
                };
                out.push_str(&format!("{:34}{how}: {}\n", "", names.join(", ")));
            }
        }
        out.push_str(&format!(
            "\n{n_runs} runs and their checks, about {}\n",
            human(self.estimate)
        ));
        out
    }

    /// How long it takes to check every pair and to measure none.
    pub fn time_of_checks(&self, is_here: &dyn Fn(&Gateway) -> bool) -> Duration {
        let pairs = self
            .pairs
            .iter()
            .filter(|p| p.rounds > 0 && is_here(&p.gateway));
        let pairs = pairs.filter(|p| p.refusal().is_none());
        pairs.map(Pair::expected_check).sum()
    }

    /// How long checks and rounds take.
    fn time(&self, is_here: &dyn Fn(&Gateway) -> bool) -> Duration {
        let mut total = Duration::ZERO;
        let mut checked: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self
            .pairs
            .iter()
            .filter(|p| p.rounds > 0 && is_here(&p.gateway) && p.refusal().is_none())
        {
            total += pair.expected_rounds(pair.rounds);
            let key = (pair.gateway.name.clone(), pair.scenario.check_key());
            if !checked.contains(&key) {
                checked.push(key);
                total += pair.expected_check();
            }
        }
        total
    }
}

/// The longest cap within a budget, to a tenth of a second.
fn longest(
    budget: Duration,
    shortest: Schedule,
    with: &dyn Fn(Option<Duration>) -> Schedule,
) -> Schedule {
    let whole = with(None);
    if whole.estimate <= budget {
        return whole;
    }
    let (mut low, mut high) = (LEAST, MOST);
    let mut best = shortest;
    while high - low > Duration::from_millis(100) {
        let middle = (low + high) / 2;
        let tried = with(Some(middle));
        if tried.estimate <= budget {
            (low, best) = (middle, tried);
        } else {
            high = middle;
        }
    }
    // A cap people can read; rounding down keeps the budget.
    let cap = Duration::from_millis(low.as_millis() as u64 / 100 * 100).max(LEAST);
    match best.cap {
        Some(found) if found != cap => with(Some(cap)),
        _ => best,
    }
}

impl Pair {
    /// Why a gateway cannot take part in a scenario it has the role for.
    pub fn refusal(&self) -> Option<&'static str> {
        let events = &self.scenario.events;
        let reloads = events.iter().any(|e| e.action == EventAction::Reload);
        if reloads && self.gateway.spec.reload == Reload::None {
            return Some("takes up a new supergraph only by a new start");
        }
        let subscribers = self.scenario.subscribers?;
        let spec = &self.gateway.spec.subscriptions;
        if !spec.clients.contains(&subscribers.client) {
            return Some("does not speak this protocol with subscribers");
        }
        (!spec.sources.contains_key(&subscribers.source))
            .then_some("does not speak this protocol with subgraphs")
    }

    /// How long a run takes that finds its gateway running.
    pub fn expected_again(&self) -> Duration {
        let backlog = self.backlog();
        // What is not done in time is started anew.
        if !self.keep || backlog >= self.scenario.load.drain() {
            return self.expected();
        }
        FIXED_AGAIN + self.scenario.load.shape.duration() + backlog
    }

    /// How long so many rounds take.
    pub fn expected_rounds(&self, n: u32) -> Duration {
        match n {
            0 => Duration::ZERO,
            n => self.expected() + self.expected_again() * (n - 1),
        }
    }

    /// How long one run takes, with a start.
    pub fn expected(&self) -> Duration {
        let estimate = &self.gateway.spec.estimate;
        let load = &self.scenario.load;
        let start = estimate.start.0;
        if let Shape::Starts { count } = load.shape {
            return FIXED + start * (count as u32 + 1);
        }
        FIXED + start + load.total() + self.backlog()
    }

    /// How long a check takes.
    pub fn expected_check(&self) -> Duration {
        CHECK + self.gateway.spec.estimate.start.0
    }

    /// How long answers are waited for after the end of a load the gateway does not keep up with.
    fn backlog(&self) -> Duration {
        let load = &self.scenario.load;
        let speed = self.gateway.spec.estimate.requests_per_second.max(1.0);
        let open = |rate: f64, time: Duration| time.as_secs_f64() * (rate / speed - 1.0).max(0.0);
        let seconds: Vec<f64> = match &load.shape {
            Shape::Clients { clients, .. } => vec![*clients as f64 / speed],
            Shape::Ramp { stages, .. } => {
                let most = stages.iter().map(|s| s.to).max().unwrap_or(0);
                vec![most as f64 / speed]
            }
            Shape::Rate { rate, duration } => vec![open(*rate, duration.0)],
            Shape::Rates { rates, each } => rates.iter().map(|rate| open(*rate, each.0)).collect(),
            Shape::Starts { .. }
            | Shape::Events { .. }
            | Shape::Burst { .. }
            | Shape::Idle { .. }
            | Shape::Parts { .. } => Vec::new(),
        };
        let one = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).map_or(load.drain(), |t| t.min(load.drain()))
        };
        // Answers come after three waves at most; ranges of delays are short.
        let delay = self.scenario.subgraphs.delay.as_deref();
        let waves = delay
            .and_then(|d| Time::parse(d).ok())
            .unwrap_or_default()
            .0
            * 3;
        seconds.into_iter().map(|s| one(s).max(waves)).sum()
    }
}

fn scenarios(lab: &Lab, choice: &Choice) -> Result<Vec<Scenario>> {
    let chosen: Vec<Scenario> = if choice.scenarios.is_empty() {
        lab.scenarios.clone()
    } else {
        choice
            .scenarios
            .iter()
            .map(|name| lab.scenario(name).cloned())
            .collect::<Result<_>>()?
    };
    let named = !choice.scenarios.is_empty();
    Ok(if choice.quick {
        chosen
            .into_iter()
            .filter_map(|s| s.quick().or_else(|| named.then_some(s)))
            .collect()
    } else {
        chosen
    })
}

fn gateways(lab: &Lab, choice: &Choice) -> Result<Vec<Gateway>> {
    if choice.gateways.is_empty() {
        Ok(lab.gateways.clone())
    } else {
        choice
            .gateways
            .iter()
            .map(|name| lab.gateway(name).cloned())
            .collect()
    }
}

/// A scenario with the changes of the selection, the scale and the cap.
fn shaped(original: &Scenario, choice: &Choice, cap: Option<Duration>) -> Scenario {
    let change = choice
        .selection
        .as_ref()
        .and_then(|s| s.scenarios.get(&original.name));
    let mut scenario = match change {
        Some(change) => original.changed(&change.load),
        None => original.clone(),
    };
    if choice.scale > 0.0 {
        scenario = scenario.scaled(choice.scale);
    }
    let own = change.and_then(|change| change.cap).map(|time| time.0);
    match (cap, own) {
        (None, _) => scenario,
        (Some(cap), own) => scenario.capped(own.unwrap_or(cap).max(cap)),
    }
}

fn rounds(choice: &Choice, gateway: &Gateway, scenario: &Scenario) -> u32 {
    match &choice.selection {
        Some(selection) => {
            selection.rounds(&gateway.name, &scenario.name, !scenario.seeds.is_empty())
        }
        None => choice.rounds,
    }
}
