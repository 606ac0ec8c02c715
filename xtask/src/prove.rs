//! The long forms of the tests: `cargo xtask prove`. They take hours, so a run can stop at any step and resume.
//!
//! Finished steps of a commit are lines in `target/prove/COMMIT.txt`: the step, its result, its seconds. A further run at
//! the same commit repeats only what failed or did not run. Uncommitted changes have no such file, so everything runs.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    run::{Run, has, target_folder},
    size,
    test::FUZZ,
};

/// One long form.
struct Proof {
    name: &'static str,
    command: &'static str,
    /// What makes it long.
    variables: &'static [(&'static str, &'static str)],
    /// A program that has to be installed.
    needs: Option<&'static str>,
}

/// A long form that needs nothing but cargo.
const fn proof(
    name: &'static str,
    command: &'static str,
    variables: &'static [(&'static str, &'static str)],
) -> Proof {
    Proof {
        name,
        command,
        variables,
        needs: None,
    }
}

/// All long forms but fuzzing, the quick ones first.
const PROOFS: &[Proof] = &[
    Proof {
        name: "advisories",
        command: "cargo deny check",
        variables: &[],
        needs: Some("cargo-deny"),
    },
    proof(
        "dist",
        "cargo build --locked --profile dist --package ogive-cli --features shipped",
        &[],
    ),
    Proof {
        name: "migrations",
        command: "python3 oracle/migrate/run.py target/dist/ogive",
        variables: &[],
        needs: Some("redis-server"),
    },
    proof(
        "dist: instructions and heap",
        "cargo run --quiet --profile dist --package ogive-icount -- check",
        &[("CARGO_PROFILE_DIST_STRIP", "none")],
    ),
    Proof {
        name: "chart",
        command: "bash deploy/chart/check.sh",
        variables: &[],
        needs: Some("helm"),
    },
    proof(
        "dist: memory of big answers",
        "cargo run --quiet --profile dist --package ogive-icount -- memory",
        &[("CARGO_PROFILE_DIST_STRIP", "none")],
    ),
    proof(
        "differential",
        "cargo test --release --package ogive-testkit --test differential",
        &[("OGIVE_DIFF_OPERATIONS", "200000")],
    ),
    proof(
        "answers in parts",
        "cargo test --release --package ogive-testkit --test incremental",
        &[("OGIVE_DEFER_OPERATIONS", "20000")],
    ),
    proof(
        "mutated subgraphs",
        "cargo test --release --package ogive-compose --test it -- mutants",
        &[("OGIVE_MUTANTS", "20000")],
    ),
    proof(
        "callers",
        "cargo test --release --package ogive-e2e --test it -- identity::rotation",
        &[("OGIVE_CALLERS", "100000")],
    ),
    proof(
        "rates in Redis",
        "cargo test --release --package ogive-cli --test it -- sharing",
        &[
            ("OGIVE_SHARED_REQUESTS", "20000"),
            ("OGIVE_REDIS_AWAY_SECONDS", "10"),
        ],
    ),
    proof(
        "events",
        "cargo test --release --package ogive-e2e --test it -- subscriptions::burst",
        &[("OGIVE_EVENTS", "100000"), ("OGIVE_SUBSCRIBERS", "10")],
    ),
    proof(
        "swaps under load",
        "cargo test --release --package ogive-cli --test it -- swaps",
        &[("OGIVE_SWAPS_SECONDS", "600")],
    ),
    proof(
        "memory at rest",
        "cargo test --release --package ogive-cli --test it -- resting",
        &[("OGIVE_REST_SECONDS", "600")],
    ),
    proof(
        "soak",
        "cargo test --release --package ogive-cli --test it -- soak",
        &[("OGIVE_SOAK_SECONDS", "3600")],
    ),
];

/// Seconds of each fuzz target.
const FUZZ_SECONDS: u32 = 600;

/// Runs the long forms whose names contain one of `names`, or all; `--list` prints them.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<()> {
    if names == ["--list"] {
        for proof in PROOFS {
            println!(
                "{}: {}{}",
                proof.name,
                shown(proof.variables),
                proof.command
            );
        }
        for target in FUZZ {
            println!("fuzz: {}: {}", target.what, target.command(FUZZ_SECONDS));
        }
        return Ok(());
    }
    let selected = |name: &str| names.is_empty() || names.iter().any(|n| name.contains(n));
    let mut journal = Journal::open(root)?;
    let mut run = Run::new(root)?;
    run.oracles = has("node") && root.join("oracle/node_modules").is_dir();
    let mut any = false;
    for proof in PROOFS.iter().filter(|proof| selected(proof.name)) {
        any = true;
        match proof.needs {
            Some(program) if !has(program) => {
                run.leave_out(proof.name, &format!("{program} is not installed"));
            }
            _ => journal.step(&mut run, proof.name, proof.command, proof.variables)?,
        }
        if proof.name == "dist" {
            run.check(
                "dist: size",
                size::check(&target_folder(root).join("dist/ogive")),
            );
        }
    }
    for target in FUZZ {
        let name = format!("fuzz: {}", target.what);
        if selected(&name) {
            any = true;
            journal.step(&mut run, &name, &target.command(FUZZ_SECONDS), &[])?;
        }
    }
    if !any {
        bail!("no long form has such a name; see `cargo xtask prove --list`");
    }
    run.finish()
}

fn shown(variables: &[(&str, &str)]) -> String {
    variables
        .iter()
        .map(|(name, value)| format!("{name}={value} "))
        .collect()
}

/// Which steps have passed at this commit.
struct Journal {
    /// `None` with uncommitted changes.
    path: Option<PathBuf>,
    passed: Vec<String>,
}

impl Journal {
    fn open(root: &Path) -> Result<Journal> {
        let git = |arguments: &[&str]| -> Result<String> {
            let output = Command::new("git")
                .args(arguments)
                .current_dir(root)
                .output()
                .context("git")?;
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        let commit = git(&["rev-parse", "HEAD"])?;
        if commit.is_empty() || !git(&["status", "--porcelain"])?.is_empty() {
            println!("uncommitted changes: every step runs");
            return Ok(Journal {
                path: None,
                passed: Vec::new(),
            });
        }
        let folder = target_folder(root).join("prove");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Journal::at(folder.join(format!("{commit}.txt")))
    }

    fn at(path: PathBuf) -> Result<Journal> {
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.with_context(|| path.display().to_string())?,
        };
        let passed = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter(|(_, rest)| rest.starts_with("ok\t"))
            .map(|(name, _)| name.to_owned())
            .collect();
        Ok(Journal {
            path: Some(path),
            passed,
        })
    }

    fn step(
        &mut self,
        run: &mut Run<'_>,
        name: &str,
        command: &str,
        variables: &[(&str, &str)],
    ) -> Result<()> {
        if self.passed.iter().any(|passed| passed == name) {
            println!("== {name}: passed before at this commit");
            return Ok(());
        }
        let start = Instant::now();
        println!("== {}", shown(variables));
        let command: Vec<&str> = command.split(' ').collect();
        let ok = run.step_of(name, &command, variables);
        self.note(name, ok, start.elapsed().as_secs())
    }

    fn note(&mut self, name: &str, ok: bool, seconds: u64) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let result = if ok { "ok" } else { "failed" };
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| path.display().to_string())?;
        writeln!(file, "{name}\t{result}\t{seconds} s")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_not_repeated_and_what_failed_is() {
        let path = std::env::temp_dir().join(format!("ogive-prove-{}.txt", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut journal = Journal::at(path.clone()).unwrap();
        assert_eq!(journal.passed, Vec::<String>::new());
        journal.note("soak", true, 3_600).unwrap();
        journal.note("dist", false, 900).unwrap();
        assert_eq!(Journal::at(path.clone()).unwrap().passed, ["soak"]);
        fs::remove_file(&path).unwrap();
    }
}
