#![allow(clippy::print_stdout, reason = "it prints its row")]
//! What becomes of three classes of requests when five times as many come as can be answered.
//!
//! `cargo run --release -p ogive-bench --example overload -- TITLE URL [SECONDS]` plays both ends: the subgraph, which answers
//! so many requests at a time and lets others wait, at the address in `OVERLOAD_SUBGRAPH`, and the clients. It prints one row
//! of a table; `bench/overload.sh` starts gateways for it. Latency counts from when a request was due.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use ogive_bench::http::{Answer, Connection, post};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::LocalSet,
    time::{sleep, sleep_until, timeout_at},
};

/// How many requests the subgraph answers at a time.
const SLOTS: usize = 16;
/// How long it holds each.
const HOLD: Duration = Duration::from_millis(10);
/// Most connections of clients.
const CONNECTIONS: usize = 5_000;
/// How long a load lasts before it counts.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long an answer is waited for after the load.
const PATIENCE: Duration = Duration::from_secs(5);
/// Classes by their header, and what part of all requests each is, in tenths.
const CLASSES: [(&str, u64); 3] = [("high", 1), ("middle", 3), ("low", 6)];
const QUERY: &str = "query Of($id: ID!) { user(id: $id) { name } }";
const ANSWER: &str = r#"{"data":{"user":{"name":"Ada"}}}"#;

type Failure = Box<dyn std::error::Error>;

/// What became of the requests of one class.
struct Class {
    sent: Cell<u64>,
    /// Answered with data before the load was over.
    answered: Cell<u64>,
    /// Answered without data: refused.
    refused: Cell<u64>,
    /// Of those that were not refused, in microseconds.
    latencies: RefCell<Histogram<u64>>,
}

impl Class {
    fn new() -> Result<Self, Failure> {
        Ok(Class {
            sent: Cell::new(0),
            answered: Cell::new(0),
            refused: Cell::new(0),
            latencies: RefCell::new(Histogram::new(3)?),
        })
    }

    fn p99(&self) -> f64 {
        self.latencies.borrow().value_at_quantile(0.99) as f64 / 1000.0
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [title, gateway, rest @ ..] = &arguments[..] else {
        return Err("needs a title and the address of a gateway".into());
    };
    let seconds = rest.first().map_or(Ok(10), |text| text.parse())?;
    let subgraph: SocketAddr = std::env::var("OVERLOAD_SUBGRAPH")?.parse()?;
    std::thread::spawn(move || serve(subgraph));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let length = Duration::from_secs(seconds);
    let row = measure(title, gateway.parse()?, length);
    println!("{}", LocalSet::new().block_on(&runtime, row)?);
    Ok(())
}

async fn measure(title: &str, gateway: SocketAddr, length: Duration) -> Result<String, Failure> {
    // Waits until the gateway is there, and makes its plan.
    let begun = Instant::now();
    while !is_served(gateway).await {
        if begun.elapsed() > Duration::from_secs(30) {
            return Err("the gateway does not answer".into());
        }
        sleep(Duration::from_millis(50)).await;
    }
    let capacity = capacity().await?;
    let idle = load(gateway, capacity * 0.1, length).await?;
    let loaded = load(gateway, capacity * 5.0, length).await?;
    let answered: u64 = loaded.iter().map(|class| class.answered.get()).sum();
    let goodput = answered as f64 / length.as_secs_f64() / capacity * 100.0;
    let mut row = format!("| {title} | {goodput:.0} % |");
    for (idle, loaded) in idle.iter().zip(loaded.iter()) {
        let part = |of: &Cell<u64>| of.get() as f64 / loaded.sent.get().max(1) as f64 * 100.0;
        row += &format!(
            " {:.1} | {:.1} | {:.0} % | {:.0} % |",
            idle.p99(),
            loaded.p99(),
            part(&loaded.answered),
            part(&loaded.refused),
        );
    }
    Ok(row)
}

/// How many requests the subgraph answers per second.
async fn capacity() -> Result<f64, Failure> {
    let subgraph: SocketAddr = std::env::var("OVERLOAD_SUBGRAPH")?.parse()?;
    let count = Rc::new(Cell::new(0));
    let end = Instant::now() + WARM_UP;
    let client = || {
        let count = count.clone();
        async move {
            let mut connection = Connection::open(subgraph).await?;
            let bytes = request(subgraph, "high", 0);
            let mut answer = Answer::default();
            while Instant::now() < end {
                connection.ask(&bytes, false, &mut answer).await?;
                count.set(count.get() + 1);
            }
            std::io::Result::Ok(())
        }
    };
    let clients: Vec<_> = (0..SLOTS * 4)
        .map(|_| tokio::task::spawn_local(client()))
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(f64::from(count.get()) / WARM_UP.as_secs_f64())
}

async fn is_served(gateway: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::open(gateway).await else {
        return false;
    };
    let mut answer = Answer::default();
    let bytes = request(gateway, "high", 0);
    let asked = connection.ask(&bytes, true, &mut answer);
    asked.await.is_ok() && answer.body == ANSWER.as_bytes()
}

/// Every request asks for something else, so that none is answered with another.
fn request(gateway: SocketAddr, class: &str, number: u64) -> Vec<u8> {
    let headers = format!("x-class: {class}\r\n");
    let body = format!(r#"{{"query":"{QUERY}","variables":{{"id":"{number}"}}}}"#);
    post("/graphql", gateway, &headers, &body)
}

/// So many requests per second, each sent when it is due.
async fn load(gateway: SocketAddr, rate: f64, length: Duration) -> Result<Rc<[Class; 3]>, Failure> {
    let classes = Rc::new([Class::new()?, Class::new()?, Class::new()?]);
    let idle = Rc::new(RefCell::new(Vec::<Connection>::new()));
    let free = Rc::new(Semaphore::new(CONNECTIONS));
    let begin = tokio::time::Instant::now();
    let start = begin + WARM_UP;
    let total = (rate * (WARM_UP + length).as_secs_f64()) as u64;
    let mut running = Vec::new();
    for number in 0..total {
        let due = begin + Duration::from_secs_f64(number as f64 / rate);
        if due > tokio::time::Instant::now() {
            sleep_until(due).await;
        }
        let of = class_of(number);
        let bytes = request(gateway, CLASSES[of].0, number + 1);
        let (classes, idle, free) = (classes.clone(), idle.clone(), free.clone());
        running.push(tokio::task::spawn_local(async move {
            let class = &classes[of];
            let counts = due >= start;
            class.sent.set(class.sent.get() + u64::from(counts));
            let asking = async {
                let permit = free.acquire().await.map_err(std::io::Error::other)?;
                let left = idle.borrow_mut().pop();
                let asked = ask(gateway, left, &bytes).await;
                drop(permit);
                asked
            };
            let asked = timeout_at(start + length + PATIENCE, asking).await;
            // Without an answer in time it is not known to take longer than that.
            let waited = due.elapsed().as_micros() as u64;
            let status = match asked {
                Ok(Ok((connection, status))) => {
                    if connection.is_open() {
                        idle.borrow_mut().push(connection);
                    }
                    Some(status)
                }
                _ => None,
            };
            // What came before counts for the subgraph, if it is answered while the load counts.
            let now = tokio::time::Instant::now();
            if status == Some(200) && (start..start + length).contains(&now) {
                class.answered.set(class.answered.get() + 1);
            }
            if !counts {
                return;
            }
            if status.is_none_or(|status| status == 200) {
                let _ = class.latencies.borrow_mut().record(waited);
            } else {
                class.refused.set(class.refused.get() + 1);
            }
        }));
    }
    for running in running {
        running.await?;
    }
    Ok(classes)
}

/// The classes in their parts, mixed.
fn class_of(number: u64) -> usize {
    let at = number * 7 % 10;
    let mut below = 0;
    let is_of = |(_, tenths): &(&str, u64)| {
        below += tenths;
        at < below
    };
    CLASSES.iter().position(is_of).unwrap_or(0)
}

/// The connection and the status; 200 only with the whole answer.
async fn ask(
    gateway: SocketAddr,
    left: Option<Connection>,
    request: &[u8],
) -> std::io::Result<(Connection, u16)> {
    let mut connection = match left {
        Some(connection) => connection,
        None => Connection::open(gateway).await?,
    };
    let mut answer = Answer::default();
    connection.ask(request, true, &mut answer).await?;
    let is_whole = answer.body == ANSWER.as_bytes();
    let status = match answer.status {
        200 if !is_whole => 0,
        status => status,
    };
    Ok((connection, status))
}

/// The subgraph.
fn serve(address: SocketAddr) -> Result<(), std::io::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let listener = TcpListener::bind(address).await?;
        let slots = Rc::new(Semaphore::new(SLOTS));
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::task::spawn_local(answer(stream, slots.clone()));
        }
    })
}

/// Answers requests of a connection until it ends.
async fn answer(mut stream: TcpStream, slots: Rc<Semaphore>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let written = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    let mut buffer = Vec::with_capacity(8 << 10);
    loop {
        while !is_request(&buffer) {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        buffer.clear();
        {
            let Ok(_slot) = slots.acquire().await else {
                return Ok(());
            };
            sleep(HOLD).await;
        }
        stream.write_all(written.as_bytes()).await?;
    }
}

/// Whether a request is there whole: gateways send one at a time, with its length.
fn is_request(bytes: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = request.parse(bytes) else {
        return false;
    };
    let mut headers = request.headers.iter();
    let length = headers.find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    bytes.len() >= head + length.unwrap_or(0)
}
