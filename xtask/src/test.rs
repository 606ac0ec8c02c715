//! Everything a change must pass, in order, with its own set-up. Ends with `N passed, N failed`.
//!
//! Steps that need a program which is not there (node, chromium, a C++ compiler) say so and are left out; the
//! expectations they would refresh are recorded in the repository and are checked all the same.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::components;

/// Seconds a fuzz target runs.
const FUZZ_SECONDS: &str = "60";

#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    /// Names of what failed: tests, and steps that have none.
    failures: Vec<String>,
}

/// Runs all steps; the first failing step does not stop the others.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let quick = match options {
        [] => false,
        ["--quick"] => true,
        _ => bail!("unknown option; see `cargo xtask`"),
    };
    let mut count = Count::default();
    let node = has("node") && has("npm");
    let mut env: Vec<(&str, &str)> = Vec::new();
    if !quick && node {
        let installed = step(
            root,
            &mut count,
            "oracles: npm packages",
            &["npm", "ci", "--prefix", "oracle", "--no-audit", "--no-fund"],
            &[],
        );
        let install = "npm ci --prefix oracle/compose --no-audit --no-fund";
        let install: Vec<&str> = install.split(' ').collect();
        let compose = step(root, &mut count, "composition: npm packages", &install, &[]);
        if installed && compose {
            env.push(("OGIVE_ORACLE", "1"));
        }
    } else {
        println!(
            "== oracles: left out ({}); recorded verdicts are checked all the same",
            if quick {
                "--quick"
            } else {
                "node is not installed"
            }
        );
    }
    step(
        root,
        &mut count,
        "format",
        &["cargo", "fmt", "--all", "--check"],
        &[],
    );
    step(
        root,
        &mut count,
        "tidy",
        &[
            "cargo",
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "tidy",
        ],
        &[],
    );
    step(
        root,
        &mut count,
        "clippy",
        &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    );
    step(
        root,
        &mut count,
        "tests",
        &["cargo", "test", "--workspace", "--no-fail-fast"],
        &env,
    );
    if quick {
        println!("== instructions and heap: left out (--quick)");
    } else {
        if !has("valgrind") {
            println!("== valgrind is not installed: instructions are NOT compared, only the heap");
        }
        let command = "cargo run --quiet --release --package ogive-icount -- check";
        let command: Vec<&str> = command.split(' ').collect();
        step(root, &mut count, "instructions and heap", &command, &[]);
        let command = "cargo run --quiet --release --package ogive-icount -- memory";
        let command: Vec<&str> = command.split(' ').collect();
        step(root, &mut count, "memory of big answers", &command, &[]);
    }
    for (name, check) in [
        ("scanner under Miri", components::miri()),
        ("vector instructions elsewhere", components::foreign()),
    ] {
        match check {
            _ if quick => println!("== {name}: left out (--quick)"),
            Err(missing) => println!("== {name}: LEFT OUT ({missing})"),
            Ok(command) => {
                let command: Vec<&str> = command.iter().map(String::as_str).collect();
                step(root, &mut count, name, &command, &[]);
            }
        }
    }
    step(
        root,
        &mut count,
        "demo",
        &["cargo", "run", "--quiet", "--", "demo", "--once"],
        &[],
    );
    if quick || env.is_empty() || !has("chromium") {
        println!("== browser: left out (it needs node and chromium, and no --quick)");
    } else {
        let binary = target_folder(root).join("debug").join("ogive");
        let command = [
            "node",
            "oracle/browser/graphiql.mjs",
            &binary.to_string_lossy(),
            "chromium",
        ];
        step(root, &mut count, "browser: GraphiQL", &command, &[]);
    }
    if quick || env.is_empty() {
        println!("== clients: left out (they need node, and no --quick)");
    } else {
        let install = "npm ci --prefix oracle/clients --no-audit --no-fund";
        let install: Vec<&str> = install.split(' ').collect();
        let installed = step(root, &mut count, "clients: npm packages", &install, &[]);
        if installed {
            let binary = target_folder(root).join("debug").join("ogive");
            let command = [
                "node",
                "oracle/clients/run.mjs",
                &binary.to_string_lossy(),
                "chromium",
            ];
            step(root, &mut count, "clients", &command, &[]);
        }
    }
    if quick {
        println!("== fuzz: left out (--quick)");
    } else if has("c++") {
        for (what, target, seconds) in [
            ("lexer and parser", "parse", FUZZ_SECONDS),
            // Small, and all of its paths are reached at once.
            ("HTTP answers", "answer", "10"),
            ("JSON", "json", FUZZ_SECONDS),
            ("composition", "compose", FUZZ_SECONDS),
        ] {
            step(
                root,
                &mut count,
                &format!("fuzz: {what}"),
                &["bash", "fuzz/run.sh", target, seconds, "-verbosity=0"],
                &[],
            );
        }
    } else {
        println!("== fuzz: left out (no C++ compiler for the fuzzing runtime)");
    }
    // Once more at the end, where whoever reads the last lines finds it.
    for failure in &count.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    if count.failed > 0 {
        bail!("some checks failed; their output is above");
    }
    Ok(())
}

/// Runs one command, showing its output as it comes. Test results inside are counted one by one; a command without
/// any counts as one check.
fn step(
    root: &Path,
    count: &mut Count,
    name: &str,
    command: &[&str],
    env: &[(&str, &str)],
) -> bool {
    println!("== {name}: {}", command.join(" "));
    let start = Instant::now();
    let outcome = stream(root, command, env);
    let (ok, tests) = match outcome {
        Ok(done) => done,
        Err(error) => {
            println!("   {error:#}");
            (false, Count::default())
        }
    };
    if tests.passed + tests.failed > 0 {
        count.passed += tests.passed;
        count.failed += tests.failed;
        count.failures.extend(tests.failures);
        if !ok && tests.failed == 0 {
            count.failed += 1;
            count.failures.push(name.to_owned());
        }
    } else if ok {
        count.passed += 1;
    } else {
        count.failed += 1;
        count.failures.push(name.to_owned());
    }
    println!(
        "== {name}: {} in {:.0} s",
        if ok { "ok" } else { "FAILED" },
        start.elapsed().as_secs_f64()
    );
    ok
}

fn stream(root: &Path, command: &[&str], env: &[(&str, &str)]) -> Result<(bool, Count)> {
    let (program, args) = command.split_first().context("an empty command")?;
    let mut child = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let mut tests = Count::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading output")?;
            if let Some((passed, failed)) = test_result(&line) {
                tests.passed += passed;
                tests.failed += failed;
            } else if let Some(name) = failed_test(&line) {
                tests.failures.push(name.to_owned());
            }
            println!("{line}");
        }
    }
    let status = child
        .wait()
        .with_context(|| format!("waiting for {program}"))?;
    Ok((status.success(), tests))
}

/// The counts of a `test result: ok. 3 passed; 0 failed; ...` line.
fn test_result(line: &str) -> Option<(u64, u64)> {
    let rest = line.trim().strip_prefix("test result: ")?;
    let number = |word: &str| -> Option<u64> {
        let before = rest.split(word).next()?.trim_end();
        before.rsplit([' ', '.', ';']).next()?.parse().ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

/// The name in a `test NAME ... FAILED` line.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Where cargo puts what it builds.
fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_result_line() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(test_result(line), Some((12, 3)));
        assert_eq!(test_result("running 3 tests"), None);
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
    }
}
