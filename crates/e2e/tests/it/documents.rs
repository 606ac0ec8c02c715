//! Trusted documents from elsewhere: URLs, object stores and Hive's CDN; what is replaced, what is unknown, and whose they are.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_testbase::subgraph::{PATIENCE, Reply, StubSubgraph, answer};
use serde_json::json;

use crate::{
    edge::{Folder, post_json},
    graph::Graph,
    http_client::{Answer, JSON, send},
};

/// A place where a manifest is kept, with validators.
struct Store {
    stub: StubSubgraph,
    reply: Arc<Mutex<Reply>>,
}

impl Store {
    fn start(text: &str) -> Store {
        let reply = Arc::new(Mutex::new(Store::text(text)));
        let current = Arc::clone(&reply);
        let stub = StubSubgraph::start(move |_, request| {
            let reply = current.lock().unwrap().clone();
            let Reply::Whole(bytes) = &reply else {
                return reply;
            };
            let text = String::from_utf8_lossy(bytes);
            let tag = text.lines().find_map(|line| line.strip_prefix("etag: "));
            match tag {
                Some(tag) if request.contains(&format!("if-none-match: {tag}")) => {
                    Reply::Whole(b"HTTP/1.1 304 X\r\n\r\n".to_vec())
                }
                _ => reply,
            }
        });
        Store { stub, reply }
    }
    fn text(text: &str) -> Reply {
        let tag = format!(
            "etag: \"{}-{}\"\r\n",
            text.len(),
            text.bytes().map(u64::from).sum::<u64>()
        );
        Reply::Whole(answer(200, &tag, text.as_bytes()))
    }
    fn set(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }
    /// Waits until it was asked so many times more.
    fn wait_for(&self, more: usize) {
        let (began, wanted) = (Instant::now(), self.stub.asked() + more);
        while self.stub.asked() < wanted {
            assert!(began.elapsed() < PATIENCE, "nobody asks");
            std::thread::yield_now();
        }
    }
}

const FIRST: &str = r#"{"format":"apollo-persisted-query-manifest","version":1,
    "operations":[{"id":"me","name":"Me","type":"query","body":"query Me { me { name } }"},
                  {"id":"old","name":"Old","type":"query","body":"query Old { __typename }"}]}"#;
const SECOND: &str = r#"{"format":"apollo-persisted-query-manifest","version":1,
    "operations":[{"id":"me","name":"Me","type":"query","body":"query Me { me { name } }"},
                  {"id":"new","name":"New","type":"query","body":"query New { new: __typename }"}]}"#;

fn by_id(graph: &Graph, id: &str) -> Answer {
    post_json(graph.address(), &json!({ "documentId": id }))
}

/// Asks until the answer is one that is waited for: another manifest comes in its own time.
fn until(graph: &Graph, id: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let began = Instant::now();
    loop {
        let answer = by_id(graph, id);
        if wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{id}: {}", answer.text());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first manifest with an end of its own for `old`, so many seconds from now.
fn ending(seconds: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let end = now.unwrap().as_secs() + seconds;
    FIRST.replace(r#""id":"old""#, &format!(r#""id":"old","expires":{end}"#))
}

fn is_unknown(answer: &Answer) -> bool {
    answer.codes() == ["PERSISTED_QUERY_NOT_IN_LIST"]
}

fn is_served(answer: &Answer) -> bool {
    answer.status == 200 && answer.codes().is_empty()
}

fn sourced(url: &str, more: &str) -> Graph {
    Graph::with(&format!(
        "persisted_queries: {{ enabled: true, mode: require, sources: [{{ url: '{url}', poll_interval: 20ms, when_missing: wait{more} }}] }}"
    ))
}

/// Under load no operation that both manifests list is ever refused, and what only the one before lists lives on.
#[test]
fn another_manifest_is_taken_over_without_a_refused_operation() {
    let store = Store::start(FIRST);
    let graph = sourced(&store.stub.url(), ", keep_days: 30");
    until(&graph, "old", is_served);
    let (address, over) = (graph.address(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let served = post_json(address, &json!({ "documentId": "me" }));
                    assert!(is_served(&served), "{}", served.text());
                }
            });
        }
        for text in [SECOND, FIRST, SECOND] {
            store.set(Store::text(text));
            let id = if text == SECOND { "new" } else { "old" };
            until(&graph, id, is_served);
            store.wait_for(2);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(
        is_served(&by_id(&graph, "old")),
        "for versions of an app that are in use"
    );
    assert_eq!(
        by_id(&graph, "none").codes(),
        ["PERSISTED_QUERY_NOT_IN_LIST"]
    );
    let requests = store.stub.requests();
    assert!(requests.iter().any(|r| r.contains("if-none-match: ")));
}

#[test]
fn without_days_to_keep_it_a_replaced_document_is_gone() {
    // Nor does an end of its own keep what is withdrawn.
    for first in [FIRST.to_owned(), ending(3_600)] {
        let store = Store::start(&first);
        let graph = sourced(&store.stub.url(), "");
        until(&graph, "old", is_served);
        store.set(Store::text(SECOND));
        until(&graph, "old", is_unknown);
        assert!(is_served(&by_id(&graph, "new")));
    }
}

#[test]
fn a_document_whose_time_is_over_is_unknown() {
    let store = Store::start(FIRST);
    let graph = sourced(&store.stub.url(), "");
    until(&graph, "old", is_served);
    store.set(Store::text(&ending(2)));
    until(&graph, "old", is_unknown);
    assert!(is_served(&by_id(&graph, "me")));
}

/// How a source is asked may change while it does not answer: what it gave goes on. Another place begins anew.
#[test]
fn what_was_fetched_outlives_a_reload() {
    let (store, other) = (Store::start(FIRST), Store::start(SECOND));
    let yaml = |url: &str, more: &str| {
        format!(
            "persisted_queries: {{ enabled: true, mode: require, sources: [{{ url: '{url}', poll_interval: 20ms, when_missing: wait{more} }}] }}"
        )
    };
    let graph = Graph::with(&yaml(&store.stub.url(), ""));
    until(&graph, "old", is_served);
    store.set(Reply::Reset(Vec::new()));
    for more in [", headers: { x-key: k2 }", ", request_timeout: 5s"] {
        graph.reload_as(&yaml(&store.stub.url(), more)).unwrap();
        store.wait_for(2);
        assert!(is_served(&by_id(&graph, "old")), "{more}");
    }
    other.set(Reply::Reset(Vec::new()));
    graph.reload_as(&yaml(&other.stub.url(), "")).unwrap();
    assert!(is_unknown(&by_id(&graph, "old")));
    graph
        .reload_as(&yaml(&other.stub.url(), ", client_name: web"))
        .unwrap();
    other.set(Store::text(SECOND));
    assert!(is_unknown(&by_id(&graph, "me")));
}

/// What anybody registered by its hash before is collected like what is sent.
#[test]
fn what_is_registered_is_collected_too() {
    let folder = Folder::new(
        "documents-registered",
        &[("m.json", r#"{"1":"query Known { __typename }"}"#)],
    );
    let file = folder.0.join("unknown.json");
    let yaml = |mode: &str| {
        format!(
            "persisted_queries: {{ enabled: true, mode: {mode}, local_manifests: ['{}'], unknown: {{ file: '{}', interval: 20ms }} }}",
            folder.0.join("m.json").display(),
            file.display()
        )
    };
    let graph = Graph::with(&yaml("allow"));
    let text = "query A { a: __typename }";
    let hash = ogive_base::encode::hex(&ogive_documents::sha256(text));
    let persisted = json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } });
    let registered = json!({ "query": text, "extensions": persisted });
    assert!(is_served(&post_json(graph.address(), &registered)));
    graph.reload_as(&yaml("log")).unwrap();
    let by_hash = json!({ "extensions": persisted });
    assert!(is_served(&post_json(graph.address(), &by_hash)));
    drop(graph);
    let entries = ogive_documents::manifest::read(&fs::read(&file).unwrap(), None).unwrap();
    assert_eq!(entries.len(), 1);
}

/// With the endpoint at `/` documents have paths of their own, and so has everything else.
#[test]
fn what_has_a_path_of_its_own_is_no_document() {
    let folder = Folder::new("documents-root", &[("m.json", r#"{"1":"{ __typename }"}"#)]);
    let graph = Graph::with(&format!(
        "http: {{ graphql_endpoint: / }}\nhomepage: {{ enabled: false }}\npersisted_queries: {{ enabled: true, local_manifests: ['{}'] }}",
        folder.0.join("m.json").display()
    ));
    for path in ["/health", "/readiness"] {
        assert_eq!(
            send(graph.address(), "GET", path, &[], b"").status,
            200,
            "{path}"
        );
    }
    let served = send(graph.address(), "POST", "/1", &[JSON], b"{}");
    assert!(is_served(&served), "{}", served.text());
}

/// A file that cannot be used is refused, and what was served goes on.
#[test]
fn a_reload_with_a_broken_file_is_refused() {
    let folder = Folder::new(
        "documents-broken",
        &[("m.json", r#"{"1":"{ __typename }"}"#)],
    );
    let path = folder.0.join("m.json");
    let yaml = format!(
        "persisted_queries: {{ enabled: true, mode: require, local_manifests: ['{}'] }}",
        path.display()
    );
    let graph = Graph::with(&yaml);
    fs::write(&path, "<html>").unwrap();
    assert!(graph.reload().is_err());
    assert!(is_served(&by_id(&graph, "1")));
}

/// Each fault of a place where documents are kept, while the good manifest is served: it goes on.
#[test]
fn whatever_becomes_of_a_store_the_last_good_manifest_goes_on() {
    let whole = |text: &str| Reply::Whole(answer(200, "", text.as_bytes()));
    let bad_hash = format!(r#"{{"sha256:{}":"{{a}}"}}"#, "0".repeat(64));
    let truncated = answer(200, "", FIRST.as_bytes());
    let huge = b"HTTP/1.1 200 X\r\ncontent-length: 999999999999\r\n\r\n{".to_vec();
    let faults = [
        ("HTML", whole("<!doctype html><h1>Sign in</h1>")),
        ("no JSON", whole("{\"a\":")),
        ("another shape", whole("[1]")),
        ("another format", whole(r#"{"format":"else","version":1}"#)),
        ("a wrong hash", whole(&bad_hash)),
        (
            "truncated",
            Reply::Last(truncated[..truncated.len() - 20].to_vec()),
        ),
        ("huge", Reply::Last(huge)),
        ("gone", Reply::Whole(answer(404, "", b""))),
        ("forbidden", Reply::Whole(answer(403, "", b"<Error/>"))),
        ("no UTF-8", Reply::Whole(answer(200, "", b"\xff\xfe"))),
        ("reset", Reply::Reset(Vec::new())),
        (
            "slow",
            Reply::Hang(b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n".to_vec()),
        ),
    ];
    for (fault, reply) in faults {
        let store = Store::start(FIRST);
        // A good answer has the time that a busy machine needs.
        let timeout = if fault == "slow" { "2s" } else { "20s" };
        let more = format!(", request_timeout: {timeout}");
        let graph = sourced(&store.stub.url(), &more);
        until(&graph, "me", is_served);
        store.set(reply);
        store.wait_for(2);
        assert!(is_served(&by_id(&graph, "me")), "{fault}");
        store.set(Store::text(SECOND));
        until(&graph, "new", is_served);
    }
}

#[test]
fn what_was_fetched_is_kept_for_the_next_start() {
    let folder = Folder::new("documents-kept", &[]);
    let file = folder.0.join("kept.json");
    let kept = format!(
        ", keep_days: 1, headers: {{ x-key: k1 }}, last_known_good: '{}'",
        file.display()
    );
    let store = Store::start(FIRST);
    let graph = sourced(&store.stub.url(), &kept);
    until(&graph, "old", is_served);
    store.set(Store::text(SECOND));
    until(&graph, "new", is_served);
    drop(graph);
    assert!(store.stub.requests()[0].contains("x-key: k1\r\n"));
    store.set(Reply::Reset(Vec::new()));
    let graph = sourced(&store.stub.url(), &kept);
    for id in ["me", "new", "old"] {
        assert!(is_served(&by_id(&graph, id)), "{id}");
    }
    drop(graph);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"expires\": "), "{text}");
    // It is of that place, and everybody's: nobody else's.
    let others = format!("{kept}, client_name: web");
    let graph = sourced(&store.stub.url(), &others);
    assert!(is_unknown(&by_id(&graph, "me")));
}

#[test]
fn an_object_store_is_asked_with_a_signature() {
    let store = Store::start(FIRST);
    let endpoint = store.stub.url();
    let graph = Graph::with(&format!(
        "persisted_queries: {{ enabled: true, mode: require, sources: [{{ when_missing: wait, s3: {{ endpoint: '{endpoint}', bucket: releases, \
         key: 'web/a b.json', region: eu-central-1, access_key_id: AKIDEXAMPLE, secret_access_key: secret }} }}] }}"
    ));
    until(&graph, "me", is_served);
    let request = &store.stub.requests()[0];
    assert!(
        request.starts_with("GET /releases/web/a%20b.json HTTP/1.1\r\n"),
        "{request}"
    );
    for part in [
        "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/",
        "/eu-central-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=",
        "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
}

#[test]
fn documents_of_hive_are_fetched_once_when_they_are_asked_for() {
    let up = Arc::new(AtomicBool::new(true));
    let is_up = Arc::clone(&up);
    let cdn = StubSubgraph::start(move |_, request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let reply = match path {
            _ if !is_up.load(Ordering::SeqCst) => answer(500, "", b""),
            "/artifacts/v1/t/apps/web/1.0.0/abc" | "/artifacts/v1/t/apps/web/1.0.0/def" => {
                answer(200, "", b"query Me { me { name } }")
            }
            "/artifacts/v1/t/apps/web/1.0.0/html" => answer(200, "", b"<html>"),
            _ => answer(404, "", b""),
        };
        Reply::Whole(reply)
    });
    let graph = Graph::with(&format!(
        "batching: {{ enabled: true }}\npersisted_queries: {{ enabled: true, mode: require, sources: [{{ hive: {{ endpoint: '{}artifacts/v1/t', token: k1 }} }}] }}",
        cdn.url()
    ));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = by_id(&graph, "web~1.0.0~abc");
                assert!(is_served(&answer), "{}", answer.text());
            });
        }
    });
    assert_eq!(cdn.asked(), 1, "whoever waits, it is asked for once");
    assert!(cdn.requests()[0].contains("x-hive-cdn-key: k1\r\n"));
    // A batch, the path, and the extension of Apollo's find it, too.
    let path = send(
        graph.address(),
        "POST",
        "/graphql/web~1.0.0~abc",
        &[JSON],
        b"{}",
    );
    assert!(is_served(&path), "{}", path.text());
    let persisted = json!({ "persistedQuery": { "version": 1, "sha256Hash": "web~1.0.0~abc" } });
    let batch = json!([{ "documentId": "web~1.0.0~abc" }, { "extensions": persisted }]);
    assert_eq!(post_json(graph.address(), &batch).codes(), [""; 0]);
    // What is no document says nothing of others: the next is fetched at once.
    let html = by_id(&graph, "web~1.0.0~html");
    assert_eq!(html.codes(), ["PERSISTED_QUERIES_UNAVAILABLE"]);
    assert!(is_served(&by_id(&graph, "web~1.0.0~def")));
    let asked = cdn.asked();
    // What is not there is asked for once, and no id of another form ever is.
    for id in ["web~1.0.0~none", "web~1.0.0~none", "web~..~x", "other"] {
        assert_eq!(
            by_id(&graph, id).codes(),
            ["PERSISTED_QUERY_NOT_IN_LIST"],
            "{id}"
        );
    }
    assert_eq!(cdn.asked(), asked + 1);
    // Nobody is told that there is none while nobody knows; what was fetched is served.
    up.store(false, Ordering::SeqCst);
    let unknown = by_id(&graph, "web~1.0.0~other");
    assert_eq!(
        (unknown.status, unknown.codes()),
        (503, vec!["PERSISTED_QUERIES_UNAVAILABLE".to_owned()])
    );
    assert!(is_served(&by_id(&graph, "web~1.0.0~abc")));
    // It is left alone for a while, which is longer each time.
    let (began, mut number) = (Instant::now(), 0);
    loop {
        let asked = cdn.asked();
        by_id(&graph, &format!("web~1.0.0~more{number}"));
        if cdn.asked() == asked {
            break;
        }
        number += 1;
        assert!(began.elapsed() < PATIENCE, "it is asked again and again");
    }
}

#[test]
fn documents_and_rules_are_a_clients_own() {
    let folder = Folder::new(
        "documents-clients",
        &[
            ("all.json", r#"{"1":"query All { __typename }"}"#),
            ("web.json", r#"{"1":"query Web { web: __typename }"}"#),
            (
                "apollo.json",
                r#"{"format":"apollo-persisted-query-manifest","version":1,"operations":[{"id":"2","clientName":"ios","body":"query Ios { ios: __typename }"}]}"#,
            ),
        ],
    );
    let at = |name: &str| folder.0.join(name).display().to_string();
    let graph = Graph::with(&format!(
        "persisted_queries: {{ enabled: true, mode: allow, local_manifests: ['{}', '{}'], sources: [{{ path: '{}', client_name: web }}],
           clients: [{{ name: ios, mode: require }}, {{ name: web, mode: require, require_id: true }}] }}",
        at("all.json"), at("apollo.json"), at("web.json")
    ));
    let ask = |client: &str, body: serde_json::Value| {
        let headers = [JSON, ("apollographql-client-name", client)];
        send(
            graph.address(),
            "POST",
            "/graphql",
            &headers,
            body.to_string().as_bytes(),
        )
    };
    assert_eq!(
        ask("", json!({ "id": "1" })).text(),
        r#"{"data":{"__typename":"Query"}}"#
    );
    assert_eq!(
        ask("web", json!({ "id": "1" })).text(),
        r#"{"data":{"web":"Query"}}"#
    );
    assert_eq!(
        ask("web", json!({ "id": "2" })).codes(),
        ["PERSISTED_QUERY_NOT_IN_LIST"]
    );
    assert!(is_served(&ask("ios", json!({ "id": "2" }))));
    let query = |text: &str| json!({ "query": text });
    assert!(is_served(&ask("ios", query("query Ios{ios:__typename}"))));
    assert!(is_served(&ask("android", query("{ x: __typename }"))));
    assert_eq!(
        ask("ios", query("query Web{web:__typename}")).codes(),
        ["QUERY_NOT_IN_SAFELIST"]
    );
    assert_eq!(
        ask("web", query("query Web{web:__typename}")).codes(),
        ["PERSISTED_QUERY_ID_REQUIRED"]
    );
    // By the hash of its text, whatever its id is (GraphQL over HTTP, appendix A).
    let hash = ogive_base::encode::hex(&ogive_documents::sha256("query Ios { ios: __typename }"));
    let prefixed = json!({ "documentId": format!("sha256:{hash}") });
    assert!(is_served(&ask("ios", prefixed)));
    // An id that says which document it is, beside another one.
    let other = json!({ "documentId": format!("sha256:{hash}"), "query": "{ x: __typename }" });
    assert_eq!(
        ask("android", other).codes(),
        ["PERSISTED_QUERY_HASH_MISMATCH"]
    );
    let unknown =
        json!({ "documentId": format!("sha256:{}", "0".repeat(64)), "query": "{ x: __typename }" });
    assert_eq!(
        ask("android", unknown).codes(),
        ["PERSISTED_QUERY_HASH_MISMATCH"]
    );
}

#[test]
fn what_is_unknown_is_served_and_written_down() {
    let folder = Folder::new(
        "documents-unknown",
        &[("m.json", r#"{"1":"query Known { __typename }"}"#)],
    );
    let (manifest, file) = (folder.0.join("m.json"), folder.0.join("unknown.json"));
    for mode in [
        "mode: log",
        "mode: require, require_id: true, warn_only: true",
    ] {
        let _ = fs::remove_file(&file);
        let graph = Graph::with(&format!(
            "persisted_queries: {{ enabled: true, {mode}, local_manifests: ['{}'], unknown: {{ file: '{}', interval: 20ms }} }}",
            manifest.display(),
            file.display()
        ));
        for text in [
            "query Known{__typename}",
            "query A { a: __typename }",
            "query A { a: __typename }",
        ] {
            let served = post_json(graph.address(), &json!({ "query": text }));
            assert!(is_served(&served), "{}", served.text());
        }
        drop(graph);
        let written = fs::read(&file).unwrap();
        let entries = ogive_documents::manifest::read(&written, None).unwrap();
        let a = entries
            .iter()
            .find(|e| e.text.contains("a: __typename"))
            .unwrap();
        assert_eq!(a.requests, Some(2), "{mode}");
        // With `require_id` a known document without its id is one more.
        assert_eq!(
            entries.len(),
            if mode.contains("warn_only") { 2 } else { 1 },
            "{mode}"
        );
    }
}

#[test]
fn what_is_refused_is_written_down_too() {
    let folder = Folder::new(
        "documents-log-unknown",
        &[("m.json", r#"{"1":"query Known { __typename }"}"#)],
    );
    let (manifest, file) = (folder.0.join("m.json"), folder.0.join("unknown.json"));
    for (options, is_asked_served, written) in [
        ("mode: require, log_unknown: true", false, Some(1)),
        ("mode: allow, log_unknown: true", true, Some(1)),
        ("mode: require", false, None),
    ] {
        let _ = fs::remove_file(&file);
        let graph = Graph::with(&format!(
            "persisted_queries: {{ enabled: true, {options}, local_manifests: ['{}'], unknown: {{ file: '{}', interval: 20ms }} }}",
            manifest.display(),
            file.display()
        ));
        let ask = |text: &str| post_json(graph.address(), &json!({ "query": text }));
        assert!(is_served(&ask("query Known{__typename}")));
        let asked = ask("query A { a: __typename }");
        assert_eq!(is_served(&asked), is_asked_served, "{}", asked.text());
        if !is_asked_served {
            assert_eq!(asked.codes(), ["QUERY_NOT_IN_SAFELIST"]);
        }
        drop(graph);
        let entries = fs::read(&file).ok();
        let entries = entries.map(|bytes| ogive_documents::manifest::read(&bytes, None).unwrap());
        assert_eq!(entries.map(|entries| entries.len()), written, "{options}");
    }
}

/// 1,000 ways to write a trusted document pass, and no other document does.
#[test]
fn however_it_is_written_it_passes_and_nothing_else_does() {
    let known = "query A($x: Int = 1) { topProducts(first: $x) { name ...F } } fragment F on Product { price { amount } }";
    let folder = Folder::new(
        "documents-written",
        &[("m.json", &json!({ "1": known }).to_string())],
    );
    let path = folder.0.display().to_string();
    let graph = Graph::with(&format!(
        "persisted_queries: {{ enabled: true, mode: require, local_manifests: ['{path}'] }}"
    ));
    let tokens: Vec<&str> = known.split(' ').collect();
    let mut rng = ogive_testbase::Rng::new(4);
    let (first, second) = known.split_at(known.find("fragment").unwrap());
    let _ = first;
    for round in 0..1_000 {
        let space = |rng: &mut ogive_testbase::Rng| {
            *rng.pick(&[" ", "\n", " , ", "\t# it's {\n", "\r\n  "])
        };
        let mut text = String::new();
        let mut parts: Vec<&[&str]> = vec![
            &tokens[..tokens.len() - second.split(' ').count()],
            &tokens[tokens.len() - second.split(' ').count()..],
        ];
        if rng.chance(50) {
            parts.reverse();
        }
        for token in parts.concat() {
            text.push_str(token);
            text.push_str(space(&mut rng));
        }
        if round % 2 == 0 {
            let served = post_json(graph.address(), &json!({ "query": text }));
            assert!(is_served(&served), "{text}: {}", served.text());
        } else {
            let names = ["name", "amount", "first", "$x", "A", "F", "1"];
            let name = *rng.pick(&names);
            let other = text.replacen(name, &format!("{name}2"), 1);
            let refused = post_json(graph.address(), &json!({ "query": other }));
            assert_eq!(refused.codes(), ["QUERY_NOT_IN_SAFELIST"], "{other}");
        }
    }
}
