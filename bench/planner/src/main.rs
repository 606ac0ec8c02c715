//! Cold query planning: `ogive-planner` beside `hive-router-query-planner`, one interleaved run, one thread.
//!
//! ```sh
//! cargo run --release --manifest-path bench/planner/Cargo.toml -- --markdown docs/planner-benchmark.md
//! ```
//!
//! Prints one Markdown table; `--help` lists what else it does.
//!
//! Every operation is first planned once in a child process ([`probe`]), which tells requests and waves and who
//! stalls. What both can plan is then timed here: each round runs every planner once over each row in turns, a
//! different one first each time, short ones repeated until a measurement is long enough; the table shows median and
//! least of the rounds. Time is that of the thread, not of the wall: planning waits for nothing, and what else the
//! machine does is then mostly left out.

mod cases;
mod families;
mod growth;
mod planners;
mod probe;
mod report;

use std::{
    hint::black_box,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use cases::Case;
use clap::Parser;
use planners::{Engine, Who};
use probe::Outcomes;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shortest time one measurement may take; short plans are repeated until then.
const MEASUREMENT_SECONDS: f64 = 0.005;
/// No further round of a row after this long, if there were enough.
const ROW: Duration = Duration::from_secs(20);
/// Rounds of even the slowest row.
const ROUNDS_MIN: usize = 3;
/// Stack of the planning thread: foreign recursion over deep operations.
const STACK: usize = 256 << 20;

/// One row, measured.
pub struct Measured {
    /// What was planned.
    pub name: String,
    /// Outcomes by planner, in the order of [`Who::ALL`].
    pub outcomes: Vec<Outcomes>,
    /// Seconds per pass over the operations that everybody plans, by planner; one entry a round, sorted.
    pub seconds: Vec<Vec<f64>>,
}

/// Compares cold planning with another planner.
#[derive(clap::Parser)]
struct Arguments {
    /// Rounds of each row.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds per plan before it counts as stalled.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Only the rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Also write the table here, with machine and versions.
    #[arg(long, value_name = "FILE")]
    markdown: Option<std::path::PathBuf>,
    /// Print one operation of a row, its supergraph and everybody's plan instead.
    #[arg(long, num_args = 2, value_names = ["NAME", "NUMBER"])]
    explain: Option<Vec<String>>,
    /// Write the chart of how planning grows with the families instead; needs valgrind.
    #[arg(long, value_name = "FILE.svg")]
    growth: Option<std::path::PathBuf>,
    /// Plan one member of a family so many times: what the chart counts.
    #[arg(long, hide = true, num_args = 3)]
    work: Option<Vec<usize>>,
    /// Be the process in which one planner plans the operations of a row from one on: planner, row, operation.
    #[arg(long, hide = true, num_args = 3)]
    child: Option<Vec<usize>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let planning = std::thread::Builder::new().stack_size(STACK);
    let done = planning
        .spawn(move || run(&arguments))
        .map(|thread| thread.join());
    match done {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(error))) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("no thread to plan in: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if let Some(&[family, size, passes]) = arguments.work.as_deref() {
        return growth::work(family, size, passes);
    }
    if let Some(path) = &arguments.growth {
        let (table, chart) = growth::measure()?;
        println!("{table}");
        return write(path, &chart);
    }
    let cases = cases::all();
    if let Some(&[who, case, first]) = arguments.child.as_deref() {
        probe::child(Who::ALL[who], &cases[case], first);
        return Ok(());
    }
    if let Some([name, number]) = arguments.explain.as_deref() {
        return explain(&cases, name, number);
    }
    let limit = Duration::from_secs(arguments.seconds);
    let rounds = usize::from(arguments.rounds);
    let start_load = report::load();
    let mut rows = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let wanted = arguments.only.as_deref();
        if wanted.is_some_and(|text| !case.name.contains(text)) {
            continue;
        }
        eprintln!("{}", case.name);
        let outcomes: Vec<Outcomes> = Who::ALL
            .iter()
            .map(|who| probe::probe(*who, index, case, limit))
            .collect();
        let seconds = time(case, &outcomes, rounds);
        rows.push(Measured {
            name: case.name.clone(),
            outcomes,
            seconds,
        });
    }
    let table = report::table(&rows);
    println!("{table}");
    if let Some(path) = &arguments.markdown {
        let text = report::page(&rows, &table, rounds, limit, &start_load);
        write(path, &text)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Times every planner that plans anything, over the operations that all of those plan.
fn time(case: &Case, outcomes: &[Outcomes], rounds: usize) -> Vec<Vec<f64>> {
    let able = |who: usize| outcomes[who].iter().any(Result::is_ok);
    let engines: Vec<Option<Vec<Option<Engine>>>> = (0..Who::ALL.len())
        .map(|who| {
            let read = |sdl| Engine::new(Who::ALL[who], sdl).ok();
            able(who).then(|| case.graphs.iter().map(|sdl| read(sdl)).collect())
        })
        .collect();
    let common: Vec<&(usize, String)> = (0..case.operations.len())
        .filter(|op| (0..Who::ALL.len()).all(|who| !able(who) || outcomes[who][*op].is_ok()))
        .map(|op| &case.operations[op])
        .collect();
    let mut seconds = vec![Vec::new(); Who::ALL.len()];
    if common.is_empty() {
        return seconds;
    }
    let start = Instant::now();
    for round in 0..rounds {
        if round >= ROUNDS_MIN && start.elapsed() > ROW {
            break;
        }
        for turn in 0..Who::ALL.len() {
            let who = (turn + round) % Who::ALL.len();
            if let Some(engines) = &engines[who] {
                seconds[who].push(measure(engines, &common));
            }
        }
    }
    for times in &mut seconds {
        times.sort_by(f64::total_cmp);
    }
    seconds
}

/// Seconds of one pass, the mean of as many as it takes.
fn measure(engines: &[Option<Engine>], operations: &[&(usize, String)]) -> f64 {
    let start = thread_seconds();
    let mut passes = 0;
    loop {
        for (graph, text) in operations {
            if let Some(engine) = &engines[*graph] {
                let _ = black_box(engine.plan(black_box(text)));
            }
        }
        passes += 1;
        let elapsed = thread_seconds() - start;
        if elapsed >= MEASUREMENT_SECONDS {
            return elapsed / f64::from(passes);
        }
    }
}

/// Processor time of this thread.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn explain(cases: &[Case], name: &str, number: &str) -> Result<(), String> {
    let case = cases.iter().find(|case| case.name.contains(name));
    let case = case.ok_or_else(|| {
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        format!(
            "no row is called {name}; there are:\n  {}",
            names.join("\n  ")
        )
    })?;
    let operation = number
        .parse()
        .ok()
        .and_then(|n: usize| case.operations.get(n));
    let (graph, text) = operation.ok_or_else(|| {
        let last = case.operations.len() - 1;
        format!(
            "the operations of {} are 0 to {last}, not {number}",
            case.name
        )
    })?;
    println!("{}\n{text}", case.graphs[*graph]);
    for who in Who::ALL {
        let plan = Engine::new(who, &case.graphs[*graph]).and_then(|engine| engine.explain(text));
        println!(
            "== {} ==\n{}",
            who.name(),
            plan.unwrap_or_else(|error| error)
        );
    }
    Ok(())
}
