//! Numbers over rounds: median with smallest and largest, ratios paired within a round.
//!
//! Rounds are few, so no distribution is assumed. A ratio of two gateways is taken in each round first and summed up
//! then: what slowed one round down slowed both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    load::LoadResult,
    model::Goal,
    record::{Campaign, Run, ScenarioInfo, Step, Verdict},
    usage::Measured,
};

/// The gateway others are compared with.
pub const REFERENCE: &str = "ogive";
/// The participant that is a floor and no competitor.
pub const FLOOR: &str = "nginx";

/// A campaign in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Machine, versions, settings.
    pub campaign: Campaign,
    /// Scenarios in order of names.
    pub scenarios: Vec<ScenarioSummary>,
}

/// A scenario in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioSummary {
    /// Its name.
    pub name: String,
    /// What it is.
    pub info: ScenarioInfo,
    /// Gateways: those whose numbers count first, best first.
    pub rows: Vec<Row>,
}

/// A gateway in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub gateway: String,
    /// Its name for people.
    pub title: String,
    /// Whether its numbers count.
    pub verdict: Verdict,
    /// What the gateway did that it should not have done.
    pub flags: Vec<String>,
    /// How it was set.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Rounds that count.
    pub rounds: u32,
    /// CPUs it had.
    #[serde(default)]
    pub cpus: usize,
    /// Numbers by name, see [`METRICS`].
    pub metrics: BTreeMap<String, Spread>,
    /// This by the reference, of the number the scenario is about.
    pub ratio: Option<Spread>,
    /// Answers compared with expected ones.
    pub compared: u32,
    /// Answers in all.
    pub answered: u64,
    /// Failures by kind.
    pub failures: BTreeMap<String, u64>,
    /// Latencies of all rounds, `[microseconds, count]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
    /// Memory of the first round that counts, `[seconds, bytes]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<(f64, u64)>,
    /// Rates, each with its numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepSummary>,
}

impl Row {
    /// How often requests failed in which way, in words; `None`: none did.
    pub fn failed(&self) -> Option<String> {
        let kinds = self
            .failures
            .iter()
            .map(|(kind, n)| format!("{n} × {kind}"));
        let kinds: Vec<String> = kinds.collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }
}

/// One rate in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// Requests per second.
    pub rate: f64,
    /// Numbers by name.
    pub metrics: BTreeMap<String, Spread>,
}

/// A number over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Names of numbers, what they are, and how they are written.
pub const METRICS: [(&str, &str, Unit); 28] = [
    ("p50", "p50", Unit::Millis),
    ("p90", "p90", Unit::Millis),
    ("p95", "p95", Unit::Millis),
    ("p99", "p99", Unit::Millis),
    ("p99.9", "p99.9", Unit::Millis),
    ("max", "max", Unit::Millis),
    ("mean", "mean", Unit::Millis),
    ("throughput", "answers/s", Unit::Number),
    ("failed", "failed", Unit::Percent),
    ("unfinished", "not answered in time", Unit::Percent),
    ("per_core_second", "answers per CPU-second", Unit::Number),
    ("per_core_second_max", "by largest CPU", Unit::Number),
    ("per_gb_second", "answers/s per GB", Unit::Number),
    ("cpu", "CPUs used", Unit::Number),
    ("cpu_max", "largest", Unit::Number),
    ("pss_mean", "memory, mean", Unit::Bytes),
    ("pss_peak", "memory, peak", Unit::Bytes),
    ("rss_peak", "resident, peak", Unit::Bytes),
    ("idle_pss", "memory, idle", Unit::Bytes),
    (
        "subgraph_requests",
        "subgraph requests per request",
        Unit::Number,
    ),
    ("ready", "start to ready", Unit::Millis),
    ("start", "start to first answer", Unit::Millis),
    ("rate", "highest rate kept up with", Unit::Number),
    ("lost", "events lost", Unit::Percent),
    ("silent", "lost without a word", Unit::Percent),
    ("upstreams", "subscriptions at the source", Unit::Number),
    ("bytes_each", "memory by subscription", Unit::Kibibytes),
    ("whole", "last part, p50", Unit::Millis),
];

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Bytes, shown as MiB.
    Bytes,
    /// Bytes, shown as KiB.
    Kibibytes,
    /// A share, shown as percent.
    Percent,
    /// A number.
    Number,
}

impl Goal {
    /// The name of the number among [`METRICS`].
    pub fn metric(self) -> &'static str {
        match self {
            Goal::P50 => "p50",
            Goal::P99 => "p99",
            Goal::Throughput => "throughput",
            Goal::Efficiency => "per_core_second",
            Goal::Memory => "pss_peak",
            Goal::SubgraphRequests => "subgraph_requests",
            Goal::Start => "start",
            Goal::Rate => "rate",
            Goal::Lost => "lost",
            Goal::Subscription => "bytes_each",
        }
    }
    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Goal::Throughput | Goal::Efficiency | Goal::Rate)
    }
}

impl Spread {
    /// Over some numbers; none over none.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.retain(|v| v.is_finite());
        values.sort_by(f64::total_cmp);
        let (first, last) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        Some(Spread {
            median,
            min: *first,
            max: *last,
        })
    }

    /// Whether smallest and largest differ by more than a fifth of the median.
    pub fn is_noisy(&self) -> bool {
        self.max - self.min > self.median.abs() * 0.2
    }
}

impl Unit {
    /// Writes a number.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Millis => significant(value),
            Unit::Bytes => significant(value / f64::from(1 << 20)),
            Unit::Kibibytes => significant(value / 1024.0),
            Unit::Percent => format!("{} %", significant(value * 100.0)),
            Unit::Number => significant(value),
        }
    }
    /// Behind a heading.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Millis => ", ms",
            Unit::Bytes => ", MiB",
            Unit::Kibibytes => ", KiB",
            Unit::Percent | Unit::Number => "",
        }
    }
}

/// Three digits that mean something.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        s if s >= 100.0 || s == 0.0 => format!("{value:.0}"),
        s if s >= 10.0 => format!("{value:.1}"),
        s if s >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false if size >= 10_000.0 => grouped(&text),
        false => text,
    }
}

fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && c != '-' && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out
}

impl Row {
    /// Its name with a sign if there is something to know about it.
    pub fn marked_title(&self) -> String {
        if self.flags.is_empty() {
            self.title.clone()
        } else {
            format!("{} ⚠", self.title)
        }
    }
}

impl Summary {
    /// Sums runs up.
    pub fn new(campaign: Campaign, runs: &[Run]) -> Summary {
        let scenarios = campaign
            .scenarios
            .iter()
            .map(|(name, info)| scenario(name, info, &campaign, runs))
            .collect();
        Summary {
            campaign,
            scenarios,
        }
    }

    /// The summary of one gateway in one scenario.
    pub fn row(&self, scenario: &str, gateway: &str) -> Option<&Row> {
        let scenario = self.scenarios.iter().find(|s| s.name == scenario)?;
        scenario.rows.iter().find(|r| r.gateway == gateway)
    }
}

fn scenario(name: &str, info: &ScenarioInfo, campaign: &Campaign, runs: &[Run]) -> ScenarioSummary {
    let mut by_gateway: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.scenario == name) {
        by_gateway.entry(&run.gateway).or_default().push(run);
    }
    let reference = by_gateway.get(REFERENCE).cloned().unwrap_or_default();
    let mut rows: Vec<Row> = by_gateway
        .iter()
        .map(|(gateway, runs)| {
            let title = campaign
                .gateways
                .get(*gateway)
                .map_or(*gateway, |g| &g.title);
            let mut row = row(gateway, title, runs);
            row.ratio = ratio(info.key, runs, &reference);
            row
        })
        .collect();
    let p99 = |row: &Row| row.metrics.get("p99").map_or(f64::INFINITY, |s| s.median);
    rows.sort_by(|a, b| {
        let counts = |row: &Row| row.verdict != Verdict::Ok;
        let value = |row: &Row| {
            let value = row
                .metrics
                .get(info.key.metric())
                .map_or(f64::INFINITY, |s| s.median);
            if info.key.more_is_better() && value.is_finite() {
                -value
            } else {
                value
            }
        };
        counts(a)
            .cmp(&counts(b))
            .then(value(a).total_cmp(&value(b)))
            // Rates are few: who kept up with the same one is told apart by latency.
            .then(p99(a).total_cmp(&p99(b)))
    });
    ScenarioSummary {
        name: name.to_owned(),
        info: info.clone(),
        rows,
    }
}

fn row(gateway: &str, title: &str, runs: &[&Run]) -> Row {
    let verdict = runs
        .iter()
        .map(|run| &run.verdict)
        .find(|v| **v != Verdict::Ok);
    let measured: Vec<&&Run> = runs
        .iter()
        .filter(|run| run.round > 0 && run.verdict == Verdict::Ok)
        .collect();
    let once = |of: fn(&Run) -> &Vec<String>| {
        let mut texts: Vec<String> = Vec::new();
        for text in runs.iter().flat_map(|run| of(run)) {
            if !texts.contains(text) {
                texts.push(text.clone());
            }
        }
        texts
    };
    let (flags, notes) = (once(|run| &run.flags), once(|run| &run.notes));
    let mut metrics = BTreeMap::new();
    for (name, _, _) in METRICS {
        let values = measured
            .iter()
            .filter_map(|run| metric(name, run))
            .collect();
        if let Some(spread) = Spread::of(values) {
            metrics.insert(name.to_owned(), spread);
        }
    }
    let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    let mut answered = 0;
    let mut compared = 0;
    for run in runs {
        let c = &run.checked;
        compared += c.before + c.during + c.odd + c.after;
        for load in run
            .load
            .iter()
            .chain(run.steps.iter().map(|step| &step.load))
        {
            answered += load.answered;
            for (kind, n) in &load.failures {
                *failures.entry(kind.clone()).or_default() += n;
            }
        }
    }
    for load in measured.iter().filter_map(|run| run.load.as_ref()) {
        for (value, n) in &load.histogram {
            *histogram.entry(*value).or_default() += n;
        }
    }
    let memory = measured
        .iter()
        .find_map(|run| run.usage.as_ref())
        .map(|usage| {
            let point = |s: &crate::usage::Sample| s.pss.map(|pss| (s.t, pss));
            usage.samples.iter().filter_map(point).collect()
        });
    Row {
        gateway: gateway.to_owned(),
        title: title.to_owned(),
        verdict: verdict.cloned().unwrap_or(Verdict::Ok),
        flags,
        notes,
        rounds: measured.len() as u32,
        cpus: measured.iter().map(|run| run.cpus.len()).max().unwrap_or(0),
        metrics,
        ratio: None,
        compared,
        answered,
        failures,
        histogram: histogram.into_iter().collect(),
        memory: memory.unwrap_or_default(),
        steps: steps(&measured),
    }
}

fn steps(runs: &[&&Run]) -> Vec<StepSummary> {
    let n = runs.iter().map(|run| run.steps.len()).max().unwrap_or(0);
    let mut out = Vec::new();
    for i in 0..n {
        let of_rounds: Vec<_> = runs.iter().filter_map(|run| run.steps.get(i)).collect();
        let Some(first) = of_rounds.first() else {
            continue;
        };
        let mut metrics = BTreeMap::new();
        for (name, _, _) in METRICS {
            let values = of_rounds
                .iter()
                .filter_map(|s| load_metric(name, &s.load, Some(&s.usage)))
                .collect();
            if let Some(spread) = Spread::of(values) {
                metrics.insert(name.to_owned(), spread);
            }
        }
        out.push(StepSummary {
            rate: first.rate,
            metrics,
        });
    }
    out
}

/// This by the reference in each round both have.
fn ratio(key: Goal, runs: &[&Run], reference: &[&Run]) -> Option<Spread> {
    let value = |run: &Run| {
        (run.verdict == Verdict::Ok)
            .then(|| metric(key.metric(), run))
            .flatten()
    };
    let pairs = runs.iter().filter_map(|run| {
        let other = reference
            .iter()
            .find(|r| r.round == run.round && r.round > 0)?;
        Some(value(run)? / value(other)?)
    });
    Spread::of(pairs.collect())
}

/// A number of a run.
pub fn metric(name: &str, run: &Run) -> Option<f64> {
    match name {
        "subgraph_requests" => run.subgraphs.map(|s| s.per_request),
        "ready" => run.ready_ms,
        "idle_pss" => run.idle_pss.map(|b| b as f64),
        "lost" => run.delivery.map(|d| d.lost_share()),
        "silent" => run.delivery.map(|d| d.silent_share()),
        "upstreams" => run.delivery.map(|d| d.upstreams as f64),
        "bytes_each" => run.delivery?.bytes_each,
        "whole" => run.whole_ms,
        "start" => Spread::of(run.starts_ms.clone()).map(|s| s.median),
        "rate" if run.steps.is_empty() => None,
        "rate" => Some(kept_up(run).map_or(0.0, |step| step.rate)),
        _ => match (&run.load, run.steps.last()) {
            (Some(load), _) => load_metric(name, load, run.usage.as_ref()),
            // Of rising rates, the highest one that was kept up with stands for all.
            (None, Some(_)) => {
                let step = kept_up(run)?;
                load_metric(name, &step.load, Some(&step.usage))
            }
            (None, None) => None,
        },
    }
}

/// Of rising rates, the highest a gateway kept up with: nearly nothing is lost, and the last answer comes soon after the
/// last request, measured by what an answer takes at the lowest rate.
fn kept_up(run: &Run) -> Option<&Step> {
    let base = run.steps.first()?.load.millis("p50")? / 1e3;
    run.steps.iter().rev().find(|step| {
        let load = &step.load;
        let offered = (load.answered + load.failed + load.unfinished) as f64 / step.rate;
        let lost = load.failure_share() + load.unfinished_share();
        lost < 0.01 && load.seconds - offered <= base * 1.25 + offered * 0.05
    })
}

fn load_metric(name: &str, load: &LoadResult, usage: Option<&Measured>) -> Option<f64> {
    let wall = |usage: &Measured| (usage.wall_seconds > 0.0).then_some(usage.wall_seconds);
    let answered = load.answered as f64;
    match name {
        "throughput" => Some(load.throughput()),
        "failed" => Some(load.failure_share()),
        "unfinished" => Some(load.unfinished_share()),
        "per_core_second" => usage
            .filter(|u| u.cpu_seconds > 0.0)
            .map(|u| answered / u.cpu_seconds),
        "per_core_second_max" => usage
            .filter(|u| u.cpu_max > 0.0)
            .map(|u| load.throughput() / u.cpu_max),
        "per_gb_second" => {
            let gb = usage?.pss_mean as f64 / 1e9;
            (gb > 0.0).then(|| load.throughput() / gb)
        }
        "cpu" => usage.and_then(|u| Some(u.cpu_seconds / wall(u)?)),
        "cpu_max" => usage.map(|u| u.cpu_max),
        "pss_mean" => usage.map(|u| u.pss_mean as f64),
        "pss_peak" => usage.map(|u| u.pss_peak as f64),
        "rss_peak" => usage.map(|u| u.rss_peak as f64),
        _ => load.millis(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_and_numbers_for_people() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0, f64::NAN]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert!(spread.is_noisy());
        assert_eq!(Spread::of(vec![]), None);
        let shown: Vec<String> = [
            0.0,
            0.01234,
            1.0,
            1.234,
            12.34,
            123.4,
            12_345.0,
            1_234_567.0,
        ]
        .into_iter()
        .map(significant)
        .collect();
        assert_eq!(
            shown,
            [
                "0",
                "0.012",
                "1",
                "1.23",
                "12.3",
                "123",
                "12,345",
                "1,234,567"
            ]
        );
        assert_eq!(Unit::Bytes.show(3.0 * 1_048_576.0), "3");
    }
}
