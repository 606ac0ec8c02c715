//! `cargo run --release -p ogive-icount -- check|bless|time|memory|run|list`; see `docs/hot-path.md`.

#![allow(clippy::print_stdout, reason = "a command-line tool")]

use std::path::Path;

use anyhow::{Result, bail};
use ogive_icount::{count, memory, scenario, time};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let baseline = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.txt"));
    match args.as_slice() {
        ["run", name, runs] => {
            let scenario = scenario::Scenario::prepare(name)?;
            for _ in 0..runs.parse::<u64>()? {
                scenario.run()?;
            }
        }
        ["list"] => {
            for (name, what) in scenario::SCENARIOS {
                println!("{name:<18} {what}");
            }
        }
        ["time"] => print!("{}", time::big_response()?),
        ["memory"] => print!("{}", memory::big_response()?),
        ["check" | "bless", ..] if !count::has_valgrind() => {
            println!("skipped: valgrind is not installed");
        }
        ["check", filter @ ..] => {
            let costs = count::count(filter.first().copied().unwrap_or_default())?;
            let (table, grown) = count::compare(&costs, &count::read_baseline(baseline));
            print!("{table}");
            if !grown.is_empty() {
                bail!("more than before: {}", grown.join(", "));
            }
        }
        ["bless"] => {
            let costs = count::count("")?;
            let table = count::table(&costs);
            print!("{table}");
            std::fs::write(baseline, table)?;
        }
        _ => {
            bail!("usage: ogive-icount check [NAME] | bless | time | memory | run NAME RUNS | list")
        }
    }
    Ok(())
}
