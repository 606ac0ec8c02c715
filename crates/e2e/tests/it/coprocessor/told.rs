//! What a coprocessor is told.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use super::{Coprocessed, EVERYTHING, ME, STAGES, nothing, playing, schema::check};
use crate::http_client::{Connection, send};

#[test]
fn every_stage_is_told_in_its_order_and_in_the_form_of_the_protocol() {
    // Whatever it says of the whole message, nothing changes.
    for echo in [false, true] {
        let coprocessor = playing(move |told| if echo { told } else { json!({}) });
        let with = Coprocessed::with(coprocessor, EVERYTHING, "");
        let plain = crate::graph::Graph::with("");
        let expected = crate::http_client::post_with(plain.address(), ME, &[("x-a", "1")]);
        let answer = with.ask(ME, &[("x-a", "1")]);
        let sdl = with.told()[0]["sdl"].as_str().unwrap().to_owned();
        assert!(sdl.contains("enum join__Graph"), "{sdl}");
        assert_eq!(answer.text(), expected.text());
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("content-type"),
            expected.header("content-type")
        );
        assert_eq!(with.stages(), STAGES);
        let told = with.told();
        for message in &told {
            check(message);
            assert_eq!(message["id"], told[0]["id"]);
        }
        let (router, supergraph, execution) = (&told[0], &told[1], &told[2]);
        assert_eq!(router["path"], "/graphql");
        assert_eq!(router["headers"]["x-a"], json!(["1"]));
        let body: Value = serde_json::from_str(router["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["query"], ME);
        assert_eq!(supergraph["body"]["query"], ME);
        assert_eq!(execution["queryPlan"]["kind"], "QueryPlan");
        let (fetch, fetched) = (&told[3], &told[4]);
        assert_eq!(fetch["serviceName"], "accounts");
        assert_eq!(fetch["subgraphRequestId"], fetched["subgraphRequestId"]);
        assert!(fetched["body"]["data"]["me"]["name"].is_string());
        assert_eq!(told[7]["body"], answer.text());
        assert_eq!(told[6]["body"], answer.json());
        assert_eq!(told[6]["hasNext"], false);
        let entries = &told[7]["context"]["entries"];
        assert_eq!(entries["apollo::supergraph::operation_name"], "Me");
        assert_eq!(entries["apollo::supergraph::operation_kind"], "query");
    }
}

#[test]
fn what_is_not_selected_is_not_told_and_what_is_off_is_not_asked() {
    let with = Coprocessed::with(
        playing(nothing),
        "router: { request: { method: true } }\n  subgraph: { all: { response: { status_code: true } } }",
        "",
    );
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    let told = with.told();
    let members =
        |at: usize| -> Vec<String> { told[at].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(members(0), ["version", "stage", "control", "id", "method"]);
    assert_eq!(
        members(1),
        ["version", "stage", "control", "id", "statusCode"]
    );
    assert_eq!(told.len(), 2);
}

#[test]
fn stages_have_urls_of_their_own_and_share_a_context() {
    let other = playing(|told| {
        assert_eq!(told["context"]["entries"]["one"], json!([1, {"two": 2}]));
        json!({ "context": { "entries": { "one": null, "two": true } } })
    });
    let last = playing(|told| {
        let entries = told["context"]["entries"].as_object().unwrap();
        assert!(!entries.contains_key("one"));
        assert_eq!(entries["two"], true);
        json!({})
    });
    let stages = format!(
        "router: {{ request: {{ context: all }}, response: {{ context: all, url: '{}' }} }}\n  supergraph: {{ request: {{ context: {{ selective: [one] }}, url: '{}' }} }}",
        last.url(),
        other.url()
    );
    let first = playing(|_| json!({ "context": { "entries": { "one": [1, {"two": 2}] } } }));
    let with = Coprocessed::with(first, &stages, "");
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    assert_eq!((other.asked(), last.asked()), (1, 1));
    assert_eq!(with.stages(), ["RouterRequest"]);
}

#[test]
fn entries_that_an_answer_leaves_out_are_gone_at_every_later_stage() {
    let removing = STAGES.iter().filter(|stage| **stage != "RouterResponse");
    for removing in removing.copied() {
        let coprocessor = playing(move |told| {
            let mut entries = told["context"]["entries"].clone();
            let stage = told["stage"].as_str().unwrap();
            if stage == "RouterRequest" {
                entries["mine"] = 1.into();
            }
            if stage == removing {
                let entries = entries.as_object_mut().unwrap();
                entries.remove("mine").unwrap();
            }
            json!({ "context": { "entries": entries } })
        });
        // The entry is there before it is removed, unless that is at the stage that sets it.
        let with = Coprocessed::with(coprocessor, EVERYTHING, "");
        assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
        let at = STAGES.iter().position(|stage| *stage == removing).unwrap();
        for (stage, told) in with.told().iter().enumerate() {
            let has = told["context"]["entries"].get("mine").is_some();
            assert_eq!(has, (1..=at).contains(&stage), "{removing}: {told}");
        }
    }
}

/// What is of an operation may have been left before it began.
#[test]
fn what_is_removed_at_an_operation_does_not_come_back_from_its_request() {
    let policies = "apollo::authorization::required_policies";
    for left in [json!({}), json!({ policies: null })] {
        let coprocessor = playing(move |told| match told["stage"].as_str() {
            Some("RouterRequest") => {
                json!({ "context": { "entries": { policies: { "stock": true } } } })
            }
            Some("SupergraphRequest") => json!({ "context": { "entries": left.clone() } }),
            _ => json!({}),
        });
        let with = Coprocessed::with(coprocessor, EVERYTHING, "");
        assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
        for (stage, told) in with.told().iter().enumerate() {
            let has = told["context"]["entries"].get(policies).is_some();
            assert_eq!(has, stage == 1, "{told}");
        }
    }
}

#[test]
fn each_request_of_a_batch_is_told_by_itself_and_the_list_once() {
    let with = Coprocessed::with(
        playing(nothing),
        EVERYTHING,
        "batching: { enabled: true }\n",
    );
    let body = json!([{ "query": ME }, { "query": "{ me { name } } # 2" }]).to_string();
    let kind = [("content-type", "application/json")];
    let answer = send(
        with.graph.address(),
        "POST",
        "/graphql",
        &kind,
        body.as_bytes(),
    );
    assert_eq!(answer.json().as_array().unwrap().len(), 2);
    let stages = with.stages();
    let count = |stage: &str| stages.iter().filter(|known| *known == stage).count();
    for stage in STAGES {
        let expected = if stage.starts_with("Router") { 1 } else { 2 };
        assert_eq!(count(stage), expected, "{stage}");
    }
}

#[test]
fn a_get_has_no_body_and_says_all_in_its_path() {
    let with = Coprocessed::with(playing(nothing), EVERYTHING, "");
    let mut connection = Connection::open(with.graph.address());
    connection.write(
        b"GET /graphql?query=%7Bme%7Bname%7D%7D HTTP/1.1\r\nhost: a\r\napollo-require-preflight: 1\r\n\r\n",
    );
    let answer = connection.read();
    assert_eq!(answer.codes(), [""; 0]);
    let told = with.told();
    assert_eq!(told[0]["method"], "GET");
    assert_eq!(told[0]["path"], "/graphql?query=%7Bme%7Bname%7D%7D");
    assert!(told[0].get("body").is_none());
    assert_eq!(told[1]["body"]["query"], "{me{name}}");
}

/// A coprocessor that changes nothing, on a unix socket, over HTTP/1.1 or HTTP/2; ends with the process.
fn on_unix_socket(path: &std::path::Path, is_http2: bool) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    // One that an earlier process of the same number has left.
    let _ = std::fs::remove_file(path);
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let counting = Arc::clone(&counting);
                let service = hyper::service::service_fn(move |_request| {
                    counting.fetch_add(1, Ordering::SeqCst);
                    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"{}"));
                    async { Ok::<_, std::convert::Infallible>(hyper::Response::new(body)) }
                });
                let stream = TokioIo::new(stream);
                if is_http2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    tokio::spawn(server.serve_connection(stream, service));
                } else {
                    let server = hyper::server::conn::http1::Builder::new();
                    tokio::spawn(server.serve_connection(stream, service));
                }
            }
        });
    });
    asked
}

#[test]
fn it_is_spoken_to_over_http2_and_unix_sockets() {
    for (http2, is_http2) in [("enable", false), ("http2only", true)] {
        let name = format!("ogive-coprocessor-{}-{http2}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let asked = on_unix_socket(&path, is_http2);
        let yaml = format!(
            "coprocessor:\n  url: 'unix://{}'\n  timeout: 20s\n  client: {{ experimental_http2: {http2} }}\n  router: {{ request: {{ method: true }} }}\n",
            path.display()
        );
        let graph = crate::graph::Graph::with(&yaml);
        let answer = crate::http_client::post_with(graph.address(), ME, &[]);
        assert_eq!(
            (answer.status, answer.codes()),
            (200, Vec::new()),
            "{http2}"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{http2}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_the_client_says_of_itself_is_told() {
    let with = Coprocessed::with(playing(nothing), EVERYTHING, "");
    let body = json!({ "query": ME, "extensions": { "mark": { "z": 1.10, "a": [2] } } });
    let headers = [
        ("content-type", "application/json"),
        ("apollographql-client-name", "shop"),
        ("apollographql-client-version", "1.2"),
    ];
    let body = body.to_string();
    let address = with.graph.address();
    let answer = send(address, "POST", "/graphql", &headers, body.as_bytes());
    assert_eq!(answer.codes(), [""; 0]);
    for (stage, told) in STAGES.iter().zip(with.told()) {
        let entries = &told["context"]["entries"];
        assert_eq!(entries["apollo::telemetry::client_name"], "shop", "{stage}");
        let version = &entries["apollo::telemetry::client_version"];
        assert_eq!(version, "1.2", "{stage}");
        if matches!(*stage, "SupergraphRequest" | "ExecutionRequest") {
            let mark = &told["body"]["extensions"]["mark"];
            assert_eq!(mark.to_string(), r#"{"z":1.1,"a":[2]}"#, "{stage}");
        }
    }
}
