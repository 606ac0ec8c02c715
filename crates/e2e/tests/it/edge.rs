//! What stands between clients and the five stops: batches, persisted documents, cross-origin rules, limits.

use std::{fs, net::SocketAddr, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    graph::Graph,
    http_client::{Answer, post, post_with, send},
};

const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) fn post_json(address: SocketAddr, body: &Value) -> Answer {
    send(
        address,
        "POST",
        "/graphql",
        &[JSON],
        body.to_string().as_bytes(),
    )
}

#[test]
fn a_batch_is_answered_entry_by_entry_in_order() {
    let graph = Graph::with("batching: { enabled: true, maximum_size: 4 }");
    let answer = post_json(
        graph.address(),
        &json!([
            { "query": "{ me { name } }" },
            { "query": "{ nope }" },
            3,
            { "query": "{ topProducts(first: 1) { name } }" },
        ]),
    );
    assert_eq!(answer.status, 200);
    let json = answer.json();
    assert_eq!(
        json[0],
        json!({ "data": { "me": { "name": "Ida Lindqvist" } } })
    );
    assert_eq!(
        json[1]["errors"][0]["extensions"]["code"],
        "GRAPHQL_VALIDATION_FAILED"
    );
    assert_eq!(
        json[2]["errors"][0]["extensions"]["code"],
        "INVALID_GRAPHQL_REQUEST"
    );
    assert_eq!(
        json[3]["data"]["topProducts"][0]["name"],
        "Ridge 30 backpack"
    );
    assert_eq!(json.as_array().unwrap().len(), 4);
    let entry = json!({ "query": "{ __typename }" });
    let five = post_json(graph.address(), &json!([entry, entry, entry, entry, entry]));
    assert_eq!(
        (five.status, five.codes()),
        (422, vec!["BATCH_LIMIT_EXCEEDED".into()])
    );
    let none = post_json(graph.address(), &json!([]));
    assert_eq!(
        (none.status, none.codes()),
        (400, vec!["INVALID_GRAPHQL_REQUEST".into()])
    );
}

#[test]
fn batches_are_off_unless_asked_for() {
    let answer = post_json(
        Graph::start().address(),
        &json!([{ "query": "{ __typename }" }]),
    );
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["BATCHING_NOT_ENABLED".into()])
    );
}

/// SHA-256 of `{__typename}`.
const HASH: &str = "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38";

fn apq(query: Option<&str>, hash: &str) -> Value {
    let mut body =
        json!({ "extensions": { "persistedQuery": { "version": 1, "sha256Hash": hash } } });
    if let Some(query) = query {
        body["query"] = query.into();
    }
    body
}

#[test]
fn automatic_persisted_queries() {
    let graph = Graph::start();
    let ask = |body: &Value| post_json(graph.address(), body);
    let unknown = ask(&apq(None, HASH));
    assert_eq!(
        (unknown.status, unknown.codes()),
        (200, vec!["PERSISTED_QUERY_NOT_FOUND".into()])
    );
    assert_eq!(
        unknown.json()["errors"][0]["message"],
        "PersistedQueryNotFound"
    );
    let wrong = ask(&apq(Some("{ me { name } }"), HASH));
    assert_eq!(
        (wrong.status, wrong.codes()),
        (400, vec!["PERSISTED_QUERY_HASH_MISMATCH".into()])
    );
    assert_eq!(
        ask(&apq(None, HASH)).codes(),
        ["PERSISTED_QUERY_NOT_FOUND"],
        "a lie is not kept"
    );
    assert_eq!(
        ask(&apq(Some("{__typename}"), HASH)).text(),
        r#"{"data":{"__typename":"Query"}}"#
    );
    assert_eq!(
        ask(&apq(None, HASH)).text(),
        r#"{"data":{"__typename":"Query"}}"#
    );
    let path = format!(
        "/graphql?extensions=%7B%22persistedQuery%22:%7B%22version%22:1,%22sha256Hash%22:%22{HASH}%22%7D%7D"
    );
    let get = send(
        graph.address(),
        "GET",
        &path,
        &[("apollo-require-preflight", "1")],
        b"",
    );
    assert_eq!(get.text(), r#"{"data":{"__typename":"Query"}}"#);

    let off = Graph::with("apq: { enabled: false }");
    let answer = post_json(off.address(), &apq(None, HASH));
    assert_eq!(
        (answer.status, answer.codes()),
        (200, vec!["PERSISTED_QUERY_NOT_SUPPORTED".into()])
    );
}

#[test]
fn the_number_of_registered_documents_is_bounded() {
    let graph = Graph::with("apq: { router: { cache: { in_memory: { limit: 1 } } } }");
    let other = "b3e5a2b3d0b4b4fcb2b4f2bf0a2e3f3c5b2f8fba1a4bfe2d4cde6e5d8c1d7a10";
    assert_eq!(
        post_json(graph.address(), &apq(Some("{__typename}"), HASH)).codes(),
        [""; 0]
    );
    let wrong = post_json(graph.address(), &apq(Some("{a:__typename}"), other));
    assert_eq!(wrong.codes(), ["PERSISTED_QUERY_HASH_MISMATCH"]);
    assert_eq!(post_json(graph.address(), &apq(None, HASH)).status, 200);
}

/// A folder that is removed again.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let path = std::env::temp_dir().join(format!("ogive-e2e-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            fs::write(path.join(name), text).unwrap();
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const APOLLO: &str = r#"{"format":"apollo-persisted-query-manifest","version":1,
    "operations":[{"id":"me-1","name":"Me","type":"query","body":"query Me { me { name } }"}]}"#;
const RELAY: &str = r#"{"0123456789abcdef":"query Top { topProducts(first: 1) { name } }"}"#;

#[test]
fn trusted_documents_are_found_by_id_wherever_it_is() {
    let folder = Folder::new(
        "trusted",
        &[
            ("apollo.json", APOLLO),
            ("relay.json", RELAY),
            ("plain.graphql", "{ __typename }"),
        ],
    );
    for mode in ["allow", "log", "require"] {
        let graph = Graph::with(&format!(
            "persisted_queries: {{ enabled: true, mode: {mode}, local_manifests: ['{}'] }}",
            folder.0.display()
        ));
        let address = graph.address();
        let me = r#"{"data":{"me":{"name":"Ida Lindqvist"}}}"#;
        for body in [
            json!({ "documentId": "me-1" }),
            json!({ "id": "me-1" }),
            json!({ "doc_id": "me-1", "variables": {} }),
            apq(None, "me-1"),
            json!({ "query": "query Me { me { name } }\n" }),
            // However it is written, also beside its id.
            json!({ "query": "# sent by a tool\nquery Me {\n  me { name, }\n}" }),
            json!({ "id": "me-1", "query": "query Me{me{name}}" }),
        ] {
            assert_eq!(post_json(address, &body).text(), me, "{mode} {body}");
        }
        let guarded = [("x-apollo-operation-name", "Me")];
        for path in [
            "/graphql/me-1",
            "/graphql?documentId=me-1",
            "/graphql/me-1?variables={}",
        ] {
            assert_eq!(
                send(address, "GET", path, &guarded, b"").text(),
                me,
                "{mode} {path}"
            );
        }
        assert_eq!(
            send(address, "POST", "/graphql/me-1", &[JSON], b"{}").text(),
            me
        );
        let relay = post_json(address, &json!({ "doc_id": "0123456789abcdef" }));
        assert_eq!(
            relay.json()["data"]["topProducts"][0]["name"],
            "Ridge 30 backpack"
        );
        assert_eq!(
            post_json(address, &json!({ "id": "plain" })).codes(),
            [""; 0]
        );
        // Another document beside a known id is refused.
        for query in [
            "query Me { me { alias: name } }",
            "query Me { me { name id } }",
            "{ me { name } }",
        ] {
            let other = post_json(address, &json!({ "id": "me-1", "query": query }));
            assert_eq!(other.codes(), ["PERSISTED_QUERY_HASH_MISMATCH"], "{query}");
        }
        let unknown = post_json(address, &json!({ "id": "nope" }));
        assert_eq!(
            (unknown.status, unknown.codes()),
            (400, vec!["PERSISTED_QUERY_NOT_IN_LIST".into()])
        );
        let free = post(address, "{ me { id } }");
        match mode {
            "require" => {
                assert_eq!(
                    (free.status, free.codes()),
                    (400, vec!["QUERY_NOT_IN_SAFELIST".into()])
                );
                let renamed = post(address, "query Me { other: me { name } }");
                assert_eq!(renamed.codes(), ["QUERY_NOT_IN_SAFELIST"]);
            }
            _ => assert_eq!(free.codes(), [""; 0], "{mode}"),
        }
    }
}

#[test]
fn a_known_document_can_be_required_by_its_id() {
    let folder = Folder::new("require-id", &[("relay.json", RELAY)]);
    let graph = Graph::with(&format!(
        "persisted_queries: {{ enabled: true, mode: require, require_id: true, local_manifests: ['{}/relay.json'] }}",
        folder.0.display()
    ));
    let text = post(
        graph.address(),
        "query Top { topProducts(first: 1) { name } }",
    );
    assert_eq!(
        (text.status, text.codes()),
        (400, vec!["PERSISTED_QUERY_ID_REQUIRED".into()])
    );
    assert_eq!(
        post_json(graph.address(), &json!({ "id": "0123456789abcdef" })).codes(),
        [""; 0]
    );
}

#[test]
fn without_trusted_documents_an_id_is_refused() {
    let answer = post_json(Graph::start().address(), &json!({ "id": "me-1" }));
    assert_eq!(answer.codes(), ["PERSISTED_QUERY_NOT_IN_LIST"]);
    let answer = send(Graph::start().address(), "GET", "/graphql/me-1", &[], b"");
    assert_eq!(answer.status, 404);
}

const ORIGIN: (&str, &str) = ("origin", "https://app.example.com");

fn preflight(address: SocketAddr, origin: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,x-mine"),
    ];
    send(address, "OPTIONS", "/graphql", &headers, b"")
}

#[test]
fn policies_decide_by_origin() {
    let graph = Graph::with(
        r#"
cors:
  max_age: 1m
  policies:
    - origins: [https://app.example.com]
      allow_credentials: true
      allow_headers: [content-type, x-mine]
      expose_headers: [x-cost]
    - match_origins: ["https://.*\\.example\\.org"]
      max_age: 5s
"#,
    );
    let app = preflight(graph.address(), "https://app.example.com");
    assert_eq!(app.status, 204);
    assert_eq!(
        app.header("access-control-allow-origin"),
        Some("https://app.example.com")
    );
    assert_eq!(app.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(
        app.header("access-control-allow-headers"),
        Some("content-type, x-mine")
    );
    assert_eq!(
        app.header("access-control-allow-methods"),
        Some("GET, POST, OPTIONS")
    );
    assert_eq!(app.header("access-control-max-age"), Some("60"));
    let org = preflight(graph.address(), "https://a.example.org");
    assert_eq!(
        org.header("access-control-allow-origin"),
        Some("https://a.example.org")
    );
    assert_eq!(org.header("access-control-allow-credentials"), None);
    assert_eq!(
        org.header("access-control-allow-headers"),
        Some("content-type,x-mine")
    );
    assert_eq!(org.header("access-control-max-age"), Some("5"));
    for other in ["https://a.example.org.evil.net", "null"] {
        let answer = preflight(graph.address(), other);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            None,
            "{other}"
        );
        assert_eq!(answer.header("vary"), Some("origin"), "{other}");
    }
    let answer = post_with(graph.address(), "{ me { name } }", &[ORIGIN]);
    assert_eq!(answer.codes(), [""; 0]);
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1));
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("x-cost")
    );
    let refused = post_with(graph.address(), "{ nope }", &[ORIGIN]);
    assert_eq!(
        refused.header("access-control-allow-origin"),
        Some(ORIGIN.1),
        "pages may read errors"
    );
}

#[test]
fn without_policies_other_origins_stay_out() {
    let graph = Graph::start();
    let answer = preflight(graph.address(), "https://app.example.com");
    assert_eq!(answer.status, 405);
    assert!(
        !answer
            .headers
            .iter()
            .any(|(name, _)| name.starts_with("access-control"))
    );
    let any = Graph::with("cors: { allow_any_origin: true, allow_credentials: true }");
    let answer = preflight(any.address(), "https://evil.net");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("access-control-allow-credentials"),
        None,
        "never for everybody"
    );
}

#[test]
fn requests_that_any_page_could_cause_are_refused() {
    let graph = Graph::start();
    let path = "/graphql?query=%7B__typename%7D";
    for headers in [
        &[][..],
        &[("accept", "application/json")],
        &[("content-type", "text/plain")],
    ] {
        let answer = send(graph.address(), "GET", path, headers, b"");
        assert_eq!(
            (answer.status, answer.codes()),
            (400, vec!["CSRF_ERROR".into()]),
            "{headers:?}"
        );
    }
    for header in [
        ("apollo-require-preflight", "true"),
        ("x-apollo-operation-name", "A"),
        JSON,
    ] {
        assert_eq!(
            send(graph.address(), "GET", path, &[header], b"").status,
            200,
            "{header:?}"
        );
    }
    let own = Graph::with("csrf: { required_headers: [x-mine] }");
    assert_eq!(
        send(own.address(), "GET", path, &[("x-mine", "1")], b"").status,
        200
    );
    assert_eq!(
        send(
            own.address(),
            "GET",
            path,
            &[("apollo-require-preflight", "1")],
            b""
        )
        .status,
        400
    );
    let off = Graph::with("csrf: { enabled: false }");
    assert_eq!(send(off.address(), "GET", path, &[], b"").status, 200);
}

#[test]
fn introspection_and_subgraph_messages_are_kept_back_by_default() {
    let answer = post(
        Graph::start().address(),
        "{ __schema { queryType { name } } }",
    );
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["INTROSPECTION_DISABLED".into()])
    );
    let answer = post(
        Graph::with("supergraph: { introspection: true }").address(),
        "{ __schema { queryType { name } } }",
    );
    assert_eq!(answer.codes(), [""; 0]);
}

/// Each limit lets an operation of its size through and refuses the next larger one.
#[test]
fn limits_on_operations() {
    let fragment = "{ ...F } fragment F on Query { me { ...G } } fragment G on Person { name }";
    let cases = [
        (
            "max_depth",
            2,
            "{ me { name } }",
            "{ me { reviews { stars } } }",
            "MAX_DEPTH_LIMIT",
        ),
        (
            "max_depth",
            1,
            "{ __typename }",
            fragment,
            "MAX_DEPTH_LIMIT",
        ),
        (
            "max_height",
            2,
            "{ me { name name name } }",
            "{ me { name username } }",
            "MAX_HEIGHT_LIMIT",
        ),
        (
            "max_aliases",
            1,
            "{ a: me { name } }",
            "{ a: me { b: name } }",
            "MAX_ALIASES_LIMIT",
        ),
        (
            "max_aliases",
            0,
            "{ me: me { name } }",
            "{ x: __typename }",
            "MAX_ALIASES_LIMIT",
        ),
        (
            "max_root_fields",
            1,
            "{ me { name username } }",
            "{ __typename me { name } }",
            "MAX_ROOT_FIELDS_LIMIT",
        ),
        (
            "max_directives",
            1,
            "{ me { name @skip(if: false) } }",
            "{ me { name @skip(if: false) @include(if: true) } }",
            "MAX_DIRECTIVES_LIMIT",
        ),
    ];
    let others = cases.map(|(key, ..)| key);
    for (key, limit, good, bad, code) in cases {
        let graph = Graph::with(&format!("limits: {{ {key}: {limit} }}"));
        assert_eq!(
            post(graph.address(), good).codes(),
            [""; 0],
            "{key}: {good}"
        );
        let answer = post(graph.address(), bad);
        assert_eq!(
            (answer.status, answer.codes()),
            (400, vec![code.to_owned()]),
            "{key}: {bad}"
        );
        let graph = Graph::with(&format!("limits: {{ {key}: {limit}, warn_only: true }}"));
        assert_eq!(
            post(graph.address(), bad).codes(),
            [""; 0],
            "{key} only warns"
        );
        // Named, and with every other one named.
        for (names, expected) in [
            (vec![key], 200),
            (others.iter().copied().filter(|o| *o != key).collect(), 400),
        ] {
            let names = names.join(", ");
            let graph = Graph::with(&format!(
                "limits: {{ {key}: {limit}, warn_only: [{names}] }}"
            ));
            let answer = post(graph.address(), bad);
            assert_eq!(answer.status, expected, "{key} with {names}");
        }
    }
    // Twenty bytes of variables, however they are written.
    let ask = |graph: &Graph, name: &str| {
        let body = format!(
            r#"{{"query":"query($s: Boolean!) {{ __typename @skip(if: $s) }}","variables":{{ "s": false, "{name}": 1 }}}}"#
        );
        let json = [("content-type", "application/json")];
        send(graph.address(), "POST", "/graphql", &json, body.as_bytes())
    };
    let graph = Graph::with("limits: { max_variables_size: 20 }");
    assert_eq!(ask(&graph, "abcd").codes(), [""; 0]);
    let answer = ask(&graph, "abcde");
    assert_eq!(
        (answer.status, answer.codes()),
        (400, vec!["MAX_VARIABLES_SIZE_LIMIT".to_owned()])
    );
    let variables = "%7B%22s%22:false,%22abcde%22:1%7D";
    let url = format!(
        "/graphql?query=query($s:Boolean!)%7B__typename@skip(if:$s)%7D&variables={variables}"
    );
    let guard = [("apollo-require-preflight", "true")];
    let answer = send(graph.address(), "GET", &url, &guard, b"");
    assert_eq!(answer.codes(), ["MAX_VARIABLES_SIZE_LIMIT"], "by GET, too");
    let graph = Graph::with("limits: { max_variables_size: 20, warn_only: [max_variables_size] }");
    assert_eq!(ask(&graph, "abcde").codes(), [""; 0]);
}
