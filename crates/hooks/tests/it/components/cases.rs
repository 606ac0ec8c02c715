//! The cases of `cases.txt`: `== NAME`, `at HOOK`, what is permitted, what goes in (`header`, `body`, `part later`), what comes out
//! (`gives`), and what the hook does.

use ogive_hooks::{CallError, CallMode, Exchange, components::hook_of};

use super::guest::{exchange, plugin};
use crate::{pass, said_at_end, text};

const CASES: &str = include_str!("cases.txt");

/// What came of it, in one line.
fn said(exchange: &Exchange, outcome: &Result<(), CallError>) -> String {
    let mut out = Vec::new();
    out.extend(outcome.as_ref().err().map(ToString::to_string));
    let changes = &exchange.changes;
    if let Some(ending) = &changes.ending {
        out.push(format!(
            "ended {} {}",
            ending.status.as_u16(),
            said_at_end(ending)
        ));
        let values = ending.headers.iter().flatten();
        out.extend(values.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())));
    }
    if changes.headers {
        let values = exchange.headers.iter();
        out.extend(values.map(|(name, value)| format!("{name}={}", value.to_str().unwrap())));
    }
    if changes.status {
        out.push(format!("status {}", exchange.status.unwrap()));
    }
    if changes.uri {
        out.push(format!("uri {}", exchange.uri()));
    }
    let body = exchange.body.as_ref().filter(|_| changes.body);
    out.extend(body.map(|body| text(body).to_owned()));
    let entries = exchange.context.iter();
    let entries = entries.filter(|(name, _)| *name != "claims");
    out.extend(entries.map(|(name, value)| format!("{name}: {}", value.get())));
    out.join(" | ")
}

#[test]
fn components_do_what_they_are_written_for() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    for case in CASES.split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (head, text) = rest.split_once("\n---\n").unwrap();
        let of = |key: &str| {
            let mut lines = head.lines();
            lines
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .unwrap_or("")
        };
        let plugin = plugin(of("at"), text, of("permitted"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        // Twice, because an instance is used again.
        for _ in 0..2 {
            let mut lent = exchange(hook_of(of("at")).unwrap(), of("header"), of("body"));
            if of("part") == "later" {
                (lent.is_first, lent.has_next) = (false, Some(true));
            }
            let (exchange, outcome) = pass(&plugin, lent, CallMode::Whole);
            let found = said(&exchange, &outcome);
            if found != of("gives") {
                wrong.push(format!("{name}: {found}"));
            }
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 15, "{cases}");
}
