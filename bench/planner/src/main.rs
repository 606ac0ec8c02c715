//! Cold query planning: `ogive-planner` beside `hive-router-query-planner`, one interleaved run, one thread.
//!
//! ```sh
//! cargo run --release --manifest-path bench/planner/Cargo.toml -- --markdown docs/planner-benchmark.md
//! ```
//!
//! Prints one Markdown table; `--markdown FILE` writes it with machine and versions. `--rounds N` (default 15),
//! `--seconds N` per plan before it counts as stalled (default 10), `--only TEXT` rows whose name contains it.
//!
//! `--growth FILE.svg` writes the chart of how planning grows with the families, and prints it as a table; it needs
//! valgrind.
//!
//! `--explain NAME NUMBER` prints one operation of a row, its supergraph and everybody's plan instead.
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
    time::{Duration, Instant},
};

use cases::Case;
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

struct Arguments {
    rounds: usize,
    limit: Duration,
    only: Option<String>,
    markdown: Option<String>,
    child: Option<(Who, usize, usize)>,
    explain: Option<(String, usize)>,
    growth: Option<String>,
    work: Option<[usize; 3]>,
}

fn main() {
    let arguments = arguments();
    let planning = std::thread::Builder::new().stack_size(STACK);
    let handle = planning.spawn(move || run(&arguments));
    let done = handle.expect("a thread").join();
    done.expect("the run ends");
}

fn run(arguments: &Arguments) {
    if let Some([family, size, passes]) = arguments.work {
        return growth::work(family, size, passes);
    }
    if let Some(path) = &arguments.growth {
        let (table, chart) = growth::measure();
        println!("{table}");
        return std::fs::write(path, chart).expect("the chart can be written");
    }
    let cases = cases::all();
    if let Some((who, case, first)) = arguments.child {
        return probe::child(who, &cases[case], first);
    }
    if let Some((name, number)) = &arguments.explain {
        return explain(&cases, name, *number);
    }
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
            .map(|who| probe::probe(*who, index, case, arguments.limit))
            .collect();
        let seconds = time(case, &outcomes, arguments.rounds);
        rows.push(Measured {
            name: case.name.clone(),
            outcomes,
            seconds,
        });
    }
    let table = report::table(&rows);
    println!("{table}");
    if let Some(path) = &arguments.markdown {
        let text = report::page(
            &rows,
            &table,
            arguments.rounds,
            arguments.limit,
            &start_load,
        );
        std::fs::write(path, text).expect("the page can be written");
    }
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

fn explain(cases: &[Case], name: &str, number: usize) {
    let case = cases.iter().find(|case| case.name.contains(name));
    let case = case.expect("the name of a row");
    let (graph, text) = &case.operations[number];
    println!("{}\n{text}", case.graphs[*graph]);
    for who in Who::ALL {
        let plan = Engine::new(who, &case.graphs[*graph]).and_then(|engine| engine.explain(text));
        println!(
            "== {} ==\n{}",
            who.name(),
            plan.unwrap_or_else(|error| error)
        );
    }
}

fn arguments() -> Arguments {
    let mut arguments = Arguments {
        rounds: 15,
        limit: Duration::from_secs(10),
        only: None,
        markdown: None,
        child: None,
        explain: None,
        growth: None,
        work: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        let number = |text: String| text.parse::<usize>().expect("a number");
        match arg.as_str() {
            "--rounds" => arguments.rounds = number(value()).max(1),
            "--seconds" => arguments.limit = Duration::from_secs(number(value()) as u64),
            "--only" => arguments.only = Some(value()),
            "--markdown" => arguments.markdown = Some(value()),
            "--explain" => arguments.explain = Some((value(), number(value()))),
            "--growth" => arguments.growth = Some(value()),
            "--work" => arguments.work = Some([(); 3].map(|()| number(value()))),
            "--child" => {
                let name = value();
                let who = Who::ALL.into_iter().find(|who| who.name() == name);
                let who = who.expect("the name of a planner");
                arguments.child = Some((who, number(value()), number(value())));
            }
            other => panic!("unknown argument {other}: see the head of bench/planner/src/main.rs"),
        }
    }
    arguments
}
