//! Everything a change must pass, in order, with its own set-up. Ends with `N passed, N failed`.
//!
//! Steps and tests that need a program which is not there (node, chromium, a C++ compiler) are left out, and counted
//! ([`crate::left_out`]): in continuous integration any count but zero fails.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    components,
    left_out::{self, LeftOut},
};

/// Last lines of a step without tests that are shown once more at the end if it fails.
const LAST_LINES: usize = 30;

/// Seconds a fuzz target runs.
const FUZZ_SECONDS: &str = "60";

#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    /// Names of what failed: tests, and steps that have none with their last lines.
    failures: Vec<String>,
}

/// What a command printed.
#[derive(Default)]
struct Output {
    tests: Count,
    /// The last [`LAST_LINES`].
    last: VecDeque<String>,
}

/// A run of all steps.
struct Run<'a> {
    root: &'a Path,
    /// No oracles, no fuzzing, no browser.
    quick: bool,
    count: Count,
    left_out: LeftOut,
    /// Whether the reference implementations are installed.
    oracles: bool,
}

/// Runs all steps; the first failing step does not stop the others.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let quick = match options {
        [] => false,
        ["--quick"] => true,
        _ => bail!("unknown option; see `cargo xtask`"),
    };
    let mut run = Run {
        root,
        quick,
        count: Count::default(),
        left_out: LeftOut::new(&target_folder(root))?,
        oracles: false,
    };
    run.install_oracles();
    run.step("format", "cargo fmt --all --check");
    run.step("tidy", "cargo run --quiet --package xtask -- tidy");
    run.step("licences", "cargo run --quiet --package xtask -- licences");
    run.step(
        "clippy",
        "cargo clippy --workspace --all-targets --quiet -- -D warnings",
    );
    run.step("tests", "cargo test --workspace --no-fail-fast");
    // Alone, so that nothing else is built anew for its dependencies.
    run.step(
        "policies of Cedar",
        "cargo test --package ogive-cedar --features engine",
    );
    run.step(
        "WebAssembly components",
        "cargo test --package ogive-component --features engine",
    );
    run.step(
        "WebAssembly components on sockets",
        "cargo test --package ogive-e2e --features components --test it -- components::",
    );
    run.costs();
    run.components();
    run.step("demo", "cargo run --quiet -- demo --once");
    run.clients();
    run.fuzz();
    run.finish()
}

impl Run<'_> {
    /// The reference implementations, which tests ask if `OGIVE_ORACLE` is set.
    fn install_oracles(&mut self) {
        if self.quick {
            return self.leave_out("oracles", "--quick");
        }
        if !has("node") || !has("npm") {
            return self.leave_out("oracles", "node and npm are not installed");
        }
        self.oracles = self.step(
            "oracles: npm packages",
            "npm ci --prefix oracle --no-audit --no-fund",
        ) && self.step(
            "composition: npm packages",
            "npm ci --prefix oracle/compose --no-audit --no-fund",
        ) && self.step(
            "signatures: npm packages",
            "npm ci --prefix oracle/signing --no-audit --no-fund",
        ) && self.step(
            "tokens: npm packages",
            "npm ci --prefix oracle/identity --no-audit --no-fund",
        ) && self.step(
            "subscriptions: npm packages",
            "npm ci --prefix oracle/subscriptions --no-audit --no-fund",
        );
        // The tests that need them are left out if they are not there.
        if !has("python3") {
            return self.leave_out("Python packages", "python3 is not installed");
        }
        let _ = self.step(
            "components in Python: a place for Python packages",
            "python3 -m venv examples/plugins/python/venv",
        ) && self.step(
            "components in Python: Python packages",
            "examples/plugins/python/venv/bin/pip install --quiet --timeout 120 --requirement examples/plugins/python/requirements.txt",
        );
        let _ = self.step(
            "subscriptions: a place for Python packages",
            "python3 -m venv oracle/subscriptions/python",
        ) && self.step(
            "subscriptions: Python packages",
            "oracle/subscriptions/python/bin/pip install --quiet --timeout 120 --requirement oracle/subscriptions/requirements.txt",
        );
    }

    /// Instructions, heap, resident memory.
    fn costs(&mut self) {
        if self.quick {
            return self.leave_out("instructions and heap", "--quick");
        }
        self.step(
            "instructions and heap",
            "cargo run --quiet --release --package ogive-icount -- check",
        );
        self.step(
            "memory of big answers",
            "cargo run --quiet --release --package ogive-icount -- memory",
        );
    }

    /// What needs components of the toolchain that most machines lack: optional, so not counted where they are missing.
    fn components(&mut self) {
        for (name, check) in [
            ("scanner under Miri", components::miri()),
            ("vector instructions elsewhere", components::foreign()),
        ] {
            match check {
                _ if self.quick => println!("== {name}: optional, left out (--quick)"),
                Err(missing) => println!("== {name}: optional, left out ({missing})"),
                Ok(command) => {
                    let command: Vec<&str> = command.iter().map(String::as_str).collect();
                    self.step_of(name, &command);
                }
            }
        }
    }

    /// Clients that are in use, browsers among them.
    fn clients(&mut self) {
        if self.quick {
            return self.leave_out("browser and clients", "--quick");
        }
        if !self.oracles {
            return self.leave_out("browser and clients", "there are no oracles");
        }
        let binary = target_folder(self.root).join("debug").join("ogive");
        let binary = binary.to_string_lossy();
        if has("chromium") {
            let command = ["node", "oracle/browser/graphiql.mjs", &binary, "chromium"];
            self.step_of("browser: GraphiQL", &command);
        } else {
            self.leave_out("browser: GraphiQL", "chromium is not installed");
        }
        let installed = self.step(
            "clients: npm packages",
            "npm ci --prefix oracle/clients --no-audit --no-fund",
        );
        if installed {
            let command = ["node", "oracle/clients/run.mjs", &binary, "chromium"];
            self.step_of("clients", &command);
        }
        let installed = self.step(
            "documents: npm packages",
            "npm ci --prefix oracle/documents --no-audit --no-fund",
        );
        if installed {
            let command = ["node", "oracle/documents/run.mjs", &binary];
            self.step_of("documents: tools of Apollo and Relay", &command);
        }
        let installed = self.step(
            "answers in parts: npm packages",
            "npm ci --prefix oracle/incremental --no-audit --no-fund",
        );
        if installed {
            let command = ["node", "oracle/incremental/run.mjs", &binary];
            self.step_of("answers in parts: graphql 17, clients", &command);
        }
    }

    fn fuzz(&mut self) {
        if self.quick {
            return self.leave_out("fuzz", "--quick");
        }
        if !has("c++") {
            return self.leave_out("fuzz", "no C++ compiler for the fuzzing runtime");
        }
        for (what, target, seconds) in [
            ("lexer and parser", "parse", FUZZ_SECONDS),
            // Small, and all of its paths are reached at once.
            ("HTTP answers", "answer", "10"),
            ("JSON", "json", FUZZ_SECONDS),
            ("tokens and key sets", "token", FUZZ_SECONDS),
            ("composition", "compose", FUZZ_SECONDS),
        ] {
            self.step(
                &format!("fuzz: {what}"),
                &format!("bash fuzz/run.sh {target} {seconds} -verbosity=0"),
            );
        }
    }

    /// The last lines: what was left out, what failed, and how many.
    fn finish(mut self) -> Result<()> {
        let left_out = self.left_out.all();
        for what in &left_out {
            println!("left out: {what}");
        }
        println!("{} left out", left_out.len());
        if let Some(failure) = left_out::failure(left_out.len(), left_out::is_ci()) {
            self.count.failed += 1;
            self.count.failures.push(failure);
        }
        // Once more at the end, where whoever reads the last lines finds it.
        for failure in &self.count.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed", self.count.passed, self.count.failed);
        if self.count.failed > 0 {
            bail!("some checks failed; their output is above");
        }
        Ok(())
    }

    fn leave_out(&mut self, step: &str, why: &str) {
        println!("== {step}: left out ({why})");
        self.left_out.step(step, why);
    }

    fn step(&mut self, name: &str, command: &str) -> bool {
        let command: Vec<&str> = command.split(' ').collect();
        self.step_of(name, &command)
    }

    /// Runs one command, showing its output as it comes. Test results inside are counted one by one; a command without
    /// any counts as one check.
    fn step_of(&mut self, name: &str, command: &[&str]) -> bool {
        println!("== {name}: {}", command.join(" "));
        let start = Instant::now();
        let (ok, Output { tests, last }) = match self.stream(command) {
            Ok(done) => done,
            Err(error) => {
                println!("   {error:#}");
                (false, Output::default())
            }
        };
        let count = &mut self.count;
        let is_told = tests.failed > 0;
        match tests.passed + tests.failed {
            0 => count.passed += u64::from(ok),
            _ => count.passed += tests.passed,
        }
        count.failed += tests.failed;
        count.failures.extend(tests.failures);
        if !ok && !is_told {
            count.failed += 1;
            let mut failure = name.to_owned();
            for line in last {
                failure += &format!("\n    {line}");
            }
            count.failures.push(failure);
        }
        println!(
            "== {name}: {} in {:.0} s",
            if ok { "ok" } else { "FAILED" },
            start.elapsed().as_secs_f64()
        );
        ok
    }

    fn stream(&self, command: &[&str]) -> Result<(bool, Output)> {
        let program = command.first().context("an empty command")?;
        // Errors beside the rest, in the order in which they come.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 2>&1", "sh"])
            .args(command)
            .envs(self.oracles.then_some(("OGIVE_ORACLE", "1")))
            .env(left_out::FILE, self.left_out.file())
            .current_dir(self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut output = Output::default();
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines() {
                let line = line.context("reading output")?;
                if let Some((passed, failed)) = test_result(&line) {
                    output.tests.passed += passed;
                    output.tests.failed += failed;
                } else if let Some(name) = failed_test(&line) {
                    output.tests.failures.push(name.to_owned());
                }
                println!("{line}");
                if output.last.len() == LAST_LINES {
                    output.last.pop_front();
                }
                output.last.push_back(line);
            }
        }
        let status = child
            .wait()
            .with_context(|| format!("waiting for {program}"))?;
        Ok((status.success(), output))
    }
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
    let set = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(set)
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
