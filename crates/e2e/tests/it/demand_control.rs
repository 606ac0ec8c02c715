//! What operations may cost (`demand_control`): refused, or only counted.

use crate::{
    graph::Graph,
    http_client::{Answer, send},
    telemetry::scrape,
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
