//! Verdicts, messages, introspection and suggestions against the reference implementation (npm `graphql`).
//!
//! Runs when `OGIVE_ORACLE` is set, after `npm ci --prefix oracle`; `cargo xtask test` does both. Compared are every
//! case of `tests/cases`, mutations of them, and the supergraphs of `bench/graphs`.
//! Where we differ on purpose, [`STRICTER`] and [`ONLY_17`] say why.

mod answers;
mod mutations;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use ogive_base::Diagnostic;
use ogive_schema::{
    BuildOptions,
    suggest::{did_you_mean, suggestions},
};
use ogive_testbase::{Rng, left_out, needs::ORACLE_IS_OFF, oracle};
use serde_json::{Value, json};

use crate::cases;

/// Rules of the specification that version 16 does not check: code, how its messages begin or contain, reason.
const STRICTER: &[(&str, &str, &str)] = &[
    (
        "EXECUTABLE_DEFINITION",
        "",
        "a type system document has no executable definitions (specification 3.1); it skips them",
    ),
    (
        "INVALID_DEFAULT_VALUE",
        "has invalid default value",
        "default values fit their type (3.6.1, 3.10, September 2025); version 17 agrees",
    ),
    (
        "CIRCULAR_DEFINITION",
        "Invalid circular reference. The default value",
        "default values do not need themselves (3.10, September 2025); version 17 agrees",
    ),
    (
        "CIRCULAR_DEFINITION",
        "Directive \"@",
        "a directive is not defined in terms of itself (3.13); unchecked in both versions",
    ),
    (
        "INVALID_ROOT_TYPE",
        "All root types must be different",
        "3.3.1; version 17 agrees",
    ),
    (
        "INVALID_ONE_OF",
        "The directive \"@oneOf\" cannot be added",
        "3.10.1 (extensions); unchecked in both versions",
    ),
    (
        "INVALID_IMPLEMENTATION",
        "must not be deprecated",
        "3.6.1, September 2025; version 17 agrees",
    ),
    (
        "INVALID_DIRECTIVE_ARGUMENT",
        "has invalid value",
        "arguments of directives are coerced (5.6.1); it looks at those of its own directives only",
    ),
    (
        "DUPLICATE_DEFINITION",
        "There can be only one type named \"",
        "a specified scalar cannot be defined as another kind (3.5); it ignores the definition",
    ),
];

/// Verdicts of version 17 that neither we nor version 16 share.
const ONLY_17: &[(&str, &str)] = &[
    (
        "one of that cannot be finished",
        "a rule of the edition after September 2025",
    ),
    (
        "one of circle of two",
        "a rule of the edition after September 2025",
    ),
    (
        "one of in a circle with a required field",
        "a rule of the edition after September 2025",
    ),
];

/// What the reference implementation answers; `None` where the oracle is switched off.
fn ask(question: &Value) -> Option<Value> {
    let folder = oracle("node_modules/graphql16")?;
    let mut child = Command::new("node")
        .arg("--stack-size=2000")
        .arg("schema/check.mjs")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("OGIVE_ORACLE needs node");
    let mut stdin = child.stdin.take().unwrap();
    let text = question.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(
        output.status.success(),
        "OGIVE_ORACLE needs `npm ci --prefix oracle`"
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn ask_schemas(texts: &[String]) -> Option<Value> {
    let cases: Vec<Value> = texts
        .iter()
        .map(|sdl| json!({"sdl": sdl, "introspect": true}))
        .collect();
    ask(&json!({"cases": cases, "suggest": []}))
}

fn messages(answer: &Value, version: &str) -> BTreeSet<String> {
    answer[version]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m.as_str().unwrap().to_owned())
        .collect()
}

fn is_stricter(error: &Diagnostic) -> bool {
    STRICTER
        .iter()
        .any(|(code, part, _)| error.code == *code && error.message.contains(part))
}

/// Version 16 overflows its stack on some default values that need themselves.
fn has_crashed(theirs: &BTreeSet<String>) -> bool {
    theirs
        .iter()
        .any(|m| m.contains("Maximum call stack size exceeded"))
}

/// What is wrong with our diagnostics, given those of version 16.
fn disagreement(ours: &[Diagnostic], answer: &Value) -> Option<String> {
    let theirs = messages(answer, "16");
    if has_crashed(&theirs) {
        return None;
    }
    let report = |what: &str| {
        let ours: Vec<_> = ours
            .iter()
            .map(|e| format!("{} {}", e.code, e.message))
            .collect();
        Some(format!("{what}\n  theirs: {theirs:#?}\n  ours: {ours:#?}"))
    };
    let words: BTreeSet<String> = ours.iter().map(|e| e.message.clone()).collect();
    let shared: BTreeSet<String> = ours
        .iter()
        .filter(|e| !is_stricter(e))
        .map(|e| e.message.clone())
        .collect();
    if theirs.is_empty() {
        return if shared.is_empty() {
            None
        } else {
            report("we refuse what it accepts")
        };
    }
    if ours.is_empty() {
        return report("we accept what it refuses");
    }
    // It looks into what must not be there, too, or stops with words of its own: verdicts agree, no more.
    let ends_here = [
        "Syntax Error",
        "Unexpected input type: ",
        "Argument \"reason\" has invalid value",
        "Argument \"url\" has invalid value",
        "There can be only one type named",
        "There can be only one directive named",
        "Must provide only one schema definition",
        "Cannot extend ",
        "Operations and fragments cannot be part of a schema",
    ];
    let ends = |m: &String| {
        ends_here.iter().any(|e| m.starts_with(e))
            || m.contains("must only implement Interface types")
            // To version 16 a bad default value is none, which makes the argument required.
            || m.contains("has invalid default value")
    };
    if theirs.union(&words).any(ends) {
        return None;
    }
    if !theirs.is_subset(&words) {
        return report("a message is missing");
    }
    // It looks at the schema only when the SDL rules are content, so only then nothing may be left over.
    let is_last_stage = answer["16"]["stage"] == "schema";
    if is_last_stage && shared.iter().any(|m| !theirs.contains(m)) {
        return report("a message is too many");
    }
    None
}

#[test]
fn cases_have_the_verdicts_and_messages_of_the_reference() {
    let all = cases::all();
    let texts: Vec<String> = all.iter().map(|c| c.sdl.clone()).collect();
    let Some(answers) = ask_schemas(&texts) else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut failures = Vec::new();
    for (case, answer) in all.iter().zip(answers["cases"].as_array().unwrap()) {
        let name = case.name.trim_end_matches(" [print]");
        let built = crate::built(&case.sdl, &BuildOptions::default());
        let is_listed = |list: &[(&str, &str)]| list.iter().any(|(n, _)| *n == name);
        if let Some(report) = disagreement(&built.errors, answer) {
            failures.push(format!("{name}: {report}"));
        }
        let accepted = messages(answer, "17").is_empty();
        let only_ours = built.errors.iter().all(is_stricter);
        if accepted != built.errors.is_empty() && !(accepted && only_ours) && !is_listed(ONLY_17) {
            failures.push(format!("{name}: version 17: {:?}", messages(answer, "17")));
        }
        if built.errors.is_empty() {
            answers::compare(
                &built.schema,
                &answers["query"],
                answer,
                name,
                &mut failures,
            );
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn mutations_have_the_verdicts_and_messages_of_the_reference() {
    let mut texts = Vec::new();
    let seed = std::env::var("OGIVE_SEED").map_or(1, |s| s.parse().unwrap());
    let per_case = std::env::var("OGIVE_MUTATIONS").map_or(20, |s| s.parse().unwrap());
    let mut random = Rng::new(seed);
    for case in cases::all() {
        if crate::built(&case.sdl, &BuildOptions::default())
            .errors
            .is_empty()
        {
            texts.extend((0..per_case).map(|_| mutations::mutate(&case.sdl, &mut random)));
        }
    }
    let Some(answers) = ask_schemas(&texts) else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut failures = Vec::new();
    let mut refused = 0;
    for (sdl, answer) in texts.iter().zip(answers["cases"].as_array().unwrap()) {
        let built = crate::built(sdl, &BuildOptions::default());
        refused += usize::from(!built.errors.is_empty());
        if let Some(report) = disagreement(&built.errors, answer) {
            failures.push(format!("{sdl}\n{report}"));
        }
        if built.errors.is_empty() {
            answers::compare(&built.schema, &answers["query"], answer, sdl, &mut failures);
        }
    }
    println!("seed {seed}: {} mutations, {refused} refused", texts.len());
    let shown = failures.len().min(5);
    assert!(
        failures.is_empty(),
        "seed {seed}: {} of {}:\n{}",
        failures.len(),
        texts.len(),
        failures[..shown].join("\n\n")
    );
}

#[test]
fn supergraphs_introspect_like_the_reference() {
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/graphs");
    let texts: Vec<String> = fs::read_dir(graphs)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("supergraph.graphql"))
        .filter(|path| path.is_file())
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(texts.len() >= 8, "only {} supergraphs", texts.len());
    let Some(answers) = ask_schemas(&texts) else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut failures = Vec::new();
    for (sdl, answer) in texts.iter().zip(answers["cases"].as_array().unwrap()) {
        let built = crate::built(sdl, &BuildOptions::default());
        assert_eq!(built.errors, []);
        assert!(messages(answer, "16").is_empty());
        cases::survives_printing(&built.schema, "supergraph");
        answers::compare(
            &built.schema,
            &answers["query"],
            answer,
            "supergraph",
            &mut failures,
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn suggestions_are_those_of_the_reference() {
    let mut random = Rng::new(7);
    let alphabet = b"abcABC12";
    let mut word = |len: usize| -> String {
        (0..random.below(len) + 1)
            .map(|_| char::from(*random.pick(alphabet)))
            .collect()
    };
    let asked: Vec<(String, Vec<String>)> = (0..2000)
        .map(|_| (word(8), (0..12).map(|_| word(9)).collect()))
        .collect();
    let suggest: Vec<Value> = asked
        .iter()
        .map(|(input, options)| json!({"input": input, "options": options}))
        .collect();
    let Some(answers) = ask(&json!({"cases": [], "suggest": suggest})) else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut found = 0;
    for ((input, options), answer) in asked.iter().zip(answers["suggestions"].as_array().unwrap()) {
        // Equal options appear once in a schema; the reference implementation lists them once.
        let unique: BTreeSet<&str> = options.iter().map(String::as_str).collect();
        let first: Vec<&str> = options
            .iter()
            .map(String::as_str)
            .enumerate()
            .filter(|(i, o)| options[..*i].iter().all(|earlier| earlier != o))
            .map(|(_, o)| o)
            .collect();
        assert_eq!(unique.len(), first.len());
        let list = suggestions(input, first);
        found += list.len();
        assert_eq!(json!(list), answer["list"], "{input} {options:?}");
        assert_eq!(json!(did_you_mean(None, &list)), answer["text"]);
        assert_eq!(json!(did_you_mean(Some("the kind"), &list)), answer["kind"]);
    }
    assert!(found > 1000, "the words are close to each other");
}
