//! Programs for the lab to drive: this test binary started again in another role.
//!
//! `OGIVE_BENCH_TEST_ROLE` says which: `mock` (a subgraph server), `proxy:BEHAVIOUR` (a fake gateway before the one
//! subgraph of the graph `single`; those that begin with `tunnel` are before a source of events), `events` (that
//! source), `burn` (uses a known amount of CPU and memory). Without it, the test that serves
//! does nothing.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ogive_bench::{
    campaign::{self, Equipment, Order},
    http,
    install::Cache,
    load::Tool,
    model::Lab,
    record::{Campaign, Run},
    schedule::Choice,
    stage::Servers,
};

const ROLE: &str = "OGIVE_BENCH_TEST_ROLE";

/// Command of this binary in a role.
pub(crate) fn role(name: &str) -> Vec<String> {
    let exe = std::env::current_exe().unwrap().display().to_string();
    let role = format!("{ROLE}={name}");
    [
        "env",
        &role,
        &exe,
        "--exact",
        "helpers::serve",
        "--ignored",
        "--nocapture",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
#[ignore = "a process that other tests start"]
fn serve() {
    let role = std::env::var(ROLE).expect("the role");
    match role.split_once(':') {
        None if role == "mock" => mock(),
        None if role == "burn" => burn(),
        None if role == "events" => {
            let address = std::env::args().next_back().unwrap();
            ogive_bench::events::source::serve(&address).unwrap();
        }
        Some(("proxy", behaviour)) if behaviour.starts_with("tunnel") => {
            crate::events::tunnel(behaviour);
        }
        Some(("proxy", behaviour)) => proxy(behaviour),
        _ => panic!("no role {role}"),
    }
}

fn mock() {
    let path = PathBuf::from(std::env::args().next_back().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    let mut config = ogive_mock::Config::parse(&text, path.parent().unwrap()).unwrap();
    let assembled = ogive_mock::assemble(&config).unwrap_or_else(|error| panic!("{error}"));
    let listen = config.listen.take().unwrap();
    ogive_mock::Server::start(Arc::new(assembled.service), &listen, 1)
        .unwrap()
        .join();
}

/// CPU-seconds and bytes that `burn` uses.
pub(crate) const BURNT: (f64, usize) = (0.6, 64 << 20);

/// Where a process that burns is told to begin.
pub(crate) const BURN_AT: &str = "OGIVE_BENCH_TEST_BURN_AT";

fn burn() {
    let mut gate = TcpStream::connect(std::env::var(BURN_AT).unwrap()).unwrap();
    gate.read_exact(&mut [0]).unwrap();
    // Written, not only reserved: memory that nobody wrote to is not there.
    let memory = vec![1u8; BURNT.1];
    let start = ogive_bench::usage::tree(std::process::id()).cpu_seconds;
    let mut n = 0u64;
    while ogive_bench::usage::tree(std::process::id()).cpu_seconds - start < BURNT.0 {
        for i in 0..2_000_000u64 {
            n = n.wrapping_mul(31).wrapping_add(i);
        }
    }
    println!("burnt {n} {}", memory[n as usize % memory.len()]);
    std::thread::park();
}

struct Proxy {
    behaviour: String,
    upstream: SocketAddr,
    n_requests: AtomicU64,
}

/// Forwards to the subgraph, but for what its behaviour is.
fn proxy(behaviour: &str) {
    let env = |name: &str| std::env::var(name).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", env("PORT").parse().unwrap())).unwrap();
    let proxy = Arc::new(Proxy {
        behaviour: behaviour.to_owned(),
        upstream: env("UPSTREAM").parse().unwrap(),
        n_requests: AtomicU64::new(0),
    });
    for stream in listener.incoming() {
        let proxy = proxy.clone();
        std::thread::spawn(move || while_open(stream.unwrap(), &proxy));
    }
}

fn while_open(mut stream: TcpStream, proxy: &Proxy) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = Vec::new();
    loop {
        let (head, body) = read(&mut stream, &mut buffer)?;
        let answer = proxy.answer(&head, &body)?;
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(text.as_bytes()).ok()?;
        stream.write_all(&answer).ok()?;
    }
}

fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, String)> {
    let mut chunk = [0; 4096];
    loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..at]).into_owned();
            let length = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |l| l.trim().parse().unwrap());
            if buffer.len() >= at + 4 + length {
                let body = String::from_utf8_lossy(&buffer[at + 4..at + 4 + length]).into_owned();
                buffer.drain(..at + 4 + length);
                return Some((head, body));
            }
        }
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            n => buffer.extend_from_slice(&chunk[..n]),
        }
    }
}

impl Proxy {
    fn answer(&self, head: &str, body: &str) -> Option<Vec<u8>> {
        let n = self.n_requests.fetch_add(1, Ordering::Relaxed);
        let token = head
            .lines()
            .find(|line| line.starts_with("authorization: "));
        let token = token.filter(|_| self.behaviour != "drops-header");
        let headers = token.map_or(String::new(), |line| format!("{line}\r\n"));
        // Once, when the load has begun: before there are a few questions.
        if self.behaviour == "stalls" && n == STALL_AT {
            std::thread::sleep(STALL);
        }
        if self.behaviour == "crashes" && n > 30 {
            std::process::exit(7);
        }
        let request = http::post("/graphql/users", self.upstream, &headers, body);
        let answer = http::once(self.upstream, &request, Duration::from_secs(60)).ok()?;
        let text = String::from_utf8(answer.body).ok()?;
        let wrong = match self.behaviour.as_str() {
            "wrong" => true,
            // The check and the answers before the load are right.
            "wrong-under-load" => (20..200).contains(&n),
            _ => false,
        };
        Some(match wrong {
            // As long as the right answer, so that only comparing values can tell.
            true => format!("{}\n", text.replacen("Title of", "Title 0f", 1)).into_bytes(),
            false if self.behaviour == "reorders" => reordered(&text),
            // Whitespace is no difference.
            false => format!("{text}\n").into_bytes(),
        })
    }
}

/// How long a gateway that stalls does so.
pub(crate) const STALL: Duration = Duration::from_millis(800);
/// In which of its requests.
const STALL_AT: u64 = 100;

fn reordered(text: &str) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let mut user = value["data"]["user"].clone();
    let Some(map) = user.as_object_mut() else {
        return text.as_bytes().to_vec();
    };
    let (name, id) = (map.remove("name").unwrap(), map.remove("id").unwrap());
    let mut turned = serde_json::Map::new();
    turned.insert("name".into(), name);
    turned.insert("id".into(), id);
    turned.extend(std::mem::take(map));
    serde_json::json!({ "data": { "user": turned } })
        .to_string()
        .into_bytes()
}

/// A lab with fake gateways of these behaviours and one scenario, run once.
pub(crate) fn campaign(
    name: &str,
    behaviours: &[&str],
    load: &str,
) -> (Campaign, Vec<Run>, PathBuf) {
    let (lab, order, equipment) = prepared(name, behaviours, load);
    let (campaign, runs) = campaign::run(&lab, &order, &equipment, Box::new(|_| {}))
        .unwrap_or_else(|error| panic!("{error}"));
    (campaign, runs, order.folder)
}

/// A lab with fake gateways of these behaviours and one scenario.
pub(crate) fn prepared(name: &str, behaviours: &[&str], load: &str) -> (Lab, Order, Equipment) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    for folder in ["gateways", "tools", "scenarios"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(
        fs::canonicalize(real.join("graphs")).unwrap(),
        root.join("graphs"),
    )
    .unwrap();
    fs::write(root.join("features.toml"), "note = \"\"\ngateways = []\n").unwrap();
    let mut binaries = BTreeMap::new();
    for behaviour in behaviours {
        let folder = root.join("gateways").join(behaviour);
        fs::create_dir_all(&folder).unwrap();
        // The last one means nothing to it, but is a path as servers of one schema are given.
        let command: Vec<String> = role(&format!("proxy:{behaviour}"))
            .iter()
            .map(String::as_str)
            .chain(["{monolith}"])
            .map(|part| format!("{part:?}"))
            .collect();
        let text = format!(
            "title = \"{behaviour}\"\nlanguage = \"Rust\"\nlicence = \"none\"\nroles = [\"federation\"]\n\
             [install]\nkind = \"binary\"\nhint = \"none\"\n\
             [start]\ncommand = [{}]\nenv = {{ PORT = \"{{port}}\", UPSTREAM = \"{{upstream}}\" }}\n[modes.default]\n",
            command.join(", ")
        );
        fs::write(folder.join("gateway.toml"), text).unwrap();
        binaries.insert((*behaviour).to_owned(), std::env::current_exe().unwrap());
    }
    let scenario = format!(
        "title = \"Test\"\ngoal = \"Does the lab see it?\"\nkey = \"p99\"\ncaveats = [\"a test\"]\n\
         graph = \"single\"\noperation = \"user\"\n[load]\nwarmup = \"0s\"\n{load}\n"
    );
    fs::write(root.join("scenarios/test.toml"), scenario).unwrap();
    let order = Order {
        choice: Choice {
            rounds: 1,
            ..Choice::default()
        },
        install: false,
        check_only: false,
        tool: Tool::Builtin,
        folder: root.join("run"),
        command: vec!["test".into()],
    };
    let equipment = Equipment {
        servers: Servers {
            mock: role("mock"),
            rest: Vec::new(),
            events: role("events"),
        },
        cache: Cache {
            folder: root.join("cache"),
            ogive: std::env::current_exe().unwrap(),
            binaries,
        },
        stop: Arc::new(AtomicBool::new(false)),
    };
    let lab = Lab::read(&root).unwrap_or_else(|error| panic!("{error}"));
    (lab, order, equipment)
}
