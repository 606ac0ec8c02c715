//! The report as Markdown: what was run where, then a table per scenario with its goal and caveats.

use std::fmt::Write as _;

use super::summary::{METRICS, Row, ScenarioSummary, Spread, Summary, Unit, significant};
use crate::{
    model::{Features, Goal},
    record::Verdict,
};

/// Columns beside the number a scenario is about.
const COLUMNS: [&str; 17] = [
    "p50",
    "p99",
    "p99.9",
    "throughput",
    "failed",
    "unfinished",
    "per_core_second",
    "per_gb_second",
    "pss_peak",
    "subgraph_requests",
    "ready",
    "start",
    "lost",
    "silent",
    "upstreams",
    "bytes_each",
    "whole",
];

/// Renders a summary.
pub fn render(summary: &Summary, features: Option<&Features>) -> String {
    let mut out = String::from("# Benchmark report\n\n");
    head(&mut out, summary);
    for scenario in &summary.scenarios {
        self::scenario(&mut out, scenario);
    }
    if let Some(features) = features {
        matrix(&mut out, features);
    }
    out.push_str("\nWhat each number means, and what it does not: `docs/bench-methodology.md`.\n");
    out
}

fn head(out: &mut String, summary: &Summary) {
    let campaign = &summary.campaign;
    let machine = &campaign.machine;
    let _ = writeln!(
        out,
        "Begun {}, {} round(s), lab {}.\n\n{}, {} CPUs, {} GiB, {}, Linux {}{}.",
        campaign.started,
        campaign.rounds,
        campaign.lab,
        machine.cpu,
        machine.cpus,
        machine.memory >> 30,
        machine.system,
        machine.kernel,
        machine
            .governor
            .as_ref()
            .map_or(String::new(), |g| format!(", governor {g}"))
    );
    let _ = writeln!(out, "\n```sh\n{}\n```\n", campaign.command.join(" "));
    for note in &campaign.notes {
        let _ = writeln!(out, "> **Note:** {note}\n");
    }
    for moment in &campaign.resumed {
        let _ = writeln!(out, "> **Note:** continued {moment}\n");
    }
    out.push_str(
        "| gateway | version | written in | licence | program, MB |\n|---|---|---|---|---|\n",
    );
    for (name, gateway) in &campaign.gateways {
        let version = match &gateway.missing {
            Some(reason) => format!("*not here: {}*", cell(reason)),
            None => cell(&gateway.version),
        };
        let bytes = gateway
            .binary_bytes
            .map_or(String::new(), |b| significant(b as f64 / 1e6));
        let _ = writeln!(
            out,
            "| {} (`{name}`) | {version} | {} | {} | {bytes} |",
            cell(&gateway.title),
            gateway.language,
            gateway.licence
        );
    }
}

fn scenario(out: &mut String, scenario: &ScenarioSummary) {
    let info = &scenario.info;
    let _ = writeln!(
        out,
        "\n## {} (`{}`)\n\n{}\n",
        info.title, scenario.name, info.goal
    );
    let shortened = info.shortened.as_deref();
    let shortened = shortened.map_or(String::new(), |words| format!(" ({words})"));
    let settings = info.settings.join("; ");
    let _ = writeln!(out, "Load: {}{shortened}. {settings}.", info.load);
    if !info.seeds.is_empty() {
        let _ = writeln!(out, "Published as: {}.", info.seeds.join(", "));
    }
    out.push('\n');
    out.push_str(&table(scenario));
    steps(out, scenario);
    for row in &scenario.rows {
        for flag in &row.flags {
            let _ = writeln!(out, "- ⚠ **{}**: {}", row.title, flag);
        }
        for note in &row.notes {
            let _ = writeln!(out, "- **{}**: {}", row.title, note);
        }
        if let Some(kinds) = row.failed() {
            let _ = writeln!(out, "- **{}** failed: {}", row.title, kinds);
        }
    }
    if !info.caveats.is_empty() {
        out.push_str("\nWhat this does not say:\n\n");
        for caveat in &info.caveats {
            let _ = writeln!(out, "- {caveat}");
        }
    }
}

/// The table of one scenario; also what the command line prints.
pub fn table(scenario: &ScenarioSummary) -> String {
    let key = scenario.info.key;
    let present = |name: &str| {
        scenario
            .rows
            .iter()
            .any(|row| row.metrics.contains_key(name))
    };
    let columns: Vec<(&str, &str, Unit)> = METRICS
        .iter()
        .copied()
        .filter(|(name, _, _)| *name == key.metric() || COLUMNS.contains(name))
        .filter(|(name, _, _)| present(name))
        .collect();
    let mut out = String::from("| gateway |");
    for (name, title, unit) in &columns {
        let mark = if *name == key.metric() { "**" } else { "" };
        let _ = write!(out, " {mark}{title}{}{mark} |", unit.suffix());
    }
    out.push_str(" × Ogive | compared | remarks |\n|---|");
    out.push_str(&"---:|".repeat(columns.len() + 2));
    out.push_str("---|\n");
    for row in &scenario.rows {
        let title = match row.verdict {
            Verdict::Ok => row.title.clone(),
            _ => format!("~~{}~~", row.title),
        };
        let _ = write!(out, "| {title} |");
        for (name, _, unit) in &columns {
            let text = match (&row.verdict, row.metrics.get(*name)) {
                (Verdict::Ok, Some(spread)) => shown(spread, *unit),
                _ => String::new(),
            };
            let _ = write!(out, " {text} |");
        }
        let ratio = match row.verdict {
            Verdict::Ok => row.ratio.map_or(String::new(), |r| significant(r.median)),
            _ => String::new(),
        };
        let _ = writeln!(out, " {ratio} | {} | {} |", row.compared, remark(row, key));
    }
    out
}

fn steps(out: &mut String, scenario: &ScenarioSummary) {
    let mut rates: Vec<f64> = scenario
        .rows
        .iter()
        .flat_map(|r| r.steps.iter().map(|s| s.rate))
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    if rates.is_empty() {
        return;
    }
    out.push_str("\np99 in ms by requests/s (answered, if less than 99 %):\n\n| gateway |");
    for rate in &rates {
        let _ = write!(out, " {rate} |");
    }
    let _ = writeln!(out, "\n|---|{}", "---:|".repeat(rates.len()));
    for row in scenario.rows.iter().filter(|row| !row.steps.is_empty()) {
        let _ = write!(out, "| {} |", row.title);
        for rate in &rates {
            let step = row.steps.iter().find(|step| step.rate == *rate);
            let value = |name: &str| step.and_then(|s| s.metrics.get(name)).map(|s| s.median);
            let p99 = value("p99").map_or("–".to_owned(), significant);
            let lost = value("failed").unwrap_or(0.0) + value("unfinished").unwrap_or(0.0);
            match Some(lost).filter(|lost| *lost > 0.01) {
                Some(failed) => drop(write!(
                    out,
                    " {p99} ({} %) |",
                    significant((1.0 - failed) * 100.0)
                )),
                None => drop(write!(out, " {p99} |")),
            }
        }
        out.push('\n');
    }
    out.push('\n');
}

/// A number with its smallest and largest, where there are several.
pub fn shown(spread: &Spread, unit: Unit) -> String {
    let middle = unit.show(spread.median);
    if spread.min == spread.max {
        return middle;
    }
    format!(
        "{middle} ({} to {})",
        unit.show(spread.min),
        unit.show(spread.max)
    )
}

fn remark(row: &Row, key: Goal) -> String {
    if let Some(reason) = row.verdict.reason() {
        let line = reason.lines().next().unwrap_or_default();
        return format!("**{}**: {}", row.verdict.word(), cell(line));
    }
    let mut remarks = Vec::new();
    if !row.flags.is_empty() {
        remarks.push("⚠ see below".to_owned());
    }
    if row.rounds > 1 && row.metrics.get(key.metric()).is_some_and(Spread::is_noisy) {
        remarks.push("noisy".to_owned());
    }
    remarks.join("; ")
}

fn matrix(out: &mut String, features: &Features) {
    let _ = writeln!(out, "\n## Beside speed\n\n{}\n", features.note);
    let _ = writeln!(
        out,
        "| | {} |\n|---|{}",
        features.gateways.join(" | "),
        "---|".repeat(features.gateways.len())
    );
    for row in &features.row {
        let _ = write!(out, "| {} |", row.title);
        for gateway in &features.gateways {
            let _ = write!(
                out,
                " {} |",
                row.cells.get(gateway).map_or("?", String::as_str)
            );
        }
        out.push('\n');
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
