//! Many connections of one client that begin to send something and do not end it: bodies that are wanted, bodies that are
//! not, messages of WebSockets. The process stays within what it may have, and other clients are answered meanwhile.
//!
//! Three hundred connections and a small budget by default, and resident memory is looked at. With `OGIVE_UNFINISHED=2400`
//! it is as many connections, and the process is in a memory group of 256 MiB with the budget that it finds there:
//! `bash bench/load.sh unfinished`.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ogive_testbase::left_out;

use crate::{
    page::{look, number},
    process::{Running, address, answer, demo, file, ogive},
};

/// Bytes that are sent of each body or message, and how many it is said to have.
const SENT: usize = 1_900_000;
const SAID: usize = 1_990_000;
const PIECE: usize = 64 << 10;
const THREADS: usize = 8;
/// Of the short form.
const CONNECTIONS: u64 = 300;
const BUDGET: u64 = 32 << 20;
/// What the process may have in the long form.
const GROUP: u64 = 256 << 20;
/// Other clients come from elsewhere.
const BYSTANDER: [u8; 4] = [127, 0, 0, 2];
/// A client whose bytes are not taken for so long is left.
const STUCK: Duration = Duration::from_millis(500);

/// A memory group of version 1 or 2; removed at the end.
struct Group(PathBuf);

impl Group {
    /// `None` where this process may not make one.
    fn new() -> Option<Group> {
        let name = format!("ogive-unfinished-{}", std::process::id());
        let roots = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        roots.into_iter().find_map(|(root, file)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Group(folder);
            let limit = group.0.join(file);
            (limit.exists() && fs::write(limit, GROUP.to_string()).is_ok()).then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// What is begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unfinished {
    /// A body that is read.
    Body,
    /// One for which there is nothing.
    Unwanted,
    /// A message of a WebSocket.
    Message,
}

impl Unfinished {
    /// A connection on which it has begun; `None` if that is refused.
    fn begin(self, gateway: &str) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(gateway).ok()?;
        stream.set_write_timeout(Some(STUCK)).ok()?;
        stream.set_read_timeout(Some(20 * STUCK)).ok()?;
        let path = if self == Unfinished::Unwanted {
            "/nope"
        } else {
            "/graphql"
        };
        if self != Unfinished::Message {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
                 content-length: {SAID}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).ok()?;
            return Some(stream);
        }
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: graphql-transport-ws\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            answer.push(byte[0]);
        }
        answer.starts_with(b"HTTP/1.1 101 ").then_some(())?;
        // Text that is not the last of its message, with a mask that changes nothing.
        let mut frame = vec![0x01, 0x80 | 127];
        frame.extend_from_slice(&(SAID as u64).to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        stream.write_all(&frame).ok()?;
        Some(stream)
    }
}

/// Begins with as many as that, then sends a piece of each in turn. They are open until this is over.
fn attack(what: Unfinished, gateway: &str, connections: u64) {
    let begun = (0..connections).map(|_| what.begin(gateway));
    let mut streams: Vec<Option<TcpStream>> = begun.collect();
    for _ in 0..SENT / PIECE {
        for stream in &mut streams {
            let sent = stream.as_mut().map(|open| open.write_all(&[b' '; PIECE]));
            if sent.is_some_and(|sent| sent.is_err()) {
                *stream = None;
            }
        }
    }
}

/// Sends a request of another client and returns its status.
fn ask(gateway: SocketAddr) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let mut stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((BYSTANDER, 0).into()).unwrap();
        socket.connect(gateway).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(60 * STUCK)).unwrap();
    let body = r#"{"query":"{ __typename }"}"#;
    let head = format!(
        "POST /graphql HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    answer(stream).0
}

/// Most resident memory so far, in bytes; `None` once the process has ended.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// What the gateway's process took at rest and at most, and how others were answered.
#[derive(Debug)]
struct Seen {
    at_rest: u64,
    peak: u64,
    statuses: Vec<u16>,
}

fn besieged(what: Unfinished) -> Seen {
    let connections = number("OGIVE_UNFINISHED");
    let group = connections.and_then(|_| Group::new());
    let mut yaml =
        "listen: 127.0.0.1:0\nhttp: { workers: 2 }\nsubscription: { enabled: true }\n".to_owned();
    if group.is_none() {
        yaml.push_str(&format!("limits: {{ max_memory: {BUDGET} }}\n"));
    }
    let config = file(&format!("unfinished-{what:?}.yaml"), yaml);
    let supergraph = demo("supergraph.graphql");
    let serve = ogive(&["serve", "-c", &config, "-s", &supergraph]);
    let mut running = Running::of(match &group {
        None => serve,
        // A process enters a group by itself, before it becomes another.
        Some(Group(folder)) => {
            let mut shell = std::process::Command::new("sh");
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", folder.display());
            shell.args(["-c", &enter, "sh"]).arg(serve.get_program());
            shell.args(serve.get_args());
            shell.current_dir(serve.get_current_dir().unwrap());
            shell
        }
    });
    let gateway = address(&running.logged("serving http://"));
    let at: SocketAddr = gateway.parse().unwrap();
    assert_eq!(ask(at), 200);
    let (at_rest, _) = look(running.id()).unwrap();
    let over = AtomicBool::new(false);
    let each = connections.unwrap_or(CONNECTIONS) / THREADS as u64;
    let statuses = std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let mut statuses = Vec::new();
            while !over.load(Ordering::Relaxed) {
                statuses.push(ask(at));
            }
            statuses
        });
        let attackers = [(); THREADS].map(|()| scope.spawn(|| attack(what, &gateway, each)));
        for attacker in attackers {
            attacker.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        bystander.join().unwrap()
    });
    let peak = peak(running.id()).expect("it lives");
    running.signal("TERM");
    let (code, log) = running.ended();
    assert_eq!(code, Some(0), "{log}");
    drop(group);
    Seen {
        at_rest: at_rest as u64 * 1024,
        peak,
        statuses,
    }
}

#[allow(clippy::print_stdout, reason = "what a long run has found")]
fn withstood(what: Unfinished) {
    if look(std::process::id()).is_none() {
        return left_out("there is no /proc");
    }
    let Seen {
        at_rest,
        peak,
        statuses,
    } = besieged(what);
    let mib = |bytes: u64| bytes >> 20;
    let answered = statuses.len();
    println!(
        "{what:?}: {} MiB at rest, {} at most, {answered} requests of others",
        mib(at_rest),
        mib(peak)
    );
    assert!(!statuses.is_empty());
    let refused = statuses.iter().filter(|status| **status != 200).count();
    assert_eq!(refused, 0, "of {answered} requests of others");
    if number("OGIVE_UNFINISHED").is_none() {
        let more = peak - at_rest;
        // What is not wanted takes buffers only; of the rest half of the budget is for one client, and the allocator keeps
        // some.
        let most = if what == Unfinished::Unwanted {
            BUDGET
        } else {
            2 * BUDGET
        };
        assert!(more <= most, "{} MiB more than at rest", mib(more));
    }
}

#[test]
fn bodies_that_do_not_end_stay_within_the_budget() {
    withstood(Unfinished::Body);
}

#[test]
fn bodies_that_nobody_wants_are_not_kept() {
    withstood(Unfinished::Unwanted);
}

#[test]
fn messages_that_do_not_end_stay_within_the_budget() {
    withstood(Unfinished::Message);
}
