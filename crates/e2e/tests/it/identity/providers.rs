//! What becomes of requests when whoever provides the keys fails. `docs/faults.md` is made from the table.

use ogive_identity::{KeyOrigin, KeySetOptions};
use serde_json::json;

use super::{
    ISSUER, claims,
    made::{Folder, Made, Server, jwks, ok},
};
use crate::{
    authorization::RESTRICTED,
    certificates::{self, Authority},
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
    /// What the first is answered after a start, at which there is what was kept.
    started: &'static str,
    /// Where it is, instead of at a server that answers; `PORT` is that of one that speaks no TLS, `STRANGER` that of one with
    /// a certificate of an authority that nobody trusts.
    url: Option<&'static str>,
}

const UNAVAILABLE: &str = "503 AUTHENTICATION_UNAVAILABLE";

const fn case(fault: &'static str, answer: Option<&'static str>) -> Case {
    Case {
        fault,
        answer,
        known: "200",
        unknown: UNAVAILABLE,
        never: UNAVAILABLE,
        started: "200",
        url: None,
    }
}

/// One that cannot be reached from the start on.
const fn away(fault: &'static str, url: &'static str) -> Case {
    Case {
        url: Some(url),
        ..case(fault, None)
    }
}

const REFUSED: &str = "401 INVALID_TOKEN";

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
    case("speaks no HTTP", Some("HELLO")),
    case("accepts, and never answers", Some("")),
    Case {
        unknown: REFUSED,
        never: REFUSED,
        started: REFUSED,
        ..case(
            "answers with other keys (the known one is good for `removed_keys_grace` more, until the next start)",
            Some("KEYS"),
        )
    },
    away("cannot be reached", "http://127.0.0.1:1/"),
    away("has no TLS", "https://127.0.0.1:PORT/"),
    away(
        "has a certificate that nobody vouches for",
        "https://localhost:STRANGER/",
    ),
];

#[test]
fn faults_of_identity_providers() {
    let certificates = certificates::Folder::new("stranger");
    let stranger = certificates.identity("server", &Authority::new().issue("localhost"));
    let stranger = Graph::with(&format!("tls: {{ supergraph: {{ {stranger} }} }}"));
    let port = stranger.address().port();
    // All at a time: some take the whole time-out, and that leaves a good answer the time that a busy machine needs.
    let all: Vec<_> = std::thread::scope(|scope| {
        let cases: Vec<_> = CASES
            .iter()
            .map(|case| scope.spawn(move || seen_with(case, port)))
            .collect();
        let cases = cases.into_iter();
        cases.flat_map(|case| case.join().unwrap()).collect()
    });
    compare(&all);
}

/// What clients are answered while the provider has a fault, and what is expected.
fn seen_with(case: &'static Case, stranger: u16) -> Vec<(&'static str, String, &'static str)> {
    let mut all = Vec::new();
    let key = Made::new("1");
    let server = Server::json(&jwks(&[&key]));
    let folder = Folder::new();
    let port = server.address.port().to_string();
    let url = case.url.map(|url| {
        url.replace("PORT", &port)
            .replace("STRANGER", &stranger.to_string())
    });
    let url = url.unwrap_or_else(|| server.url());
    let fault = case.answer.map(|answer| match answer {
        "" => String::new(),
        "HELLO" => "hello\r\n\r\n".to_owned(),
        "KEYS" => ok(&jwks(&[&Made::new("3")]), ""),
        answer => format!("HTTP/1.1 {answer}"),
    });
    let begin = |kept: &str| {
        let yaml = format!(
            "authentication: {{ router: {{ jwt: {{ last_known_good: '{kept}', refetch_interval: 0s, jwks: [{{ url: '{}', \
             poll_interval: 1h, request_timeout: 10s, issuers: ['{ISSUER}'], audiences: [us] }}] }} }} }}\n\
             authorization: {{ directives: enforce, require_authentication: true }}\n",
            url
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
    let mut options = KeySetOptions::new(KeyOrigin::Url(url.clone())).source;
    options.kept = Some(folder.path().into());
    let file = options.kept_file().unwrap();
    if case.url.is_some() {
        // As an earlier process has left it.
        std::fs::write(&file, jwks(&[&key])).unwrap();
    }
    let graph = begin(&kept);
    assert_eq!(ask(&graph, &key, "a"), "200", "{}", case.fault);
    // The keys are good before they are on disk.
    while !file.exists() {
        std::thread::yield_now();
    }
    server.answer(fault);
    all.push((case.fault, ask(&graph, &Made::new("2"), "b"), case.unknown));
    all.push((case.fault, ask(&graph, &key, "c"), case.known));
    // A start finds what was kept; without it there is nothing to judge by.
    all.push((case.fault, ask(&begin(&kept), &key, "d"), case.started));
    let graph = begin("");
    all.push((case.fault, ask(&graph, &key, "e"), case.never));
    if case.url.is_none() {
        server.answer(Some(ok(&jwks(&[&key]), "")));
        all.push((case.fault, ask(&graph, &key, "f"), "200"));
    }
    all
}
