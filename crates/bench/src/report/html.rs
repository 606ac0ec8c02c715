//! The report as one HTML page without anything to fetch: charts inline, light and dark, readable on a phone.

use std::{collections::BTreeMap, fmt::Write as _};

use ogive_base::escape_markup;

use super::{
    markdown::shown,
    summary::{FLOOR, METRICS, Row, ScenarioSummary, Summary, Unit, significant},
    svg::{self, Axis, Bar, Line},
};
use crate::{
    model::{Features, Goal},
    record::Verdict,
};

/// Colours told apart; further gateways begin anew.
const COLOURS: usize = 16;

/// Renders a summary.
pub fn render(summary: &Summary, features: Option<&Features>) -> String {
    let campaign = &summary.campaign;
    let colours = colours(summary);
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    let _ = write!(
        out,
        "<title>Gateway benchmark, {}</title><style>{STYLE}</style></head><body>",
        escape_markup(&campaign.started)
    );
    out.push_str("<header><h1>Gateway benchmark</h1>");
    let machine = &campaign.machine;
    let _ = write!(
        out,
        "<p>{} · {} CPUs · {} GiB · {} · Linux {}<br>Begun {} · {} round(s) · lab {}</p>",
        escape_markup(&machine.cpu),
        machine.cpus,
        machine.memory >> 30,
        escape_markup(&machine.system),
        escape_markup(&machine.kernel),
        escape_markup(&campaign.started),
        campaign.rounds,
        escape_markup(&campaign.lab)
    );
    for note in &campaign.notes {
        let _ = write!(out, "<p class=\"note\">{}</p>", escape_markup(note));
    }
    for moment in &campaign.resumed {
        let _ = write!(
            out,
            "<p class=\"note\">continued {}</p>",
            escape_markup(moment)
        );
    }
    out.push_str("<nav>");
    for scenario in &summary.scenarios {
        let _ = write!(
            out,
            "<a href=\"#{}\">{}</a> ",
            escape_markup(&scenario.name),
            escape_markup(&scenario.info.title)
        );
    }
    out.push_str("</nav></header><main>");
    overview(&mut out, summary);
    for scenario in &summary.scenarios {
        section(&mut out, scenario, &colours);
    }
    gateways(&mut out, summary, &colours);
    if let Some(features) = features {
        matrix(&mut out, features);
    }
    let _ = write!(
        out,
        "<section><h2>How this was run</h2><pre>{}</pre><p>Raw data: <code>results.jsonl</code> and <code>campaign.json</code> beside this page. \
         Medians over rounds with smallest and largest; ratios are taken within a round. \
         What each number means, and what it does not: <code>docs/bench-methodology.md</code>.</p></section>",
        escape_markup(&campaign.command.join(" "))
    );
    out.push_str("</main></body></html>\n");
    out
}

/// Gateways in the order of their colours: the reference first, so that it looks the same on every page.
fn order(summary: &Summary) -> Vec<&str> {
    let mut names: Vec<&str> = summary
        .campaign
        .gateways
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_by_key(|name| (*name != super::summary::REFERENCE, *name));
    names
}

fn colours(summary: &Summary) -> BTreeMap<&str, usize> {
    let names = order(summary).into_iter().enumerate();
    names.map(|(i, name)| (name, i % COLOURS)).collect()
}

/// Every gateway in every scenario by the one number that is the scenario's question.
fn overview(out: &mut String, summary: &Summary) {
    let gateways: Vec<&str> = order(summary)
        .into_iter()
        .filter(|name| {
            summary
                .scenarios
                .iter()
                .any(|s| s.rows.iter().any(|r| r.gateway == *name))
        })
        .collect();
    out.push_str("<section><h2>At a glance</h2><div class=\"scroll\"><table><tr><th>scenario</th>");
    for name in &gateways {
        let title = summary
            .campaign
            .gateways
            .get(*name)
            .map_or(*name, |g| &g.title);
        let _ = write!(out, "<th>{}</th>", escape_markup(title));
    }
    out.push_str("</tr>");
    for scenario in &summary.scenarios {
        let key = scenario.info.key;
        let Some((metric, title, unit)) = METRICS.iter().find(|m| m.0 == key.metric()) else {
            continue;
        };
        let arrow = if key.more_is_better() { "↑" } else { "↓" };
        let _ = write!(
            out,
            "<tr><th><a href=\"#{}\">{}</a><br><span class=\"small\">{}{} {arrow}</span></th>",
            escape_markup(&scenario.name),
            escape_markup(&scenario.info.title),
            escape_markup(title),
            unit.suffix()
        );
        // Rows are in order of this number.
        let competes = |row: &&Row| row.gateway != FLOOR;
        let best = scenario.rows.iter().find(competes);
        let best = best.map(|row| row.gateway.as_str());
        for name in &gateways {
            let row = scenario.rows.iter().find(|row| row.gateway == *name);
            let spread = row.filter(counts).and_then(|row| row.metrics.get(*metric));
            let _ = match (row, spread) {
                (Some(row), Some(spread)) => {
                    let text = unit.show(spread.median);
                    let mark = if row.flags.is_empty() { "" } else { " ⚠" };
                    if best == Some(*name) {
                        write!(out, "<td class=\"key\"><b>{text}</b>{mark}</td>")
                    } else {
                        write!(out, "<td>{text}{mark}</td>")
                    }
                }
                (Some(row), None) => {
                    let reason = escape_markup(row.verdict.reason().unwrap_or("no such number"));
                    let word = if counts(&row) {
                        "–"
                    } else {
                        row.verdict.word()
                    };
                    write!(out, "<td class=\"out\" title=\"{reason}\">{word}</td>")
                }
                (None, _) => write!(out, "<td></td>"),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div><p class=\"small\">The one number each scenario is about; the best is marked. ↑ more is better, ↓ less is better, ⚠ see the remarks of the scenario.</p></section>");
}

fn section(out: &mut String, scenario: &ScenarioSummary, colours: &BTreeMap<&str, usize>) {
    let info = &scenario.info;
    let _ = write!(
        out,
        "<section id=\"{}\"><h2>{}</h2><p class=\"goal\">{}</p><p class=\"small\">{}{} · {}</p>",
        escape_markup(&scenario.name),
        escape_markup(&info.title),
        escape_markup(&info.goal),
        escape_markup(&info.load),
        info.shortened
            .as_deref()
            .map_or(String::new(), |words| format!(
                " ({})",
                escape_markup(words)
            )),
        escape_markup(&info.settings.join(" · ")).replace('`', "")
    );
    legend(out, scenario, colours);
    out.push_str("<div class=\"charts\">");
    for chart in charts(scenario, colours) {
        let _ = write!(
            out,
            "<figure><figcaption>{}</figcaption>{}</figure>",
            escape_markup(&chart.caption),
            chart.svg
        );
    }
    out.push_str("</div>");
    table(out, scenario);
    remarks(out, scenario);
    out.push_str("</section>");
}

fn counts(row: &&Row) -> bool {
    row.verdict == Verdict::Ok
}

fn legend(out: &mut String, scenario: &ScenarioSummary, colours: &BTreeMap<&str, usize>) {
    out.push_str("<p class=\"legend\">");
    for row in scenario.rows.iter().filter(counts) {
        let colour = colours.get(row.gateway.as_str()).copied().unwrap_or(0);
        let _ = write!(
            out,
            "<span><i class=\"b{colour}\"></i>{}</span> ",
            escape_markup(&row.marked_title())
        );
    }
    for row in scenario.rows.iter().filter(|row| !counts(row)) {
        let _ = write!(
            out,
            "<span class=\"out\">{} ({})</span> ",
            escape_markup(&row.title),
            row.verdict.word()
        );
    }
    out.push_str("</p>");
}

/// A chart with what it shows.
struct Chart {
    /// Its name in files.
    name: &'static str,
    caption: String,
    svg: String,
}

/// Charts that name their gateways, as files of their own.
pub fn files(summary: &Summary) -> Vec<(String, String)> {
    let colours = colours(summary);
    let mut out = Vec::new();
    for scenario in &summary.scenarios {
        let named = |chart: &Chart| !["percentiles", "rates", "memory"].contains(&chart.name);
        for chart in charts(scenario, &colours).into_iter().filter(named) {
            let name = format!("{}-{}", scenario.name, chart.name.replace('_', "-"));
            out.push((name, svg::standalone(&chart.svg, STYLE)));
        }
    }
    out
}

fn charts(scenario: &ScenarioSummary, colours: &BTreeMap<&str, usize>) -> Vec<Chart> {
    let colour = |row: &Row| colours.get(row.gateway.as_str()).copied().unwrap_or(0);
    let key = scenario.info.key;
    let mut names = vec![key.metric()];
    if key != Goal::Efficiency && key != Goal::Start {
        names.push(Goal::Efficiency.metric());
    }
    let mut out = Vec::new();
    for name in names {
        let Some((_, title, unit)) = METRICS.iter().find(|(n, _, _)| *n == name) else {
            continue;
        };
        if !scenario
            .rows
            .iter()
            .any(|row| row.metrics.contains_key(name))
        {
            continue;
        }
        let caption = format!("{}{}", capital(title), unit.suffix());
        let svg = svg::bars(&caption, &bars(scenario, name, *unit, &colour));
        let caption = better(&caption, name);
        out.push(Chart { name, caption, svg });
    }
    out.extend(percentiles(scenario, &colour));
    out.extend(rates(scenario, &colour));
    out.extend(memory(scenario, &colour));
    out
}

/// Latency by percentile, of gateways that have a histogram.
fn percentiles(scenario: &ScenarioSummary, colour: &dyn Fn(&Row) -> usize) -> Option<Chart> {
    let rows = scenario.rows.iter().filter(counts);
    let rows = rows.filter(|row| !row.histogram.is_empty());
    let ogives = rows.map(|row| line(row, colour, ogive(&row.histogram), false));
    let ogives: Vec<Line> = ogives.collect();
    (!ogives.is_empty()).then(|| Chart {
        name: "percentiles",
        caption: "Latency by percentile (the ogive), ms; less is better".to_owned(),
        svg: svg::lines(
            "Latency by percentile",
            "percentile",
            "ms",
            &Axis::Percentiles,
            &Axis::Log,
            &ogives,
        ),
    })
}

/// p99 by rate, of gateways that were asked at several.
fn rates(scenario: &ScenarioSummary, colour: &dyn Fn(&Row) -> usize) -> Option<Chart> {
    let rows = scenario.rows.iter().filter(counts);
    let rows = rows.filter(|row| !row.steps.is_empty());
    let rates = rows.map(|row| {
        let point =
            |step: &super::summary::StepSummary| Some((step.rate, step.metrics.get("p99")?.median));
        line(
            row,
            colour,
            row.steps.iter().filter_map(point).collect(),
            true,
        )
    });
    let rates: Vec<Line> = rates.collect();
    (!rates.is_empty()).then(|| Chart {
        name: "rates",
        caption: "p99 against load, ms; less is better".to_owned(),
        svg: svg::lines(
            "p99 by rate",
            "requests/s",
            "ms",
            &Axis::Log,
            &Axis::Log,
            &rates,
        ),
    })
}

/// Memory over time, of gateways that were looked at more than once.
fn memory(scenario: &ScenarioSummary, colour: &dyn Fn(&Row) -> usize) -> Option<Chart> {
    let rows = scenario.rows.iter().filter(counts);
    let rows = rows.filter(|row| row.memory.len() > 1);
    let memory = rows.map(|row| {
        let points = row
            .memory
            .iter()
            .map(|(t, bytes)| (*t, *bytes as f64 / f64::from(1 << 20)));
        line(row, colour, points.collect(), false)
    });
    let memory: Vec<Line> = memory.collect();
    (!memory.is_empty()).then(|| Chart {
        name: "memory",
        caption: "Memory over time (proportional set), MiB".to_owned(),
        svg: svg::lines(
            "Memory over time",
            "seconds",
            "MiB",
            &Axis::Linear,
            &Axis::Linear,
            &memory,
        ),
    })
}

/// The line of a gateway.
fn line(row: &Row, colour: &dyn Fn(&Row) -> usize, points: Vec<(f64, f64)>, marks: bool) -> Line {
    Line {
        name: row.title.clone(),
        colour: colour(row),
        points,
        marks,
    }
}

fn better(caption: &str, name: &str) -> String {
    let more = ["throughput", "per_core_second", "per_gb_second", "rate"].contains(&name);
    format!(
        "{caption}; {} is better",
        if more { "more" } else { "less" }
    )
}

fn bars(
    scenario: &ScenarioSummary,
    name: &str,
    unit: Unit,
    colour: &dyn Fn(&Row) -> usize,
) -> Vec<Bar> {
    let mut bars: Vec<(f64, Bar)> = Vec::new();
    for row in &scenario.rows {
        let spread = row.metrics.get(name).filter(|_| row.verdict == Verdict::Ok);
        let reason = row
            .verdict
            .reason()
            .and_then(|r| r.lines().next())
            .unwrap_or("no such number");
        let label = match spread {
            Some(spread) => unit.show(spread.median),
            None => clipped(&format!("{}: {reason}", row.verdict.word()), 58),
        };
        let bar = Bar {
            name: row.marked_title(),
            colour: colour(row),
            value: spread.map(|s| (s.median, s.min, s.max)),
            label,
        };
        bars.push((spread.map_or(f64::INFINITY, |s| s.median), bar));
    }
    let more = ["throughput", "per_core_second", "per_gb_second", "rate"].contains(&name);
    bars.sort_by(|(a, _), (b, _)| match (a.is_finite(), b.is_finite()) {
        (true, true) if more => b.total_cmp(a),
        _ => a.total_cmp(b),
    });
    bars.into_iter().map(|(_, bar)| bar).collect()
}

/// The curve the project is named after: how many answers came within which time.
fn ogive(histogram: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let all: u64 = histogram.iter().map(|(_, n)| n).sum();
    let mut seen = 0;
    let mut points = Vec::new();
    let mut last = -1.0;
    for (micros, n) in histogram {
        let from = seen as f64 / all as f64;
        seen += n;
        let to = (seen as f64 / all as f64).min(1.0 - 1.0 / (all as f64 + 1.0));
        // Points closer than a hundredth of a nine apart are not seen.
        let place = -(1.0 - to).max(1e-6).log10();
        if place - last > 0.01 || points.is_empty() {
            if points.is_empty() {
                points.push((from, *micros as f64 / 1e3));
            }
            points.push((to, *micros as f64 / 1e3));
            last = place;
        }
    }
    points
}

fn table(out: &mut String, scenario: &ScenarioSummary) {
    let key = scenario.info.key.metric();
    let present: Vec<_> = METRICS
        .iter()
        .filter(|(name, _, _)| {
            scenario
                .rows
                .iter()
                .any(|row| row.metrics.contains_key(*name))
        })
        .collect();
    if present.is_empty() {
        return;
    }
    out.push_str(
        "<details open><summary>Numbers</summary><div class=\"scroll\"><table><tr><th>gateway</th>",
    );
    for (name, title, unit) in &present {
        let class = if *name == key { " class=\"key\"" } else { "" };
        let _ = write!(
            out,
            "<th{class}>{}{}</th>",
            escape_markup(title),
            unit.suffix()
        );
    }
    out.push_str("<th>× Ogive</th><th>rounds</th><th>answers</th><th>compared</th></tr>");
    for row in &scenario.rows {
        let class = if row.verdict == Verdict::Ok {
            ""
        } else {
            " class=\"out\""
        };
        let _ = write!(out, "<tr{class}><th>{}</th>", escape_markup(&row.title));
        for (name, _, unit) in &present {
            let class = if *name == key { " class=\"key\"" } else { "" };
            let (text, all) = match row
                .metrics
                .get(*name)
                .filter(|_| row.verdict == Verdict::Ok)
            {
                Some(spread) => (unit.show(spread.median), shown(spread, *unit)),
                None => ("–".to_owned(), String::new()),
            };
            let _ = write!(
                out,
                "<td{class} title=\"{}\">{}</td>",
                escape_markup(&all),
                escape_markup(&text)
            );
        }
        let ratio = row
            .ratio
            .filter(|_| row.verdict == Verdict::Ok)
            .map_or("–".into(), |r| significant(r.median));
        let _ = write!(
            out,
            "<td>{ratio}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.rounds, row.answered, row.compared
        );
    }
    out.push_str("</table></div></details>");
}

fn remarks(out: &mut String, scenario: &ScenarioSummary) {
    out.push_str("<ul class=\"small\">");
    for row in &scenario.rows {
        let title = escape_markup(&row.title);
        if let Some(reason) = row.verdict.reason() {
            let _ = write!(
                out,
                "<li><b>{title}</b> {}: {}</li>",
                row.verdict.word(),
                escape_markup(&clipped(reason, 400))
            );
        }
        for flag in &row.flags {
            let _ = write!(out, "<li>⚠ <b>{title}</b>: {}</li>", escape_markup(flag));
        }
        for note in &row.notes {
            let _ = write!(out, "<li><b>{title}</b>: {}</li>", escape_markup(note));
        }
        if let Some(kinds) = row.failed() {
            let _ = write!(
                out,
                "<li><b>{title}</b> failed: {}</li>",
                escape_markup(&kinds)
            );
        }
    }
    for caveat in &scenario.info.caveats {
        let _ = write!(out, "<li>{}</li>", escape_markup(caveat));
    }
    if !scenario.info.seeds.is_empty() {
        let _ = write!(
            out,
            "<li>Published as {}.</li>",
            escape_markup(&scenario.info.seeds.join(", "))
        );
    }
    out.push_str("</ul>");
}

fn gateways(out: &mut String, summary: &Summary, colours: &BTreeMap<&str, usize>) {
    out.push_str("<section><h2>Gateways</h2><div class=\"scroll\"><table><tr><th>gateway</th><th>version</th><th>written in</th><th>licence</th><th>program, MB</th><th>remarks</th></tr>");
    for (name, gateway) in &summary.campaign.gateways {
        let class = if gateway.missing.is_some() {
            " class=\"out\""
        } else {
            ""
        };
        let colour = colours.get(name.as_str()).copied().unwrap_or(0);
        let remarks: Vec<&str> = gateway
            .missing
            .iter()
            .chain(&gateway.notes)
            .map(String::as_str)
            .collect();
        let _ = write!(
            out,
            "<tr{class}><th><i class=\"b{colour}\"></i>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
            escape_markup(&gateway.title),
            escape_markup(&gateway.version),
            escape_markup(&gateway.language),
            escape_markup(&gateway.licence),
            gateway
                .binary_bytes
                .map_or("–".into(), |b| significant(b as f64 / 1e6)),
            escape_markup(&remarks.join(" "))
        );
    }
    out.push_str("</table></div></section>");
}

fn matrix(out: &mut String, features: &Features) {
    let _ = write!(
        out,
        "<section><h2>Beside speed</h2><p class=\"small\">{}</p><div class=\"scroll\"><table><tr><th></th>",
        escape_markup(&features.note)
    );
    for gateway in &features.gateways {
        let _ = write!(out, "<th>{}</th>", escape_markup(gateway));
    }
    out.push_str("</tr>");
    for row in &features.row {
        let _ = write!(out, "<tr><th>{}</th>", escape_markup(&row.title));
        for gateway in &features.gateways {
            let _ = write!(
                out,
                "<td class=\"text\">{}</td>",
                escape_markup(row.cells.get(gateway).map_or("?", String::as_str))
            );
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></section>");
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // Names of percentiles stay as they are.
        Some(first) if !text[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

const STYLE: &str = include_str!("style.css");
