//! Counting instructions and allocations under valgrind.
//!
//! The program runs itself twice per scenario, with a few and with a few more runs; the difference divided by the
//! number of further runs is what one run costs, without start-up and preparation.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::scenario::SCENARIOS;

/// Growth that is taken for noise, in per cent.
const GROWTH_MAX: f64 = 1.0;

/// What one run of a scenario costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Instructions.
    pub instructions: u64,
    /// Calls of the allocator.
    pub allocations: u64,
}

/// Whether valgrind is installed.
pub fn has_valgrind() -> bool {
    let output = Command::new("valgrind").arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Counts all scenarios whose name contains `filter`.
pub fn count(filter: &str) -> Result<BTreeMap<String, Cost>> {
    let mut costs = BTreeMap::new();
    for (name, _) in SCENARIOS.iter().filter(|(name, _)| name.contains(filter)) {
        const BIG: [&str; 5] = ["big", "held", "pretty", "reversed", "escaped"];
        let more = if BIG.iter().any(|big| name.contains(big)) {
            2
        } else {
            20
        };
        let instructions = difference(name, more, instructions)?;
        let allocations = difference(name, more, allocations)?;
        costs.insert(
            (*name).to_owned(),
            Cost {
                instructions,
                allocations,
            },
        );
    }
    Ok(costs)
}

fn difference(name: &str, more: u64, measure: fn(&str, u64) -> Result<u64>) -> Result<u64> {
    // The first run warms caches inside the process.
    let few = measure(name, 1)?;
    let many = measure(name, 1 + more)?;
    Ok(many.saturating_sub(few) / more)
}

fn instructions(name: &str, runs: u64) -> Result<u64> {
    let text = valgrind(
        &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
        name,
        runs,
    )?;
    number_after(&text, "Collected :")
}

fn allocations(name: &str, runs: u64) -> Result<u64> {
    let text = valgrind(&["--tool=memcheck", "--undef-value-errors=no"], name, runs)?;
    number_after(&text, "total heap usage:")
}

fn valgrind(options: &[&str], name: &str, runs: u64) -> Result<String> {
    let output = Command::new("valgrind")
        .args(options)
        .arg(std::env::current_exe()?)
        .args(["run", name, &runs.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{name}: {text}");
    }
    Ok(text)
}

fn number_after(text: &str, label: &str) -> Result<u64> {
    let rest = text.split(label).nth(1).context("valgrind says nothing")?;
    let word = rest.split_whitespace().next().context("no number")?;
    Ok(word.replace(',', "").parse()?)
}

/// Reads a table written by [`table`].
pub fn read_baseline(path: &Path) -> BTreeMap<String, Cost> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let instructions = words.next()?.parse().ok()?;
        let allocations = words.next()?.parse().ok()?;
        Some((
            name,
            Cost {
                instructions,
                allocations,
            },
        ))
    })
    .collect()
}

/// The table that is committed.
pub fn table(costs: &BTreeMap<String, Cost>) -> String {
    let mut out = String::from("# scenario instructions allocations, per run\n");
    for (name, cost) in costs {
        let _ = writeln!(
            out,
            "{name:<18} {:>12} {:>8}",
            cost.instructions, cost.allocations
        );
    }
    out
}

/// Compares with a baseline; gives a readable table and what grew.
pub fn compare(
    costs: &BTreeMap<String, Cost>,
    baseline: &BTreeMap<String, Cost>,
) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut grown = Vec::new();
    for (name, cost) in costs {
        let before = baseline.get(name);
        let growth = before.map(|before| {
            100.0 * (cost.instructions as f64 / before.instructions.max(1) as f64 - 1.0)
        });
        let _ = write!(
            out,
            "{name:<18} {:>12} instructions {:>8} allocations",
            cost.instructions, cost.allocations
        );
        match (growth, before) {
            (Some(growth), Some(before)) => {
                let _ = writeln!(out, "  {growth:+.2} %");
                if growth > GROWTH_MAX || cost.allocations > before.allocations {
                    grown.push(name.clone());
                }
            }
            _ => out.push_str("  new\n"),
        }
    }
    (out, grown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found() {
        let cost = |instructions, allocations| Cost {
            instructions,
            allocations,
        };
        let baseline = BTreeMap::from([
            ("a".to_owned(), cost(1000, 5)),
            ("b".to_owned(), cost(1000, 5)),
            ("c".to_owned(), cost(1000, 5)),
        ]);
        let now = BTreeMap::from([
            ("a".to_owned(), cost(1009, 4)),
            ("b".to_owned(), cost(1011, 5)),
            ("c".to_owned(), cost(900, 6)),
            ("d".to_owned(), cost(1, 1)),
        ]);
        assert_eq!(compare(&now, &baseline).1, ["b", "c"]);
    }

    #[test]
    fn tables_are_read_back() {
        let costs = BTreeMap::from([(
            "x".to_owned(),
            Cost {
                instructions: 7,
                allocations: 3,
            },
        )]);
        let path = std::env::temp_dir().join(format!("icount-{}", std::process::id()));
        std::fs::write(&path, table(&costs)).unwrap_or_default();
        assert_eq!(read_baseline(&path), costs);
        let _ = std::fs::remove_file(&path);
    }
}
