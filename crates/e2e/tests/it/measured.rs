//! Limits that are only measured (`limits.warn_only`): what exceeds them passes and is counted, up to the ceiling that
//! protects the process.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use ogive_net::encoding::{Encoding, encode};
use ogive_testbase::subgraph::ManualSubgraph;

use crate::{
    graph::Graph,
    http_client::{Connection, post, request, send},
    telemetry::{lines, scrape},
    toxic::Toxic,
};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A graph whose limits named `words` are only measured, and one whose limits hold.
fn both(yaml: &str, limits: &str, words: &str) -> (Graph, Graph) {
    let graph = |limits: &str| {
        Graph::with(&format!(
            "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n\
             limits: {{ {limits} }}\n{yaml}"
        ))
    };
    let measured = match limits {
        "" => format!("warn_only: [{words}]"),
        limits => format!("{limits}, warn_only: [{words}]"),
    };
    (graph(&measured), graph(limits))
}

/// What is counted so far: codes and numbers, without the rest.
fn counted(graph: &Graph) -> Vec<(String, u32)> {
    let text = scrape(graph);
    let lines = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("ogive_limits_exceeded_total{graphql_error_code=\"")?;
        let (code, number) = rest.split_once("\"} ")?;
        Some((code.to_owned(), number.parse().unwrap()))
    });
    let mut all: Vec<_> = lines.collect();
    all.sort();
    all
}

fn expect(graph: &Graph, expected: &[(&str, u32)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(c, n)| ((*c).to_owned(), *n))
        .collect();
    assert_eq!(counted(graph), expected);
}

fn graphql(graph: &Graph, body: &[u8]) -> (u16, String) {
    let answer = send(graph.address(), "POST", "/graphql", &[JSON], body);
    (answer.status, answer.text())
}

#[test]
fn bodies_and_documents() {
    let (measured, strict) = both(
        "batching: { enabled: true, maximum_size: 1 }",
        "http_max_request_bytes: 150, parser_max_tokens: 10",
        "http_max_request_bytes, parser_max_tokens, batching.maximum_size",
    );
    let padded = |bytes: usize| {
        let padding = " ".repeat(bytes);
        format!(r#"{{"query":"{{ __typename }}"{padding}}}"#).into_bytes()
    };
    let good = (200, r#"{"data":{"__typename":"Query"}}"#.to_owned());
    let (status, text) = graphql(&strict, &padded(200));
    assert_eq!(status, 413, "{text}");
    assert_eq!(graphql(&measured, &padded(200)), good);
    expect(&measured, &[("REQUEST_TOO_LARGE", 1)]);
    let (status, text) = graphql(&measured, &padded(2_000_000));
    assert_eq!(status, 413, "the ceiling is the default: {text}");
    // What arrives is small, what it becomes is not: counted once.
    let gzip = encode(Encoding::Gzip, &padded(1_000)).unwrap();
    let headers = [JSON, ("content-encoding", "gzip")];
    let ask = |graph: &Graph| send(graph.address(), "POST", "/graphql", &headers, &gzip).status;
    assert_eq!((ask(&strict), ask(&measured)), (413, 200));
    expect(&measured, &[("REQUEST_TOO_LARGE", 2)]);

    let batch = |entries: usize| {
        let entries = vec![r#"{"query":"{__typename}"}"#; entries];
        format!("[{}]", entries.join(",")).into_bytes()
    };
    assert_eq!(graphql(&strict, &batch(2)).0, 422);
    assert_eq!(graphql(&measured, &batch(2)).0, 200);
    let (status, text) = graphql(&measured, &batch(11));
    assert_eq!(status, 422, "ten times the limit: {text}");

    let fields = |number: usize| {
        let fields = "__typename ".repeat(number);
        format!(r#"{{"query":"{{ {fields}}}"}}"#).into_bytes()
    };
    let (status, text) = graphql(&strict, &fields(9));
    assert!(status == 400 && text.contains("MAX_TOKENS_LIMIT"), "{text}");
    assert_eq!(graphql(&measured, &fields(8)), good, "ten tokens");
    assert_eq!(graphql(&measured, &fields(9)), good);
    let (status, text) = graphql(&measured, &fields(15_000));
    assert!(status == 400 && text.contains("MAX_TOKENS_LIMIT"), "{text}");
    expect(
        &measured,
        &[
            ("BATCH_LIMIT_EXCEEDED", 1),
            ("MAX_TOKENS_LIMIT", 1),
            // The batch of eleven and the last document are large, too.
            ("REQUEST_TOO_LARGE", 4),
        ],
    );
}

#[test]
fn heads() {
    let (measured, strict) = both(
        "",
        "http1_max_request_headers: 10, http1_max_request_buf_size: 8KiB",
        "http1_max_request_headers, http1_max_request_buf_size",
    );
    let many = |graph: &Graph, number: usize| {
        let names: Vec<String> = (0..number).map(|i| format!("x-{i}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "1")).collect();
        send(graph.address(), "GET", "/health", &many, b"").status
    };
    let long = |graph: &Graph, bytes: usize| {
        let long = "x".repeat(bytes);
        send(graph.address(), "GET", "/health", &[("x-long", &long)], b"").status
    };
    assert_eq!((many(&strict, 20), many(&measured, 20)), (431, 200));
    expect(&measured, &[("HEADERS_LIMIT", 1)]);
    assert_eq!((long(&strict, 20_000), long(&measured, 20_000)), (431, 200));
    expect(&measured, &[("HEADERS_LIMIT", 1), ("HEADER_SIZE_LIMIT", 1)]);
    assert_eq!((many(&measured, 150), long(&measured, 100_000)), (431, 431));
    expect(&measured, &[("HEADERS_LIMIT", 1), ("HEADER_SIZE_LIMIT", 1)]);
}

#[test]
fn connections() {
    let (measured, _) = both(
        "http: { connections_max: 1, connections_per_client_max: 1 }",
        "",
        "http.connections_max, http.connections_per_client_max",
    );
    let alive = |connection: &mut Connection| {
        connection.write_what_is_taken(&request("GET", "/health", &[], b""));
        connection
            .try_read()
            .is_some_and(|answer| answer.status == 200)
    };
    let mut all: Vec<Connection> = Vec::new();
    for _ in 0..10 {
        let mut connection = Connection::open(measured.address());
        assert!(alive(&mut connection));
        all.push(connection);
    }
    let counts = [("CLIENT_CONNECTIONS_LIMIT", 9), ("CONNECTIONS_LIMIT", 9)];
    expect(&measured, &counts);
    // Where ten times the limit is below the default, that is where it holds.
    let mut eleventh = Connection::open(measured.address());
    assert!(alive(&mut eleventh));
    assert!(all.iter_mut().all(alive));
}

#[test]
fn requests_at_a_time() {
    let accounts = ManualSubgraph::start();
    let (measured, _) = both(
        &format!(
            "override_subgraph_url: {{ accounts: '{}' }}\n\
             traffic_shaping: {{ router: {{ concurrency_limit: 1 }} }}",
            accounts.url()
        ),
        "",
        "traffic_shaping.router.concurrency_limit",
    );
    let mut first = Connection::open(measured.address());
    let body = br#"{"query":"{ me { name } }"}"#;
    first.write(&request("POST", "/graphql", &[JSON], body));
    let mut asked = accounts.next();
    expect(&measured, &[]);
    assert_eq!(post(measured.address(), "{ __typename }").status, 200);
    expect(&measured, &[("REQUEST_CONCURRENCY_LIMITED", 1)]);
    asked.answer(200, "", r#"{"data":{"me":{"name":"Zoe"}}}"#);
    assert_eq!(first.read().text(), r#"{"data":{"me":{"name":"Zoe"}}}"#);
}

#[test]
fn more_requests_at_a_time_than_the_ceiling() {
    let accounts = ManualSubgraph::start();
    let (measured, _) = both(
        &format!(
            "override_subgraph_url: {{ accounts: '{}' }}\n\
             traffic_shaping: {{ router: {{ concurrency_limit: 1 }} }}",
            accounts.url()
        ),
        "",
        "traffic_shaping.router.concurrency_limit",
    );
    let mut under_way = Vec::new();
    for n in 0..10 {
        let mut client = Connection::open(measured.address());
        // Equal ones would be sent once.
        let body = format!(r#"{{"query":"{{ me {{ n{n}: name }} }}"}}"#);
        client.write(&request("POST", "/graphql", &[JSON], body.as_bytes()));
        under_way.push((client, accounts.next()));
    }
    let refused = post(measured.address(), "{ __typename }");
    assert_eq!(refused.codes(), ["REQUEST_CONCURRENCY_LIMITED"]);
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    for (n, (client, asked)) in under_way.iter_mut().enumerate() {
        let answer = format!(r#"{{"data":{{"me":{{"n{n}":"Zoe"}}}}}}"#);
        asked.answer(200, "", &answer);
        assert_eq!(client.read().text(), answer);
    }
    expect(&measured, &[("REQUEST_CONCURRENCY_LIMITED", 9)]);
    assert_eq!(post(measured.address(), "{ __typename }").status, 200);
}

/// What is beyond ten times the limit, and beyond the default, is refused.
#[test]
fn answers_beyond_the_ceilings() {
    let accounts = ManualSubgraph::start();
    let url = accounts.url();
    // Hundreds of megabytes may take their time.
    let patient = "router: { timeout: 10m }";
    let ask = |graph: &Graph| {
        let mut client = Connection::open(graph.address());
        let body = br#"{"query":"{ me { name } }"}"#;
        client.write(&request("POST", "/graphql", &[JSON], body));
        (client, accounts.next().stream)
    };
    let announce = |stream: &mut std::net::TcpStream, bytes: usize| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
    };
    let (measured, _) = both(
        &format!(
            "override_subgraph_url: {{ accounts: '{url}' }}\n\
             traffic_shaping: {{ {patient}, all: {{ timeout: 10m, response_max_bytes: 1000 }} }}"
        ),
        "",
        "traffic_shaping.response_max_bytes",
    );
    let (mut client, mut stream) = ask(&measured);
    announce(&mut stream, (64 << 20) + 1);
    assert_eq!(client.read().codes(), ["SUBREQUEST_HTTP_ERROR"]);
    expect(&measured, &[]);

    let (measured, _) = both(
        &format!(
            "override_subgraph_url: {{ accounts: '{url}' }}\n\
             traffic_shaping: {{ {patient}, all: {{ timeout: 10m, response_max_bytes: 1GiB }} }}"
        ),
        "max_request_memory: 1000",
        "max_request_memory",
    );
    let (mut client, mut stream) = ask(&measured);
    announce(&mut stream, 400 << 20);
    let piece = vec![b' '; 1 << 20];
    let taken = (0..400).take_while(|_| stream.write_all(&piece).is_ok());
    let taken = taken.count();
    assert!((256..400).contains(&taken), "{taken} MiB");
    assert_eq!(client.read().codes(), ["REQUEST_MEMORY_LIMIT"]);
    assert_eq!(post(measured.address(), "{ __typename }").status, 200);
}

/// How many heads were not there in time.
fn late_heads(graph: &Graph) -> u32 {
    let all = counted(graph).into_iter();
    all.filter(|(code, _)| code == "HEADER_TIMEOUT")
        .map(|(_, number)| number)
        .sum()
}

/// Time passes until the strict one, which has begun to wait later, has closed its connection. A second, because
/// nothing else takes as long, except on a busy machine.
#[test]
fn time_for_heads() {
    let (measured, strict) = both(
        "http: { header_read_timeout: 1s, workers: 1 }",
        "",
        "http.header_read_timeout",
    );
    let open = |graph: &Graph| Connection::open(graph.address());
    let asks = |connection: &mut Connection| {
        connection.write(&request("GET", "/health", &[], b""));
        connection.read().status
    };
    // One that says nothing, and one that says nothing more.
    let mut slow = open(&measured);
    let began = Instant::now();
    let (mut idle, before) = loop {
        let (mut idle, before) = (open(&measured), late_heads(&measured));
        // Who came before it is waited for by now: there is one worker.
        assert_eq!(asks(&mut idle), 200);
        if late_heads(&measured) == before {
            break (idle, before);
        }
        assert!(began.elapsed() < Duration::from_secs(50), "always counted");
    };
    assert!(open(&strict).is_closed());
    assert_eq!(late_heads(&measured), before);
    assert_eq!(asks(&mut slow), 200);
    assert_eq!(late_heads(&measured), before + 1);
    assert_eq!(asks(&mut idle), 200);
    assert_eq!(late_heads(&measured), before + 2);
    expect(&measured, &[("HEADER_TIMEOUT", before + 2)]);
}

/// The same; whoever is told to go on is waited for.
#[test]
fn time_for_bodies() {
    let (measured, strict) = both(
        "http: { body_read_timeout: 1s }",
        "",
        "http.body_read_timeout",
    );
    let head = b"POST /graphql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 28\r\nexpect: 100-continue\r\n\r\n";
    let begin = |graph: &Graph| {
        let mut connection = Connection::open(graph.address());
        connection.write(head);
        assert_eq!(connection.read().status, 100);
        connection.write(b"{");
        connection
    };
    let mut slow = begin(&measured);
    assert_eq!(begin(&strict).read().codes(), ["REQUEST_TIMEOUT"]);
    slow.write(br#""query":"{ __typename   }"}"#);
    assert_eq!(slow.read().status, 200);
    expect(&measured, &[("REQUEST_TIMEOUT", 1)]);
}

#[test]
fn answers_of_subgraphs() {
    let long = "x".repeat(5_000);
    let text = format!(r#"{{"data":{{"me":{{"name":"{long}"}}}}}}"#);
    let gzip = encode(Encoding::Gzip, text.as_bytes()).unwrap();
    for subgraph in [
        Toxic::answering(200, "", &text),
        Toxic::answering(200, "content-encoding: gzip\r\n", &gzip),
    ] {
        let url = subgraph.url();
        let (measured, strict) = both(
            &format!(
                "override_subgraph_url: {{ accounts: '{url}' }}\n\
                 traffic_shaping: {{ all: {{ response_max_bytes: 1000 }} }}"
            ),
            "",
            "traffic_shaping.response_max_bytes",
        );
        let refused = post(strict.address(), "{ me { name } }");
        assert_eq!(refused.codes(), ["SUBREQUEST_HTTP_ERROR"]);
        assert_eq!(post(measured.address(), "{ me { name } }").text(), text);
        expect(&measured, &[("RESPONSE_SIZE_LIMIT", 1)]);
        let (measured, strict) = both(
            &format!("override_subgraph_url: {{ accounts: '{url}' }}"),
            "max_request_memory: 1000",
            "max_request_memory",
        );
        let refused = post(strict.address(), "{ me { name } }");
        assert_eq!(refused.codes(), ["REQUEST_MEMORY_LIMIT"]);
        assert_eq!(post(measured.address(), "{ me { name } }").text(), text);
        expect(&measured, &[("REQUEST_MEMORY_LIMIT", 1)]);
    }
}

#[test]
fn the_access_log_says_who_exceeds_what() {
    let path = std::env::temp_dir().join(format!("ogive-exceeded-{}.log", std::process::id()));
    let graph = Graph::with(&format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
         fields: [operation_name, client_name, limits_exceeded] }} }}\n\
         limits: {{ max_depth: 2, max_aliases: 1, \
         warn_only: [max_depth, max_aliases] }}",
        path.display()
    ));
    let ask = |query: &str| {
        let headers = [JSON, ("apollographql-client-name", "shop")];
        let body = format!("{{\"query\":\"{query}\"}}");
        let answer = send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let few = "query Few { me { name } }";
    let many = "query Many { a: me { b: name reviews { id } } }";
    // What is known of an operation already is told of each request for it.
    [few, many, many].into_iter().for_each(ask);
    let few = "operation_name=Few client_name=shop";
    let many =
        "operation_name=Many client_name=shop limits_exceeded=MAX_DEPTH_LIMIT,MAX_ALIASES_LIMIT";
    let mut log = lines(&path, 3);
    log.sort();
    assert_eq!(log, [few, many, many]);
    let _ = std::fs::remove_file(&path);
}
