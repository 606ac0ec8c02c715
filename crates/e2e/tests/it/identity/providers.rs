//! What becomes of requests when whoever provides the keys fails. `docs/faults.md` is made from the table.

use serde_json::json;

use super::{
    ISSUER, claims,
    made::{Folder, Made, Server, jwks, ok},
};
use crate::{
    authorization::RESTRICTED,
    faults::{compare, seen},
    graph::Graph,
    http_client::post_with,
};

/// A fault of an identity provider.
pub(crate) struct Case {
    pub(crate) fault: &'static str,
    /// How it answers; `None` closes the connection. `KEYS` is a good set.
    answer: Option<&'static str>,
    /// What a client with a good token of a known key is answered.
    pub(crate) known: &'static str,
    /// What one with a token of a key that is not known is answered.
    pub(crate) unknown: &'static str,
    /// What one is answered while no keys have ever come.
    pub(crate) never: &'static str,
}

const UNAVAILABLE: &str = "503 AUTHENTICATION_UNAVAILABLE";

const fn case(fault: &'static str, answer: Option<&'static str>) -> Case {
    Case {
        fault,
        answer,
        known: "200",
        unknown: UNAVAILABLE,
        never: UNAVAILABLE,
    }
}

pub(crate) const CASES: &[Case] = &[
    case("closes instead of answering", None),
    case(
        "answers with HTML",
        Some("200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>"),
    ),
    case("answers 500", Some("500 Oh\r\ncontent-length: 0\r\n\r\n")),
    case("answers 401", Some("401 No\r\ncontent-length: 0\r\n\r\n")),
    case(
        "redirects to another host",
        Some("302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
    ),
    case(
        "never ends its answer",
        Some("200 OK\r\ncontent-length: 500\r\n\r\n{\"keys\":["),
    ),
    case(
        "announces 200 MB",
        Some("200 OK\r\ncontent-length: 200000000\r\n\r\n{\"keys\":["),
    ),
    case(
        "answers with JSON that has a member twice",
        Some("200 OK\r\ncontent-length: 21\r\n\r\n{\"keys\":[],\"keys\":[]}"),
    ),
    case("speaks no HTTP", Some("")),
];

#[test]
fn faults_of_identity_providers() {
    let mut all = Vec::new();
    for case in CASES {
        let key = Made::new("1");
        let server = Server::json(&jwks(&[&key]));
        let folder = Folder::new();
        let fault = case.answer.map(|answer| match answer {
            "" => "hello\r\n\r\n".to_owned(),
            answer => format!("HTTP/1.1 {answer}"),
        });
        let begin = |kept: &str| {
            let yaml = format!(
                "authentication: {{ router: {{ jwt: {{ last_known_good: '{kept}', refetch_interval: 0s, jwks: [{{ url: '{}', \
                 poll_interval: 1h, request_timeout: 2s, issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n\
                 authorization: {{ directives: enforce, require_authentication: true }}\n",
                server.url()
            );
            Graph::changed(&yaml, RESTRICTED)
        };
        let ask = |graph: &Graph, key: &Made, user: &str| {
            let bearer = format!("Bearer {}", key.token(&claims(json!({ "sub": user }))));
            let answer = post_with(
                graph.address(),
                "{ me { name } }",
                &[("authorization", &bearer)],
            );
            seen(&answer)
        };
        let kept = folder.path().display().to_string();
        let graph = begin(&kept);
        assert_eq!(ask(&graph, &key, "a"), "200");
        server.answer(fault);
        all.push((case.fault, ask(&graph, &Made::new("2"), "b"), case.unknown));
        all.push((case.fault, ask(&graph, &key, "c"), case.known));
        // A start finds what was kept; without it there is nothing to judge by.
        all.push((case.fault, ask(&begin(&kept), &key, "d"), case.known));
        let graph = begin("");
        all.push((case.fault, ask(&graph, &key, "e"), case.never));
        server.answer(Some(ok(&jwks(&[&key]), "")));
        all.push((case.fault, ask(&graph, &key, "f"), case.known));
    }
    compare(&all);
}
