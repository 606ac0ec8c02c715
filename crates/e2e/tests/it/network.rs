//! Sockets, time-outs, replicas and the end: what `listen`, `http` and `traffic_shaping` promise, with every attempt
//! counted where it arrives.

use std::{
    collections::BTreeSet,
    io::ErrorKind,
    net::SocketAddr,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use crate::{
    certificates::Folder,
    graph::Graph,
    http_client::{Connection, post, request, send},
    telemetry::scrape,
    toxic::{Reply, Toxic, answer},
};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const QUERY: &[u8] = br#"{"query":"{ me { name } }"}"#;
const TYPENAME: &[u8] = br#"{"query":"{ __typename }"}"#;
const GOOD: &str = r#"{"data":{"me":{"name":"Zoe"}}}"#;
const MUTATION: &str =
    r#"mutation { addReview(review: {product: "HP-204", stars: 5, title: "New"}) { stars } }"#;

fn good() -> Reply {
    Reply::Whole(answer(200, "", GOOD.as_bytes()))
}

fn graph(subgraph: &Toxic, yaml: &str) -> Graph {
    let url = subgraph.url();
    Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{url}', reviews: '{url}' }}\n{yaml}"
    ))
}

#[test]
fn responses_have_a_largest_size() {
    let start = |size: &str| Graph::with(&format!("limits: {{ max_response_size: {size} }}"));
    let query = "{ topProducts { name reviews { title author { username } } } }";
    let answer = post(start("1MB").address(), query);
    assert!(answer.codes().is_empty() && answer.body.len() > 100);
    let answer = post(start("100B").address(), query);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.codes(), ["EXECUTION_LIMIT_EXCEEDED"]);
    assert!(answer.json()["data"].is_null());
    // The same gateway answers what fits.
    let graph = start("100B");
    post(graph.address(), query);
    assert!(post(graph.address(), "{ me { name } }").codes().is_empty());
}

/// Each answer is small enough; together they are not. Whoever asks for one of them only gets it.
#[test]
fn answers_of_one_request_have_a_budget() {
    let long = "x".repeat(60_000);
    let (me, product) = (
        format!(r#"{{"data":{{"me":{{"name":"{long}"}}}}}}"#),
        format!(r#"{{"data":{{"product":{{"name":"{long}"}}}}}}"#),
    );
    let (let_go, held) = mpsc::channel::<()>();
    let (asked, told) = mpsc::channel::<()>();
    let first = Mutex::new(Some((held, asked)));
    let subgraph = Toxic::start(move |_, request| {
        if request.contains("product") {
            return Reply::Whole(answer(200, "", product.as_bytes()));
        }
        if let Some((held, asked)) = first.lock().unwrap().take() {
            asked.send(()).unwrap();
            held.recv().unwrap();
        }
        Reply::Whole(answer(200, "", me.as_bytes()))
    });
    let url = subgraph.url();
    let start = |limits: &str| {
        Graph::with(&format!(
            "override_subgraph_url: {{ accounts: '{url}', products: '{url}' }}\nhttp: {{ workers: 1 }}\n{limits}"
        ))
    };
    let both = "{ me { name } product(sku: \"X\") { name } }";
    let tight = start("limits: { max_request_memory: 100KB }");
    std::thread::scope(|scope| {
        let greedy = scope.spawn(|| post(tight.address(), both));
        told.recv().unwrap();
        // Waits for the same answer of the subgraph; what is answered meanwhile shows that it has arrived.
        let modest = scope.spawn(|| post(tight.address(), "{ me { name } }"));
        for _ in 0..3 {
            assert_eq!(post(tight.address(), "{ __typename }").status, 200);
        }
        let_go.send(()).unwrap();
        let greedy = greedy.join().unwrap();
        assert_eq!(greedy.codes(), ["REQUEST_MEMORY_LIMIT"]);
        let data = &greedy.json()["data"];
        let names = ["me", "product"].map(|field| data[field]["name"] == long.as_str());
        assert_eq!(
            names.iter().filter(|there| **there).count(),
            1,
            "one of them fits"
        );
        let modest = modest.join().unwrap();
        assert_eq!(modest.codes(), [""; 0]);
        assert_eq!(modest.json()["data"]["me"]["name"], long.as_str());
    });
    for roomy in ["limits: { max_request_memory: 130KB }", ""] {
        let answer = post(start(roomy).address(), both);
        assert_eq!(answer.codes(), [""; 0], "{roomy}");
    }
}

#[test]
fn clients_and_subgraphs_may_be_on_unix_sockets() {
    let folder = Folder::new("unix");
    let subgraph = Graph::with(&format!(
        "listen: 'unix://{}'",
        folder.path("accounts.sock")
    ));
    let listen = folder.path("gateway.sock");
    let graph = Graph::with(&format!(
        "listen: 'unix://{listen}'\noverride_subgraph_url: {{ accounts: 'unix://{}?path=/graphql' }}",
        folder.path("accounts.sock")
    ));
    let mut connection = Connection::over(UnixStream::connect(&listen).unwrap());
    for _ in 0..2 {
        connection.write(&request("POST", "/graphql", &JSON, QUERY));
        let answer = connection.read().text();
        assert_eq!(answer, r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#);
    }
    drop(graph);
    assert!(
        !std::path::Path::new(&listen).exists(),
        "the file goes, too"
    );
    drop(subgraph);
    // What a process that was killed leaves behind is no obstacle.
    drop(std::os::unix::net::UnixListener::bind(&listen).unwrap());
    assert!(std::path::Path::new(&listen).exists());
    let _graph = Graph::with(&format!("listen: 'unix://{listen}'"));
    UnixStream::connect(&listen).unwrap();
}

#[test]
fn the_mode_of_a_unix_socket_is_not_that_of_the_umask() {
    let folder = Folder::new("mode");
    let listen = folder.path("mode.sock");
    // With the usual umask the file would be 0755 in each case.
    for (option, expected) in [
        ("", 0o600),
        ("listen_mode: 0660", 0o660),
        ("listen_mode: '0666'", 0o666),
    ] {
        let _graph = Graph::with(&format!("listen: 'unix://{listen}'\n{option}"));
        let mode = std::fs::metadata(&listen).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, expected, "{option}");
        assert!(UnixStream::connect(&listen).is_ok());
    }
}

#[test]
fn the_first_byte_has_a_time_of_its_own() {
    // No other time ends before a client has lost its patience.
    let yaml = |all: &str| {
        format!(
            "traffic_shaping: {{ router: {{ timeout: 10m }}, \
             all: {{ {all} timeout: 10m, first_byte_timeout: 100ms }} }}"
        )
    };
    let silent = Toxic::start(|_, _| Reply::Hang(Vec::new()));
    let answered = post(graph(&silent, &yaml("")).address(), "{ me { name } }");
    assert_eq!(answered.codes(), ["GATEWAY_TIMEOUT"]);
    // What was sent may not be read yet.
    while silent.asked() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(silent.asked(), 1);
    // An answer that has begun may take longer.
    let slow = Toxic::start(|_, _| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            GOOD.len() + 40
        );
        Reply::Drip((head + GOOD).into_bytes())
    });
    let slow = graph(&slow, &yaml(""));
    eventually(|| post(slow.address(), "{ me { name } }").text() == GOOD);
    // It may be tried again, elsewhere or not.
    eventually(|| {
        let once = Toxic::start(|nth, _| match nth {
            0 => Reply::Hang(Vec::new()),
            _ => good(),
        });
        let retry = yaml("retry: { backoff: 1ms },");
        let answered = post(graph(&once, &retry).address(), "{ me { name } }");
        answered.text() == GOOD && once.asked() == 2
    });
}

/// Tries until something happens that a busy machine may have no time for.
fn eventually(happens: impl FnMut() -> bool) {
    let began = Instant::now();
    let mut tries = std::iter::repeat_with(happens);
    while !tries.next().unwrap_or(false) {
        assert!(began.elapsed() < Duration::from_secs(120), "it never does");
    }
}

#[test]
fn a_body_that_drips_does_not_outlast_the_timeout() {
    let drip = Toxic::start(|_, _| {
        Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{".to_vec())
    });
    let graph = graph(&drip, "traffic_shaping: { all: { timeout: 200ms } }");
    let answered = post(graph.address(), "{ me { name } }");
    assert_eq!(answered.codes(), ["GATEWAY_TIMEOUT"]);
}

#[test]
fn subgraphs_may_be_told_how_much_time_is_left() {
    let subgraph = Toxic::start(|_, _| good());
    let yaml = "traffic_shaping: { router: { timeout: 50s }, all: { timeout: 70s, deadline_header: x-time-left } }";
    post(graph(&subgraph, yaml).address(), "{ me { name } }");
    let request = &subgraph.requests()[0];
    let left = request.split("x-time-left: ").nth(1).unwrap();
    let left: u64 = left.lines().next().unwrap().parse().unwrap();
    assert!((1..=50_000).contains(&left), "{left}");
}

#[test]
fn retry_after_may_be_a_date() {
    let far = "retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n";
    let past = "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n";
    for (header, asked) in [(far, 1), (past, 2)] {
        let subgraph = Toxic::start(move |nth, _| match nth {
            0 => Reply::Whole(answer(503, header, b"busy")),
            _ => good(),
        });
        let graph = graph(
            &subgraph,
            "traffic_shaping: { all: { retry: { backoff: 1ms } } }",
        );
        post(graph.address(), "{ me { name } }");
        assert_eq!(subgraph.asked(), asked, "{header}");
    }
}

fn replicas(replicas: &[&Toxic], yaml: &str) -> Graph {
    let urls: Vec<String> = replicas.iter().map(|r| format!("'{}'", r.url())).collect();
    let urls = urls.join(", ");
    Graph::with(&format!(
        "traffic_shaping: {{ subgraphs: {{ accounts: {{ urls: [{urls}], {yaml} }}, reviews: {{ urls: [{urls}], {yaml} }} }} }}"
    ))
}

#[test]
fn all_replicas_are_asked() {
    let (one, two) = (Toxic::start(|_, _| good()), Toxic::start(|_, _| good()));
    let graph = replicas(&[&one, &two], "");
    for _ in 0..40 {
        assert_eq!(post(graph.address(), "{ me { name } }").text(), GOOD);
    }
    assert_eq!(one.asked() + two.asked(), 40);
    assert!(one.asked() > 0 && two.asked() > 0);
}

#[test]
fn a_retry_goes_to_another_replica() {
    let bad = Toxic::start(|_, _| Reply::Last(Vec::new()));
    let well = Toxic::start(|_, _| good());
    let graph = replicas(
        &[&bad, &well],
        "retry: { attempts: 1, backoff: 1ms, budget_percent: 100 }",
    );
    for _ in 0..20 {
        assert_eq!(post(graph.address(), "{ me { name } }").text(), GOOD);
    }
    assert_eq!(well.asked(), 20);
    assert!(bad.asked() > 0, "{}", bad.asked());
    // A mutation has one try, wherever it goes.
    let before = bad.asked() + well.asked();
    post(graph.address(), MUTATION);
    assert_eq!(bad.asked() + well.asked(), before + 1);
}

#[test]
fn a_replica_that_keeps_failing_is_left_alone() {
    for (percent, left_alone) in [(50, true), (0, false), (100, false)] {
        let (one, two) = (
            Toxic::answering(500, "", "no"),
            Toxic::answering(500, "", "no"),
        );
        let graph = replicas(
            &[&one, &two],
            &format!(
                "outlier_ejection: {{ consecutive_failures: 1, base_ejection_time: 1h, max_ejection_percent: {percent} }}"
            ),
        );
        for _ in 0..20 {
            post(graph.address(), "{ me { name } }");
        }
        assert_eq!(one.asked() + two.asked(), 20);
        // If all are left alone, all are asked, though chance may begin with one of them.
        while !left_alone && one.asked().min(two.asked()) < 2 {
            post(graph.address(), "{ me { name } }");
        }
        let fewer = one.asked().min(two.asked());
        assert_eq!(fewer == 1, left_alone, "{percent}: {fewer}");
    }
}

#[test]
fn metrics_tell_who_is_left_alone() {
    let (one, two) = (
        Toxic::answering(500, "", "no"),
        Toxic::answering(500, "", "no"),
    );
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n\
         traffic_shaping: {{ subgraphs: {{ accounts: {{ urls: ['{}', '{}'], \
         circuit_breaker: {{ volume_threshold: 4, window: 1h, reset_timeout: 1h }}, \
         outlier_ejection: {{ consecutive_failures: 1, base_ejection_time: 1h, max_ejection_percent: 50 }} }} }} }}",
        one.url(),
        two.url()
    ));
    let found = || {
        let text = scrape(&graph);
        let lines = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("ogive_subgraph_")?;
            rest.split_once("{subgraph_name=\"accounts\"} ")
        });
        lines
            .map(|(name, value)| format!("{name} {value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(), ["breaker_open 0", "replicas_ejected 0"]);
    for _ in 0..4 {
        post(graph.address(), "{ me { name } }");
    }
    assert_eq!(found(), ["breaker_open 1", "replicas_ejected 1"]);
}

#[test]
fn a_replica_that_fails_fast_attracts_nobody() {
    loop {
        let bad = Toxic::answering(500, "", "no");
        let well = Toxic::start(|_, _| good());
        let graph = replicas(&[&bad, &well], "");
        let (began, mut slowest) = (Instant::now(), Duration::ZERO);
        for _ in 0..40 {
            let asked = Instant::now();
            post(graph.address(), "{ me { name } }");
            slowest = slowest.max(asked.elapsed());
        }
        // A failure counts as an answer of a second, for a second. Where the machine is so busy that others take as long,
        // nothing can be told.
        if slowest < Duration::from_millis(900) && began.elapsed() < Duration::from_secs(10) {
            assert!(bad.asked() < 20, "{}", bad.asked());
            break;
        }
    }
}

/// A subgraph that answers at once until it is told to be slow; slow answers come when the test says so.
struct Moody {
    subgraph: Toxic,
    slow: Arc<AtomicBool>,
    _release: mpsc::Sender<()>,
}

fn moody() -> Moody {
    let slow = Arc::new(AtomicBool::new(false));
    let (release, released) = mpsc::channel::<()>();
    let (mood, released) = (Arc::clone(&slow), Mutex::new(released));
    let subgraph = Toxic::start(move |nth, _| {
        // Only every other one is slow: the second of two tries is not.
        if mood.load(Ordering::SeqCst) && nth % 2 == 0 {
            let _ = released.lock().unwrap().recv();
        }
        good()
    });
    Moody {
        subgraph,
        slow,
        _release: release,
    }
}

const HEDGE: &str = "traffic_shaping: { router: { timeout: 10m }, all: { timeout: 10m, \
                     hedge: { percentile: 90, min_delay: 30ms, budget_percent: 10 } } }";

#[test]
fn a_slow_query_is_asked_a_second_time() {
    let moody = moody();
    let graph = graph(&moody.subgraph, HEDGE);
    // What is slow is known after twenty, so none of them is asked a second time however long it takes.
    for _ in 0..20 {
        post(graph.address(), "{ me { name } }");
    }
    assert_eq!(moody.subgraph.asked(), 20);
    moody.slow.store(true, Ordering::SeqCst);
    // The first is never answered while the test runs.
    assert_eq!(post(graph.address(), "{ me { name } }").text(), GOOD);
    assert_eq!(moody.subgraph.asked(), 22);
}

#[test]
fn hedging_has_a_budget_and_spares_mutations() {
    const ME: &str = r#"{"data":{"me":{"__typename":"Person","id":"1"}}}"#;
    const REVIEWS: &str = r#"{"data":{"_entities":[{"reviews":[{"stars":5}]}]}}"#;
    let silent = Arc::new(AtomicBool::new(false));
    let mutations = Arc::new(AtomicUsize::new(0));
    let (let_go, held) = mpsc::channel::<()>();
    let (mood, counted) = (Arc::clone(&silent), Arc::clone(&mutations));
    let held = Mutex::new(held);
    let accounts = Toxic::answering(200, "", ME);
    let reviews = Toxic::start(move |_, request| {
        if request.contains("mutation") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if mood.load(Ordering::SeqCst) {
            // All go on when nobody is there to let them.
            let _ = held.lock().unwrap().recv();
        }
        Reply::Whole(answer(200, "", REVIEWS.as_bytes()))
    });
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}', reviews: '{}' }}\n\
         traffic_shaping: {{ router: {{ timeout: 10m }}, subgraphs: {{ reviews: {{ timeout: 10m, \
         hedge: {{ percentile: 50, min_delay: 10ms, budget_percent: 10 }} }} }} }}",
        accounts.url(),
        reviews.url()
    ));
    // What is slow is known after twenty, so none of them is asked a second time however long it takes.
    for _ in 0..20 {
        let answer = post(graph.address(), "{ me { reviews { stars } } }");
        assert!(answer.codes().is_empty(), "{}", answer.text());
    }
    assert_eq!(reviews.asked(), 20);
    silent.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let address = graph.address();
        scope.spawn(move || post(address, MUTATION));
        for i in 0..6 {
            let query = format!("{{ me {{ a{i}: reviews {{ stars }} }} }}");
            scope.spawn(move || post(address, &query));
        }
        // Nobody is answered before all of them have come, a tenth of twenty-six for the second time.
        eventually(|| {
            std::thread::yield_now();
            reviews.asked() == 21 + 6 + 2
        });
        drop(let_go);
    });
    assert_eq!(reviews.asked(), 21 + 6 + 2);
    let sent = mutations.load(Ordering::SeqCst);
    assert_eq!(sent, 1, "a mutation is never sent twice");
}

#[test]
fn a_second_try_counts_in_the_rates_of_the_subgraph() {
    for (capacity, timeout, sent) in [(21, "1s", 21), (30, "10m", 22)] {
        let subgraph = Toxic::start(|nth, _| match nth {
            0..20 => good(),
            _ => Reply::Hang(Vec::new()),
        });
        let graph = graph(
            &subgraph,
            &format!(
                "traffic_shaping: {{ router: {{ timeout: 10m }}, all: {{ timeout: {timeout}, \
                 rate_limits: [{{ name: a, capacity: {capacity}, interval: 1h }}], \
                 hedge: {{ percentile: 50, min_delay: 10ms, budget_percent: 100 }} }} }}"
            ),
        );
        // What is slow is known after twenty, so none of them is asked a second time however long it takes.
        for _ in 0..20 {
            post(graph.address(), "{ me { name } }");
        }
        let mut client = Connection::open(graph.address());
        client.write(&request("POST", "/graphql", &JSON, QUERY));
        if sent == capacity {
            // It is given up in the end.
            client.read();
        } else {
            eventually(|| {
                std::thread::yield_now();
                subgraph.asked() == sent
            });
        }
        assert!(subgraph.asked() <= sent, "{capacity}");
    }
}

#[test]
fn what_is_fast_enough_is_not_asked_again() {
    let subgraph = Toxic::start(|nth, _| match nth {
        0..40 => good(),
        _ => Reply::Hang(Vec::new()),
    });
    let graph = graph(
        &subgraph,
        "traffic_shaping: { all: { timeout: 300ms, hedge: { percentile: 50, min_delay: 20s, budget_percent: 100 } } }",
    );
    for _ in 0..41 {
        post(graph.address(), "{ me { name } }");
    }
    // What is given up before the subgraph reads it does not come at all.
    assert!(subgraph.asked() <= 41, "{}", subgraph.asked());
}

#[test]
fn a_replica_that_was_left_alone_is_asked_again() {
    let bad = Toxic::answering(503, "", "no");
    let well = Toxic::start(|_, _| good());
    let graph = replicas(
        &[&bad, &well],
        "outlier_ejection: { consecutive_failures: 1, base_ejection_time: 20ms }, retry: { backoff: 1ms, budget_percent: 100 }",
    );
    while bad.asked() < 3 {
        assert_eq!(post(graph.address(), "{ me { name } }").text(), GOOD);
    }
}

#[test]
fn a_client_that_takes_nothing_is_closed() {
    let name = "x".repeat(24 << 20);
    let large = Toxic::answering(
        200,
        "",
        format!(r#"{{"data":{{"me":{{"name":"{name}"}}}}}}"#),
    );
    let graph = graph(
        &large,
        "http: { connections_max: 1, write_timeout: 100ms, compression: { enabled: false } }",
    );
    let mut greedy = Connection::open(graph.address());
    greedy.write(&request("POST", "/graphql", &JSON, QUERY));
    // The only place is free again, though the first client is still there: until then others are sent away, and who comes
    // for a moment only is gone after it.
    eventually(|| {
        let mut other = Connection::open(graph.address());
        other.write_what_is_taken(&request("POST", "/graphql", &JSON, TYPENAME));
        other.try_read().is_some_and(|answer| answer.status == 200)
    });
    let mut taken = Vec::new();
    while greedy.read_some(&mut taken) {}
    assert!(taken.len() < name.len(), "it was cut off");
}

#[test]
fn a_last_request_on_an_idle_connection_is_answered_while_draining() {
    let mut graph =
        Graph::with("http: { drain_idle_timeout: 2m, connection_shutdown_timeout: 2m }");
    let mut idle = Connection::open(graph.address());
    idle.write(&request("GET", "/health", &[], b""));
    assert_eq!(idle.read().header("connection"), None);
    let mut silent = Connection::open(graph.address());
    graph.served.begin_stop();
    until_refused(graph.address());
    for connection in [&mut idle, &mut silent] {
        connection.write(&request("POST", "/graphql", &JSON, QUERY));
        let answer = connection.read();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("close"))
        );
        assert!(connection.is_closed());
    }
    assert_eq!(graph.served.stopped().cut_off, 0);
}

#[test]
fn new_connections_are_welcome_for_a_while_after_the_stop_began() {
    // Long enough for all that is asked meanwhile.
    let delay = Duration::from_secs(10);
    let mut graph = Graph::with("http: { drain_delay: 10s }");
    let began = Instant::now();
    graph.served.begin_stop();
    let ready = || send(graph.address(), "GET", "/readiness", &[], b"").status;
    let told = std::iter::repeat_with(ready).find(|status| *status != 200);
    assert_eq!(told, Some(503), "load balancers are told");
    assert_eq!(post(graph.address(), "{ me { name } }").status, 200);
    graph.served.stopped();
    assert!(began.elapsed() >= delay);
}

fn until_refused(address: SocketAddr) {
    let is_refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    while !std::net::TcpStream::connect(address).is_err_and(is_refused) {
        std::thread::yield_now();
    }
}

#[test]
fn a_stop_under_load_fails_nothing() {
    // Clients that are about to ask once more may take their time.
    let mut graph =
        Graph::with("http: { drain_idle_timeout: 2m, connection_shutdown_timeout: 2m }");
    let address = graph.address();
    let (answered, failed) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| scope.spawn(move || until_sent_away(address)))
            .collect();
        // In the middle of it: some answers have been given, more are under way.
        while graph.service.total().requests < 20 {
            std::thread::yield_now();
        }
        graph.served.begin_stop();
        clients
            .into_iter()
            .fold((0, 0), |(answered, failed), client| {
                let (a, f) = client.join().unwrap();
                (answered + a, failed + f)
            })
    });
    assert!(answered >= 20, "{answered}");
    assert_eq!(failed, 0);
    assert_eq!(graph.served.stopped().cut_off, 0);
}

/// Asks over kept-alive connections, and opens another when one is closed, until nobody listens.
fn until_sent_away(address: SocketAddr) -> (u32, u32) {
    let (mut answered, mut failed) = (0, 0);
    while let Ok(stream) = std::net::TcpStream::connect(address) {
        let mut connection = Connection::over(stream);
        loop {
            connection.write_what_is_taken(&request("POST", "/graphql", &JSON, QUERY));
            let Some(answer) = connection.try_read() else {
                failed += 1;
                break;
            };
            assert_eq!(answer.status, 200);
            answered += 1;
            if answer.header("connection") == Some("close") {
                break;
            }
        }
    }
    (answered, failed)
}

#[test]
fn equal_answers_come_whatever_replica_is_asked() {
    // One of the replicas cannot even be connected to: nobody listens at this port, and nobody else can have it.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let gone = taken.local_addr().unwrap();
    let well = Toxic::start(|_, _| good());
    let graph = Graph::with(&format!(
        "traffic_shaping: {{ subgraphs: {{ accounts: {{ urls: ['http://{gone}/', '{}'], retry: {{ backoff: 1ms, budget_percent: 100 }} }} }} }}",
        well.url()
    ));
    let answers: BTreeSet<String> = (0..20)
        .map(|_| post(graph.address(), "{ me { name } }").text())
        .collect();
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), [GOOD]);
    assert_eq!(well.asked(), 20);
}

/// Old connections end, new ones are refused for a moment: retries bridge both.
#[test]
fn a_subgraph_that_restarts_under_load_fails_no_query() {
    let folder = Folder::new("restart");
    let socket = folder.path("accounts.sock");
    let start = || {
        Graph::with(&format!(
            "listen: 'unix://{socket}'\nhttp: {{ drain_idle_timeout: 10ms }}"
        ))
    };
    let mut subgraph = Some(start());
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: 'unix://{socket}?path=/graphql' }}\n\
         traffic_shaping: {{ router: {{ timeout: 10m }}, all: {{ timeout: 10m, \
         retry: {{ attempts: 100_000, backoff: 10ms, backoff_max: 20ms, budget_percent: 100, min_per_sec: 10_000 }} }} }}"
    ));
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (graph, stop, asked) = (&graph, &stop, &asked);
            scope.spawn(move || {
                // Each asks for itself, so that none rides along with another.
                let query = format!("{{ a{client}: me {{ name }} }}");
                while !stop.load(Ordering::Relaxed) {
                    let answer = post(graph.address(), &query);
                    assert_eq!(answer.codes(), Vec::<String>::new(), "{}", answer.text());
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            let before = asked.load(Ordering::Relaxed);
            while asked.load(Ordering::Relaxed) < before + 10 {
                std::thread::yield_now();
            }
            drop(subgraph.take());
            subgraph = Some(start());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn replicas_for_all_subgraphs_make_no_sense() {
    let text = "traffic_shaping: { all: { urls: ['http://a/'] } }";
    let refused = ogive_config::load(ogive_base::SourceId(0), text, &|_| None);
    let errors = refused.unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(
        errors[0].message,
        "all subgraphs cannot be at the same URLs"
    );
}

/// The examples of the page are configurations.
#[test]
fn the_examples_of_the_page_can_be_loaded() {
    let page = include_str!("../../../../docs/network.md");
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert!(examples.len() >= 4);
    for example in examples {
        crate::graph::config(example.split("```").next().unwrap());
    }
}
