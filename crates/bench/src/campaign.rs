//! A campaign: which gateways in which scenarios, checked first, then measured in rounds A B C, A B C, so that a
//! machine that gets slower or busier does so for all of them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    Error, Result,
    install::{Cache, Installed},
    load::Tool,
    machine::{Machine, Placement},
    model::{EventAction, Gateway, Lab, Reload, Scenario},
    process,
    progress::Progress,
    record::{Campaign, GatewayInfo, Journal, Run, ScenarioInfo, Verdict},
    run,
    stage::{Plot, Servers},
    units,
};

/// What to run.
#[derive(Clone, Debug)]
pub struct Order {
    /// Names of gateways; empty means all.
    pub gateways: Vec<String>,
    /// Names of scenarios; empty means all.
    pub scenarios: Vec<String>,
    /// Rounds.
    pub rounds: u32,
    /// Whether the short form is run.
    pub quick: bool,
    /// Factor on all durations.
    pub scale: f64,
    /// Whether gateways that are not there are installed.
    pub install: bool,
    /// Whether only the check is run.
    pub check_only: bool,
    /// Who makes the load.
    pub tool: Tool,
    /// Where results go.
    pub folder: PathBuf,
    /// The command the user gave.
    pub command: Vec<String>,
}

/// Everything a campaign needs beside the order.
#[derive(Clone, Debug)]
pub struct Equipment {
    /// Commands of the lab's servers.
    pub servers: Servers,
    /// Installed gateways.
    pub cache: Cache,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

/// A gateway in a scenario, ready to be run.
struct Entry {
    scenario: Scenario,
    gateway: Gateway,
    installed: Installed,
    placement: Placement,
    /// Its check did not end well.
    out: bool,
}

/// Scenarios as they will be run.
pub fn scenarios(lab: &Lab, order: &Order) -> Result<Vec<Scenario>> {
    let mut chosen: Vec<Scenario> = match order.scenarios.is_empty() {
        true => lab.scenarios.clone(),
        false => order
            .scenarios
            .iter()
            .map(|name| lab.scenario(name).cloned())
            .collect::<Result<_>>()?,
    };
    if order.quick {
        let named = !order.scenarios.is_empty();
        chosen = chosen
            .into_iter()
            .filter_map(|s| s.quick().or_else(|| named.then_some(s)))
            .collect();
    }
    Ok(chosen.into_iter().map(|s| s.scaled(order.scale)).collect())
}

/// Runs a campaign; what is measured is on disk at once.
pub fn run(
    lab: &Lab,
    order: &Order,
    equipment: &Equipment,
    say: Box<dyn Fn(&str)>,
) -> Result<(Campaign, Vec<Run>)> {
    let scenarios = scenarios(lab, order)?;
    let gateways: Vec<Gateway> = match order.gateways.is_empty() {
        true => lab.gateways.clone(),
        false => order
            .gateways
            .iter()
            .map(|name| lab.gateway(name).cloned())
            .collect::<Result<_>>()?,
    };
    let cpus = process::cpus();
    let mut campaign = describe(order, &scenarios);
    let mut entries = Vec::new();
    let mut runs = Vec::new();
    let mut installed = BTreeMap::new();
    for gateway in &gateways {
        installed.insert(
            gateway.name.clone(),
            prepare(gateway, order, equipment, &mut campaign),
        );
    }
    let mut journal = Journal::create(&order.folder, &campaign)?;
    for scenario in &scenarios {
        for gateway in gateways
            .iter()
            .filter(|g| scenario.roles.iter().any(|role| g.can(*role)))
        {
            let placement = Placement::new(&cpus, scenario.limits.cores);
            let reason = match (&installed[&gateway.name], refusal(scenario, gateway)) {
                (Ok(installed), None) => {
                    entries.push(Entry {
                        scenario: scenario.clone(),
                        gateway: gateway.clone(),
                        installed: installed.clone(),
                        placement,
                        out: false,
                    });
                    continue;
                }
                (Err(reason), _) => reason.clone(),
                (_, Some(reason)) => reason,
            };
            let run = not_run(scenario, gateway, placement, reason);
            journal.keep(&run)?;
            runs.push(run);
        }
    }
    let expected = |entry: &Entry| run::expected(&entry.scenario);
    let load: Duration = entries.iter().map(expected).sum();
    let rounds = if order.check_only { 0 } else { order.rounds };
    let mut progress = Progress::new(load * rounds + CHECK * entries.len() as u32, say);
    for entry in &mut entries {
        stopped(equipment)?;
        progress.begin(
            &format!("check · {} · {}", entry.scenario.name, entry.gateway.name),
            CHECK,
        );
        let folder = run::work_folder(&order.folder, &entry.scenario.name, &entry.gateway.name);
        let checked = run::check_only(&entry.plot(lab, equipment, &folder, true))?;
        entry.out = checked.verdict != Verdict::Ok;
        progress.end(told(&checked).as_deref());
        journal.keep(&checked)?;
        runs.push(checked);
    }
    for round in 1..=rounds {
        for entry in entries.iter().filter(|entry| !entry.out) {
            stopped(equipment)?;
            let what = format!(
                "round {round} of {rounds} · {} · {}",
                entry.scenario.name, entry.gateway.name
            );
            progress.begin(&what, expected(entry));
            let folder = run::work_folder(&order.folder, &entry.scenario.name, &entry.gateway.name);
            let done = run::run(
                &entry.plot(lab, equipment, &folder, false),
                &order.tool,
                round,
            )?;
            progress.end(told(&done).as_deref());
            journal.keep(&done)?;
            runs.push(done);
        }
    }
    progress.finish();
    Ok((campaign, runs))
}

/// How long a check is expected to take.
pub const CHECK: Duration = Duration::from_secs(3);

impl Entry {
    fn plot<'a>(
        &'a self,
        lab: &'a Lab,
        equipment: &'a Equipment,
        work: &'a Path,
        record: bool,
    ) -> Plot<'a> {
        Plot {
            lab,
            servers: &equipment.servers,
            scenario: &self.scenario,
            gateway: &self.gateway,
            installed: &self.installed,
            placement: &self.placement,
            work,
            record,
        }
    }
}

fn stopped(equipment: &Equipment) -> Result<()> {
    match equipment.stop.load(Ordering::Relaxed) {
        true => Err(Error::Stopped),
        false => Ok(()),
    }
}

/// A line for people, if there is something to say.
fn told(run: &Run) -> Option<String> {
    let reason = run.verdict.reason()?;
    let line = reason.lines().next().unwrap_or_default();
    Some(format!(
        "{}: {} {}: {line}",
        run.scenario,
        run.gateway,
        run.verdict.word()
    ))
}

/// Why a gateway cannot take part in a scenario it has the role for.
fn refusal(scenario: &Scenario, gateway: &Gateway) -> Option<String> {
    let reloads = scenario
        .events
        .iter()
        .any(|event| event.action == EventAction::Reload);
    (reloads && gateway.spec.reload == Reload::None)
        .then(|| "takes up a new supergraph only by a new start".to_owned())
}

fn not_run(scenario: &Scenario, gateway: &Gateway, placement: Placement, reason: String) -> Run {
    Run {
        scenario: scenario.name.clone(),
        gateway: gateway.name.clone(),
        round: 0,
        started: units::timestamp(units::now()),
        verdict: Verdict::NotRun(reason),
        flags: Vec::new(),
        notes: Vec::new(),
        command: Vec::new(),
        cpus: placement.gateway,
        memory_limit: None,
        ready_ms: None,
        starts_ms: Vec::new(),
        idle_pss: None,
        load: None,
        usage: None,
        subgraphs: None,
        steps: Vec::new(),
        checked: Default::default(),
    }
}

/// Finds or installs a gateway and notes what it is.
fn prepare(
    gateway: &Gateway,
    order: &Order,
    equipment: &Equipment,
    campaign: &mut Campaign,
) -> std::result::Result<Installed, String> {
    let cache = &equipment.cache;
    let found = match order.install {
        true => cache.install(gateway),
        false => cache.find(gateway),
    };
    let found = found.map_err(|error| error.to_string());
    let spec = &gateway.spec;
    let info = GatewayInfo {
        title: spec.title.clone(),
        language: spec.language.clone(),
        licence: spec.licence.clone(),
        version: found
            .as_ref()
            .map_or(String::new(), |i| cache.version(gateway, i)),
        binary_bytes: found.as_ref().ok().and_then(binary_bytes),
        missing: found.as_ref().err().cloned(),
        notes: spec.notes.clone(),
    };
    campaign.gateways.insert(gateway.name.clone(), info);
    found
}

fn binary_bytes(installed: &Installed) -> Option<u64> {
    let path = installed.binary.as_ref()?;
    std::fs::metadata(path).ok().map(|m| m.len())
}

fn describe(order: &Order, scenarios: &[Scenario]) -> Campaign {
    let machine = Machine::here();
    let mut notes = Vec::new();
    if machine.load_average > 0.5 {
        notes.push(format!(
            "the machine was busy when this began (load average {:.2}): numbers are too high or too low",
            machine.load_average
        ));
    }
    if cfg!(debug_assertions) {
        notes
            .push("this is a debug build of ogive: only good for trying the lab itself".to_owned());
    }
    if order.quick {
        notes.push("run with --quick: short loads, large noise; use it to see that all works, not to compare".to_owned());
    }
    if (order.scale - 1.0).abs() > f64::EPSILON {
        notes.push(format!("all durations times {}", order.scale));
    }
    let info = |scenario: &Scenario| ScenarioInfo {
        title: scenario.title.clone(),
        goal: scenario.goal.clone(),
        key: scenario.key,
        seeds: scenario.seeds.clone(),
        caveats: scenario.caveats.clone(),
        load: scenario.load.shape.describe(),
        settings: settings(scenario),
    };
    Campaign {
        started: units::timestamp(units::now()),
        command: order.command.clone(),
        lab: format!(
            "{}, load by {}",
            env!("CARGO_PKG_VERSION"),
            order.tool.name()
        ),
        machine,
        gateways: BTreeMap::new(),
        scenarios: scenarios
            .iter()
            .map(|s| (s.name.clone(), info(s)))
            .collect(),
        rounds: order.rounds,
        notes,
    }
}

fn settings(scenario: &Scenario) -> Vec<String> {
    let mut out = vec![
        format!(
            "graph `{}`, operation `{}`",
            scenario.graph, scenario.operation
        ),
        format!("mode `{}`", scenario.mode.name()),
        match scenario.fresh {
            crate::model::Fresh::Alias => "a fresh alias in every request".into(),
            crate::model::Fresh::No => "the same document in every request".into(),
        },
        format!("`authorization`: {:?}", scenario.authorization).to_lowercase(),
    ];
    if let Some(delay) = &scenario.subgraphs.delay {
        out.push(format!("subgraphs hold answers for {delay}"));
    }
    for (name, delay) in &scenario.subgraphs.delays {
        out.push(format!("`{name}` holds answers for {delay}"));
    }
    for (name, faults) in &scenario.subgraphs.faults {
        out.push(format!("`{name}` fails: {}", faults.join(", ")));
    }
    if let Some(memory) = scenario.limits.memory {
        out.push(format!("at most {} MiB of memory", memory.0 >> 20));
    }
    if !scenario.load.keep_alive {
        out.push("a new connection for every request".into());
    }
    out
}
