//! Equal requests that are under way at the same time: asked once, and never across two identities.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

use crate::{
    authorization::{self, ENFORCE},
    graph::Graph,
    http_client::{Connection, PATIENCE, post_with, request},
};

const QUERY: &[u8] = br#"{"query":"{ me { name } }"}"#;
/// One worker, because work is shared within a worker.
const ONE: &str = "http: { workers: 1, header_read_timeout: 10m }\nheaders: { all: { request: [{ propagate: { named: authorization } }] } }\n";
const NO_REQUESTS: &str = "traffic_shaping: { all: { deduplicate_query: false } }\n";
const OPERATIONS: &str = "traffic_shaping: { all: { timeout: 10m, deduplicate_query: false }, router: { timeout: 10m, deduplicate_query: true } }\n";
/// Whoever waits is not given up, however long it takes until all have asked.
const PATIENT: &str = "traffic_shaping: { all: { timeout: 10m }, router: { timeout: 10m } }\n";

/// The subgraphs `accounts` and `reviews`, played by the test.
struct Accounts(TcpListener);

/// A request that waits for its answer.
struct Asked {
    stream: TcpStream,
    text: String,
}

impl Asked {
    fn read(mut stream: TcpStream) -> Option<Asked> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        while !bytes.ends_with(b"}") {
            match stream.read(&mut piece) {
                Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
                _ => return None,
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        Some(Asked { stream, text })
    }
    fn authorization(&self) -> &str {
        let header = self
            .text
            .lines()
            .find_map(|l| l.strip_prefix("authorization: "));
        header.unwrap_or("nobody")
    }
    fn answer(self, body: &str) -> TcpStream {
        self.answer_with("", body)
    }
    /// With lines of headers.
    fn answer_with(mut self, lines: &str, body: &str) -> TcpStream {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{lines}content-length: {length}\r\n\r\n");
        self.stream
            .write_all((head + body).as_bytes())
            .expect("the gateway is there");
        self.stream
    }
    /// Tells the caller's own name, and asks for no more on this connection.
    fn name_once(mut self) {
        let body = me(self.authorization());
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        let written = self.stream.write_all((head + body.as_str()).as_bytes());
        written.expect("the gateway is there");
    }
    fn name(self, name: &str) -> TcpStream {
        self.answer(&format!(r#"{{"data":{{"me":{{"name":"{name}"}}}}}}"#))
    }
}

impl Accounts {
    fn with(yaml: &str) -> (Graph, Accounts) {
        Accounts::changed(yaml, &[])
    }
    fn changed(yaml: &str, changes: &[(&str, &str)]) -> (Graph, Accounts) {
        Accounts::ruled(&format!("{ONE}{yaml}"), changes)
    }
    /// With header rules of its own.
    fn ruled(yaml: &str, changes: &[(&str, &str)]) -> (Graph, Accounts) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/graphql", listener.local_addr().unwrap());
        let yaml =
            format!("override_subgraph_url: {{ accounts: '{url}', reviews: '{url}' }}\n{yaml}");
        let graph = Graph::changed(&yaml, changes);
        (graph, Accounts(listener))
    }
    /// Has an operation planned, which a busy worker leaves to another thread: who asks for it then is seen at once.
    fn warm(&self, graph: &Graph, body: &[u8], answer: &str) {
        let mut first = client(graph);
        let headers = [("content-type", "application/json")];
        first.write(&request("POST", "/graphql", &headers, body));
        let asked = self.asked();
        let _closed = asked.answer_with("connection: close\r\n", answer);
        assert_eq!(first.read().status, 200);
    }
    fn asked(&self) -> Asked {
        Asked::read(self.0.accept().unwrap().0).expect("a request")
    }
    /// Whether nobody else is connecting.
    fn is_left_alone(&self) -> bool {
        self.connecting().is_none()
    }
    /// Somebody else who connects, in a moment.
    fn next(&self) -> Option<Asked> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(stream) = self.connecting() {
                return Asked::read(stream);
            }
            thread::yield_now();
        }
        None
    }
    /// Somebody else who is connecting already.
    fn connecting(&self) -> Option<TcpStream> {
        self.0.set_nonblocking(true).unwrap();
        let next = self.0.accept();
        self.0.set_nonblocking(false).unwrap();
        match next {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                Some(stream)
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    }
}

/// A connection that the worker knows already.
fn client(graph: &Graph) -> Connection {
    let mut connection = Connection::open(graph.address());
    settle(&mut connection);
    connection
}

/// Returns when the only worker has seen everything that was written before.
fn settle(connection: &mut Connection) {
    for _ in 0..2 {
        connection.write(&request("GET", "/health", &[], b""));
        assert_eq!(connection.read().status, 200);
    }
}

fn ask(connection: &mut Connection, authorization: &str, body: &[u8]) {
    let headers = [
        ("content-type", "application/json"),
        ("authorization", authorization),
    ];
    connection.write(&request("POST", "/graphql", &headers, body));
}

fn me(name: &str) -> String {
    format!(r#"{{"data":{{"me":{{"name":"{name}"}}}}}}"#)
}

/// Clients that ask the same at the same time; how often the subgraph is asked.
fn times_asked(yaml: &str, body: &[u8], answer: &str, clients: usize, at_most: usize) -> usize {
    let (graph, accounts) = Accounts::with(yaml);
    accounts.warm(&graph, body, answer);
    let mut probe = client(&graph);
    let mut clients: Vec<Connection> = (0..clients).map(|_| client(&graph)).collect();
    for connection in &mut clients {
        ask(connection, "Bearer a", body);
    }
    let mut open = vec![accounts.asked()];
    settle(&mut probe);
    while open.len() < at_most {
        open.push(accounts.asked());
    }
    assert!(accounts.is_left_alone());
    let times = open.len();
    let _kept: Vec<TcpStream> = open.into_iter().map(|asked| asked.answer(answer)).collect();
    for connection in &mut clients {
        assert_eq!(connection.read().text(), answer);
    }
    times
}

#[test]
fn equal_subgraph_requests_under_way_are_sent_once() {
    assert_eq!(times_asked("", QUERY, &me("Ann"), 8, 1), 1);
}

#[test]
fn sharing_can_be_switched_off() {
    assert_eq!(times_asked(NO_REQUESTS, QUERY, &me("Ann"), 3, 3), 3);
}

#[test]
fn equal_operations_under_way_are_executed_once() {
    assert_eq!(times_asked(OPERATIONS, QUERY, &me("Ann"), 8, 1), 1);
}

#[test]
fn subgraphs_that_are_told_names_are_asked_once_for_each_name() {
    let names = "operation_names: true";
    let whole = "router: { deduplicate_query: true }";
    for (yaml, times) in [
        ("traffic_shaping: {}\n".to_owned(), 1),
        (format!("traffic_shaping: {{ all: {{ {names} }} }}\n"), 2),
        (
            format!(
                "traffic_shaping: {{ all: {{ {names}, deduplicate_query: false }}, {whole} }}\n"
            ),
            2,
        ),
    ] {
        let (graph, accounts) = Accounts::with(&yaml);
        for name in ["One", "Two"] {
            let body = format!(r#"{{"query":"query {name} {{ me {{ name }} }}"}}"#);
            accounts.warm(&graph, body.as_bytes(), &me("Ann"));
        }
        let mut probe = client(&graph);
        let mut clients: Vec<Connection> = (0..4).map(|_| client(&graph)).collect();
        for (number, connection) in clients.iter_mut().enumerate() {
            let name = ["One", "Two"][number % 2];
            let body = format!(r#"{{"query":"query {name} {{ me {{ name }} }}"}}"#);
            ask(connection, "Bearer a", body.as_bytes());
        }
        let open: Vec<Asked> = (0..times).map(|_| accounts.asked()).collect();
        settle(&mut probe);
        assert!(accounts.is_left_alone(), "{yaml}");
        let _kept: Vec<TcpStream> = open.into_iter().map(|asked| asked.name("Ann")).collect();
        for connection in &mut clients {
            assert_eq!(connection.read().text(), me("Ann"));
        }
    }
}

#[test]
fn mutations_are_never_shared() {
    let yaml = "traffic_shaping: { router: { deduplicate_query: true } }\n";
    let body = br#"{"query":"mutation { addReview(review: { product: \"a\", stars: 1, title: \"t\" }) { title } }"}"#;
    let answer = r#"{"data":{"addReview":{"title":"t"}}}"#;
    assert_eq!(times_asked(yaml, body, answer, 3, 3), 3);
}

#[test]
fn a_failure_is_everybodys_and_the_next_request_asks_again() {
    let (graph, accounts) = Accounts::with("");
    let (mut one, mut two) = (client(&graph), client(&graph));
    ask(&mut one, "Bearer a", QUERY);
    let asked = accounts.asked();
    ask(&mut two, "Bearer a", QUERY);
    settle(&mut client(&graph));
    let _kept = asked.answer("no JSON");
    assert_eq!(one.read().codes().len(), 1);
    assert_eq!(two.read().codes().len(), 1);
    drop(_kept);
    ask(&mut two, "Bearer a", QUERY);
    let _kept = accounts.asked().name("Ann");
    assert_eq!(two.read().text(), me("Ann"));
}

#[test]
fn when_the_one_who_asks_leaves_the_next_one_asks() {
    for yaml in ["", OPERATIONS] {
        let (graph, accounts) = Accounts::with(yaml);
        let (mut one, mut two) = (client(&graph), client(&graph));
        ask(&mut one, "Bearer a", QUERY);
        let given_up = accounts.asked();
        ask(&mut two, "Bearer a", QUERY);
        settle(&mut client(&graph));
        drop(one);
        let _kept = accounts.asked().name("Ann");
        assert_eq!(two.read().text(), me("Ann"));
        drop(given_up);
    }
}

#[test]
fn identities_and_variables_are_told_apart() {
    for yaml in ["", OPERATIONS] {
        let (graph, accounts) = Accounts::with(yaml);
        let (mut one, mut two) = (client(&graph), client(&graph));
        ask(&mut one, "Bearer a", QUERY);
        ask(&mut two, "Bearer b", QUERY);
        let asked = [accounts.asked(), accounts.asked()];
        let _kept = asked.map(|asked| {
            let name = asked.authorization().to_owned();
            asked.name(&name)
        });
        assert_eq!(one.read().text(), me("Bearer a"));
        assert_eq!(two.read().text(), me("Bearer b"));
    }
}

/// What is said in extensions, or in a header that a selector makes, is a part of what has to be equal.
#[test]
fn what_selectors_tell_a_subgraph_tells_callers_apart() {
    const KNOWN: &str = "http: { workers: 1 }\nauthorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n";
    let user = "request_extensions: { user: { jwt_claim: sub } }";
    let named = "headers: { all: { request: [{ insert: { name: x-name, from: { operation_name: true } } }] } }\n";
    let whole = "router: { deduplicate_query: true }";
    for (yaml, by_user, by_name) in [
        ("traffic_shaping: {}\n".to_owned(), false, false),
        (
            format!("traffic_shaping: {{ all: {{ {user} }} }}\n"),
            true,
            false,
        ),
        (
            format!(
                "traffic_shaping: {{ all: {{ {user}, deduplicate_query: false }}, {whole} }}\n"
            ),
            true,
            false,
        ),
        (named.to_owned(), false, true),
        (
            format!("{named}traffic_shaping: {{ all: {{ deduplicate_query: false }}, {whole} }}\n"),
            false,
            true,
        ),
    ] {
        let (graph, accounts) = Accounts::ruled(&format!("{KNOWN}{yaml}"), &[]);
        for name in ["One", "Two"] {
            let body = format!(r#"{{"query":"query {name} {{ me {{ name }} }}"}}"#);
            accounts.warm(&graph, body.as_bytes(), &me("Ann"));
        }
        let mut probe = client(&graph);
        let mut clients: Vec<Connection> = (0..8).map(|_| client(&graph)).collect();
        for (number, connection) in clients.iter_mut().enumerate() {
            let (user, name) = (["ann", "ben"][number % 2], ["One", "Two"][number / 2 % 2]);
            let claims = format!(r#"{{"claims":{{"sub":"{user}"}}}}"#);
            let headers = [("content-type", "application/json"), ("x-claims", &claims)];
            let body = format!(r#"{{"query":"query {name} {{ me {{ name }} }}"}}"#);
            connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
        }
        let times = if by_user || by_name { 2 } else { 1 };
        let open: Vec<Asked> = (0..times).map(|_| accounts.asked()).collect();
        settle(&mut probe);
        assert!(accounts.is_left_alone(), "{yaml}");
        let told = |asked: &Asked| {
            let all = [
                "\"user\":\"ann\"",
                "\"user\":\"ben\"",
                "x-name: One",
                "x-name: Two",
            ];
            all.into_iter()
                .find(|said| asked.text.contains(said))
                .unwrap_or("nothing")
        };
        let _kept: Vec<TcpStream> = open
            .into_iter()
            .map(|asked| {
                let said = told(&asked).replace(['"', ':'], " ");
                asked.name(&said)
            })
            .collect();
        for (number, connection) in clients.iter_mut().enumerate() {
            let expected = match (by_user, by_name) {
                (true, _) => [" user   ann ", " user   ben "][number % 2],
                (_, true) => ["x-name  One", "x-name  Two"][number / 2 % 2],
                _ => "nothing",
            };
            assert_eq!(connection.read().text(), me(expected), "{yaml}");
        }
    }
}

const ANSWER_RULES: &str = "headers: { all: { response: [{ propagate: { named: set-cookie } }, { propagate: { named: x-request-id, rename: x-asked-by } }] } }\n";

/// Found by a review: of six visitors who asked at the same time three got the session of another.
#[test]
fn an_answer_that_was_made_for_one_client_is_given_to_nobody_else() {
    const VISITORS: usize = 6;
    let personal = [
        "set-cookie: session={}; HttpOnly\r\n",
        "cache-control: private, x-n={}\r\n",
        "vary: *\r\nx-n: {}\r\n",
        "www-authenticate: Digest nonce=\"{}\"\r\n",
    ];
    for (operations, rules) in [("", ANSWER_RULES), (OPERATIONS, ANSWER_RULES), ("", "")] {
        for line in personal {
            let yaml = format!("http: {{ workers: 1 }}\n{operations}{rules}");
            let (graph, accounts) = Accounts::ruled(&yaml, &[]);
            accounts.warm(&graph, QUERY, &me("Ann"));
            let mut clients: Vec<Connection> = (0..VISITORS).map(|_| client(&graph)).collect();
            for connection in &mut clients {
                ask(connection, "", QUERY);
            }
            let answer = |(n, asked): (usize, Asked)| {
                let line = line.replace("{}", &n.to_string());
                let lines = format!("connection: close\r\n{line}");
                asked.answer_with(&lines, &me(&n.to_string()));
            };
            let first = accounts.asked();
            settle(&mut client(&graph));
            assert!(accounts.is_left_alone(), "all of them wait for the first");
            answer((0, first));
            // The others ask at once, not one after the other.
            settle(&mut client(&graph));
            let asked: Vec<Asked> = (1..VISITORS).map_while(|_| accounts.next()).collect();
            (1..).zip(asked).for_each(answer);
            let answers = clients.iter_mut().map(Connection::read);
            let mut seen: Vec<String> = answers
                .map(|answer| {
                    let cookie = answer.header("set-cookie").unwrap_or("no").to_owned();
                    format!("{} {cookie}", answer.text())
                })
                .collect();
            seen.sort();
            let expected: Vec<String> = (0..VISITORS)
                .map(|n| {
                    let cookie = if line.starts_with("set-cookie") && !rules.is_empty() {
                        format!("session={n}; HttpOnly")
                    } else {
                        "no".to_owned()
                    };
                    format!("{} {cookie}", me(&n.to_string()))
                })
                .collect();
            assert_eq!(seen, expected, "{line} {operations} {rules}");
        }
    }
}

/// Otherwise whoever asks at the same time waits for an answer that is somebody else's, and asks only then.
#[test]
fn nobody_waits_for_an_answer_that_will_be_somebody_elses() {
    for operations in ["", OPERATIONS] {
        let yaml = format!("http: {{ workers: 1 }}\n{operations}");
        let (graph, accounts) = Accounts::ruled(&yaml, &[]);
        let answer = |asked: Asked, name: &str| {
            asked.answer_with("connection: close\r\nset-cookie: a=1\r\n", &me(name))
        };
        let mut clients = [client(&graph), client(&graph)];
        ask(&mut clients[0], "", QUERY);
        answer(accounts.asked(), "first");
        assert_eq!(clients[0].read().text(), me("first"));
        for connection in &mut clients {
            ask(connection, "", QUERY);
        }
        let one = accounts.asked();
        settle(&mut client(&graph));
        let other = accounts.next();
        assert!(other.is_some(), "one waits for the other: {operations}");
        answer(one, "a");
        other.map(|other| answer(other, "b"));
        let mut seen = clients.map(|mut connection| connection.read().text());
        seen.sort();
        assert_eq!(seen, [me("a"), me("b")], "{operations}");
    }
}

/// A subgraph that tells the id of the request it was asked by tells that of the one client who asked.
#[test]
fn ids_of_requests_are_told_to_nobody_else() {
    let ids = "telemetry: { request_id: { enabled: true, header: x-request-id } }\n";
    for operations in ["", OPERATIONS] {
        let yaml = format!("http: {{ workers: 1 }}\n{operations}{ANSWER_RULES}{ids}");
        let (graph, accounts) = Accounts::ruled(&yaml, &[]);
        accounts.warm(&graph, QUERY, &me("Ann"));
        let mut clients = [client(&graph), client(&graph)];
        for (connection, id) in clients.iter_mut().zip(["first", "second"]) {
            let headers = [("content-type", "application/json"), ("x-request-id", id)];
            connection.write(&request("POST", "/graphql", &headers, QUERY));
        }
        let asked = accounts.asked();
        settle(&mut client(&graph));
        assert!(accounts.is_left_alone(), "they share it");
        let id = asked
            .text
            .lines()
            .find_map(|l| l.strip_prefix("x-request-id: "));
        let line = format!("x-request-id: {}\r\n", id.expect("an id").trim());
        let _kept = asked.answer_with(&line, &me("Ann"));
        let [first, second] = clients.map(|mut connection| {
            let answer = connection.read();
            assert_eq!(answer.text(), me("Ann"));
            answer.header("x-asked-by").map(str::to_owned)
        });
        assert_eq!(
            (first.as_deref(), second),
            (Some("first"), None),
            "{operations}"
        );
    }
}

/// As many connections as this process may have open at a time beside those that they lead to, and no more than wanted.
fn connections(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| {
        let numbers = line.strip_prefix("Max open files")?;
        numbers.split_whitespace().next()?.parse::<usize>().ok()
    });
    // Each is open at both ends, and so is one to the subgraph; other tests have some, too.
    wanted.min((files.unwrap_or(1_024).saturating_sub(400) / 4) & !1)
}

/// A thousand connections ask at once, and the subgraph answers nobody before a thousand, or one of two, have asked:
/// everybody sees their own answer and nobody else's, whether each has an identity of its own or shares it with one other.
#[test]
fn no_answer_crosses_two_identities_under_load() {
    let n = connections(1_000);
    for (yaml, of_each) in [(PATIENT, 1), (PATIENT, 2), (OPERATIONS, 1), (OPERATIONS, 2)] {
        let (graph, accounts) = Accounts::with(yaml);
        accounts.warm(&graph, QUERY, &me("Ann"));
        let address = graph.address();
        let mut clients: Vec<Connection> = (0..n).map(|_| Connection::open(address)).collect();
        let identity = |at: usize| format!("Bearer {}", at % (n / of_each));
        thread::scope(|scope| {
            // Taken as they come, for a listener lets only so many wait.
            let accounts = &accounts;
            let (tell, told) = std::sync::mpsc::channel();
            let asked = scope.spawn(move || {
                let held: Vec<Asked> = (0..n / of_each).map(|_| accounts.asked()).collect();
                let mut identities: Vec<&str> = held.iter().map(Asked::authorization).collect();
                identities.sort_unstable();
                identities.dedup();
                let n_identities = identities.len();
                let mut n_asked = held.len();
                // Everybody has asked.
                told.recv().unwrap();
                // The last ones first.
                held.into_iter().rev().for_each(Asked::name_once);
                // Whose turn came only when the one they would have joined had the answer asks as well.
                while let Some(late) = Asked::read(accounts.0.accept().unwrap().0) {
                    late.name_once();
                    n_asked += 1;
                }
                (n_identities, n_asked)
            });
            for (at, connection) in clients.iter_mut().enumerate() {
                ask(connection, &identity(at), QUERY);
            }
            settle(&mut client(&graph));
            tell.send(()).unwrap();
            for (at, connection) in clients.iter_mut().enumerate() {
                assert_eq!(connection.read().text(), me(&identity(at)));
            }
            // Asks nothing, and so ends it.
            drop(TcpStream::connect(accounts.0.local_addr().unwrap()));
            let (n_identities, n_asked) = asked.join().unwrap();
            assert_eq!(n_identities, n / of_each, "each of them was there at once");
            assert!(
                of_each == 1 && n_asked == n || of_each > 1 && n_asked < n,
                "{n_asked}"
            );
        });
    }
}

/// What tracing passes on word for word says who asks as well as any other header.
#[test]
fn baggage_and_trace_state_tell_callers_apart() {
    // Nobody collects; spans are thrown away in the end.
    let tracing = "telemetry: { exporters: { tracing: { propagation: { baggage: true }, otlp: { enabled: true, endpoint: 'http://127.0.0.1:9' } } } }\n";
    let parent = |at| format!("00-4bf92f3577b34da6a3ce929d0e0e473{at}-00f067aa0ba902b7-01");
    for operations in ["", OPERATIONS] {
        let (graph, accounts) = Accounts::with(&format!("{operations}{tracing}"));
        accounts.warm(&graph, QUERY, &me("Ann"));
        let ask = |parent: &str, header: (&str, &str)| {
            let mut connection = client(&graph);
            let headers = [
                ("content-type", "application/json"),
                ("traceparent", parent),
                header,
            ];
            connection.write(&request("POST", "/graphql", &headers, QUERY));
            connection
        };
        let told = [
            ("baggage", "user=alice"),
            ("baggage", "user=bob"),
            ("tracestate", "user=alice"),
        ];
        // Each of them twice, in traces of their own: ids do not tell callers apart.
        let mut clients = told.map(|header| [ask(&parent(1), header), ask(&parent(2), header)]);
        let asked = told.map(|_| accounts.asked());
        settle(&mut client(&graph));
        assert!(accounts.is_left_alone());
        let _kept = asked.map(|asked| {
            let told = told.iter().find(|(name, value)| {
                let line = format!("\r\n{name}: {value}\r\n");
                asked.text.contains(&line)
            });
            let (name, value) = told.expect("one of them");
            asked.name(&format!("{name} {value}"))
        });
        for ((name, value), clients) in told.iter().zip(&mut clients) {
            for connection in clients {
                assert_eq!(connection.read().text(), me(&format!("{name} {value}")));
            }
        }
    }
}

#[test]
fn what_one_query_has_asked_it_need_not_ask_again() {
    // The reviews are found by way of the makers, and lead back to products whose makers are known.
    let query = "{ warehouses { products { maker { products { reviews { product { maker { products { sku } } } } } } } } }";
    let representations = |yaml: &str| {
        let graph = Graph::with(yaml);
        let answer = post_with(graph.address(), query, &[]);
        let entities = graph.service.counts("products").unwrap().entities;
        (answer.text(), entities)
    };
    let (answer, entities) = representations("execution: { reuse: entities }");
    let (again, all) = representations("execution: { reuse: off }");
    assert_eq!(answer, again);
    assert!(entities < all, "{entities} of {all}");
}

#[test]
fn what_a_subgraph_said_anywhere_it_need_not_say_again() {
    let query =
        "{ topProducts { name reviews { product { name category } author { username } } } }";
    let asked = |yaml: &str, query: &str| {
        let graph = Graph::with(yaml);
        let answer = post_with(graph.address(), query, &[]);
        let counts = graph.service.counts("products").unwrap();
        (answer.text(), counts.requests)
    };
    let entities = "execution: { reuse: entities }";
    let (answer, twice) = asked(entities, query);
    assert_eq!(twice, 2);
    // The category is not known yet.
    assert_eq!(asked("execution: { reuse: all }", query), (answer, 2));
    let query = query.replacen("name", "name category", 1);
    let (answer, twice) = asked(entities, &query);
    assert_eq!(twice, 2);
    assert_eq!(asked("execution: { reuse: all }", &query), (answer, 1));
}

#[test]
fn callers_that_may_not_see_the_same_are_told_apart() {
    let (graph, accounts) =
        Accounts::changed(&format!("{OPERATIONS}{ENFORCE}"), authorization::RESTRICTED);
    let claims = [r#"{"scopes":["people"]}"#, r#"{"scopes":[]}"#, "{}"];
    let body = br#"{"query":"{ me { name city } }"}"#;
    let ask = |connection: &mut Connection, claims: &str| {
        let headers = [("content-type", "application/json"), ("x-claims", claims)];
        connection.write(&request("POST", "/graphql", &headers, body));
    };
    let answer = |asked: &Asked| {
        if asked.text.contains("city") {
            r#"{"data":{"me":{"name":"Ann","city":"Oslo"}}}"#
        } else {
            r#"{"data":{"me":{"name":"Ann"}}}"#
        }
    };
    // As `Accounts::warm` does, for each of them.
    for claims in claims {
        let mut first = client(&graph);
        ask(&mut first, claims);
        let asked = accounts.asked();
        let told = answer(&asked);
        let _closed = asked.answer_with("connection: close\r\n", told);
        first.read();
    }
    let mut clients = [client(&graph), client(&graph), client(&graph)];
    for (connection, claims) in clients.iter_mut().zip(claims) {
        ask(connection, claims);
    }
    // The two that may see the same share one operation.
    settle(&mut client(&graph));
    let asked = [accounts.asked(), accounts.asked()];
    assert!(accounts.is_left_alone());
    let _kept = asked.map(|asked| {
        let told = answer(&asked);
        asked.answer(told)
    });
    let [one, two, three] = clients.map(|mut connection| connection.read().json());
    assert_eq!(
        one,
        serde_json::json!({ "data": { "me": { "name": "Ann", "city": "Oslo" } } })
    );
    assert_eq!(two["data"]["me"]["city"], serde_json::Value::Null);
    assert_eq!(two["errors"][0]["path"], serde_json::json!(["me", "city"]));
    assert_eq!(two, three);
}
