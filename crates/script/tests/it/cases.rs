//! The cases of `cases.txt`: `== NAME`, `at STAGE`, what goes in (`header`, `body`, `claims`, `part`), what comes out (`gives`),
//! and the script.

use ogive_coprocessor::entries::JWT_CLAIMS;
use ogive_script::{Exchange, check::check};
use serde_json::value::RawValue;

use super::{Folder, exchange, patient, stage, started, text};

const CASES: &str = include_str!("cases.txt");

/// What came of it, in one line.
fn said(exchange: &Exchange, ended: Option<&ogive_script::Outcome>) -> String {
    let mut out = Vec::new();
    if let Some(ended) = ended {
        out.push(format!("ended {}", ended.status));
        out.extend(ended.message.clone());
        out.extend(ended.body.clone().map(|body| text(Some(body))));
    }
    if exchange.has_new_headers {
        let values = exchange.headers.iter();
        out.extend(values.map(|(name, value)| format!("{name}={}", value.to_str().unwrap())));
    }
    if exchange.has_new_status {
        out.push(format!("status {}", exchange.status));
    }
    if exchange.has_new_uri {
        out.push(format!("uri {}", exchange.uri));
    }
    out.extend(exchange.body.changed().map(|body| text(Some(body))));
    let entries = exchange
        .context
        .iter()
        .filter(|(name, _)| *name != JWT_CLAIMS);
    out.extend(entries.map(|(name, value)| format!("{name}: {}", value.get())));
    out.join(" | ")
}

#[test]
fn scripts_do_what_they_do_elsewhere() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    for case in CASES.split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (head, script) = rest.split_once("\n---\n").unwrap();
        let of = |key: &str| {
            let mut lines = head.lines();
            lines
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .unwrap_or("")
        };
        let folder = Folder::with(&[
            ("main.rhai", script),
            ("common.rhai", "fn twice(text) { text + text }\n"),
        ]);
        let program = folder.program(patient());
        let unknown = check(&program).unwrap();
        if !unknown.is_empty() {
            wrong.push(format!("{name}: {unknown:?}"));
        }
        let scripts = started(&program);
        let at = stage(of("at"));
        let hook = scripts.hook(at, "products").unwrap();
        let hook = hook.unwrap_or_else(|| panic!("{name}: nothing is registered"));
        let mut lent = exchange(at, of("header"), of("body"));
        lent.is_primary = of("part") != "later";
        if !of("claims").is_empty() {
            let claims = RawValue::from_string(of("claims").to_owned()).unwrap();
            lent.context.set(JWT_CLAIMS, claims).unwrap();
        }
        let (lent, ended) = scripts.call(&hook, lent);
        let found = match ended {
            Ok(ended) => said(&lent, ended.as_ref()),
            Err(error) => error.to_string(),
        };
        let expected = of("gives");
        let is_met = match expected.strip_suffix("...") {
            Some(beginning) => found.starts_with(beginning),
            None => found == expected,
        };
        if !is_met {
            wrong.push(format!("{name}\n  expected {expected}\n  found    {found}"));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 30, "{cases}");
}

#[test]
fn calls_that_are_not_offered_are_named() {
    let script = "fn supergraph_service(service) {
    service.map_request(|request| {
        request.traceparent_from(1);
        crypto::hmac(\"a\");
        unknown();
        known();
        request.headers.contains(\"a\");
    });
}
fn known() { }
";
    let folder = Folder::with(&[("main.rhai", script)]);
    let found = check(&folder.program(patient())).unwrap();
    let names: Vec<&str> = found.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["crypto::hmac", "traceparent_from", "unknown"]);
    assert!(
        found
            .iter()
            .all(|call| call.at.starts_with("main.rhai, line ")),
        "{found:?}"
    );
}
