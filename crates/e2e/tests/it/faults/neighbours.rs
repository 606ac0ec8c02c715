//! What others notice of an attack or a fault: one client asks steadily, alone, while another attacks ten times a second,
//! and while it attacks without a pause, in turns, several rounds. A benchmark, not a test: it judges nothing.
//!
//! The gateway is the binary that ships, a process of its own with one worker, on one core. Everything else is in this
//! process on another core: the steady client, the subgraphs, and, with what they leave of it, attackers and subgraphs
//! with a fault. So what is measured is what the gateway does to its clients, and not how the operating system shares a
//! core between a client and an attacker. A turn in which anything else on the machine computed is repeated: who may run
//! on one core only cannot step aside for it.
//!
//! A round is one turn of each kind, side by side in time, and gives one ratio of the 99th percentiles without a pause and
//! alone; the table has the median of those and the worst. Which turn comes first alternates.
//!
//! `bash bench/load.sh neighbours` prints the table and writes it into `docs/load.md`.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use ogive_mock::{Server, Service, assemble, config::Config as MockConfig};
use rustix::thread::sched_setaffinity;
use serde_json::json;

use super::{
    clients, floods,
    machine::{Cores, behind, disturbance, elsewhere, stay_awake, step_behind},
    subgraphs,
};
use crate::{
    graph::demo_file,
    http_client::{Connection, post, request},
    toxic::Toxic,
};

/// Requests per second of the steady client, one after another: an answer that takes longer than the time between two
/// delays those after it, so this is far below what the gateway can answer.
const RATE: u32 = 500;
/// How long it asks in each turn: 200 samples, of which two are beyond the percentile, and six of all rounds.
const TURN: Duration = Duration::from_millis(400);
const ROUNDS: usize = 3;
/// From one attack to the next of an attacker that has a pace.
const PACE: Duration = Duration::from_millis(100);
/// No round begins later than this; `OGIVE_NEIGHBOURS_SECONDS` in seconds instead.
const BUDGET: Duration = Duration::from_secs(200);
/// Rows of the page: all that others notice, and at least so many.
const ROWS: usize = 15;
/// What the issue asks for: others' 99th percentile within twice of what it is otherwise.
const NOTICED: f64 = 2.0;
/// Has a gateway of its own, with limits that the steady client would meet as well.
const ELSEWHERE: &str = "1,000 connections of one address, 20 allowed";
/// Is told here which gateway to ask.
const SLOW_READING: &str = "HTTP/2 streams of which nothing is taken (slow reading)";
/// A turn in which others on this machine computed for longer is repeated. As much as this keeps one or two requests
/// waiting.
const DISTURBED: Duration = Duration::from_millis(3);
/// How often a turn is tried; the last one counts in any case.
const ATTEMPTS: usize = 8;

/// Times from when a request was due to its answer.
type Latencies = Vec<Duration>;

/// What one attack or fault came to.
struct Row {
    kind: &'static str,
    name: &'static str,
    /// One for each turn.
    alone: Vec<Latencies>,
    paced: Vec<Latencies>,
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
            paced: Vec::new(),
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

/// The gateway's process.
struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Gateway {
    /// On these cores; subgraphs are those of `urls`.
    fn start(binary: &Path, cores: &Cores, urls: &[(String, String)], yaml: &str) -> Gateway {
        let mut config = "listen: 127.0.0.1:0\noverride_subgraph_url:\n".to_owned();
        for (name, url) in urls {
            let _ = writeln!(config, "  {name}: '{url}'");
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("neighbours");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ogive.yaml"), config + yaml).unwrap();
        fs::write(
            folder.join("supergraph.graphql"),
            demo_file("supergraph.graphql"),
        )
        .unwrap();
        // A process inherits where it may run.
        sched_setaffinity(None, &cores.gateway).unwrap();
        let child = Command::new(binary)
            .args(["serve", "-c", "ogive.yaml", "-s", "supergraph.graphql"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        sched_setaffinity(None, &cores.others).unwrap();
        let mut child = child.unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "it does not serve");
            let Some((_, url)) = line.split_once("serving http://") else {
                continue;
            };
            let end = url.find(|c: char| c != '.' && c != ':' && !c.is_ascii_digit());
            break url[..end.unwrap_or(url.len())].parse().unwrap();
        };
        // Whatever else it says is nobody's concern, but it must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Gateway { child, address }
    }
    /// Waits until it has done what its start or an attack has left to it: it computes for less than 2 % of the time.
    fn settle(&self) {
        for _ in 0..50 {
            let before = self.cpu_of("");
            std::thread::sleep(Duration::from_millis(20));
            if self.cpu_of("").saturating_sub(before) < Duration::from_micros(400) {
                return;
            }
        }
    }
    /// CPU time of all its threads whose names begin so.
    fn cpu_of(&self, name: &str) -> Duration {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else {
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
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks for one turn at a steady rate.
fn ask_steadily(connection: &mut Connection) -> Latencies {
    let mut latencies = Vec::new();
    let request = steady_request();
    let mut began = Instant::now();
    for nth in 0..RATE * TURN.as_millis() as u32 / 1_000 {
        let due = Duration::from_secs(1) / RATE * nth;
        let early = due.saturating_sub(began.elapsed());
        if !early.is_zero() {
            std::thread::sleep(early);
            // By how much the client oversleeps is not the gateway's doing; all that follow are due later.
            let late = began.elapsed().saturating_sub(due);
            began += late;
        }
        connection.write(&request);
        assert_eq!(connection.read().status, 200);
        latencies.push(began.elapsed().saturating_sub(due));
    }
    latencies
}

fn steady_request() -> Vec<u8> {
    let body = json!({ "query": "{ me { name } topProducts(first: 2) { name } }" }).to_string();
    let json = ("content-type", "application/json");
    request("POST", "/graphql", &[json], body.as_bytes())
}

/// A client that is there already, with a plan that is known.
fn known_client(gateway: &Gateway) -> Connection {
    let mut connection = Connection::open(gateway.address);
    connection.write(&steady_request());
    assert_eq!(connection.read().status, 200);
    connection
}

/// What happens in a turn beside the steady client.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// An attack every [`PACE`].
    Attacks,
    /// One attack after another.
    AttacksWithoutPause,
}

/// One turn of each kind; alone last if `attacked_first`. Gives how many were too disturbed by others to be good for
/// anything, and had to be repeated.
fn turns(
    gateway: &Gateway,
    row: &mut Row,
    attacked_first: bool,
    attack: impl Fn() + Sync,
) -> usize {
    let look = || {
        (
            gateway.cpu_of("ogive-worker"),
            gateway.cpu_of("ogive-heavy"),
        )
    };
    let ask = |connection: &mut Connection| {
        let before = elsewhere(gateway.child.id());
        let latencies = ask_steadily(connection);
        (
            latencies,
            disturbance(&before, &elsewhere(gateway.child.id())),
        )
    };
    // Whatever the first request brings about is over before any turn.
    drop(known_client(gateway));
    let mut steady = Duration::ZERO;
    let mut attacked = (Duration::ZERO, Duration::ZERO);
    let mut repeated = 0;
    let mut kinds = [
        Beside::Nothing,
        Beside::Attacks,
        Beside::AttacksWithoutPause,
    ];
    if attacked_first {
        kinds.reverse();
    }
    for beside in kinds {
        for attempt in 1..=ATTEMPTS {
            gateway.settle();
            let mut connection = known_client(gateway);
            let before = look();
            let (asked, times) = if beside != Beside::Nothing {
                let over = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let (ready, begin) = mpsc::channel();
                    let (over, attack) = (&over, &attack);
                    let attacker = scope.spawn(move || {
                        step_behind();
                        ready.send(()).unwrap();
                        let mut times = 0;
                        while !over.load(Ordering::Relaxed) {
                            let next = Instant::now() + PACE;
                            attack();
                            times += 1;
                            if beside == Beside::Attacks {
                                let pause = next.saturating_duration_since(Instant::now());
                                std::thread::sleep(pause);
                            }
                        }
                        times
                    });
                    begin.recv().unwrap();
                    let asked = ask(&mut connection);
                    over.store(true, Ordering::Relaxed);
                    (asked, attacker.join().unwrap())
                })
            } else {
                (ask(&mut connection), 0)
            };
            let after = look();
            let (latencies, disturbed) = asked;
            if attempt < ATTEMPTS && disturbed > DISTURBED {
                repeated += 1;
                continue;
            }
            let worker = after.0.saturating_sub(before.0);
            match beside {
                Beside::Nothing => {
                    row.alone.push(latencies);
                    steady = worker;
                }
                Beside::Attacks => row.paced.push(latencies),
                Beside::AttacksWithoutPause => {
                    row.during.push(latencies);
                    row.times += times;
                    attacked = (worker, after.1.saturating_sub(before.1));
                }
            }
            break;
        }
    }
    row.worker += attacked.0.saturating_sub(steady);
    row.heavy += attacked.1;
    repeated
}

#[test]
#[ignore = "a benchmark of several minutes: bash bench/load.sh neighbours"]
#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn what_neighbours_notice() {
    let binary = std::env::var_os("OGIVE_LOAD_BINARY").expect("OGIVE_LOAD_BINARY: path of `ogive`");
    let binary = Path::new(&binary);
    let cores = Cores::divided().expect("two cores: one for the gateway, one for its clients");
    sched_setaffinity(None, &cores.others).unwrap();
    let mock_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo");
    let mock_config = MockConfig::parse(&demo_file("mock.yaml"), &mock_folder).unwrap();
    let assembled = assemble(&mock_config).unwrap_or_else(|e| panic!("{e}"));
    let service: Arc<Service> = Arc::new(assembled.service);
    stay_awake(&cores);
    let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
    let urls = |toxic: Option<&Toxic>| -> Vec<(String, String)> {
        let url = |name: &str| match toxic {
            Some(toxic) if name == "inventory" => toxic.url(),
            _ => mock.url(name),
        };
        service
            .names()
            .map(|name| (name.to_owned(), url(name)))
            .collect()
    };
    let only = std::env::var("OGIVE_NEIGHBOURS_ONLY").unwrap_or_default();
    let wanted = |name: &str| name.contains(&*only) && name != ELSEWHERE;
    let mut attacks: Vec<_> = clients::CASES
        .iter()
        .filter(|case| wanted(case.attack))
        .map(|case| (case, Row::new("client", case.attack)))
        .collect();
    let mut unknown: Vec<_> = floods::UNKNOWN
        .iter()
        .filter(|case| wanted(case.name))
        .map(|case| (case, Row::new("flood", case.name)))
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
    let mut repeated = 0;
    while rounds < ROUNDS && (rounds == 0 || began.elapsed() < budget) {
        let attacked_first = rounds % 2 == 1;
        rounds += 1;
        let yaml = "http: { workers: 1, header_read_timeout: 300ms, body_read_timeout: 300ms, \
                    write_timeout: 200ms }\n";
        let gateway = Gateway::start(binary, &cores, &urls(None), yaml);
        for (case, row) in &mut attacks {
            repeated += turns(&gateway, row, attacked_first, || match case.attack {
                SLOW_READING => crate::http2::take_nothing(gateway.address),
                _ => drop((case.run)(gateway.address)),
            });
        }
        for (case, row) in &mut unknown {
            repeated += turns(&gateway, row, attacked_first, || {
                (case.run)(gateway.address);
            });
        }
        // It would be one more on the core of those that follow.
        drop(gateway);
        for (case, row) in &mut faults {
            let toxic = behind(case.subgraph);
            let urls = urls(Some(&toxic));
            let gateway = Gateway::start(binary, &cores, &urls, subgraphs::SHAPING);
            repeated += turns(&gateway, row, attacked_first, || {
                drop(post(gateway.address, subgraphs::QUERY));
            });
        }
    }
    let attacks = attacks.into_iter().map(|(_, row)| row);
    let mut rows: Vec<Row> = attacks
        .chain(unknown.into_iter().map(|(_, row)| row))
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
         of all turns beside an attack or fault ten times a second: {:.2} ms, without a pause: {:.2} ms. {repeated} turns were repeated because something else ran on the \
         machine meanwhile. Median ratio of the rounds below 2: {}; all others are in the \
         table, which has those that are noticed most:\n\n\
         | by a | attack or fault | p99 alone, ms | ten times a second, ms | without a pause, ms | ratio, median of the rounds | worst | CPU of the \
         worker, each, ms | beside it, ms |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rows.len(),
        all(|row| &row.alone),
        all(|row| &row.paced),
        all(|row| &row.during),
        rows.iter().filter(|row| row.ratio() < NOTICED).count(),
    );
    println!("{}", page.trim_end());
    for (nth, row) in rows.iter().enumerate() {
        let line = format!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.3} | {:.3} |",
            row.kind,
            row.name,
            p99(&row.alone.concat()),
            p99(&row.paced.concat()),
            p99(&row.during.concat()),
            row.ratio(),
            row.worst(),
            row.each(row.worker),
            row.each(row.heavy),
        );
        println!("{line}");
        if nth < ROWS || row.ratio() >= NOTICED {
            let _ = writeln!(page, "{line}");
        }
    }
    if let Ok(path) = std::env::var("OGIVE_LOAD_MARKDOWN") {
        let (begin, end) = ("<!-- neighbours: begin -->\n", "<!-- neighbours: end -->\n");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(begin).expect("the page has the marker");
        let (_, after) = rest.split_once(end).expect("the page has the marker");
        fs::write(&path, format!("{before}{begin}{page}{end}{after}")).unwrap();
    }
}
