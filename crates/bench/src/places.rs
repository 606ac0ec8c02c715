//! Folders of this machine, and the words that stand for them in what is kept: results are given to others, who have
//! other folders and no business with these.

use std::{
    cmp::Reverse,
    env, fs,
    path::{Path, PathBuf},
};

/// Folders and files with a word for each.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The longest first: one may lie within another.
    known: Vec<(String, &'static str)>,
}

impl Places {
    /// These, and as `~` and `.` the user's folder and the one the lab was started in. A path is known as it is given
    /// and as the system names it.
    pub fn new<'p>(places: impl IntoIterator<Item = (&'p Path, &'static str)>) -> Places {
        let mut all: Vec<(PathBuf, &'static str)> = places
            .into_iter()
            .map(|(path, word)| (path.to_path_buf(), word))
            .collect();
        all.extend(env::current_dir().ok().map(|path| (path, ".")));
        all.extend(env::home_dir().map(|path| (path, "~")));
        Places::only(all)
    }

    fn only(places: impl IntoIterator<Item = (PathBuf, &'static str)>) -> Places {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        for (path, word) in places {
            let real = fs::canonicalize(&path).unwrap_or_default();
            for path in [path, real] {
                let text = path.to_string_lossy().trim_end_matches('/').to_owned();
                // Nothing of a relative path is this machine's, and the root is everybody's.
                if text.starts_with('/') && known.iter().all(|(known, _)| *known != text) {
                    known.push((text, word));
                }
            }
        }
        known.sort_by_key(|(text, _)| Reverse(text.len()));
        Places { known }
    }

    /// The text with the words in the places of paths.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, word) in &self.known {
            text = replaced(&text, path, word);
        }
        text
    }
}

/// Replaces a path where it is not the beginning of another name.
fn replaced(text: &str, path: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, after) = (&rest[..at], &rest[at + path.len()..]);
        let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let is_inside = before.ends_with(goes_on) || after.starts_with(goes_on);
        out.push_str(before);
        out.push_str(if is_inside { path } else { word });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_paths_and_for_nothing_else() {
        let known = [
            ("/some/ann/lab", "{lab}"),
            ("/some/ann/lab/out/work/", "{work}"),
            ("/some/ann", "~"),
            ("target/bench", "{cache}"),
            ("/", "{root}"),
        ];
        let places = Places::only(known.map(|(path, word)| (PathBuf::from(path), word)));
        for (text, right) in [
            ("/some/ann/lab/out/work/a.yaml", "{work}/a.yaml"),
            ("--graph=/some/ann/lab/graphs/a", "--graph={lab}/graphs/a"),
            ("in /some/ann/lab: /some/ann/x", "in {lab}: ~/x"),
            ("/some/ann/lab-2/a", "~/lab-2/a"),
            ("/some/anna and /x/some/ann", "/some/anna and /x/some/ann"),
            ("target/bench/x /etc/passwd", "target/bench/x /etc/passwd"),
            ("/some/ann", "~"),
            ("", ""),
        ] {
            assert_eq!(places.hide(text), right);
        }
    }
}
