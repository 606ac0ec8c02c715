//! Two campaigns side by side: what became better, what became worse, and what is within noise.

use std::fmt::Write as _;

use serde::Serialize;

use super::summary::{METRICS, Spread, Summary};
use crate::record::Verdict;

/// Numbers compared beside the one a scenario is about.
const ALSO: [&str; 5] = [
    "p50",
    "p99",
    "per_core_second",
    "pss_peak",
    "subgraph_requests",
];
/// A change below this is never called one.
const SMALL: f64 = 0.02;

/// One number of one gateway in one scenario, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The scenario.
    pub scenario: String,
    /// The gateway.
    pub gateway: String,
    /// The number.
    pub metric: String,
    /// Before.
    pub before: Spread,
    /// After.
    pub after: Spread,
    /// After by before.
    pub ratio: f64,
    /// What to think of it.
    pub judgement: Judgement,
}

/// What to think of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The rounds overlap or the change is small.
    Same,
    /// Better, and no round of one is like a round of the other.
    Better,
    /// Worse in the same way.
    Worse,
}

/// What differs beside numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Numbers.
    pub changes: Vec<Change>,
    /// Verdicts that changed, gateways and scenarios that are in one only.
    pub remarks: Vec<String>,
}

/// Compares two campaigns.
pub fn compare(before: &Summary, after: &Summary) -> Comparison {
    let mut changes = Vec::new();
    let mut remarks = Vec::new();
    if before.campaign.machine.cpu != after.campaign.machine.cpu {
        remarks.push(format!(
            "other machines: {} and {}; compare ratios within each, not these numbers",
            before.campaign.machine.cpu, after.campaign.machine.cpu
        ));
    }
    for scenario in &before.scenarios {
        let Some(new) = after.scenarios.iter().find(|s| s.name == scenario.name) else {
            remarks.push(format!("{}: only in the first", scenario.name));
            continue;
        };
        if scenario.info.load != new.info.load {
            remarks.push(format!(
                "{}: another load ({}; {})",
                scenario.name, scenario.info.load, new.info.load
            ));
        }
        for row in &scenario.rows {
            let Some(other) = after.row(&scenario.name, &row.gateway) else {
                remarks.push(format!(
                    "{}: {} only in the first",
                    scenario.name, row.gateway
                ));
                continue;
            };
            if row.verdict.word() != other.verdict.word() {
                remarks.push(format!(
                    "{}: {} was {}, is {}",
                    scenario.name,
                    row.gateway,
                    row.verdict.word(),
                    other.verdict.word()
                ));
            }
            if row.verdict != Verdict::Ok || other.verdict != Verdict::Ok {
                continue;
            }
            for (name, _, _) in METRICS {
                let wanted = name == scenario.info.key.metric() || ALSO.contains(&name);
                if let (true, Some(a), Some(b)) =
                    (wanted, row.metrics.get(name), other.metrics.get(name))
                {
                    changes.push(Change {
                        scenario: scenario.name.clone(),
                        gateway: row.gateway.clone(),
                        metric: name.to_owned(),
                        before: *a,
                        after: *b,
                        ratio: b.median / a.median,
                        judgement: judge(name, a, b),
                    });
                }
            }
        }
    }
    for scenario in &after.scenarios {
        if !before.scenarios.iter().any(|s| s.name == scenario.name) {
            remarks.push(format!("{}: only in the second", scenario.name));
        }
    }
    Comparison { changes, remarks }
}

fn judge(metric: &str, before: &Spread, after: &Spread) -> Judgement {
    let apart = before.max < after.min || after.max < before.min;
    let change = after.median / before.median - 1.0;
    if !apart || change.abs() < SMALL || !change.is_finite() {
        return Judgement::Same;
    }
    let more_is_better = [
        "throughput",
        "per_core_second",
        "per_core_second_max",
        "per_gb_second",
        "rate",
    ]
    .contains(&metric);
    if (change > 0.0) == more_is_better {
        Judgement::Better
    } else {
        Judgement::Worse
    }
}

/// As Markdown: what changed first.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::from("# Comparison\n\n");
    for remark in &comparison.remarks {
        let _ = writeln!(out, "- {remark}");
    }
    if !comparison.remarks.is_empty() {
        out.push('\n');
    }
    out.push_str("| scenario | gateway | number | before | after | × | |\n|---|---|---|---:|---:|---:|---|\n");
    let mut changes: Vec<&Change> = comparison.changes.iter().collect();
    changes.sort_by_key(|change| match change.judgement {
        Judgement::Worse => 0,
        Judgement::Better => 1,
        Judgement::Same => 2,
    });
    for change in changes {
        let known = METRICS.iter().find(|(name, _, _)| *name == change.metric);
        let (title, unit) = known.map_or(
            (change.metric.as_str(), super::summary::Unit::Number),
            |m| (m.1, m.2),
        );
        let word = match change.judgement {
            Judgement::Same => "",
            Judgement::Better => "better",
            Judgement::Worse => "**worse**",
        };
        let _ = writeln!(
            out,
            "| {} | {} | {title}{} | {} | {} | {:.2} | {word} |",
            change.scenario,
            change.gateway,
            unit.suffix(),
            super::markdown::shown(&change.before, unit),
            super::markdown::shown(&change.after, unit),
            change.ratio
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_rounds_are_no_change() {
        let spread = |min: f64, median: f64, max: f64| Spread { median, min, max };
        let before = spread(9.0, 10.0, 11.0);
        assert_eq!(
            judge("p50", &before, &spread(10.5, 12.0, 13.0)),
            Judgement::Same
        );
        assert_eq!(
            judge("p50", &before, &spread(12.0, 13.0, 14.0)),
            Judgement::Worse
        );
        assert_eq!(
            judge("throughput", &before, &spread(12.0, 13.0, 14.0)),
            Judgement::Better
        );
        assert_eq!(
            judge("p50", &spread(10.0, 10.0, 10.0), &spread(10.1, 10.1, 10.1)),
            Judgement::Same
        );
    }
}
