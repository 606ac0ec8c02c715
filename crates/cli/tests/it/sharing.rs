//! Four processes that keep one rate together in a real Redis, which is killed and comes back.
//!
//! `crates/e2e/tests/it/shared_state.rs` has the same, and more, for gateways of one process.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use ogive_testbase::left_out;

use crate::process::{Running, address, answer, ask, demo, file};

const PROCESSES: u32 = 4;

/// A server, killed when it is dropped.
struct Redis(Child);

impl Redis {
    fn start(port: u16) -> Option<Redis> {
        let mut command = Command::new("redis-server");
        let text = port.to_string();
        command.args(["--port", &text, "--bind", "127.0.0.1", "--save", ""]);
        command
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line.contains("Ready to accept connections")));
        std::thread::spawn(move || lines.for_each(drop));
        Some(Redis(child))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A number for a full run, or what is enough for every day.
fn sized(variable: &str, otherwise: u32) -> u32 {
    let asked = std::env::var(variable).ok();
    asked
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// A port below those that the operating system gives away by itself: nobody has it while Redis is away.
fn free_port() -> u16 {
    let first = 9_000 + (std::process::id() % 900) as u16;
    let mut ports = first..10_000;
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

/// Waits until so many processes have said that they are there: whoever has not found Redis counts alone.
fn until_there(port: u16) {
    let started = Instant::now();
    loop {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port.to_string(), "zcard", "processes:processes"]);
        let said = command.output().unwrap().stdout;
        if String::from_utf8_lossy(&said).trim() == PROCESSES.to_string() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{said:?}");
    }
}

/// Asks all at once until it is enough; how many were let pass. Whoever is not is told so, and nothing else ever happens.
fn pass(addresses: &[String], is_enough: impl Fn(u32) -> bool + Sync) -> u32 {
    let one = |address: &str| {
        let (mut passed, mut count) = (0, 0);
        while !is_enough(count) {
            let query = r#"{"query":"{ __typename }"}"#;
            let (status, text) = answer(ask(address, "POST", "/graphql", query));
            assert!([200, 429].contains(&status), "{status} {text}");
            passed += u32::from(status == 200);
            count += 1;
        }
        passed
    };
    std::thread::scope(|scope| {
        let one = &one;
        let start = |address| scope.spawn(move || one(address));
        let threads: Vec<_> = addresses.iter().map(|a| start(a.as_str())).collect();
        let passed = threads.into_iter().map(|thread| thread.join().unwrap());
        passed.sum()
    })
}

fn seconds(since: Instant) -> u32 {
    u32::try_from(since.elapsed().as_secs()).unwrap()
}

/// `OGIVE_SHARED_REQUESTS=20000 OGIVE_REDIS_AWAY_SECONDS=10` for a full run.
#[test]
fn four_processes_keep_a_rate_together_and_none_fails_while_redis_is_killed() {
    let port = free_port();
    let Some(redis) = Redis::start(port) else {
        return left_out("redis-server is not installed");
    };
    let requests = sized("OGIVE_SHARED_REQUESTS", 2_000);
    let away = Duration::from_secs(sized("OGIVE_REDIS_AWAY_SECONDS", 1).into());
    let limit = requests / 2;
    let config = file(
        "sharing.yaml",
        format!(
            "store: {{ redis: {{ urls: ['redis://127.0.0.1:{port}'], namespace: processes, timeout: 20s }} }}\n\
             traffic_shaping: {{ router: {{ rate_limits: \
             [{{ name: all, storage: redis, capacity: {limit}, interval: 1h }}] }} }}\n"
        ),
    );
    let supergraph = demo("supergraph.graphql");
    let mut processes = [(); PROCESSES as usize].map(|()| {
        let listen = ["--listen", "127.0.0.1:0"];
        let arguments = [
            "serve",
            "-c",
            &config,
            "-s",
            &supergraph,
            listen[0],
            listen[1],
        ];
        Running::start(&arguments)
    });
    let addresses = processes
        .each_mut()
        .map(|process| address(&process.logged("serving http://")));
    until_there(port);
    let each = |count| count == requests / PROCESSES;
    // What time brings.
    let freed = |started: Instant| limit * (seconds(started) + 1) / 3_600;
    let (started, tolerated) = (Instant::now(), limit / 100);
    let passed = pass(&addresses, each);
    println!("{passed} of {requests} pass, the limit is {limit}");
    assert!(passed >= limit - tolerated, "{passed}");
    assert!(passed <= limit + tolerated + freed(started), "{passed}");
    drop(redis);
    // All of it was used up: what passes now is beyond the limit.
    let started = Instant::now();
    let passed = pass(&addresses, |_| started.elapsed() > away);
    let bound = PROCESSES * limit / 10 + freed(started) + PROCESSES;
    println!("{passed} more pass while it is away, the bound is {bound}");
    assert!(passed <= bound, "{passed}");
    // It comes back without what it knew.
    let redis = Redis::start(port).unwrap();
    let started = Instant::now();
    let mut passed = 0;
    while passed < limit - tolerated {
        assert!(started.elapsed() < Duration::from_secs(60), "{passed}");
        passed += pass(&addresses, each);
    }
    assert!(passed <= limit + tolerated + freed(started), "{passed}");
    drop(redis);
}
