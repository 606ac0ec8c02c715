//! Recorded texts: what comes out equals a committed file, and `BLESS=1` writes what came out into the file.
//!
//! Look at the difference before you commit it: blessing makes any outcome the expected one.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use similar::TextDiff;

/// Lines around a difference.
const CONTEXT: usize = 3;
/// Most lines shown of one difference.
const LINES_MAX: usize = 80;

/// Compares a text with a recorded file.
///
/// # Panics
/// If they differ, with the difference.
#[track_caller]
pub fn assert_recorded(path: impl AsRef<Path>, found: &str) {
    let mut recorded = Recorded::new();
    recorded.compare(path, found);
    recorded.finish(1);
}

/// Comparisons with many files, whose differences are shown together.
#[derive(Debug)]
pub struct Recorded {
    bless: bool,
    compared: usize,
    different: Vec<String>,
}

impl Default for Recorded {
    fn default() -> Self {
        Recorded::new()
    }
}

impl Recorded {
    /// Compares; with `BLESS` set, writes.
    pub fn new() -> Self {
        Recorded {
            bless: is_blessing(),
            compared: 0,
            different: Vec::new(),
        }
    }

    /// Compares a text with a file. A file that is missing differs.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[track_caller]
    pub fn compare(&mut self, path: impl AsRef<Path>, found: &str) {
        let path = path.as_ref();
        self.compared += 1;
        let recorded = fs::read_to_string(path);
        if recorded.as_ref().is_ok_and(|text| text == found) {
            return;
        }
        if self.bless {
            write(path, found).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            return;
        }
        let difference = match recorded {
            Ok(recorded) => difference(&recorded, found),
            Err(error) => format!("({error})\n{found}"),
        };
        self.different
            .push(format!("{}\n{difference}", shown(path)));
    }

    /// Ends the comparison.
    ///
    /// # Panics
    /// If something differs, or fewer files were compared than there are known to be: a folder that is not found must
    /// not look like one in which all is well.
    #[track_caller]
    pub fn finish(self, at_least: usize) {
        assert!(
            self.different.is_empty(),
            "{} of {} recorded texts differ; look, then BLESS=1 records what came out:\n\n{}",
            self.different.len(),
            self.compared,
            self.different.join("\n")
        );
        assert!(
            self.compared >= at_least,
            "only {} recorded texts were compared; there are at least {at_least}",
            self.compared
        );
    }
}

/// Whether what comes out is to be recorded rather than compared.
pub fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| !value.is_empty() && value != "0")
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// The path below the repository, where it is there.
fn shown(path: &Path) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (root, path) = (
        root.canonicalize(),
        path.canonicalize().unwrap_or(path.into()),
    );
    let below = root
        .as_ref()
        .ok()
        .and_then(|root| path.strip_prefix(root).ok());
    below.unwrap_or(&path).display().to_string()
}

/// Lines that are gone with `-`, new ones with `+`.
fn difference(recorded: &str, found: &str) -> String {
    let diff = TextDiff::from_lines(recorded, found);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .header("recorded", "came out")
        .to_string();
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        if i == LINES_MAX {
            let _ = writeln!(out, "... {} more lines", text.lines().count() - LINES_MAX);
            break;
        }
        let _ = writeln!(out, "{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ogive-recorded-{}-{name}", std::process::id()))
    }

    /// Not with what `BLESS` says: these tests are about both.
    fn comparing(bless: bool) -> Recorded {
        Recorded {
            bless,
            ..Recorded::default()
        }
    }

    #[test]
    fn a_difference_is_shown_by_lines() {
        let path = file("shown");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut recorded = comparing(false);
        recorded.compare(&path, "one\n2\nthree\n");
        assert!(
            recorded.different[0].contains(" one\n-two\n+2\n three\n"),
            "{recorded:?}"
        );
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn blessing_writes_what_came_out_and_then_it_is_equal() {
        let path = file("blessed");
        let mut recorded = comparing(false);
        recorded.compare(&path, "new\n");
        assert_eq!(recorded.different.len(), 1, "a missing file differs");
        comparing(true).compare(&path, "new\n");
        let mut again = comparing(false);
        again.compare(&path, "new\n");
        again.finish(1);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    #[should_panic(expected = "only 0 recorded texts were compared")]
    fn comparing_nothing_is_not_equality() {
        comparing(false).finish(1);
    }
}
