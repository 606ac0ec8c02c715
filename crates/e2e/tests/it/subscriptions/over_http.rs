//! Server-sent events and multipart.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    collector::trace::v1::ExportTraceServiceRequest, metrics::v1::metric::Data, trace::v1::Span,
};
use serde_json::json;

use super::Streamed;
use crate::{
    http_client::{Connection, connect, request},
    telemetry::{Collector, scrape_served, spans, value},
};

pub(super) const SSE: &str = "text/event-stream";
pub(super) const MULTIPART: &str =
    "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json";
pub(super) const ADDED: &str = "subscription Added { added { id text } }";

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that reads a stream.
pub(super) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
    /// How much of it was taken.
    taken: usize,
    /// What of the body was read.
    text: String,
    pub(super) head: String,
}

impl Client {
    pub(super) fn subscribe(address: SocketAddr, accept: &str, query: &str) -> Client {
        Client::with(address, accept, query, "")
    }
    pub(super) fn with(address: SocketAddr, accept: &str, query: &str, headers: &str) -> Client {
        let body = json!({ "query": query }).to_string();
        let length = body.len();
        Client::send(
            address,
            &format!(
                "POST /graphql HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\n{headers}content-type: \
                 application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            ),
        )
    }
    pub(super) fn send(address: SocketAddr, request: &str) -> Client {
        let mut stream = connect(address);
        // Of what brokers send again, or what ends over a window, nobody hears for a while.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut client = Client {
            stream,
            read: Vec::new(),
            taken: 0,
            text: String::new(),
            head: String::new(),
        };
        loop {
            if let Some(at) = client.read.windows(4).position(|w| w == b"\r\n\r\n") {
                let rest = client.read.split_off(at + 4);
                client.head = String::from_utf8(std::mem::replace(&mut client.read, rest)).unwrap();
                return client;
            }
            assert!(client.fill() > 0, "closed in the head");
        }
    }
    fn fill(&mut self) -> usize {
        let mut piece = [0; 64 << 10];
        let n = self.stream.read(&mut piece).unwrap();
        self.read.extend_from_slice(&piece[..n]);
        n
    }
    /// Reads one chunk; false if it was the last.
    fn chunk(&mut self) -> bool {
        loop {
            let read = &self.read[self.taken..];
            if let Some(at) = read.windows(2).position(|w| w == b"\r\n") {
                let size = std::str::from_utf8(&read[..at]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                if let Some(chunk) = read.get(at + 2..at + 2 + size + 2) {
                    let text = std::str::from_utf8(&chunk[..size]).unwrap();
                    self.text.push_str(text);
                    self.taken += at + 2 + size + 2;
                    return size > 0;
                }
            }
            self.read.drain(..std::mem::take(&mut self.taken));
            assert!(self.fill() > 0, "cut off behind {:?}", self.text);
        }
    }
    /// Whether something has come, within a moment.
    pub(super) fn has_something(&mut self) -> bool {
        if !self.text.is_empty() || self.taken < self.read.len() {
            return true;
        }
        let patience = self.stream.read_timeout().unwrap();
        let moment = Duration::from_millis(20);
        self.stream.set_read_timeout(Some(moment)).unwrap();
        let found = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_read_timeout(patience).unwrap();
        found
    }
    /// What comes up to this text.
    pub(super) fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.text.find(end) {
                let rest = self.text.split_off(at + end.len());
                return std::mem::replace(&mut self.text, rest);
            }
            assert!(self.chunk(), "ended with {:?}", self.text);
        }
    }
    /// Tells of every line up to the end.
    pub(super) fn each_line(&mut self, mut tell: impl FnMut(&str)) {
        let mut is_open = true;
        while is_open {
            is_open = self.chunk();
            let whole = self.text.rfind('\n').map_or(0, |at| at + 1);
            let rest = self.text.split_off(whole);
            self.text.lines().for_each(&mut tell);
            self.text = rest;
        }
        tell(&self.text);
    }
    /// What comes up to the end.
    pub(super) fn rest(mut self) -> String {
        while self.chunk() {}
        self.text
    }
}

pub(super) fn event(review: &str) -> String {
    format!(
        "event: next\ndata: {{\"data\":{{\"added\":{{\"id\":\"{review}\",\"text\":\"text of {review}\"}}}}}}\n\n"
    )
}

#[test]
fn events_arrive_as_they_happen_and_their_end_is_told() {
    let graph = Streamed::with("");
    let mut client = Client::subscribe(graph.served.address, SSE, ADDED);
    assert!(
        client.head.starts_with("HTTP/1.1 200 OK\r\n"),
        "{}",
        client.head
    );
    assert!(
        client
            .head
            .contains("content-type: text/event-stream; charset=utf-8\r\n")
    );
    assert!(client.head.contains("cache-control: no-store\r\n"));
    let mut source = graph.feed.opened();
    assert!(
        source.request.contains("subscription"),
        "{}",
        source.request
    );
    for review in ["1", "2"] {
        source.add(review);
        let found = client.until("}\n\n");
        assert_eq!(found.trim_start_matches(":\n\n"), event(review));
    }
    source.complete();
    assert_eq!(client.rest(), "event: complete\ndata:\n\n");
    graph.wait_for_open(0);
}

#[test]
fn subscriptions_may_be_asked_for_by_get() {
    let graph = Streamed::with("csrf:\n  enabled: false\n");
    let address = graph.served.address;
    let asked = format!(
        "GET /graphql?query=subscription%7Bcounted%7D HTTP/1.1\r\nhost: {address}\r\naccept: {SSE}\r\n\r\n"
    );
    let mut client = Client::send(address, &asked);
    let mut source = graph.feed.opened();
    source.send(r#"{"counted":7}"#);
    assert!(
        client
            .until("}\n\n")
            .ends_with("data: {\"data\":{\"counted\":7}}\n\n")
    );
}

#[test]
fn multipart_subscriptions_have_payloads_and_a_last_delimiter() {
    let graph = Streamed::with("");
    let mut client = Client::subscribe(graph.served.address, MULTIPART, ADDED);
    let of = "content-type: multipart/mixed;boundary=graphql;subscriptionSpec=1.0\r\n";
    assert!(client.head.contains(of), "{}", client.head);
    let mut source = graph.feed.opened();
    source.add("1");
    let found = client.until("}}\r\n--graphql");
    assert!(
        found.contains(r#"{"payload":{"data":{"added":{"id":"1","text":"text of 1"}}}"#),
        "{found}"
    );
    source.complete();
    assert_eq!(client.rest(), "--\r\n");
}

#[test]
fn queries_and_refusals_are_told_as_streams_to_who_reads_nothing_else() {
    let graph = Streamed::with("");
    let address = graph.served.address;
    let query = Client::read_whole(address, SSE, "{ping}");
    assert_eq!(
        query.1,
        "event: next\ndata: {\"data\":{\"ping\":1}}\n\nevent: complete\ndata:\n\n"
    );
    let refused = Client::read_whole(address, SSE, "{nothing}");
    assert_eq!(refused.0, 200);
    assert!(
        refused.1.contains("GRAPHQL_VALIDATION_FAILED"),
        "{}",
        refused.1
    );
    assert!(refused.1.ends_with("event: complete\ndata:\n\n"));
    // Who reads JSON, too, gets that.
    let query = Client::read_whole(address, MULTIPART, "{ping}");
    assert_eq!(query.1, r#"{"data":{"ping":1}}"#);
}

impl Client {
    fn read_whole(address: SocketAddr, accept: &str, query: &str) -> (u16, String) {
        let mut connection = Connection::open(address);
        let body = json!({ "query": query }).to_string();
        let headers = [("accept", accept), ("content-type", "application/json")];
        connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
        let answer = connection.read();
        (answer.status, answer.text())
    }
}

#[test]
fn who_reads_no_stream_is_told_what_to_accept() {
    let graph = Streamed::with("");
    let (status, text) = Client::read_whole(graph.served.address, "application/json", ADDED);
    assert_eq!(status, 406, "{text}");
    assert!(text.contains("text/event-stream"), "{text}");
    assert!(graph.feed.is_quiet());
}

#[test]
fn switched_off_nothing_of_it_is_there() {
    let graph = crate::graph::Graph::start();
    let (status, text) = Client::read_whole(graph.address(), SSE, "{me{name}}");
    assert_eq!(status, 406);
    assert!(text.contains("SUBSCRIPTIONS_NOT_SUPPORTED"), "{text}");
}

#[test]
fn equal_subscriptions_have_one_source_and_one_lookup_for_each_event() {
    let graph = Streamed::with(
        "headers:\n  all:\n    request:\n      - propagate:\n          named: authorization\n",
    );
    let address = graph.served.address;
    let subscribe = |as_whom: &str| {
        let header = format!("authorization: {as_whom}\r\n");
        Client::with(address, SSE, ADDED, &header)
    };
    let mut clients: Vec<Client> = (0..8).map(|_| subscribe("a")).collect();
    let mut source = graph.feed.opened();
    graph.wait_for_open(8);
    source.add("1");
    for client in &mut clients {
        assert!(client.until("}\n\n").ends_with(&event("1")));
    }
    assert_eq!(graph.feed.lookups(), 1);
    assert!(graph.feed.is_quiet());
    // What subgraphs are sent is another request then.
    let mut other = subscribe("b");
    let mut second = graph.feed.opened();
    assert!(
        second.request.contains("authorization: b"),
        "{}",
        second.request
    );
    second.add("2");
    assert!(other.until("}\n\n").ends_with(&event("2")));
    // The source goes on for those who stay, and ends with the last.
    clients.truncate(1);
    graph.wait_for_open(2);
    source.add("3");
    assert!(clients[0].until("}\n\n").ends_with(&event("3")));
    clients.clear();
    source.wait_until_left();
    graph.wait_for_open(1);
}

/// What a subgraph is told in the extensions of its request is a part of what has to be equal.
#[test]
fn subscriptions_that_say_another_caller_have_a_source_of_their_own() {
    let graph = Streamed::with(
        "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n\
         traffic_shaping: { all: { request_extensions: { user: { jwt_claim: sub } } } }\n",
    );
    let subscribe = |user: &str| {
        let header = format!("x-claims: {{\"claims\":{{\"sub\":\"{user}\"}}}}\r\n");
        Client::with(graph.served.address, SSE, ADDED, &header)
    };
    let mut ann = [subscribe("ann"), subscribe("ann")];
    let mut of_ann = graph.feed.opened();
    graph.wait_for_open(2);
    assert!(graph.feed.is_quiet());
    let mut ben = subscribe("ben");
    let mut of_ben = graph.feed.opened();
    for (source, user) in [(&of_ann, "ann"), (&of_ben, "ben")] {
        let said = format!("\"extensions\":{{\"user\":\"{user}\"");
        assert!(source.request.contains(&said), "{}", source.request);
    }
    of_ann.add("1");
    for client in &mut ann {
        assert!(client.until("}\n\n").ends_with(&event("1")));
    }
    of_ben.add("2");
    assert!(ben.until("}\n\n").ends_with(&event("2")));
}

/// Without heartbeats, so that whoever is sent no event does not wait for ever.
const SILENT: &str = "  client: { heartbeat_interval: 0s }\n";

#[test]
fn equal_subscriptions_have_one_source_even_if_each_is_planned_anew() {
    // No plan is kept, as when there are more operations than the cache has room for.
    let graph = Streamed::with(&format!(
        "{SILENT}query_planning: {{ cache: {{ enabled: false }} }}\n"
    ));
    let address = graph.served.address;
    let written = |n: usize| {
        format!(
            "subscription Added {{ added {{ id {}text }} }}",
            " ".repeat(n)
        )
    };
    let mut clients: Vec<Client> = (0..4)
        .map(|n| Client::subscribe(address, SSE, &written(n)))
        .collect();
    let mut source = graph.feed.opened();
    graph.wait_for_open(4);
    source.add("1");
    for client in &mut clients {
        assert!(client.until("}\n\n").ends_with(&event("1")));
    }
    assert!(graph.feed.is_quiet());
    assert_eq!(graph.feed.lookups(), 1);
}

#[test]
fn equal_subscriptions_that_two_workers_begin_at_once_have_one_source() {
    const CLIENTS: usize = 16;
    let graph = Streamed::with(SILENT);
    let address = graph.served.address;
    for round in 0..10 {
        let query = format!("subscription Added {{ in{round}: added {{ id text }} }}");
        let together = std::sync::Barrier::new(CLIENTS);
        let mut clients: Vec<Client> = std::thread::scope(|scope| {
            let begin = || {
                together.wait();
                Client::subscribe(address, SSE, &query)
            };
            let begun: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(begin)).collect();
            begun
                .into_iter()
                .map(|begun| begun.join().unwrap())
                .collect()
        });
        let mut source = graph.feed.opened();
        graph.wait_for_open(CLIENTS);
        source.send(&format!(
            r#"{{"in{round}":{{"__typename":"Review","id":"1"}}}}"#
        ));
        for client in &mut clients {
            let text = client.until("}\n\n");
            assert!(text.contains("text of 1"), "{text}");
        }
        assert!(graph.feed.is_quiet(), "round {round}: more than one source");
        assert_eq!(graph.feed.lookups(), round + 1);
        drop(clients);
        source.wait_until_left();
        graph.wait_for_open(0);
    }
}

#[test]
fn a_burst_arrives_whole_and_in_order() {
    const EVENTS: usize = 5_000;
    let graph = Streamed::with("  queue_capacity: 100000\n  queue_bytes: 64MiB\n");
    let query = "subscription { counted }";
    let mut clients: Vec<Client> = (0..3)
        .map(|_| Client::subscribe(graph.served.address, SSE, query))
        .collect();
    let mut source = graph.feed.opened();
    graph.wait_for_open(3);
    let sending = std::thread::spawn(move || {
        for n in 0..EVENTS {
            source.send(&format!(r#"{{"counted":{n}}}"#));
        }
        source.complete();
    });
    for client in clients.drain(..) {
        let text = client.rest();
        let found = text.lines().filter_map(|line| line.strip_prefix("data: {"));
        assert!(found.eq((0..EVENTS).map(|n| format!("\"data\":{{\"counted\":{n}}}}}"))));
    }
    sending.join().unwrap();
    let counts = graph.served.gateway.subscriptions();
    assert_eq!(
        (counts.events, counts.deliveries, counts.dropped),
        (5_000, 15_000, 0)
    );
}

#[test]
fn events_that_arrive_together_are_more_than_a_queue_has_room_for_and_yet_all_there() {
    const EVENTS: usize = 5_000;
    // The source waits for clients on its own thread; on another one they may be as slow as they like.
    let graph = Streamed::with("http:\n  workers: 1\n");
    let query = "subscription { counted }";
    let clients = [(); 3].map(|()| Client::subscribe(graph.served.address, SSE, query));
    let mut source = graph.feed.opened();
    graph.wait_for_open(3);
    let sending = std::thread::spawn(move || {
        source.send_together((0..EVENTS).map(|n| format!(r#"{{"counted":{n}}}"#)));
        source.complete();
    });
    for client in clients {
        let text = client.rest();
        let found = text.lines().filter_map(|line| line.strip_prefix("data: {"));
        assert!(found.eq((0..EVENTS).map(|n| format!("\"data\":{{\"counted\":{n}}}}}"))));
    }
    sending.join().unwrap();
}

/// Sends events of a quarter of a megabyte to a client that reads nothing; then reads what there is.
fn flooded(
    on_overflow: &str,
) -> (
    String,
    ogive_gateway::subscribe::sources::SubscriptionCounts,
) {
    const EVENTS: usize = 200;
    let graph = Streamed::with(&format!(
        "  queue_capacity: 4\n  queue_bytes: 64MiB\n  on_overflow: {on_overflow}\nhttp:\n  write_timeout: 10m\n"
    ));
    let address = graph.served.address;
    let slow = Client::subscribe(address, SSE, ADDED.replace("text", "").as_str());
    let mut source = graph.feed.opened();
    let long = "x".repeat(256 << 10);
    let is_there = (0..EVENTS).all(|n| source.try_add(&format!("{n}-{long}")));
    // Behind them, so that all have been dealt with.
    let feed = &graph.feed;
    if is_there {
        source.complete();
    }
    let since = std::time::Instant::now();
    let is_over = |counts: ogive_gateway::subscribe::sources::SubscriptionCounts| {
        counts.events == EVENTS as u64 || counts.overflows > 0
    };
    while !is_over(graph.served.gateway.subscriptions()) {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    assert!(feed.is_quiet());
    let counts = graph.served.gateway.subscriptions();
    (slow.rest().replace(&long, ""), counts)
}

#[test]
fn a_client_that_reads_too_slowly_is_told_so_behind_what_waited() {
    let (text, counts) = flooded("close");
    let ids: Vec<&str> = text
        .split("\"id\":\"")
        .skip(1)
        .map(|rest| rest.split('-').next().unwrap())
        .collect();
    assert!(!ids.is_empty() && ids.len() < 200, "{}", ids.len());
    assert!(
        ids.iter().enumerate().all(|(at, id)| *id == at.to_string()),
        "{ids:?}"
    );
    assert!(text.contains("SUBSCRIPTION_OVERFLOW"), "{text}");
    assert!(text.ends_with("event: complete\ndata:\n\n"));
    assert_eq!(counts.overflows, 1);
}

#[test]
fn where_events_are_dropped_the_next_one_says_how_many() {
    let (text, counts) = flooded("drop_oldest");
    let arrived = text.split("\"id\":\"").count() - 1;
    let told = text.split("\"droppedEvents\":").skip(1);
    let told: usize = told
        .map(|rest| rest.split('}').next().unwrap().parse::<usize>().unwrap())
        .sum();
    assert!(told > 0, "{text}");
    assert_eq!(arrived + told, 200);
    assert_eq!(counts.dropped as usize, told);
    assert!(text.contains("\"id\":\"199-"));
}

#[test]
fn a_source_that_breaks_or_does_not_open_is_an_error_and_the_end() {
    let graph = Streamed::with("");
    let client = Client::subscribe(graph.served.address, SSE, "subscription { counted }");
    let mut source = graph.feed.opened();
    source.send(r#"{"counted":1}"#);
    source.break_off();
    // It is opened again by policy; the client leaves.
    drop(client);
    graph.wait_for_open(0);
}

#[test]
fn the_end_of_the_process_is_told_in_time() {
    let mut graph = Streamed::with("http:\n  connection_shutdown_timeout: 30s\n");
    let parts: Vec<Client> = (0..4)
        .map(|_| Client::subscribe(graph.served.address, MULTIPART, ADDED))
        .collect();
    let _source = graph.feed.opened();
    graph.wait_for_open(4);
    graph.served.begin_stop();
    for client in parts {
        let text = client.rest();
        assert!(text.contains("SUBSCRIPTION_SHUTDOWN"), "{text}");
    }
    assert_eq!(graph.served.stopped().cut_off, 0);
}

#[test]
fn heartbeats_are_sent_while_nothing_happens() {
    let graph = Streamed::with("  client:\n    heartbeat_interval: 20ms\n");
    let mut events = Client::subscribe(graph.served.address, SSE, ADDED);
    events.until(":\n\n");
    events.until(":\n\n");
    let mut parts = Client::subscribe(graph.served.address, MULTIPART, ADDED);
    parts.until("{}\r\n--graphql");
}

#[test]
fn there_are_only_so_many_subscriptions() {
    let graph = Streamed::with("  max_opened_subscriptions: 1\n");
    let first = Client::subscribe(graph.served.address, SSE, ADDED);
    graph.wait_for_open(1);
    let (status, text) = Client::read_whole(graph.served.address, SSE, ADDED);
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("SUBSCRIPTIONS_LIMITED"), "{text}");
    drop(first);
    graph.wait_for_open(0);
    Client::subscribe(graph.served.address, SSE, ADDED);
}

#[test]
fn without_deduplication_everybody_has_a_source() {
    let graph = Streamed::with("  deduplication:\n    enabled: false\n");
    let _clients = [0, 1].map(|_| Client::subscribe(graph.served.address, SSE, ADDED));
    let _sources = [graph.feed.opened(), graph.feed.opened()];
}

#[test]
fn prometheus_and_otlp_see_subscriptions() {
    let collector = Collector::start(false);
    let graph = Streamed::with(&format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }}, \
         otlp: {{ enabled: true, interval: 20ms, endpoint: 'http://{}/v1/metrics' }} }} }} }}\n",
        collector.address
    ));
    let mut clients: Vec<Client> = (0..3)
        .map(|_| Client::subscribe(graph.served.address, SSE, ADDED))
        .collect();
    let mut source = graph.feed.opened();
    graph.wait_for_open(3);
    for review in ["1", "2"] {
        source.add(review);
        for client in &mut clients {
            client.until(&event(review));
        }
    }
    let text = scrape_served(&graph.served);
    let seen = |text: &str, name: &str| {
        value(
            text,
            &format!("ogive_subscriptions_{name}{{subgraph_name=\"events\"}}"),
        )
    };
    assert_eq!((seen(&text, "open"), seen(&text, "sources")), (3.0, 1.0));
    assert_eq!(seen(&text, "events_total"), 2.0);
    assert_eq!(seen(&text, "deliveries_total"), 6.0);
    assert_eq!(seen(&text, "dropped_total"), 0.0);
    assert_eq!(seen(&text, "overflows_total"), 0.0);
    assert_eq!(seen(&text, "lag_seconds_count"), 6.0);
    // The collector hears of the same, in the end.
    let delivered = |m: &ExportMetricsServiceRequest| {
        let all = m.resource_metrics[0].scope_metrics[0].metrics.iter();
        let mut named = all.filter(|metric| metric.name == "ogive.subscriptions.deliveries");
        match named.next()?.data.as_ref()? {
            Data::Sum(sum) => sum.data_points[0].value,
            _ => None,
        }
    };
    let six = opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsInt(6);
    collector.next(|m: &ExportMetricsServiceRequest| delivered(m) == Some(six));
    source.complete();
    for client in clients {
        client.rest();
    }
    graph.wait_for_open(0);
    assert_eq!(seen(&scrape_served(&graph.served), "open"), 0.0);
}

/// The lines of a file, once there are so many.
pub(super) fn lines(path: &std::path::Path, wanted: usize) -> Vec<String> {
    let since = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.matches('\n').count() >= wanted {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(since.elapsed().as_secs() < 60, "{text}");
        std::thread::yield_now();
    }
}

#[test]
fn the_access_log_has_a_line_at_the_beginning_and_at_the_end() {
    let path = format!("{}-subscriptions.txt", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(path);
    let _ = std::fs::remove_file(&path);
    let graph = Streamed::with(&format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', \
         fields: [status, duration_ms, response_bytes, operation_name, events, end] }} }}\n",
        path.display()
    ));
    let subscribe = || Client::subscribe(graph.served.address, SSE, ADDED);
    let mut whole = subscribe();
    let mut source = graph.feed.opened();
    let begun = lines(&path, 1);
    assert!(begun[0].ends_with(" operation_name=Added"), "{begun:?}");
    source.add("1");
    source.add("2");
    whole.until(&event("2"));
    source.complete();
    whole.rest();
    let ended = lines(&path, 2);
    let duration = |line: &str| -> f64 {
        let (_, rest) = line.split_once("duration_ms=").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(duration(&ended[1]) > duration(&ended[0]), "{ended:?}");
    assert!(ended[1].starts_with("status=200 "), "{ended:?}");
    assert!(
        ended[1].ends_with(" operation_name=Added events=2 end=complete"),
        "{ended:?}"
    );
    let mut leaving = subscribe();
    let mut source = graph.feed.opened();
    source.add("1");
    leaving.until(&event("1"));
    drop(leaving);
    let left = lines(&path, 4);
    assert!(left[3].ends_with(" events=1 end=left"), "{left:?}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn every_event_has_a_trace_with_its_look_ups() {
    let collector = Collector::start(false);
    let graph = Streamed::with(&format!(
        "telemetry: {{ exporters: {{ tracing: {{ otlp: {{ enabled: true, protocol: http, endpoint: 'http://{}', \
         batch_processor: {{ scheduled_delay: 10ms }} }} }} }} }}\n",
        collector.address
    ));
    let mut clients =
        [SSE, SSE].map(|accept| Client::subscribe(graph.served.address, accept, ADDED));
    let mut source = graph.feed.opened();
    graph.wait_for_open(2);
    let mut traces = Vec::new();
    for id in ["1", "2"] {
        source.add(id);
        for client in &mut clients {
            client.until(&format!("text of {id}"));
        }
        // One, however many hear it.
        let is_of_event = |span: &Span| span.name == "event events";
        // Another one: what the collector has not confirmed in time is sent again.
        let is_new = |span: &Span| is_of_event(span) && !traces.contains(&span.trace_id);
        let has = |m: &ExportTraceServiceRequest| spans(m).iter().any(is_new);
        let (_, message) = collector.next(has);
        let spans = spans(&message);
        let of_events: Vec<&Span> = spans.iter().filter(|span| is_of_event(span)).collect();
        let [event] = of_events.as_slice() else {
            panic!("{spans:#?}");
        };
        let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
        let (execute, lookup) = (named("request.execute"), named("POST texts"));
        assert_eq!(execute.parent_span_id, event.span_id);
        assert_eq!(lookup.parent_span_id, execute.span_id);
        assert_eq!(lookup.trace_id, event.trace_id);
        traces.push(event.trace_id.clone());
    }
    assert_ne!(traces[0], traces[1]);
}

#[tokio::test(flavor = "current_thread")]
async fn explaining_tells_the_source_and_what_an_event_takes() {
    let graph = Streamed::with("");
    for (query, event) in [
        (ADDED, "for each event: 1 further, of `texts`"),
        (
            "subscription { counted }",
            "for each event: no further request",
        ),
    ] {
        let input = ogive_gateway::ExplainInput {
            request: ogive_gateway::GraphqlRequest {
                query: query.to_owned(),
                ..Default::default()
            },
            headers: http::HeaderMap::new(),
            token: None,
            peer: ogive_base::Peer::Unix,
            is_executed: false,
            has_timings: false,
        };
        let text = graph.served.gateway.explain(input).await.text;
        let source = "source: one stream of `events`, by the protocol `auto`";
        assert!(text.contains(source) && text.contains(event), "{text}");
    }
}

/// Found by a first user: a plan and no refusal, though whoever sends it is refused.
#[tokio::test(flavor = "current_thread")]
async fn explaining_refuses_a_subscription_that_would_be_refused() {
    let off = "subscription: { enabled: false }\n";
    for (yaml, is_refused) in [("", false), (off, true)] {
        let graph = Streamed::with("");
        if is_refused {
            graph.reload_as(&super::GRAPH, yaml);
        }
        let input = ogive_gateway::ExplainInput {
            request: ogive_gateway::GraphqlRequest {
                query: ADDED.to_owned(),
                ..Default::default()
            },
            headers: http::HeaderMap::new(),
            token: None,
            peer: ogive_base::Peer::Unix,
            is_executed: false,
            has_timings: false,
        };
        let explained = graph.served.gateway.explain(input).await;
        assert_eq!(explained.is_refused, is_refused, "{}", explained.text);
        let code = explained.text.contains("SUBSCRIPTIONS_NOT_SUPPORTED");
        assert_eq!(code, is_refused, "{}", explained.text);
    }
}

/// The source is asked, and the first event is shown with the requests that it takes.
#[test]
fn explaining_a_subscription_shows_its_first_event() {
    let of_texts = "texts\n  > {\"query\":";
    for (query, asks_texts) in [(ADDED, true), ("subscription { added { id } }", false)] {
        let text = first_event(query);
        for line in [
            "asked of `events`:\n  > {\"query\":\"subscription",
            "\"id\": \"1\"",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.contains(of_texts), asks_texts, "{text}");
    }
}

fn first_event(query: &'static str) -> String {
    let graph = Streamed::with("");
    let gateway = std::sync::Arc::clone(&graph.served.gateway);
    let explaining = std::thread::spawn(move || {
        let input = ogive_gateway::ExplainInput {
            request: ogive_gateway::GraphqlRequest {
                query: query.to_owned(),
                ..Default::default()
            },
            headers: http::HeaderMap::new(),
            token: None,
            peer: ogive_base::Peer::Unix,
            is_executed: true,
            has_timings: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(gateway.explain(input))
    });
    let mut source = graph.feed.opened();
    source.add("1");
    let explained = explaining.join().unwrap();
    assert!(!explained.is_refused, "{}", explained.text);
    explained.text
}
