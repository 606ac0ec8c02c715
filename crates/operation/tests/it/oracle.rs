//! Live comparison with the reference implementation. Left out unless `OGIVE_ORACLE` is set, after `npm ci --prefix oracle`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use ogive_operation::{ValidationLimits, validate};
use ogive_schema::Schema;
use ogive_syntax::{Limits, Parsed, SourceId, parse};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF};
use serde_json::{Value, json};

use crate::{
    files::{Violation, read_violations, schema, violation},
    generate,
};

/// Where the node side lives, if it is switched on.
fn oracle() -> Option<PathBuf> {
    Some(ogive_testbase::oracle("node_modules/graphql16")?.join("operation"))
}

#[test]
fn recorded_files_are_what_the_reference_says_today() {
    let Some(dir) = oracle() else {
        return left_out(ORACLE_IS_OFF);
    };
    for script in ["record.mjs", "record_variables.mjs"] {
        let output = Command::new("node")
            .arg(dir.join(script))
            .arg("--check")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {text}");
    }
}

/// What graphql 16 says about each document.
fn ask(dir: &Path, schema: &str, documents: &[String]) -> Vec<Vec<Violation>> {
    let mut node = Command::new("node")
        .arg(dir.join("serve.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let lines: Vec<String> = documents
        .iter()
        .map(|text| json!({ "schema": schema, "text": text }).to_string())
        .collect();
    let writer = thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| read_violations(&serde_json::from_str::<Value>(line).unwrap()))
        .collect()
}

/// Whether a violation belongs to a reviewed difference (`cases/differences.json` has the reasons): rules that the
/// specification has and graphql 16 has not, or has only in part.
fn is_reviewed(violation: &Violation) -> bool {
    let message = &violation.message;
    message.ends_with("operation is not supported by the schema.")
        || message.contains("must not use `@skip` or `@include` directives")
        || message.contains("must be non-nullable to be used for OneOf Input Object")
}

#[test]
fn generated_documents_get_the_same_verdicts_and_messages() {
    let Some(dir) = oracle() else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut tally = Tally::default();
    for (name, n, first_seed) in [
        ("zoo", 6_000, 0),
        ("layers", 4_000, 1_000_000),
        ("bare", 200, 2_000_000),
    ] {
        tally.compare(&dir, name, n, first_seed, generate::document);
    }
    assert!(tally.n >= 10_000);
    tally.finish();
}

#[test]
fn generated_clashes_get_the_same_verdicts_and_messages() {
    let Some(dir) = oracle() else {
        return left_out(ORACLE_IS_OFF);
    };
    let mut tally = Tally::default();
    tally.compare(&dir, "layers", 5_000, 0, generate::merging);
    tally.finish();
}

/// Outcomes of a comparison.
#[derive(Default)]
struct Tally {
    n: usize,
    n_valid: usize,
    n_reviewed: usize,
    n_verdicts: usize,
    failures: Vec<String>,
}

impl Tally {
    /// Compares `n` documents, the first that conform to the grammar from a seed on.
    fn compare(
        &mut self,
        dir: &Path,
        name: &str,
        n: usize,
        first_seed: u64,
        make: fn(&Schema, u64) -> String,
    ) {
        let schema = schema(name);
        let (seeds, documents): (Vec<u64>, Vec<String>) = (first_seed..)
            .map(|seed| (seed, make(&schema, seed)))
            .filter(|(_, text)| read(text).errors.is_empty())
            .take(n)
            .unzip();
        let answers = ask(dir, name, &documents);
        assert_eq!(answers.len(), n);
        for ((seed, text), want) in seeds.iter().zip(&documents).zip(answers) {
            let found = validate(&schema, &read(text).document, &ValidationLimits::default());
            let got: Vec<Violation> = found.iter().map(|d| violation(text, d)).collect();
            self.n += 1;
            self.n_valid += usize::from(want.is_empty());
            if got == want {
                continue;
            }
            if reviewed(&got, &want) {
                self.n_reviewed += 1;
                continue;
            }
            self.n_verdicts += usize::from(got.is_empty() != want.is_empty());
            self.failures.push(format!(
                "{name} seed {seed}\n{text}\n  graphql 16: {want:#?}\n  ogive: {got:#?}"
            ));
        }
    }

    fn finish(self) {
        let Tally {
            n,
            n_valid,
            n_reviewed,
            n_verdicts,
            failures,
        } = self;
        println!(
            "{n} generated documents, {n_valid} valid, {n_reviewed} with reviewed differences"
        );
        assert!(
            n_valid > n / 4 && n_valid < n * 3 / 4,
            "{n_valid} of {n} are valid"
        );
        assert!(
            failures.is_empty(),
            "{} of {n} differ, {n_verdicts} in the verdict:\n{}",
            failures.len(),
            failures[..failures.len().min(8)].join("\n\n")
        );
    }
}

fn read(text: &str) -> Parsed {
    parse(text, SourceId(0), &Limits::default())
}

/// Whether only reviewed differences tell the two apart.
fn reviewed(got: &[Violation], want: &[Violation]) -> bool {
    // Thrown: graphql 16 trips over `@skip` with a variable at the root of a subscription.
    let thrown = |v: &Violation| v.message.starts_with("thrown: Argument \"if\"");
    // Ogive says nothing else about such a root; graphql 16 goes on.
    let conditions = |v: &Violation| v.message.contains("must not use `@skip`");
    let strip = |v: &[Violation]| -> Vec<Violation> {
        v.iter().filter(|v| !is_reviewed(v)).cloned().collect()
    };
    got.iter().any(is_reviewed)
        && (want.iter().any(thrown) || got.iter().any(conditions) || strip(got) == strip(want))
}
