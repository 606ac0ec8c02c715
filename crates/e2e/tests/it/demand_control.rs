//! What operations may cost (`demand_control`): refused, or only counted.

use crate::{
    graph::Graph,
    http_client::{Answer, send},
    telemetry::{lines, scrape},
};

const JSON: (&str, &str) = ("content-type", "application/json");

/// What subgraphs were asked is counted here.
const ASKED: &str = "http_client_request_duration_seconds_count";

fn graph(mode: &str) -> Graph {
    Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n\
         demand_control: {{ enabled: true, mode: {mode}, expose_headers: true, \
         strategy: {{ static_estimated: {{ list_size: 4, max: 7 }} }} }}"
    ))
}

fn ask(graph: &Graph, query: &str) -> Answer {
    let body = format!("{{\"query\":\"{query}\"}}");
    send(
        graph.address(),
        "POST",
        "/graphql",
        &[JSON],
        body.as_bytes(),
    )
}

#[test]
fn an_operation_that_costs_too_much_asks_no_subgraph() {
    let graph = graph("enforce");
    // Four products, and a price each.
    let refused = ask(&graph, "{ topProducts { name price { amount } } }");
    assert_eq!(
        refused.text(),
        "{\"errors\":[{\"message\":\"the operation is estimated to cost 8, and may cost no more than 7\",\
         \"extensions\":{\"code\":\"COST_ESTIMATED_TOO_EXPENSIVE\",\"cost.estimated\":8,\"cost.max\":7}}]}"
    );
    assert!(!scrape(&graph).contains(ASKED), "no subgraph was asked");
    let answered = ask(&graph, "{ topProducts { name } }");
    assert!(
        answered.text().starts_with("{\"data\":{"),
        "{}",
        answered.text()
    );
    assert_eq!(answered.header("x-cost-estimated"), Some("4"));
    assert_eq!(answered.header("x-cost-max"), Some("7"));
    assert!(scrape(&graph).contains(ASKED));
    // Known by now, and judged as before.
    let again = ask(&graph, "{ topProducts { name price { amount } } }");
    assert_eq!(again.codes(), ["COST_ESTIMATED_TOO_EXPENSIVE"]);
}

#[test]
fn costs_that_are_only_measured_refuse_nobody() {
    let graph = graph("measure");
    let answered = ask(&graph, "{ topProducts { name price { amount } } }");
    assert!(
        answered.text().starts_with("{\"data\":{"),
        "{}",
        answered.text()
    );
    assert_eq!(answered.header("x-cost-estimated"), Some("8"));
    let counted =
        "ogive_limits_exceeded_total{graphql_error_code=\"COST_ESTIMATED_TOO_EXPENSIVE\"} 1";
    let text = scrape(&graph);
    assert!(text.contains(counted), "{text}");
}

/// With these limits of `static_estimated`.
fn limited(mode: &str, limits: &str) -> Graph {
    Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }} }}\n\
         demand_control: {{ enabled: true, mode: {mode}, expose_headers: true, \
         strategy: {{ static_estimated: {{ list_size: 4, max: 1000, {limits} }} }} }}"
    ))
}

const SHIPPED: &str = "{ topProducts { name shippingCost { amount } } }";

#[test]
fn a_subgraph_of_which_too_much_is_asked_is_not_asked_and_nulls_only_its_own_fields() {
    let limits = "subgraph: { all: { max: 4 }, subgraphs: { inventory: { max: 7 } } }";
    let graph = limited("enforce", limits);
    let answered = ask(&graph, SHIPPED);
    let text = answered.text();
    // Four products that are looked up, and what it costs to ship each.
    let message =
        "what is asked of this subgraph is estimated to cost 8, and may cost no more than 7";
    assert!(text.contains(message), "{text}");
    assert!(
        text.contains("SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE"),
        "{text}"
    );
    assert!(text.contains("\"name\":\""), "{text}");
    assert!(text.contains("\"shippingCost\":null"), "{text}");
    let asked = |graph: &Graph, subgraph: &str| {
        let series = format!("{ASKED}{{subgraph_name=\"{subgraph}\"");
        scrape(graph).contains(&series)
    };
    assert!(asked(&graph, "products") && !asked(&graph, "inventory"));
    // The others may cost no more than all.
    let graph = limited(
        "enforce",
        "subgraph: { all: { max: 3 }, subgraphs: { inventory: { max: 8 } } }",
    );
    let answered = ask(&graph, SHIPPED).text();
    assert!(
        answered.contains("cost 4, and may cost no more than 3"),
        "{answered}"
    );
}

#[test]
fn what_subgraphs_may_cost_can_be_measured() {
    let graph = limited("measure", "subgraph: { all: { max: 1, list_size: 3 } }");
    assert!(ask(&graph, SHIPPED).text().starts_with("{\"data\":{"));
    let text = scrape(&graph);
    let counted = "ogive_limits_exceeded_total{graphql_error_code=\"SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE\"} 1";
    assert!(text.contains(counted), "{text}");
}

#[test]
fn requests_to_subgraphs_and_look_ups_of_entities_are_limited_before_any_is_sent() {
    for (limits, query, code, told) in [
        (
            "max_subgraph_requests: 1",
            SHIPPED,
            "COST_TOO_MANY_SUBGRAPH_REQUESTS",
            "takes 2 requests",
        ),
        (
            "max_entities: 3",
            SHIPPED,
            "COST_TOO_MANY_ENTITIES",
            "takes 4 look-ups",
        ),
    ] {
        let graph = limited("enforce", limits);
        let refused = ask(&graph, query);
        assert_eq!(refused.codes(), [code]);
        assert!(refused.text().contains(told), "{}", refused.text());
        assert!(!scrape(&graph).contains(ASKED));
        assert!(
            ask(&graph, "{ topProducts { name } }")
                .text()
                .starts_with("{\"data\":{")
        );
    }
}

#[test]
fn what_an_answer_did_cost_is_told_and_may_be_too_much() {
    let limits = "actual_cost_mode: by_response_shape";
    let graph = limited("enforce", limits);
    let answered = ask(&graph, "{ topProducts { name price { amount } } }");
    let products = answered.text().matches("\"name\"").count() as u64;
    let prices = answered.text().matches("\"amount\"").count() as u64;
    let actual = (products + prices).to_string();
    assert_eq!(answered.header("x-cost-actual"), Some(&*actual));
    let text = scrape(&graph);
    for counted in [
        "cost_estimated_sum{cost_result=\"COST_OK\"} 8".to_owned(),
        format!("cost_actual_sum{{cost_result=\"COST_OK\"}} {actual}"),
        "cost_delta_count{cost_result=\"COST_OK\"} 1".to_owned(),
    ] {
        assert!(text.contains(&counted), "{counted}\n{text}");
    }
    // Lists are longer than was said.
    let graph = Graph::with(
        "demand_control: { enabled: true, mode: enforce, \
         strategy: { static_estimated: { list_size: 1, max: 2, actual_cost_mode: by_response_shape } } }",
    );
    let refused = ask(&graph, "{ topProducts { name price { amount } } }");
    assert_eq!(refused.codes(), ["COST_ACTUAL_TOO_EXPENSIVE"]);
}

#[test]
fn what_answers_in_parts_did_cost_is_counted_and_given_back_and_costs_are_in_the_access_log() {
    let path = std::env::temp_dir().join(format!("ogive-costs-{}.log", std::process::id()));
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }} }}, \
         access_log: {{ enabled: true, format: text, path: '{}', fields: [cost_estimated, cost_actual] }} }}\n\
         traffic_shaping: {{ router: {{ rate_limits: [{{ name: cost, capacity: 1000, interval: 1h, charge: actual_cost }}] }} }}\n\
         demand_control: {{ enabled: true, strategy: {{ static_estimated: \
         {{ list_size: 200, max: 1000, actual_cost_mode: by_response_shape }} }} }}",
        path.display()
    ));
    let ask = |query: &str, accept: &str| {
        let headers = [JSON, ("accept", accept)];
        let body = format!("{{\"query\":\"{query}\"}}");
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        )
    };
    let in_parts = "multipart/mixed;incrementalSpec=v0.2, application/json";
    let query = "{ topProducts { name ... @defer { price { amount } } } }";
    let answer = ask(query, in_parts).text();
    let items = answer.matches("\"name\"").count() + answer.matches("\"amount\"").count();
    let counted = format!("cost_actual_sum{{cost_result=\"COST_OK\"}} {items}");
    let text = scrape(&graph);
    assert!(text.contains(&counted), "{counted}\n{text}\n{answer}");
    let whole = ask("{ topProducts { name } }", "application/json");
    let left = whole
        .header("ratelimit-remaining")
        .unwrap_or_default()
        .to_owned();
    let left: u64 = left.parse().unwrap();
    // 400 were estimated for the parts, and 200 for this one.
    assert!(left > 700, "{left}");
    let products = whole.text().matches("\"name\"").count();
    let line = format!("cost_estimated=200 cost_actual={products}");
    // The answer in parts has a line at its end, too.
    let log = lines(&path, 3).join("\n");
    assert!(log.contains(&line), "{line}\n{log}");
    let _ = std::fs::remove_file(&path);
}
