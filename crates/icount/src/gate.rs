//! The committed figures, and what may be more than they say.
//!
//! More than [`GROWTH_MAX`] per cent more instructions, a higher peak by more than that, or one more allocation fails,
//! unless a line in a file of `changes/` says how much more is meant and why:
//!
//! ```text
//! icount: execute-join +3 % because representations are checked twice
//! icount: execute-join heap +10 % because answers are kept until the end
//! ```
//!
//! The first kind is about instructions, the second about allocations and peak. A line counts from the committed
//! figures; who commits new ones takes it out.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::count::Cost;

/// Growth that is taken for noise, in per cent.
const GROWTH_MAX: f64 = 0.5;
/// Growth of a peak that is taken for noise, in bytes: a text or two.
const PEAK_NOISE: u64 = 256;

/// Growth that a change means, in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meant {
    /// Of instructions.
    pub instructions: f64,
    /// Of allocations and peak.
    pub heap: f64,
}

/// Reads a table written by [`table`].
pub fn read_baseline(path: &Path) -> Result<BTreeMap<String, Cost>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, instructions, allocations, peak] = words[..] else {
            bail!("{}: not a row: {line}", path.display());
        };
        let cost = Cost {
            instructions: Some(instructions.parse()?),
            allocations: allocations.parse()?,
            peak: peak.parse()?,
        };
        Ok((name.to_owned(), cost))
    })
    .collect()
}

/// The table that is committed.
pub fn table(costs: &BTreeMap<String, Cost>) -> Result<String> {
    let mut out =
        String::from("# per run: scenario, instructions, allocations, peak heap in bytes\n");
    for (name, cost) in costs {
        let instructions = cost.instructions.context("valgrind is not installed")?;
        writeln!(
            out,
            "{name:<18} {instructions:>12} {:>8} {:>12}",
            cost.allocations, cost.peak
        )?;
    }
    Ok(out)
}

/// Reads the lines of all change fragments in a folder.
pub fn read_meant(folder: &Path) -> Result<BTreeMap<String, Meant>> {
    let mut meant = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") && !path.ends_with("README.md") {
            let text = fs::read_to_string(&path)?;
            add_meant(&text, &mut meant).with_context(|| path.display().to_string())?;
        }
    }
    Ok(meant)
}

fn add_meant(text: &str, meant: &mut BTreeMap<String, Meant>) -> Result<()> {
    for line in text.lines() {
        let Some(rest) = line.trim().strip_prefix("icount:") else {
            continue;
        };
        let usage = || format!("`{line}`: write `icount: SCENARIO [heap] +N % because REASON`");
        let (what, why) = rest.split_once(" because ").with_context(usage)?;
        let words: Vec<&str> = what.split_whitespace().filter(|w| *w != "%").collect();
        let (name, is_heap, growth) = match words[..] {
            [name, growth] => (name, false, growth),
            [name, "heap", growth] => (name, true, growth),
            _ => bail!(usage()),
        };
        let growth = growth.strip_prefix('+').with_context(usage)?;
        let growth: f64 = growth.trim_end_matches('%').parse().with_context(usage)?;
        if why.trim().is_empty() {
            bail!(usage());
        }
        let meant = meant.entry(name.to_owned()).or_default();
        let of = if is_heap {
            &mut meant.heap
        } else {
            &mut meant.instructions
        };
        *of = of.max(growth);
    }
    Ok(())
}

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct Verdict {
    /// A line per scenario.
    pub table: String,
    /// What grew, and how far.
    pub grown: Vec<String>,
    /// Scenarios of the baseline that did not run, and those that ran and are not in it: nobody watches either.
    pub unwatched: Vec<String>,
}

/// Compares with a baseline.
pub fn compare(
    costs: &BTreeMap<String, Cost>,
    baseline: &BTreeMap<String, Cost>,
    meant: &BTreeMap<String, Meant>,
) -> Verdict {
    let mut verdict = Verdict::default();
    let _ = writeln!(
        verdict.table,
        "{:<18} {:>23} {:>22} {:>24}",
        "per run", "instructions", "allocations", "peak heap, bytes"
    );
    for (name, cost) in costs {
        let _ = write!(verdict.table, "{name:<18}");
        let before = baseline.get(name);
        if before.is_none() {
            let text = format!("{name} is not in the baseline");
            verdict.unwatched.push(text);
        }
        let allowed = meant.get(name).copied().unwrap_or_default();
        let mut row =
            |what: &str, width: usize, now: Option<u64>, before: Option<u64>, most: f64| {
                let number = now.map_or("not counted".to_owned(), |now| now.to_string());
                let (growth, word) = match (now, before) {
                    (Some(now), Some(before)) => {
                        let growth = 100.0 * (now as f64 / before.max(1) as f64 - 1.0);
                        // As it is shown, and as changes are written.
                        let growth = (growth * 100.0).round() / 100.0;
                        (growth, format!("{growth:+.2} %"))
                    }
                    (Some(_), None) => (0.0, "new".to_owned()),
                    (None, _) => (0.0, String::new()),
                };
                let _ = write!(verdict.table, " {number:>width$} {word:>9}");
                if growth > most {
                    let allowed = if most > GROWTH_MAX {
                        format!(", and a change allows {most} %")
                    } else {
                        String::new()
                    };
                    verdict.grown.push(format!(
                        "{name}: {what} {} became {number}, {growth:+.2} %{allowed}",
                        before.unwrap_or_default()
                    ));
                }
            };
        let old = before.and_then(|b| b.instructions);
        let most = allowed.instructions.max(GROWTH_MAX);
        row("instructions", 13, cost.instructions, old, most);
        let old = before.map(|b| b.allocations);
        row("allocations", 12, Some(cost.allocations), old, allowed.heap);
        let old = before.map(|b| b.peak);
        let noise = old.map_or(0.0, |old| 100.0 * PEAK_NOISE as f64 / old.max(1) as f64);
        let most = allowed.heap.max(GROWTH_MAX).max(noise);
        row("peak heap", 14, Some(cost.peak), old, most);
        verdict.table.push('\n');
    }
    for name in baseline.keys().filter(|name| !costs.contains_key(*name)) {
        let _ = writeln!(verdict.table, "{name:<18} not run");
        let text = format!("{name} is in the baseline and was not run");
        verdict.unwatched.push(text);
    }
    verdict
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
mod tests {
    use super::*;

    fn costs(rows: &[(&str, u64, u64, u64)]) -> BTreeMap<String, Cost> {
        let rows = rows.iter().map(|(name, instructions, allocations, peak)| {
            let cost = Cost {
                instructions: Some(*instructions),
                allocations: *allocations,
                peak: *peak,
            };
            ((*name).to_owned(), cost)
        });
        rows.collect()
    }

    #[test]
    fn growth_is_found() {
        let row = |name| (name, 1_000, 5, 100_000);
        let baseline = costs(&["a", "b", "c", "d", "e"].map(row));
        let now = costs(&[
            ("a", 1_004, 4, 100_400),
            ("b", 1_011, 5, 100_000),
            ("c", 900, 6, 100_000),
            ("d", 900, 5, 101_100),
            ("f", 1, 1, 1),
        ]);
        let verdict = compare(&now, &baseline, &BTreeMap::new());
        assert_eq!(
            verdict.grown,
            [
                "b: instructions 1000 became 1011, +1.10 %",
                "c: allocations 5 became 6, +20.00 %",
                "d: peak heap 100000 became 101100, +1.10 %",
            ]
        );
        assert!(verdict.table.contains("e                  not run"));
        assert_eq!(
            verdict.unwatched,
            [
                "f is not in the baseline",
                "e is in the baseline and was not run"
            ]
        );
        assert!(
            compare(&baseline, &baseline, &BTreeMap::new())
                .unwatched
                .is_empty()
        );
    }

    #[test]
    fn a_change_may_say_why() {
        let baseline = costs(&[("a", 1_000, 10, 100_000), ("b", 1_000, 10, 100_000)]);
        let now = costs(&[("a", 1_030, 11, 110_000), ("b", 1_030, 11, 110_000)]);
        let mut meant = BTreeMap::new();
        let text = "Reads more.\n\nicount: a +3 % because it reads more\nicount: a heap +10% because it keeps more\n\
                    icount: b +2.5 % because of something\n";
        add_meant(text, &mut meant).unwrap();
        assert_eq!(
            compare(&now, &baseline, &meant).grown,
            [
                "b: instructions 1000 became 1030, +3.00 %, and a change allows 2.5 %",
                "b: allocations 10 became 11, +10.00 %",
                "b: peak heap 100000 became 110000, +10.00 %",
            ]
        );
        for bad in [
            "icount: a +3 %",
            "icount: a 3 % because",
            "icount: +3 % because x",
            "icount: a much because x",
        ] {
            assert!(add_meant(bad, &mut meant).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_instructions_the_heap_still_counts() {
        let baseline = costs(&[("a", 1_000, 10, 100_000)]);
        let mut now = costs(&[("a", 1_000, 11, 100_000)]);
        now.get_mut("a").unwrap().instructions = None;
        let grown = compare(&now, &baseline, &BTreeMap::new()).grown;
        assert_eq!(grown, ["a: allocations 10 became 11, +10.00 %"]);
    }

    #[test]
    fn tables_are_read_back() {
        let costs = costs(&[("x", 7, 3, 11)]);
        let path = std::env::temp_dir().join(format!("icount-{}", std::process::id()));
        fs::write(&path, table(&costs).unwrap()).unwrap();
        assert_eq!(read_baseline(&path).unwrap(), costs);
        fs::remove_file(&path).unwrap();
    }
}
