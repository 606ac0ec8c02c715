//! Scripts that mean harm, or only do it: each call ends within its limits, and the next one is served.

use std::time::{Duration, Instant};

use ogive_hooks::{
    CallError, CallMode, HookEngine, Stage,
    scripts::{Limits, Program},
};

use super::{Folder, exchange, patient, started};
use crate::pass;

/// What a call of a hook with this body comes to.
fn outcome(body: &str, limits: Limits) -> Result<(), CallError> {
    let script = format!(
        "fn deep(n) {{ deep(n + 1) }}\nfn supergraph_service(service) {{ service.map_request(|request| {{ {body} }}); }}\n"
    );
    let folder = Folder::with(&[("main.rhai", &script)]);
    let scripts = started(&folder.program(limits));
    let begun = Instant::now();
    let lent = exchange(Stage::SupergraphRequest, "a=1", "{\"query\":\"{ a }\"}");
    let (_, outcome) = pass(&scripts, lent, CallMode::Whole);
    // Far more than the limit, for a machine with much else to do.
    assert!(begun.elapsed() < Duration::from_secs(60), "{body}");
    outcome
}

#[test]
fn whatever_a_script_does_it_is_bounded() {
    for body in [
        "loop { }",
        "let n = 0; while true { n += 1; }",
        "deep(0)",
        "let a = \"x\"; loop { a += a; }",
        "let a = []; loop { a.push(a); }",
        "let a = #{}; let n = 0; loop { a[n.to_string()] = \"xxxxxxxx\"; n += 1; }",
        "let a = blob(1000000000);",
        "let a = \"x\"; a.pad(1000000000, \"y\");",
        "let a = []; a.pad(1000000000, 1);",
        "for n in 0..1000000000 { request.context[n.to_string()] = n; }",
    ] {
        let found = outcome(body, Limits::default());
        assert!(
            matches!(found, Err(CallError::Limit(_))),
            "{body}: {found:?}"
        );
    }
}

#[test]
fn what_scripts_may_not_do_fails() {
    for body in [
        "sleep(1000)",
        "sleep(1000.0)",
        "request.headers[\"a b\"] = \"1\"",
        "request.headers[\"a\"] = \"1\\r\\nx: 2\"",
        "request.subgraph.headers[\"a\"] = \"1\"",
        "throw #{ status: 99 }",
        "throw #{ status: \"401\" }",
        "nothing()",
        "for n in 0..1000000000 { request.headers[`x-${n}`] = \"1\"; }",
        "throw \"text\"",
    ] {
        let found = outcome(body, patient());
        assert!(
            matches!(found, Err(CallError::Failed(_))),
            "{body}: {found:?}"
        );
    }
}

#[test]
fn ten_thousand_entries_of_the_context_are_kept_or_refused_but_never_more() {
    let body = "for n in 0..10000 { request.context[`entry ${n}`] = \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\"; }";
    assert!(outcome(body, Limits::default()).is_err());
}

#[test]
fn a_slow_call_is_made_again_elsewhere_and_fast_ones_of_the_same_hook_stay() {
    let script = "fn supergraph_service(service) { service.map_request(|request| {
        request.headers[\"x-seen\"] = \"1\";
        request.context[\"seen\"] = 1;
        if request.headers[\"a\"] == \"1\" { let n = 0; while n < 20000 { n += 1; } }
    }); }";
    let folder = Folder::with(&[("main.rhai", script)]);
    let scripts = started(&folder.program(patient()));
    let ask = |value: &str, mode| {
        pass(
            &scripts,
            exchange(Stage::SupergraphRequest, value, ""),
            mode,
        )
    };
    let none = exchange(Stage::SupergraphRequest, "", "");
    assert_eq!(scripts.mode(&none), Some(CallMode::Turn));
    // Whatever slow calls come between. A thread that had to wait for a processor may have used up its turn: one such call is
    // enough.
    let mut fast = (0..1000).map(|_| {
        assert_eq!(ask("a=1", CallMode::Turn).1, Err(CallError::Unfinished));
        ask("a=2", CallMode::Turn).1
    });
    assert!(fast.any(|outcome| outcome == Ok(())));
    let (lent, outcome) = ask("a=1", CallMode::Whole);
    assert_eq!(outcome, Ok(()));
    assert_eq!(lent.headers["x-seen"], "1");
}

#[test]
fn what_is_not_done_within_a_turn_cannot_go_on_by_catching_that() {
    let body = "let n = 0; while n < 20 { try { loop { } } catch { } n += 1; }";
    let script = format!(
        "fn supergraph_service(service) {{ service.map_request(|request| {{ {body} }}); }}"
    );
    let folder = Folder::with(&[("main.rhai", &script)]);
    let scripts = started(&folder.program(patient()));
    let lent = exchange(Stage::SupergraphRequest, "", "");
    let (_, outcome) = pass(&scripts, lent, CallMode::Turn);
    assert_eq!(outcome, Err(CallError::Unfinished));
}

#[test]
fn time_ends_a_call_however_few_operations_it_has() {
    for body in [
        "loop { }",
        "let a = \"x\"; a.pad(60000, \"y\"); for n in 0..1000000 { sha256::digest(a); }",
        "let a = \"x\"; a.pad(60000, \"y\"); for n in 0..60 { for m in 0..16 { sha256::digest(a); } }",
    ] {
        let script = format!(
            "fn supergraph_service(service) {{ service.map_request(|request| {{ {body} }}); }}"
        );
        let folder = Folder::with(&[("main.rhai", &script)]);
        let limits = Limits {
            operations: u64::MAX,
            time: Duration::from_millis(2),
            ..Limits::default()
        };
        let scripts = started(&folder.program(limits));
        let (_, outcome) = pass(
            &scripts,
            exchange(Stage::SupergraphRequest, "", ""),
            CallMode::Whole,
        );
        assert!(matches!(outcome, Err(CallError::Limit(_))), "{body}");
    }
}

/// One operation cannot be stopped, so it must not have more to do than fits into the time of a call.
#[test]
fn memory_counts_as_far_as_time_allows() {
    let largest = |memory, time| {
        let limits = Limits {
            size: memory,
            time: Duration::from_millis(time),
            ..Limits::default()
        };
        limits.usable_size()
    };
    assert_eq!(largest(1 << 20, 100), 1 << 20);
    assert_eq!(largest(64 << 20, 100), 1 << 20);
    assert_eq!(largest(64 << 20, 1_000), 10 << 20);
    assert_eq!(largest(64 << 20, 10_000), 64 << 20);
    assert_eq!(largest(4 << 20, 10_000), 4 << 20);
    assert_eq!(largest(64 << 20, 1), 64 << 10, "texts of headers still fit");
    let limits = Limits {
        size: 64 << 20,
        ..Limits::default()
    };
    for body in [
        "let all = [1]; while all.len() < 100000 { all += all; }",
        "let all = \"x\"; while all.len() < 1500000 { all += all; }",
        // What grows within one operation is known before.
        "let a = \"x\"; a.pad(60000, \"x\"); let b = a; b.replace(\"x\", a);",
        "let a = \"x\"; a.pad(60000, \"x\"); let b = a; b.replace('x', a);",
    ] {
        let found = outcome(body, limits);
        assert!(
            matches!(&found, Err(CallError::Limit(why)) if why.contains("Length of string")
                || why.contains("Size of array")),
            "{body}: {found:?}"
        );
    }
}

#[test]
fn scripts_that_cannot_be_used_are_refused() {
    for (text, why) in [
        ("fn supergraph_service(service) {", "main.rhai"),
        ("eval(\"1\")", "main.rhai"),
        (
            "import \"missing\" as m;\nfn supergraph_service(service) { }",
            "missing",
        ),
    ] {
        let folder = Folder::with(&[("main.rhai", text)]);
        let path = folder.0.to_str().unwrap();
        let error = Program::read(path, "main.rhai", Limits::default()).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
    // Nobody would look whether it changes.
    let elsewhere = Folder::with(&[("other.rhai", "fn word() { 1 }")]);
    let name = elsewhere.0.file_name().unwrap().to_str().unwrap();
    let text =
        format!("import \"../{name}/other\" as other;\nfn supergraph_service(service) {{ }}");
    let folder = Folder::with(&[("main.rhai", &text)]);
    let error = Program::read(folder.0.to_str().unwrap(), "main.rhai", Limits::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("outside of the folder"), "{error}");
    let folder = Folder::with(&[("main.rhai", "fn supergraph_service(service) { nothing(); }")]);
    let program = folder.program(Limits::default());
    assert!(ogive_hooks::scripts::Scripts::start(&program, String::new).is_err());
    assert!(Program::read("/nowhere", "main.rhai", Limits::default()).is_err());
}

#[test]
fn every_script_of_a_folder_is_watched_but_hidden_ones() {
    let folder = Folder::with(&[
        ("main.rhai", ""),
        ("b.rhai", ""),
        (".#main.rhai", "fn"),
        ("c.txt", ""),
    ]);
    std::fs::create_dir(folder.0.join("d")).unwrap();
    std::fs::write(folder.0.join("d/e.rhai"), "").unwrap();
    let path = folder.0.to_str().unwrap();
    let watched = |main: &str| {
        let all = Program::watched(path, main);
        let names = all.iter().map(|file| file.strip_prefix(path).unwrap());
        names
            .map(|name| name.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(watched("main.rhai"), ["b.rhai", "d/e.rhai", "main.rhai"]);
    assert_eq!(
        watched("entry"),
        ["b.rhai", "d/e.rhai", "main.rhai", "entry"]
    );
    assert!(Program::read(path, "main.rhai", Limits::default()).is_ok());
    // One that is gone is told as any file that is.
    let nowhere = std::path::Path::new("/nowhere");
    assert_eq!(
        Program::watched("/nowhere", "main.rhai"),
        [nowhere, &nowhere.join("main.rhai")]
    );
}
