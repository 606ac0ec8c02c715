//! What a test needs of the machine, and what happens where it is missing.
//!
//! A test that passes because something is missing hides that nothing was tested. So it ends with
//! `return left_out("why")`, which `cargo xtask test` counts; with `CI=true` any count but zero fails. `cargo xtask tidy`
//! refuses tests that return early without it.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The file into which tests write what they leave out; `cargo xtask test` sets it.
pub const LEFT_OUT_FILE: &str = "OGIVE_LEFT_OUT";

/// Why tests that ask reference implementations are left out.
pub const ORACLE_IS_OFF: &str =
    "OGIVE_ORACLE is not set (`cargo xtask test` installs the oracles and sets it)";

/// Says that this test was left out, and why. Counted by `cargo xtask test`.
#[expect(clippy::print_stderr, reason = "shown when a test runs by itself")]
pub fn left_out(why: &str) {
    let thread = std::thread::current();
    let line = line(
        &std::env::var("CARGO_PKG_NAME").unwrap_or_default(),
        thread.name().unwrap_or("a test"),
        why,
    );
    eprint!("LEFT OUT: {line}");
    if let Some(path) = std::env::var_os(LEFT_OUT_FILE) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // One write: lines of tests in parallel do not mix.
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|e| panic!("{}: {e}", Path::new(&path).display()));
    }
}

fn line(package: &str, test: &str, why: &str) -> String {
    let why = why.replace(['\r', '\n'], " ");
    format!("{package} {test}: {why}\n")
}

/// Whether a program is there to be started.
pub fn runs(program: &str) -> bool {
    // Some know no `--version` and say so; they were started all the same.
    let started = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok()
}

/// The folder `oracle`, where the reference implementations live; `None` where they are switched off.
///
/// # Panics
/// If they are switched on and the package is not installed.
pub fn oracle(package: &str) -> Option<PathBuf> {
    std::env::var_os("OGIVE_ORACLE")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle");
    assert!(
        folder.join(package).is_dir(),
        "OGIVE_ORACLE is set, but oracle/{package} is not there: `npm ci` in its folder installs it"
    );
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_takes_one_line() {
        let line = line("ogive-json", "a::test", "no\nscanner");
        assert_eq!(line, "ogive-json a::test: no scanner\n");
    }

    #[test]
    fn a_program_that_is_not_there_does_not_run() {
        assert!(runs("cargo"));
        assert!(!runs("no-such-program-of-ogive"));
    }
}
