//! What others notice of an attack or a fault: one client asks steadily on the gateway's only worker, alone and while
//! another attacks without a pause, in turns, several rounds in one process. A benchmark, not a test: it judges nothing.
//!
//! A round is one turn alone and one under attack, side by side in time, and gives one ratio of their 99th percentiles;
//! the table has the median of those and the worst. Which turn comes first alternates.
//!
//! `bash bench/load.sh neighbours` prints the table and writes it into `docs/load.md`.

use std::{
    fmt::Write as _,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{clients, subgraphs};
use crate::{
    graph::Graph,
    http_client::{Connection, post, request},
};

/// Requests per second of the steady client, one after another: an answer that takes longer than the time between two
/// delays those after it, so this is far below what the gateway can answer.
const RATE: u32 = 500;
/// How long it asks in each turn: 150 samples, so that one of them is beyond the percentile, and four of all rounds.
const TURN: Duration = Duration::from_millis(300);
const ROUNDS: usize = 3;
/// No round begins later than this; `OGIVE_NEIGHBOURS_SECONDS` in seconds instead.
const BUDGET: Duration = Duration::from_secs(120);
/// Rows of the page: those that others notice most.
const ROWS: usize = 15;

/// Times from when a request was due to its answer.
type Latencies = Vec<Duration>;

/// What one attack or fault came to.
struct Row {
    kind: &'static str,
    name: &'static str,
    /// One for each turn.
    alone: Vec<Latencies>,
    during: Vec<Latencies>,
    /// How often it happened.
    times: u32,
    /// What that cost the worker, without the steady client.
    worker: Duration,
    /// What it cost the threads for heavy work.
    heavy: Duration,
}

impl Row {
    fn new(kind: &'static str, name: &'static str) -> Row {
        Row {
            kind,
            name,
            alone: Vec::new(),
            during: Vec::new(),
            times: 0,
            worker: Duration::ZERO,
            heavy: Duration::ZERO,
        }
    }
    /// The ratio of each round, least first.
    fn ratios(&self) -> Vec<f64> {
        let rounds = self.during.iter().zip(&self.alone);
        let mut ratios: Vec<f64> = rounds.map(|(d, a)| p99(d) / p99(a)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios
    }
    /// Median of the rounds.
    fn ratio(&self) -> f64 {
        let ratios = self.ratios();
        ratios[ratios.len() / 2]
    }
    /// The worst of the rounds.
    fn worst(&self) -> f64 {
        self.ratios().last().copied().unwrap_or_default()
    }
    /// CPU time per attack in milliseconds.
    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1_000.0 / f64::from(self.times.max(1))
    }
}

/// In milliseconds.
fn p99(latencies: &[Duration]) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let at = sorted.len() * 99 / 100;
    sorted[at.min(sorted.len() - 1)].as_secs_f64() * 1_000.0
}

/// Asks for one turn at a steady rate.
fn ask_steadily(connection: &mut Connection) -> Latencies {
    let mut latencies = Vec::new();
    let body = json!({ "query": "{ me { name } topProducts(first: 2) { name } }" }).to_string();
    let json = ("content-type", "application/json");
    let request = request("POST", "/graphql", &[json], body.as_bytes());
    let began = Instant::now();
    for nth in 0..RATE * TURN.as_millis() as u32 / 1_000 {
        let due = Duration::from_secs(1) / RATE * nth;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        connection.write(&request);
        assert_eq!(connection.read().status, 200);
        latencies.push(began.elapsed().saturating_sub(due));
    }
    latencies
}

/// CPU time of all threads of this process with such a name.
fn cpu_of(name: &str) -> Duration {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let comm = fs::read_to_string(thread.path().join("comm")).ok()?;
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let time: u64 = schedstat.split(' ').next()?.parse().ok()?;
        comm.starts_with(name).then_some(time)
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// One turn alone and one under attack; the latter first if `attacked_first`.
fn turns(graph: &Graph, row: &mut Row, attacked_first: bool, attack: impl Fn() + Sync) {
    let look = || (cpu_of("ogive-worker"), cpu_of("ogive-heavy"));
    let mut connection = Connection::open(graph.address());
    let mut steady = Duration::ZERO;
    let mut attacked = (Duration::ZERO, Duration::ZERO);
    for under_attack in [attacked_first, !attacked_first] {
        let before = look();
        if under_attack {
            let over = AtomicBool::new(false);
            let attacking = || {
                let mut times = 0;
                while !over.load(Ordering::Relaxed) {
                    attack();
                    times += 1;
                }
                times
            };
            row.times += std::thread::scope(|scope| {
                let attacker = scope.spawn(attacking);
                row.during.push(ask_steadily(&mut connection));
                over.store(true, Ordering::Relaxed);
                attacker.join().unwrap()
            });
            let after = look();
            attacked = (
                after.0.saturating_sub(before.0),
                after.1.saturating_sub(before.1),
            );
        } else {
            row.alone.push(ask_steadily(&mut connection));
            steady = look().0.saturating_sub(before.0);
        }
    }
    row.worker += attacked.0.saturating_sub(steady);
    row.heavy += attacked.1;
}

#[test]
#[ignore = "a benchmark of several minutes: bash bench/load.sh neighbours"]
#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn what_neighbours_notice() {
    let only = std::env::var("OGIVE_NEIGHBOURS_ONLY").unwrap_or_default();
    let wanted = |name: &str| name.contains(&*only);
    let mut attacks: Vec<_> = clients::CASES
        .iter()
        .filter(|case| wanted(case.attack))
        .map(|case| (case, Row::new("client", case.attack)))
        .collect();
    let mut faults: Vec<_> = subgraphs::CASES
        .iter()
        .filter(|case| wanted(case.fault))
        .map(|case| (case, Row::new("subgraph", case.fault)))
        .collect();
    let seconds = std::env::var("OGIVE_NEIGHBOURS_SECONDS").ok();
    let budget = seconds.map_or(BUDGET, |text| Duration::from_secs(text.parse().unwrap()));
    let began = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS && (rounds == 0 || began.elapsed() < budget) {
        let attacked_first = rounds % 2 == 1;
        rounds += 1;
        let graph = Graph::with(
            "http: { workers: 1, header_read_timeout: 300ms, body_read_timeout: 300ms }",
        );
        for (case, row) in &mut attacks {
            turns(&graph, row, attacked_first, || drop((case.run)(&graph)));
        }
        for (case, row) in &mut faults {
            let (graph, _subgraph) = subgraphs::served(case);
            let address = graph.address();
            turns(&graph, row, attacked_first, || {
                drop(post(address, subgraphs::QUERY));
            });
        }
    }
    let attacks = attacks.into_iter().map(|(_, row)| row);
    let mut rows: Vec<Row> = attacks
        .chain(faults.into_iter().map(|(_, row)| row))
        .collect();
    rows.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let all = |turns: fn(&Row) -> &Vec<Latencies>| {
        p99(&rows
            .iter()
            .flat_map(turns)
            .flatten()
            .copied()
            .collect::<Vec<_>>())
    };
    let mut page = format!(
        "{} attacks and faults, {rounds} rounds, {RATE} requests per second beside each. p99 of all turns alone: {:.2} ms, \
         of all turns beside an attack or fault: {:.2} ms. Median ratio of the rounds below 2: {}. Those that are noticed \
         most:\n\n\
         | by a | attack or fault | p99 alone, ms | p99 meanwhile, ms | ratio, median of the rounds | worst | CPU of the \
         worker, each, ms | beside it, ms |\n\
         |---|---|---|---|---|---|---|---|\n",
        rows.len(),
        all(|row| &row.alone),
        all(|row| &row.during),
        rows.iter().filter(|row| row.ratio() < 2.0).count(),
    );
    println!("{}", page.trim_end());
    for (nth, row) in rows.iter().enumerate() {
        let line = format!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} |",
            row.kind,
            row.name,
            p99(&row.alone.concat()),
            p99(&row.during.concat()),
            row.ratio(),
            row.worst(),
            row.each(row.worker),
            row.each(row.heavy),
        );
        println!("{line}");
        if nth < ROWS {
            let _ = writeln!(page, "{line}");
        }
    }
    let Ok(path) = std::env::var("OGIVE_LOAD_MARKDOWN") else {
        return;
    };
    let (begin, end) = ("<!-- neighbours: begin -->\n", "<!-- neighbours: end -->\n");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has the marker");
    let (_, after) = rest.split_once(end).expect("the page has the marker");
    fs::write(&path, format!("{before}{begin}{page}{end}{after}")).unwrap();
}
