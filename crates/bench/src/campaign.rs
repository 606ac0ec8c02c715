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
    model::{Gateway, Lab, Scenario, Selection},
    places::Places,
    process,
    progress::{Progress, human},
    record::{self, Campaign, GatewayInfo, Journal, Run, ScenarioInfo, Verdict},
    run::{self, Live},
    schedule::{Choice, Pair, Schedule},
    stage::{Plot, Servers},
    units::{self, Time},
};

/// What to run.
#[derive(Clone, Debug)]
pub struct Order {
    /// Gateways, scenarios, rounds, time.
    pub choice: Choice,
    /// Whether gateways that are not there are installed.
    pub install: bool,
    /// Whether only the check is run.
    pub check_only: bool,
    /// Who makes the load.
    pub tool: Tool,
    /// Where results go; a folder that holds an unfinished campaign of the same order is continued.
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
    pair: Pair,
    installed: Installed,
    placement: Placement,
    /// Its check did not end well.
    out: bool,
}

/// What will be run, and how long it will take; nothing is started.
pub fn schedule(lab: &Lab, choice: &Choice, cache: &Cache) -> Result<Schedule> {
    Schedule::new(lab, choice, &|gateway| cache.find(gateway).is_ok())
}

/// Runs a campaign; what is measured is on disk at once.
pub fn run(
    lab: &Lab,
    order: &Order,
    equipment: &Equipment,
    say: Box<dyn Fn(&str)>,
) -> Result<(Campaign, Vec<Run>)> {
    let earlier = record::earlier(&order.folder)?;
    let mut choice = order.choice.clone();
    if let Some((campaign, _)) = &earlier {
        // What is measured together has the same durations.
        choice.cap = campaign.cap_ms.map(Duration::from_millis);
        choice.budget = None;
        choice.selection = choice.selection.map(Selection::without_budget);
    }
    let schedule = schedule(lab, &choice, &equipment.cache)?;
    let mut campaign = describe(order, &schedule);
    let mut installed = BTreeMap::new();
    for gateway in schedule.gateways() {
        let found = prepare(gateway, order, equipment, &mut campaign);
        installed.insert(gateway.name.clone(), found);
    }
    let mut runs = match earlier {
        Some((before, runs)) => {
            if let Some(difference) = before.difference(&campaign) {
                return Err(Error::Another {
                    folder: order.folder.clone(),
                    difference,
                });
            }
            let load_average = campaign.machine.load_average;
            campaign = before;
            campaign.resumed.push(format!(
                "{}, load average {load_average:.2}",
                units::timestamp(units::now())
            ));
            runs
        }
        None => Vec::new(),
    };
    let mut journal = Journal::open(&order.folder, &campaign)?;
    let mut entries = enter(&schedule, &choice, &installed, &mut journal, &mut runs)?;
    let rounds = if order.check_only { 0 } else { schedule.rounds };
    let left = remaining(&entries, &runs, rounds, order.check_only);
    let mut progress = Progress::new(left, say);
    if !runs.is_empty() && !campaign.resumed.is_empty() {
        let n_kept = runs.iter().filter(|run| run.round > 0).count();
        progress.note(&format!(
            "continuing: {n_kept} measured runs are kept, about {} remain",
            human(progress.left())
        ));
    }
    let mut todo = Todo {
        lab,
        order,
        equipment,
        journal: &mut journal,
        progress: &mut progress,
        runs: &mut runs,
    };
    todo.check(&mut entries)?;
    if choice.keeps() {
        // Scenario by scenario: what keeps running does so for the rounds of one scenario only.
        for (scenario, _) in &schedule.scenarios {
            let mut live = BTreeMap::new();
            for round in 1..=rounds {
                todo.measure(&entries, Some(&scenario.name), round, rounds, &mut live)?;
            }
        }
    } else {
        for round in 1..=rounds {
            todo.measure(&entries, None, round, rounds, &mut BTreeMap::new())?;
        }
    }
    progress.finish();
    Ok((campaign, runs))
}

/// Pairs that can be run; of the others it is noted why not.
fn enter(
    schedule: &Schedule,
    choice: &Choice,
    installed: &BTreeMap<String, std::result::Result<Installed, String>>,
    journal: &mut Journal,
    runs: &mut Vec<Run>,
) -> Result<Vec<Entry>> {
    let cpus = process::cpus();
    let mut entries = Vec::new();
    for pair in &schedule.pairs {
        let placement = Placement::new(&cpus, pair.scenario.limits.cores);
        let reason = match &installed[&pair.gateway.name] {
            _ if pair.rounds == 0 => {
                let name = choice.selection.as_ref().map_or("", |s| s.name.as_str());
                format!("left out by the selection `{name}`, to fit into the time")
            }
            Err(reason) => reason.clone(),
            Ok(installed) => match pair.refusal() {
                Some(reason) => reason.to_owned(),
                None => {
                    entries.push(Entry {
                        pair: pair.clone(),
                        installed: installed.clone(),
                        placement,
                        out: false,
                    });
                    continue;
                }
            },
        };
        if find(runs, pair, 0).is_none() {
            let run = not_run(&pair.scenario, &pair.gateway, placement, reason);
            journal.keep(&run)?;
            runs.push(run);
        }
    }
    Ok(entries)
}

fn find<'a>(runs: &'a [Run], pair: &Pair, round: u32) -> Option<&'a Run> {
    runs.iter().find(|run| {
        run.round == round && run.scenario == pair.scenario.name && run.gateway == pair.gateway.name
    })
}

/// How long what is still to be run will take. Where only checks are run, none stands for another.
fn remaining(entries: &[Entry], runs: &[Run], rounds: u32, check_only: bool) -> Duration {
    let mut total = Duration::ZERO;
    let mut checked = Vec::new();
    for Entry { pair, .. } in entries {
        let key = (pair.gateway.name.clone(), pair.scenario.check_key());
        if find(runs, pair, 0).is_none() && (check_only || !checked.contains(&key)) {
            total += pair.expected_check();
            checked.push(key);
        }
        let open = (1..=pair.rounds.min(rounds)).filter(|n| find(runs, pair, *n).is_none());
        total += pair.expected_rounds(open.count() as u32);
    }
    total
}

/// What a campaign does, and where it notes what came of it.
struct Todo<'a> {
    lab: &'a Lab,
    order: &'a Order,
    equipment: &'a Equipment,
    journal: &'a mut Journal,
    progress: &'a mut Progress,
    runs: &'a mut Vec<Run>,
}

impl Todo<'_> {
    /// Checks every pair; scenarios that ask the same of the same stage share a check, unless checks are all there is.
    fn check(&mut self, entries: &mut [Entry]) -> Result<()> {
        let mut known: Vec<((String, Vec<String>), Run)> = Vec::new();
        for entry in entries {
            let pair = &entry.pair;
            let key = (pair.gateway.name.clone(), pair.scenario.check_key());
            let same = known.iter().find(|(k, _)| *k == key).map(|(_, run)| run);
            let checked = match (find(self.runs, pair, 0), same) {
                (Some(done), _) => done.clone(),
                (None, Some(other)) if !self.order.check_only => {
                    let folder = self.folder(pair);
                    let plot = entry.plot(self.lab, self.equipment, &folder, true);
                    let checked = run::checked_elsewhere(&plot, other);
                    self.keep(&checked)?;
                    checked
                }
                (None, _) => {
                    stopped(self.equipment)?;
                    let what = format!("check · {} · {}", pair.scenario.name, pair.gateway.name);
                    self.progress.begin(&what, pair.expected_check());
                    let folder = self.folder(pair);
                    let plot = entry.plot(self.lab, self.equipment, &folder, true);
                    let checked = run::check_only(&plot)?;
                    self.progress.end(told(&checked).as_deref());
                    self.keep(&checked)?;
                    checked
                }
            };
            entry.out = checked.verdict != Verdict::Ok;
            if entry.out {
                let rounds = if self.order.check_only {
                    0
                } else {
                    pair.rounds
                };
                self.progress.leave_out(pair.expected_rounds(rounds));
            }
            if same.is_none() {
                known.push((key, checked));
            }
        }
        Ok(())
    }

    /// One round of all scenarios, or of one.
    fn measure(
        &mut self,
        entries: &[Entry],
        only: Option<&str>,
        round: u32,
        rounds: u32,
        live: &mut BTreeMap<String, Option<Live>>,
    ) -> Result<()> {
        for entry in entries.iter().filter(|entry| !entry.out) {
            let pair = &entry.pair;
            let (scenario, gateway) = (&pair.scenario.name, &pair.gateway.name);
            let wanted = round <= pair.rounds && only.is_none_or(|only| only == scenario);
            if !wanted || find(self.runs, pair, round).is_some() {
                continue;
            }
            stopped(self.equipment)?;
            let place = live.entry(gateway.clone()).or_default();
            let expected = match place {
                Some(_) => pair.expected_again(),
                None => pair.expected(),
            };
            let what = format!("round {round} of {rounds} · {scenario} · {gateway}");
            self.progress.begin(&what, expected);
            let folder = self.folder(pair);
            let plot = entry.plot(self.lab, self.equipment, &folder, false);
            let more = pair.keep && round < pair.rounds;
            let keep = (more || place.is_some()).then_some(&mut *place);
            let done = run::run(&plot, &self.order.tool, round, keep)?;
            if !more {
                *place = None;
            }
            self.progress.end(told(&done).as_deref());
            self.keep(&done)?;
        }
        Ok(())
    }

    fn keep(&mut self, run: &Run) -> Result<()> {
        self.journal.keep(run)?;
        self.runs.push(run.clone());
        Ok(())
    }

    fn folder(&self, pair: &Pair) -> PathBuf {
        run::work_folder(&self.order.folder, &pair.scenario.name, &pair.gateway.name)
    }
}

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
            scenario: &self.pair.scenario,
            gateway: &self.pair.gateway,
            installed: &self.installed,
            placement: &self.placement,
            work,
            record,
        }
    }
}

fn stopped(equipment: &Equipment) -> Result<()> {
    if equipment.stop.load(Ordering::Relaxed) {
        Err(Error::Stopped)
    } else {
        Ok(())
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

fn not_run(scenario: &Scenario, gateway: &Gateway, placement: Placement, reason: String) -> Run {
    Run {
        verdict: Verdict::NotRun(reason),
        ..Run::blank(&scenario.name, &gateway.name, 0, placement.gateway)
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
    let found = if order.install {
        cache.install(gateway)
    } else {
        cache.find(gateway)
    };
    let places = Places::new([
        (cache.folder.as_path(), "{cache}"),
        (order.folder.as_path(), "{out}"),
    ]);
    let found = found.map_err(|error| places.hide(&error.to_string()));
    let spec = &gateway.spec;
    let info = GatewayInfo {
        title: spec.title.clone(),
        language: spec.language.clone(),
        licence: spec.licence.clone(),
        version: found
            .as_ref()
            .map_or(String::new(), |i| places.hide(&cache.version(gateway, i))),
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

fn describe(order: &Order, schedule: &Schedule) -> Campaign {
    let choice = &order.choice;
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
    if choice.quick {
        notes.push("run with --quick: short loads, large noise; use it to see that all works, not to compare".to_owned());
    }
    if choice.scale > 0.0 && (choice.scale - 1.0).abs() > f64::EPSILON {
        notes.push(format!("all durations times {}", choice.scale));
    }
    if let Some(cap) = schedule.cap {
        notes.push(format!(
            "loads were cut to {} or what their scenario needs at least, to fit into the time: each scenario says from what; short loads are noisier, and slow starters have less time to warm up",
            Time(cap)
        ));
    }
    if let Some(selection) = &choice.selection {
        notes.push(format!(
            "who ran where, over how many rounds, is from `bench/{}.toml`; what it leaves out is listed as not run",
            selection.name
        ));
    }
    if choice.keeps() {
        notes.push("gateways kept running from round to round of a scenario, idle while others were measured: rounds are no independent starts".to_owned());
    }
    let info = |scenario: &Scenario, shortened: &Option<String>| ScenarioInfo {
        title: scenario.title.clone(),
        goal: scenario.goal.clone(),
        key: scenario.key,
        seeds: scenario.seeds.clone(),
        caveats: scenario.caveats.clone(),
        load: scenario.load.shape.describe(),
        shortened: shortened.clone(),
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
        scenarios: schedule
            .scenarios
            .iter()
            .map(|(s, shortened)| (s.name.clone(), info(s, shortened)))
            .collect(),
        rounds: schedule.rounds,
        cap_ms: schedule.cap.map(|cap| cap.as_millis() as u64),
        resumed: Vec::new(),
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
