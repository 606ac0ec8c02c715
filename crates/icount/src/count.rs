//! Counting instructions under callgrind, and what the allocator is asked for.
//!
//! A scenario is prepared by this process, which counts one run's allocations and peak, and writes down what the
//! subgraphs answer. Then the program runs itself under callgrind, which reads those answers instead of making them
//! again, runs the scenario once to warm what is made once, and collects nothing but further runs
//! ([`Scenario::run_counted`]). So a scenario takes some seconds, and its figures are within a fifth of a percent the same every time.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    heap,
    scenario::{SCENARIOS, Scenario, record},
};

/// What one run of a scenario costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Instructions; `None` if there is no valgrind to count them.
    pub instructions: Option<u64>,
    /// Calls of the allocator.
    pub allocations: u64,
    /// Most bytes held at a time, over what is prepared.
    pub peak: u64,
}

/// Whether valgrind is installed.
pub fn has_valgrind() -> bool {
    let output = Command::new("valgrind").arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Counts all scenarios whose name contains `filter`.
pub fn count(filter: &str) -> Result<BTreeMap<String, Cost>> {
    let valgrind = has_valgrind();
    let answers = Answers::new();
    let mut costs = BTreeMap::new();
    for (name, _) in SCENARIOS.iter().filter(|(name, _)| name.contains(filter)) {
        record(name, &answers.0)?;
        let scenario = Scenario::prepare(name, Some(&answers.0))?;
        // What is made once is made.
        scenario.run()?;
        let (done, heap) = heap::count(|| scenario.run());
        done?;
        let instructions = if valgrind {
            Some(instructions(name, &answers.0)?)
        } else {
            None
        };
        costs.insert(
            (*name).to_owned(),
            Cost {
                instructions,
                allocations: heap.allocations,
                peak: heap.peak,
            },
        );
    }
    Ok(costs)
}

/// A file of our own that goes with us.
struct Answers(PathBuf);

impl Answers {
    fn new() -> Answers {
        let name = format!("ogive-icount-{}", std::process::id());
        Answers(std::env::temp_dir().join(name))
    }
}
impl Drop for Answers {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn instructions(name: &str, answers: &Path) -> Result<u64> {
    // Big ones are even by themselves; others differ by a probe of a hash table here and there.
    const BIG: [&str; 5] = ["big", "held", "pretty", "reversed", "escaped"];
    let is_big = BIG.iter().any(|big| name.contains(big));
    let runs: u64 = if is_big { 1 } else { 20 };
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{}*", Scenario::COUNTED))
        .arg(std::env::current_exe()?)
        .args(["run", name, &runs.to_string()])
        .arg(answers)
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{name}: {text}");
    }
    let collected = number_after(&text, "Collected :")?;
    if collected == 0 {
        bail!(
            "{name}: callgrind has not seen `{}`; is the program stripped?",
            Scenario::COUNTED
        );
    }
    Ok(collected / runs)
}

fn number_after(text: &str, label: &str) -> Result<u64> {
    let rest = text.split(label).nth(1).context("valgrind says nothing")?;
    let word = rest.split_whitespace().next().context("no number")?;
    Ok(word.replace(',', "").parse()?)
}
