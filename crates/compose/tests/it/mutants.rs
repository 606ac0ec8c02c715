//! Subgraphs with something changed at random get the verdict of the reference implementation.
//!
//! `tests/mutants.txt` holds what npm `@apollo/composition` said of the first mutants of seed 1; with `OGIVE_ORACLE` set,
//! after `npm ci --prefix oracle/compose`, it is asked again, about others too (`OGIVE_MUTANTS=20000 OGIVE_SEED=7`);
//! `BLESS=1` records its answers. [`STRICTER`] and [`LOOSER`] say where verdicts differ on purpose, and why.

#![allow(clippy::print_stdout, reason = "says what was compared")]

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use ogive_base::Diagnostic;
use ogive_testbase::{assert_recorded, left_out, needs::ORACLE_IS_OFF};
use serde_json::{Value, json};

use crate::{Owned, mutants::mutant, run, sub};

/// Mutants with a recorded verdict.
const RECORDED: usize = 1_500;
/// Their seed.
const SEED: u64 = 1;

/// What is refused here and not by the reference: code, part of the message, reason.
const STRICTER: &[(&str, &str, &str)] = &[
    (
        "INVALID_GRAPHQL",
        "There can be only one argument named",
        "arguments are unique (5.4.2); it takes the last one",
    ),
    (
        "INVALID_GRAPHQL",
        "can only be defined once.",
        "names are unique (3.6, 3.9); it takes the last definition",
    ),
    (
        "INVALID_GRAPHQL",
        "There can be only one input field named",
        "names are unique (5.6.3); it takes the last one",
    ),
    (
        "INVALID_GRAPHQL",
        "cannot be defined in terms of itself.",
        "directives do not need themselves (3.13); it does not look",
    ),
    (
        "INVALID_GRAPHQL",
        "Must provide only one schema definition.",
        "there is one schema definition (3.3); it merges them",
    ),
    (
        "INVALID_GRAPHQL",
        "type in schema.",
        "there is one root of each kind (3.3.1); it takes the last one",
    ),
    (
        "INVALID_GRAPHQL",
        "Cannot extend non-",
        "extensions extend their own kind (3.4.3); it loses the extension",
    ),
    (
        "INVALID_GRAPHQL",
        "found [].",
        "a list is no input object (3.10); it sees an object without fields",
    ),
    (
        "INVALID_GRAPHQL",
        "OneOf Input Object",
        "one field of a `@oneOf` input object is given (3.10.1); it does not know the directive",
    ),
    (
        "INVALID_GRAPHQL",
        "OneOf input field",
        "fields of a `@oneOf` input object are nullable (3.10.1); it does not know the directive",
    ),
    (
        "INVALID_GRAPHQL",
        "`@oneOf`",
        "fields of a `@oneOf` input object are nullable (3.10.1); it does not know the directive",
    ),
    (
        "INVALID_TAG_NAME",
        "",
        "no contract can name such a tag; later versions of it refuse it too",
    ),
    (
        "DIRECTIVE_DEFINITION_INVALID",
        "`@link` is defined differently",
        "`@link` is compared as every other directive is, where it is linked in so many words too",
    ),
    (
        "TYPE_DEFINITION_INVALID",
        "`link__Purpose`",
        "as for `@link`",
    ),
    (
        "INVALID_GRAPHQL",
        "found null.",
        "arguments of directives are coerced (5.6.1); it fails later, or never, on a null",
    ),
    (
        "INVALID_GRAPHQL",
        "Int cannot represent non-integer value: \"\"",
        "an empty string is no number (3.5.1); it takes it for 0",
    ),
    (
        "INVALID_GRAPHQL",
        "Cannot extend type \"__",
        "types of introspection are not extended (4.2); it loses the extension",
    ),
    (
        "INVALID_GRAPHQL",
        "String cannot represent a non string value",
        "strings have quotes (5.6.1); it takes names for strings",
    ),
    (
        "INVALID_LINK_DIRECTIVE_USAGE",
        "import",
        "imports are a list of names in quotes; it takes names for strings, and a string for its letters",
    ),
    (
        "LIST_SIZE_INVALID_SLICING_ARGUMENT",
        "",
        "one string is a list of one (3.12); it takes a string for its letters",
    ),
    (
        "NO_QUERIES",
        "",
        "a graph that answers no query cannot be served; `_service` is nobody's query",
    ),
    (
        "KEY_INVALID_FIELDS",
        "it selects nothing",
        "a key without fields says nothing; it forgets keys of interfaces in federation 1",
    ),
];

/// What the reference refuses and is accepted here: code, part of the message, part of a subgraph, reason.
const LOOSER: &[(&str, &str, &str, &str)] = &[
    (
        "LIST_SIZE_INVALID_SLICING_ARGUMENT",
        "must be Int or Int!",
        "slicingArguments",
        "a list says a size by its length",
    ),
    (
        "INVALID_GRAPHQL",
        "Unknown directive \"@oneOf\"",
        "@oneOf",
        "`@oneOf` is a directive of GraphQL (3.13.5)",
    ),
    (
        "INVALID_GRAPHQL",
        "Unknown type link__",
        "link__",
        "what definitions of a link refer to need not be defined",
    ),
    (
        "INVALID_GRAPHQL",
        "Unknown type federation__FieldSet",
        "federation__FieldSet",
        "what definitions of a link refer to need not be defined",
    ),
    (
        "INVALID_GRAPHQL",
        "Directive \"@shareable\" may not be used on OBJECT.",
        "directive @shareable on FIELD_DEFINITION",
        "it adds `@shareable` to types of federation 1, and then finds the subgraph's own narrower definition",
    ),
    (
        "INVALID_GRAPHQL",
        "Syntax Error: Expected \"{\", found Name \"extend\"",
        "extend schema {",
        "it cannot read a schema extension of federation 1 that it has written anew",
    ),
    (
        "SATISFIABILITY_ERROR",
        "",
        "@key(fields: id)",
        "in federation 1, it forgets that fields of a key without quotes are not external",
    ),
    (
        "EXTENSION_WITH_NO_BASE",
        "Type \"_Entity\"",
        "_Entity",
        "every subgraph has this union",
    ),
    (
        "KEY_INVALID_FIELDS_TYPE",
        "On type \"_Service\"",
        "_Service",
        "directives on the machinery of federation mean nothing",
    ),
    (
        "KEY_INVALID_FIELDS",
        "On type \"_Service\"",
        "_Service",
        "directives on the machinery of federation mean nothing",
    ),
];

#[test]
fn mutants_get_the_recorded_verdicts() {
    let path = recorded_path();
    let text = fs::read_to_string(&path).unwrap();
    let mut tally = Tally::default();
    for (i, line) in text.lines().enumerate() {
        let set = owned(SEED, i);
        let (hash, verdict) = line.split_once(' ').unwrap();
        assert_eq!(
            hash,
            hash_of(&set),
            "mutant {i} is another; BLESS=1 OGIVE_ORACLE=1 records it"
        );
        tally.compare(SEED, i, &set, verdict);
    }
    assert_eq!(tally.n, RECORDED);
    tally.finish();
}

#[test]
fn mutants_get_the_verdicts_of_the_reference_today() {
    let Some(script) = oracle() else {
        return left_out(ORACLE_IS_OFF);
    };
    let number =
        |name: &str, default: usize| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let recorded = verdicts(&script, SEED, RECORDED);
    let lines: Vec<String> = (0..RECORDED)
        .map(|i| format!("{} {}", hash_of(&owned(SEED, i)), recorded[i]))
        .collect();
    let text = lines.join("\n") + "\n";
    assert_recorded(recorded_path(), &text);
    let (count, seed) = (
        number("OGIVE_MUTANTS", 1_000),
        number("OGIVE_SEED", 2) as u64,
    );
    let mut tally = Tally::default();
    for (i, verdict) in verdicts(&script, seed, count).iter().enumerate() {
        tally.compare(seed, i, &owned(seed, i), verdict);
    }
    tally.finish();
}

/// Outcomes of a comparison.
#[derive(Default)]
struct Tally {
    n: usize,
    valid: usize,
    crashed: usize,
    meant: usize,
    wrong: String,
}

impl Tally {
    fn compare(&mut self, seed: u64, i: usize, set: &[Owned], verdict: &str) {
        self.n += 1;
        if verdict == "failed" {
            self.crashed += 1;
            return;
        }
        let errors = run(set).errors;
        let accepted = verdict == "accepted";
        self.valid += usize::from(accepted);
        if accepted == errors.is_empty() {
            return;
        }
        let is_meant = if accepted {
            errors.iter().all(is_stricter)
        } else {
            verdict.split(" ;; ").all(|error| {
                let (code, message) = error.split_once(": ").unwrap();
                LOOSER.iter().any(|(c, m, sdl, _)| {
                    let written = set.iter().any(|s| s.sdl.contains(sdl));
                    *c == code && message.contains(m) && written
                })
            })
        };
        if is_meant {
            self.meant += 1;
            return;
        }
        let ours: Vec<String> = errors
            .iter()
            .map(|e| format!("{}: {}", e.code, e.message))
            .collect();
        let _ = writeln!(
            self.wrong,
            "seed {seed}, mutant {i}\n  reference: {verdict}\n  ours: {ours:?}"
        );
    }
    fn finish(self) {
        println!(
            "{} mutants, {} valid, {} of them or of the others differ on purpose, the reference failed on {}",
            self.n, self.valid, self.meant, self.crashed
        );
        assert!(self.wrong.is_empty(), "{}", self.wrong);
        assert!(
            self.valid * 10 > self.n,
            "most mutants should not be broken beyond use"
        );
        assert!(self.meant * 10 < self.n && self.crashed * 20 < self.n);
    }
}

fn is_stricter(error: &Diagnostic) -> bool {
    STRICTER
        .iter()
        .any(|(code, part, _)| *code == error.code && error.message.contains(part))
}

fn owned(seed: u64, i: usize) -> Vec<Owned> {
    let set = mutant(seed, i);
    set.iter().map(|(name, sdl)| sub(name, sdl)).collect()
}

fn recorded_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants.txt")
}

/// FNV-1a of the subgraphs.
fn hash_of(set: &[Owned]) -> String {
    let bytes = set
        .iter()
        .flat_map(|s| s.name.bytes().chain([0]).chain(s.sdl.bytes()).chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The script that composes with the reference, if that is switched on.
pub(crate) fn oracle() -> Option<PathBuf> {
    let folder = ogive_testbase::oracle("compose/node_modules/@apollo/composition")?;
    Some(folder.join("compose/compose.mjs"))
}

/// What the reference says of each set.
pub(crate) fn ask(script: &Path, sets: Vec<Vec<Owned>>) -> Vec<Value> {
    let mut node = Command::new("node")
        .arg("--stack-size=4000")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for set in sets {
            let set: Vec<Value> = set
                .iter()
                .map(|Owned { name, sdl }| json!({"name": name, "url": format!("http://{name}"), "sdl": sdl}))
                .collect();
            writeln!(input, "{}", Value::from(set)).unwrap();
        }
    });
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What the reference says of the first mutants of a seed.
fn verdicts(script: &Path, seed: u64, count: usize) -> Vec<String> {
    let sets = (0..count).map(|i| owned(seed, i)).collect();
    ask(script, sets).iter().map(verdict).collect()
}

/// `accepted`, `failed`, or its first errors.
fn verdict(answer: &Value) -> String {
    let errors = answer["errors"].as_array().unwrap();
    if errors.is_empty() {
        return if answer["supergraph"].is_string() {
            "accepted".into()
        } else {
            "failed".into()
        };
    }
    // Messages name their subgraph first.
    let shown = errors.iter().take(3).map(|error| {
        let message = error["message"].as_str().unwrap();
        let message = match message.split_once("] ") {
            Some((start, rest)) if start.starts_with('[') => rest,
            _ => message,
        };
        let line = message.lines().next().unwrap();
        let short: String = line.chars().take(80).collect();
        format!("{}: {short}", error["code"].as_str().unwrap_or("?"))
    });
    shown.collect::<Vec<_>>().join(" ;; ")
}
