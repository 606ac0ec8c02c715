//! Nothing of what a client proves itself with is shown anywhere.

use std::{
    io::{self, Write},
    process::Command,
    sync::{Arc, Mutex},
};

use ogive_testbase::subgraph::StubSubgraph;
use serde_json::json;

use super::{Known, made::Made};
use crate::{
    http_client::{Answer, post_with},
    telemetry::scrape,
};

const QUERY: &str = "query Marked { me { name } }";
const API_KEY: &str = "m4rker-of-an-api-key";

/// What everybody writes.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// There is one log of a process, so the test is one.
#[test]
fn nothing_of_a_token_reaches_a_log_a_trace_a_metric_or_an_error() {
    let (name, on) = ("OGIVE_TEST_SECRECY", "on");
    if std::env::var(name).as_deref() == Ok(on) {
        nothing_of_a_token_is_shown();
    } else {
        let this =
            "identity::secrecy::nothing_of_a_token_reaches_a_log_a_trace_a_metric_or_an_error";
        let output = Command::new(std::env::current_exe().unwrap())
            .args([this, "--exact", "--nocapture"])
            .env(name, on)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }
}

fn nothing_of_a_token_is_shown() {
    let log = Written::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let folder = super::made::Folder::new();
    let digest = ring::digest::digest(&ring::digest::SHA256, API_KEY.as_bytes());
    let digest: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let keys = json!({ "keys": { "reports": { "sha256": digest } } });
    let keys = folder.write("keys.json", &keys.to_string());
    let access = folder.write("access.log", "");
    let collector = StubSubgraph::answering(200, "", "");
    let yaml = format!(
        "telemetry: {{ exporters: {{ metrics: {{ prometheus: {{ enabled: true, listen: '127.0.0.1:0' }} }}, \
         tracing: {{ otlp: {{ enabled: true, endpoint: '{}v1/traces', batch_processor: {{ scheduled_delay: 10ms }} }} }} }}, \
         access_log: {{ enabled: true, path: '{}' }} }}\n",
        collector.url(),
        access.display()
    );
    // What follows the sources stands beside `jwt`.
    let more = format!(
        ", sources: [{{ type: cookie, name: session }}] }}, api_keys: {{ file: '{}'",
        keys.display()
    );
    let known = Known::with(&more, &yaml);
    let good = known.token(json!({ "sub": "m4rker-of-a-claim" }));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let turned: String = signature.chars().rev().collect();
    let foreign = Made::new("m4rker-of-a-kid").token(&super::claims(json!({})));
    let tokens = [
        good.clone(),
        format!("{head}.{turned}"),
        known.token(json!({ "exp": 1, "sub": "m4rker-of-a-claim" })),
        known.token(json!({ "aud": "m4rker-of-an-audience" })),
        known.token(json!({ "iss": "https://m4rker-of-an-issuer.example" })),
        "m4rker.m4rker.m4rker".to_owned(),
        foreign,
    ];
    let address = known.graph.address();
    let mut shown = String::new();
    let mut ask = |headers: &[(&str, &str)]| {
        let answer: Answer = post_with(address, QUERY, headers);
        shown.push_str(&answer.text());
        shown.push_str(answer.header("www-authenticate").unwrap_or_default());
    };
    for token in &tokens {
        ask(&[("authorization", &format!("Bearer {token}"))]);
        ask(&[("authorization", &format!("Basic {token}"))]);
        ask(&[("cookie", &format!("session={token}"))]);
    }
    ask(&[("x-api-key", API_KEY)]);
    ask(&[("x-api-key", "m4rker-of-no-key")]);
    let metrics = scrape(&known.graph);
    let results = |result: &str| {
        let series =
            format!("ogive_authentications_total{{ogive_authentication_result=\"{result}\"}}");
        metrics.lines().any(|line| line.starts_with(&series))
    };
    for result in [
        "accepted",
        "INVALID_TOKEN",
        "TOKEN_EXPIRED",
        "INVALID_API_KEY",
    ] {
        assert!(results(result), "{result} in\n{metrics}");
    }
    assert!(
        metrics.contains("ogive_key_set_fetches_total{"),
        "{metrics}"
    );
    // All spans have been sent when those of the last request are there.
    let sent = || collector.requests().concat();
    while sent().matches("INVALID_API_KEY").count() == 0 {
        std::thread::yield_now();
    }
    let access = || std::fs::read_to_string(&access).unwrap();
    while access().lines().count() < tokens.len() * 3 + 2 {
        std::thread::yield_now();
    }
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("key set"), "the log is looked at: {log}");
    let secrets = tokens
        .iter()
        .flat_map(|token| token.split('.'))
        .filter(|part| part.len() > 5);
    let secrets: Vec<&str> = secrets.chain(["m4rker"]).collect();
    for (what, text) in [
        ("answers", &shown),
        ("metrics", &metrics),
        ("traces", &sent()),
        ("access log", &access()),
        ("log", &log),
    ] {
        assert!(!text.is_empty(), "{what}");
        for secret in &secrets {
            let at = text.find(secret);
            let near = at.map(|at| &text[text.floor_char_boundary(at.saturating_sub(200))..]);
            let near = near.map(|near| &near[..near.floor_char_boundary(400)]);
            assert_eq!(near, None, "`{secret}` is in the {what}");
        }
    }
}
