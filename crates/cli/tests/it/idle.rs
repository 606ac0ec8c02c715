//! Ten thousand connections on which nothing happens: others are answered, each costs little, and all is given back.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ogive_testbase::left_out;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{
    page::{look, put},
    process::{Running, address, answer, ask, demo, file, subgraphs},
};

const QUERY: &str = r#"{"query":"{ me { name } }"}"#;
const ANSWER: &str = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;
const IDLE: usize = 10_000;
/// Files that both sides need besides.
const OTHERS: u64 = 200;
/// Most memory of a connection on which nothing happens, in KiB. Unoptimised builds included.
const KIB_MAX: f64 = 40.0;
/// Connections that may have come or gone besides.
const FEW: usize = 16;
/// How long closed connections may take to be noticed.
const PATIENCE: Duration = Duration::from_secs(120);

/// One such test after the other: together they would open more than a process may.
static MANY_FILES: Mutex<()> = Mutex::new(());

/// Lets this process, and what it starts from here on, open so many connections, or says why it may not.
fn may_open(connections: usize) -> Result<MutexGuard<'static, ()>, String> {
    let alone = MANY_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + OTHERS;
    if limit.maximum.is_some_and(|most| most < wanted) {
        return Err(format!(
            "fewer than {wanted} files may be open (`ulimit -Hn`)"
        ));
    }
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        setrlimit(Resource::Nofile, limit).unwrap();
    }
    Ok(alone)
}

/// Opens the connections; each asks once if `ask` says so.
fn idle(gateway: &str, asks: bool) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(gateway).unwrap();
        if asks {
            let head = b"GET /health HTTP/1.1\r\nhost: idle\r\n\r\n";
            stream.write_all(head).unwrap();
            let mut answer = [0; 512];
            let length = stream.read(&mut answer).unwrap();
            assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
        }
        stream
    };
    (0..IDLE).map(open).collect()
}

#[test]
#[allow(
    clippy::print_stdout,
    reason = "what a connection costs is worth knowing"
)]
fn ten_thousand_idle_connections_hold_up_nobody() {
    let _alone = match may_open(IDLE) {
        Ok(alone) => alone,
        Err(why) => return left_out(&why),
    };
    let (_mock, urls) = subgraphs();
    let most = IDLE + 100;
    let config = file(
        "idle.yaml",
        format!(
            "listen: 127.0.0.1:0\nhttp: {{ connections_max: {most}, connections_per_client_max: {most}, \
             header_read_timeout: 10m }}\n{urls}"
        ),
    );
    let supergraph = demo("supergraph.graphql");
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    if look(serve.id()).is_none() {
        return left_out("there is no /proc");
    }
    let ask_once = || {
        assert_eq!(
            answer(ask(&gateway, "POST", "/graphql", QUERY)),
            (200, ANSWER.into())
        )
    };
    ask_once();
    let mut table = String::from(
        "| 10,000 connections | resident before, MiB | while they are open | each, KiB | after they are closed |\n\
         |---|---|---|---|---|\n",
    );
    for (what, asks) in [
        ("that have said nothing", false),
        ("that have had one answer", true),
        ("the same once more", true),
    ] {
        let (before, files) = look(serve.id()).unwrap();
        let connections = idle(&gateway, asks);
        // The newest connection is served, so all before it were accepted.
        ask_once();
        let (during, open) = look(serve.id()).unwrap();
        // Connections that were about to be closed, and those to subgraphs, may still have counted.
        assert!(
            open + FEW >= files + IDLE,
            "{files} open files became {open}"
        );
        drop(connections);
        let began = Instant::now();
        let mut after = look(serve.id()).unwrap();
        while after.1 > files + 2 {
            assert!(
                began.elapsed() < PATIENCE,
                "{} files are still open",
                after.1
            );
            ask_once();
            after = look(serve.id()).unwrap();
        }
        let each = (during - before).max(0.0) / IDLE as f64;
        let _ = writeln!(
            table,
            "| {what} | {:.1} | {:.1} | {each:.1} | {:.1} |",
            before / 1024.0,
            during / 1024.0,
            after.0 / 1024.0
        );
        assert!(each < KIB_MAX, "{table}");
    }
    println!("{table}");
    put("idle", &table);
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

/// In the default configuration they all come from one address, and say nothing.
#[test]
fn more_idle_connections_than_there_are_places_keep_nobody_out() {
    let number = IDLE + 200;
    let _alone = match may_open(number) {
        Ok(alone) => alone,
        Err(why) => return left_out(&why),
    };
    let (_mock, urls) = subgraphs();
    // None of them goes by itself while the test goes on.
    let config = file(
        "crowd.yaml",
        format!("listen: 127.0.0.1:0\nhttp: {{ header_read_timeout: 10m }}\n{urls}"),
    );
    let supergraph = demo("supergraph.graphql");
    let mut serve = Running::start(&["serve", "-c", &config, "-s", &supergraph]);
    let gateway = address(&serve.logged("serving http://"));
    let crowd: Vec<TcpStream> = (0..number)
        .map(|_| TcpStream::connect(&gateway).unwrap())
        .collect();
    let began = Instant::now();
    assert_eq!(answer(ask(&gateway, "GET", "/health", "")).0, 200);
    let ask_once = || answer(ask(&gateway, "POST", "/graphql", QUERY));
    assert_eq!(ask_once(), (200, ANSWER.into()));
    let took = began.elapsed();
    assert!(took < PATIENCE, "answered after {took:?}");
    drop(crowd);
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}

#[test]
fn subgraphs_open_as_many_files_as_they_may() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 64; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_ogive"))
        .args(["mock", "--config", &demo("mock.yaml")])
        .args(["--listen", "127.0.0.1:0"]);
    let mut mock = Running::of(command);
    mock.printed("accounts ");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", mock.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let numbers: Vec<&str> = line.unwrap().split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{limits}");
    assert_ne!(numbers[0], "64");
}
