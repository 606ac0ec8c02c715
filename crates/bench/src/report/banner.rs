//! The chart and the section of the README: one scenario as an image, and where the reference stands in every scenario,
//! won or lost.

use std::fmt::Write as _;

use ogive_base::escape_markup;

use super::summary::{FLOOR, METRICS, REFERENCE, Row, ScenarioSummary, Summary, Unit, significant};
use crate::{model::Goal, record::Verdict};

/// What the section begins and ends with.
pub const START: &str = "<!-- bench:start (written by `ogive bench chart`) -->";
/// See [`START`].
pub const END: &str = "<!-- bench:end -->";

const WIDTH: f64 = 860.0;
const ROW: f64 = 30.0;
const TOP: f64 = 78.0;
/// Left edge and width of the three columns.
const COLUMNS: [(f64, f64); 3] = [(234.0, 190.0), (440.0, 214.0), (672.0, 174.0)];
/// Room behind a bar for its number.
const LABEL: f64 = 62.0;

/// One scenario as an image: efficiency, latency and memory of each gateway, light and dark.
pub fn chart(summary: &Summary, scenario: &ScenarioSummary) -> String {
    let (mut good, mut out): (Vec<&Row>, Vec<&Row>) = scenario
        .rows
        .iter()
        .partition(|row| row.verdict == Verdict::Ok);
    let efficiency = |row: &Row| median(row, Goal::Efficiency.metric()).unwrap_or(0.0);
    good.sort_by(|a, b| efficiency(b).total_cmp(&efficiency(a)));
    out.sort_by(|a, b| a.title.cmp(&b.title));
    let height = TOP + ROW * (good.len() + out.len()) as f64 + 46.0;
    let title = format!("{}: {}", scenario.info.title, scenario.info.load);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{0}\">\
         <title>{0}</title><style>{STYLE}</style><rect class=\"card\" width=\"{WIDTH}\" height=\"{height}\" rx=\"10\"/>\
         <text x=\"16\" y=\"28\" class=\"title\">{0}</text>",
        escape_markup(&title)
    );
    let heads = [
        "↑ answers per CPU-second",
        "↓ latency p50 – p99, ms (log scale)",
        "↓ memory, peak, MiB",
    ];
    for ((x, _), head) in COLUMNS.iter().zip(heads) {
        let _ = write!(text, "<text x=\"{x}\" y=\"58\" class=\"dim\">{head}</text>");
    }
    let most = |name: &str| {
        let values = good.iter().filter_map(|row| median(row, name));
        values.fold(0.0, f64::max)
    };
    let (fastest, largest) = (most("per_core_second"), most("pss_peak"));
    let latencies = Latencies::of(&good);
    for (i, row) in good.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let own = if row.gateway == REFERENCE { " own" } else { "" };
        let _ = write!(
            text,
            "<text x=\"16\" y=\"{}\" class=\"name{own}\">{}</text>",
            y + 15.0,
            escape_markup(&short(&row.marked_title(), 30))
        );
        if let Some(value) = median(row, "per_core_second") {
            bar(
                &mut text,
                COLUMNS[0],
                y,
                value / fastest,
                &significant(value),
                own,
            );
        }
        latencies.draw(&mut text, row, y, own);
        if let Some(value) = median(row, "pss_peak") {
            let label = Unit::Bytes.show(value);
            bar(&mut text, COLUMNS[2], y, value / largest, &label, own);
        }
    }
    for (i, row) in out.iter().enumerate() {
        let y = TOP + ROW * (good.len() + i) as f64 + 15.0;
        let reason = row.verdict.reason().unwrap_or_default();
        let line = reason.lines().next().unwrap_or_default();
        let _ = write!(
            text,
            "<text x=\"16\" y=\"{y}\" class=\"dim\">{}</text><text x=\"{}\" y=\"{y}\" class=\"dim\">{}: {}</text>",
            escape_markup(&short(&row.title, 30)),
            COLUMNS[0].0,
            row.verdict.word(),
            escape_markup(&short(line, 90))
        );
    }
    let machine = &summary.campaign.machine;
    let cpus = good
        .iter()
        .map(|row| row.cpus)
        .max()
        .filter(|n| *n > 0)
        .map_or(String::new(), |n| format!(", {n} for the gateway"));
    let marked = if good.iter().any(|row| !row.flags.is_empty()) {
        " · ⚠ see the report"
    } else {
        ""
    };
    let foot = format!(
        "↑ more, ↓ less is better · {}, {} CPUs{cpus} · {} · medians of up to {} round(s){marked}",
        machine.cpu,
        machine.cpus,
        summary.campaign.started.get(..10).unwrap_or_default(),
        summary.campaign.rounds
    );
    let _ = writeln!(
        text,
        "<text x=\"16\" y=\"{}\" class=\"dim\">{}</text></svg>",
        height - 16.0,
        escape_markup(&foot)
    );
    text
}

const STYLE: &str = "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#16181d}\
.title{font-size:16px;font-weight:600}.dim{font-size:11.5px;fill:#5b6270}.own{font-weight:700}\
.card{fill:#f7f8fa;stroke:#dfe3ea}.bar{fill:#9aa5b8}.bar.own{fill:#0b62d6}.dot{fill:#5b6270}.dot.own{fill:#0b62d6}\
@media (prefers-color-scheme:dark){text{fill:#e7e9ee}.dim{fill:#9aa3b2}.card{fill:#171a21;stroke:#2a2f3a}\
.bar{fill:#566175}.bar.own{fill:#60a5fa}.dot{fill:#b6bfce}.dot.own{fill:#60a5fa}}";

fn median(row: &Row, name: &str) -> Option<f64> {
    row.metrics.get(name).map(|spread| spread.median)
}

fn bar(text: &mut String, (x, width): (f64, f64), y: f64, part: f64, label: &str, own: &str) {
    let length = ((width - LABEL) * part.clamp(0.0, 1.0)).max(2.0);
    let _ = write!(
        text,
        "<rect x=\"{x}\" y=\"{}\" width=\"{length:.1}\" height=\"16\" rx=\"2\" class=\"bar{own}\"/>\
         <text x=\"{:.1}\" y=\"{}\" class=\"name{own}\">{label}</text>",
        y + 2.0,
        x + length + 6.0,
        y + 15.0
    );
}

/// The scale of latencies, by powers of ten.
struct Latencies {
    low: f64,
    high: f64,
}

impl Latencies {
    fn of(rows: &[&Row]) -> Latencies {
        let all = || {
            rows.iter()
                .flat_map(|row| [median(row, "p50"), median(row, "p99")])
                .flatten()
                .filter(|ms| *ms > 0.0)
                .map(f64::log10)
        };
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        Latencies {
            low: if low.is_finite() { low } else { 0.0 },
            high: if high > low { high } else { low.max(0.0) + 1.0 },
        }
    }

    fn draw(&self, text: &mut String, row: &Row, y: f64, own: &str) {
        let (Some(p50), Some(p99)) = (median(row, "p50"), median(row, "p99")) else {
            return;
        };
        let (x, width) = COLUMNS[1];
        let room = width - LABEL - 42.0;
        let place = |ms: f64| {
            let part = (ms.max(1e-3).log10() - self.low) / (self.high - self.low);
            x + 4.0 + room * part.clamp(0.0, 1.0)
        };
        let (from, to) = (place(p50), place(p99));
        let _ = write!(
            text,
            "<rect x=\"{from:.1}\" y=\"{}\" width=\"{:.1}\" height=\"4\" rx=\"2\" class=\"bar{own}\"/>\
             <circle cx=\"{from:.1}\" cy=\"{}\" r=\"4.5\" class=\"dot{own}\"/>\
             <text x=\"{:.1}\" y=\"{}\" class=\"name{own}\">{} – {}</text>",
            y + 8.0,
            (to - from).max(2.0),
            y + 10.0,
            to + 9.0,
            y + 15.0,
            significant(p50),
            significant(p99)
        );
    }
}

fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// The section: the image, and where the reference stands in every scenario.
pub fn section(summary: &Summary, image: &str, run: &str) -> String {
    let campaign = &summary.campaign;
    let mut out = format!(
        "![One query on each gateway: efficiency, latency and memory]({image})\n\n\
         Measured {} on {} ({} CPUs) by one command; {} gateways, {} scenarios: [report]({run}/report.md), [raw data]({run}), [what the numbers mean](docs/bench-methodology.md).\n\n",
        campaign.started.get(..10).unwrap_or_default(),
        campaign.machine.cpu,
        campaign.machine.cpus,
        campaign
            .gateways
            .values()
            .filter(|g| g.missing.is_none())
            .count(),
        campaign.scenarios.len()
    );
    out.push_str(
        "| scenario | number | Ogive | best other gateway | Ogive is |\n|---|---|---:|---:|---|\n",
    );
    for scenario in &summary.scenarios {
        if let Some(line) = standing(scenario) {
            out.push_str(&line);
        }
    }
    out
}

/// One line: the number of the reference, the best other one, and the place of the reference.
fn standing(scenario: &ScenarioSummary) -> Option<String> {
    let key = scenario.info.key;
    let (metric, title, unit) = METRICS.iter().find(|m| m.0 == key.metric())?;
    let ranked: Vec<&Row> = scenario
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Ok && row.metrics.contains_key(*metric))
        .filter(|row| row.gateway != FLOOR)
        .collect();
    let place = ranked.iter().position(|row| row.gateway == REFERENCE);
    // Scenarios of other kinds of servers have no reference.
    if place.is_none() && !scenario.rows.iter().any(|row| row.gateway == REFERENCE) {
        return None;
    }
    let shown = |row: &Row| {
        let mark = if row.flags.is_empty() { "" } else { " ⚠" };
        median(row, metric).map(|value| format!("{}{mark}", unit.show(value)))
    };
    let own = place.and_then(|at| shown(ranked[at]));
    let other = ranked.iter().find(|row| row.gateway != REFERENCE);
    let best = other.and_then(|row| Some(format!("{} ({})", shown(row)?, row.title)));
    let standing = match place {
        Some(0) => format!("first of {}", ranked.len()),
        Some(at) => format!("**{} of {}**", at + 1, ranked.len()),
        None => "**out**".to_owned(),
    };
    let arrow = if key.more_is_better() { "↑" } else { "↓" };
    Some(format!(
        "| {} | {title}{} {arrow} | {} | {} | {standing} |\n",
        scenario.info.title,
        unit.suffix(),
        own.as_deref().unwrap_or("–"),
        best.as_deref().unwrap_or("–"),
    ))
}

/// A text with what stands between the marks replaced; `None`: it has no marks.
pub fn splice(text: &str, section: &str) -> Option<String> {
    let (before, rest) = text.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}\n{section}{END}{after}"))
}
