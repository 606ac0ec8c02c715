//! Mixed load with faults, attacks, clients that leave, and reloads, while memory and open files are watched.
//!
//! A few seconds by default. Half an hour with what ships: `bash bench/load.sh soak`, which sets
//!
//! - `OGIVE_SOAK_SECONDS`: how long. From [`LONG`] on, the slope of the resident memory over the second half must be next
//!   to nothing.
//! - `OGIVE_SOAK_RATE`: requests per second of each client; without it, as fast as answers come.
//! - `OGIVE_LOAD_MARKDOWN`: the page into which the table goes.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    page::{self, look, number, put},
    process::{Running, address, demo, file, subgraphs},
};

const ME: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;

const CLIENTS: usize = 3;
/// Plans that are kept.
const PLANS: usize = 200;
/// Steepest slope of a long run, in KiB per minute.
const SLOPE_MAX: f64 = 64.0;
/// A run of so many seconds is long enough for a verdict on the slope.
const LONG: u64 = 600;
/// Rows of the table, the first and the last included.
const ROWS: u32 = 13;
/// Between two reloads of a run with a rate.
const RELOAD_EVERY: Duration = Duration::from_millis(500);

/// One connection that is kept alive.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(gateway: &str) -> Client {
        let stream = TcpStream::connect(gateway).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }
    /// Sends a body with further header lines.
    pub(crate) fn send(&mut self, body: &str, lines: &str) {
        let head = format!(
            "POST /graphql HTTP/1.1\r\nhost: soak\r\ncontent-type: application/json\r\n{lines}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.0.get_mut();
        stream.write_all((head + body).as_bytes()).unwrap();
    }
    pub(crate) fn receive(&mut self) -> (u16, Vec<u8>) {
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
        if length > 0 {
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).unwrap();
            return (status, body);
        }
        // What is encoded on its way comes in chunks.
        let mut body = Vec::new();
        loop {
            let mut size = String::new();
            self.0.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.0.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return (status, body);
            }
        }
    }
}

/// Asks until told to stop; `pace` is the time between two requests.
pub(crate) fn load(gateway: &str, stop: &AtomicBool, asked: &AtomicUsize, pace: Option<Duration>) {
    const PRODUCTS: &str =
        "{ topProducts(first: 3) { name inStock reviews { stars author { username } } } }";
    let mut client = Client::connect(gateway);
    let begun = Instant::now();
    for round in 0u32.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if let Some(pace) = pace {
            page::pace((pace * round).saturating_sub(begun.elapsed()));
        }
        let json = |query: &str| serde_json::json!({ "query": query }).to_string();
        // Body, further header lines, expected status.
        let (body, lines, expected) = match round % 16 {
            // Every document is another one, and so is every operation's name.
            0 => (
                json(&format!("query Q{round} {{ me {{ name }} }}")),
                "",
                200,
            ),
            1 => (
                json(&format!("{{ a{round}: topProducts {{ name }} }}")),
                "",
                200,
            ),
            2 => (json("{ nope }"), "", 400),
            3 => (json(PRODUCTS), "x-mock-fault: status:503\r\n", 200),
            4 => (json(PRODUCTS), "x-mock-fault: drop\r\n", 200),
            5 => (json(PRODUCTS), "x-mock-fault: malformed\r\n", 200),
            6 => (json(PRODUCTS), "x-mock-fault: truncate\r\n", 200),
            7 => (json(PRODUCTS), "x-mock-fault: short-entities\r\n", 200),
            8 => (json(PRODUCTS), "x-mock-fault: null-data\r\n", 200),
            9 => {
                // A client that leaves.
                Client::connect(gateway).send(&json(PRODUCTS), "x-mock-fault: delay:5ms\r\n");
                continue;
            }
            10 => {
                let bomb = format!("{}a{}", "{a".repeat(1_000), "}".repeat(1_000));
                (json(&bomb), "", 400)
            }
            11 => {
                let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
                let body = r#"{"query":"{ me { name } }","variables":{"a":@}}"#;
                (body.replace('@', &deep), "", 400)
            }
            12 => {
                let many: Vec<String> = (0..200).map(|i| format!("a{i}: me {{ name }}")).collect();
                (json(&format!("{{ {} }}", many.join(" "))), "", 200)
            }
            13 => (json(PRODUCTS), "accept-encoding: gzip\r\n", 200),
            14 => (
                format!("[{},{}]", json("{ me { name } }"), json("{ no }")),
                "",
                200,
            ),
            _ => (json("{ me { name } }"), "", 200),
        };
        client.send(&body, lines);
        let (status, body) = client.receive();
        assert_eq!(status, expected, "{}", String::from_utf8_lossy(&body));
        if matches!(round % 16, 0 | 15) {
            assert_eq!(String::from_utf8(body).unwrap(), ME);
        }
        asked.fetch_add(1, Ordering::Relaxed);
    }
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

/// The configuration of one reload, which keeps so many plans; every other has other limits.
pub(crate) fn configuration(urls: &str, supergraph: &str, plans: usize, reload: usize) -> String {
    format!(
        "listen: 127.0.0.1:0\nsupergraph: {{ path: '{supergraph}' }}\n{urls}\
         headers: {{ all: {{ request: [{{ propagate: {{ named: x-mock-fault }} }}] }} }}\n\
         query_planning: {{ cache: {{ size: {plans} }} }}\n\
         batching: {{ enabled: true }}\n\
         limits: {{ max_depth: {} }}\n\
         telemetry: {{ exporters: {{ metrics: {{ common: {{ cardinality_limit: 100 }}, \
         prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n",
        50 + reload % 2
    )
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what a long run is for")]
fn memory_and_files_come_to_rest() {
    let seconds = number("OGIVE_SOAK_SECONDS").unwrap_or(4);
    let pace = number("OGIVE_SOAK_RATE").map(|rate| Duration::from_secs(1) / rate.max(1) as u32);
    let (_mock, urls) = subgraphs();
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("soak.graphql", &schema);
    let config = file("soak.yaml", configuration(&urls, &supergraph, PLANS, 0));
    let mut serve = Running::start(&["serve", "-c", &config, "--log", "off,ogive=info"]);
    let gateway = address(&serve.logged("serving http://"));
    let (stop, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (gateway, stop, asked) = (gateway.clone(), Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || load(&gateway, &stop, &asked, pace))
        })
        .collect();
    let start = Instant::now();
    let mut points = Vec::new();
    let mut files = Vec::new();
    let (mut reloads, mut rows) = (0usize, 0u32);
    let mut table = String::from(
        "| minutes | requests | reloads | resident, MiB | open files |\n|---|---|---|---|---|\n",
    );
    println!("{}", table.trim_end());
    // Somebody has to be answered, however slow the machine is.
    while start.elapsed() < Duration::from_secs(seconds) || asked.load(Ordering::Relaxed) == 0 {
        // The pace of this loop is that of the reloads: each is waited for.
        let broken = reloads % 10 == 9;
        let text = if broken {
            "type Query { broken".to_owned()
        } else {
            schema.replace("type Person", &format!("\"v{reloads}\"\ntype Person"))
        };
        fs::write(&supergraph, text).unwrap();
        fs::write(&config, configuration(&urls, &supergraph, PLANS, reloads)).unwrap();
        serve.signal("HUP");
        let line = serve.logged("SIGHUP: reload");
        assert_eq!(line.contains("reload refused"), broken, "{line}");
        reloads += 1;
        if pace.is_some() {
            let due = RELOAD_EVERY * reloads as u32;
            page::pace(due.saturating_sub(start.elapsed()));
        }
        let (resident, open) = look(serve.id()).unwrap();
        let at = start.elapsed().as_secs_f64();
        points.push((at / 60.0, resident));
        files.push(open);
        if at >= seconds as f64 * f64::from(rows) / f64::from(ROWS - 1) {
            rows += 1;
            let row = format!(
                "| {:.1} | {} | {reloads} | {:.1} | {open} |\n",
                at / 60.0,
                asked.load(Ordering::Relaxed),
                resident / 1024.0,
            );
            println!("{}", row.trim_end());
            table.push_str(&row);
        }
        assert!(
            !clients.iter().any(|client| client.is_finished()),
            "a client has seen what it should not"
        );
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    let half = &points[points.len() / 2..];
    let (slope, most) = (slope(half), files.iter().max().unwrap());
    let _ = writeln!(
        table,
        "\n{} requests and {reloads} reloads in {:.0} minutes, none answered otherwise than expected. \
         Slope of the resident memory over the second half: {slope:.1} KiB per minute. \
         At most {most} files open.",
        asked.load(Ordering::Relaxed),
        start.elapsed().as_secs_f64() / 60.0,
    );
    println!("{}", table.lines().last().unwrap_or_default());
    put("soak", &table);
    assert!(asked.load(Ordering::Relaxed) > 0 && reloads > 0);
    // The clients, those that just left, a few connections per worker and subgraph, listeners and runtimes.
    assert!(*most < 200, "{most} open files");
    if seconds >= LONG {
        assert!(
            slope < SLOPE_MAX,
            "memory grows by {slope:.1} KiB per minute"
        );
        let quarter = files.len() / 4;
        let (first, last) = (&files[..quarter], &files[files.len() - quarter..]);
        let (first, last) = (first.iter().max().unwrap(), last.iter().max().unwrap());
        assert!(*last <= first + 16, "{first} open files became {last}");
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}
