//! The cases of `hostile.txt`: `== NAME`, what is permitted, `says` (how what the operator is told begins), `fuel`, `more`
//! functions, and what the hook does. Each call ends within its limits, changes nothing, and harms no other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use http::HeaderValue;
use ogive_hooks::{
    CallError, CallMode, Exchange, HookEngine, Stage,
    components::{Component, Ejection},
};

use super::guest::{component, exchange, options};
use crate::pass;

const CASES: &str = include_str!("hostile.txt");

/// Does harm if its request has the header `x-evil`, and its work otherwise.
const GUEST: &str = "(call $header @\"x-evil\" (i32.const 32))
    (if (result i32) (i32.load8_u (i32.const 32)) (then (call $evil))
    (else (call $set_header @\"x-done\" @\"1\" ) (i32.const 0)))";

fn plugin(text: &str, more: &str, permitted: &str, fuel: Option<u64>) -> Component {
    let mut options = options(&format!("{permitted} read=x-evil write=x-done"));
    options.ejection.faults = usize::MAX;
    if let Some(fuel) = fuel {
        options.limits.fuel = fuel;
        // Only time ends what has so much.
        if fuel > 1 << 40 {
            options.limits.time = Duration::from_millis(100);
        }
    }
    let evil = format!("{more}\n(func $evil (result i32) {text})");
    let bytes = component(&[("receive", GUEST)], &evil);
    Component::of(options, &bytes).unwrap()
}

fn call(plugin: &Component, sent: &str) -> (Exchange, Result<(), CallError>) {
    pass(
        plugin,
        exchange(Stage::RouterRequest, sent, ""),
        CallMode::Whole,
    )
}

/// A call that does no harm. One that had to wait for its turn for longer than it may take is made again.
fn call_well(plugin: &Component) -> (Exchange, Result<(), CallError>) {
    loop {
        let called = call(plugin, "a=1");
        let is_late = |why: &String| why.starts_with("longer than");
        if !matches!(&called.1, Err(CallError::Limit(why)) if is_late(why)) {
            return called;
        }
    }
}

#[test]
fn whatever_a_component_does_it_is_contained() {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for case in CASES.split("\n== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (head, text) = rest.split_once("\n---\n").unwrap();
        let of = |key: &str| {
            let mut lines = head.lines();
            lines
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .unwrap_or("")
        };
        let plugin = plugin(text, of("more"), of("permitted"), of("fuel").parse().ok());
        for _ in 0..2 {
            let begun = Instant::now();
            let (after, outcome) = call(&plugin, "x-evil=1; a=1");
            // Far more than the limit, for a machine with much else to do.
            assert!(begun.elapsed() < Duration::from_secs(60), "{name}");
            let told = outcome.as_ref().err().map(ToString::to_string);
            if !told
                .as_ref()
                .is_some_and(|told| told.starts_with(of("says")))
            {
                wrong.push(format!("{name}: {told:?}"));
            }
            let changes = &after.changes;
            assert!(
                !changes.headers && !changes.body && changes.ending.is_none(),
                "{name}: what failed has changed nothing"
            );
            let mut entries = after.context.iter();
            let only = entries.next().map(|(name, value)| (name, value.get()));
            assert_eq!(only, Some(("claims", "{\"sub\":\"u1\"}")), "{name}");
            assert!(entries.next().is_none(), "{name}");
            let (after, outcome) = call_well(&plugin);
            assert_eq!(outcome, Ok(()), "{name}: what failed harms no other call");
            assert_eq!(after.headers["x-done"], HeaderValue::from_static("1"));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 20, "{cases}");
}

#[test]
fn a_slow_call_is_made_again_elsewhere_and_fast_ones_of_the_same_hook_stay() {
    let evil = "(local $n i32) (call $set_header @\"x-done\" @\"0\" )
        (loop $again (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 3000000)))) (i32.const 0)";
    let evil = format!("(func $evil (result i32) {evil})");
    let mut options = options("read=x-evil write=x-done");
    // One such call would eject it.
    options.ejection.faults = 1;
    let plugin = Component::of(options, &component(&[("receive", GUEST)], &evil)).unwrap();
    let ask = |sent: &str, mode| pass(&plugin, exchange(Stage::RouterRequest, sent, ""), mode);
    let none = Exchange::new(Stage::RouterRequest);
    assert_eq!(plugin.mode(&none), Some(CallMode::Turn));
    // A thread that had to wait for a processor may have used up its turn: one such call is enough.
    let mut fast = (0..1000).map(|_| {
        let (after, outcome) = ask("x-evil=1", CallMode::Turn);
        assert_eq!(outcome, Err(CallError::Unfinished));
        assert!(!after.changes.headers);
        ask("a=1", CallMode::Turn)
    });
    let (after, _) = fast.find(|(_, outcome)| outcome.is_ok()).unwrap();
    assert_eq!(after.headers["x-done"], "1");
    let (after, outcome) = ask("x-evil=1", CallMode::Whole);
    assert_eq!(outcome, Ok(()));
    assert_eq!(after.headers["x-done"], "0");
}

#[test]
fn ten_thousand_entries_are_kept_or_refused_but_never_more_than_there_is_room_for() {
    let names: Vec<String> = (0..10_000).map(|n| format!("{n:04}")).collect();
    let mut options = options("read=x-evil write=x-done");
    options.permissions.write_context = names.into_iter().collect();
    let value = "x".repeat(200);
    let text = format!(
        "(local $n i32) (loop $again
          (i32.store8 (i32.const 515) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
          (i32.store8 (i32.const 514) (i32.add (i32.const 48) (i32.rem_u (i32.div_u (local.get $n) (i32.const 10)) (i32.const 10))))
          (i32.store8 (i32.const 513) (i32.add (i32.const 48) (i32.rem_u (i32.div_u (local.get $n) (i32.const 100)) (i32.const 10))))
          (i32.store8 (i32.const 512) (i32.add (i32.const 48) (i32.rem_u (i32.div_u (local.get $n) (i32.const 1000)) (i32.const 10))))
          (call $set (i32.const 512) (i32.const 4) @\"'{value}'\" )
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $n) (i32.const 10000)))) (i32.const 0)"
    );
    let plugin = Component::of(options, &component(&[("receive", &text)], "")).unwrap();
    let (after, outcome) = call(&plugin, "a=1");
    assert!(matches!(outcome, Err(CallError::Limit(_))), "{outcome:?}");
    assert_eq!(after.context.iter().count(), 1, "as it was before");
}

#[test]
fn who_traps_too_often_is_left_alone_and_tried_again_later() {
    let bytes = component(
        &[("receive", GUEST)],
        "(func $evil (result i32) (unreachable))",
    );
    let trapped_too_often = |time: Duration| {
        let mut options = options("read=x-evil write=x-done");
        options.ejection = Ejection {
            faults: 3,
            window: Duration::from_secs(3600),
            time,
        };
        let plugin = Component::of(options, &bytes).unwrap();
        for _ in 0..3 {
            let outcome = call(&plugin, "x-evil=1").1;
            assert!(matches!(outcome, Err(CallError::Trapped(_))), "{outcome:?}");
        }
        plugin
    };
    let plugin = trapped_too_often(Duration::from_secs(3600));
    assert_eq!(call(&plugin, "a=1").1, Err(CallError::Ejected));
    // Another one, whose time may be over before it is looked at.
    let began = Instant::now();
    let plugin = trapped_too_often(Duration::from_millis(300));
    while call(&plugin, "a=1").1 == Err(CallError::Ejected) {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    assert!(began.elapsed() >= Duration::from_millis(250));
}

#[test]
fn what_takes_long_lets_neighbours_go_on() {
    let plugin = plugin(
        "(loop $again (br $again)) (i32.const 0)",
        "",
        "",
        Some(u64::MAX),
    );
    std::thread::scope(|scope| {
        let long = scope.spawn(|| call(&plugin, "x-evil=1").1);
        // One call at a time holds one instance; others take another.
        while !long.is_finished() {
            assert_eq!(call_well(&plugin).1, Ok(()));
        }
        let outcome = long.join().unwrap();
        assert!(matches!(outcome, Err(CallError::Limit(_))), "{outcome:?}");
    });
    // What ran beside the workers has taken nothing of their time.
    let none = Exchange::new(Stage::RouterRequest);
    assert_eq!(plugin.mode(&none), Some(CallMode::Turn));
}

#[test]
fn no_more_calls_run_at_a_time_than_there_are_instances() {
    let mut options = options("read=x-evil write=x-done");
    options.limits.instances = 1;
    options.limits.fuel = u64::MAX;
    options.limits.time = Duration::from_millis(400);
    options.ejection.faults = usize::MAX;
    let bytes = component(
        &[("receive", GUEST)],
        "(func $evil (result i32) (loop $again (br $again)) (i32.const 0))",
    );
    let plugin = Component::of(options, &bytes).unwrap();
    let was_busy = AtomicBool::new(false);
    // Again and again, until one of both finds no instance: the long one may be it, too.
    let call_until_busy = |sent: &str| {
        while !was_busy.load(Ordering::Relaxed) {
            if call(&plugin, sent).1 == Err(CallError::Busy(1)) {
                was_busy.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| call_until_busy("x-evil=1"));
        call_until_busy("a=1");
    });
    assert_eq!(call_well(&plugin).1, Ok(()));
}
