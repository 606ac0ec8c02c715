//! Runs commands one after the other, shows what they print, and counts the tests in their output.
//!
//! A step is a command. Tests inside it are counted one by one; a command without any counts as one check. A failing step
//! does not stop the others. A test that fails runs once more, alone: if it passes then, it is reported as `flaky`, and
//! more than [`FLAKY_MAX`] flaky tests fail the run.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    lane::Lane,
    left_out::{self, LeftOut},
    programs::{self, TestProgram},
};

/// Test threads for each core: tests with sockets wait more than they compute.
const THREADS_PER_CORE: usize = 2;

/// Last lines of a failed step without tests that the summary repeats.
const LAST_LINES: usize = 30;

/// Flaky tests that a run may have.
const FLAKY_MAX: usize = 3;

/// Failed tests of a run that run a second time. A run with more of them has another fault than timing.
const RERUNS_MAX: usize = 10;

/// What ran, what failed, and what was left out.
pub(crate) struct Run<'a> {
    root: &'a Path,
    passed: u64,
    /// Tests, and steps without tests with the last lines of their output.
    failures: Vec<String>,
    /// Tests that failed and then passed alone.
    flaky: Vec<String>,
    left_out: LeftOut,
    reruns: usize,
    /// Steps with their seconds, in order.
    steps: Vec<(String, f64)>,
    /// Tests compare with the reference implementations, which are installed.
    pub(crate) oracles: bool,
}

/// What one command printed.
#[derive(Default)]
struct Output {
    passed: u64,
    failed: u64,
    failed_tests: Vec<String>,
    /// The last [`LAST_LINES`].
    last: VecDeque<String>,
}

impl<'a> Run<'a> {
    /// An empty run in the repository `root`.
    pub(crate) fn new(root: &'a Path) -> Result<Run<'a>> {
        Ok(Run {
            root,
            passed: 0,
            failures: Vec::new(),
            flaky: Vec::new(),
            left_out: LeftOut::new(&target_folder(root))?,
            reruns: 0,
            steps: Vec::new(),
            oracles: false,
        })
    }

    /// Runs one command, written with single spaces between its words. Returns whether it succeeded.
    pub(crate) fn step(&mut self, name: &str, command: &str) -> bool {
        let command: Vec<&str> = command.split(' ').collect();
        self.step_of(name, &command, &[])
    }

    /// Runs one command with additional environment variables. Returns whether it succeeded.
    pub(crate) fn step_of(
        &mut self,
        name: &str,
        command: &[&str],
        variables: &[(&str, &str)],
    ) -> bool {
        println!("== {name}: {}", command.join(" "));
        let start = Instant::now();
        let (ok, output) = self
            .stream(self.root, command, variables)
            .unwrap_or_else(|error| {
                println!("   {error:#}");
                (false, Output::default())
            });
        match output.passed + output.failed {
            0 => self.passed += u64::from(ok),
            _ => self.passed += output.passed,
        }
        self.failures.extend(
            output
                .failed_tests
                .iter()
                .map(|test| format!("{name}: {test}")),
        );
        if !ok && output.failed_tests.is_empty() {
            self.fail(name, &output);
        }
        self.end(name, ok, start);
        ok
    }

    /// Starts commands that run one after the other beside the steps, each written with single spaces between its words.
    pub(crate) fn start(&self, steps: Vec<(String, String)>) -> Lane {
        Lane::start(self.root, steps)
    }

    /// Waits for a lane and counts each of its commands as a check. Returns whether all succeeded.
    pub(crate) fn join(&mut self, lane: Lane) -> bool {
        let mut ok = true;
        for done in lane.finish() {
            ok &= done.ok;
            println!("== {}: {}", done.name, done.command);
            if done.ok {
                self.passed += 1;
            } else {
                let mut output = Output::default();
                done.output.into_iter().for_each(|line| output.add(line));
                self.fail(&done.name, &output);
            }
            self.note_end(&done.name, done.ok, done.seconds);
        }
        ok
    }

    /// Builds the test programs that `options` of `cargo test` select, once. None if they do not compile.
    pub(crate) fn build_tests(&mut self, options: &[&str]) -> Vec<TestProgram> {
        println!("== tests: cargo test {}", options.join(" "));
        let start = Instant::now();
        let built = programs::build(self.root, options);
        self.end("tests: build", built.is_ok(), start);
        built.unwrap_or_else(|error| {
            println!("   {error:#}");
            self.failures.push(format!("tests: {error:#}"));
            Vec::new()
        })
    }

    /// Runs one test program, and its failed tests a second time.
    pub(crate) fn program(&mut self, program: &TestProgram) {
        println!("== {}", program.name);
        let start = Instant::now();
        let path = program.path.to_string_lossy();
        let (ok, output) = self
            .stream(&program.folder, &[&path], &program.variables())
            .unwrap_or_else(|error| {
                println!("   {error:#}");
                (false, Output::default())
            });
        self.passed += output.passed;
        if !ok && output.failed_tests.is_empty() {
            self.fail(&program.name, &output);
        }
        for test in output.failed_tests {
            let name = format!("{}: {test}", program.name);
            if self.passes_alone(program, &test) {
                println!("flaky: {name}");
                self.passed += 1;
                self.flaky.push(name);
            } else {
                self.failures.push(name);
            }
        }
        self.end(&program.name, ok, start);
    }

    fn passes_alone(&mut self, program: &TestProgram, test: &str) -> bool {
        self.reruns += 1;
        if self.reruns > RERUNS_MAX {
            return false;
        }
        // `should_panic` tests print a remark behind their name.
        let test = test.split(" - ").next().unwrap_or(test);
        let path = program.path.to_string_lossy();
        println!("== {}: {test}, once more", program.name);
        let command = [&*path, "--exact", test];
        self.stream(&program.folder, &command, &program.variables())
            .is_ok_and(|(ok, output)| ok && output.passed == 1)
    }

    /// Counts a check that is no command.
    pub(crate) fn check(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                println!("== {name}: FAILED: {error:#}");
                self.failures.push(format!("{name}: {error:#}"));
            }
        }
    }

    /// Notes a step that does not run.
    pub(crate) fn leave_out(&mut self, step: &str, why: &str) {
        println!("== {step}: left out ({why})");
        self.left_out.step(step, why);
    }

    /// Prints the summary, which ends with how many checks passed and failed; an error if any failed.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.steps.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (name, seconds) in self.steps.iter().take(15) {
            println!("{seconds:6.0} s  {name}");
        }
        let left_out = self.left_out.all();
        for what in &left_out {
            println!("left out: {what}");
        }
        println!("{} left out", left_out.len());
        self.failures
            .extend(left_out::failure(left_out.len(), left_out::is_ci()));
        self.failures.extend(too_many_flaky(self.flaky.len()));
        for test in &self.flaky {
            println!("flaky: {test}");
        }
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed", self.passed, self.failures.len());
        if !self.failures.is_empty() {
            bail!("some checks failed; their output is above");
        }
        Ok(())
    }

    fn end(&mut self, name: &str, ok: bool, start: Instant) {
        self.note_end(name, ok, start.elapsed().as_secs_f64());
    }

    fn note_end(&mut self, name: &str, ok: bool, seconds: f64) {
        let result = if ok { "ok" } else { "FAILED" };
        println!("== {name}: {result} in {seconds:.0} s");
        self.steps.push((name.to_owned(), seconds));
    }

    fn fail(&mut self, name: &str, output: &Output) {
        let mut failure = name.to_owned();
        for line in &output.last {
            failure += &format!("\n    {line}");
        }
        self.failures.push(failure);
    }

    /// Runs a command and copies its output, errors included, in the order in which it comes.
    fn stream(
        &self,
        folder: &Path,
        command: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<(bool, Output)> {
        let program = command.first().context("an empty command")?;
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 2>&1", "sh"])
            .args(command)
            .envs(self.oracles.then_some(("OGIVE_ORACLE", "1")))
            .envs(variables.iter().copied())
            .env("RUST_TEST_THREADS", test_threads().to_string())
            .env(left_out::FILE, self.left_out.file())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut output = Output::default();
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines() {
                output.add(line.context("reading output")?);
            }
        }
        let status = child
            .wait()
            .with_context(|| format!("waiting for {program}"))?;
        Ok((status.success(), output))
    }
}

impl Output {
    /// Shows a line and counts what it says.
    fn add(&mut self, line: String) {
        if let Some((passed, failed)) = test_result(&line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some(name) = failed_test(&line) {
            self.failed_tests.push(name.to_owned());
        }
        println!("{line}");
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}

/// What fails because too many tests passed only when they ran alone.
fn too_many_flaky(flaky: usize) -> Option<String> {
    (flaky > FLAKY_MAX).then(|| format!("{flaky} tests are flaky: more than {FLAKY_MAX}"))
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

/// How many tests of a program run at a time.
fn test_threads() -> usize {
    THREADS_PER_CORE * thread::available_parallelism().map_or(1, usize::from)
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(set)
}

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    // `helm` and `go` know the second form only.
    ["--version", "version"].iter().any(|argument| {
        Command::new(program)
            .arg(argument)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    })
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

    /// A program that behaves as a test program: `fails` fails always, `races` only beside others.
    fn program(folder: &Path) -> TestProgram {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("program.sh");
        let script = r#"#!/bin/sh
case "$2" in
  races) echo "test races ... ok"; echo "test result: ok. 1 passed; 0 failed;" ;;
  fails) echo "test fails ... FAILED"; echo "test result: FAILED. 0 passed; 1 failed;"; exit 101 ;;
  *) echo "test fine ... ok"; echo "test races ... FAILED"; echo "test fails ... FAILED"
     echo "test result: FAILED. 1 passed; 2 failed;"; exit 101 ;;
esac
"#;
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        TestProgram {
            name: "program".to_owned(),
            path,
            folder: folder.to_owned(),
            package: "program".to_owned(),
        }
    }

    #[test]
    fn a_failed_test_runs_once_more_alone() {
        let folder = std::env::temp_dir().join(format!("ogive-xtask-run-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("target")).unwrap();
        let mut run = Run::new(&folder).unwrap();
        run.program(&program(&folder));
        assert_eq!(run.passed, 2);
        assert_eq!(run.flaky, ["program: races"]);
        assert_eq!(run.failures, ["program: fails"]);
        assert!(run.finish().is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_few_flaky_tests_pass_and_many_fail() {
        assert_eq!(too_many_flaky(FLAKY_MAX), None);
        assert!(too_many_flaky(FLAKY_MAX + 1).is_some());
    }
}
