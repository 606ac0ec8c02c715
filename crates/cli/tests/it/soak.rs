//! Mixed load with faults, clients that leave, and reloads, while memory and open files are watched.
//!
//! A few seconds by default. Half an hour with what ships:
//! `OGIVE_SOAK_SECONDS=1800 cargo test --release -p ogive-cli --test it -- soak --nocapture`.
//! Then the slope of the resident memory over the second half must be next to nothing.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::process::{Running, address, demo, file};

const ME: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;

/// Steepest slope of a long run, in KiB per minute.
const SLOPE_MAX: f64 = 64.0;
/// A run of so many seconds is long enough for a verdict on the slope.
const LONG: u64 = 600;

/// One connection that is kept alive.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(gateway: &str) -> Client {
        let stream = TcpStream::connect(gateway).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }
    pub(crate) fn send(&mut self, query: &str, fault: &str) {
        let body = serde_json::json!({ "query": query }).to_string();
        let fault = match fault {
            "" => String::new(),
            fault => format!("x-mock-fault: {fault}\r\n"),
        };
        let head = format!(
            "POST /graphql HTTP/1.1\r\nhost: soak\r\ncontent-type: application/json\r\n{fault}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        self.0
            .get_mut()
            .write_all((head + &body).as_bytes())
            .unwrap();
    }
    pub(crate) fn receive(&mut self) -> (u16, String) {
        let (mut status, mut length) = (0, 0);
        let mut line = String::new();
        while self.0.read_line(&mut line).unwrap() > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(rest) = lower.strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

/// Asks in eight ways by turns until it is told to stop.
pub(crate) fn load(gateway: &str, stop: &AtomicBool, asked: &AtomicUsize) {
    let mut client = Client::connect(gateway);
    let mut round = 0usize;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        match round % 8 {
            // Every document is another one, and so is every operation's name.
            0 => client.send(&format!("query Q{round} {{ me {{ name }} }}"), ""),
            1 => client.send("{ nope }", ""),
            2 => client.send("{ topProducts(first: 2) { name inStock } }", "status:503"),
            3 => client.send(
                "{ topProducts(first: 2) { name reviews { stars } } }",
                "drop",
            ),
            4 => client.send(
                "{ me { name } topProducts(first: 3) { name } }",
                "malformed",
            ),
            5 => {
                // A client that leaves.
                let mut other = Client::connect(gateway);
                other.send("{ topProducts(first: 3) { name reviews { body } } }", "");
                continue;
            }
            _ => client.send("{ me { name } }", ""),
        }
        let (status, body) = client.receive();
        match round % 8 {
            0 | 6 | 7 => assert_eq!((status, body.as_str()), (200, ME)),
            1 => assert_eq!(status, 400, "{body}"),
            _ => assert_eq!(status, 200, "{body}"),
        }
        asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// The demo's subgraphs, a copy of its supergraph, and a configuration for both that lets faults through and keeps so
/// many plans.
pub(crate) fn subgraphs(name: &str, plans: usize) -> (Running, String, String) {
    let mut mock = Running::start(&[
        "mock",
        "--config",
        &demo("mock.yaml"),
        "--listen",
        "127.0.0.1:0",
    ]);
    let subgraphs = address(&mock.printed("accounts "));
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file(&format!("{name}.graphql"), schema);
    let urls: String = ["accounts", "inventory", "products", "reviews"]
        .iter()
        .map(|name| format!("  {name}: http://{subgraphs}/graphql/{name}\n"))
        .collect();
    let config = file(
        &format!("{name}.yaml"),
        format!(
            "listen: 127.0.0.1:0\nsupergraph: {{ path: '{supergraph}' }}\noverride_subgraph_url:\n{urls}\
             headers: {{ all: {{ request: [{{ propagate: {{ named: x-mock-fault }} }}] }} }}\n\
             query_planning: {{ cache: {{ size: {plans} }} }}\n\
             telemetry: {{ exporters: {{ metrics: {{ common: {{ cardinality_limit: 100 }}, \
             prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n"
        ),
    );
    (mock, supergraph, config)
}

/// Resident memory in KiB, and open files.
fn look(process: u32) -> (f64, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    let resident = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    (resident, files)
}

/// Of a straight line through the points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), p| {
        (above + (p.0 - x) * (p.1 - y), below + (p.0 - x).powi(2))
    });
    above / below.max(f64::MIN_POSITIVE)
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what a long run is for")]
fn memory_and_files_come_to_rest() {
    let seconds = std::env::var("OGIVE_SOAK_SECONDS");
    let seconds: u64 = seconds.map_or(4, |text| text.parse().unwrap());
    let (_mock, supergraph, config) = subgraphs("soak", 200);
    let schema = fs::read_to_string(&supergraph).unwrap();
    let mut serve = Running::start(&["serve", "-c", &config, "--log", "off,ogive=info"]);
    let gateway = address(&serve.logged("serving http://"));
    let (stop, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (gateway, stop, asked) = (gateway.clone(), Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || load(&gateway, &stop, &asked))
        })
        .collect();
    let start = Instant::now();
    let mut points = Vec::new();
    let mut files = Vec::new();
    let mut reloads = 0;
    println!("seconds  resident KiB  files  requests  reloads");
    while start.elapsed() < Duration::from_secs(seconds) {
        // The pace of this loop is that of the reloads: each is waited for.
        fs::write(&supergraph, format!("{schema}\n# {reloads}\n")).unwrap();
        serve.signal("HUP");
        serve.logged("reloaded");
        reloads += 1;
        let (resident, open) = look(serve.id());
        let at = start.elapsed().as_secs_f64();
        points.push((at / 60.0, resident));
        files.push(open);
        if points.len() % 50 == 1 {
            let asked = asked.load(Ordering::Relaxed);
            println!("{at:7.1}  {resident:12}  {open:5}  {asked:8}  {reloads:7}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    let half = &points[points.len() / 2..];
    let (slope, most) = (slope(half), files.iter().max().unwrap());
    println!(
        "{} requests, {reloads} reloads: {slope:.1} KiB per minute, at most {most} open files",
        asked.load(Ordering::Relaxed)
    );
    assert!(asked.load(Ordering::Relaxed) > 0 && reloads > 0);
    // Three clients, those that just left, a few connections per worker and subgraph, listeners and runtimes.
    assert!(*most < 200, "{most} open files");
    if seconds >= LONG {
        assert!(
            slope < SLOPE_MAX,
            "memory grows by {slope:.1} KiB per minute"
        );
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}
