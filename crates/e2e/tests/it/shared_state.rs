//! What several gateways share in Redis: rates, and documents that clients have registered. Real servers that go away.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use ogive_testbase::left_out;

use crate::{
    graph::Graph,
    http_client::{Connection, JSON, request, send},
};

const MISSING: &str = "redis-server is not installed";

/// A server, killed when it is dropped.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(port: u16) -> Option<Redis> {
        let mut command = Command::new("redis-server");
        let text = port.to_string();
        let arguments = ["--port", &text, "--bind", "127.0.0.1", "--save", ""];
        command.args(arguments).current_dir(std::env::temp_dir());
        let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line.contains("Ready to accept connections")));
        std::thread::spawn(move || lines.for_each(drop));
        Some(Redis { child, port })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody uses. It is below those that the operating system gives away by itself, so that nobody has it either
/// while its server is away.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A gateway of its own, as another process is one.
fn gateway(port: u16, more: &str) -> Graph {
    Graph::with(&format!(
        "store: {{ redis: {{ urls: ['redis://127.0.0.1:{port}'], namespace: mine, timeout: 20s }} }}\n{more}"
    ))
}

/// Waits until so many gateways have said that they are there: whoever has not found Redis counts alone.
fn until_there(port: u16, gateways: usize) {
    let started = Instant::now();
    loop {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port.to_string(), "zcard", "mine:processes"]);
        let said = command.output().unwrap().stdout;
        if String::from_utf8_lossy(&said).trim() == gateways.to_string() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{said:?}");
    }
}

fn limited(port: u16, rate: &str) -> Graph {
    let rate = format!("{{ name: all, storage: redis, {rate} }}");
    let router = format!("traffic_shaping: {{ router: {{ rate_limits: [{rate}] }} }}");
    gateway(port, &router)
}

/// Asks every gateway at once until `asked` says that it is enough; how many were let pass. Whoever is not is told so, and
/// nothing else ever happens.
fn pass(gateways: &[Graph], is_enough: impl Fn(u32) -> bool + Sync) -> u32 {
    let body = b"{\"query\":\"{ __typename }\"}";
    let asked = request("POST", "/graphql", &[JSON], body);
    std::thread::scope(|scope| {
        let threads: Vec<_> = gateways
            .iter()
            .map(|graph| {
                scope.spawn(|| {
                    let mut connection = Connection::open(graph.address());
                    let (mut passed, mut count) = (0, 0);
                    while !is_enough(count) {
                        connection.write(&asked);
                        let answer = connection.read();
                        assert!([200, 429].contains(&answer.status), "{}", answer.text());
                        passed += u32::from(answer.status == 200);
                        count += 1;
                    }
                    passed
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

fn seconds(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_secs()).unwrap()
}

/// `OGIVE_SHARED_REQUESTS=20000` for a full run.
fn requests() -> u32 {
    let asked = std::env::var("OGIVE_SHARED_REQUESTS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// How long Redis is away; `OGIVE_REDIS_AWAY_SECONDS=10` for a full run.
fn away() -> Duration {
    let asked = std::env::var("OGIVE_REDIS_AWAY_SECONDS").ok();
    Duration::from_secs(asked.and_then(|text| text.parse().ok()).unwrap_or(1))
}

#[test]
fn four_gateways_keep_a_rate_together_and_go_on_when_redis_is_killed() {
    let Some(redis) = Redis::start(free_port()) else {
        return left_out(MISSING);
    };
    let (port, requests) = (redis.port, requests());
    let limit = requests / 2;
    let rate = format!("capacity: {limit}, interval: 1h");
    let gateways = [(); 4].map(|()| limited(port, &rate));
    until_there(port, gateways.len());
    let each = |count| count == requests / 4;
    // What time brings.
    let freed = |started: Instant| limit * (seconds(started) + 1) / 3_600;
    let started = Instant::now();
    let passed = pass(&gateways, each);
    let tolerated = limit / 100;
    println!("{passed} of {requests} pass, the limit is {limit}");
    assert!(passed >= limit - tolerated, "{passed}");
    assert!(passed <= limit + tolerated + freed(started), "{passed}");
    drop(redis);
    // All of it was used up: what passes now is beyond the limit.
    let started = Instant::now();
    let passed = pass(&gateways, |_| started.elapsed() > away());
    let bound = 4 * limit / 10 + freed(started) + 4;
    println!("{passed} more pass while it is away, the bound is {bound}");
    assert!(passed <= bound, "{passed}");
    // It comes back without what it knew.
    let redis = Redis::start(port).unwrap();
    let started = Instant::now();
    let mut passed = 0;
    while passed < limit - tolerated {
        assert!(started.elapsed() < Duration::from_secs(60), "{passed}");
        passed += pass(&gateways, each);
    }
    assert!(passed <= limit + tolerated + freed(started), "{passed}");
    drop(redis);
}

#[test]
fn of_callers_that_nobody_has_seen_each_gateway_lets_pass_its_share_without_redis() {
    let Some(redis) = Redis::start(free_port()) else {
        return left_out(MISSING);
    };
    let port = redis.port;
    drop(redis);
    let rate = "capacity: 10, interval: 10h, key: [{ request_header: x-client }]";
    let graph = limited(port, rate);
    let ask = |client| {
        let body = b"{\"query\":\"{ __typename }\"}";
        let headers = [JSON, ("x-client", client)];
        send(graph.address(), "POST", "/graphql", &headers, body).status
    };
    for client in ["a", "b"] {
        let found: Vec<u16> = (0..12).map(|_| ask(client)).collect();
        assert_eq!(found, [vec![200; 10], vec![429; 2]].concat());
    }
}

const HASH: &str = "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38";

fn persisted(graph: &Graph, query: &str) -> String {
    let query = match query {
        "" => String::new(),
        query => format!("\"query\":\"{query}\","),
    };
    let body = format!(
        "{{{query}\"extensions\":{{\"persistedQuery\":{{\"version\":1,\"sha256Hash\":\"{HASH}\"}}}}}}"
    );
    let answer = send(
        graph.address(),
        "POST",
        "/graphql",
        &[JSON],
        body.as_bytes(),
    );
    answer.text()
}

#[test]
fn a_document_that_one_gateway_was_told_is_known_to_all_and_asked_for_again_without_redis() {
    let Some(redis) = Redis::start(free_port()) else {
        return left_out(MISSING);
    };
    let port = redis.port;
    let apq = "apq: { enabled: true, router: { cache: { storage: redis, ttl: 1h } } }";
    let gateways = [gateway(port, apq), gateway(port, apq), gateway(port, apq)];
    until_there(port, gateways.len());
    let unknown = |text: &str| text.contains("PersistedQueryNotFound");
    assert!(unknown(&persisted(&gateways[1], "")));
    let answered = "{\"data\":{\"__typename\":\"Query\"}}";
    assert_eq!(persisted(&gateways[0], "{__typename}"), answered);
    let started = Instant::now();
    while unknown(&persisted(&gateways[1], "")) {
        assert!(started.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(persisted(&gateways[1], ""), answered);
    drop(redis);
    // Who knows it still does, and others ask for it.
    assert_eq!(persisted(&gateways[0], ""), answered);
    assert_eq!(persisted(&gateways[1], ""), answered);
    assert!(unknown(&persisted(&gateways[2], "")));
    assert_eq!(persisted(&gateways[2], "{__typename}"), answered);
    // What somebody else wrote down there is not believed.
    let redis = Redis::start(port).unwrap();
    let key = format!("mine:document:{HASH}");
    let mut command = Command::new("redis-cli");
    command.args(["-p", &port.to_string(), "set", &key, "{ me { id } }"]);
    assert!(command.output().unwrap().status.success());
    let another = gateway(port, apq);
    assert!(unknown(&persisted(&another, "")));
    drop(redis);
}

#[test]
fn a_rate_of_a_subgraph_is_shared_through_redis() {
    let Some(redis) = Redis::start(free_port()) else {
        return left_out(MISSING);
    };
    let rate = "traffic_shaping: { subgraphs: { products: { rate_limits: \
                [{ name: shop, capacity: 5, interval: 10h, storage: redis }] } } }";
    let gateways = [(); 2].map(|()| gateway(redis.port, rate));
    until_there(redis.port, gateways.len());
    let ask = |graph: &Graph| {
        let body = br#"{"query":"{ topProducts(first: 1) { name } }"}"#;
        let json = ("content-type", "application/json");
        send(graph.address(), "POST", "/graphql", &[json], body).text()
    };
    let asked = (0..10).map(|at| ask(&gateways[at % 2]));
    let passed = asked.filter(|text| !text.contains("REQUEST_RATE_LIMITED"));
    assert_eq!(passed.count(), 5);
}
