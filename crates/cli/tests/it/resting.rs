//! Memory that a load took goes back to the operating system when the load is over.
//!
//! A few seconds by default. Ten minutes with what ships, and the limits that are promised:
//! `OGIVE_REST_SECONDS=600 cargo test --profile dist -p ogive-cli --test it -- resting --nocapture`.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_testbase::left_out;

use crate::{
    process::{Running, address, demo, file, run, subgraphs},
    soak::{Client, configuration, load},
};

/// Plans that are kept. The load's documents all differ, so they are soon as many.
const PLANS: usize = 20;
/// Clients at a time.
const CLIENTS: usize = 6;
/// A worker that has been asked is at rest long before that, on any machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Resident memory after the start, in KiB, of a program that is optimised.
const IDLE_MAX: u64 = 15 << 10;

/// In KiB.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Everything, the program's own pages included.
    resident: u64,
    /// What was allocated.
    anonymous: u64,
}

fn look(process: u32) -> Option<Memory> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some(Memory {
        resident: row("Rss:")?,
        anonymous: row("Anonymous:")?,
    })
}

/// Serves the subgraphs of `bench/graphs/big-response` too. Gives the lines that point to them, and the supergraph of
/// these and the demo's.
fn big() -> (Running, String, String) {
    let graph = demo("../../bench/graphs/big-response/subgraphs");
    let [content, labels] = ["content", "labels"].map(|name| format!("{graph}/{name}.graphql"));
    let config = format!(
        "generate:\n  seed: 1\n  lengths: {{ Node.floats: 21..64, Node.ints: 21..64, Node.strings: 21..64 }}\n  \
         texts: {{ Node.string: 0..128, Node.strings: 0..128 }}\n\
         subgraphs: {{ content: '{content}', labels: '{labels}' }}\n"
    );
    let config = file("resting-big.yaml", config);
    let mut mock = Running::start(&["mock", "--config", &config, "--listen", "127.0.0.1:0"]);
    let address = address(&mock.printed("content "));
    let urls = ["content", "labels"];
    let urls = urls.map(|name| format!("  {name}: http://{address}/graphql/{name}\n"));
    let mut arguments = vec!["compose".to_owned(), content, labels];
    for name in ["accounts", "inventory", "products", "reviews"] {
        arguments.push(demo(&format!("{name}.graphql")));
    }
    let (code, supergraph, stderr) = run(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    (mock, urls.concat(), file("resting.graphql", supergraph))
}

/// A request that is answered with eight megabytes, or two where nothing is optimised.
fn big_request() -> String {
    let path = demo("../../bench/graphs/big-response/operations/held.graphql");
    let operation = fs::read_to_string(path).unwrap();
    let roots = if cfg!(debug_assertions) { 1 } else { 4 };
    assert!(operation.contains("(n: 4)"));
    let operation = operation.replace("(n: 4)", &format!("(n: {roots})"));
    serde_json::json!({ "query": operation }).to_string()
}

/// Asks in every way until it is told to stop, with long and big answers now and then. Gives how often, and the memory
/// when most was allocated.
fn mixed(serve: &Running, gateway: &str, length: Duration) -> (usize, Memory) {
    let (stop, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (gateway, stop, asked) =
                (gateway.to_owned(), Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || load(&gateway, &stop, &asked, None))
        })
        .collect();
    let many: Vec<String> = (0..40)
        .map(|at| {
            format!(
                "a{at}: topProducts(first: 3) {{ name reviews {{ stars author {{ username }} }} }}"
            )
        })
        .collect();
    let many = serde_json::json!({ "query": format!("{{ {} }}", many.join(" ")) });
    let big = big_request();
    let mut client = Client::connect(gateway);
    let mut most = look(serve.id()).unwrap();
    let start = Instant::now();
    while start.elapsed() < length || asked.load(Ordering::Relaxed) < 10 * PLANS * 8 {
        client.send(&many.to_string(), "");
        assert_eq!(client.receive().0, 200);
        client.send(&big, "");
        let (status, body) = client.receive();
        assert!(
            status == 200 && body.len() > 1_000_000,
            "{} bytes",
            body.len()
        );
        let now = look(serve.id()).unwrap();
        if now.anonymous > most.anonymous {
            most = now;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    (asked.load(Ordering::Relaxed), most)
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what a long run is for")]
fn a_load_that_is_over_takes_no_memory() {
    let seconds = std::env::var("OGIVE_REST_SECONDS").ok();
    let seconds: Option<u64> = seconds.map(|text| text.parse().unwrap());
    let (_mock, mut urls) = subgraphs();
    let (_big, more, supergraph) = big();
    urls.push_str(&more);
    let config = file("resting.yaml", configuration(&urls, &supergraph, PLANS, 0));
    let log = "off,ogive::serve=info,ogive_server::worker=debug";
    let mut serve = Running::start(&["serve", "-c", &config, "--log", log]);
    let gateway = address(&serve.logged("serving http://"));
    let Some(started) = look(serve.id()) else {
        return left_out("there is no /proc/PID/smaps_rollup");
    };
    let look = |process: u32| look(process).unwrap();
    // Every worker that was asked says so. After a long rest it does again: connections to subgraphs were closed.
    let rest = |serve: &mut Running, times: usize| {
        for _ in 0..times {
            serve.logged("at rest");
        }
        look(serve.id())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let times = workers.min(CLIENTS) * if seconds.is_some() { 2 } else { 1 };
    // "Idle" is a gateway that was asked everything at least once and is at rest: whatever is made once is made then, such
    // as plans, connections, and pages of the program that were never needed before.
    mixed(&serve, &gateway, Duration::ZERO);
    let idle = rest(&mut serve, times);
    let length = Duration::from_secs(seconds.unwrap_or(2));
    let (asked, loaded) = mixed(&serve, &gateway, length);
    let mut rested = rest(&mut serve, times);
    // On a busy machine a worker may have been at rest in the midst of the load, too, and has said so.
    let is_over = |rested: Memory| {
        rested.resident * 10 <= idle.resident * 11 && rested.anonymous <= loaded.anonymous
    };
    let began = Instant::now();
    while !is_over(rested) && began.elapsed() < PATIENCE {
        std::thread::yield_now();
        rested = look(serve.id());
    }
    println!("KiB             resident  allocated");
    for (when, memory) in [
        ("after the start", started),
        ("idle", idle),
        ("loaded", loaded),
        ("at rest", rested),
    ] {
        let Memory {
            resident,
            anonymous,
        } = memory;
        println!("{when:15} {resident:9} {anonymous:10}");
    }
    println!("{asked} requests");
    assert!(
        rested.resident * 10 <= idle.resident * 11,
        "{idle:?} became {rested:?}"
    );
    assert!(
        rested.anonymous <= loaded.anonymous,
        "{loaded:?} became {rested:?}"
    );
    if !cfg!(debug_assertions) {
        assert!(started.resident <= IDLE_MAX, "{started:?}");
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}
