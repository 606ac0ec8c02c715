//! What components do at their stages, and what becomes of it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    COMPONENT_FAULTS,
    guest::{Guest, component},
};

use crate::{
    coprocessor::{
        ME, STAGES,
        endings::{ENDINGS, STATUSES, status_of},
    },
    faults::{compare, seen},
    graph::Graph,
    http_client::{Answer, post_with},
};

/// Every hook, in the order in which a request passes them.
const HOOKS: [&str; 8] = [
    "receive",
    "operation",
    "plan",
    "subgraph-request",
    "subgraph-response",
    "executed",
    "answer",
    "respond",
];

const SHOWN: &str = "include_subgraph_errors: { all: true }\n";
const NOTES: &str = "permissions: { read_context: [stages], write_context: [stages], write_headers: [x-stages, x-in, x-of], read_headers: [x-in] }";

fn ask(graph: &Graph, headers: &[(&str, &str)]) -> Answer {
    post_with(graph.address(), ME, headers)
}

/// A graph with a component, and how it is configured.
fn with(hooks: &[(&str, &str)], options: &str) -> (Graph, Guest) {
    let guest = Guest::new(hooks);
    let graph = Graph::with(&format!("{}{SHOWN}", guest.yaml(options)));
    (graph, guest)
}

#[test]
fn components_stand_at_every_stage_and_share_a_context() {
    let note = |hook: &str| format!("(call $note @\"{hook}\" ) (i32.const 0)");
    let texts = HOOKS.map(note);
    let mut hooks: Vec<(&str, &str)> = HOOKS.into_iter().zip(texts.iter().map(|t| &**t)).collect();
    let respond = "(call $note @\"respond\" ) (call $get @\"stages\" (i32.const 32)) \
                   (call $set_header @\"x-stages\" (call $some (i32.const 32))) (i32.const 0)";
    hooks[7].1 = respond;
    let receive = "(call $note @\"receive\" ) (call $set_header @\"x-in\" @\"1\" ) (i32.const 0)";
    hooks[0].1 = receive;
    let fetch = "(call $note @\"subgraph-request\" ) (call $subgraph (i32.const 32)) \
                 (call $set_header @\"x-of\" (i32.load (i32.const 32)) (i32.load (i32.const 36))) (i32.const 0)";
    hooks[3].1 = fetch;
    let (graph, _guest) = with(&hooks, NOTES);
    graph
        .service
        .configure("accounts", |settings| settings.record = true);
    let answer = ask(&graph, &[]);
    assert_eq!((answer.status, answer.codes()), (200, vec![]));
    let all = format!("\"{}\"", HOOKS.join(" "));
    assert_eq!(answer.header("x-stages"), Some(all.as_str()));
    let recorded = graph.service.recorded();
    let mut sent = recorded[0].headers.iter();
    assert!(sent.any(|(name, value)| name == "x-of" && value == "accounts"));
}

#[test]
fn a_component_is_called_where_the_configuration_says_and_lent_what_it_says() {
    let body = "(call $set_body @\"{'data':{'me':{'name':'guest'}}}\" ) (i32.const 0)";
    let hooks = [("answer", body), ("respond", "(unreachable)")];
    let (graph, _guest) = with(&hooks, "stages: [answer], bodies: [answer]");
    let answer = ask(&graph, &[]);
    assert_eq!((answer.status, answer.codes()), (200, vec![]));
    assert_eq!(answer.json()["data"]["me"]["name"], "guest");
    let (graph, _guest) = with(&hooks, "stages: [answer]");
    assert_eq!(ask(&graph, &[]).codes(), ["PLUGIN_FAILED"]);
}

#[test]
fn a_body_of_another_kind_is_a_failure_of_the_component() {
    let body = "(call $set_body @\"[1]\" ) (i32.const 0)";
    for hook in [
        "operation",
        "subgraph-request",
        "subgraph-response",
        "executed",
        "answer",
    ] {
        let word = hook.replace('-', "_");
        let (graph, _guest) = with(&[(hook, body)], &format!("bodies: [{word}]"));
        assert_eq!(ask(&graph, &[]).codes(), ["PLUGIN_FAILED"], "{hook}");
        let lenient = format!("bodies: [{word}], on_error: continue");
        let (graph, _guest) = with(&[(hook, body)], &lenient);
        let answer = ask(&graph, &[]);
        assert_eq!((answer.status, answer.codes()), (200, vec![]), "{hook}");
    }
}

#[test]
fn whatever_a_component_does_ends_its_request_or_its_fetch() {
    let mut found = Vec::new();
    for (fault, text, of_request, of_fetch) in COMPONENT_FAULTS {
        // Every fault at two stages, every stage with one fault at least.
        for hook in ["receive", "subgraph-request"] {
            let expected = if hook == "receive" {
                of_request
            } else {
                of_fetch
            };
            let permissions = "permissions: { write_context: [stages], hosts: ['localhost:1'] }";
            let (graph, _guest) = with(&[(hook, text)], permissions);
            let answer = ask(&graph, &[]);
            assert!(!answer.text().contains("permissions"), "{fault}");
            found.push((format!("{fault} at {hook}"), seen(&answer), expected));
        }
    }
    for (hook, stage) in HOOKS.into_iter().zip(STAGES) {
        let (graph, _guest) = with(&[(hook, "(unreachable)")], "");
        let status = status_of(stage, 500);
        let expected = if status == 200 {
            "200 PLUGIN_FAILED"
        } else {
            "500 PLUGIN_FAILED"
        };
        found.push((format!("trap at {hook}"), seen(&ask(&graph, &[])), expected));
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, seen, expected)| (name.as_str(), seen.clone(), *expected))
        .collect();
    compare(&found);
}

#[test]
fn components_end_requests_at_every_stage_with_every_status() {
    for (hook, (stage, asks, _)) in HOOKS.into_iter().zip(ENDINGS) {
        for status in STATUSES {
            let text = format!(
                "(call $set_header @\"x-of\" @\"1\" ) (call $end (i32.const {status}) @\"no\" ) (i32.const 0)"
            );
            let (graph, _guest) = with(&[(hook, &text)], NOTES);
            graph
                .service
                .configure("accounts", |settings| settings.record = true);
            let answer = ask(&graph, &[]);
            assert_eq!(answer.codes(), ["PLUGIN_BREAK"], "{hook} {status}");
            assert_eq!(answer.status, status_of(stage, status), "{hook} {status}");
            assert_eq!(answer.json()["errors"][0]["message"], "no", "{hook}");
            let asked = graph.service.recorded().len();
            assert_eq!(asked, usize::from(asks), "{hook} {status}");
        }
    }
}

/// Whatever else goes wrong, and whatever becomes of its failures: it did not want the request to go on.
#[test]
fn a_component_that_asked_for_an_end_does_not_let_go_on() {
    for (hook, stage) in HOOKS.into_iter().zip(STAGES) {
        for text in [
            "(call $end (i32.const 99) @\"no\" ) (i32.const 0)",
            "(call $end (i32.const 401) @\"no\" ) (unreachable)",
            "(call $end (i32.const 401) @\"no\" ) (i32.store8 (i32.const 64) (i32.const 1)) (i32.const 64)",
        ] {
            let (graph, _guest) = with(&[(hook, text)], "on_error: continue");
            let expected = format!("{} PLUGIN_FAILED", status_of(stage, 500));
            assert_eq!(seen(&ask(&graph, &[])), expected, "{text} at {hook}");
        }
    }
}

#[test]
fn requests_go_on_without_a_component_that_fails_if_they_may() {
    for hook in HOOKS {
        let (graph, _guest) = with(&[(hook, "(unreachable)")], "on_error: continue");
        let answer = ask(&graph, &[]);
        assert_eq!((answer.status, answer.codes()), (200, vec![]), "{hook}");
    }
}

#[test]
fn an_endless_component_fails_its_own_request_and_nobody_elses() {
    let text = "(call $header @\"x-loop\" (i32.const 32)) \
                (if (i32.load8_u (i32.const 32)) (then (loop $again (br $again)))) (i32.const 0)";
    // So much takes long enough to be in the way of others, and ends however slow the machine is.
    let permissions =
        "permissions: { read_headers: [x-loop] }, limits: { fuel: 300000000, timeout: 60s }";
    let (graph, _guest) = with(&[("receive", text)], permissions);
    for round in 0..3 {
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let graph = &graph;
            let ask = move |at: usize| {
                let looping: &[(&str, &str)] = if at == 0 { &[("x-loop", "1")] } else { &[] };
                ask(graph, looping)
            };
            let running: Vec<_> = (0..4).map(|at| scope.spawn(move || ask(at))).collect();
            let running = running.into_iter();
            running.map(|running| running.join().unwrap()).collect()
        });
        assert_eq!(answers[0].codes(), ["PLUGIN_FAILED"], "{round}");
        for answer in &answers[1..] {
            assert_eq!((answer.status, answer.codes()), (200, vec![]), "{round}");
        }
    }
}

#[test]
fn one_that_traps_again_and_again_is_left_alone() {
    let guest = Guest::new(&[("receive", "(unreachable)")]);
    let path = guest.path().display();
    let graph = Graph::with(&format!(
        "plugins: [{{ name: guest, path: '{path}', on_error: continue, ejection: {{ faults: 2, time: 1h }}, limits: {{ timeout: 60s }} }}]\n"
    ));
    for _ in 0..4 {
        let answer = ask(&graph, &[]);
        assert_eq!((answer.status, answer.codes()), (200, vec![]));
    }
    // What is repaired is tried at once.
    guest.write(&component(&[(
        "receive",
        "(call $end (i32.const 401) @\"no\" ) (i32.const 0)",
    )]));
    assert_eq!(graph.reload(), Ok(()));
    assert_eq!(ask(&graph, &[]).codes(), ["PLUGIN_BREAK"]);
}

#[test]
fn components_are_replaced_under_load_and_bad_ones_change_nothing() {
    let text = |number: usize| format!("(call $set_header @\"x-of\" @\"{number}\" ) (i32.const 0)");
    let made = |number: usize| component(&[("respond", &text(number))]);
    let guest = Guest::new(&[("respond", &text(0))]);
    let graph = Graph::with(&guest.yaml(NOTES));
    /// Ends the load, also when the test fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = Over(&is_over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = ask(&graph, &[]);
                    assert_eq!((answer.status, answer.codes()), (200, vec![]));
                    assert!(answer.header("x-of").is_some());
                }
            });
        }
        for number in 1..6 {
            guest.write(&made(number));
            assert_eq!(graph.reload(), Ok(()));
            let number = number.to_string();
            assert_eq!(ask(&graph, &[]).header("x-of"), Some(number.as_str()));
            guest.write(b"\0asm, and nothing else");
            assert!(graph.reload().is_err());
            assert_eq!(ask(&graph, &[]).header("x-of"), Some(number.as_str()));
        }
        drop(over);
    });
}
