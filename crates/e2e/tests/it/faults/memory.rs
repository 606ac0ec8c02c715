//! A gateway that may have 256 MiB, all attacks and faults of the page and what fills memory on purpose, each repeated by
//! fifty connections for a while: it lives, stays below, and answers others meanwhile.
//!
//! Minutes long, so it is no part of `cargo test`: `bash bench/load.sh memory` runs it on the binary that ships and writes
//! the table of `docs/load.md`. The limit is that of a control group where the test may make one (as in a container);
//! elsewhere the gateway is told it in its configuration, and resident memory is looked at.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_mock::{Server, Service, assemble, config::Config as MockConfig};
use serde_json::json;

use super::{clients, floods, subgraphs};
use crate::{
    graph::demo_file,
    http_client::{Connection, post, request},
};

/// What the process may have.
const LIMIT: u64 = 256 << 20;
const ATTACKERS: usize = 50;
/// Of each attack; `OGIVE_MEMORY_SECONDS` instead.
const SECONDS: u64 = 10;
/// Between two requests of the client that means no harm.
const PAUSE: Duration = Duration::from_millis(50);
/// It comes from elsewhere, so what bounds one client does not bound it.
const BYSTANDER: [u8; 4] = [127, 0, 0, 2];

/// A control group with the limit; removed at the end.
struct Group(PathBuf);

impl Group {
    /// `None` where this process may not make one.
    fn new(nth: usize) -> Option<Group> {
        let name = format!("ogive-{}-{nth}", std::process::id());
        for (root, file) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let folder = Path::new(root).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Group(folder);
            let limit = group.0.join(file);
            if limit.exists() && fs::write(limit, LIMIT.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The gateway's process.
struct Gateway {
    child: Child,
    address: SocketAddr,
    _group: Option<Group>,
}

impl Gateway {
    fn start(binary: &Path, nth: usize, urls: &[(String, String)], yaml: &str) -> Gateway {
        let group = Group::new(nth);
        let mut config = "listen: 127.0.0.1:0\noverride_subgraph_url:\n".to_owned();
        for (name, url) in urls {
            let _ = writeln!(config, "  {name}: '{url}'");
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("ogive.yaml"), config + yaml).unwrap();
        let supergraph = demo_file("supergraph.graphql");
        fs::write(folder.join("supergraph.graphql"), supergraph).unwrap();
        // A shell, because a process enters a control group by itself before it becomes another.
        let enter = match &group {
            Some(Group(folder)) => format!("echo $$ > {}/cgroup.procs && ", folder.display()),
            None => String::new(),
        };
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "{enter}exec {} serve -c ogive.yaml -s supergraph.graphql",
                binary.display()
            ))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
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
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Gateway {
            child,
            address,
            _group: group,
        }
    }
    /// Most resident memory so far, in bytes; `None` once it has ended.
    fn peak(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib << 10)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client saw that asked steadily.
#[derive(Default)]
struct Bystander {
    answered: usize,
    refused: usize,
    failed: usize,
    slowest: Duration,
}

impl Bystander {
    fn ask_until(&mut self, over: &AtomicBool, address: SocketAddr) {
        let body = json!({ "query": "{ me { name } }" }).to_string();
        let json = ("content-type", "application/json");
        let request = request("POST", "/graphql", &[json], body.as_bytes());
        while !over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let status = catch_unwind(AssertUnwindSafe(|| {
                let mut connection = Connection::open_from(BYSTANDER.into(), address);
                connection.write(&request);
                connection.read().status
            }));
            match status {
                Ok(200) => {
                    self.answered += 1;
                    self.slowest = self.slowest.max(began.elapsed());
                }
                Ok(503) => self.refused += 1,
                _ => self.failed += 1,
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// One line of the table.
struct Row {
    kind: &'static str,
    name: &'static str,
    times: u64,
    /// In bytes; `None` if the process ended.
    peak: Option<u64>,
    bystander: Bystander,
}

impl Row {
    /// Whether it held: it lives, below its limit, and most of what others asked was answered.
    fn holds(&self) -> bool {
        let asked = self.bystander.answered + self.bystander.refused + self.bystander.failed;
        self.peak.is_some_and(|peak| peak <= LIMIT)
            && self.bystander.failed == 0
            && self.bystander.answered * 2 > asked
    }
    fn text(&self) -> String {
        let peak = match self.peak {
            Some(peak) => format!("{}", peak >> 20),
            None => "ended".to_owned(),
        };
        format!(
            "| {} | {} | {} | {peak} | {} | {} | {} | {} | {} |",
            self.kind,
            self.name,
            self.times,
            self.bystander.answered,
            self.bystander.refused,
            self.bystander.failed,
            self.bystander.slowest.as_millis(),
            if self.holds() { "yes" } else { "**no**" },
        )
    }
}

/// Fifty threads attack for a while, one client asks beside them.
fn besiege(gateway: &Gateway, length: Duration, attack: impl Fn() + Sync) -> (u64, Bystander) {
    let over = AtomicBool::new(false);
    let times = AtomicU64::new(0);
    let mut bystander = Bystander::default();
    std::thread::scope(|scope| {
        for _ in 0..ATTACKERS {
            scope.spawn(|| {
                let until = Instant::now() + length;
                while Instant::now() < until && !over.load(Ordering::Relaxed) {
                    // What it sees of it is its own affair.
                    let _ = catch_unwind(AssertUnwindSafe(&attack));
                    times.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let asking = scope.spawn(|| bystander.ask_until(&over, gateway.address));
        std::thread::sleep(length);
        over.store(true, Ordering::Relaxed);
        let _ = asking.join();
    });
    (times.into_inner(), bystander)
}

#[test]
#[ignore = "a load of several minutes: bash bench/load.sh memory"]
#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn attacks_repeated_by_fifty_connections_stay_within_256_mib() {
    let binary = std::env::var_os("OGIVE_LOAD_BINARY").expect("OGIVE_LOAD_BINARY: path of `ogive`");
    let binary = fs::canonicalize(binary).unwrap();
    let seconds = std::env::var("OGIVE_MEMORY_SECONDS").ok();
    let length = Duration::from_secs(seconds.map_or(SECONDS, |text| text.parse().unwrap()));
    let only = std::env::var("OGIVE_MEMORY_ONLY").unwrap_or_default();
    // Attackers see their connections closed all the time.
    std::panic::set_hook(Box::new(|_| {}));
    let mock_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo");
    let mock_config = MockConfig::parse(&demo_file("mock.yaml"), &mock_folder).unwrap();
    let assembled = assemble(&mock_config).unwrap_or_else(|e| panic!("{e}"));
    let service: Arc<Service> = Arc::new(assembled.service);
    let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
    let urls = |faulty: Option<(&str, String)>| -> Vec<(String, String)> {
        let url = |name: &str| match &faulty {
            Some((subgraph, url)) if *subgraph == name => url.clone(),
            _ => mock.url(name),
        };
        let named = service.names().map(|name| (name.to_owned(), url(name)));
        named.collect()
    };
    let nth = AtomicUsize::new(0);
    let start = |urls: &[(String, String)], yaml: &str| {
        Gateway::start(&binary, nth.fetch_add(1, Ordering::Relaxed), urls, yaml)
    };
    let mut rows = Vec::new();
    let mut add = |kind, name, gateway: &Gateway, (times, bystander)| {
        let peak = gateway.peak();
        let row = Row {
            kind,
            name,
            times,
            peak,
            bystander,
        };
        println!("{}", row.text());
        rows.push(row);
    };
    for case in floods::CASES.iter().filter(|c| c.name.contains(&*only)) {
        let fault = case.subgraph.map(|subgraph| subgraph());
        let faulty = fault.as_ref().map(|toxic| ("inventory", toxic.url()));
        let gateway = start(&urls(faulty), case.yaml);
        let seen = besiege(&gateway, length, || (case.run)(gateway.address));
        add("flood", case.name, &gateway, seen);
    }
    for case in clients::CASES.iter().filter(|c| c.attack.contains(&*only)) {
        let gateway = start(&urls(None), "");
        let seen = besiege(&gateway, length, || drop((case.run)(gateway.address)));
        add("client", case.attack, &gateway, seen);
    }
    for case in subgraphs::CASES.iter().filter(|c| c.fault.contains(&*only)) {
        let toxic = (case.subgraph)();
        let gateway = start(&urls(Some(("inventory", toxic.url()))), "");
        let seen = besiege(&gateway, length, || {
            drop(post(gateway.address, subgraphs::QUERY));
        });
        add("subgraph", case.fault, &gateway, seen);
    }
    let failed: Vec<&str> = rows.iter().filter(|r| !r.holds()).map(|r| r.name).collect();
    if only.is_empty() {
        write_page(&rows, length);
    }
    assert!(failed.is_empty(), "not withstood: {failed:?}");
}

/// The table of `docs/load.md`: how many held, and those that took most.
fn write_page(rows: &[Row], length: Duration) {
    let Ok(path) = std::env::var("OGIVE_LOAD_MARKDOWN") else {
        return;
    };
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_key(|row| std::cmp::Reverse(row.peak.unwrap_or(u64::MAX)));
    let mut page = format!(
        "{} attacks and faults, each repeated by {ATTACKERS} connections for {} seconds on a process that may have {} MiB; \
         {} were withstood. Those that took most memory:\n\n\
         | by a | attack or fault | times | peak, MiB | others: answered | refused (503) | failed | slowest, ms | withstood |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rows.len(),
        length.as_secs(),
        LIMIT >> 20,
        rows.iter().filter(|row| row.holds()).count(),
    );
    for (nth, row) in sorted.iter().enumerate() {
        if nth < 20 || !row.holds() {
            let _ = writeln!(page, "{}", row.text());
        }
    }
    let (begin, end) = ("<!-- memory: begin -->\n", "<!-- memory: end -->\n");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has the marker");
    let (_, after) = rest.split_once(end).expect("the page has the marker");
    fs::write(&path, format!("{before}{begin}{page}{end}{after}")).unwrap();
}
