//! Components that ask other hosts, played on real sockets: what they are told, and what becomes of a request that waits for
//! one.

use ogive_testbase::subgraph::{ManualSubgraph, Reply, StubSubgraph};

use super::guest::Guest;
use crate::{
    coprocessor::ME,
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with, send},
};

/// Asks for the URL of the header `x-url`, if there is one.
const ASK: &str = "(call $header @\"x-url\" (i32.const 32)) \
    (if (i32.load8_u (i32.const 32)) (then (call $ask (call $some (i32.const 32))))) (i32.const 0)";

/// A graph with that component, which may ask these hosts.
fn asking(hook: &str, hosts: &[String], limits: &str) -> (Graph, Guest) {
    let guest = Guest::new(&[(hook, ASK)]);
    let hosts: Vec<String> = hosts.iter().map(|host| format!("'{host}'")).collect();
    let options = format!(
        "permissions: {{ read_headers: [x-url], hosts: [{}] }}, limits: {{ {limits} }}",
        hosts.join(", ")
    );
    let headers = "headers: { all: { request: [{ propagate: { named: x-url } }] } }\n";
    let shown = "include_subgraph_errors: { all: true }\n";
    let yaml = format!("{}{headers}{shown}", guest.yaml(&options));
    (Graph::with(&yaml), guest)
}

fn ask(graph: &Graph, url: &str) -> Answer {
    post_with(graph.address(), ME, &[("x-url", url)])
}

fn whole(head: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Whole(format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}").into())
}

/// What a host says, good and bad.
fn host() -> StubSubgraph {
    StubSubgraph::start(|_, text| {
        let path = text.split(' ').nth(1).unwrap_or_default();
        match path {
            "/echo" => whole(
                "200 OK",
                text.lines().collect::<Vec<_>>().join("|").as_str(),
            ),
            "/status" => whole("404 Not Found", "nobody"),
            "/redirect" => whole("302 Found\r\nlocation: http://127.0.0.1:1/", "elsewhere"),
            "/announced" => {
                Reply::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\na".to_vec())
            }
            "/chunked" => {
                let chunk = format!("100000\r\n{}\r\n", "a".repeat(1 << 20));
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                Reply::Hang(format!("{head}{chunk}{chunk}").into())
            }
            "/headers" => {
                let line = format!("x-a: {}\r\n", "a".repeat(10_000));
                Reply::Hang(format!("HTTP/1.1 200 OK\r\n{}", line.repeat(20)).into())
            }
            "/smuggled" => Reply::Last(
                b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_vec(),
            ),
            "/nothing" => Reply::Last(Vec::new()),
            "/drips" => Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_vec()),
            _ => Reply::Hang(Vec::new()),
        }
    })
}

#[test]
fn a_component_asks_permitted_hosts_and_is_told_what_comes_of_it() {
    let (host, other) = (host(), host());
    let place = format!("http://{}", host.address);
    let (graph, _guest) = asking(
        "receive",
        &[place.clone(), "http://127.0.0.1:1".into()],
        "timeout: 60s",
    );
    for (path, status, says) in [
        ("/echo", 200, "GET /echo HTTP/1.1|host: 127.0.0.1:"),
        ("/status", 404, "nobody"),
        ("/redirect", 302, "elsewhere"),
        ("/announced", 502, "the answer is larger than 1048576 bytes"),
        ("/chunked", 502, "the answer is larger than 1048576 bytes"),
        ("/headers", 502, "head"),
        ("/smuggled", 502, ""),
        ("/nothing", 502, "the subgraph closed the connection"),
    ] {
        let answer = ask(&graph, &format!("{place}{path}"));
        assert_eq!(answer.codes(), ["PLUGIN_BREAK"], "{path}");
        let told = answer.json()["errors"][0]["message"].to_string();
        assert_eq!(answer.status, status, "{path}: {told}");
        assert!(told.contains(says), "{path}: {told}");
    }
    // Nobody is there.
    assert_eq!(ask(&graph, "http://127.0.0.1:1/").status, 502);
    for forbidden in [
        format!("http://{}/echo", other.address),
        format!("https://{}/echo", host.address),
        format!("http://localhost:{}/echo", host.address.port()),
        format!("http://{}@{}/echo", other.address.ip(), host.address),
        "http://169.254.169.254/".to_owned(),
    ] {
        assert_eq!(ask(&graph, &forbidden).status, 502, "{forbidden}");
    }
    assert_eq!(other.asked(), 0);
    assert_eq!(host.asked(), 8);
    // Who asks nobody does as ever.
    let answer = post_with(graph.address(), ME, &[]);
    assert_eq!((answer.status, answer.codes()), (200, vec![]));
}

#[test]
fn a_host_that_is_slow_ends_the_call_when_its_time_is_over() {
    let host = host();
    let place = format!("http://{}", host.address);
    let mut found = Vec::new();
    for (hook, expected) in [
        ("receive", "500 PLUGIN_FAILED"),
        ("subgraph-request", "200 PLUGIN_FAILED"),
    ] {
        let (graph, _guest) = asking(hook, std::slice::from_ref(&place), "timeout: 200ms");
        for path in ["/hangs", "/drips"] {
            let answer = ask(&graph, &format!("{place}{path}"));
            found.push((format!("{path} at {hook}"), seen(&answer), expected));
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, seen, expected)| (name.as_str(), seen.clone(), *expected))
        .collect();
    compare(&found);
}

#[test]
fn who_waits_for_a_host_keeps_no_worker_and_no_more_wait_than_there_are_instances() {
    let host = ManualSubgraph::start();
    let place = format!("http://{}", host.address);
    let limits = "timeout: 100s, instances: 2";
    let (graph, _guest) = asking("receive", std::slice::from_ref(&place), limits);
    std::thread::scope(|scope| {
        let waits = || scope.spawn(|| ask(&graph, &place));
        let waiting = [waits(), waits()];
        let asked = [host.next(), host.next()];
        // As many as may wait do, and another one is told so at once.
        assert_eq!(ask(&graph, &place).codes(), ["PLUGIN_FAILED"]);
        // Every worker serves, whoever waits.
        for _ in 0..8 {
            assert_eq!(
                send(graph.address(), "GET", "/nowhere", &[], b"").status,
                404
            );
        }
        for mut request in asked {
            request.answer(200, "", "at last");
        }
        for waiting in waiting {
            let answer = waiting.join().unwrap();
            assert!(answer.text().contains("at last"), "{}", answer.text());
        }
    });
}

/// The same where it is asked who asks.
#[test]
fn who_waits_for_a_host_that_knows_who_asks_keeps_no_worker() {
    let host = ManualSubgraph::start();
    let place = format!("http://{}", host.address);
    let knows = "(call $header @\"x-url\" (i32.const 32)) \
        (if (i32.load8_u (i32.const 32)) (then (call $asked (call $some (i32.const 32))))) \
        (call $claims @\"{'sub':'ida'}\" )";
    let guest = Guest::new(&[("authenticate", knows)]);
    let graph = Graph::with(&format!(
        "{}authentication: {{ router: {{ components: [guest] }} }}\nauthorization: {{ require_authentication: true }}\n",
        guest.yaml(&format!(
            "permissions: {{ read_headers: [x-url], hosts: ['{place}'] }}, limits: {{ timeout: 100s, instances: 2 }}"
        ))
    ));
    std::thread::scope(|scope| {
        let waits = || scope.spawn(|| ask(&graph, &place));
        let waiting = [waits(), waits()];
        let asked = [host.next(), host.next()];
        let refused = ask(&graph, &place);
        assert_eq!(seen(&refused), "503 AUTHENTICATION_UNAVAILABLE");
        // Every worker serves, whoever waits.
        for _ in 0..8 {
            let answer = send(graph.address(), "GET", "/nowhere", &[], b"");
            assert_eq!(answer.status, 404);
        }
        for mut request in asked {
            request.answer(200, "", "somebody");
        }
        for waiting in waiting {
            assert_eq!(seen(&waiting.join().unwrap()), "200");
        }
    });
}
