//! The cases of `cases.txt`: `== NAME`, `at STAGE`, what goes in (`header`, `body`, `claims`, `part`), what comes out (`gives`),
//! and the script.

use ogive_hooks::{CallMode, Exchange, HookEngine, entries::JWT_CLAIMS, scripts::check};
use serde_json::value::RawValue;

use super::{Folder, exchange, patient, stage, started};
use crate::{pass, said_at_end, text};

const CASES: &str = include_str!("cases.txt");

/// What came of it, in one line.
fn said(exchange: &Exchange) -> String {
    let (mut out, changes) = (Vec::new(), &exchange.changes);
    if let Some(ending) = &changes.ending {
        out.push(format!("ended {}", ending.status.as_u16()));
        out.push(said_at_end(ending));
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
        // Of what fails something may be known before.
        if !unknown.is_empty() && !of("gives").starts_with("it failed") {
            wrong.push(format!("{name}: {unknown:?}"));
        }
        let scripts = started(&program);
        let at = stage(of("at"));
        let mut lent = exchange(at, of("header"), of("body"));
        lent.is_first = of("part") != "later";
        if !of("claims").is_empty() {
            let claims = RawValue::from_string(of("claims").to_owned()).unwrap();
            lent.context.set(JWT_CLAIMS, claims).unwrap();
        }
        assert!(
            scripts.mode(&lent).is_some(),
            "{name}: nothing is registered"
        );
        let (lent, called) = pass(&scripts, lent, CallMode::Whole);
        let found = match called {
            Ok(()) => said(&lent),
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

/// What `check` says of the members that a script uses.
fn misused(script: &str) -> Vec<String> {
    let folder = Folder::with(&[("main.rhai", script)]);
    let found = check(&folder.program(patient())).unwrap();
    let found = found.iter();
    found
        .map(|one| format!("{} {}", one.name, one.why))
        .collect()
}

#[test]
fn members_that_are_not_there_or_cannot_be_set_are_named() {
    for (service, way, used, expected) in [
        ("router", "request", "r.uri = \"x\"", "r.uri cannot be set"),
        (
            "router",
            "request",
            "r.method = \"GET\"",
            "r.method cannot be set",
        ),
        ("router", "request", "r.body.query", "r.body is not there"),
        (
            "supergraph",
            "request",
            "let a = r.foo",
            "r.foo is not there",
        ),
        ("supergraph", "request", "r.foo = 1", "r.foo is not there"),
        (
            "supergraph",
            "request",
            "r.query_plan",
            "r.query_plan is not there",
        ),
        (
            "supergraph",
            "request",
            "r.subgraph.headers[\"a\"] = \"1\"",
            "r.subgraph is not there",
        ),
        (
            "supergraph",
            "request",
            "r.uri.path = \"/x\"",
            "r.uri.path cannot be set",
        ),
        (
            "supergraph",
            "request",
            "r.body.data.a",
            "r.body.data is not there",
        ),
        (
            "supergraph",
            "request",
            "r.body.extensions.a = 1",
            "r.body.extensions cannot be set",
        ),
        (
            "execution",
            "request",
            "if r.body.nope == 1 { }",
            "r.body.nope is not there",
        ),
        (
            "execution",
            "request",
            "r.body.query = \"{ a }\"",
            "r.body.query cannot be set",
        ),
        ("subgraph", "request", "r.body = #{}", "r.body is not there"),
        (
            "subgraph",
            "request",
            "r.subgraph.uri = \"http://a/\"",
            "r.subgraph.uri cannot be set",
        ),
        (
            "subgraph",
            "request",
            "r.subgraph.body = #{}",
            "r.subgraph.body cannot be set",
        ),
        (
            "subgraph",
            "request",
            "r.headers[\"a\"] = \"1\"",
            "r.headers cannot be set",
        ),
        (
            "supergraph",
            "response",
            "r.has_next = false",
            "r.has_next cannot be set",
        ),
        (
            "supergraph",
            "response",
            "r.body.hasNext = false",
            "r.body.hasNext cannot be set",
        ),
        (
            "supergraph",
            "response",
            "r.headers = #{}",
            "r.headers cannot be set",
        ),
        (
            "supergraph",
            "response",
            "print(Router.APOLLO_NOPE)",
            "Router.APOLLO_NOPE is not there",
        ),
        (
            "supergraph",
            "response",
            "helps(r, 1)",
            "given.foo is not there",
        ),
    ] {
        let parameters = if service == "subgraph" {
            "s, name"
        } else {
            "s"
        };
        let helps = "fn helps(given, n) { given.foo }";
        let hook = format!("s.map_{way}(|r| {{ {used}; }})");
        for script in [
            format!("fn {service}_service({parameters}) {{ {hook}; }}\n{helps}"),
            format!(
                "fn {service}_service({parameters}) {{ s.map_{way}(Fn(\"named\")); }}\nfn named(r) {{ {used}; }}\n{helps}"
            ),
            format!(
                "fn {service}_service({parameters}) {{ let x = 1; s.map_{way}(|r| {{ print(x); {used}; }}); }}\n{helps}"
            ),
        ] {
            assert_eq!(misused(&script), [expected], "{script}");
        }
    }
}

#[test]
fn each_hook_is_looked_at_by_its_own_stage() {
    let script = "fn subgraph_service(s, name) {
        let sends = |r| { r.subgraph.uri.host = \"a\"; r.subgraph.uri = \"x\"; r.body = 1; };
        s.map_request(sends);
        s.map_response(|r| { r.status_code = 201; r.body.data.of = name; r.subgraph.uri; r.has_nex; });
    }
    fn execution_service(s) { s.map_request(|r| { r.body.query; r.body.nope; }); }";
    let expected = [
        "r.body is not there",
        "r.body.nope is not there",
        "r.has_nex is not there",
        "r.subgraph is not there",
        "r.subgraph.uri cannot be set",
    ];
    assert_eq!(misused(script), expected);
}

#[test]
fn members_of_what_is_not_known_to_be_a_message_are_left_alone() {
    for script in [
        // Anything may be in a variable that is set again.
        "fn supergraph_service(s) { s.map_request(|r| { let r = #{ foo: 1 }; r.foo = 2; }); }",
        "fn supergraph_service(s) { s.map_request(|r| { for r in [#{ foo: 1 }] { r.foo = 2; } }); }",
        "fn supergraph_service(s) { s.map_request(|r| { let Router = #{}; Router.foo = 1; }); }",
        // What is right at one of the stages may be asked for there alone.
        "fn both(m) { if m.context[\"out\"] != () { m.status_code = 202; } }\nfn supergraph_service(s) { s.map_request(|r| both(r)); s.map_response(|r| both(r)); }",
        "fn supergraph_service(s) { s.map_request(|r| { r.body.variables.any.name = 1; r.headers[\"x\"] = \"1\"; r.context.own = 1; }); }",
    ] {
        assert_eq!(misused(script), [""; 0], "{script}");
    }
}

#[test]
fn entry_points_that_are_none_are_told() {
    let warnings = |script: &str| {
        let folder = Folder::with(&[("main.rhai", script)]);
        folder.program(patient()).warnings()
    };
    assert_eq!(
        warnings("fn supergraph_service(service) { }\nfn service_of(a) { }"),
        [""; 0]
    );
    let folder = Folder::with(&[("main.rhai", "fn router_service(service) { }")]);
    let limits = |time| ogive_hooks::scripts::Limits {
        size: 64 << 20,
        time: std::time::Duration::from_millis(time),
        ..patient()
    };
    let found = folder.program(limits(100)).warnings();
    let begins = "`rhai.limits.memory` counts as 1048576 bytes and not as 67108864";
    assert!(
        found.len() == 1 && found[0].starts_with(begins),
        "{found:?}"
    );
    assert_eq!(folder.program(limits(6_400)).warnings(), [""; 0]);
    let none = "no script is ever called: `main.rhai` has no entry point; there are `router_service`, `supergraph_service`, `execution_service`, `subgraph_service`";
    assert_eq!(warnings("fn helps() { }"), [none]);
    assert_eq!(
        warnings("fn supergraph_servce(service) { }\nfn router_service(service) { }"),
        [
            "`supergraph_servce` of `main.rhai` is no entry point; did you mean `supergraph_service`?"
        ]
    );
    let other = "`subgraph_service` of `main.rhai` is never called: it has 1 parameters, and an entry point of that name has 2";
    assert_eq!(warnings("fn subgraph_service(service) { }"), [other, none]);
}
