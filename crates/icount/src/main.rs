//! `cargo run --release -p ogive-icount -- check|bless|time|plain|memory|run|list`; see `docs/hot-path.md`.

#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use ogive_icount::{count, gate, heap, memory, scenario, time};

#[global_allocator]
static ALLOCATOR: heap::Counted = heap::Counted;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let baseline = &baseline()?;
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
        ["plain", path] => print!("{}", time::validate_and_copy_file(Path::new(path))?),
        ["memory"] => print!("{}", memory::big_response()?),
        ["check", filter @ ..] => check(
            filter.first().copied().unwrap_or_default(),
            baseline,
            changes,
        )?,
        ["bless", filter @ ..] => bless(
            filter.first().copied().unwrap_or_default(),
            baseline,
            changes,
        )?,
        _ => bail!(
            "usage: ogive-icount check [NAME] | bless [NAME] | time | plain FILE | memory | run NAME RUNS [ANSWERS] | list"
        ),
    }
    Ok(())
}

/// The committed figures of the profile that built this program: cargo names the folder of a program after its profile.
fn baseline() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let profile = program.parent().and_then(Path::file_name);
    let profile = profile.context("this program is in no folder")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline");
    Ok(path.join(profile).with_extension("txt"))
}

/// Writes the figures of all scenarios, or of those whose name contains `filter`; the others stay.
fn bless(filter: &str, baseline: &Path, changes: &Path) -> Result<()> {
    let compiler = compiler()?;
    let mut costs = std::collections::BTreeMap::new();
    if !filter.is_empty() {
        let there = blessed_with(baseline)?;
        if there != compiler {
            bail!("the other figures are of {there}, this is {compiler}: bless all of them");
        }
        costs = gate::read_baseline(baseline)?;
    }
    costs.extend(count::count(filter)?);
    let table = format!("{COMPILER}{compiler}\n{}", gate::table(&costs)?);
    print!("{table}");
    std::fs::write(baseline, table)?;
    for name in gate::read_meant(changes)?.keys() {
        if name.contains(filter) {
            println!(
                "take the lines `icount: {name} ..` out of changes/: they counted from the old figures"
            );
        }
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
        ogive_testbase::left_out(
            "instructions: valgrind is not installed; only the heap was compared",
        );
    } else if !comparable {
        ogive_testbase::left_out(&format!(
            "instructions: the figures are of {there}, this is {here}; only the heap was compared"
        ));
    }
    if !verdict.grown.is_empty() {
        bail!(
            "more than before:\n  {}\nmake it less, or say why in a file of changes/: \
             `icount: SCENARIO +N % because REASON` or `icount: SCENARIO heap +N % because REASON`",
            verdict.grown.join("\n  ")
        );
    }
    if !verdict.unwatched.is_empty() {
        bail!(
            "nobody watches:\n  {}\n`bless NAME` adds a scenario; take the line of one that is gone out of {}",
            verdict.unwatched.join("\n  "),
            baseline.display()
        );
    }
    // Where figures decide what is merged, they must not go unread in silence.
    if std::env::var_os("CI").is_some() && !comparable && is_pinned() {
        bail!(
            "the repository pins its toolchain, and the figures are of another one: bless them anew"
        );
    }
    Ok(())
}

/// Whether the repository says which toolchain builds it. It does not today: whoever has another stable one could not
/// build without a download.
fn is_pinned() -> bool {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    ["rust-toolchain.toml", "rust-toolchain"]
        .iter()
        .any(|name| root.join(name).is_file())
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
