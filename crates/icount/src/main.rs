//! `cargo run --release -p ogive-icount -- check|bless|time|memory|run|list`; see `docs/hot-path.md`.

#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{path::Path, process::Command};

use anyhow::{Result, bail};
use ogive_icount::{count, gate, heap, memory, scenario, time};

#[global_allocator]
static ALLOCATOR: heap::Counted = heap::Counted;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let baseline = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.txt"));
    let changes = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../changes"));
    match args.as_slice() {
        ["run", name, runs, answers @ ..] => {
            let answers = answers.first().map(Path::new);
            let scenario = scenario::Scenario::prepare(name, answers)?;
            // What is made once is made.
            scenario.run()?;
            for _ in 0..runs.parse::<u64>()? {
                scenario.run_counted()?;
            }
        }
        ["list"] => {
            for (name, what) in scenario::SCENARIOS {
                println!("{name:<18} {what}");
            }
        }
        ["time"] => print!("{}", time::big_response()?),
        ["memory"] => print!("{}", memory::big_response()?),
        ["check", filter @ ..] => check(
            filter.first().copied().unwrap_or_default(),
            baseline,
            changes,
        )?,
        ["bless"] => {
            let costs = count::count("")?;
            let table = format!("{COMPILER}{}\n{}", compiler()?, gate::table(&costs)?);
            print!("{table}");
            std::fs::write(baseline, table)?;
            for name in gate::read_meant(changes)?.keys() {
                println!(
                    "take the lines `icount: {name} ..` out of changes/: they counted from the old figures"
                );
            }
        }
        _ => bail!(
            "usage: ogive-icount check [NAME] | bless | time | memory | run NAME RUNS [ANSWERS] | list"
        ),
    }
    Ok(())
}

fn check(filter: &str, baseline: &Path, changes: &Path) -> Result<()> {
    let mut costs = count::count(filter)?;
    let mut known = gate::read_baseline(baseline)?;
    known.retain(|name, _| name.contains(filter));
    let meant = gate::read_meant(changes)?;
    let (here, there) = (compiler()?, blessed_with(baseline)?);
    let comparable = here == there;
    if !comparable {
        for cost in costs.values_mut() {
            cost.instructions = None;
        }
    }
    let verdict = gate::compare(&costs, &known, &meant);
    print!("{}", verdict.table);
    if !count::has_valgrind() {
        println!("SKIPPED instructions: valgrind is not installed; only the heap was compared");
    } else if !comparable {
        println!(
            "SKIPPED instructions: the figures are of {there}, this is {here}; only the heap was compared"
        );
    }
    if !verdict.grown.is_empty() {
        bail!(
            "more than before:\n  {}\nmake it less, or say why in a file of changes/: \
             `icount: SCENARIO +N % because REASON` or `icount: SCENARIO heap +N % because REASON`",
            verdict.grown.join("\n  ")
        );
    }
    Ok(())
}

/// Begins the line of the baseline that names the compiler. Another one makes other instructions of the same code.
const COMPILER: &str = "# ";

fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
fn blessed_with(baseline: &Path) -> Result<String> {
    let text = std::fs::read_to_string(baseline)?;
    let first = text.lines().next().unwrap_or_default();
    Ok(first.trim_start_matches(COMPILER).to_owned())
}
