//! A reply is taken over as a whole or not at all, and what belongs to one operation or one hop stays with it.

use serde_json::{Value, json};

use super::{Coprocessed, EVERYTHING, ME, STAGES, all_of, nothing, playing};
use crate::http_client::send;

/// SHA-256 of `{ me { nonsense } }`.
const HASH: &str = "3888d9b48a7daeab243a01f94e793e25f6ca319f61a754d8abfed95cb42d56da";

#[test]
fn nothing_of_a_reply_that_is_wrong_somewhere_is_taken_over() {
    for stage in STAGES {
        for wrong in [
            json!({ "headers": { "a b": ["1"] } }),
            json!({ "statusCode": 99 }),
            json!({ "context": { "entries": { "big": "x".repeat(2 << 20) } } }),
        ] {
            let is_told = stage;
            let coprocessor = playing(move |told| {
                if told["stage"] != is_told {
                    return json!({});
                }
                let mut reply = wrong.clone();
                let entries = &mut reply["context"]["entries"];
                entries["left"] = 1.into();
                if reply.get("headers").is_none() {
                    reply["headers"] = json!({ "x-left": ["1"] });
                }
                reply
            });
            let more = format!("on_error: continue\n  {}", EVERYTHING.trim());
            let with = Coprocessed::with(coprocessor, &more, "");
            let answer = with.ask(ME, &[]);
            assert_eq!((answer.status, answer.codes()), (200, vec![]), "{stage}");
            assert_eq!(answer.header("x-left"), None, "{stage}");
            for told in with.told() {
                assert!(told["headers"].get("x-left").is_none(), "{stage}");
                let entries = &told["context"]["entries"];
                assert!(entries.get("left").is_none(), "{stage}: {told}");
            }
        }
    }
}

#[test]
fn entries_of_a_batch_have_a_name_and_a_kind_of_their_own() {
    let with = Coprocessed::with(
        playing(nothing),
        EVERYTHING,
        "batching: { enabled: true }\n",
    );
    let body =
        json!([{ "query": "query One { me { name } }" }, { "query": "query Two { me { id } }" }]);
    let kind = [("content-type", "application/json")];
    let address = with.graph.address();
    let answer = send(
        address,
        "POST",
        "/graphql",
        &kind,
        body.to_string().as_bytes(),
    );
    assert_eq!(answer.json().as_array().unwrap().len(), 2);
    let name = "apollo::supergraph::operation_name";
    for told in with.told() {
        let named = told["context"]["entries"].get(name);
        match told["stage"].as_str().unwrap() {
            "ExecutionRequest" => {
                let query = told["body"]["query"].as_str().unwrap();
                assert!(query.contains(named.unwrap().as_str().unwrap()), "{told}");
            }
            "SupergraphResponse" | "ExecutionResponse" => {
                let me = &told["body"]["data"]["me"];
                let is_one = named.unwrap() == "One";
                assert_eq!(me.get("name").is_some(), is_one, "{told}");
            }
            stage if stage.starts_with("Router") => assert!(named.is_none(), "{told}"),
            _ => {}
        }
    }
}

#[test]
fn a_hash_is_known_once_what_became_of_its_document_is_valid() {
    let document = "{ me { nonsense } }";
    let ask = |made: &'static str| {
        let coprocessor = playing(move |_| json!({ "body": { "query": made } }));
        let with = Coprocessed::with(coprocessor, "supergraph: { request: { body: true } }", "");
        let body = |query: Option<&str>| {
            let persisted = json!({ "persistedQuery": { "version": 1, "sha256Hash": HASH } });
            let mut body = json!({ "extensions": persisted });
            if let Some(query) = query {
                body["query"] = query.into();
            }
            body.to_string()
        };
        let kind = [("content-type", "application/json")];
        let address = with.graph.address();
        let send = |query| send(address, "POST", "/graphql", &kind, body(query).as_bytes());
        let first = send(Some(document)).codes();
        (first, send(None).codes())
    };
    let unknown = vec!["PERSISTED_QUERY_NOT_FOUND".to_owned()];
    assert_eq!(ask("{ me { name } }"), (vec![], vec![]));
    let (refused, again) = ask("{ nobody }");
    assert_ne!(refused, Vec::<String>::new());
    assert_eq!(again, unknown);
}

#[test]
fn headers_of_one_hop_do_not_reach_a_subgraph() {
    let coprocessor = playing(|told| {
        let mut headers = told["headers"].clone();
        for name in [
            "proxy-authorization",
            "te",
            "via",
            "accept",
            "x-named",
            "x-new",
        ] {
            headers[name] = json!(["said"]);
        }
        headers["connection"] = json!(["x-named"]);
        json!({ "headers": headers })
    });
    let with = Coprocessed::with(coprocessor, all_of("SubgraphRequest"), "");
    let service = &with.graph.service;
    service.configure("accounts", |settings| settings.record = true);
    assert_eq!(with.ask(ME, &[]).codes(), [""; 0]);
    let recorded = service.recorded();
    let said = recorded[0]
        .headers
        .iter()
        .filter(|(_, value)| value == "said");
    let names: Vec<&str> = said.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-new"]);
}

#[test]
fn what_a_clients_connection_names_takes_nothing_from_what_a_coprocessor_says() {
    let tenant = |told: Value| {
        let mut headers = told["headers"].clone();
        headers["x-tenant"] = json!(["7"]);
        json!({ "headers": headers })
    };
    let rules = "headers: { all: { request: [{ propagate: { named: x-tenant } }] } }\n";
    for stage in ["RouterRequest", "SupergraphRequest", "ExecutionRequest"] {
        let with = Coprocessed::with(playing(tenant), all_of(stage), rules);
        let service = &with.graph.service;
        service.configure("accounts", |settings| settings.record = true);
        assert_eq!(with.ask(ME, &[("connection", "x-tenant")]).codes(), [""; 0]);
        let recorded = service.recorded();
        let mut sent = recorded[0].headers.iter();
        assert!(
            sent.any(|(name, value)| name == "x-tenant" && value == "7"),
            "{stage}"
        );
    }
}

#[test]
fn a_subgraph_is_not_asked_at_a_socket_of_the_machine() {
    let coprocessor = playing(|_: Value| json!({ "uri": "unix:///run/some.sock" }));
    let with = Coprocessed::with(coprocessor, all_of("SubgraphRequest"), "");
    assert_eq!(with.ask(ME, &[]).codes(), ["SUBREQUEST_HTTP_ERROR"]);
}
