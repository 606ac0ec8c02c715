//! Answers and entities that are kept across requests: a gateway before two subgraphs on real sockets. One lists items, the
//! other one has their names, and says in each name which caller it was asked for.

use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};
use serde_json::{Value, json};

use crate::{
    graph::{Served, config, state},
    http_client::{Connection, post_with, request},
};

const LIST: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Query { items: [Item!]! }
type Item @key(fields: "id") { id: ID! }"#;
const NAMES: &str = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Query { title: String }
type Mutation { touch: String }
type Item @key(fields: "id") { id: ID! name: String }"#;

const ITEMS: &str = "{ items { name } }";
const PUBLIC: &str = "cache-control: public, max-age=60\r\n";
/// The list is requested each time.
const ON: &str =
    "response_cache: { enabled: true, subgraph: { subgraphs: { list: { enabled: false } } } }\n";
const AUTHORIZED: &str =
    "headers: { all: { request: [{ propagate: { named: authorization } }] } }\n";

/// A request to a subgraph.
struct Asked<'r>(&'r str);

impl Asked<'_> {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.unwrap_or("nobody")
    }
    fn body(&self) -> Value {
        serde_json::from_str(self.0.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
    fn ids(&self) -> Vec<String> {
        let body = self.body();
        let list = body["variables"]["representations"].as_array().cloned();
        let ids = list.unwrap_or_default().into_iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    }
    /// The usual answer: names of items for the caller.
    fn names(&self) -> Value {
        let caller = self.header("authorization");
        let name =
            |id: String| json!({ "__typename": "Item", "name": format!("{id} of {caller}") });
        match self.body()["query"].as_str().unwrap() {
            query if query.contains("_entities") => {
                let entities: Vec<Value> = self.ids().into_iter().map(name).collect();
                json!({ "data": { "_entities": entities } })
            }
            query if query.contains("touch") => json!({ "data": { "touch": "done" } }),
            _ => json!({ "data": { "title": format!("title of {caller}") } }),
        }
    }
}

fn reply(headers: &str, body: &Value) -> Reply {
    Reply::Whole(answer(200, headers, body.to_string().as_bytes()))
}

/// The subgraphs and the gateway before them.
struct World {
    served: Served,
    names: StubSubgraph,
    /// How many items there are.
    count: Arc<AtomicUsize>,
}

impl World {
    /// `names` answers requests for names.
    fn start(
        yaml: &str,
        names: impl Fn(usize, &Asked<'_>) -> Reply + Send + Sync + 'static,
    ) -> World {
        let count = Arc::new(AtomicUsize::new(2));
        let listed = Arc::clone(&count);
        let list = StubSubgraph::start(move |_, _| {
            let ids = 1..=listed.load(Ordering::SeqCst);
            let items = ids.map(|id| json!({ "__typename": "Item", "id": id.to_string() }));
            let items: Vec<Value> = items.collect();
            reply(PUBLIC, &json!({ "data": { "items": items } }))
        });
        let names = StubSubgraph::start(move |nth, text| names(nth, &Asked(text)));
        let (list_url, names_url) = (list.url(), names.url());
        let input = |name, url, sdl| SubgraphInput { name, url, sdl };
        let inputs = [
            input("list", &*list_url, LIST),
            input("names", &*names_url, NAMES),
        ];
        let composed = compose(&inputs, &ComposeOptions::default());
        let sdl = composed.supergraph_sdl.expect("a supergraph");
        let config = config(yaml);
        let served = Served::start(state(&sdl, &config), &config);
        World {
            served,
            names,
            count,
        }
    }
    /// With these headers on each usual answer.
    fn saying(yaml: &str, headers: &'static str) -> World {
        World::start(yaml, move |_, asked| reply(headers, &asked.names()))
    }
    fn ask_as(&self, caller: &str, query: &str) -> Value {
        let headers = [
            ("authorization", caller),
            ("x-request-id", caller),
            ("x-user", caller),
        ];
        post_with(self.served.address, query, &headers).json()
    }
    fn ask(&self, query: &str) -> Value {
        self.ask_as("nobody", query)
    }
    fn asked(&self) -> usize {
        self.names.asked()
    }
}

fn names_of(answer: &Value) -> Vec<&str> {
    let items = answer["data"]["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap_or("null"))
        .collect()
}

#[test]
fn an_entity_that_is_kept_is_not_requested_again() {
    let world = World::saying(ON, PUBLIC);
    world.count.store(99, Ordering::SeqCst);
    assert_eq!(names_of(&world.ask(ITEMS)).len(), 99);
    world.count.store(100, Ordering::SeqCst);
    let answer = world.ask(ITEMS);
    let expected: Vec<String> = (1..=100).map(|id| format!("{id} of nobody")).collect();
    assert_eq!(names_of(&answer), expected);
    let requests = world.names.requests();
    assert_eq!(Asked(&requests[1]).ids(), ["100"]);
    world.ask(ITEMS);
    assert_eq!(world.asked(), 2);
}

#[test]
fn an_answer_is_kept_as_a_whole() {
    let world = World::saying(ON, PUBLIC);
    for _ in 0..3 {
        assert_eq!(world.ask("{ title }")["data"]["title"], "title of nobody");
    }
    assert_eq!(world.asked(), 1);
}

#[test]
fn nothing_is_kept_without_the_option() {
    for yaml in [
        "",
        "response_cache: { enabled: true, subgraph: { all: { enabled: false } } }",
    ] {
        let world = World::saying(yaml, PUBLIC);
        world.ask("{ title }");
        world.ask("{ title }");
        assert_eq!(world.asked(), 2);
    }
}

#[test]
fn no_caller_gets_the_answer_to_another_one() {
    let by_header = "response_cache: { enabled: true, subgraph: { all: { private_id: { sent_header: x-user } } } }\n";
    let user = "headers: { all: { request: [{ propagate: { named: authorization } }, { propagate: { named: x-user } }] } }\n";
    // How often the names are requested for callers a, b, a and b.
    for (cache, rules, headers, requests) in [
        (ON, AUTHORIZED, "cache-control: max-age=60\r\n", 2),
        (
            ON,
            AUTHORIZED,
            "cache-control: max-age=60\r\nvary: authorization\r\n",
            2,
        ),
        (
            ON,
            AUTHORIZED,
            "cache-control: max-age=60\r\nvary: accept-language\r\n",
            2,
        ),
        (
            ON,
            AUTHORIZED,
            "cache-control: public, max-age=60\r\nvary: authorization\r\n",
            2,
        ),
        // Without `private_id` such answers are not kept.
        (ON, AUTHORIZED, "cache-control: private, max-age=60\r\n", 4),
        (by_header, user, "cache-control: private, max-age=60\r\n", 2),
        (ON, user, "cache-control: public, max-age=60\r\n", 2),
    ] {
        for query in ["{ title }", ITEMS] {
            let world = World::saying(&format!("{cache}{rules}"), headers);
            for caller in ["a", "b", "a", "b"] {
                let answer = world.ask_as(caller, query).to_string();
                assert!(
                    answer.contains(&format!(" of {caller}\"")),
                    "{headers}: {answer}"
                );
                let other = if caller == "a" { " of b\"" } else { " of a\"" };
                assert!(!answer.contains(other), "{headers}: {answer}");
            }
            assert_eq!(world.asked(), requests, "{rules}{headers}{query}");
        }
    }
}

#[test]
fn callers_share_answers_that_are_for_all_of_them() {
    let shared =
        "response_cache: { enabled: true, subgraph: { all: { shared_with_credentials: true } } }\n";
    let id = "headers: { all: { request: [{ propagate: { named: x-request-id } }] } }\n";
    let ignored = "response_cache: { enabled: true, subgraph: { all: { ignore_headers: [x-request-id] } } }\n";
    for (yaml, headers, requests) in [
        (format!("{ON}{AUTHORIZED}"), PUBLIC, 1),
        (
            format!("{shared}{AUTHORIZED}"),
            "cache-control: max-age=60\r\n",
            1,
        ),
        (format!("{ON}{id}"), PUBLIC, 2),
        (format!("{ignored}{id}"), PUBLIC, 1),
        (
            format!("{ON}{id}"),
            "cache-control: public, max-age=60\r\nvary: accept-language\r\n",
            1,
        ),
    ] {
        let world = World::saying(&yaml, headers);
        world.ask_as("a", "{ title }");
        world.ask_as("b", "{ title }");
        assert_eq!(world.asked(), requests, "{yaml}{headers}");
    }
}

#[test]
fn what_must_not_be_kept_is_requested_each_time() {
    let small = "response_cache: { enabled: true, in_memory: { entry_max_bytes: 10 } }\n";
    for (yaml, headers) in [
        (ON, ""),
        (ON, "cache-control: no-store, max-age=60\r\n"),
        (ON, "cache-control: max-age=0\r\n"),
        (ON, "cache-control: public, max-age=60\r\nvary: *\r\n"),
        (
            ON,
            "cache-control: public, max-age=60\r\nset-cookie: a=b\r\n",
        ),
        (small, PUBLIC),
    ] {
        for query in ["{ title }", ITEMS] {
            let world = World::saying(yaml, headers);
            world.ask(query);
            world.ask(query);
            assert_eq!(world.asked(), 2, "{headers}{query}");
        }
    }
    let tiny = "response_cache: { enabled: true, in_memory: { bytes: 1 } }\n";
    let world = World::saying(tiny, PUBLIC);
    world.ask("{ title }");
    world.ask("{ title }");
    assert_eq!(world.asked(), 2);
}

#[test]
fn errors_are_never_kept() {
    let with_error = |mut body: Value| {
        body["errors"] = json!([{ "message": "no" }]);
        reply(PUBLIC, &body)
    };
    let world = World::start(ON, move |_, asked| with_error(asked.names()));
    for query in ["{ title }", ITEMS] {
        let before = world.asked();
        world.ask(query);
        assert_eq!(
            world.ask(query)["errors"].as_array().map(Vec::len),
            Some(1),
            "{query}"
        );
        assert_eq!(world.asked(), before + 2, "{query}");
    }
    let failing = World::start(ON, |_, _| Reply::Whole(answer(500, PUBLIC, b"{}")));
    failing.ask("{ title }");
    failing.ask("{ title }");
    assert_eq!(failing.asked(), 2);
}

#[test]
fn an_error_of_a_missing_entity_has_its_own_path() {
    let world = World::start(ON, |_, asked| {
        let mut body = asked.names();
        if asked.ids() == ["3"] {
            body["data"]["_entities"][0]["name"] = Value::Null;
            body["errors"] = json!([{ "message": "no name", "path": ["_entities", 0, "name"] }]);
        }
        reply(PUBLIC, &body)
    });
    world.ask(ITEMS);
    world.count.store(3, Ordering::SeqCst);
    for asked in [2, 3] {
        let answer = world.ask(ITEMS);
        assert_eq!(names_of(&answer), ["1 of nobody", "2 of nobody", "null"]);
        assert_eq!(
            answer["errors"][0]["path"],
            json!(["items", 2, "name"]),
            "{answer}"
        );
        assert_eq!(world.asked(), asked);
    }
}

#[test]
fn answers_without_a_lifetime_are_kept_for_the_configured_one() {
    let yaml = "response_cache: { enabled: true, subgraph: { all: { ttl: 1m } } }";
    let world = World::saying(yaml, "");
    world.ask(ITEMS);
    world.ask(ITEMS);
    assert_eq!(world.asked(), 1);
}

#[test]
fn a_stale_answer_is_used_if_the_subgraph_fails() {
    for (set, is_excused) in [("stale_if_error: 1m", true), ("enabled: true", false)] {
        let yaml = format!("response_cache: {{ enabled: true, subgraph: {{ all: {{ {set} }} }} }}");
        let world = World::start(&yaml, |nth, asked| match nth {
            0 => reply(
                "cache-control: public, max-age=60\r\nage: 60\r\n",
                &asked.names(),
            ),
            _ => Reply::Whole(answer(503, "", b"{}")),
        });
        world.ask("{ title }");
        let again = world.ask("{ title }");
        assert_eq!(
            again["data"]["title"] == "title of nobody",
            is_excused,
            "{again}"
        );
        assert_eq!(world.asked(), 2);
    }
}

/// Something that opens once.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
    fn pass(&self) {
        let is_open = self.0.lock().unwrap();
        drop(self.1.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

#[test]
fn many_clients_that_miss_an_answer_cause_one_request() {
    const CLIENTS: usize = 250;
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let yaml = format!("{ON}http: {{ workers: 2, connections_per_client_max: 1000 }}\n");
    let world = World::start(&yaml, move |_, asked| {
        held.pass();
        reply(PUBLIC, &asked.names())
    });
    let body = json!({ "query": ITEMS }).to_string();
    let ask = request(
        "POST",
        "/graphql",
        &[("content-type", "application/json")],
        body.as_bytes(),
    );
    let connect = |_| {
        let mut connection = Connection::open(world.served.address);
        connection.write(&ask);
        connection
    };
    let clients: Vec<Connection> = (0..CLIENTS).map(connect).collect();
    gate.open();
    for mut client in clients {
        assert_eq!(
            names_of(&client.read().json()),
            ["1 of nobody", "2 of nobody"]
        );
    }
    assert_eq!(world.asked(), 1);
}

#[test]
fn an_answer_that_arrives_after_its_invalidation_is_not_kept() {
    let (arrived, answered) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (arriving, answering) = (Arc::clone(&arrived), Arc::clone(&answered));
    let world = World::start(ON, move |nth, asked| {
        if asked.names()["data"]["touch"] == "done" {
            return reply("cache-group-invalidation: \"items\"\r\n", &asked.names());
        }
        if nth == 0 {
            arriving.open();
            answering.pass();
        }
        let headers = "cache-control: public, max-age=60\r\ncache-groups: \"items\"\r\n";
        reply(headers, &asked.names())
    });
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| world.ask(ITEMS));
        arrived.pass();
        assert_eq!(world.ask("mutation { touch }")["data"]["touch"], "done");
        answered.open();
        slow.join().unwrap();
    });
    // The answer was on its way when its group was invalidated, so it is requested again, and then kept.
    world.ask(ITEMS);
    assert_eq!(world.asked(), 3);
    world.ask(ITEMS);
    assert_eq!(world.asked(), 3);
    // An entry that is kept is invalid at once.
    world.ask("mutation { touch }");
    world.ask(ITEMS);
    assert_eq!(world.asked(), 5);
}

#[test]
fn an_answer_of_a_request_from_before_an_invalidation_is_not_joined_and_kept() {
    let (arrived, answered) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (arriving, answering) = (Arc::clone(&arrived), Arc::clone(&answered));
    let yaml = format!("{ON}http: {{ workers: 1 }}\n");
    let world = World::start(&yaml, move |nth, asked| match nth {
        // No request waits for an answer that was not stored the last time.
        0 => reply("cache-control: no-store\r\n", &asked.names()),
        2 => reply("cache-group-invalidation: \"items\"\r\n", &asked.names()),
        _ => {
            if nth == 1 {
                arriving.open();
                answering.pass();
            }
            let headers = "cache-control: public, max-age=60\r\ncache-groups: \"items\"\r\n";
            reply(headers, &asked.names())
        }
    });
    world.ask("{ title }");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| world.ask("{ title }"));
        arrived.pass();
        world.ask("mutation { touch }");
        // The slow request is still on its way.
        assert_eq!(world.ask("{ title }")["data"]["title"], "title of nobody");
        answered.open();
        slow.join().unwrap();
    });
    assert_eq!(world.asked(), 4);
    world.ask("{ title }");
    assert_eq!(world.asked(), 4);
}
