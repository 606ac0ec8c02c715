//! Retries, circuit breaker, load shedding and rates, with every attempt counted where it arrives.

use ogive_testbase::subgraph::{self, ManualSubgraph, Reply};
use serde_json::json;

use crate::{
    graph::Graph,
    http_client::{Connection, post, post_with, request},
};

const GOOD: &str = r#"{"data":{"me":{"name":"Zoe"}}}"#;

/// A subgraph that follows a script, one step per request and connection; the last step repeats.
pub(crate) struct Scripted(subgraph::StubSubgraph);

#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Status, further header lines, body.
    Answer(u16, &'static str, &'static str),
    /// The connection is closed without an answer.
    Close,
    /// The connection is closed in the middle of an answer.
    Cut,
}
use Step::{Answer, Close, Cut};

const OK: Step = Answer(200, "", GOOD);
const BUSY: Step = Answer(503, "", "busy");

impl Step {
    fn reply(self) -> Reply {
        Reply::Last(match self {
            Close => Vec::new(),
            Cut => {
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{"
                    .to_vec()
            }
            Answer(status, headers, body) => {
                let headers = format!("connection: close\r\n{headers}");
                subgraph::answer(status, &headers, body.as_bytes())
            }
        })
    }
}

impl Scripted {
    pub(crate) fn start(script: &[Step]) -> Scripted {
        let replies = script.iter().map(|step| step.reply()).collect();
        Scripted(subgraph::StubSubgraph::in_turn(replies))
    }
    fn asked(&self) -> usize {
        self.0.asked()
    }
    pub(crate) fn graph(&self, yaml: &str) -> Graph {
        self.changed(yaml, &[])
    }
    /// With another supergraph, see [`Graph::changed`].
    pub(crate) fn changed(&self, yaml: &str, changes: &[(&str, &str)]) -> Graph {
        let url = self.0.url();
        let yaml =
            format!("override_subgraph_url: {{ accounts: '{url}', reviews: '{url}' }}\n{yaml}");
        Graph::changed(&yaml, changes)
    }
}

const QUERY: &str = "{ me { name } }";
const RETRY: &str = "traffic_shaping: { all: { retry: { attempts: 2, backoff: 1ms } } }";

#[test]
fn failed_queries_are_sent_again() {
    for (name, script, attempts) in [
        ("well", &[OK][..], 1),
        ("503", &[BUSY, OK], 2),
        (
            "502 and 504",
            &[Answer(502, "", ""), Answer(504, "", ""), OK],
            3,
        ),
        (
            "429 at once",
            &[Answer(429, "retry-after: 0\r\n", ""), OK],
            2,
        ),
        ("closed", &[Close, Close, OK], 3),
        ("cut", &[Cut, OK], 2),
    ] {
        let subgraph = Scripted::start(script);
        let answer = post(subgraph.graph(RETRY).address(), QUERY);
        assert_eq!(answer.text(), GOOD, "{name}");
        assert_eq!(subgraph.asked(), attempts, "{name}");
    }
}

#[test]
fn some_failures_are_final() {
    for (name, script, attempts) in [
        ("busy for ever", &[BUSY][..], 3),
        ("500", &[Answer(500, "", "")], 1),
        ("400", &[Answer(400, "", "")], 1),
        ("no JSON", &[Answer(200, "", "<html>")], 1),
        (
            "errors",
            &[Answer(200, "", r#"{"errors":[{"message":"no"}]}"#)],
            1,
        ),
        (
            "later than the deadline",
            &[Answer(503, "retry-after: 3600\r\n", ""), OK],
            1,
        ),
    ] {
        let subgraph = Scripted::start(script);
        let answer = post(subgraph.graph(RETRY).address(), QUERY);
        assert_eq!(answer.json()["data"], json!({ "me": null }), "{name}");
        assert!(!answer.codes().is_empty(), "{name}");
        assert_eq!(subgraph.asked(), attempts, "{name}");
    }
    let subgraph = Scripted::start(&[BUSY]);
    post(subgraph.graph("").address(), QUERY);
    assert_eq!(subgraph.asked(), 1, "never, unless asked for");
}

#[test]
fn a_mutation_is_never_sent_twice() {
    let mutation =
        r#"mutation { addReview(review: {product: "HP-204", stars: 5, title: "New"}) { stars } }"#;
    for (name, step) in [("busy", BUSY), ("closed", Close), ("cut", Cut)] {
        let subgraph = Scripted::start(&[step]);
        let answer = post(subgraph.graph(RETRY).address(), mutation);
        assert!(!answer.codes().is_empty(), "{name}");
        assert_eq!(subgraph.asked(), 1, "{name}");
    }
}

#[test]
fn retries_stay_within_their_budget() {
    let subgraph = Scripted::start(&[BUSY]);
    let graph = subgraph.graph(
        "traffic_shaping: { all: { retry: { attempts: 1, backoff: 1ms, budget_percent: 10, min_per_sec: 0 } } }",
    );
    for _ in 0..40 {
        post(graph.address(), QUERY);
    }
    assert_eq!(subgraph.asked(), 44, "a tenth of forty");
}

#[test]
fn a_subgraph_that_keeps_failing_is_left_alone_and_tried_again() {
    let mut script = vec![BUSY; 4];
    script.push(OK);
    let subgraph = Scripted::start(&script);
    let graph = subgraph.graph(
        "traffic_shaping: { all: { circuit_breaker: { volume_threshold: 4, window: 1h, reset_timeout: 2s } } }",
    );
    // Not later than the breaker opens.
    let began = std::time::Instant::now();
    for _ in 0..4 {
        assert_eq!(
            post(graph.address(), QUERY).codes(),
            ["SUBREQUEST_HTTP_ERROR"]
        );
    }
    let answer = post(
        graph.address(),
        "{ me { name } topProducts(first: 1) { name } }",
    );
    let mut well = usize::from(answer.codes().is_empty());
    if began.elapsed().as_millis() < 1_900 {
        assert_eq!(answer.codes(), ["CIRCUIT_BREAKER_OPEN"]);
        assert_eq!(
            answer.json()["data"].to_string(),
            r#"{"me":null,"topProducts":[{"name":"Ridge 30 backpack"}]}"#,
            "others are asked as ever"
        );
        assert_eq!(subgraph.asked(), 4);
    }
    // Waits for the time to come; asking meanwhile changes nothing.
    while post(graph.address(), QUERY).text() != GOOD {}
    well += 1;
    assert_eq!(subgraph.asked(), 4 + well);
}

#[test]
fn more_requests_at_a_time_than_allowed_are_shed() {
    // The test plays the subgraph, so it decides how long the first request takes.
    let accounts = ManualSubgraph::start();
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\ntraffic_shaping: {{ router: {{ concurrency_limit: 1 }} }}",
        accounts.url()
    ));
    let body = json!({ "query": QUERY }).to_string();
    let headers = [("content-type", "application/json")];
    let mut first = Connection::open(graph.address());
    first.write(&request("POST", "/graphql", &headers, body.as_bytes()));
    let mut asked = accounts.next();
    let second = post(graph.address(), "{ __typename }");
    assert_eq!(
        (second.status, second.codes()),
        (503, vec!["REQUEST_CONCURRENCY_LIMITED".into()])
    );
    assert_eq!(second.header("retry-after"), Some("1"));
    asked.answer(200, "connection: close\r\n", GOOD);
    assert_eq!(first.read().text(), GOOD);
    assert_eq!(
        post(graph.address(), "{ __typename }").status,
        200,
        "there is room again"
    );
}

#[test]
fn a_client_that_left_makes_room() {
    let accounts = ManualSubgraph::start();
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\ntraffic_shaping: {{ router: {{ concurrency_limit: 1 }} }}",
        accounts.url()
    ));
    let body = json!({ "query": QUERY }).to_string();
    let mut first = Connection::open(graph.address());
    first.write(&request(
        "POST",
        "/graphql",
        &[("content-type", "application/json")],
        body.as_bytes(),
    ));
    let mut asked = accounts.next();
    drop(first);
    // The gateway gives the subgraph request up as well.
    assert!(asked.is_left());
    assert_eq!(post(graph.address(), "{ __typename }").status, 200);
}

#[test]
fn rates_are_kept_per_client_name() {
    let graph = Graph::with(
        "traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, key: client_name } } }",
    );
    for (header, name, status) in [
        ("apollographql-client-name", "shop", 200),
        ("graphql-client-name", "shop", 429),
        ("graphql-client-name", "phone", 200),
        // Those that say nothing are told apart by their address.
        ("graphql-client-name", " ", 200),
        ("x-other", "shop", 429),
    ] {
        let answer = post_with(graph.address(), "{ __typename }", &[(header, name)]);
        assert_eq!(answer.status, status, "{header}: {name}");
    }
}

#[test]
fn rates_are_kept_per_operation() {
    let graph = Graph::with(
        "traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, key: operation } } }",
    );
    let first = post(graph.address(), "query A { __typename }");
    assert_eq!(
        (first.status, first.header("ratelimit-remaining")),
        (200, Some("0"))
    );
    let again = post(graph.address(), "query A { me { name } }");
    assert_eq!(
        (again.status, again.codes()),
        (429, vec!["REQUEST_RATE_LIMITED".into()])
    );
    assert!(again.header("retry-after").is_some());
    for (query, status) in [
        ("query B { __typename }", 200),
        ("{ __typename }", 200),
        ("{ me { name } }", 429),
    ] {
        assert_eq!(post(graph.address(), query).status, status, "{query}");
    }
}

#[test]
fn rates_are_those_of_clients_behind_proxies() {
    let rate =
        "traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, key: ip } } }";
    let graph = Graph::with(&format!(
        "http: {{ trusted_proxies: [127.0.0.0/8, 10.1.1.1] }}\n{rate}"
    ));
    let ask = |graph: &Graph, name, value| {
        post_with(graph.address(), "{ __typename }", &[(name, value)]).status
    };
    let x = "x-forwarded-for";
    assert_eq!(ask(&graph, x, "1.2.3.4"), 200);
    assert_eq!(ask(&graph, x, "1.2.3.5"), 200, "somebody else");
    assert_eq!(
        ask(&graph, x, "9.9.9.9, 1.2.3.4, 10.1.1.1"),
        429,
        "what it made up counts for nothing"
    );
    assert_eq!(ask(&graph, x, "fd00::1"), 200);
    assert_eq!(ask(&graph, x, "fd00::2"), 429, "one network");
    assert_eq!(
        ask(&graph, "forwarded", "for=1.2.3.6"),
        200,
        "the proxy itself"
    );
    assert_eq!(
        ask(&graph, "forwarded", "for=1.2.3.7"),
        429,
        "the header that is not asked for"
    );

    let graph = Graph::with(&format!(
        "http: {{ trusted_proxies: [127.0.0.1], client_address_header: forwarded }}\n{rate}"
    ));
    let name = "forwarded";
    assert_eq!(ask(&graph, name, "for=1.2.3.4;proto=https"), 200);
    assert_eq!(ask(&graph, name, "for=\"1.2.3.5:80\""), 200);
    assert_eq!(ask(&graph, name, "for=9.9.9.9, for=1.2.3.4"), 429);

    let graph = Graph::with(&format!("http: {{ trusted_proxies: [10.0.0.1] }}\n{rate}"));
    assert_eq!(ask(&graph, x, "1.2.3.4"), 200);
    assert_eq!(ask(&graph, x, "1.2.3.5"), 429, "not a proxy");
}

#[test]
fn rates_are_kept_per_client() {
    let graph = Graph::with(
        "traffic_shaping: { router: { rate_limit: { capacity: 3, interval: 1h, key: header, header: x-client } } }",
    );
    let ask = |client| post_with(graph.address(), "{ __typename }", &[("x-client", client)]);
    for remaining in ["2", "1", "0"] {
        let answer = ask("a");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-limit"), Some("3"));
        assert_eq!(answer.header("ratelimit-remaining"), Some(remaining));
    }
    let fourth = ask("a");
    assert_eq!(
        (fourth.status, fourth.codes()),
        (429, vec!["REQUEST_RATE_LIMITED".into()])
    );
    assert_eq!(fourth.header("ratelimit-remaining"), Some("0"));
    let seconds: u32 = fourth.header("retry-after").unwrap().parse().unwrap();
    assert!(
        (900..=1_200).contains(&seconds),
        "a third of an hour: {seconds}"
    );
    assert_eq!(ask("b").status, 200, "another client has a rate of its own");

    for (yaml, last) in [
        ("capacity: 1, interval: 1h, key: ip", 429),
        ("capacity: 1, interval: 1h", 429),
        ("capacity: 1, interval: 1h, measure_only: true", 200),
        ("capacity: 2, interval: 1h", 200),
    ] {
        let graph = Graph::with(&format!(
            "traffic_shaping: {{ router: {{ rate_limit: {{ {yaml} }} }} }}"
        ));
        assert_eq!(
            post(graph.address(), "{ __typename }").status,
            200,
            "{yaml}"
        );
        assert_eq!(
            post(graph.address(), "{ __typename }").status,
            last,
            "{yaml}"
        );
    }
}
