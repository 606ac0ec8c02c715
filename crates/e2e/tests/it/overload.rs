//! Overload: how many requests run at a time is limited, and those of low classes are refused first.

use ogive_testbase::subgraph::ManualSubgraph;
use serde_json::json;

use crate::{
    graph::Graph,
    http_client::{Answer, Connection, JSON, request, send},
};

const QUERY: &str = "{ me { name } }";

fn is_shed(answer: &Answer) -> bool {
    answer.status == 503
        && answer.codes() == ["REQUEST_OVERLOADED"]
        && answer.header("retry-after") == Some("3")
}

#[test]
fn under_overload_low_classes_are_refused_before_high_ones() {
    // The test plays the subgraph, so it decides how long requests take.
    let accounts = ManualSubgraph::start();
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ accounts: '{}' }}\n\
         traffic_shaping: {{ all: {{ timeout: 10m }}, router: {{ timeout: 10m, \
         overload: {{ enabled: true, concurrency_min: 10, concurrency_max: 10, retry_after: 3s, classes: [\
         {{ name: checkout, when: {{ eq: [{{ request_header: x-class }}, checkout] }} }}, \
         {{ name: shop, when: {{ eq: [{{ request_header: x-class }}, shop] }} }}] }} }} }}",
        accounts.url()
    ));
    let ask = |class| {
        let headers = [JSON, ("x-class", class)];
        let body = b"{\"query\":\"{ __typename }\"}";
        send(graph.address(), "POST", "/graphql", &headers, body)
    };
    let body = json!({ "query": QUERY }).to_string();
    let mut running = Vec::new();
    let mut asked = Vec::new();
    let mut run = |count, class| {
        for _ in 0..count {
            // Different ones: equal questions under way are asked once.
            let headers = [JSON, ("x-class", class)];
            let mut client = Connection::open(graph.address());
            let body = body.replace("name", &format!("n{}: name", running.len()));
            client.write(&request("POST", "/graphql", &headers, body.as_bytes()));
            asked.push(accounts.next());
            running.push(client);
        }
    };
    // Of the ten places two are kept for each of the classes above.
    let classes = ["checkout", "shop", "other"];
    let shed = || classes.map(|class| is_shed(&ask(class)));
    run(5, "other");
    assert_eq!(shed(), [false, false, false]);
    run(1, "other");
    assert_eq!(shed(), [false, false, true]);
    run(2, "shop");
    assert_eq!(shed(), [false, true, true]);
    run(2, "checkout");
    assert_eq!(shed(), [true, true, true]);
    // Health is not shed.
    assert_eq!(
        send(graph.address(), "GET", "/health", &[], b"").status,
        200
    );
    for (number, (asked, client)) in asked.iter_mut().zip(&mut running).enumerate() {
        let data = format!("{{\"data\":{{\"me\":{{\"n{number}\":\"Ada\"}}}}}}");
        asked.answer(200, "connection: close\r\n", &data);
        assert_eq!(client.read().text(), data);
    }
    assert_eq!(shed(), [false, false, false]);
}

/// Found by a reviewer: as many as there are places, each of which sends its body slowly, kept everybody else out.
#[test]
fn clients_that_send_slowly_take_no_place() {
    let graph = Graph::with(
        "traffic_shaping: { router: { overload: { enabled: true, concurrency_min: 2, concurrency_max: 2 } } }",
    );
    let body = json!({ "query": QUERY }).to_string();
    let whole = request(
        "POST",
        "/graphql",
        &[JSON, ("expect", "100-continue")],
        body.as_bytes(),
    );
    let (head, rest) = whole.split_at(whole.len() - body.len());
    let begin = || {
        let mut client = Connection::open(graph.address());
        client.write(head);
        // The body is waited for.
        assert_eq!(client.read().status, 100);
        client
    };
    let slow: Vec<Connection> = (0..4).map(|_| begin()).collect();
    let other = send(
        graph.address(),
        "POST",
        "/graphql",
        &[JSON],
        body.as_bytes(),
    );
    assert_eq!(other.status, 200, "{}", other.text());
    for mut client in slow {
        client.write(rest);
        assert_eq!(client.read().status, 200);
    }
}
