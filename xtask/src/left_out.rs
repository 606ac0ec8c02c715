//! What a run of the tests left out, and why.
//!
//! Steps that are left out are noted here. Tests, which run in processes of their own, write a line into a file whose
//! name they find in the environment (`ogive_testbase::left_out`). Both are counted alike.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Tells tests the file; `crates/testbase/src/needs.rs` has it, too.
pub(crate) const FILE: &str = "OGIVE_LEFT_OUT";

/// The list.
pub(crate) struct LeftOut {
    file: PathBuf,
    steps: Vec<String>,
}

impl LeftOut {
    /// An empty list.
    pub(crate) fn new(target: &Path) -> Result<LeftOut> {
        fs::create_dir_all(target).with_context(|| format!("creating {}", target.display()))?;
        let file = target.join("left-out.txt");
        fs::write(&file, "").with_context(|| format!("writing {}", file.display()))?;
        Ok(LeftOut {
            file,
            steps: Vec::new(),
        })
    }

    /// Where tests write.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Notes a step.
    pub(crate) fn step(&mut self, step: &str, why: &str) {
        self.steps.push(format!("{step}: {why}"));
    }

    /// Everything, one line each.
    pub(crate) fn all(&self) -> Vec<String> {
        let tests = fs::read_to_string(&self.file)
            .unwrap_or_else(|error| format!("the list of tests: {}: {error}", self.file.display()));
        let mut tests: Vec<String> = tests.lines().map(str::to_owned).collect();
        tests.sort();
        self.steps.iter().cloned().chain(tests).collect()
    }
}

/// Whether this run decides what is merged.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// What fails because something was left out.
pub(crate) fn failure(left_out: usize, ci: bool) -> Option<String> {
    (ci && left_out > 0).then(|| format!("{left_out} left out, and CI is set: nothing may be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_tests_are_counted_alike() {
        let folder = std::env::temp_dir().join(format!("ogive-left-out-{}", std::process::id()));
        let mut left_out = LeftOut::new(&folder).unwrap();
        assert_eq!(left_out.all(), Vec::<String>::new());
        left_out.step("browser", "chromium is not installed");
        fs::write(left_out.file(), "b: why\na: why\n").unwrap();
        assert_eq!(
            left_out.all(),
            ["browser: chromium is not installed", "a: why", "b: why"]
        );
        // A list that cannot be read is not an empty one.
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(left_out.all().len(), 2);
    }

    #[test]
    fn anything_left_out_fails_where_changes_are_merged() {
        assert_eq!(failure(0, true), None);
        assert_eq!(failure(1, false), None);
        assert!(failure(1, true).is_some());
    }
}
