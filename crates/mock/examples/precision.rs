//! How exactly answers are held back: clients on threads of their own ask one worker that holds each answer back, one
//! request after another, and the table says by how much later than told they had it.
//!
//! ```sh
//! cargo run --release -p ogive-mock --example precision [DELAY [CLIENTS [SECONDS]]]     # 10ms 40 3
//! ```
//!
//! What is measured includes the way there and back and waking the client. Leave the machine alone meanwhile.

#![allow(clippy::print_stdout, reason = "it is there to print")]

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use ogive_mock::{Data, Delay, Options, Server, Service, Settings, Source, Subgraph};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const QUERY: &str = r#"{"query":"{ a }"}"#;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let delay = Delay::parse(&arguments.next().unwrap_or_else(|| "10ms".into()))?;
    if delay.min != delay.max {
        return Err("a range says not when an answer is late: give one delay".into());
    }
    let clients: usize = arguments.next().map_or(Ok(40), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;

    let source = Source::Data(Arc::new(Data::default()));
    let subgraph = Subgraph::new("a", "type Query { a: Int }", source, Options::default())?;
    let settings = Settings {
        delay,
        ..Settings::default()
    };
    let mut service = Service::new();
    service.add("a", subgraph, settings);
    let server = Server::start(Arc::new(service), "127.0.0.1:0", 1)?;
    let address = server.addr();

    let end = Instant::now() + Duration::from_secs(seconds);
    let threads: Vec<_> = (0..clients)
        .map(|_| std::thread::spawn(move || client(address, delay.min, end)))
        .collect();
    let mut late = Vec::new();
    for thread in threads {
        late.extend(thread.join().map_err(|_| "a client panicked")??);
    }
    let used = worker_nanos();
    late.sort_unstable();
    let at = |share: f64| {
        let at = ((late.len() as f64 * share) as usize).min(late.len().saturating_sub(1));
        late.get(at).copied().unwrap_or_default().as_micros()
    };
    println!(
        "held back for {delay}, {clients} clients, {} answers/s",
        late.len() as u64 / seconds
    );
    println!(
        "later than told, µs: least {}, p50 {}, p90 {}, p99 {}, most {}",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    if let Some(nanos) = used {
        let each = nanos as f64 / late.len().max(1) as f64 / 1e3;
        let share = nanos as f64 / seconds as f64 / 1e7;
        println!("CPU of the worker: {each:.1} µs for an answer, {share:.1} % of one CPU");
    }
    Ok(())
}

/// How much later than told each answer came.
fn client(address: SocketAddr, told: Duration, end: Instant) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /graphql/a HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{QUERY}",
        QUERY.len()
    );
    let mut answer = [0; 4096];
    let mut late = Vec::new();
    while Instant::now() < end {
        let sent = Instant::now();
        stream.write_all(request.as_bytes())?;
        // An answer as small as this one comes in one piece.
        if stream.read(&mut answer)? == 0 {
            return Err("the connection was closed".into());
        }
        late.push(sent.elapsed().saturating_sub(told));
    }
    Ok(late)
}

/// CPU time of the one worker thread so far, where the system tells.
fn worker_nanos() -> Option<u64> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    threads.flatten().find_map(|thread| {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).ok();
        (read("comm")?.trim() == "mock-0")
            .then(|| read("schedstat")?.split(' ').next()?.parse().ok())?
    })
}
