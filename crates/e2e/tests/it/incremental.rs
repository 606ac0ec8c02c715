//! Answers in parts (`@defer`, `@stream`), over real sockets: what comes when, in which form, and what becomes of it when something
//! goes wrong.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use ogive_testbase::subgraph::{ManualSubgraph, ReceivedRequest};
use serde_json::{Value, json};

use crate::{
    graph::{Graph, config, demo_file, state},
    http_client::send,
};

/// What is in stock is asked of a subgraph that the test answers for.
pub(crate) const QUERY: &str =
    "{ topProducts(first: 2) { name ... @defer(label: \"stock\") { inStock } } }";
pub(crate) const OF_2022: &str = "multipart/mixed;deferSpec=20220824, application/json";
pub(crate) const CURRENT: &str = "multipart/mixed;incrementalSpec=v0.2, application/json";
/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn held_back(yaml: &str) -> (Graph, ManualSubgraph) {
    let inventory = ManualSubgraph::start();
    let url = format!(
        "override_subgraph_url: {{ inventory: '{}' }}\n",
        inventory.url()
    );
    (Graph::with(&(url + yaml)), inventory)
}

pub(crate) fn is_known(asked: &mut ReceivedRequest) {
    let entities = json!([{"inStock": true}, {"inStock": false}]);
    let body = json!({"data": {"_entities": entities}}).to_string();
    asked.answer(200, "content-type: application/json\r\n", body);
}

/// An answer that comes in parts.
pub(crate) struct Coming {
    stream: TcpStream,
    text: String,
}

impl Coming {
    pub(crate) fn ask(address: SocketAddr, query: &str, accept: &str) -> Coming {
        let body = json!({"query": query}).to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /graphql HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: {accept}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        Coming {
            stream,
            text: String::new(),
        }
    }
    /// Waits until something has come.
    pub(crate) fn until(&mut self, what: &str) -> &str {
        let mut buffer = [0; 4096];
        while !self.text.contains(what) {
            let n = self.stream.read(&mut buffer).unwrap();
            assert!(n > 0, "it ends without {what}: {}", self.text);
            self.text
                .push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        }
        &self.text
    }
    /// The answer of one whole.
    fn json(mut self) -> Value {
        self.stream.read_to_string(&mut self.text).unwrap();
        let (_, body) = self.text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
    /// The rest, and all parts as JSON.
    pub(crate) fn parts(mut self) -> Vec<Value> {
        self.stream.read_to_string(&mut self.text).unwrap();
        let (_, body) = self.text.split_once("\r\n\r\n").unwrap();
        let head = self.text.split("\r\n\r\n").next().unwrap();
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked {
            chunks(body)
        } else {
            body.to_owned()
        };
        assert!(body.starts_with("---\r\n"), "{body}");
        assert!(body.ends_with("\r\n-----\r\n"), "{body}");
        let parts = body
            .split("\r\n---")
            .map(|part| part.trim_start_matches("---"));
        let parts = parts.filter_map(|part| part.split_once("\r\n\r\n"));
        parts
            .map(|(_, json)| serde_json::from_str(json).unwrap())
            .collect()
    }
}

/// The text of a chunked body.
fn chunks(mut body: &str) -> String {
    let mut out = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return out;
        }
        out.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
}

#[test]
fn the_first_part_comes_while_the_deferred_subgraph_is_held_back() {
    let (graph, inventory) = held_back("");
    let names = ["Ridge 30 backpack", "Enamel kettle"];
    let initial = json!({"topProducts": [{"name": names[0]}, {"name": names[1]}]});
    let mut coming = Coming::ask(graph.address(), QUERY, CURRENT);
    let head = coming.until("\"hasNext\":true}\r\n---").to_lowercase();
    let media = "content-type: multipart/mixed; boundary=\"-\"; incrementalspec=v0.2\r\n";
    assert!(head.contains(media), "{head}");
    is_known(&mut inventory.next());
    let pending =
        |id: &str, at: usize| json!({"id": id, "path": ["topProducts", at], "label": "stock"});
    assert_eq!(
        coming.parts(),
        [
            json!({"data": initial, "pending": [pending("0", 0), pending("1", 1)], "hasNext": true}),
            json!({
                "incremental": [
                    {"id": "0", "data": {"inStock": true}},
                    {"id": "1", "data": {"inStock": false}},
                ],
                "completed": [{"id": "0"}, {"id": "1"}],
                "hasNext": false,
            }),
        ]
    );
    let mut coming = Coming::ask(graph.address(), QUERY, OF_2022);
    let head = coming.until("\"hasNext\":true}\r\n---").to_lowercase();
    let media = "content-type: multipart/mixed; boundary=\"-\"; deferspec=20220824\r\n";
    assert!(head.contains(media), "{head}");
    is_known(&mut inventory.next());
    let stock = |at: usize, is: bool| json!({"path": ["topProducts", at], "label": "stock", "data": {"inStock": is}});
    assert_eq!(
        coming.parts(),
        [
            json!({"data": initial, "hasNext": true}),
            json!({"incremental": [stock(0, true), stock(1, false)], "hasNext": false}),
        ]
    );
}

#[test]
fn a_group_that_fails_takes_nothing_else_with_it() {
    let (graph, inventory) = held_back("include_subgraph_errors: { all: true }");
    for (accept, place) in [(CURRENT, "completed"), (OF_2022, "incremental")] {
        let mut coming = Coming::ask(graph.address(), QUERY, accept);
        coming.until("\"hasNext\":true}");
        inventory.next().answer(500, "", "");
        let parts = coming.parts();
        assert_eq!(parts[0]["data"]["topProducts"][1]["name"], "Enamel kettle");
        assert_eq!(parts[1]["hasNext"], false);
        let text = parts[1].to_string();
        assert!(text.contains("SUBREQUEST_HTTP_ERROR"), "{place}: {text}");
    }
}

#[test]
fn a_client_that_leaves_ends_the_work() {
    let (graph, inventory) = held_back("");
    let mut coming = Coming::ask(graph.address(), QUERY, CURRENT);
    coming.until("\"hasNext\":true}");
    let mut asked = inventory.next();
    drop(coming);
    assert!(asked.is_left(), "the subgraph is still asked");
}

#[test]
fn clients_that_name_no_form_get_the_default() {
    let ask = |yaml: &str, accept: &str| {
        let graph = Graph::with(yaml);
        Coming::ask(graph.address(), QUERY, accept).parts()
    };
    let plain = "application/json, text/event-stream, multipart/mixed";
    assert!(ask("", plain)[0].get("pending").is_none());
    let current = "supergraph: { incremental_format_default: v0.2 }";
    assert!(ask(current, plain)[0].get("pending").is_some());
    assert!(ask(current, OF_2022)[0].get("pending").is_none());
}

#[test]
fn nothing_comes_in_parts_where_that_is_off() {
    let graph = Graph::with("supergraph: { defer_support: false }");
    let body = json!({"query": QUERY}).to_string();
    let post = |graph: &Graph, accept| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        )
    };
    let whole = post(&graph, "application/json");
    assert_eq!(whole.json()["data"]["topProducts"][0]["inStock"], true);
    assert_eq!(post(&graph, OF_2022).text(), whole.text());
    assert_eq!(post(&graph, "multipart/mixed").status, 406);
    // Nor to a client that does not read parts.
    let graph = Graph::start();
    assert_eq!(post(&graph, "application/json").text(), whole.text());
    let liked_less = "application/json, multipart/mixed;q=0.1";
    assert_eq!(post(&graph, liked_less).text(), whole.text());
}

/// Whoever reads parts shares what is known of a document that defers nothing; one that does is known in both ways, also to
/// the schema that comes next.
#[test]
fn a_document_is_prepared_once_for_each_way_it_is_answered() {
    let graph = Graph::start();
    let known = || graph.served.gateway.state().operations.len();
    let ask = |query: &str, accept: &str| {
        let body = json!({"query": query}).to_string();
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let answer = send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let alike = "{ deferred: topProducts(first: 1) { name @include(if: true) } }";
    for accept in ["application/json", OF_2022, CURRENT] {
        ask(alike, accept);
    }
    assert_eq!(known(), 1, "`deferred` is no directive");
    for accept in ["application/json", OF_2022, CURRENT, "application/json"] {
        ask(QUERY, accept);
    }
    assert_eq!(known(), 3);
    let supergraph = demo_file("supergraph.graphql");
    graph.served.gateway.reload(state(&supergraph, &config("")));
    assert_eq!(known(), 3);
}

#[test]
fn what_has_nothing_deferred_is_answered_at_once() {
    let graph = Graph::start();
    let ask = |query: &str, accept: &str| {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let body = json!({"query": query}).to_string();
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        )
    };
    for query in [
        "{ me { name } }",
        "{ me { name ... @defer(if: false) { id } } }",
        "{ me { name ... @defer { name } } }",
    ] {
        let answer = ask(query, CURRENT);
        let media = answer.header("content-type").unwrap();
        assert!(media.starts_with("application/json"), "{query}: {media}");
        assert_eq!(answer.json()["data"]["me"]["name"], "Ida Lindqvist");
        assert!(answer.json().get("hasNext").is_none());
    }
    let parts = Coming::ask(
        graph.address(),
        "{ me { name ... @defer { name } } }",
        "multipart/mixed;incrementalSpec=v0.2",
    );
    let whole = json!({"data": {"me": {"name": "Ida Lindqvist"}}, "hasNext": false});
    assert_eq!(parts.parts(), [whole]);
}

const STREAMED: &str =
    "{ topProducts(first: 6) @stream(initialCount: 1, label: \"all\") { name inStock } }";

#[test]
fn items_leave_as_their_look_ups_finish() {
    let (graph, inventory) = held_back("supergraph: { stream_window: 2 }");
    let mut coming = Coming::ask(graph.address(), STREAMED, CURRENT);
    // The first item's look-up, those of two more, and of the rest.
    let mut asked: Vec<ReceivedRequest> = (0..3).map(|_| inventory.next()).collect();
    let count = |asked: &ReceivedRequest| {
        let (_, body) = asked.request.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        body["variables"]["representations"]
            .as_array()
            .unwrap()
            .len()
    };
    asked.sort_by_key(count);
    assert_eq!(asked.iter().map(count).collect::<Vec<_>>(), [1, 2, 3]);
    let answer = |asked: &mut ReceivedRequest, n: usize| {
        let entities = vec![json!({"inStock": true}); n];
        let body = json!({"data": {"_entities": entities}}).to_string();
        asked.answer(200, "content-type: application/json\r\n", body);
    };
    answer(&mut asked[0], 1);
    let text = coming.until("\"hasNext\":true}\r\n---").to_owned();
    assert!(
        text.contains("\"pending\":[{\"id\":\"0\",\"path\":[\"topProducts\"],\"label\":\"all\"}]"),
        "{text}"
    );
    answer(&mut asked[1], 2);
    coming.until("\"items\":[");
    answer(&mut asked[2], 3);
    let parts = coming.parts();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[0]["data"]["topProducts"].as_array().unwrap().len(), 1);
    let items = |part: &Value| part["incremental"][0]["items"].as_array().unwrap().len();
    assert_eq!((items(&parts[1]), items(&parts[2])), (2, 3));
    assert_eq!(parts[1].get("completed"), None);
    assert_eq!(parts[2]["completed"], json!([{"id": "0"}]));
    assert_eq!(parts[2]["hasNext"], false);
}

#[test]
fn later_items_that_fail_take_nothing_else_with_them() {
    for accept in [CURRENT, OF_2022] {
        let (graph, inventory) = held_back("include_subgraph_errors: { all: true }");
        let coming = Coming::ask(graph.address(), STREAMED, accept);
        let mut asked: Vec<ReceivedRequest> = (0..2).map(|_| inventory.next()).collect();
        asked.sort_by_key(|asked| asked.request.len());
        let entities = json!({"data": {"_entities": [{"inStock": true}]}}).to_string();
        asked[0].answer(200, "content-type: application/json\r\n", entities);
        asked[1].answer(500, "", "");
        let parts = coming.parts();
        assert_eq!(parts[0]["data"]["topProducts"][0]["inStock"], true);
        let last = parts.last().unwrap();
        assert_eq!(last["hasNext"], false);
        assert!(last.to_string().contains("SUBREQUEST_HTTP_ERROR"), "{last}");
    }
}

#[test]
fn items_leave_in_chunks_of_so_many_bytes() {
    let ask = |yaml: &str| {
        let graph = Graph::with(yaml);
        let query = "{ topProducts(first: 6) @stream { name } }";
        (
            Coming::ask(graph.address(), query, OF_2022).parts(),
            Coming::ask(graph.address(), query, CURRENT).parts(),
        )
    };
    let (of_2022, current) = ask("");
    assert_eq!((of_2022.len(), current.len()), (2, 2));
    let (of_2022, current) = ask("supergraph: { stream_chunk_size: 1B }");
    assert_eq!((of_2022.len(), current.len()), (7, 7));
    assert_eq!(
        of_2022[3]["incremental"][0]["path"],
        json!(["topProducts", 2])
    );
    assert_eq!(current[3]["incremental"][0]["id"], "0");
    let one = current[3]["incremental"][0]["items"].as_array().unwrap();
    assert_eq!(one.len(), 1);
}

#[test]
fn lists_are_whole_for_clients_that_do_not_read_parts() {
    let graph = Graph::start();
    let ask = |query: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json"),
        ];
        let body = json!({"query": query}).to_string();
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.as_bytes(),
        )
        .json()
    };
    let whole = ask("{ topProducts(first: 6) { name inStock } }");
    assert_eq!(ask(STREAMED), whole);
    let counted = |declared: &str, variables: Value| {
        let query = format!(
            "query ($n: {declared}) {{ topProducts(first: 6) @stream(initialCount: $n) {{ name }} me {{ name }} }}"
        );
        let body = json!({"query": query, "variables": variables}).to_string();
        let headers = [("content-type", "application/json"), ("accept", CURRENT)];
        let (path, body) = ("/graphql", body.as_bytes());
        let answer = send(graph.address(), "POST", path, &headers, body);
        String::from_utf8(answer.body).unwrap()
    };
    for (declared, variables) in [
        ("Int!", json!({"n": -1})),
        ("Int", json!({"n": null})),
        ("Int = 1", json!({"n": null})),
    ] {
        let answer: Value = serde_json::from_str(&counted(declared, variables)).unwrap();
        let error = &answer["errors"][0];
        assert_eq!(error["extensions"]["code"], "INVALID_INITIAL_COUNT");
        assert_eq!(error["path"], json!(["topProducts"]));
    }
    // What is not given is the default of the directive.
    assert!(counted("Int", json!({})).contains("\"topProducts\":[]"));
    let literal = "{ topProducts @stream(initialCount: null) { name } }";
    let code = &ask(literal)["errors"][0]["extensions"]["code"];
    assert_eq!(code, "GRAPHQL_VALIDATION_FAILED");
}

#[test]
fn parts_are_events_for_clients_of_server_sent_events() {
    for (accept, is_current) in [
        ("text/event-stream", false),
        ("text/event-stream;incrementalSpec=v0.2", true),
    ] {
        let (graph, inventory) = held_back("subscription: { enabled: true }\n");
        let mut coming = Coming::ask(graph.address(), QUERY, accept);
        let head = coming.until("\"hasNext\":true}\n\n").to_lowercase();
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("event: next\ndata: {\"data\":"), "{head}");
        assert_eq!(head.contains("\"pending\":"), is_current, "{head}");
        is_known(&mut inventory.next());
        let all = coming.until("event: complete");
        assert_eq!(all.matches("event: next").count(), 2, "{all}");
        assert!(all.contains("\"hasNext\":false}"), "{all}");
    }
    // What has nothing to come is one event.
    let graph = Graph::with("subscription: { enabled: true }\n");
    let mut coming = Coming::ask(
        graph.address(),
        "{ me { name ... @defer { name } } }",
        "text/event-stream",
    );
    let all = coming.until("event: complete");
    assert!(!all.contains("hasNext"), "{all}");
    // Without subscriptions nothing is a stream of events, and whoever reads nothing else is told so.
    let graph = Graph::with("");
    let mut coming = Coming::ask(graph.address(), QUERY, "text/event-stream");
    let refused = coming.until("SUBSCRIPTIONS_NOT_SUPPORTED");
    assert!(refused.starts_with("HTTP/1.1 406"), "{refused}");
    assert!(
        refused.contains("or `multipart/mixed` for answers in parts"),
        "{refused}"
    );
}

#[test]
fn introspection_lists_the_directives_that_are_served() {
    let directives = |yaml: &str| {
        let graph = Graph::with(&format!("supergraph: {{ introspection: true{yaml} }}"));
        let query = "{ __schema { directives { name locations args { name defaultValue } } } __type(name: \"Int\") { name } }";
        let coming = Coming::ask(graph.address(), query, "application/json");
        let answer = coming.json();
        let known = &answer["data"]["__schema"]["directives"];
        let of = |name: &str| {
            let mut all = known.as_array().unwrap().iter();
            all.find(|directive| directive["name"] == name).cloned()
        };
        [of("defer"), of("stream")]
    };
    let arg = |name: &str, default: Option<&str>| json!({"name": name, "defaultValue": default});
    let served = [
        json!({
            "name": "defer",
            "locations": ["FRAGMENT_SPREAD", "INLINE_FRAGMENT"],
            "args": [arg("if", Some("true")), arg("label", None)],
        }),
        json!({
            "name": "stream",
            "locations": ["FIELD"],
            "args": [arg("if", Some("true")), arg("label", None), arg("initialCount", Some("0"))],
        }),
    ];
    assert_eq!(directives(""), served.map(Some));
    assert_eq!(directives(", defer_support: false"), [None, None]);
}

/// A proxy between gives up on a stream on which nothing comes.
#[test]
fn event_streams_have_heartbeats_while_a_part_is_due() {
    let (graph, inventory) =
        held_back("subscription: { enabled: true, client: { heartbeat_interval: 20ms } }\n");
    let mut coming = Coming::ask(graph.address(), QUERY, "text/event-stream");
    let mut asked = inventory.next();
    coming.until(":\n\n");
    is_known(&mut asked);
    coming.until("event: complete");
}

/// Found by a random check: `inStock` may not be null, its subgraph fails, and the condition is false.
#[test]
fn what_does_not_count_outside_of_a_deferred_fragment_does_not_hold_it_up() {
    let query = "query ($no: Boolean! = false) { topProducts(first: 2) { name ... @defer(label: \"stock\") { inStock } \
         inStock @include(if: $no) ... @include(if: $no) @defer(label: \"never\") { inStock } } }";
    for (accept, announced) in [(CURRENT, true), (OF_2022, false)] {
        let (graph, inventory) = held_back("");
        let mut coming = Coming::ask(graph.address(), query, accept);
        let first = coming.until("\"hasNext\":true}\r\n---").to_owned();
        assert!(
            !first.contains("inStock") && !first.contains("never"),
            "{first}"
        );
        assert_eq!(first.contains("stock"), announced, "{first}");
        is_known(&mut inventory.next());
        let parts = coming.parts();
        let last = parts.last().unwrap().to_string();
        assert!(last.contains("\"inStock\":true"), "{last}");
        assert!(!last.contains("never"), "{last}");
    }
}
