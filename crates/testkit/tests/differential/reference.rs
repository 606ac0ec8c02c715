//! Is the monolith right? The reference implementation executes the same operations over the same values.
//!
//! The monolith records every resolver call; node replays them in order. So order of resolution, argument coercion,
//! result coercion, null propagation and introspection are all compared. Left out unless
//! `OGIVE_ORACLE` is set, after `npm ci --prefix oracle`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use ogive_testbase::{left_out, needs::ORACLE_IS_OFF, oracle};
use ogive_testkit::{
    differential::operation_name,
    engines::Recorder,
    graph::{
        generate::{GraphOptions, generate},
        print,
    },
    ops::{self, generate::OpOptions},
    rng::mix,
    world::World,
};
use serde_json::{Map, Value, json};

#[test]
fn monolith_equals_reference() {
    let Some(folder) = oracle("node_modules/graphql16") else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut lines = Vec::new();
    let mut with_errors = 0;
    for g in 0..40u64 {
        let seed = mix(g) >> 16;
        let model = generate(seed, &GraphOptions::default());
        // Half of the graphs have resolvers that fail.
        let faults = if g % 2 == 0 { 0 } else { 60 };
        let world = Arc::new(World::with_faults(&model, seed, faults));
        let recorder = Recorder::new(&world).unwrap();
        let sdl = print::merged_sdl(&model);
        for i in 0..25 {
            let op = ops::generate::generate(&model, mix(seed ^ i), &OpOptions::default());
            let document = op.document();
            let variables: Map<String, Value> = serde_json::from_str(&op.variables_json()).unwrap();
            world.reset();
            let answer = recorder.monolith.execute(
                &document,
                operation_name(&document),
                &variables,
                &Default::default(),
            );
            let answer: Value = serde_json::from_slice(&answer.body).unwrap();
            with_errors += usize::from(answer.get("errors").is_some());
            let case = json!({
                "sdl": sdl,
                "document": document,
                "operationName": operation_name(&document),
                "variables": variables,
                "calls": recorder.take(),
                "data": answer["data"].to_string(),
                "errors": paths(&answer),
            });
            lines.push(case.to_string());
        }
    }
    assert!(with_errors > 50, "only {with_errors} answers have errors");
    let n = lines.len();
    let mut child = Command::new("node")
        .arg(folder.join("testkit/execute.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut verdicts = text.lines();
    let summary = verdicts.next_back().unwrap_or_default();
    let differences: Vec<&str> = verdicts.take(3).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert_eq!(summary, format!("{n} agree"));
}

/// Where errors are, in order.
fn paths(answer: &Value) -> Vec<Value> {
    let errors = answer.get("errors").and_then(Value::as_array);
    errors
        .into_iter()
        .flatten()
        .map(|e| e.get("path").cloned().unwrap_or(Value::Null))
        .collect()
}
