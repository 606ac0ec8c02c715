//! Metrics, traces, access log, ids: what an operator gets to see of requests.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::mpsc::{Receiver, Sender, channel},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::metric::Data,
    trace::v1::Span,
};
use prost::Message;

use crate::{
    graph::{Graph, Served},
    http_client::{Answer, Connection, post, post_with, send},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

const QUERY: &str = "query Shop { me { name } topProducts(first: 1) { name inStock } }";

/// A collector: keeps what it is sent.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    received: Receiver<(String, HeaderMap, Bytes)>,
}

impl Collector {
    pub(crate) fn start(grpc: bool) -> Collector {
        let (keep, received) = channel();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(collect(TokioIo::new(stream), grpc, keep.clone()));
                }
            });
        });
        Collector { address, received }
    }
    /// The next message that is decoded and wanted.
    pub(crate) fn next<M: Message + Default>(&self, wanted: impl Fn(&M) -> bool) -> (HeaderMap, M) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (_, headers, body) = self.received.recv_timeout(left).unwrap();
            let message = M::decode(body).unwrap();
            if wanted(&message) {
                return (headers, message);
            }
        }
    }
}

type Kept = Sender<(String, HeaderMap, Bytes)>;

async fn collect(stream: TokioIo<tokio::net::TcpStream>, grpc: bool, keep: Kept) {
    let service = service_fn(move |request: Request<Incoming>| {
        let keep = keep.clone();
        async move {
            let (parts, body) = request.into_parts();
            let mut body = body.collect().await.unwrap().to_bytes();
            let mut trailers = HeaderMap::new();
            if grpc {
                assert_eq!(body[0], 0, "not compressed");
                let length = u32::from_be_bytes(body[1..5].try_into().unwrap()) as usize;
                body = body.split_off(5);
                assert_eq!(body.len(), length);
                trailers.insert("grpc-status", "0".parse().unwrap());
            }
            let _ = keep.send((parts.uri.path().to_owned(), parts.headers, body));
            let trailers = grpc.then_some(trailers);
            Ok::<_, std::io::Error>(Response::new(Trailers(trailers)))
        }
    });
    // The other side may go away at any time.
    let _ = if grpc {
        http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await
    } else {
        http1::Builder::new()
            .serve_connection(stream, service)
            .await
    };
}

/// A body of nothing but trailers.
struct Trailers(Option<HeaderMap>);

impl Body for Trailers {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(self.0.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

pub(crate) fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|a| a.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

pub(crate) fn text(attributes: &[KeyValue], key: &str) -> String {
    match attribute(attributes, key) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{key}: {other:?}"),
    }
}

pub(crate) fn spans(message: &ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = message.resource_spans.iter().flat_map(|r| &r.scope_spans);
    scopes.flat_map(|s| s.spans.clone()).collect()
}

fn tracing(collector: &Collector, protocol: &str, more: &str) -> Graph {
    Graph::with(&format!(
        r#"
telemetry:
  service_name: shop
  resource: {{ deployment.environment.name: test }}
  exporters:
    tracing:
      {more}
      otlp:
        enabled: true
        protocol: {protocol}
        endpoint: 'http://{}'
        headers: {{ x-key: k1 }}
        batch_processor: {{ scheduled_delay: 10ms }}
"#,
        collector.address
    ))
}

pub(crate) fn record(graph: &Graph) {
    for name in ["accounts", "inventory", "products", "reviews"] {
        graph
            .service
            .configure(name, |settings| settings.record = true);
    }
}

/// The trace of a client's request: its own span, the five stops, and a span per subgraph request whose id is what the
/// subgraph was told.
fn a_trace_is_exported(protocol: &str) {
    let collector = Collector::start(protocol == "grpc");
    let graph = tracing(
        &collector,
        protocol,
        "propagation: { b3: true, baggage: true }",
    );
    record(&graph);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = post_with(
        graph.address(),
        QUERY,
        &[
            ("traceparent", parent),
            ("tracestate", "a=b"),
            ("baggage", "c=d"),
        ],
    );
    assert_eq!(answer.status, 200);
    let (headers, message) = collector.next(|m: &ExportTraceServiceRequest| !spans(m).is_empty());
    assert_eq!(headers["x-key"], "k1");
    let resource = message.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "shop");
    assert_eq!(
        text(&resource.attributes, "deployment.environment.name"),
        "test"
    );
    let spans = spans(&message);
    let named = |name: &str| {
        let found = spans.iter().find(|s| s.name == name);
        found.unwrap_or_else(|| panic!("no span {name}"))
    };
    let root = named("POST /graphql");
    assert_eq!(
        root.trace_id,
        0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes()
    );
    assert_eq!(root.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(root.trace_state, "a=b");
    assert_eq!(text(&root.attributes, "graphql.operation.name"), "Shop");
    assert_eq!(text(&root.attributes, "graphql.operation.type"), "query");
    assert_eq!(
        attribute(&root.attributes, "http.response.status_code"),
        Some(&Value::IntValue(200))
    );
    for stop in ["receive", "prepare", "plan", "execute", "respond"] {
        let span = named(&format!("request.{stop}"));
        assert_eq!(span.parent_span_id, root.span_id, "{stop}");
        assert!(span.start_time_unix_nano >= root.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= root.end_time_unix_nano);
    }
    let execute = named("request.execute");
    let calls: Vec<&Span> = spans.iter().filter(|s| s.kind == 3).collect();
    let recorded = graph.service.recorded();
    assert_eq!(calls.len(), recorded.len());
    for call in calls {
        assert_eq!(call.parent_span_id, execute.span_id);
        let id = u64::from_be_bytes(call.span_id.as_slice().try_into().unwrap());
        let subgraph = text(&call.attributes, "subgraph.name");
        let told = recorded.iter().find(|r| {
            let told = r.headers.iter().find(|(n, _)| n == "traceparent");
            told.is_some_and(|(_, v)| v.contains(&format!("-{id:016x}-01")))
        });
        let told = told.unwrap_or_else(|| panic!("{subgraph} was not told of its span"));
        assert_eq!(&*told.subgraph, subgraph);
        let get = |name: &str| {
            told.headers
                .iter()
                .find(|(n, _)| n == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(get("tracestate"), "a=b");
        assert_eq!(get("baggage"), "c=d");
        assert_eq!(
            get("b3"),
            format!("4bf92f3577b34da6a3ce929d0e0e4736-{id:016x}-1")
        );
    }
}

#[test]
fn a_trace_is_exported_over_http() {
    a_trace_is_exported("http");
}

#[test]
fn a_trace_is_exported_over_grpc() {
    a_trace_is_exported("grpc");
}

#[test]
fn the_client_or_the_sampler_decides_what_is_traced() {
    let collector = Collector::start(false);
    let graph = tracing(&collector, "http", "common: { sampler: always_off }");
    record(&graph);
    post(graph.address(), "{ me { name } }");
    let sampled = "00-00000000000000000000000000000077-0000000000000001-01";
    post_with(
        graph.address(),
        "query Told { me { name } }",
        &[("traceparent", sampled)],
    );
    let (_, message) = collector.next(|m: &ExportTraceServiceRequest| !spans(m).is_empty());
    for span in spans(&message) {
        assert_eq!(
            span.trace_id,
            0x77_u128.to_be_bytes(),
            "only the client's trace"
        );
    }
    // The trace that is not recorded is passed on as such.
    let told = &graph.service.recorded()[0].headers;
    let (_, told) = told.iter().find(|(n, _)| n == "traceparent").unwrap();
    assert!(told.ends_with("-00"), "{told}");
    // With `parent_based_sampler: false` the client has no say.
    let graph = tracing(
        &collector,
        "http",
        "common: { sampler: 0, parent_based_sampler: false }",
    );
    record(&graph);
    post_with(
        graph.address(),
        "{ me { name } }",
        &[("traceparent", sampled)],
    );
    let told = &graph.service.recorded()[0].headers;
    let (_, told) = told.iter().find(|(n, _)| n == "traceparent").unwrap();
    assert!(told.ends_with("-00"), "{told}");
}

#[test]
fn metrics_are_exported() {
    let collector = Collector::start(false);
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ common: {{ buckets: [0.25, 3600] }}, \
         otlp: {{ enabled: true, interval: 20ms, endpoint: 'http://{}/v1/metrics' }} }} }} }}",
        collector.address
    ));
    post(graph.address(), QUERY);
    let find = |m: &ExportMetricsServiceRequest, name: &str| {
        let all = m.resource_metrics[0].scope_metrics[0].metrics.iter();
        let mut named = all.filter(|metric| metric.name == name);
        named.next().cloned()
    };
    let points = |m: &ExportMetricsServiceRequest, name: &str| match find(m, name)?.data? {
        Data::Histogram(histogram) => Some(histogram.data_points),
        _ => None,
    };
    let (_, message) = collector.next(|m: &ExportMetricsServiceRequest| {
        points(m, "http.server.request.duration").is_some_and(|p| !p.is_empty())
    });
    let requests = points(&message, "http.server.request.duration").unwrap();
    assert_eq!(requests[0].count, 1);
    assert_eq!(requests[0].explicit_bounds, [0.25, 3600.0]);
    assert_eq!(requests[0].bucket_counts.len(), 3);
    assert_eq!(text(&requests[0].attributes, "http.request.method"), "POST");
    let operations = points(&message, "graphql.operation.duration").unwrap();
    assert_eq!(
        text(&operations[0].attributes, "graphql.operation.name"),
        "Shop"
    );
    let stops = points(&message, "ogive.stop.duration").unwrap();
    assert_eq!(stops.iter().map(|p| p.count).sum::<u64>(), 5);
    let calls = points(&message, "http.client.request.duration").unwrap();
    let subgraphs: Vec<String> = calls
        .iter()
        .map(|p| text(&p.attributes, "subgraph.name"))
        .collect();
    assert_eq!(subgraphs, ["accounts", "inventory", "products"]);
}

const PROMETHEUS: &str = "prometheus: { enabled: true, listen: '127.0.0.1:0' }";

fn counted(more: &str) -> Graph {
    Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ {PROMETHEUS}, {more} }} }} }}"
    ))
}

pub(crate) fn scrape(graph: &Graph) -> String {
    scrape_served(&graph.served)
}

pub(crate) fn scrape_served(served: &Served) -> String {
    let background = served.background.as_ref().unwrap();
    let address = background.metrics_address().unwrap();
    let answer = send(address, "GET", "/metrics", &[], b"");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    answer.text()
}

/// The value of a series.
pub(crate) fn value(text: &str, series: &str) -> f64 {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.find(|(name, _)| *name == series);
    found
        .unwrap_or_else(|| panic!("no {series} in\n{text}"))
        .1
        .parse()
        .unwrap()
}

#[test]
fn prometheus_sees_what_happens() {
    let graph = counted("common: {}");
    post(graph.address(), QUERY);
    post(graph.address(), QUERY);
    post(graph.address(), "{ nope }");
    let text = scrape(&graph);
    let requests = |status| {
        format!(
            "http_server_request_duration_seconds_count{{http_request_method=\"POST\",http_response_status_code=\"{status}\"}}"
        )
    };
    assert_eq!(value(&text, &requests(200)), 2.0);
    assert_eq!(value(&text, &requests(400)), 1.0);
    let operation = "graphql_operation_duration_seconds_count{graphql_operation_name=\"Shop\",\
                     graphql_operation_type=\"query\",graphql_response_has_errors=\"false\"}";
    assert_eq!(value(&text, operation), 2.0);
    let plans =
        |source| format!("ogive_plan_duration_seconds_count{{ogive_plan_source=\"{source}\"}}");
    assert_eq!(value(&text, &plans("planner")), 1.0);
    assert_eq!(value(&text, &plans("cache")), 1.0);
    let errors = "ogive_errors_total{graphql_error_code=\"GRAPHQL_VALIDATION_FAILED\"}";
    assert_eq!(value(&text, errors), 1.0);
    assert_eq!(
        value(
            &text,
            "ogive_stop_duration_seconds_count{ogive_stop=\"respond\"}"
        ),
        2.0
    );
    let products = "http_client_request_duration_seconds_count{subgraph_name=\"products\",http_response_status_code=\"200\"}";
    assert_eq!(value(&text, products), 2.0);
    assert_eq!(value(&text, "http_server_active_requests"), 0.0);
    assert_eq!(value(&text, "ogive_plan_cache_entries"), 1.0);
    assert_eq!(value(&text, "ogive_ready"), 1.0);
    for line in text.lines().filter(|l| l.contains("_bucket{")) {
        assert!(line.contains("le=\""), "{line}");
    }
}

#[test]
fn subgraphs_that_fail_are_counted_by_code() {
    let graph = counted("common: {}");
    graph.service.configure("accounts", |settings| {
        settings.faults = vec![ogive_mock::Fault::parse("drop").unwrap()];
        settings.cache = false;
    });
    post(graph.address(), "{ me { name } }");
    let text = scrape(&graph);
    let failed = "http_client_request_duration_seconds_count{subgraph_name=\"accounts\",error_type=\"SUBREQUEST_HTTP_ERROR\"}";
    assert_eq!(value(&text, failed), 1.0);
    assert_eq!(
        value(
            &text,
            "ogive_errors_total{subgraph_name=\"accounts\",graphql_error_code=\"SUBREQUEST_HTTP_ERROR\"}"
        ),
        1.0
    );
}

/// A client that makes names up cannot fill the memory with series.
#[test]
fn the_number_of_series_is_bounded() {
    let graph = counted("common: { cardinality_limit: 3 }");
    for n in 0..20 {
        post(graph.address(), &format!("query Q{n} {{ __typename }}"));
    }
    let text = scrape(&graph);
    let series = text
        .lines()
        .filter(|l| l.starts_with("graphql_operation_duration_seconds_count{"));
    assert_eq!(series.count(), 4, "{text}");
    let rest = "graphql_operation_duration_seconds_count{otel_metric_overflow=\"true\"}";
    assert!(value(&text, rest) >= 14.0);
    let graph = counted("common: { operation_names: false }");
    post(graph.address(), "query A { __typename }");
    post(graph.address(), "query B { __typename }");
    let all = "graphql_operation_duration_seconds_count{graphql_operation_name=\"\",\
               graphql_operation_type=\"query\",graphql_response_has_errors=\"false\"}";
    assert_eq!(value(&scrape(&graph), all), 2.0);
}

/// Found by an attacker: names that one client had made up kept those of all others out for good.
#[test]
fn names_that_one_client_makes_up_leave_room_for_others() {
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ {PROMETHEUS}, common: {{ cardinality_limit: 110 }} }} }} }}\n\
         http: {{ workers: 1, trusted_proxies: [127.0.0.1] }}"
    ));
    let ask = |client: &str, name: &str| {
        let query = format!("query {name} {{ __typename }}");
        let headers = [("x-forwarded-for", client), ("graphql-client-name", name)];
        assert_eq!(post_with(graph.address(), &query, &headers).status, 200);
    };
    for n in 0..120 {
        ask("10.0.0.1", &format!("Junk{n}"));
    }
    ask("10.0.0.2", "Shop");
    let text = scrape(&graph);
    for (metric, of, own) in [
        (
            "graphql_operation_duration_seconds_count",
            "graphql_operation_name",
            ",graphql_operation_type=\"query\",graphql_response_has_errors=\"false\"",
        ),
        ("ogive_client_requests_total", "graphql_client_name", ""),
    ] {
        let series = |labels: &str| value(&text, &format!("{metric}{{{labels}}}"));
        assert_eq!(series(&format!("{of}=\"Shop\"{own}")), 1.0, "{text}");
        assert_eq!(series(&format!("{of}=\"Junk99\"{own}")), 1.0);
        // A client brings a hundred in any case.
        assert_eq!(series("otel_metric_overflow=\"true\""), 20.0);
    }
}

/// Every request that a limit would refuse is counted where the limit is only measured.
#[test]
fn clients_that_say_what_they_are_called_are_told_apart() {
    let path = scratch("clients.txt");
    let ask = |graph: &Graph, headers: &[(&str, &str)]| {
        assert_eq!(post_with(graph.address(), QUERY, headers).status, 200);
    };
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ {PROMETHEUS}, common: {{ cardinality_limit: 3 }} }} }}, \
         access_log: {{ enabled: true, format: text, path: '{}', fields: [status, client_name, client_version] }} }}\n\
         http: {{ workers: 1 }}",
        path.display()
    ));
    let apollo = [
        ("apollographql-client-name", "web shop"),
        ("apollographql-client-version", "1.2"),
    ];
    ask(&graph, &apollo);
    ask(&graph, &apollo);
    ask(&graph, &[("graphql-client-name", "phone")]);
    ask(&graph, &[("graphql-client-name", "  ")]);
    let long = "n".repeat(5_000);
    for name in [&*long, "fourth", "fifth"] {
        ask(&graph, &[("graphql-client-name", name)]);
    }
    let text = scrape(&graph);
    let of = |labels: &str| value(&text, &format!("ogive_client_requests_total{{{labels}}}"));
    let apollo = "graphql_client_name=\"web shop\",graphql_client_version=\"1.2\"";
    assert_eq!(of(apollo), 2.0);
    assert_eq!(of("graphql_client_name=\"phone\""), 1.0);
    assert_eq!(
        of("otel_metric_overflow=\"true\""),
        2.0,
        "the limit is three"
    );
    assert!(!text.contains(&"n".repeat(200)));
    let lines = lines(&path, 7);
    assert_eq!(
        lines[0],
        "status=200 client_name=\"web shop\" client_version=1.2"
    );
    assert_eq!(lines[2], "status=200 client_name=phone");
    assert_eq!(lines[3], "status=200");
    fs::remove_file(path).unwrap();

    let other = Graph::with(&format!(
        "telemetry: {{ clients: {{ name_headers: [x-app], version_headers: [x-build] }}, \
         exporters: {{ metrics: {{ {PROMETHEUS} }} }} }}"
    ));
    ask(
        &other,
        &[
            ("x-app", "a"),
            ("x-build", "7"),
            ("graphql-client-name", "b"),
        ],
    );
    let labels = "graphql_client_name=\"a\",graphql_client_version=\"7\"";
    let series = format!("ogive_client_requests_total{{{labels}}}");
    assert_eq!(value(&scrape(&other), &series), 1.0);

    let off = counted("common: { clients: false }");
    ask(&off, &[("graphql-client-name", "a")]);
    assert!(!scrape(&off).contains("ogive_client_requests_total{"));
}

/// Found by an attacker: names of requests that were refused took the room of those that are served.
#[test]
fn names_of_clients_that_are_refused_take_no_room() {
    let graph = Graph::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ {PROMETHEUS}, common: {{ cardinality_limit: 1 }} }} }} }}\n\
         authorization: {{ require_authentication: true, claims: {{ header: x-claims, trusted: [127.0.0.1] }} }}\n\
         http: {{ workers: 1 }}"
    ));
    let ask = |name: &str, claims: &[(&str, &str)]| {
        let headers = [&[("graphql-client-name", name)], claims].concat();
        post_with(graph.address(), QUERY, &headers).status
    };
    for name in ["a", "b", "shop"] {
        assert_eq!(ask(name, &[]), 401);
    }
    assert_eq!(ask("shop", &[("x-claims", "{}")]), 200);
    assert_eq!(ask("shop", &[]), 401, "its name is known by now");
    let text = scrape(&graph);
    for (name, count) in [("other", 3.0), ("shop", 2.0)] {
        let series = format!("ogive_client_requests_total{{graphql_client_name=\"{name}\"}}");
        assert_eq!(value(&text, &series), count, "{text}");
    }
}

#[test]
fn exceeded_limits_are_counted() {
    let graph = Graph::with(
        "limits: { max_depth: 1, max_variables_size: 2, warn_only: true }\n\
         traffic_shaping: { router: { rate_limit: { capacity: 1, interval: 1h, measure_only: true } } }\n\
         telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' } } } }",
    );
    for _ in 0..3 {
        let answer = post(graph.address(), "{ me { name } }");
        assert_eq!(answer.codes(), [""; 0]);
    }
    let text = scrape(&graph);
    for (code, count) in [("MAX_DEPTH_LIMIT", 3.0), ("REQUEST_RATE_LIMITED", 2.0)] {
        let series = format!("ogive_limits_exceeded_total{{graphql_error_code=\"{code}\"}}");
        assert_eq!(value(&text, &series), count, "{text}");
    }
    assert!(!text.contains("MAX_VARIABLES_SIZE_LIMIT"), "{text}");
}

/// The buckets of durations are those that were asked for.
#[test]
fn buckets_can_be_chosen() {
    let graph = counted("common: { buckets: [0.25, 3600] }");
    post(graph.address(), "query A { __typename }");
    let text = scrape(&graph);
    let bounds: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("graphql_operation_duration_seconds_bucket{"))
        .filter_map(|l| l.split("le=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(bounds, ["0.25", "3600", "+Inf"], "{text}");
    let within = "graphql_operation_duration_seconds_bucket{graphql_operation_name=\"A\",\
                  graphql_operation_type=\"query\",graphql_response_has_errors=\"false\",le=\"3600\"}";
    assert_eq!(value(&text, within), 1.0);
}

#[test]
fn health_can_have_an_address_of_its_own() {
    let graph = Graph::with("health_check: { listen: '127.0.0.1:0' }");
    let background = graph.served.background.as_ref().unwrap();
    let own = background.health_address().unwrap();
    assert_eq!(send(own, "GET", "/health", &[], b"").status, 200);
    assert_eq!(send(own, "GET", "/readiness", &[], b"").status, 200);
    assert_eq!(send(own, "GET", "/metrics", &[], b"").status, 404);
    assert_eq!(send(own, "DELETE", "/health", &[], b"").status, 405);
    assert_eq!(
        send(graph.address(), "GET", "/health", &[], b"").status,
        404
    );
    ogive_server::Service::start_draining(&*graph.served.gateway);
    assert_eq!(send(own, "GET", "/readiness", &[], b"").status, 503);
    assert_eq!(send(own, "GET", "/health", &[], b"").status, 200);
}

pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// The lines of the access log, once there are so many.
pub(crate) fn lines(path: &Path, wanted: usize) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.matches('\n').count() >= wanted {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < end, "{text}");
        std::thread::yield_now();
    }
}

#[test]
fn every_request_is_a_line_of_the_access_log() {
    let path = scratch("access.json");
    let graph = Graph::with(&format!(
        "telemetry: {{ request_id: {{ enabled: true }}, access_log: {{ enabled: true, path: '{}' }} }}",
        path.display()
    ));
    post_with(graph.address(), QUERY, &[("x-request-id", "r-1")]);
    post_with(graph.address(), "{ nope }", &[("x-request-id", "r-2")]);
    let lines = lines(&path, 2);
    let first: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(first["request_id"], "r-1");
    assert_eq!(first["method"], "POST");
    assert_eq!(first["path"], "/graphql");
    assert_eq!(first["status"], 200);
    assert_eq!(first["operation_name"], "Shop");
    assert_eq!(first["operation_type"], "query");
    assert_eq!(first["subgraph_requests"], 3);
    assert_eq!(first["errors"], 0);
    assert!(first["duration_ms"].as_f64().unwrap() > 0.0);
    assert!(first["time"].as_str().unwrap().ends_with('Z'));
    let second: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!(second["code"], "GRAPHQL_VALIDATION_FAILED");
    assert_eq!(second["status"], 400);
    fs::remove_file(path).unwrap();
}

#[test]
fn an_answer_with_data_and_errors_has_a_code_in_the_access_log() {
    let path = scratch("partial.json");
    let graph = Graph::with(&format!(
        "override_subgraph_url: {{ inventory: 'http://127.0.0.1:1/' }}\n\
         telemetry: {{ access_log: {{ enabled: true, path: '{}' }} }}",
        path.display()
    ));
    let query = "{ topProducts { name shippingCost { amount } } }";
    let answer = post_with(graph.address(), query, &[]);
    assert!(answer.text().contains("\"name\""), "{}", answer.text());
    let line: serde_json::Value = serde_json::from_str(&lines(&path, 1)[0]).unwrap();
    assert_eq!(line["code"], "SUBREQUEST_HTTP_ERROR", "{line}");
    assert!(line["errors"].as_u64().unwrap() > 0, "{line}");
    fs::remove_file(path).unwrap();
}

#[test]
fn what_the_parser_refuses_is_a_line_of_the_access_log() {
    let path = scratch("refused.txt");
    let graph = Graph::with(&format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
         fields: [status, method, code, client_address] }} }}",
        path.display()
    ));
    for (number, (bytes, expected)) in [
        (
            "\x16\x03\x01\x02 no HTTP\r\n\r\n".to_owned(),
            "status=400 method=_OTHER code=INVALID_GRAPHQL_REQUEST client_address=127.0.0.1",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
                "x".repeat(100_000)
            ),
            "status=431 method=_OTHER code=HEADER_SIZE_LIMIT client_address=127.0.0.1",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nhost: a\r\n{}\r\n",
                "x: 1\r\n".repeat(100)
            ),
            "status=431 method=_OTHER code=HEADERS_LIMIT client_address=127.0.0.1",
        ),
        (
            "POST /graphql HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "status=400 method=POST code=INVALID_GRAPHQL_REQUEST client_address=127.0.0.1",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut connection = Connection::open(graph.address());
        connection.write_what_is_taken(bytes.as_bytes());
        let status = connection.read().status;
        assert!(expected.contains(&status.to_string()), "{status}");
        assert_eq!(lines(&path, number + 1)[number], expected);
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn the_access_log_has_the_fields_that_are_asked_for() {
    let path = scratch("access.txt");
    let graph = Graph::with(&format!(
        "http: {{ trusted_proxies: [127.0.0.1] }}\n\
         telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
         fields: [status, user_agent, operation_name, plan_source, client_address, response_bytes] }} }}",
        path.display()
    ));
    let headers = [
        ("user-agent", "my \"shop\" 1"),
        ("x-forwarded-for", "9.9.9.9, 1.2.3.4"),
    ];
    let answer = post_with(graph.address(), QUERY, &headers);
    let bytes = answer.body.len();
    assert_eq!(
        lines(&path, 1),
        [format!(
            "status=200 user_agent=\"my \\\"shop\\\" 1\" operation_name=Shop plan_source=planner \
             client_address=1.2.3.4 response_bytes={bytes}"
        )]
    );
    fs::remove_file(path).unwrap();
}

#[test]
fn requests_have_ids() {
    let graph =
        Graph::with("telemetry: { request_id: { enabled: true, header: x-correlation-id } }");
    record(&graph);
    let id = |answer: &Answer| answer.header("x-correlation-id").unwrap().to_owned();
    let chosen = post_with(graph.address(), QUERY, &[("x-correlation-id", "mine")]);
    assert_eq!(id(&chosen), "mine");
    for request in graph.service.recorded() {
        let told = request
            .headers
            .iter()
            .find(|(n, _)| n == "x-correlation-id");
        assert_eq!(told.unwrap().1, "mine", "{}", request.subgraph);
    }
    let made = id(&post(graph.address(), QUERY));
    assert_eq!(made.len(), 32);
    assert_ne!(made, id(&post(graph.address(), QUERY)));
    // What is no id is not passed on.
    let long = "x".repeat(200);
    let answer = post_with(graph.address(), QUERY, &[("x-correlation-id", &long)]);
    assert_eq!(id(&answer).len(), 32);
    let plain = post_with(Graph::start().address(), QUERY, &[("x-request-id", "mine")]);
    assert_eq!(plain.header("x-request-id"), None);
}

#[test]
fn the_execution_trace_is_for_those_who_know_the_secret() {
    let graph = Graph::with(
        "telemetry: { execution_trace: { enabled: true, header: x-trace-me, secret: s3cret } }",
    );
    let ask = |secret| post_with(graph.address(), QUERY, &[("x-trace-me", secret)]).json();
    assert_eq!(ask("true")["extensions"], serde_json::Value::Null);
    assert_eq!(ask("s3crets")["extensions"], serde_json::Value::Null);
    let trace = &ask("s3cret")["extensions"]["ogiveTrace"];
    assert_eq!(trace["planSource"], "cache");
    let stops: Vec<&str> = trace["stops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stop| stop["name"].as_str().unwrap())
        .collect();
    assert_eq!(stops, ["prepare", "plan", "execute"]);
    let requests = trace["subgraphRequests"].as_array().unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0]["status"], 200);
    assert_eq!(requests[0]["tries"], 1);
    // Without a secret the word is enough; both extensions fit into one response.
    let graph = Graph::with(
        "{ telemetry: { execution_trace: { enabled: true } }, query_planning: { expose: { enabled: true } } }",
    );
    let headers = [
        ("x-ogive-trace", "true"),
        ("apollo-expose-query-plan", "true"),
    ];
    let extensions = &post_with(graph.address(), QUERY, &headers).json()["extensions"];
    assert!(extensions["apolloQueryPlan"]["text"].is_string());
    assert_eq!(extensions["ogiveTrace"]["version"], 1);
}
