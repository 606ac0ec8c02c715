//! Which client asks for what (`usage`): a file, Hive's usage reporting, and a collector.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use ogive_testbase::subgraph::ManualSubgraph;
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest, common::v1::any_value::Value as AnyValue,
};
use serde_json::Value;

use crate::{
    graph::Graph,
    http_client::{JSON, send},
    telemetry::{Collector, attribute, text},
};

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ogive-usage-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn ask(graph: &Graph, query: &str, client: &str) {
    let body = serde_json::json!({ "query": query }).to_string();
    let headers = [
        JSON,
        ("apollographql-client-name", client),
        ("apollographql-client-version", "1.2"),
    ];
    let answer = send(
        graph.address(),
        "POST",
        "/graphql",
        &headers,
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// The lines of a file, once there are so many requests in it.
fn lines(path: &PathBuf, requests: u64) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let mut text = fs::read_to_string(path).unwrap_or_default();
        // The last line may be half written.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let rows: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let told: u64 = rows
            .iter()
            .map(|row| row["requests"].as_u64().unwrap())
            .sum();
        if told == requests {
            return rows;
        }
        assert!(
            told < requests && started.elapsed() < Duration::from_secs(60),
            "{text}"
        );
    }
}

#[test]
fn usage_is_told_by_operation_and_client_without_literals() {
    let path = file("told");
    let graph = Graph::with(&format!(
        "demand_control: {{ enabled: true }}\nusage: {{ enabled: true, interval: 10ms, file: {{ path: '{}' }} }}",
        path.display()
    ));
    for _ in 0..3 {
        ask(
            &graph,
            "query Top { topProducts(first: 2) { name } }",
            "web",
        );
    }
    ask(
        &graph,
        "query Top { # secret\n topProducts(first: 2) { name } }",
        "ios",
    );
    // Refused, so nothing is used.
    let body = b"{\"query\":\"{ nothing }\"}";
    let refused = send(graph.address(), "POST", "/graphql", &[JSON], body);
    assert_eq!(refused.codes(), ["GRAPHQL_VALIDATION_FAILED"]);
    let rows = lines(&path, 4);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(
        mode & 0o777,
        0o600,
        "documents and clients are for the operator"
    );
    let of = |client: &str| {
        let rows = rows.iter().filter(|row| row["client"]["name"] == client);
        rows.map(|row| row["requests"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((of("web"), of("ios")), (3, 1));
    for row in &rows {
        assert_eq!(row["name"], "Top");
        let text = "query Top {\n  topProducts(first: 0) {\n    name\n  }\n}";
        assert_eq!(row["operation"].as_str().unwrap().trim(), text);
        assert_eq!(row["client"]["version"], "1.2");
        assert_eq!(row["errors"], 0);
        // Ten products are assumed, which cost 1 each.
        assert_eq!(
            row["cost"].as_u64(),
            Some(10 * row["requests"].as_u64().unwrap())
        );
        assert!(row["duration_ms"]["max"].as_f64() >= row["duration_ms"]["mean"].as_f64());
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_beyond_the_limits_is_counted_together() {
    let path = file("limits");
    let mut graph = Graph::with(&format!(
        "usage: {{ enabled: true, interval: 1h, rows_max: 2, file: {{ path: '{}', max_size: 1KiB }} }}",
        path.display()
    ));
    fs::write(&path, " ".repeat(2_000)).unwrap();
    for client in ["a", "b", "c", "d"] {
        ask(&graph, "{ __typename }", client);
    }
    // What is left is told at the end.
    drop(graph.served.background.take());
    let rows = lines(&path, 4);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["requests"], 2);
    assert!(rows[2].get("client").is_none());
    let before = PathBuf::from(format!("{}.1", path.display()));
    assert_eq!(fs::metadata(&before).unwrap().len(), 2_000);
    fs::remove_file(before).unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn a_collector_is_told_usage_as_log_records() {
    for (protocol, is_grpc) in [("http", false), ("grpc", true)] {
        let collector = Collector::start(is_grpc);
        let graph = Graph::with(&format!(
            "usage: {{ enabled: true, interval: 20ms, rows_max: 1, otlp: {{ endpoint: 'http://{}', protocol: {protocol}, headers: {{ x-key: k1 }} }} }}",
            collector.address
        ));
        ask(
            &graph,
            "query Top { topProducts(first: 2) { name } }",
            "web",
        );
        let (headers, message) = collector.next(|_: &ExportLogsServiceRequest| true);
        assert_eq!(headers["x-key"], "k1");
        let record = &message.resource_logs[0].scope_logs[0].log_records[0];
        assert_eq!(record.event_name, "ogive.usage");
        let attributes = &record.attributes;
        assert_eq!(text(attributes, "graphql.operation.name"), "Top");
        let document = text(attributes, "graphql.document");
        assert!(document.contains("topProducts(first: 0)"), "{document}");
        assert_eq!(text(attributes, "client.name"), "web");
        assert_eq!(text(attributes, "client.version"), "1.2");
        let number = |key| match attribute(attributes, key) {
            Some(AnyValue::IntValue(n)) => *n,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(
            (number("ogive.usage.requests"), number("ogive.usage.errors")),
            (1, 0)
        );
        match attribute(attributes, "ogive.usage.fields") {
            Some(AnyValue::ArrayValue(fields)) => assert_eq!(fields.values.len(), 3),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn hive_is_told_of_each_execution_with_its_fields() {
    let hive = ManualSubgraph::start();
    let mut graph = Graph::with(&format!(
        "usage: {{ enabled: true, interval: 1h, hive: {{ endpoint: '{}usage', token: secret, executions_max: 2 }} }}",
        hive.url()
    ));
    for _ in 0..4 {
        ask(
            &graph,
            "query Top { topProducts(first: 2) { name } }",
            "web",
        );
    }
    let background = graph.served.background.take();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(background));
        let mut told = hive.next();
        let (head, body) = told.request.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.contains("x-usage-api-version: 2"), "{head}");
        assert!(head.contains("authorization: bearer secret"), "{head}");
        let report: Value = serde_json::from_str(body).unwrap();
        assert_eq!(report["size"], 1);
        let executions = report["operations"].as_array().unwrap();
        assert_eq!(executions.len(), 2);
        for execution in executions {
            let key = execution["operationMapKey"].as_str().unwrap();
            let operation = &report["map"][key];
            assert_eq!(operation["operationName"], "Top");
            let fields = [
                "Product.name",
                "Query.topProducts",
                "Query.topProducts.first",
            ];
            assert_eq!(operation["fields"], serde_json::json!(fields));
            assert_eq!(execution["execution"]["ok"], true);
            assert_eq!(execution["execution"]["errorsTotal"], 0);
            assert!(execution["execution"]["duration"].as_u64().unwrap() > 0);
            assert_eq!(execution["metadata"]["client"]["name"], "web");
            assert_eq!(execution["metadata"]["client"]["version"], "1.2");
        }
        told.answer(200, "", "{}");
    });
}
