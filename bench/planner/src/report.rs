//! The table, and the page around it.

use std::{collections::BTreeMap, fmt::Write, process::Command, time::Duration};

use crate::{
    Measured,
    planners::{REFINED_EXACT_FUEL, REFINED_FUEL, REFINED_PATIENCE, Who},
    probe::Outcomes,
};

/// Positions in [`Who::ALL`].
const OGIVE: usize = 0;
const REFINED: usize = 1;
const HIVE: usize = 2;

/// One row for each case.
pub fn table(rows: &[Measured]) -> String {
    let mut out = String::from(
        "| Operation | Ogive median (min) | requests | waves | refined median | requests | waves | Hive median (min) \
         | requests | waves | Hive ÷ Ogive, time |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let common = common(&row.outcomes);
        let (ours, refined, theirs) = (row.seconds(OGIVE), row.seconds(REFINED), row.seconds(HIVE));
        let ratio = match (ours, theirs) {
            (Some(ours), Some(theirs)) => format!("{:.1}", theirs.0 / ours.0),
            _ => "–".to_owned(),
        };
        let line = format!(
            "| {} | {} | {} | {} | {} | {} | {} | {ratio} |",
            row.name,
            both(ours, &row.outcomes[OGIVE]),
            counts(&row.outcomes[OGIVE], &common),
            refined.map_or("–".to_owned(), |(median, _)| duration(median)),
            counts(&row.outcomes[REFINED], &common),
            both(theirs, &row.outcomes[HIVE]),
            counts(&row.outcomes[HIVE], &common),
        );
        out.push_str(&line);
        out.push('\n');
    }
    for row in rows.iter().filter(|row| row.outcomes[0].len() > 1) {
        out.push('\n');
        out.push_str(&many(row));
        out.push('\n');
    }
    out
}

/// The table with what one must know to read it and to make it again.
pub fn page(rows: &[Measured], table: &str, rounds: usize, limit: Duration, load: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let version = |name: &str| {
        let at = lock
            .split("[[package]]")
            .find(|p| p.contains(&format!("\nname = \"{name}\"\n")));
        let line = at.and_then(|p| p.lines().find(|l| l.starts_with("version = ")));
        line.map_or("?", |l| {
            l.trim_start_matches("version = ").trim_matches('"')
        })
        .to_owned()
    };
    let mut out = String::from("# Planning, beside Hive Router's planner\n\n");
    let _ = write!(
        out,
        "Cold planning of one operation: parse, validate, normalise, plan, with the documents of all subgraph requests \
         written. `ogive-planner` {} against the crate `hive-router-query-planner` {} (MIT; parsed and validated by \
         `graphql-tools` {}, as its router does), used as published through its public API. That crate is the planner's \
         last release of its own; newer routers carry it inside.\n\n",
        ogive_planner::VERSION,
        version("hive-router-query-planner"),
        version("graphql-tools"),
    );
    out.push_str("```sh\ncargo run --release --manifest-path bench/planner/Cargo.toml -- --markdown docs/planner-benchmark.md\n```\n\n");
    let _ = write!(
        out,
        "- {}; {}; load average {load} when it began, times are processor time of the planning thread.\n\
         - One process, one thread, mimalloc {} for both, fat LTO, at most {rounds} interleaved rounds a row (fewer, but \
         never below {}, when they take longer than {} s); median of the rounds, the least in brackets.\n\
         - Requests: HTTP requests of the plan, those under conditions included. Waves: the longest chain of them. Lower is \
         better for every figure but the last column.\n\
         - \"Ogive\" is what a request gets from the default options. \"Refined\" is the same planner with patience {}, \
         {} rule firings of search and {} of exact search; it is no part of the ratio.\n\
         - Every plan is made first in a child process that may take {} s and 3 GiB; whoever needs more is shown so.\n\
         - Plans are counted here, not executed. That ours are right is what the differential test is for \
         ([testing](testing.md)); that theirs are is taken for granted, also where they have fewer requests.\n\n",
        machine(),
        toolchain(),
        version("mimalloc"),
        crate::ROUNDS_MIN,
        crate::ROW.as_secs(),
        REFINED_PATIENCE,
        grouped(REFINED_FUEL),
        grouped(REFINED_EXACT_FUEL),
        limit.as_secs(),
    );
    out.push_str(table);
    out.push_str("\nWhere Ogive has more requests or waves, or is slower:\n\n");
    let losses: Vec<String> = rows.iter().filter_map(loss).collect();
    if losses.is_empty() {
        out.push_str("- nowhere in this table.\n");
    }
    for loss in losses {
        let _ = writeln!(out, "- {loss}");
    }
    out
}

/// Load average over a minute.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

impl Measured {
    /// Median and least.
    fn seconds(&self, who: usize) -> Option<(f64, f64)> {
        let times = &self.seconds[who];
        Some((*times.get(times.len() / 2)?, *times.first()?))
    }
}

fn both(seconds: Option<(f64, f64)>, outcomes: &Outcomes) -> String {
    match seconds {
        Some((median, min)) => format!("{} ({})", duration(median), duration(min)),
        None => {
            let error = outcomes.iter().find_map(|o| o.as_ref().err());
            error.map_or("–".to_owned(), |error| escaped(error))
        }
    }
}

/// Requests, and waves: of one operation as they are, of several as sums over those that everybody plans.
fn counts(outcomes: &Outcomes, common: &[usize]) -> String {
    let planned: Vec<_> = common
        .iter()
        .filter_map(|op| outcomes[*op].as_ref().ok())
        .collect();
    if planned.is_empty() {
        return "– | –".to_owned();
    }
    let requests: u32 = planned.iter().map(|c| c.requests).sum();
    let waves: u32 = planned.iter().map(|c| c.waves).sum();
    format!("{requests} | {waves}")
}

/// Operations that everybody plans who plans any.
fn common(outcomes: &[Outcomes]) -> Vec<usize> {
    let able: Vec<_> = outcomes
        .iter()
        .filter(|o| o.iter().any(Result::is_ok))
        .collect();
    let n = outcomes.first().map_or(0, Vec::len);
    (0..n)
        .filter(|op| able.iter().all(|o| o[*op].is_ok()))
        .collect()
}

/// A row of several operations, in words.
fn many(row: &Measured) -> String {
    let common = common(&row.outcomes);
    let mut text = format!(
        "{}: sums over the {} that both plan.",
        row.name,
        common.len()
    );
    let compare = |who: usize| {
        let (mut fewer, mut more, mut shorter, mut longer) = (0, Vec::new(), 0, Vec::new());
        for op in &common {
            if let (Ok(ours), Ok(theirs)) = (&row.outcomes[who][*op], &row.outcomes[HIVE][*op]) {
                fewer += usize::from(ours.requests < theirs.requests);
                if ours.requests > theirs.requests {
                    more.push(*op);
                }
                shorter += usize::from(ours.waves < theirs.waves);
                if ours.waves > theirs.waves {
                    longer.push(*op);
                }
            }
        }
        format!(
            "fewer requests than Hive on {fewer}, more on {}; fewer waves on {shorter}, more on {}",
            numbers(&more),
            numbers(&longer)
        )
    };
    let _ = write!(
        text,
        " Ogive has {}. Refined: {}.",
        compare(OGIVE),
        compare(REFINED)
    );
    for (who, outcomes) in row.outcomes.iter().enumerate() {
        let mut errors: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (op, outcome) in outcomes.iter().enumerate() {
            if let Err(error) = outcome {
                errors.entry(escaped(error)).or_default().push(op);
            }
        }
        if !errors.is_empty() {
            let _ = write!(text, "\n\nNot planned by {}:\n", Who::ALL[who].name());
        }
        for (error, ops) in errors {
            let _ = write!(text, "\n- {} (number {}): `{error}`", ops.len(), ops[0]);
        }
    }
    text
}

/// How many, and which, for `--explain`.
fn numbers(ops: &[usize]) -> String {
    let names: Vec<String> = ops.iter().map(usize::to_string).collect();
    match names.len() {
        0 => "0".to_owned(),
        n => format!("{n} (number {})", names.join(", ")),
    }
}

fn loss(row: &Measured) -> Option<String> {
    let mut words = Vec::new();
    let common = common(&row.outcomes);
    let sum = |who: usize| {
        let planned = common
            .iter()
            .filter_map(|op| row.outcomes[who][*op].as_ref().ok());
        planned.fold((0, 0), |sum, c| (sum.0 + c.requests, sum.1 + c.waves))
    };
    row.seconds(HIVE)?;
    let (ours, theirs) = (sum(OGIVE), sum(HIVE));
    if ours.0 > theirs.0 {
        words.push(format!("{} requests against {}", ours.0, theirs.0));
    }
    if ours.1 > theirs.1 {
        words.push(format!("{} waves against {}", ours.1, theirs.1));
    }
    if let (Some(ours), Some(theirs)) = (row.seconds(OGIVE), row.seconds(HIVE))
        && ours.0 > theirs.0
    {
        words.push(format!(
            "{} against {}",
            duration(ours.0),
            duration(theirs.0)
        ));
    }
    (!words.is_empty()).then(|| format!("{}: {}", row.name, words.join(", ")))
}

fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Fit for a table, and short.
fn escaped(text: &str) -> String {
    text.chars()
        .take(120)
        .map(|c| if c == '|' || c == '`' { '\'' } else { c })
        .collect()
}

fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|l| l.starts_with("model name"));
    let model = model
        .and_then(|l| l.split_once(": "))
        .map_or("unknown processor", |p| p.1);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cpus} CPUs, kernel {}", kernel.trim())
}

fn toolchain() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "rustc unknown".to_owned())
}
